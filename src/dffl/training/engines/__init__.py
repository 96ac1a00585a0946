"""Engines: three ways to run a visit at clients, behind one protocol."""
