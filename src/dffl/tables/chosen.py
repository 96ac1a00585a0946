"""`dffl fit` with the method `chosen`: the choice over time next to its baselines; without an order, by out-of-fold regret."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from dffl.choosing import fit_best
from dffl.comparing import Start, against, fit_all
from dffl.federation import Federation
from dffl.fitting import Fit
from dffl.judging import left_out_words
from dffl.models import OWN_DATA, with_columns
from dffl.named import listed
from dffl.randomness import start_seeds
from dffl.report.data import ReportData
from dffl.report.saved_words import against_now
from dffl.tables.description import Description
from dffl.tables.money import each, units_of_sums
from dffl.tables.over_time import (
    begins,
    divided,
    keywords_of,
    notes_of,
    require_order,
    settings_of,
    start_of,
    whole,
    with_rules,
)
from dffl.tables.reading import (
    THREE_RUNS,
    about_of,
    backtest_of,
    capped,
    checkpoints,
    harm_verdict,
    next_steps,
    report_of,
    trained_baselines,
)
from dffl.tables.winner import finite_regrets, instead_of
from dffl.time.bases import FORECAST, NAIVE
from dffl.time.choosing import backtested, made_of, reported
from dffl.time.chosen import Chosen
from dffl.time.outcome import CHOSEN, Backtest
from dffl.time.refits import relaxed_where_slow
from dffl.time.words import FLEET, said
from dffl.training.keywords import MethodChoice
from dffl.training.methods import METHODS


@dataclass(frozen=True)
class ChosenModel:
    """A model that was chosen over time, and its comparison on the test rows."""

    fit: Chosen
    table: pd.DataFrame
    """One row per client and rule, as `dffl.compare` has them."""
    starts: int
    description: Description
    notes: Sequence[str]
    path: Path | None = None
    better: Collection[str] | None = None
    """The methods fitted once that lost less by more than noise; None where that was not judged."""

    def words(self, expected: bool = True) -> str:
        """The choice in words. What may be noise is not called better."""
        return words_of(self.fit, self.beyond_noise, expected)

    @property
    def beyond_noise(self) -> pd.DataFrame:
        """The table without the methods fitted once whose lead may be noise."""
        if self.better is None:
            return self.table
        return self.table[~self.table["method"].isin(list(METHODS)) | self.table["method"].isin(list(self.better))]

    def show(self, console: Console) -> None:
        """Print what it saves, what to use and why, what each rule loses, and what to type next."""
        if money := against_now(ReportData.from_json(self.fit.about[OWN_DATA]["report"])):
            console.print(money, soft_wrap=True)
        console.print(self.words(), soft_wrap=True)
        if line := in_money(self.table, units_of_sums(self.description.units), self.description.per):
            console.print(line, soft_wrap=True)
        if self.starts > 1:
            console.print(self.harm, soft_wrap=True)
        console.print(rules_table(self.table))
        for line in self.notes:
            console.print(line, style="yellow", soft_wrap=True)
        if self.path is not None:
            next_steps(console, self.path, next(iter(self.fit.members)), self.description)

    @property
    def harm(self) -> str:
        """The harm verdict of the choice against each client's local model; or that of the rule that is kept."""
        rule = next(iter(self.fit.rules.values())) if self.fit.evidence["why"] == "simple" else CHOSEN
        return harm_verdict(self.table, rule, self.starts)

    def as_json(self) -> dict[str, Any]:
        known, rules = self.fit.evidence, self.fit.rules
        return {
            "method": CHOSEN, "model": None if self.path is None else str(self.path), "starts": self.starts,
            "chosen": {"words": self.words(), "rules": dict(rules), **{name: known[name] for name in SHOWN}},
            "clients": self.fit.about[OWN_DATA]["evaluation"], "notes": list(self.notes),
            "forecast": self.description.forecast or None, "harm": self.harm if self.starts > 1 else None,
        }  # fmt: skip


SHOWN = ("why", "from", "rows", "reference", "means", "gain", "inside", "share")
"""`Chosen.evidence` as plain values."""


