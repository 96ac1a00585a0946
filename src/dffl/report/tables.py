"""The tables of a page: every number of a chart is in one of them."""

from __future__ import annotations

from typing import Any

from dffl.report.charts import charted, kinds_of
from dffl.report.data import ReportData
from dffl.report.numbers import amount, ends, percent
from dffl.report.saved_words import amounts, currency, losses, named, rate
from dffl.report.standing import GAINS, HARMED, MARKS, UNJUDGED, WORSE, Standing, standing_of, standings
from dffl.report.table import PageCell, PageColumn, PageRow, PageTable, number, parts

TOLD = (GAINS, WORSE, HARMED)
"""The verdicts that are shown by a sign next to a number."""
LEFT_OUT = PageCell("\u2013", "")
POINTS = 12
"""The most rounds of a training in the table of its curve."""


def glance(data: ReportData) -> list[dict[str, Any]]:
    """One row per method: its regrets over clients, and the numbers of clients that it helps and harms, against the fairest
    reference.
    """
    rows = []
    for method in data.methods:
        results = [result for result in data.results if result.method == method.name]
        known = sorted(result.regret for result in results if result.regret is not None)
        reference = data.references[0] if data.references else None
        words = [standing_of(data.change(result.client, method.name, reference)) for result in results] if reference else []
        middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2 if known else None
        row = {"method": method, "mean": sum(known) / len(known) if known else None, "median": middle}
        row |= {"worst": known[-1] if known else None, "reference": data.references[:1] == (method.name,)}
        rows.append(row | {word: words.count(word) for word in MARKS})
    return sorted(rows, key=lambda row: (row["mean"] is None, row["mean"]))


def glance_table(data: ReportData) -> PageTable:
    """The methods side by side, the best first: regrets, the saving of the main method against each, clients it helps."""
    cards, several = glance(data), len(data.clients) > 1
    judged = [row for row in cards if row["not judged"] < len(data.clients) and not row["reference"]]
    counted = bool(data.references) and bool(judged)
    saved = next((saving for saving in data.savings if not saving.client and saving.judged), None)
    columns = [PageColumn("Method", numeric=False), PageColumn("What it is", numeric=False, kind="what")]
    columns += [PageColumn("Mean"), PageColumn("Median"), PageColumn("Worst client")] if several else [PageColumn("Lost", "%")]
    columns += [PageColumn(f"{data.main} saves", f"{rate(saved, data.sample)}, against it")] if saved else []
    columns += [PageColumn(name) for name in ("Gain", "Unclear", "Slightly worse", "Harmed")] if counted else []
    rows = []
    for row in cards:
        method = row["method"]
        what = method.what + (" (naive)" if method.kind == "naive" else "")
        cells = [PageCell(method.name), PageCell(what)]
        cells += [number(row[name], percent(row[name])) for name in (("mean", "median", "worst") if several else ("mean",))]
        cells += [_saved(data, "", method.name)] if saved else []
        words = (GAINS, "unclear", WORSE, HARMED)
        if counted:
            cells += [number(row[word], str(row[word])) if row in judged else LEFT_OUT for word in words]
        rows.append(PageRow(tuple(cells), method.name == data.main))
    return PageTable("glance", "The methods at a glance", tuple(columns), tuple(rows))


def _saved(data: ReportData, client: str, against: str | None, unit: bool = False) -> PageCell:
    """The saving against a method, with its interval; if the interval contains 0, the interval alone."""
    saving = data.saving(client, against)
    if saving is None:
        return LEFT_OUT
    value, low, high = amounts(saving)
    more = [currency(saving.unit)] if unit else []
    if not saving.judged:
        return PageCell("not judged", "")
    return PageCell(
        value if saving.clear else "unclear", saving.value * (saving.a_year or 1.0), " ".join([low, "to", high, *more])
    )


