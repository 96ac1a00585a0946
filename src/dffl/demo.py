"""The demonstration: a federation of knapsacks, eight methods, client by client."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from dffl import synthetic
from dffl.advice import advise
from dffl.comparing import DEFAULT_METHODS, Start, against, judge_starts, summarise
from dffl.federation import Federation
from dffl.files import write_whole
from dffl.fitting import Fit
from dffl.plugins import plugins
from dffl.report import ReportData, from_starts, require_page, write
from dffl.terminal import command_name, typed
from dffl.theory.report import bounds
from dffl.training.methods import colour_of

NEXT = (
    ("advise demo", "should each of these clients federate, and why?"),
    ("init sites && {dffl} fit sites/federation.toml -o model.dffl", "from your own tables to a model that decides"),
)
"""Commands to try after the demo."""
NEXT_STUDIES = {
    "energy": ("energy example && {dffl} energy run example.csv", "from a table of prices to hours to buy tomorrow"),
    "paper": ("paper --quick", "the paper's study, next to its own numbers (six minutes)"),
}
"""Commands to try if dffl is installed as a package."""
NAIVE = ("ridge", "nearest")
"""Methods that the page shows in addition: simple models without a network."""
COUNTED = {
    "harmed": "harmed",
    "above_tolerance": "over 1 %\nabove local,\nsingle run",
    "harmed_against_local_tuned": "harmed,\nagainst\nlocal-tuned",
    "above_tolerance_against_local_tuned": "over 1 %\nabove it,\nsingle run",
}
"""The numbers of clients in the summary, with their headings."""


@dataclass(frozen=True)
class DemoResult:
    """The demo's federation, one row per client and method, and the running time."""

    federation: Federation
    table: pd.DataFrame
    against_tuned: pd.DataFrame
    """The same table with local-tuned as the reference."""
    seconds: float
    figure: Path | None
    report: Path | None = None

    def show(self, console: Console) -> None:
        """Print each client, the summary and what to try next."""
        styled = console.color_system is not None
        console.print(Group(_client_table(self.federation, self.table), "", self._summary_table(), ""))
        console.print(_reading(self.table, styled))
        dffl = command_name()
        page = "" if self.report is None else f" Page: {self.report}"
        console.print(f"\n{self.seconds:.0f} s. Picture: {self.figure}{page}\n\nNext, try:")
        brought = plugins("dffl.commands").usable
        for command, what in (*NEXT, *(line for name, line in NEXT_STUDIES.items() if name in brought)):
            console.print(f"  {dffl} {command.format(dffl=dffl)}\n      {what}", soft_wrap=True)

    def as_json(self) -> dict[str, Any]:
        """Plain values: relative regrets in percent, lambda of interp-spo, harmed clients, and the counts for each method."""
        clients = []
        for name, rows in self.table.groupby("client", sort=False):
            by_method = rows.set_index("method")
            regrets = (100 * by_method["relative_regret"]).to_dict()
            weight = float(by_method["lambda"]["interp-spo"])
            entry: dict[str, Any] = {"name": name, "n": int(rows["n"].iloc[0]), "relative_regret": regrets, "lambda": weight}
            for column in ("harmed", "above_tolerance"):
                entry[f"{column}_by"] = by_method.index[by_method[column]].tolist()
            clients.append(entry)
        summary = (100 * summarise(self.table)[["mean", "median", "p75", "p90", "max"]]).join(self._counts())
        return {"clients": clients, "summary": summary.to_dict(orient="index"), "seconds": round(self.seconds, 3)}

    def _counts(self) -> pd.DataFrame:
        """For each method, the clients that are worse off than with each of the two references."""
        columns: dict[str, pd.Series] = {}
        for table, suffix in ((self.table, ""), (self.against_tuned, "_against_local_tuned")):
            counts = summarise(table)
            columns |= {f"{name}{suffix}": counts[name] for name in ("harmed", "above_tolerance")}
        return pd.DataFrame(columns).astype(int)

    def _summary_table(self) -> Table:
        out = Table(
            title=f"Over all {len(self.federation)} clients: regrets in %, and numbers of clients", title_justify="left"
        )
        out.add_column("method")
        regrets = {"mean": "mean", "median": "median", "p90": "p90", "max": "worst"}
        for heading in (*regrets.values(), *COUNTED.values()):
            out.add_column(heading, justify="right", no_wrap=True)
        counts = self._counts()
        for method, row in summarise(self.table).iterrows():
            numbers = [f"{100 * row[column]:.2f}" for column in regrets]
            for column in COUNTED:
                reference = "local-tuned" if column.endswith("local_tuned") else "local"
                numbers.append("-" if method == reference else str(counts.loc[str(method), column]))
            out.add_row(str(method), *numbers)
        return out


