"""Engines: three ways to run a visit at clients, with one interface."""
