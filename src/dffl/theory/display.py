"""The bounds on the terminal: tables, and one heat map."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from dffl.files import write_whole
from dffl.theory.heterogeneity import matrix
from dffl.theory.report import Bounds

PANELS = {
    "objective_part": "Theorem 1: what different costs contribute",
    "constraint_part": "Theorem 1: what different constraints contribute",
    "best": "The best bound",
    "gap": "The gap itself",
}


class BoundsShown(NamedTuple):
    """Bounds, what the federation is called, and where the heat map goes."""

    bounds: Bounds
    title: str
    figure: Path

    def show(self, console: Console) -> None:
        """Print how the clients differ, the terms of Theorem 2 and how to read them, and draw the heat map."""
        console.print(_differences(self.bounds, self.title))
        console.print()
        console.print(_risk(self.bounds))
        for line in notes(self.bounds):
            console.print(f"- {line}")
        draw(self.bounds, self.figure, self.title)
        console.print(f"\nHeat map: {self.figure}")

    def as_json(self) -> dict[str, Any]:
        return self.bounds.as_json()


def notes(bounds: Bounds) -> list[str]:
    """How to read the numbers, and where they are vacuous."""
    table, printed = bounds.clients, bounds.form == "paper"
    lines = [
        "Scaled units: each client's features are standardised and its costs divided by their mean absolute value, as in "
        "training. That each client standardises by its own mean and spread breaks the paper's assumption of shared "
        "covariates: here clients are compared at the same standardised features.",
        f"Pairs: {bounds.label}; means over common features, at the mixture's mean cost as shared prediction."
        + ("" if bounds.exact else f" Delta's upper end {'is from them too' if printed else 'does without them'}."),
    ]
    if printed:
        lines.append(
            "The paper's printed forms, for comparison: never tighter than the default ones where they hold, and H_SC is false "
            "on sets whose decisions all have one sum."
        )
    count = len(table)
    if bounds.hulls:
        some = ", ".join(bounds.hulls[:5]) + (f" and {len(bounds.hulls) - 5} more" if len(bounds.hulls) > 5 else "")
        lines.append(f"Integer sets ({some}): diameters and distances are brackets of the convex hull; upper ends count.")
    if len(bounds.pairs) < count * (count - 1) // 2:
        lines.append("A minimising and a maximising client read a prediction with opposite signs: no such pair is shown.")
    for column, name in (("local_vacuous", "local"), ("federated_vacuous", "federated")):
        if table[column].any():
            lines.append(
                f"Theorem 2's {name} bound is vacuous for {int(table[column].sum())} of {count} clients: it exceeds the "
                "largest possible loss."
            )
    if table["gain_vacuous"].any():
        empty = int(table["gain_vacuous"].sum())
        lines.append(f"FG_cert, the local bound over the federated one, says nothing for {empty} of {count}: both are vacuous.")
    if "paper_condition" in table:
        satisfied, empty = int(table["paper_condition"].sum()), int(table["condition_vacuous"].sum())
        vacuous = f"; it compares two vacuous bounds for {empty} of them, and decides nothing there" if empty else ""
        condition = f"The paper's condition for federating holds for {satisfied} of {count} clients"
        lines.append(f"{condition} at the values that a search attains{vacuous}.")
    lines.append("Bounds do not decide: for advice to each client, use dffl advise.")
    return lines


def _differences(bounds: Bounds, title: str) -> Table:
    names = bounds.clients["client"].tolist()
    out = Table(
        title=f"How different each client is from the others: {title}", title_justify="left", caption_justify="left",
        caption="Means over the other clients of the bounds on the difference of SPO+ losses, and of the parts of Theorem 1's. "
        "To the mixture: the best bounds weighted by the others' shares of all samples.",
    )  # fmt: skip
    columns = {
        "gap": "gap itself", "best": "best bound", "theorem1": "Theorem 1", "objective_part": "of it costs",
        "constraint_part": "of it constraints", "decision_part": "of it decision", "trivial": "trivial",
    }  # fmt: skip
    if bounds.form == "paper":
        columns = columns | {"best": "H or H_SC", "theorem1": "H"}
        columns.pop("trivial")
    for heading in ("client", "n", "to the mixture", *columns.values()):
        out.add_column(heading, justify="left" if heading == "client" else "right")
    means = {column: _mean_over_others(matrix(bounds.pairs, names, column)) for column in columns}
    for place, row in enumerate(bounds.clients.to_dict("records")):
        texts = (_number(value) for value in (row["to_mixture"], *(means[column][place] for column in columns)))
        out.add_row(row["client"], str(row["n"]), *texts)
    return out


def _mean_over_others(full: np.ndarray) -> np.ndarray:
    others = full + np.where(np.eye(len(full), dtype=bool), np.nan, 0.0)
    known = np.isfinite(others)
    count = known.sum(axis=1)
    return np.where(count > 0, np.where(known, others, 0).sum(axis=1) / np.maximum(count, 1), np.nan)


def _risk(bounds: Bounds) -> Table:
    out = Table(
        title=f"The terms of Theorem 2, with probability {1 - bounds.delta:.0%}, predictions of norm at most {bounds.tau:g}",
        title_justify="left",
    )
    columns = {
        "diameter": "D", "largest_loss": "largest loss b", "rademacher_low": "complexity at least",
        "rademacher_high": "complexity at most", "discrepancy_low": "Delta at least", "discrepancy_high": "Delta at most",
        "local_bound": "local bound", "federated_bound": "federated bound", "certified_gain": "FG_cert",
    }  # fmt: skip
    out.add_column("client", no_wrap=True)
    shown = [column for column in columns if column in bounds.clients]
    for column in shown:
        out.add_column(columns[column], justify="right")
    for row in bounds.clients.to_dict("records"):
        texts = [_number(row[column]) for column in shown]
        for place, column in enumerate(shown):
            if column in ("local_bound", "federated_bound") and row[column.replace("bound", "vacuous")]:
                texts[place] += " (vacuous)"
        out.add_row(row["client"], *texts)
    return out


def _number(value: float) -> str:
    if value != value:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def draw(bounds: Bounds, path: Path, title: str) -> None:
    """The pairwise matrix as heat maps: what costs and constraints contribute, the best bound, and the gap itself."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = bounds.clients["client"].tolist()
    with rc_context({"text.parse_math": False}):  # a client may be called $x$
        figure = Figure(figsize=(11, 9.5), layout="constrained")
        axes = figure.subplots(2, 2)
        for axis, (column, heading) in zip(axes.flat, PANELS.items(), strict=True):
            values = matrix(bounds.pairs, names, column)
            np.fill_diagonal(values, np.nan)
            image = axis.imshow(values, cmap="viridis", vmin=0)
            axis.set_title(heading)
            axis.grid(visible=False)
            ticks = range(len(names))
            axis.set_xticks(ticks, names, rotation=90, fontsize=6)
            axis.set_yticks(ticks, names, fontsize=6)
            figure.colorbar(image, ax=axis, shrink=0.85, label="SPO+ loss, scaled")
        heading = f"Bounds on the difference of SPO+ losses, pair by pair: {title}\n{bounds.label}; scaled units"
        figure.suptitle(heading, fontsize=11)
        write_whole(path, lambda temporary: figure.savefig(temporary, dpi=130, format=path.suffix[1:]))
