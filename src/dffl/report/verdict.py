"""The verdict: three sentences, written from the numbers.

They say no more than the intervals do: what was not judged, or may be noise, is named as such.
"""

from __future__ import annotations

from statistics import fmean

from dffl.report.data import ReportData
from dffl.report.numbers import amount, counted, listed, percent
from dffl.report.standing import GAINS, HARMED, UNCLEAR, UNJUDGED, WORSE, Standing, standings

FIXED = "\u00a0"
"""A space at which no line breaks."""


def verdict(data: ReportData) -> list[str]:
    """Who gains, who is harmed, and what to do."""
    found = standings(data)
    if data.reference is None or not found:
        return _alone(data, found)
    judged = any(one.word != UNJUDGED for one in found)
    told = [_gains(data, found, judged), _harm(data, found, judged), _todo(data, found, judged)]
    return [sentence.replace(" %", f"{FIXED}%") for sentence in told]


def _named(found: list[Standing], *words: str) -> list[str]:
    return [one.client.name for one in found if one.word in words]


def subject(data: ReportData) -> str:
    """What the main method is called in a sentence."""
    return f"training together ({data.main})" if data.method(data.main).kind == "together" else data.main


def own_model(data: ReportData) -> str:
    """What it is compared with."""
    return f"the client's own model ({data.reference})"


def _gains(data: ReportData, found: list[Standing], judged: bool) -> str:
    who, total = subject(data), len(found)
    if judged:
        gaining = len(_named(found, GAINS))
        if gaining:
            who = who[0].upper() + who[1:]
            told = f"{who} makes significantly better decisions than {own_model(data)} at {_of(gaining, total)}"
        else:
            told = f"At no client is it shown that {who} makes better decisions than {own_model(data)}"
    else:
        less = sum((one.change is not None and (one.change.value or 0) < 0) for one in found)
        told = f"In this one test, {who} loses less than {own_model(data)} at {_of(less, total)}"
    return f"{told}{_level(found)}{_money(data, found)}."


def _of(some: int, total: int) -> str:
    if total == 1:
        return "the one client" if some else "none of 1 client"
    return f"all {total} clients" if some == total else f"{some} of {total} clients"


def _level(found: list[Standing]) -> str:
    """The mean regrets of both, over the clients where both are known."""
    pairs = [
        (one.main.regret, one.own.regret)
        for one in found
        if one.main and one.own and one.main.regret is not None and one.own.regret is not None
    ]
    if not pairs:
        return ""
    main, own = (fmean(values) for values in zip(*pairs, strict=True))
    mean = "on average over clients, " if len(pairs) > 1 else ""
    return f"; {mean}decisions lose {percent(main)} % of the best possible result instead of {percent(own)} %"


def _money(data: ReportData, found: list[Standing]) -> str:
    """What a client saves on average, where the units of all are one unit."""
    units = {one.client.unit for one in found}
    saved = [one.saved for one in found if one.saved is not None]
    if len(units) != 1 or "" in units or len(saved) != len(found):
        return ""
    mean, [unit] = fmean(saved), units
    told = f"saves {amount(mean)} {unit}" if mean >= 0 else f"costs {amount(-mean)} {unit} more"
    return f", which {told} per {data.sample}"


def _harm(data: ReportData, found: list[Standing], judged: bool) -> str:
    if not judged:
        return (
            "Whether any client is harmed was not judged: that takes training with three or more random seeds, and two or "
            f"more test {data.sample}s, so that harm can be distinguished from noise."
        )
    harmed, worse, unclear = _named(found, HARMED), _named(found, WORSE), _named(found, UNCLEAR)
    parts = ["No client is significantly harmed"]
    if harmed:
        most = max(one.change.value or 0.0 for one in found if one.word == HARMED and one.change)
        size = f"by {'at most ' if len(harmed) > 1 else ''}{percent(most)} % of the best possible result"
        parts = [f"{_are(harmed)} significantly harmed, {size} ({listed(harmed)})"]
    if worse:
        parts.append(f"{_are(worse)} worse off by no more than {100 * data.tolerance:g} % ({listed(worse)})")
    if unclear:
        parts.append(f"for {counted(len(unclear), 'client')} the interval allows both a gain and a loss")
    if unjudged := _named(found, UNJUDGED):
        parts.append(f"{_are(unjudged)} not judged")
    return "; ".join(parts) + "."


def _are(names: list[str]) -> str:
    return f"{counted(len(names), 'client')} {'is' if len(names) == 1 else 'are'}"


def _todo(data: ReportData, found: list[Standing], judged: bool) -> str:
    main, own = data.main, data.reference
    beaten = [one.client.name for one in found if one.naive_wins]
    rules = sorted({one.naive.method for one in found if one.naive_wins and one.naive is not None})
    simpler = f"a simpler rule ({' or '.join(rules)})"
    warned = (
        f"; but at {_of(len(beaten), len(found))} ({listed(beaten)}) {simpler} lost less than both "
        "in this test: look at it first"
        if beaten
        else ""
    )
    if found and len(beaten) == len(found):
        every = "every client" if len(found) > 1 else "the one client"
        return f"Deploy neither {main} nor {own} yet: at {every} {simpler} lost less than both in this test."
    if not judged:
        return f"{data.again} before you choose between {main} and {own}{warned}."
    gains, harmed = _named(found, GAINS), _named(found, HARMED)
    rest = len(found) - len(gains) - len(harmed)
    if harmed and not gains:
        told = f"Keep {own}: {main} helps no client here significantly"
    elif not gains:
        told = f"These numbers give no reason to leave {own}: more test {data.sample}s, or more random seeds, may tell more"
    elif rest or harmed:
        told = f"Use {main} at {listed(gains) if len(gains) == 1 else f'the {len(gains)} clients that gain'}"
        told += f" and keep {own} at {listed(harmed)}" if harmed else ""
        told += f"; at the other {rest} either may serve" if rest > 1 else "; at the other one either may serve" if rest else ""
    else:
        told = f"Use {main} at every client"
    return f"{told}{warned}."


def _alone(data: ReportData, found: list[Standing]) -> list[str]:
    """Where there is nothing to compare with, say what is known and how to learn more."""
    known = [one.main.regret for one in found if one.main and one.main.regret is not None]
    lost = (
        f"With {data.main}, decisions lose {percent(fmean(known) if known else None)} % of the best possible result on average."
    )
    return [
        lost,
        "No other method was trained, so the report cannot say which clients gain or are harmed.",
        "Compare it with local-tuned, the best that a client does alone, before you deploy it.",
    ]
