"""The verdict: three sentences, from the numbers.

They claim no more than the intervals: what was not judged, or may be noise, is called so.
"""

from __future__ import annotations

from statistics import fmean

from dffl.report.data import ReportData
from dffl.report.numbers import amount, counted, listed, percent
from dffl.report.saved_words import against_now, together_or_alone
from dffl.report.standing import GAINS, HARMED, UNCLEAR, UNJUDGED, WORSE, Standing, standings

FIXED = "\u00a0"
"""A space without a line break."""


def verdict(data: ReportData) -> list[str]:
    """The saving compared with today, for all or alone: which clients gain or are harmed, and what to do."""
    clients, money = standings(data), against_now(data)
    if data.answer:
        sentences = [money, together_or_alone(data), data.answer]
    elif data.reference is None or not clients:
        sentences = [money, *_alone(data, clients)]
    else:
        judged = any(standing.word != UNJUDGED for standing in clients)
        known = [
            _gains(data, clients, judged),
            " ".join(filter(None, [_harm(data, clients, judged), _by_chance(data, clients)])),
        ]
        sentences = [money, *known, _todo(data, clients, judged)]
    return [sentence.replace(" %", f"{FIXED}%") for sentence in sentences if sentence]


def _named(clients: list[Standing], *words: str) -> list[str]:
    return [standing.client.name for standing in clients if standing.word in words]


def subject(data: ReportData) -> str:
    """The name of the main method in a sentence."""
    return f"training together ({data.main})" if data.method(data.main).kind == "together" else data.main


def own_model(data: ReportData) -> str:
    """The name of its reference."""
    return f"the client's own model ({data.reference})"


def _gains(data: ReportData, clients: list[Standing], judged: bool) -> str:
    who, total = subject(data), len(clients)
    if judged:
        gaining = len(_named(clients, GAINS))
        if gaining:
            who = who[0].upper() + who[1:]
            sentence = f"{who} makes significantly better decisions than {own_model(data)} at {_of(gaining, total)}"
        else:
            sentence = f"At no client is it shown that {who} makes better decisions than {own_model(data)}"
    else:
        less = sum((standing.change is not None and (standing.change.value or 0) < 0) for standing in clients)
        sentence = f"In this one test, {who} loses less than {own_model(data)} at {_of(less, total)}"
    return f"{sentence}{_level(clients)}{_money(data, clients)}."


def _of(some: int, total: int) -> str:
    if total == 1:
        return "the one client" if some else "none of 1 client"
    return f"all {total} clients" if some == total else f"{some} of {total} clients"


def _level(clients: list[Standing]) -> str:
    """The mean regrets of both, over the clients for which both are known."""
    pairs = [
        (standing.main.regret, standing.own.regret)
        for standing in clients
        if standing.main and standing.own and standing.main.regret is not None and standing.own.regret is not None
    ]
    if not pairs:
        return ""
    main, alone = (fmean(values) for values in zip(*pairs, strict=True))
    mean = "on average over clients, " if len(pairs) > 1 else ""
    return f"; {mean}decisions lose {percent(main)} % of the best possible result instead of {percent(alone)} %"


def _money(data: ReportData, clients: list[Standing]) -> str:
    """The mean saving of a client, if all have one unit and it is, as far as known, more than noise."""
    known = data.saving("", data.reference)
    if known is not None and not known.clear:
        return ""
    units = {standing.client.unit for standing in clients}
    saved = [standing.saved for standing in clients if standing.saved is not None]
    if len(units) != 1 or "" in units or len(saved) != len(clients):
        return ""
    mean, [unit] = fmean(saved), units
    change = f"saves {amount(mean)} {unit}" if mean >= 0 else f"costs {amount(-mean)} {unit} more"
    return f", which {change} per {data.sample}"


