"""Methods: one file for each. A new file in this folder is found without a list."""

from dffl.discovery import import_all
from dffl.training.methods.registry import METHODS, Method, Request, colour_of, label_of, method, options_of, request, requests

import_all(__name__, __path__)

__all__ = ["METHODS", "Method", "Request", "colour_of", "label_of", "method", "options_of", "request", "requests"]
