"""Loaders, against a server on this machine that speaks the sources' formats and fails on request."""
