"""Several reports of one federation as one: models with different methods or settings, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isclose
from statistics import fmean

from dffl.report.data import ReportData, Result
from dffl.report.styles import ORDER


def merged(parts: Mapping[str, ReportData]) -> ReportData:
    """One report of several models, given by name. The verdict is about the model that loses least.

    Methods with the same regrets in all models, such as the naive rules, are shown once. A method that differs between
    models has the name of its model after it. Models of other clients, or with other test rows, are refused.
    """
    first = next(iter(parts))
    for name, entry in parts.items():
        _require_same(first, parts[first], name, entry)
    if len(parts) == 1:
        return parts[first]
    shown = _titles(parts)
    best = min(parts, key=lambda name: _mean(parts[name]))
    main = parts[best]
    methods = {
        shown[name, method.name]: replace(method, name=shown[name, method.name])
        for name, entry in parts.items()
        for method in entry.methods
    }
    results: dict[tuple[str, str], Result] = {}
    for name in [best, *parts]:
        for result in parts[name].results:
            title = shown[name, result.method]
            changes = tuple(replace(entry, against=shown[name, entry.against]) for entry in result.changes)
            results.setdefault((result.client, title), replace(result, method=title, changes=changes))
    curves = {(shown[name, entry.method], entry.job): entry for name, part in parts.items() for entry in part.curves}
    told = ", ".join(f"{name} ({entry.main}, {_starts(entry)})" for name, entry in parts.items())
    what = f"The verdict is about {best}, which loses least on the test rows: chosen on these rows, it looks a little too good."
    return replace(
        main,
        main=shown[best, main.main],
        methods=tuple(sorted(methods.values(), key=lambda entry: ORDER.index(entry.kind))),
        results=tuple(results.values()),
        references=tuple(shown[best, name] for name in main.references),
        now=None if main.now is None else shown[best, main.now],
        savings=tuple(replace(entry, against=shown[best, entry.against]) for entry in main.savings),
        notes=(
            f"{len(parts)} models: {told}. {what}",
            *dict.fromkeys(note for entry in parts.values() for note in entry.notes),
        ),
        curves=tuple(replace(entry, method=method) for (method, _), entry in curves.items()),
    )


def _titles(parts: Mapping[str, ReportData]) -> dict[tuple[str, str], str]:
    """The name of each method of each model: unchanged, or followed by its model if models differ."""
    regrets: dict[str, list[dict[str, float | None]]] = {}
    for report in parts.values():
        for method in report.methods:
            regrets.setdefault(method.name, []).append(_regrets(report, method.name))
    differ = {method for method, many in regrets.items() if any(not _alike(many[0], other) for other in many)}
    return {
        (name, method.name): f"{method.name} ({name})" if method.name in differ else method.name
        for name, report in parts.items()
        for method in report.methods
    }


def _require_same(first: str, like: ReportData, name: str, report: ReportData) -> None:
    """Refuse a model of another federation, or of tables that have changed since."""
    mine, theirs = ({client.name: client.n_test for client in data.clients} for data in (report, like))
    if mine.keys() != theirs.keys():
        other = min(mine.keys() ^ theirs.keys())
        raise ValueError(f"{first} and {name} have different clients, such as {other!r}; {FIX}")
    if moved := [client for client in mine if mine[client] != theirs[client]]:
        rows = f"{theirs[moved[0]]} and {mine[moved[0]]}"
        raise ValueError(f"{first} and {name} have different test rows: {rows} of client {moved[0]!r}; {FIX}")
    naive = {method.name for method in report.methods if method.kind == "naive"}
    for method in naive & {method.name for method in like.methods}:
        if not _alike(_regrets(report, method), _regrets(like, method)):
            raise ValueError(f"{first} and {name} have different test rows: {method} loses more under one of them; {FIX}")


FIX = "one page shows the models of one federation: name a model, or train them on the same tables"


def _regrets(report: ReportData, method: str) -> dict[str, float | None]:
    return {result.client: result.regret for result in report.results if result.method == method}


def _alike(mine: dict[str, float | None], theirs: dict[str, float | None]) -> bool:
    return mine.keys() == theirs.keys() and all(_close(mine[client], theirs[client]) for client in mine)


def _close(mine: float | None, theirs: float | None) -> bool:
    return mine is theirs if mine is None or theirs is None else isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-12)


def _mean(report: ReportData) -> float:
    known = [regret for regret in _regrets(report, report.main).values() if regret is not None]
    return fmean(known) if known else float("inf")


def _starts(report: ReportData) -> str:
    return "starts unknown" if report.starts is None else f"{report.starts} start{'' if report.starts == 1 else 's'}"