def _harm(data: ReportData, clients: list[Standing], judged: bool) -> str:
    if not judged:
        return (
            "Whether any client is harmed was not judged: that takes training with three or more random seeds, and two or "
            f"more test {data.sample}s, so that harm can be distinguished from noise."
        )
    harmed, worse, unclear = _named(clients, HARMED), _named(clients, WORSE), _named(clients, UNCLEAR)
    parts = ["No client is significantly harmed"]
    if harmed:
        most = max(standing.change.value or 0.0 for standing in clients if standing.word == HARMED and standing.change)
        size = f"by {'at most ' if len(harmed) > 1 else ''}{percent(most)} % of the best possible result"
        parts = [f"{_are(harmed)} significantly harmed, {size} ({listed(harmed)})"]
    if worse:
        parts.append(f"{_are(worse)} worse off by no more than {100 * data.tolerance:g} % ({listed(worse)})")
    if unclear:
        parts.append(f"for {counted(len(unclear), 'client')} the interval allows both a gain and a loss")
    if unjudged := _named(clients, UNJUDGED):
        parts.append(f"{_are(unjudged)} not judged")
    return "; ".join(parts) + "."


def _by_chance(data: ReportData, clients: list[Standing]) -> str:
    """A warning if the number of clear verdicts is no larger than chance would give."""
    clear, judged = len(_named(clients, GAINS, HARMED, WORSE)), len([one for one in clients if one.word != UNJUDGED])
    expected = (1 - data.confidence) * judged
    if not 0 < clear <= 2 * expected:
        return ""
    return f"By chance alone, about {expected:.2g} of {judged} clients without any difference would seem to gain or lose."


def _are(names: list[str]) -> str:
    return f"{counted(len(names), 'client')} {'is' if len(names) == 1 else 'are'}"


def _todo(data: ReportData, clients: list[Standing], judged: bool) -> str:
    main, reference = data.main, data.reference
    beaten = [standing.client.name for standing in clients if standing.naive_wins]
    rules = sorted({standing.naive.method for standing in clients if standing.naive_wins and standing.naive is not None})
    simpler = f"a simpler rule ({' or '.join(rules)})"
    warned = (
        f"; but at {_of(len(beaten), len(clients))} ({listed(beaten)}) {simpler} lost less than both "
        "in this test: look at it first"
        if beaten
        else ""
    )
    if clients and len(beaten) == len(clients):
        every = "every client" if len(clients) > 1 else "the one client"
        return f"Deploy neither {main} nor {reference} yet: at {every} {simpler} lost less than both in this test."
    if not judged:
        return f"{data.again} before you choose between {main} and {reference}{warned}."
    gains, harmed = _named(clients, GAINS), _named(clients, HARMED)
    rest = len(clients) - len(gains) - len(harmed)
    if harmed and not gains:
        sentence = f"Keep {reference}: {main} helps no client here significantly"
    elif not gains:
        more = f"more test {data.sample}s, or more random seeds, may tell more"
        sentence = f"These numbers give no reason to leave {reference}: {more}"
    elif rest or harmed:
        sentence = f"Use {main} at {listed(gains) if len(gains) == 1 else f'the {len(gains)} clients that gain'}"
        sentence += f" and keep {reference} at {listed(harmed)}" if harmed else ""
        sentence += f"; at the other {rest if rest > 1 else 'one'} either may serve" if rest else ""
    else:
        sentence = f"Use {main} at every client"
    return f"{sentence}{warned}."


def _alone(data: ReportData, clients: list[Standing]) -> list[str]:
    """If there is no reference: what is known, and how to learn more."""
    known = [standing.main.regret for standing in clients if standing.main and standing.main.regret is not None]
    lost = (
        f"With {data.main}, decisions lose {percent(fmean(known) if known else None)} % of the best possible result on average."
    )
    return [
        lost,
        "No other method was trained, so the report cannot say which clients gain or are harmed.",
        "Compare it with local-tuned, the best that a client does alone, before you deploy it.",
    ]
