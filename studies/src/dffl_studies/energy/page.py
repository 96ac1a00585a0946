"""A market's backtests as a page for a manager: money a year first, then each zone under each rule, and ranges that held."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from dffl.harm import ENOUGH_STARTS, HARM_TOLERANCE, interval
from dffl.report.data import Change, Client, Method, ReportData, Result
from dffl.report.numbers import plain
from dffl.report.repeat import versions
from dffl.report.styles import known
from dffl.terminal import typed
from dffl_studies.energy.answers import NO_REGRET, named
from dffl_studies.energy.backtests import CHOSEN, NAIVE
from dffl_studies.energy.figures.manager import pictures
from dffl_studies.energy.market_result import MarketResult
from dffl_studies.energy.weeks import week_names


def report_data(result: MarketResult) -> ReportData:
    """The page of a run."""
    answer, panel, first = result.answer, result.market.panel, result.market.first_test
    shares = answer.held[np.isfinite(answer.held)]
    ranges = [f"Ranges of 80 % held {shares.mean():.0%} of the costs; zones: {shares.min():.0%} to {shares.max():.0%}."]
    return ReportData(
        title=answer.headline(panel.money),
        main=CHOSEN,
        methods=tuple(_method(rule, rule in answer.of_kind(NAIVE)) for rule in answer.rules),
        clients=tuple(_client(result, str(zone)) for zone in answer.regrets.index),
        results=tuple(_results(result)),
        references=(answer.naive_rule,),
        starts=int(result.rows["seed"].nunique()),
        tolerance=HARM_TOLERANCE,
        sample="day",
        answer=answer.in_words(panel.money),
        pictures=pictures(result),
        notes=(
            f"Each day from {first} on is decided with what was known before it. Demands: {panel.demand_from}.",
            *(ranges if len(shares) else ()),
            "Rules chosen, from when on: " + "; ".join(f"{day} {rule}" for day, rule in answer.choices) + ".",
            *panel.notes,
        ),
        settings={"seed": ", ".join(str(seed) for seed in sorted(result.rows["seed"].unique()))},
        versions=versions(),
        command=typed(),
        made=date.today().isoformat(),
    )


def _method(rule: str, naive: bool) -> Method:
    """A rule of the backtest; naive rules have one colour, the chosen one that of the recommended method."""
    if naive:
        return Method(rule, "naive", named(rule), known("mean-cost").colour)
    words = "the rule chosen at each training" if rule == CHOSEN else named(rule)
    return Method(rule, known(rule).kind, words, known("crossfit" if rule == CHOSEN else rule.split("+")[0]).colour)


def _client(result: MarketResult, zone: str) -> Client:
    panel, sets = result.market.panel, result.market.sets
    place = panel.names.index(zone)
    decides = sets[zone].in_words() if zone in sets else f"buy {panel.demands[place]:g} of {panel.periods} periods"
    tested = int(result.rows.loc[result.rows["zone"] == zone, "n_test"].iloc[0])
    rows = panel.rows(zone)
    return Client(zone, rows.stop - rows.start - tested, tested, "minimises", decides, panel.money)


def _results(result: MarketResult) -> list[Result]:
    """Each zone under each rule: regrets are shares of the best possible cost."""
    rows, weeks = result.rows.sort_values("seed", kind="stable"), week_names(result.rows)
    parts = dict(iter(rows.groupby(["zone", "rule"], sort=False)))
    results = []
    for (zone, rule), part in parts.items():
        best, mean = abs(float(part["best"].mean())), float(part["regret"].mean())
        reference = parts[zone, result.answer.naive_rule]
        change = _change(part, reference, weeks, best) if rule != result.answer.naive_rule else _itself(rule)
        results.append(Result(str(zone), str(rule), _share(mean, best), lost=mean, changes=(change,)))
    return results


def _itself(rule: str) -> Change:
    return Change(rule, 0.0, 0.0, 0.0, "reference", False)


def _change(part: Any, reference: Any, weeks: list[str], best: float) -> Change:
    """A zone's regret minus that of the naive rule, with its interval over weeks (and seeds, where there are three)."""
    mine, other = (table[weeks].to_numpy(float) * len(weeks) for table in (part, reference))
    excess = mine - other
    mean, low, high = interval(excess if len(excess) >= ENOUGH_STARTS else np.tile(excess.mean(axis=0), (ENOUGH_STARTS, 1)))
    naive, base = str(reference["rule"].iloc[0]), float(reference["regret"].mean())
    above = base > NO_REGRET and float(part["regret"].mean()) > (1 + HARM_TOLERANCE) * base
    if not np.isfinite(high):
        return Change(naive, _share(mean, best), None, None, "not judged", None, above)
    verdict = "better" if high < 0 else "worse" if low > 0 else "unclear"
    return Change(naive, _share(mean, best), _share(low, best), _share(high, best), verdict, above and low > 0, above)


def _share(value: float, best: float) -> float | None:
    return plain(value / best) if best > 0 else None