def run(
    seed: int = 0, progress: bool | None = None, figure: Path | None = None, report: Path | None = None, **settings: Any
) -> DemoResult:
    """Train the methods on the demo's federation, judge them, and write the picture and the page if they are asked for."""
    if report is not None:
        require_page(report)
    started = time.perf_counter()
    federation = synthetic.knapsack(seed, imbalanced=True)
    test = synthetic.knapsack(seed, "test", imbalanced=True)
    methods = DEFAULT_METHODS if report is None else (*DEFAULT_METHODS, *NAIVE)
    fits: dict[str, Fit] = {}
    keep = None if report is None else fits
    runs = judge_starts(federation, methods, test=test, seed=seed, progress=progress, keep=keep, **settings)
    if report is not None:
        write(page_data(runs, federation, test, fits), report)
    # The demo's tables have its eight methods; the page shows more.
    shown = [Start({m: run.rows[m] for m in DEFAULT_METHODS}, {m: run.lost[m] for m in DEFAULT_METHODS}) for run in runs]
    table, against_tuned = against(shown, test), against(shown, test, "local-tuned")
    seconds = time.perf_counter() - started
    if figure is not None:
        draw(table, figure)
    return DemoResult(federation, table, against_tuned, seconds, figure, report)


def page_data(runs: list[Start], federation: Federation, test: Federation, fits: dict[str, Fit]) -> ReportData:
    """The report of the demo, with advice and bounds; both need no further training."""
    settings = fits["crossfit"].settings
    return from_starts(
        runs,
        test,
        fits=fits,
        advice=advise(federation, fits={name: fits[name] for name in ("crossfit", "local-tuned")}, seed=settings.seed),
        bounds=bounds(federation, search=False, progress=False),
        title=f"Demo: {len(federation)} knapsack clients",
        notes=("Synthetic data. Each client fills a knapsack with shares of 50 items whose values it has to predict.",),
        command=typed(),
    )


def _client_table(federation: Federation, table: pd.DataFrame) -> Table:
    out = Table(
        title="Relative regret of each client, in % of the best possible profit (lower is better)", title_justify="left"
    )
    for heading in ("client", "samples", "budget"):
        out.add_column(heading, justify="left" if heading == "client" else "right")
    for method in DEFAULT_METHODS:
        out.add_column(method, justify="right")
    for heading in ("lambda", "epochs"):
        out.add_column(heading, justify="right")
    for name, rows in table.groupby("client", sort=False):
        by_method = rows.set_index("method")
        client = federation[str(name)]
        budget = "all" if client.set.saturated else f"{float(client.set.budget):.1f}"
        learned = by_method.loc[by_method.index != "mean-cost", "relative_regret"]
        cells = [_cell(by_method, method, float(learned.min())) for method in DEFAULT_METHODS]
        chosen = f"{by_method['lambda']['interp-spo']:.2f}", f"{by_method['epochs']['finetune']:.0f}"
        out.add_row(str(name), str(client.n), budget, *cells, *chosen)
    return out


def _cell(by_method: pd.DataFrame, method: str, best: float) -> Text:
    value = float(by_method["relative_regret"][method])
    style = "red" if by_method["harmed"][method] else ""
    return Text(f"{100 * value:.2f}", style=f"bold {style}".strip() if value <= best else style)


