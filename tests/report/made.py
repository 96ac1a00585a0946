"""Reports from made-up numbers, with the names and the gaps that pages meet in practice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dffl.report.data import Advice, Change, Client, Curve, Differences, Method, ReportData, Result
from dffl.report.money import Course, DecidedRows, OverTime, RefitTime, Saving
from dffl.report.styles import known

HOSTILE = (
    "<script>alert(1)</script>",
    "$x$",
    "a" * 200,
    '"><img src=x onerror=alert(2)>',
    "{{ 7 * 7 }} & </td><b>bold</b>",
    "%{x} %{customdata[0]}",
    "7",
    "O'Brien, Zürich 東京",
)
METHODS = ("mean-cost", "ridge", "local", "local-tuned", "fedavg", "interp-spo", "crossfit")


def made(
    names: tuple[str, ...] = ("north", "south", "east", "west"),
    methods: tuple[str, ...] = METHODS,
    judged: bool = True,
    unit: str = "EUR",
    seed: int = 0,
) -> ReportData:
    """A report with everything that a page can show. The first client gains, the second is harmed, the others are unclear."""
    rng = np.random.default_rng(seed)
    results = []
    for place, name in enumerate(names):
        for method in methods:
            regret = float(rng.uniform(0.01, 0.05))
            shift = {0: -0.01, 1: 0.02}.get(place, 0.0)
            changes = tuple(_change(reference, method, shift, judged) for reference in ("local-tuned", "local"))
            ends = (0.9 * regret, 1.1 * regret) if judged else (None, None)
            chosen = {"lambda": float(rng.uniform())} if method == "interp-spo" else {}
            results.append(Result(name, method, regret, *ends, 100 * regret, chosen, changes))
    clients = [
        Client(name, 50 + place, 20, "minimises", "choose 6 of 24", unit, Advice("personalise", "crossfit", f"why {place}"))
        for place, name in enumerate(names)
    ]
    size = len(names)
    return ReportData(
        title="A federation <of> sites",
        main="crossfit",
        methods=tuple(known(name) for name in methods),
        clients=tuple(clients),
        results=tuple(results),
        references=("local-tuned", "local"),
        starts=3 if judged else 1,
        notes=("A note with <tags> & signs.",),
        differences=Differences(
            names, tuple(tuple(None if i == j else float(i + j) for j in range(size)) for i in range(size)), "estimated"
        ),
        curves=(Curve("crossfit", "fedavg/mean of 5 folds", (0, 1, 2), (3.0, 2.0, 1.5), (2.5, 1.5, 1.0), (3.5, 2.5, None)),),
        settings={"seed": 0, "rounds": 7},
        versions={"dffl": "0.2.0", "Python": "3.11.7"},
        command="dffl fit federation.toml -o 'my model'",
        made="2026-01-31",
    )


RULES = ("mean-7", "forecast", "local", "local-tuned", "chosen")


def made_over_time(names: tuple[str, ...] = ("north", "south"), unit: str = "EUR", seed: int = 0) -> ReportData:
    """A report of decisions over 60 days. The first client saves 2 a day against its forecast; of the others it is unclear."""
    rng = np.random.default_rng(seed)
    data, days = (
        made(names, RULES, judged=False, unit=unit, seed=seed),
        [f"2024-{m:02d}-{d:02d}" for m in (4, 5) for d in range(1, 31)],
    )
    savings = [Saving("", rule, 2.0, 1.5, 2.5, 5.0, 7.0, unit, 365.25) for rule in RULES[:-1]]
    courses = [Course("", (10.0,) * 60, (14.0,) * 60, unit)]
    decided = []
    for place, name in enumerate(names):
        low, value = (1.5, 2.0) if place == 0 else (-1.0, float(rng.uniform(0.1, 0.5)))
        savings += [Saving(name, rule, value, low, 2.5, 5.0, 5.0 + value, unit, 365.25) for rule in ("forecast", "local-tuned")]
        lost = rng.uniform(1, 9, (2, 60)).round(3)
        courses.append(Course(name, tuple(lost[0]), tuple(lost[1]), unit))
        chosen, best = (tuple(map(tuple, rng.integers(0, 2, (14, 24)).astype(float))) for _ in range(2))
        decided.append(DecidedRows(name, tuple(f"price_{hour:02d}" for hour in range(24)), tuple(days[-14:]), chosen, best))
    refits = tuple(
        RefitTime(days[place], dict.fromkeys(names, rule)) for place, rule in ((0, "mix"), (28, "mean-7"), (56, "mix"))
    )
    rules, held = dict.fromkeys(names, "mix"), dict.fromkeys(names, 0.81)
    over = OverTime(days[0], days[-1], 60, 59.0, tuple(days), tuple(courses), refits, tuple(decided), rules, held, 0.8)
    return replace(
        data, main="chosen", sample="day", now="forecast", savings=tuple(savings), over_time=over, differences=None,
        answer="Use mix: chosen by what each rule has lost.",
    )  # fmt: skip


def _change(reference: str, method: str, shift: float, judged: bool) -> Change:
    if method == reference:
        return Change(reference, 0.0, 0.0, 0.0, "reference", False, False)
    if not judged:
        return Change(reference, shift, None, None, "not judged", None, shift > 0)
    low, high = shift - 0.005, shift + 0.005
    verdict = "better" if high < 0 else "worse" if low > 0 else "unclear"
    return Change(reference, shift, low, high, verdict, verdict == "worse", shift > 0)


def plain_method(name: str) -> Method:
    """A method that dffl does not know."""
    return Method(name, "together", "something new")