def savings_table(data: ReportData) -> PageTable | None:
    """The saving of each client, in its own unit, compared with today's rule and with its own model."""
    others = [name for name in dict.fromkeys([data.now, data.reference]) if name and data.saving("", name)]
    over = data.over_time
    if not others or not any(saving.judged for saving in data.savings):
        return None
    columns = [PageColumn("Client", numeric=False)]
    units = {saving.unit for saving in data.savings if saving.client}
    first = data.savings[0]
    note = rate(first, data.sample) if len(units) == 1 else "" if first.a_year is None else "a year"
    columns += [PageColumn(f"Saved against {named(name)}", note) for name in others]
    columns += [PageColumn("Lost", f"{data.main}, {note}"), PageColumn("Lost now", f"{data.now}, {note}")]
    columns += [PageColumn("Rule from now on", numeric=False)] if over is not None and over.rules else []
    columns += [PageColumn("Ranges held", f"stated: {over.share:.0%}")] if over is not None and over.share is not None else []
    rows = []
    for client in data.clients:
        saving = data.saving(client.name, data.now)
        unit = "" if saving is None or len(units) == 1 else currency(saving.unit)
        cells = [
            PageCell(client.name, title=client.name),
            *(_saved(data, client.name, name, len(units) > 1) for name in others),
        ]
        cells += [LEFT_OUT, LEFT_OUT] if saving is None else [number(value, text, unit) for value, text in losses(saving)]
        if over is not None and over.rules:
            cells.append(PageCell(over.rules.get(client.name, "")))
        if over is not None and over.share is not None:
            inside = over.held.get(client.name)
            cells.append(number(inside, "\u2013" if inside is None else f"{inside:.0%}"))
        rows.append(PageRow(tuple(cells)))
    who = "each client" if len(data.clients) > 1 else "the client"
    return PageTable("savings-table", f"What {who} saves", tuple(columns), tuple(rows))


def client_table(data: ReportData) -> PageTable:
    """All clients: the verdict on the main method, and further facts of each."""
    all_standings, reference = standings(data), data.reference
    judged = reference is not None and any(standing.word != UNJUDGED for standing in all_standings)
    money = any(client.unit for client in data.clients)
    advised = any(client.advice for client in data.clients)
    columns = [PageColumn("Client", numeric=False)]
    columns += [PageColumn("Verdict", numeric=False), PageColumn("Change", "points")] if judged else []
    columns += [PageColumn("Saved", f"per {data.sample}")] if judged and money else []
    columns += [PageColumn("Lost", f"{data.main}, per {data.sample}")] if money else []
    columns += [PageColumn("Training", f"{data.sample}s"), PageColumn("Test", f"{data.sample}s")]
    columns += [PageColumn("Decides", numeric=False, kind="decides")]
    columns += [PageColumn("Advice", numeric=False, kind="advised")] if advised else []
    rows = []
    for standing in all_standings:
        client = standing.client
        cells = [PageCell(client.name, title=client.name)]
        cells += _verdict(standing) if judged else []
        saved, lost = (standing.saved, standing.main.lost if standing.main else None) if client.unit else (None, None)
        cells += [number(saved, amount(saved, True), client.unit)] if judged and money else []
        cells += [number(lost, amount(lost), client.unit)] if money else []
        cells += [number(client.n, f"{client.n:,}"), number(client.n_test, f"{client.n_test:,}")]
        cells += [PageCell(client.decides, small=client.sense)]
        cells += [PageCell(client.advice.recommendation if client.advice else "")] if advised else []
        rows.append(PageRow(tuple(cells), standing=standing.word))
    return PageTable("client-table", "All clients", tuple(columns), tuple(rows))


def _verdict(standing: Standing) -> list[PageCell]:
    value, low, high = (
        (standing.change.value, standing.change.low, standing.change.high) if standing.change else (None, None, None)
    )
    return [PageCell(standing.word, mark=standing.word), number(value, percent(value, True), ends(low, high, True))]


def change_table(data: ReportData) -> PageTable:
    """The change of the clients in the chart under each method, against each reference, with its interval."""
    columns = (
        PageColumn("Client", numeric=False), PageColumn("Method", numeric=False), PageColumn("against", numeric=False),
        PageColumn("Verdict", numeric=False), PageColumn("Change", "points"),
    )  # fmt: skip
    rows, shown = [], set(charted(data))
    for result in data.results:
        for change in result.changes if result.client in shown else ():
            if change.against != result.method:
                word, who = standing_of(change), PageCell(result.client, title=result.client)
                cells = (who, PageCell(result.method), PageCell(change.against))
                value = number(change.value, percent(change.value, True), ends(change.low, change.high, True))
                rows.append(PageRow((*cells, PageCell(word, mark=word), value)))
    return PageTable("change-table", "Changes under each method", columns, tuple(rows))


def method_tables(data: ReportData) -> list[PageTable]:
    """The loss of each client under each method, with the interval; many methods need several tables."""
    reference, tables = data.reference, []
    for place, names in enumerate(parts([method.name for method in data.ordered]), 1):
        columns = (PageColumn("Client", numeric=False), *(PageColumn(name, "%") for name in names))
        rows = []
        for client in data.clients:
            cells = [PageCell(client.name, title=client.name)]
            for name in names:
                result = data.result(client.name, name)
                word = standing_of(data.change(client.name, name, reference))
                told = {"sign": word, "title": f"{word} against {reference}"} if word in TOLD else {}
                if result is None:
                    cells.append(LEFT_OUT)
                else:
                    sort = "" if result.regret is None else result.regret
                    cells.append(PageCell(percent(result.regret), sort, ends(result.low, result.high), **told))
            rows.append(PageRow(tuple(cells)))
        tables.append(
            PageTable(f"methods-table-{place}", "What each client loses under each method", columns, tuple(rows), even=True)
        )
    return tables


