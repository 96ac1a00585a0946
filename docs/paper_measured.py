"""Sentences of the page "The paper, item by item", computed from `studies/results`: no such number is typed by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).resolve().parent.parent / "studies" / "results" / "paper"
NEAR = 0.3
"""A cell within this share of the paper's counts as near."""
PURE, SPO = ("local", "fedavg"), "interp-spo"
FOUR = (*PURE, "interp-mse", SPO)
NAMES = {"local": "local", "fedavg": "federated", "interp-mse": "interpolated by MSE", SPO: "by SPO+"}
AXES = (("eta_obj", "η_obj"), ("eta_constr", "η_constr"))
CLIENT = ["problem", "seed", "imbalanced", "eta_obj", "eta_constr", "client", "n"]


def sentence(what: str) -> str:
    """The sentence with this name; what follows a colon are its arguments."""
    name, *arguments = what.split(":")
    if name not in SENTENCES:
        raise ValueError(f"measured must be one of {', '.join(SENTENCES)}, found {what!r}")
    return SENTENCES[name](*arguments)


def table(name: str) -> str:
    """How near the cells of a table are to the paper's."""
    cells = pd.read_csv(RESULTS / "tables" / f"{name}.csv").dropna(subset=["paper"])
    apart = (cells["ours"] / cells["paper"] - 1).abs()
    means = apart[cells["statistic"] == "mean"]
    near, near_means = int((apart <= NEAR).sum()), int((means <= NEAR).sum())
    return (
        f"Within {NEAR:.0%}: {near} of {len(cells)} cells, {near_means} of {len(means)} means (farthest {means.max():.0%})."
    ).replace("%", " %")


def shares() -> str:
    """Who gains from the federated model, as objectives differ."""
    parts = [f"{problem} {_percents(_gains(problem))}" for problem in _problems()]
    return f"Gain: {'; '.join(parts)}."


def slopes(problem: str, balance: str) -> str:
    """The same for one problem and balance, by the size of the clients where it differs."""
    sizes = sorted(_clients().query(_balance(problem, balance))["n"].unique(), reverse=True)
    parts = [f"{_percents(_gains(problem, balance, n))} ({n} samples)" for n in sizes]
    return f"Gain: {'; '.join(parts)}."


def means() -> str:
    """The mean of the federated model at each level of each heterogeneity (0, 0.25, 0.5, 1)."""
    federated, parts = _clients().query("method == 'fedavg'"), []
    for problem in _problems():
        rows = federated.query("problem == @problem")
        levels = [f"by {symbol} {_numbers(rows.groupby(axis)['regret'].mean())}" for axis, symbol in AXES]
        parts.append(f"{problem} {', '.join(levels)}")
    return f"Mean federated regret in %: {'; '.join(parts)}."


def best_of_two() -> str:
    """How interpolation compares with the better of the two pure methods."""
    cells = _clients().pivot_table(index=["problem", "eta_obj", "eta_constr"], columns="method", values="regret")
    better = cells[list(PURE)].min(axis=1)
    below, close = int((cells[SPO] < better).sum()), int((cells[SPO] <= 1.1 * better).sum())
    return f"Below both pure methods in {below} of {len(cells)} settings, at most 10 % above the better one in {close}."


def lowest() -> str:
    """In how many seeds, and in which statistics, interpolation by SPO+ is the lowest of the paper's four methods."""
    seeds = _clients().pivot_table(index=["problem", "seed"], columns="method", values="regret")[list(FOUR)]
    first = seeds.idxmin(axis=1).eq(SPO)
    cells = pd.read_csv(RESULTS / "tables" / "table2.csv").dropna(subset=["paper"])
    best = cells.loc[cells.groupby(["problem", "statistic"], sort=False)["ours"].idxmin()]
    wins = best[best["method"].str.contains("SPO")]
    parts = [f"{problem} {', '.join(part['statistic'])}" for problem, part in wins.groupby("problem")]
    return f"Lowest mean in {int(first.sum())} of {len(first)} seeds; lowest in {'; '.join(parts)}."


def winners() -> str:
    """The share of the clients at which each method has the lowest regret."""
    regret = _rows().query("method in @FOUR").pivot_table(index=["problem", "job", "client"], columns="method", values="regret")
    wins = regret.le(regret.min(axis=1) + 1e-9, axis=0).astype(float)
    won = wins.div(wins.sum(axis=1), axis=0).groupby("problem").mean()
    parts = [f"{problem} " + ", ".join(f"{100 * won.loc[problem, m]:.0f}" for m in FOUR) for problem in won.index]
    return f"Wins in % ({', '.join(NAMES[m] for m in FOUR)}): {'; '.join(parts)}."


def weights() -> str:
    """The mean weight of the shared model at each level of each heterogeneity."""
    chosen, parts = _rows().query("method == @SPO"), []
    for problem, part in chosen.groupby("problem"):
        levels = [f"by {symbol} {_numbers(part.groupby(axis)['lambda'].mean())}" for axis, symbol in AXES]
        parts.append(f"{problem} {', '.join(levels)}")
    return f"Mean λ: {'; '.join(parts)}."


def oracles() -> str:
    """Each interpolation and its oracle."""
    mean, parts = _clients().groupby(["problem", "method"])["regret"].mean(), []
    for problem in _problems():
        for kind in ("spo", "mse"):
            own, oracle = mean[problem, f"interp-{kind}"], mean[problem, f"oracle-interp-{kind}"]
            parts.append(f"{problem}, {'SPO+' if kind == 'spo' else 'MSE'} {own:.2f} and {oracle:.2f}")
    return f"Mean regret in % without and with oracle: {'; '.join(parts)}."


SENTENCES: dict[str, Callable[..., str]] = {
    "table": table, "shares": shares, "slopes": slopes, "means": means, "best-of-two": best_of_two, "lowest": lowest,
    "winners": winners, "weights": weights, "oracles": oracles,
}  # fmt: skip


@cache
def _rows() -> pd.DataFrame:
    """The configurations without noise, with the regret of a client per sample, in percent."""
    rows = pd.read_parquet(RESULTS / "rows.parquet", filters=[("noise", "==", 0.0)])
    return rows.assign(regret=100 * rows["mean_ratio"].astype(float))


@cache
def _clients() -> pd.DataFrame:
    """Each client's mean over the degrees, as in the tables."""
    return _rows().groupby([*CLIENT, "method"])["regret"].mean().reset_index()


def _gains(problem: str, balance: str | None = None, n: int | None = None) -> pd.Series:
    """The share of the clients with lower regret when federated, by objective heterogeneity."""
    clients = _clients().query(_balance(problem, balance))
    clients = clients if n is None else clients[clients["n"] == n]
    wide = clients.pivot_table(index=CLIENT, columns="method", values="regret")
    return (wide["fedavg"] < wide["local"]).groupby("eta_obj").mean()


def _balance(problem: str, balance: str | None) -> str:
    only = {None: "", "balanced": " and not imbalanced", "imbalanced": " and imbalanced"}[balance]
    return f"problem == {problem!r}{only}"


def _problems() -> list[str]:
    return sorted(_rows()["problem"].unique())


def _percents(values: pd.Series) -> str:
    return ", ".join(f"{100 * value:.0f}" for value in values) + " %"


def _numbers(values: pd.Series) -> str:
    return ", ".join(f"{value:.2f}".removeprefix("0") for value in values)
