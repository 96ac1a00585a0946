"""Tables as Markdown, CSV, LaTeX and for the terminal: the paper's value, ours and the difference in rows below each other."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pandas as pd
from rich.table import Table as RichTable

from dffl.cells import safe_csv
from dffl.files import write_text
from dffl_studies.running.tables import Cell, Count, Table, Value

REMARK = "remark.md"
"""The file with remarks on averages, such as that rows come from several versions."""
MANY = 1000
"""Numbers from this size on are shown without decimals."""


def write_tables(tables: list[Table], folder: Path, remark: str = "") -> list[Path]:
    """Write each table in three forms, and return the files. A remark follows the notes, and has a file for CSV and figures."""
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    (folder / REMARK).unlink(missing_ok=True)  # of other rows
    if remark:
        write_text(folder / REMARK, remark + "\n")
        written.append(folder / REMARK)
    for table in tables:
        table = table._replace(note=f"{table.note} {remark}".strip()) if remark else table
        for ending, write in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex)):
            path = folder / f"{table.name}{ending}"
            write_text(path, write(table))
            written.append(path)
    return written


def to_markdown(table: Table) -> str:
    """A pipe table with its title and note."""
    headings, body = _grid(table)
    lines = [f"**{table.title}**", "", _piped(headings), _piped(["---"] * len(headings))]
    return "\n".join([*lines, *(_piped(line) for line in body), "", table.note, ""])


def to_csv(table: Table) -> str:
    """One line per cell, with full precision: for programs."""
    records = []
    for cell in table.cells:
        paper = cell.paper or Value(float("nan"), float("nan"))
        numbers = (cell.ours.mean, cell.ours.sd, paper.mean, paper.sd, cell.ours.mean - paper.mean)
        records.append((*cell.row, cell.column, *numbers))
    columns = [*table.labels, "statistic", "ours", "ours_sd", "paper", "paper_sd", "difference"]
    buffer = io.StringIO()
    safe_csv(pd.DataFrame(records, columns=columns)).to_csv(buffer, index=False, float_format="%.6g", lineterminator="\n")
    return buffer.getvalue()


def to_latex(table: Table) -> str:
    """A booktabs tabular in a table float."""
    headings, body = _grid(table, plus_minus=r"$\pm$")
    labels = len(headings) - len({cell.column for cell in table.cells})
    heading, *rows = (" & ".join(_escaped(text) for text in line) + r" \\" for line in (headings, *body))
    lines = [r"\begin{table}[t]", r"\centering", r"\small", rf"\caption{{{_escaped(table.title)}. {_escaped(table.note)}}}"]
    lines += [rf"\label{{tab:{table.name}}}", rf"\begin{{tabular}}{{{'l' * labels}{'r' * (len(headings) - labels)}}}"]
    lines += [r"\toprule", heading, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def to_rich(table: Table) -> RichTable:
    """For the terminal."""
    headings, body = _grid(table)
    out = RichTable(title=table.title, title_justify="left", caption=table.note, caption_justify="left")
    labels = len(headings) - len({cell.column for cell in table.cells})
    for number, heading in enumerate(headings):
        label = number < labels
        width = 9 if number == 0 else None
        # In a narrow terminal, numbers continue in the next line instead of being cut.
        out.add_column(heading, justify="left" if label else "right", no_wrap=label, overflow="fold", min_width=width)
    compared = any(cell.paper for cell in table.cells)
    for line, after in pairwise([*body, None]):
        assert line is not None, "None stands behind the last line only"
        last = compared and (after is None or bool(after[0]))  # the next line starts a new row of the table
        out.add_row(*line, end_section=last, style="dim" if "paper" in line[:labels] else "")
    return out


def _grid(table: Table, plus_minus: str = "±") -> tuple[list[str], list[list[str]]]:
    """Headings and lines. The column with "paper", "ours" and "difference" is left out if the paper has none of the numbers."""
    columns = list(dict.fromkeys(cell.column for cell in table.cells))
    compared = any(cell.paper for cell in table.cells)
    headings = [*table.labels, *([""] if compared else []), *columns]
    body = []
    for label in dict.fromkeys(cell.row for cell in table.cells):
        cells = {cell.column: cell for cell in table.cells if cell.row == label}
        for place, (who, texts) in enumerate(_lines(cells, columns, plus_minus, table.differences)):
            shown = label if place == 0 else ("",) * len(label)
            body.append([*shown, *([who] if compared else []), *texts])
    return headings, body


def _lines(cells: dict[str, Cell], columns: list[str], plus_minus: str, differences: bool) -> Iterator[tuple[str, list[str]]]:
    values = [cells.get(column) for column in columns]
    compared = any(cell is not None and cell.paper is not None for cell in values)
    if compared:
        yield "paper", [_value(cell.paper if cell else None, plus_minus) for cell in values]
    yield "ours" if compared else "ours alone", [_value(cell.ours if cell else None, plus_minus) for cell in values]
    if compared and differences:
        yield "difference", [_difference(cell) for cell in values]


def _value(value: Value | None, plus_minus: str) -> str:
    if value is None or value.mean != value.mean:
        return ""
    # A whole number from 10 on without a spread is a count: a measured regret is never so round.
    count = isinstance(value, Count) or (value.sd != value.sd and value.mean >= 10 and value.mean == int(value.mean))
    digits = 0 if count or abs(value.mean) >= MANY else 2
    return f"{value.mean:,.{digits}f}" + (f" {plus_minus} {value.sd:,.{digits}f}" if value.sd == value.sd else "")


def _difference(cell: Cell | None) -> str:
    if cell is None or cell.paper is None:
        return ""
    change = cell.ours.mean - cell.paper.mean
    gaps = [f"{100 * change / abs(cell.paper.mean):+z.0f} %"] if cell.paper.mean else []
    gaps += [f"{abs(change) / cell.paper.sd:.1f} sd"] if cell.paper.sd > 0 else []  # not where it is 0 or unknown
    return f"{change:+.2f}" + (f" ({', '.join(gaps)})" if gaps else "")


def _piped(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _escaped(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_").replace("+-", r"$\pm$")