def train_over_time(
    description: Description, progress: bool | None = None, checkpoint: str | PathLike[str] | None = None, starts: int = 1
) -> ChosenModel:
    """Choose over time, judge the choice on the test rows next to its baselines, and fit the chosen rules on all rows.

    With several random seeds, the model is that of the first seed, and regrets are means over all seeds.
    """
    require_order(description)
    comparison = compared(description, [], starts, progress, checkpoint)
    assert comparison.first is not None, "with an order there is a backtest"
    model = made_of(comparison.first, comparison.federation, **{**comparison.keywords, "progress": progress})
    table = against(comparison.runs, comparison.description.test)
    command = f"dffl fit {description.path.name} -o MODEL --starts {starts}"
    report = report_of(comparison.description, comparison.runs, comparison.fits, command, comparison.first, model.rules)
    better = {saving.against for saving in report.savings if not saving.client and saving.clear and saving.value < 0}
    said = ChosenModel(model, table, starts, description, comparison.description.notes, better=better)
    report = replace(report, answer=said.words(expected=False))  # the page shows the expected difference in money
    # The model has ranges of its own, which adapt to recent costs.
    about = about_of(description, model, table, starts, report, {}) | {"instead": instead_of(model, said.beyond_noise)}
    whole_model = with_columns(replace(model, about={**model.about, OWN_DATA: about}))
    assert isinstance(whole_model, Chosen), "it stays what it is"
    return replace(said, fit=whole_model)


def chosen_apart(description: Description, model: Chosen, outcome: Backtest, command: str) -> ChosenModel:
    """The model of a deployed site, judged on its test rows next to baselines that the site trains alone."""
    federation = whole(description)
    before, test = divided(federation, begins(description))
    settings = relaxed_where_slow(before.clients, description.settings)  # as in `compared`
    fits = fit_all(before, [capped(name, description) for name in trained_baselines(description)], **settings)
    start = with_rules(Start.of(fits, test), rules_of(outcome, METHODS), before, test)
    notes = [*notes_of(description, federation), *description.notes]
    described = replace(description, train=before, test=test, method=CHOSEN, notes=notes)
    table = against([start], test)
    report = replace(report_of(described, [start], fits, command), answer=words_of(model, table), again=THREE_RUNS)
    about = {
        **about_of(description, model, table, 1, report, {}),
        "instead": None,
    }  # as in the texts: the plan names the method
    whole_model = with_columns(replace(model, about={**model.about, OWN_DATA: about}))
    assert isinstance(whole_model, Chosen), "it stays what it is"
    return ChosenModel(whole_model, table, 1, description, notes)


CHOSEN_AMONG = {"ridge": "ridge-own", "local": "local-tuned", "local-tuned": "local-tuned"}
"""The baselines that are fitted once, and for each, the candidate that is the same method with refits or with tuning."""


def words_of(model: Chosen, table: pd.DataFrame, expected: bool = True) -> str:
    """The choice in words, next to methods that were fitted once and were not candidates, and its ``expected`` loss."""
    if model.evidence["why"] == FLEET:  # the plan names the method, so a site is not advised to use another one
        return said(model.evidence, model.rules, expected=expected)
    by, left_out = finite_regrets(table)
    others = [name for name in by.columns if name in METHODS and name != FORECAST]
    among = () if model.evidence.get("base") == FORECAST else model.own  # beside a forecast these are not chosen
    once = {str(name): float(by[name].mean()) for name in others if CHOSEN_AMONG.get(name) not in among}
    words = said(model.evidence, model.rules, once, expected)
    return f"{words} {left_out_words(left_out)}" if left_out and len(by) else words


class Compared(NamedTuple):
    """What the choice and other methods lose on the test rows, for each seed."""

    description: Description
    """With the rows before the test, and the test rows, as all are judged."""
    runs: list[Start]
    fits: dict[str, Fit]
    """The fits of the first seed."""
    first: Backtest | None
    """The backtest of the first seed, where there is an order."""
    federation: Federation
    keywords: dict[str, Any]
    """The keywords of the backtest."""


