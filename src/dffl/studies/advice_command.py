"""What `dffl advice-study` does: run what is missing, then write and show what the advice was worth."""

from __future__ import annotations

from pathlib import Path

from dffl.studies import advice
from dffl.studies.advice_tables import all_tables
from dffl.studies.command import Options, Outcome, finished_rows, outcome
from dffl.studies.render import write_tables
from dffl.studies.store import Store


def advice_study(options: Options, zones: Path | None = None, progress: bool | None = None) -> Outcome:
    """The synthetic federations, or the zones in a folder; tables go into the study's folder."""
    if options.show and (options.workers or options.ray):
        raise ValueError("--show runs nothing; leave --workers and --ray out")
    whole = advice.study() if zones is None else advice.zones(zones)
    study = whole.only(options.only)
    store = Store(options.out or Path(f"dffl-{whole.name}"))
    rows, failed = finished_rows(study, whole, store, options, progress)
    tables = all_tables(rows)
    write_tables(tables, store.folder / "tables")
    return outcome(study, store, rows, failed, tables, [], None)
