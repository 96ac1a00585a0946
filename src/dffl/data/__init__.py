"""Where federations come from."""
