"""Money in words: the saving of the main method compared with today's rule, then with each client's own model.

No digit is below its noise, and a value whose interval contains 0 is not called a saving.
"""

from __future__ import annotations

from dffl.report.data import ReportData
from dffl.report.money import Saving
from dffl.report.numbers import counted, sure_digits
from dffl.time.outcome import CHOSEN
from dffl.time.words import rule_in_words

SHORT = 300
"""A test of fewer days has not covered all seasons."""


def named(rule: str, subject: str = "the client") -> str:
    """A rule or a method at the end of a sentence."""
    if rule in ("local", "local-tuned"):
        return f"{subject}'s own model ({rule})"
    words = {CHOSEN: "the chosen rule", "mean-cost": "the mean of past costs (mean-cost)"}
    return words.get(rule, rule_in_words(rule))


def currency(unit: str) -> str:
    """The unit of a sum: EUR for costs in EUR/MWh."""
    return unit.partition("/")[0].strip()


def basis(data: ReportData) -> str:
    """The basis of amounts if costs are prices; else empty."""
    units = sorted({client.unit for client in data.clients if "/" in client.unit})
    parts = [
        f"Costs are in {unit}: amounts are for one {unit.partition('/')[2].strip()} in each item decided." for unit in units
    ]
    return " ".join(parts)


def rate(saving: Saving, sample: str) -> str:
    """The unit of amounts: EUR a year, EUR a day, or % of the best possible result."""
    if not saving.unit:
        return "% of the best possible result"
    article = "an" if sample[:1].lower() in "aeio" or sample.lower().startswith("hour") else "a"
    return f"{currency(saving.unit)} {'a year' if saving.a_year else f'{article} {sample}'}"


def factor(saving: Saving) -> float:
    """The factor that converts a mean of samples to the shown amount."""
    return (saving.a_year or 1.0) if saving.unit else 100.0


def amounts(saving: Saving) -> tuple[str, str, str]:
    """The value and the ends of its interval, without digits below the noise; empty ends if nothing was judged."""
    scale = factor(saving)
    if saving.low is None or saving.high is None:
        return sure_digits(scale * saving.value, abs(scale * saving.value)), "", ""
    half = scale * (saving.high - saving.low) / 2
    value, low, high = (sure_digits(scale * number, half) for number in (saving.value, saving.low, saving.high))
    return value, low, high


def losses(saving: Saving) -> list[tuple[float, str]]:
    """The losses of the main method and of the other one, as numbers and as texts without digits below the noise."""
    scale = factor(saving)
    half = scale * (saving.high - saving.low) / 2 if saving.low is not None and saving.high is not None else 0.0
    return [(number, sure_digits(scale * number, half or scale * number)) for number in (saving.lost, saving.other)]


def size(saving: Saving) -> str:
    """The size of a saving or of a loss."""
    return amounts(saving)[0].lstrip("\u2212")


def subject(data: ReportData) -> str:
    """The main method at the end of a sentence."""
    return named(data.main)


def keeps(data: ReportData) -> bool:
    """Whether every client is advised to keep today's rule."""
    rules = set(data.over_time.rules.values()) if data.over_time is not None else set()
    return rules == {data.now}


def headline(data: ReportData) -> str:
    """The title: money first, if it is known; else the topic of the page."""
    saving = data.saving("", data.now)
    if saving is None or not saving.judged or (data.over_time is None and not saving.unit):
        return data.title
    main, now, how_much = subject(data), named(data.now or ""), f"{size(saving)} {rate(saving, data.sample)}"
    where = f"{data.clients[0].name}: " if len(data.clients) == 1 else ""
    many = f" at {len(data.clients)} clients" if len(data.clients) > 1 else ""
    if keeps(data):
        loses = saving.clear and saving.value < 0
        more = f"leaving it costs {how_much}" if loses else "nothing is shown to save more"
        return _start(f"{where}keep {now}: {more}", where)
    if not saving.clear:
        return _start(f"{where}no saving is shown against {now}", where)
    if saving.value < 0:
        return _start(f"{where}{main} loses {how_much} more{many} than {now}", where)
    return _start(f"{where}{main} saves {how_much}{many} against {now}", where)


