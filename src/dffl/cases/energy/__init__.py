"""The energy case study: zones that buy the cheapest of the next 24 hours."""
