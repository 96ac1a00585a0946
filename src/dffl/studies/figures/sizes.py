"""The colours of clients with much data and with little."""

from __future__ import annotations

from dffl.studies import tables

GROUPS = ("balanced", *tables.GROUPS)
BALANCED, RICH, POOR = GROUPS

SIZE_COLOURS = {BALANCED: "#777777", RICH: "#56B4E9", POOR: "#E69F00"}
"""Blue and orange as in the paper; the blue is not the one of the local models."""
SIZE_INKS = {BALANCED: "#444444", RICH: "#1F6E9C", POOR: "#946300"}
"""The same, dark enough for small letters."""
