"""What the paper reports of PJM's zones in 2025: changes in percent, regrets in US$ a day, each with its sd over five seeds."""

from __future__ import annotations

from dffl_studies.running.tables import Value

CHANGES = {
    "fedavg": (Value(-8.23, 0.59), Value(-10.45, 2.09), Value(21.23, 4.96), Value(8.78, 3.12)),
    "interp-spo": (Value(-9.98, 0.82), Value(-10.79, 1.86), Value(5.83, 4.20), Value(2.44, 1.49)),
}
"""Mean and median change, worst harm and worst-20 % harm."""

DEMANDS = {
    "AECO": 6, "AEP": 6, "APS": 12, "ATSI": 4, "BGE": 12, "COMED": 4, "DAY": 4, "DEOK": 6, "DOM": 10, "DPL": 10, "DUQ": 6,
    "JCPL": 8, "METED": 12, "PECO": 6, "PENELEC": 6, "PEPCO": 10, "PPL": 10, "PSEG": 8, "RECO": 8,
}  # fmt: skip
"""The hours that each zone buys in the authors' later public code; the paper has them in a figure only."""

_ZONES = """
DUQ 21.55 0.62 16.52 0.79 16.03 1.16 1.00 0.00
JCPL 46.77 0.62 37.11 0.46 37.35 0.92 1.00 0.00
RECO 43.84 0.69 35.83 2.01 36.23 1.41 1.00 0.00
AECO 35.58 0.97 29.20 1.33 29.07 1.49 1.00 0.00
PENELEC 35.14 1.10 29.28 0.69 28.86 0.64 1.00 0.00
DPL 57.56 0.99 48.82 2.14 49.64 1.42 1.00 0.00
PECO 36.48 1.58 31.31 1.56 30.52 0.98 1.00 0.00
PSEG 44.90 2.31 38.87 1.04 38.69 1.28 1.00 0.00
PEPCO 66.99 2.41 59.27 2.60 64.69 1.93 0.00 0.00
PPL 46.99 1.57 41.89 1.19 43.95 4.50 0.74 0.38
ATSI 13.84 0.58 12.53 0.43 12.99 0.80 0.38 0.28
BGE 66.45 1.82 62.60 3.77 64.33 1.66 0.00 0.00
AEP 22.63 0.47 21.38 0.80 20.27 0.73 1.00 0.00
DOM 63.63 1.72 60.87 2.84 61.97 1.27 0.00 0.00
DEOK 23.64 0.34 23.39 0.66 20.91 1.46 0.88 0.17
METED 43.93 1.20 43.85 0.65 44.74 0.75 0.01 0.02
DAY 13.54 0.36 13.92 0.78 12.68 0.40 0.57 0.40
APS 48.40 2.14 53.66 4.94 48.45 1.37 0.00 0.00
COMED 14.51 0.33 17.00 0.79 14.60 0.49 0.54 0.10
"""

ZONES: dict[str, dict[str, Value]] = {}
"""Each zone's regret under local, fedavg and interp-spo, and lambda."""
for _line in _ZONES.strip().splitlines():
    _zone, *_numbers = _line.split()
    _values = [float(number) for number in _numbers]
    _pairs = [Value(*_values[place : place + 2]) for place in range(0, len(_values), 2)]
    ZONES[_zone] = dict(zip(("local", "fedavg", "interp-spo", "lambda"), _pairs, strict=True))
