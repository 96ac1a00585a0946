"""A report in five lines of plain text, for an e-mail."""

from __future__ import annotations

from dffl.report.data import ReportData
from dffl.report.numbers import counted
from dffl.report.saved_words import against_now, headline, together_or_alone
from dffl.report.verdict import FIXED, verdict

LINES = 5


def summary(data: ReportData) -> list[str]:
    """Five lines: the title, the saving compared with today, for all or alone, what to do, and the basis of these."""
    sentences = [sentence.replace(FIXED, " ") for sentence in verdict(data)]
    money, alone = against_now(data), together_or_alone(data)
    if data.answer:
        alone = alone or "Together or alone: not compared."
    else:  # which clients gain and which are harmed, and what to do
        sentences = [sentence for sentence in sentences if sentence != money]
        alone = " ".join(sentences[:-1])
    money = money or "Against what is done today: not compared."
    rows = counted(sum(client.n_test for client in data.clients), f"test {data.sample}")
    basis = [counted(len(data.clients), "client"), rows, f"dffl {data.versions.get('dffl', '')}".strip(), data.made]
    lines = [headline(data), money, alone, sentences[-1], f"From {', '.join(part for part in basis if part)}."]
    return [" ".join(line.split()) for line in lines]
