"""The advice on the terminal: a table, and a sentence for each client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dffl.advice.advising import RECOMMENDATIONS, Advice
from dffl.advice.over_time import ANSWERS, HORIZON, AdviceOverTime
from dffl.advice.words import METHODS
from dffl.harm import HARM_TOLERANCE

STYLES = {"federate": "green", "personalise": "cyan", "stay local": "yellow", "cannot tell": "dim"}


class AdviceShown(NamedTuple):
    """Advice, the title of the federation, and notes on its data."""

    advice: Advice
    title: str
    notes: Sequence[str] = ()

    def show(self, console: Console) -> None:
        """Print which clients should federate, the expected regret of each choice, and the reason."""
        for note in self.notes:
            console.print(note, style="yellow")
        console.print(_table(self.advice, self.title))
        rows = self.advice.rows()
        counts = {name: sum(row["recommendation"] == name for row in rows) for name in RECOMMENDATIONS}
        used = {name: sum(row["deploy"] == name for row in rows) for name in METHODS}
        console.print("\nDeploy: " + ", ".join(f"{name} {count}" for name, count in used.items() if count))
        console.print("Joining: " + ", ".join(f"{name} {count}" for name, count in counts.items() if count))
        if worse := [row["client"] for row in rows if loses_more(row)]:
            clients = ", ".join(worse)
            console.print(f"The unchanged shared model loses over 1 % more than the client's own one, trained once: {clients}.")
        for warning in warnings(self.advice):
            console.print(warning, style="yellow")
        console.print("\nWhy", style="bold")
        for row in rows:
            line = Text(f"{row['client']}: deploy ").append(row["deploy"], style="bold")
            line.append(f" ({METHODS[row['deploy']]}). Joining: ").append(_recommendation(row))
            console.print(line.append(f". {_sentence(row['reason'])} {_sentence(row['shared_model'])}"))

    def as_json(self) -> dict[str, Any]:
        return self.advice.as_json() | ({"notes": list(self.notes)} if self.notes else {})


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def loses_more(row: dict[str, Any]) -> bool:
    """Whether the shared model is expected to lose over 1 % more than the own one, and the interval agrees.

    Each fold is trained with one seed, so the interval hardly includes the variance between seeds; this is not called harm
    yet.
    """
    return bool(row["gain"] < -HARM_TOLERANCE and row["gain_high"] < 0)


def warnings(advice: Advice) -> list[str]:
    """Warnings to read before the advice is followed."""
    lines = []
    if advice.sharing:
        lines.append(
            f"{advice.sharing[0].upper()}{advice.sharing[1:]}. Shared rows teach little that is new and are not independent "
            "evidence, so expected gains are small and intervals are wide."
        )
    if advice.crossing:
        lines.append(f"{advice.crossing[0].upper()}{advice.crossing[1:]}.")
    if advice.quick:
        lines.append("A quick answer is rough: nothing was trained, and its intervals may hold less often than they claim.")
    table = advice.table[~advice.table["nothing"]]
    poor = int((table["local_tuned"].fillna(table["local"]) >= table["mean_cost"]).sum())
    if 3 * poor >= max(len(table), 1):
        lines.append(
            f"For {poor} of {len(table)} clients their own model loses at least as much as the mean of past costs. Either "
            "the features predict little or models are not trained enough (raise the rounds); tuning then looks too good."
        )
    return lines


def _table(advice: Advice, title: str) -> Table:
    folds = f"{advice.folds} folds" + (" of consecutive samples" if advice.blocks else "")
    judged = f"quick: closed-form cost models, {folds}" if advice.quick else folds
    out = Table(title=f"Advice for {title} ({judged})", title_justify="left", caption=_caption(advice), caption_justify="left")
    out.add_column("client", overflow="fold", min_width=8)  # a long name takes several lines, so that the numbers have room
    out.add_column("n", justify="right", no_wrap=True)
    out.add_column("deploy", no_wrap=True)
    out.add_column("joining", no_wrap=True)
    gain = ("gain", "gain_") if advice.quick else ("crossfit_gain", "crossfit_")
    out.add_column(f"gain ({advice.confidence:.0%} interval)", justify="right", no_wrap=True)
    names = ["mean_cost", "local", "federated"] if advice.quick else ["mean_cost", "local_tuned", "federated", "crossfit"]
    names = [name for name in ("forecast", "naive", *names) if advice.table[name].notna().any()]
    for name in names:
        out.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    for row in advice.rows():
        regrets = ("-" if math.isnan(row[name]) else f"{100 * row[name]:.2f}" for name in names)
        out.add_row(row["client"], str(row["n"]), row["deploy"], _recommendation(row), _gain(row, *gain), *regrets)
    return out


def _caption(advice: Advice) -> str:
    what = (
        "gain: the share of the regret of the client's own model that the shared model saves."
        if advice.quick
        else "gain: the share of the regret of local-tuned, the best that a client does alone, that crossfit saves."
    )
    deploy = "what the verdict on joining says" if advice.quick else "the method with the lowest expected regret"
    return (
        f"deploy: {deploy}; joining: whether to train with the others. {what} Regrets are held-out ones, in % of the best "
        "possible objective; mean cost is the naive choice. The gain also accounts for what models of folds lack and for "
        "clients of the same size, so it may differ from the columns. Federate (the shared model as it is), personalise "
        "(crossfit), stay local: at least 80 % sure."
    )


def _recommendation(row: dict[str, Any]) -> Text:
    return Text(row["recommendation"], style=STYLES[row["recommendation"]])


def _gain(row: dict[str, Any], gain: str, ends: str) -> str:
    if row["nothing"]:
        return "nothing to gain"
    if math.isnan(row[gain]):
        return "not judged"
    return f"{row[gain]:+z.0%} ({row[ends + 'low']:+z.0%} to {row[ends + 'high']:+z.0%})"


class OverTimeShown(NamedTuple):
    """Advice over time, the title of the federation, and notes on its data."""

    advice: AdviceOverTime
    title: str
    notes: Sequence[str] = ()

    def show(self, console: Console) -> None:
        """Print what each client should do, what it would save, and why."""
        rows = self.advice.rows()
        counts = {name: sum(row["recommendation"] == name for row in rows) for name in ANSWERS}
        console.print("Advice: " + ", ".join(f"{name} {count}" for name, count in counts.items() if count))
        for note in self.notes:
            console.print(note, style="yellow")
        console.print(_table_over_time(self.advice, self.title))
        console.print("\nWhy", style="bold")
        for row in rows:
            line = Text(f"{row['client']}: ").append(row["recommendation"], style="bold")
            console.print(line.append(f". {_sentence(row['reason'])}"), soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        return self.advice.as_json() | ({"notes": list(self.notes)} if self.notes else {})


def _table_over_time(advice: AdviceOverTime, title: str) -> Table:
    ends = f"{advice.confidence:.0%} interval"
    caption = (
        f"gain: the share of the regret of what you have now that the better model saves in the next {HORIZON} rows; joining: "
        "what models trained together save against models of your own. Regrets in % of the best possible objective."
    )
    out = Table(title=f"Advice for {title}, by a backtest", title_justify="left", caption=caption, caption_justify="left")
    out.add_column("client", overflow="fold", min_width=8)
    out.add_column("rows", justify="right", no_wrap=True)
    for name in ("advice", "use now"):
        out.add_column(name)
    for name in ("gain", "joining"):
        out.add_column(f"{name} ({ends})", justify="right", no_wrap=True)
    names = [name for name in ("forecast", "naive", "alone", "together") if advice.table[name].notna().any()]
    for name in names:
        out.add_column(name, justify="right", no_wrap=True)
    for row in advice.rows():
        gains = [_over_time(row, "gain", "gain_"), _over_time(row, "joining_gain", "joining_")]
        regrets = ("-" if math.isnan(row[name]) else f"{100 * row[name]:.2f}" for name in names)
        out.add_row(row["client"], str(row["n"]), row["recommendation"], row["deploy"], *gains, *regrets)
    return out


def _over_time(row: dict[str, Any], gain: str, ends: str) -> str:
    if math.isnan(row[ends + "low"]):
        return "cannot tell"
    return f"{row[gain]:+z.0%} ({row[ends + 'low']:+z.0%} to {row[ends + 'high']:+z.0%})"
