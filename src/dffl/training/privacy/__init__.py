"""Differential privacy: what a site hides of what leaves it, what the server hides of the model, and what that is worth."""

from dffl.training.privacy.levels import ClientPrivacy, Privacy, SamplePrivacy
from dffl.training.privacy.spending import Spending, epsilon_of, noise_for

__all__ = ["ClientPrivacy", "Privacy", "SamplePrivacy", "Spending", "epsilon_of", "noise_for"]