def choice_tables(data: ReportData) -> list[PageTable]:
    """The choices of methods for each client: weights and epochs."""
    pairs = {
        f"{kind}\n{method.name}": (method.name, kind)
        for method in data.ordered
        for kind in dict.fromkeys(
            kind for client_result in data.results if client_result.method == method.name for kind in client_result.chosen
        )
    }
    tables = []
    for place, names in enumerate(parts(list(pairs)) if kinds_of(data) else [], 1):
        columns = (PageColumn("Client", numeric=False), *(PageColumn(pairs[name][1], pairs[name][0]) for name in names))
        rows = []
        for client in data.clients:
            pairs_found = [(data.result(client.name, pairs[name][0]), pairs[name][1]) for name in names]
            values = [None if result is None else result.chosen.get(kind) for result, kind in pairs_found]
            cells = (PageCell(client.name, title=client.name), *(number(value, amount(value)) for value in values))
            rows.append(PageRow(cells))
        tables.append(PageTable(f"chosen-table-{place}", "What methods chose for each client", columns, tuple(rows), even=True))
    return tables


def unlike_table(data: ReportData) -> PageTable:
    """For each client, its mean difference from the others, and which of them is most and least like it."""
    differences, entries = data.differences, []
    for name, values in zip(differences.names, differences.values, strict=True) if differences is not None else ():
        known = sorted((value, other) for value, other in zip(values, differences.names, strict=True) if value is not None)  # type: ignore[union-attr]
        if known:
            entries.append((name, sum(value for value, _ in known) / len(known), known[0][1], known[-1][1]))
    columns = (
        PageColumn("Client", numeric=False), PageColumn("Mean difference"), PageColumn("Most like", numeric=False),
        PageColumn("Least like", numeric=False),
    )  # fmt: skip
    rows = [
        PageRow((PageCell(name, title=name), number(mean, amount(mean)), PageCell(near), PageCell(far)))
        for name, mean, near, far in sorted(entries, key=lambda row: -row[1])
    ]
    return PageTable("unlike-table", "Who is most unlike the others", columns, tuple(rows))


def pair_table(data: ReportData) -> PageTable:
    """The difference of each pair of clients, the largest first."""
    differences = data.differences
    pairs = []
    if differences is not None:
        for place, (name, values) in enumerate(zip(differences.names, differences.values, strict=True)):
            for other, value in zip(differences.names[:place], values, strict=False):
                pairs.append((value, other, name))
    columns = (PageColumn("Client", numeric=False), PageColumn("and", numeric=False), PageColumn("Difference"))
    rows = [
        PageRow((PageCell(first, title=first), PageCell(second), number(value, amount(value))))
        for value, first, second in sorted(pairs, key=lambda pair: -(pair[0] or 0.0))
    ]
    return PageTable("pair-table", "How different each pair of clients is", columns, tuple(rows))


def advice_table(data: ReportData) -> PageTable:
    """The advice for each client, with the reason."""
    columns = tuple(PageColumn(label, numeric=False) for label in ("Client", "Advice", "Use"))
    rows = []
    for client in data.clients:
        if client.advice is not None:
            reason = f"{client.advice.reason[:1].upper()}{client.advice.reason[1:]}."
            told = (PageCell(client.advice.recommendation), PageCell(client.advice.use), PageCell(reason))
            rows.append(PageRow((PageCell(client.name, title=client.name), *told)))
    return PageTable(
        "advice-table", "The advice in words", (*columns, PageColumn("Why", numeric=False, kind="prose")), tuple(rows)
    )


def curve_table(data: ReportData) -> PageTable:
    """The loss of each training at some of its rounds."""
    columns = (
        PageColumn("Training", numeric=False), PageColumn("Round"), PageColumn("Loss", "mean"),
        PageColumn("Low", "one client in ten is below"), PageColumn("High", "one in ten is above"),
    )  # fmt: skip
    rows = []
    for curve in data.curves:
        every = max(-(-len(curve.rounds) // POINTS), 1)
        for place in sorted({*range(0, len(curve.rounds), every), len(curve.rounds) - 1} - {-1}):
            values = (curve.mean[place], curve.low[place], curve.high[place])
            now = curve.rounds[place] + 1
            rows.append(
                PageRow((PageCell(curve.job), number(now, str(now)), *(number(value, amount(value)) for value in values)))
            )
    return PageTable("curve-table", "The training loss", columns, tuple(rows))