def _start(text: str, where: str) -> str:
    return text if where else text[0].upper() + text[1:]


def against_now(data: ReportData) -> str:
    """The saving of the main method compared with today's rule; empty if nothing was compared."""
    saving = data.saving("", data.now)
    return "" if saving is None or data.now is None else f"{_compared(data, saving, named(data.now))}{_span(data, saving)}."


def together_or_alone(data: ReportData) -> str:
    """The saving compared with each client's own model; empty if nothing was compared."""
    saving = data.saving("", data.reference)
    if saving is None or data.reference is None or data.reference == data.now:
        return ""
    whose = "each client" if len(data.clients) > 1 else "the client"
    return f"Together or alone: {_compared(data, saving, named(data.reference, whose), start=False)}."


def _compared(data: ReportData, saving: Saving, other: str, start: bool = True) -> str:
    what, mine = rate(saving, data.sample), subject(data)
    many = f" at the {len(data.clients)} clients {'together' if saving.unit else 'on average'}" if len(data.clients) > 1 else ""
    head = f"{'Against' if start else 'against'} {other}, "
    if not saving.judged:
        lost, instead = (text for _, text in losses(saving))
        here = "in this test, which does not judge the difference"
        return f"{head}{mine} lost {lost} instead of {instead} {what}{many} {here}"
    if not saving.clear:
        between = f"between {between_ends(saving)} {what}{many} ({100 * data.confidence:.0f} % interval)"
        return f"{head}no difference is shown: {mine} saves {between}"
    verb = "saves" if saving.value > 0 else "loses"
    more = "" if saving.value > 0 else " more"
    return f"{head}{mine} {verb} {size(saving)} {what}{more}{many} ({_interval(saving, data)})"


def between_ends(saving: Saving) -> str:
    """The ends of an interval that contains 0."""
    _, low, high = amounts(saving)
    return f"{low} and {high}"


def _interval(saving: Saving, data: ReportData) -> str:
    """The interval of a saving or, without signs, of a loss."""
    _, low, high = amounts(saving)
    if saving.value < 0:
        low, high = high.lstrip("\u2212"), low.lstrip("\u2212")
    return f"{100 * data.confidence:.0f} % interval: {low} to {high}"


def _span(data: ReportData, saving: Saving) -> str:
    """The rows on which it is based."""
    over = data.over_time
    if over is None:
        return ""
    rows = f"{counted(over.rows, f'test {data.sample}')} from {over.first} to {over.last}"
    if over.days is None or not saving.unit or not saving.a_year:
        return f", on the {rows}"
    seasons = "; other seasons may differ" if over.days < SHORT else ""
    return f", at the rate of the {rows}{seasons}"


def tiles(data: ReportData) -> list[tuple[str, str, str, str]]:
    """The largest numbers of the page: a label, a number, its unit, and a class. Only values that were judged."""
    saving = data.saving("", data.now)
    if saving is None or not saving.judged or data.now is None:
        return []
    what, (value, low, high) = rate(saving, data.sample), amounts(saving)
    kind = "unclear" if not saving.clear else "gains" if saving.value > 0 else "harmed"
    rows = [(f"saved against {named(data.now)}", value if saving.clear else "unclear", f"{what}; {low} to {high}", kind)]
    for name, (_, lost) in zip((data.main, data.now), losses(saving), strict=True):
        rows.append((f"lost by {named(name)}", lost, what, ""))
    each = [entry for client in data.clients if (entry := data.saving(client.name, data.now)) is not None and entry.judged]
    if len(each) > 1:
        gains, worse = (sum(entry.clear and (entry.value > 0) == up for entry in each) for up in (True, False))
        rest = f"of {len(each)}; {worse} lose more, {len(each) - gains - worse} unclear"
        rows.append(("clients that save", str(gains), rest, "gains" if gains else ""))
    return rows
