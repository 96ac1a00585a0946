"""A first example: a coordinator and three sites, each in a separate folder, as on four machines."""

from __future__ import annotations

from pathlib import Path

from dffl.files import write_text
from dffl.tables.example import SITES, days_of

SITE = """\
# The table and the constraint of {name}. This file, and the files that it names, never leave the site.
[client]
table = "history.csv"           # paths are relative to this file. Columns are matched by name with those of the plan.
{set}
"""
SETS = {
    "harbour": 'set = { type = "top-k", k = 4 } # a cold store: it runs its compressors in the 4 cheapest of 12 slots.',
    "bakery": 'set = { type = "consecutive-hours", run = 3 }   # its ovens run once a day, for 3 consecutive slots.',
    "plant": 'set = { type = "consecutive-hours", run = 2, runs = 2 }   # it runs twice a day, for 2 consecutive slots.',
}
TRAINING = """\
method = "crossfit"             # any method that can be deployed; its options and the settings of dffl.Settings.
rounds = 20                     # few, to keep the example short. The default is 50.
local_epochs = 5                # passes over its rows by a site in a round.
epochs = [0, 3, 10, 30]         # an option of crossfit: epochs for which a site may tune the shared model.
"""


def site_files(folder: Path) -> list[Path]:
    """The files that `write_sites` writes."""
    return [folder / name / file for name in SITES for file in ("site.toml", "history.csv", "new.csv")]


def write_sites(folder: Path) -> list[Path]:
    """Write a folder for each site: its description, its past days, and days to decide for."""
    for name in SITES:
        home = folder / name
        home.mkdir(parents=True, exist_ok=True)
        write_text(home / "site.toml", SITE.format(name=name, set=SETS[name]))
        past, new = days_of(name)
        for file, table in (("history.csv", past), ("new.csv", new)):
            write_text(home / file, table.to_csv(index=False, lineterminator="\n"))
    return site_files(folder)