def compared(
    description: Description,
    others: Sequence[MethodChoice],
    starts: int,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Compared:
    """Judge the choice among methods, its baselines and other methods on the test rows."""
    names = [capped(name, description) for name in trained_baselines(description) if name not in others]
    methods, seeds = [*others, *names], start_seeds(int(description.settings.get("seed", 0)), starts)
    parts: list[Path | None] = [None] * starts if checkpoint is None else [*checkpoints(checkpoint, starts)]
    keywords: dict[str, Any] = {}
    usual: Mapping[str, Any] = description.settings
    federation, before, test, notes = description.train, description.train, description.test, list(description.notes)
    if description.order is not None:
        require_order(description)
        federation = whole(description)
        before, test = divided(federation, begins(description))
        notes = [*notes_of(description, federation), *notes]
        usual = relaxed_where_slow(federation.clients, usual)  # the baselines are trained as the candidates are
        keywords = {**settings_of(description), **keywords_of(description), "start": start_of(description)}
    runs: list[Start] = []
    tests: list[Backtest] = []
    first: dict[str, Fit] = {}
    for part, seed in zip(parts, seeds, strict=True):
        settings, rules = {**usual, "seed": seed}, {}
        if description.order is not None:
            resumed = {"checkpoint": None if part is None else backtest_of(part), "progress": progress}
            tests.append(backtested(federation, **{**keywords, "seed": seed, **resumed}))
            rules = rules_of(tests[-1], METHODS)
        fits = fit_all(before, methods, progress=progress, checkpoint=part, **settings)
        if description.order is None:
            fits = {CHOSEN: fit_best(before, progress=progress, **settings), **fits}
        first = first or fits
        runs.append(with_rules(Start.of(fits, test), rules, before, test))
    described = replace(description, train=before, test=test, method=CHOSEN, notes=notes)
    return Compared(described, runs, first, tests[0] if tests else None, federation, keywords)


def rules_of(outcome: Backtest, trained: Collection[str] = ()) -> dict[str, list[np.ndarray]]:
    """For the choice and the rules of a backtest that need no training: the loss on each test row."""
    names = [name for name in outcome.lost if name in (*NAIVE, FORECAST) and name not in trained]
    return {rule: reported(outcome, rule) for rule in (*names, CHOSEN)}


SHOWN_CLIENTS = 5
"""Up to this number of clients, each client has a column."""


def in_money(table: pd.DataFrame, units: Mapping[str, str], per: str | None = None) -> str:
    """The loss of the choice per decision at each client, in the client's unit, next to that of the rules without it."""
    by = table.pivot_table(index="client", columns="method", values="regret", sort=False)
    if not set(by.index) <= set(units):
        return ""
    known = FORECAST if FORECAST in by else str(by[[rule for rule in NAIVE if rule in by]].mean().idxmin())
    parts = [f"{name} {row[CHOSEN]:.3g} {units[str(name)]} ({known} {row[known]:.3g})" for name, row in by.iterrows()]
    what = "a decision of the choice loses" if per is None else f"the choice loses {each(per)}"
    return f"What {what}, in the mean of the test rows: {listed(parts, SHOWN_CLIENTS)}."


def rules_table(table: pd.DataFrame) -> Table:
    """One row per rule, the best first: its mean regret and that of each client. With many clients, only the worst client."""
    by = table.pivot_table(index="client", columns="method", values="relative_regret", sort=False)
    rows = int(table["n_test"].iloc[0])
    title = f"Relative regret on the test rows ({rows} at {by.index[0]}), in %; lower is better"
    out = Table(title=title, title_justify="left")
    out.add_column("rule")
    several = len(by) > 1
    clients = [str(name) for name in by.index] if several and len(by) <= SHOWN_CLIENTS else []
    for name in ("mean", *(clients or (("worst client", "clients it is best for") if several else ()))):
        out.add_column(name, justify="right")
    finite, _ = finite_regrets(table)
    means = (finite if len(finite) else by).mean()
    for name in means.sort_values(kind="stable").index:
        cells = [f"{100 * means[name]:.2f}"]
        if clients:
            cells += [f"{100 * value:.2f}" for value in by[name]]
        elif several:
            cells += [f"{100 * by[name].max():.2f}", str(int((by[name] <= by.min(axis=1)).sum()))]
        out.add_row(str(name), *cells, style="bold" if name == CHOSEN else "")
    return out
