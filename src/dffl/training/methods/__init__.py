"""Methods: one file for each. A file that is put here is found."""

from dffl.discovery import import_all
from dffl.training.methods.registry import METHODS, Method, Request, colour_of, label_of, method, options_of, request, requests

import_all(__name__, __path__)

__all__ = ["METHODS", "Method", "Request", "colour_of", "label_of", "method", "options_of", "request", "requests"]
