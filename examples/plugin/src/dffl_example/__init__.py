"""A set, a loss, a method, an aggregator and a command for dffl, one file each."""
