"""Where zones are: the reference city of each, for its weather."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A zone's reference point."""

    city: str
    lat: float
    lon: float


PJM_CODES = {
    "Allegheny Power System": "APS",
    "American Electric Power Co., Inc": "AEP",
    "American Transmission Systems, Inc": "ATSI",
    "Atlantic Electric Company": "AECO",
    "Baltimore Gas and Electric Company": "BGE",
    "ComEd": "COMED",
    "Dayton Power and Light Company": "DAY",
    "Delmarva Power and Light": "DPL",
    "Dominion Energy": "DOM",
    "Duke Energy Ohio/Kentucky": "DEOK",
    "Duquesne Light": "DUQ",
    "East Kentucky Power Coop": "EKPC",
    "Jersey Central Power and Light Company": "JCPL",
    "Metropolitan Edison Company": "METED",
    "Ohio Valley Electric": "OVEC",
    "PECO Energy": "PECO",
    "PPL Electric Utilities": "PPL",
    "Pennsylvania Electric": "PENELEC",
    "Potomac Electric Power": "PEPCO",
    "Public Service Electric and Gas Company": "PSEG",
    "Rockland Electric Company": "RECO",
}
"""PJM's own short names of its zones, by the names that EIA gives them."""

PLACES = {
    # PJM
    "AECO": Place("Atlantic City NJ", 39.36, -74.42),
    "AEP": Place("Charleston WV", 38.35, -81.63),
    "APS": Place("Morgantown WV", 39.63, -79.96),
    "ATSI": Place("Akron OH", 41.08, -81.52),
    "BGE": Place("Baltimore MD", 39.29, -76.61),
    "COMED": Place("Chicago IL", 41.88, -87.63),
    "DAY": Place("Dayton OH", 39.76, -84.19),
    "DEOK": Place("Cincinnati OH", 39.10, -84.51),
    "DOM": Place("Richmond VA", 37.54, -77.44),
    "DPL": Place("Dover DE", 39.16, -75.52),
    "DUQ": Place("Pittsburgh PA", 40.44, -80.00),
    "EKPC": Place("Winchester KY", 37.99, -84.18),
    "JCPL": Place("Morristown NJ", 40.80, -74.48),
    "METED": Place("Reading PA", 40.34, -75.93),
    "OVEC": Place("Piketon OH", 39.07, -83.01),
    "PECO": Place("Philadelphia PA", 39.95, -75.17),
    "PENELEC": Place("Altoona PA", 40.52, -78.39),
    "PEPCO": Place("Washington DC", 38.91, -77.04),
    "PPL": Place("Allentown PA", 40.60, -75.47),
    "PSEG": Place("Newark NJ", 40.74, -74.17),
    "RECO": Place("Mahwah NJ", 41.09, -74.14),
    # NYISO, by EIA's names, one of them with EIA's spelling
    "A - West": Place("Buffalo NY", 42.89, -78.88),
    "B - Genessee": Place("Rochester NY", 43.16, -77.61),
    "C - Central": Place("Syracuse NY", 43.05, -76.15),
    "D - North": Place("Plattsburgh NY", 44.70, -73.45),
    "E - Mohawk Valley": Place("Utica NY", 43.10, -75.23),
    "F - Capital": Place("Albany NY", 42.65, -73.75),
    "G - Hudson Valley": Place("Poughkeepsie NY", 41.70, -73.92),
    "H - Millwood": Place("Millwood NY", 41.20, -73.80),
    "I - Dunwoodie": Place("Yonkers NY", 40.93, -73.90),
    "J - New York City": Place("New York City NY", 40.71, -74.01),
    "K - Long Island": Place("Hempstead NY", 40.71, -73.62),
    # MISO, by EIA's names
    "Arkansas Hub": Place("Little Rock AR", 34.75, -92.29),
    "Illinois Hub": Place("Springfield IL", 39.80, -89.64),
    "Indiana Hub": Place("Indianapolis IN", 39.77, -86.16),
    "Louisiana Hub": Place("Baton Rouge LA", 30.45, -91.19),
    "Michigan Hub": Place("Lansing MI", 42.73, -84.56),
    "Minnesota Hub": Place("Minneapolis MN", 44.98, -93.27),
    "Mississippi Hub": Place("Jackson MS", 32.30, -90.18),
    "Texas Hub": Place("Beaumont TX", 30.08, -94.10),
}
"""The reference point of each zone of PJM, of NYISO and of MISO's hubs."""


def place(zone: str) -> Place | None:
    """The reference point of a zone, by PJM's short name or EIA's name; None if it is not known."""
    return PLACES.get(PJM_CODES.get(zone, zone))