def _reading(table: pd.DataFrame, styled: bool) -> Text:
    means = summarise(table)["mean"]
    learned = means.drop("mean-cost")
    best = str(learned.idxmin())
    saving = {base: 100 * (1 - learned[best] / learned[base]) for base in ("local", "local-tuned")}
    return Text.assemble(
        ("Read: ", "bold"),
        "mean-cost uses no features. local and local-tuned use no other client; local-tuned is cross-validated as crossfit is. "
        f"Here {best} is best on average, {saving['local']:.0f} % below local, {saving['local-tuned']:.0f} % below local-tuned."
        " Every method was trained with three random seeds; regrets are means over them. "
        "Harmed: regret more than 1 % higher than with the client's local model, and the 95 % confidence interval of the "
        "difference, over test samples and seeds, excludes 0. Single run: more than 1 % higher in the first seed alone. This "
        "is noisy: training local again with another seed does the same to many clients. "
        + ("Bold is a client's best method, red a harmed client. " if styled else "")
        + "lambda (the weight of the shared model that interp-spo chose) and epochs (of finetune) are means over seeds, too. "
        "A budget of 'all' covers every item, so any positive prediction decides perfectly there.",
    )


def draw(table: pd.DataFrame, path: Path) -> None:
    """One picture: every client's regret under every method, clients ordered by their local regret."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    methods = [m for m in DEFAULT_METHODS if m != "mean-cost"]
    wide = 100 * table.pivot_table(index="client", columns="method", values="relative_regret")
    wide = wide.sort_values("local")
    samples = table.drop_duplicates("client").set_index("client")["n"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6), width_ratios=[3, 2], layout="constrained")
    harmed = table.pivot_table(index="client", columns="method", values="harmed", aggfunc="first").loc[wide.index]
    for row, client in enumerate(wide.index):
        left.plot([wide.loc[client, methods].min(), wide.loc[client, methods].max()], [row, row], color="#dddddd", zorder=1)
    for method in methods:
        marker = "D" if method.startswith("local") else "o"
        left.scatter(wide[method], range(len(wide)), s=34, color=colour_of(method), label=method, marker=marker, zorder=2)
        hurt = [row for row, client in enumerate(wide.index) if harmed.loc[client, method]]
        left.scatter(wide[method].iloc[hurt], hurt, s=90, facecolors="none", edgecolors="black", linewidths=1, zorder=3)
    left.set_yticks(range(len(wide)), [f"{c}  (n = {samples[c]})" for c in wide.index], fontsize=8)
    left.scatter([], [], s=90, facecolors="none", edgecolors="black", label="harmed, compared with local")
    left.set_xscale("symlog", linthresh=0.1)  # regrets of clients differ by a factor of a hundred, and some may be 0
    left.set_xlim(left=0)
    left.set_xticks([0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], ["0", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"])
    left.minorticks_off()
    left.set_xlabel("relative regret, % (linear below 0.1, logarithmic above)")
    left.set_title("Each client under each method", loc="left", fontsize=11)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, frameon=False, fontsize=9)  # covers no point
    left.grid(axis="x", color="#eeeeee")
    means, worst = wide[methods].mean(), wide[methods].max()
    places = range(len(methods))
    right.barh(places, means, color=[colour_of(m) for m in methods], height=0.6)
    right.scatter(worst, places, marker="|", s=200, color="black", label="worst client")
    for place, method in enumerate(methods):
        right.annotate(f"{means[method]:.2f}", (means[method], place), xytext=(4, 0), textcoords="offset points", va="center")
    right.set_yticks(places, methods)
    right.invert_yaxis()
    right.set_xlabel("relative regret, %")
    right.set_title(f"Mean over clients (mean-cost: {wide['mean-cost'].mean():.1f} %)", loc="left", fontsize=11)
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    plt.close(figure)
    write_whole(path, lambda temporary: figure.savefig(temporary, dpi=130, format=path.suffix[1:]))
