"""A report from the table of `dffl.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pandas as pd

from dffl.advice import Advice as Advised
from dffl.comparing import FACTS, Start, against
from dffl.federation import Federation
from dffl.fitting import DEFAULT_METHOD, UNUSED, Fit
from dffl.harm import HARM_TOLERANCE
from dffl.report.curves import curves
from dffl.report.data import Advice, Change, Client, ReportData, Result
from dffl.report.differences import differences
from dffl.report.numbers import plain
from dffl.report.repeat import settings_in_words, versions
from dffl.report.savings import Judged, kept, now_of, over_time, savings
from dffl.report.styles import ORDER, known
from dffl.theory.report import Bounds
from dffl.time.bases import FORECAST
from dffl.time.outcome import Backtest

REFERENCE, FAIR = "local", "local-tuned"
JUDGED = ("regret", "relative_regret", "mean_ratio", "spread", "relative_regret_low", "relative_regret_high")
COMPARED = ("change", "change_low", "change_high", "verdict", "harmed", "above_tolerance")
NOT_CHOSEN = {*FACTS, *JUDGED, *COMPARED, "independent", "out_of_fold_regret"}
"""All other columns of a comparison, except those at expected costs, are choices of methods."""


def from_starts(
    runs: Sequence[Start],
    test: Federation,
    *,
    dates: bool = False,
    choices: Backtest | None = None,
    rules: Mapping[str, str] | None = None,
    **keywords: Any,
) -> ReportData:
    """A report from the result of `dffl.comparing.judge_starts`; ``keywords`` are those of `from_comparison`.

    Rows with times are shown one after the other; with ``dates`` their times are seconds since 1970. ``choices`` is the
    backtest of the first start, whose choice is the main method, and ``rules`` are those that clients use from now on.
    """
    table = against(runs, test)
    fair = against(runs, test, FAIR) if FAIR in runs[0].rows else None
    if (simple := kept(rules)) not in (None, FORECAST) and FORECAST in runs[0].rows:
        keywords["main"] = simple  # it may replace the forecast
    data = from_comparison(table, **{"fair": fair, "starts": len(runs), "dates": dates, **keywords})
    units_given = keywords.get("units") or {}
    units = dict.fromkeys(test.names, units_given) if isinstance(units_given, str) else units_given
    judged = Judged(runs, test, data.main, units, dates, data.confidence)
    now = now_of(judged)
    if now in (None, data.main):
        return data
    ordered = over_time(judged, now, choices, rules)
    return replace(data, now=now, savings=savings(judged, now, data.reference), over_time=ordered)


def from_comparison(
    table: pd.DataFrame,
    *,
    fits: Mapping[str, Fit] | None = None,
    fair: pd.DataFrame | None = None,
    advice: Advised | None = None,
    bounds: Bounds | None = None,
    units: str | Mapping[str, str] | None = None,
    title: str = "Decisions together or alone",
    main: str | None = None,
    starts: int | None = None,
    confidence: float = 0.95,
    tolerance: float = HARM_TOLERANCE,
    sample: str = "sample",
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    made: str | None = None,
    dates: bool = False,
) -> ReportData:
    """A report from the table of `dffl.compare`, whose reference is `local`.

    ``fair`` is the same table with `local-tuned` as the reference (see `dffl.comparing.against`): then the verdict is about
    that. ``fits`` are those of one start, by the names in the table: training curves, settings, and what each client decides
    come from them. ``units`` are those of the costs, of all clients or by name; ``sample`` is what a sample is called, such as
    day; with ``dates``, times are seconds since 1970. ``main`` is the method that the verdict is about: by default `crossfit`,
    or else the last one that is trained together.
    """
    fits = fits or {}
    titles = list(dict.fromkeys(table["method"]))
    methods = sorted((known(name) for name in titles), key=lambda method: ORDER.index(method.kind))
    chosen = main or (DEFAULT_METHOD if DEFAULT_METHOD in titles else methods[-1].name)
    if chosen not in titles:
        raise ValueError(f"report: main must be a method of the table ({', '.join(titles)}), found {chosen!r}")
    tables = {FAIR: fair, REFERENCE: table} if fair is not None else {REFERENCE: table}
    about = fits.get(chosen) or next(iter(fits.values()), None)
    return ReportData(
        title=title,
        main=chosen,
        methods=tuple(methods),
        clients=_clients(table, about, advice, units),
        results=_results(table, {name: method for name, method in tables.items() if method is not None and name in titles}),
        references=tuple(name for name in tables if name in titles),
        starts=starts,
        confidence=confidence,
        tolerance=tolerance,
        sample=sample,
        notes=(*notes, *_unused(about)),
        differences=None if bounds is None else differences(bounds),
        curves=curves(fits),
        settings=dict(settings) if settings is not None else {} if about is None else settings_in_words(about.settings, dates),
        versions=versions(),
        command=command,
        made=date.today().isoformat() if made is None else made,
    )


def _unused(fit: Fit | None) -> list[str]:
    """A line for each client whose updates were not all used."""
    counts: dict[str, int] = {} if fit is None else fit.about.get(UNUSED, {})
    why = "they could not be used, or changed the model far more than those of the others"
    return [f"{name}: {count} of its updates were not used in training: {why}." for name, count in counts.items()]


def _clients(
    table: pd.DataFrame, fit: Fit | None, advice: Advised | None, units: str | Mapping[str, str] | None
) -> tuple[Client, ...]:
    told = {row["client"]: row for row in advice.rows()} if advice is not None else {}
    clients = []
    for name, rows in table.groupby("client", sort=False):
        member = fit.members.get(str(name)) if fit is not None else None
        row = told.get(str(name))
        clients.append(
            Client(
                name=str(name),
                n=int(rows["n"].max()),
                n_test=int(rows["n_test"].iloc[0]),
                sense="" if member is None else "maximises" if member.maximize else "minimises",
                decides="" if member is None else member.set.in_words(),
                unit=units if isinstance(units, str) else (units or {}).get(str(name), ""),
                advice=None if row is None else Advice(str(row["recommendation"]), str(row["deploy"]), str(row["reason"])),
            )
        )
    return tuple(clients)


def _results(table: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> tuple[Result, ...]:
    choices = [name for name in map(str, table) if name not in NOT_CHOSEN and not name.startswith("expected_")]
    compared: dict[tuple[str, str], list[Change]] = {}
    for reference, changes_table in tables.items():
        for row in changes_table.to_dict("records"):
            compared.setdefault((row["client"], row["method"]), []).append(_change(reference, row))
    results = []
    for row in table.to_dict("records"):
        chosen = {name: choice for name in choices if (choice := plain(row[name])) is not None}
        low, high = (plain(row.get(f"relative_regret_{end}")) for end in ("low", "high"))
        changes = tuple(compared.get((row["client"], row["method"]), ()))
        regret, lost = plain(row["relative_regret"]), plain(row["regret"])
        results.append(Result(row["client"], row["method"], regret, low, high, lost, chosen, changes))
    return tuple(results)


def _change(reference: str, row: Mapping[Any, Any]) -> Change:
    harmed = None if pd.isna(row["harmed"]) else bool(row["harmed"])
    value, low, high = (plain(row[name]) for name in ("change", "change_low", "change_high"))
    return Change(reference, value, low, high, str(row["verdict"]), harmed, bool(row["above_tolerance"]))
