"""Differential privacy: noise added by sites, noise added by the server, and the resulting epsilon."""

from dffl.training.privacy.levels import ClientPrivacy, Privacy, SamplePrivacy
from dffl.training.privacy.spending import Spending, epsilon_of, noise_for

__all__ = ["ClientPrivacy", "Privacy", "SamplePrivacy", "Spending", "epsilon_of", "noise_for"]
