"""Decides what each feature column becomes: from the training rows of all clients, and from the lists in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dffl.cells import dates_of, texts_of
from dffl.checks import first_true
from dffl.sets.parameters import EACH
from dffl.tables.columns import TableReader, shown
from dffl.tables.encoding import Column, Encoding, agreed, require_kind, summary
from dffl.tables.keys import Problems
from dffl.tables.kinds import WORDS, SameKind, with_offset
from dffl.tables.plan import Plan
from dffl.tables.rows import ClientRows
from dffl.tables.sets_by_name import parameter
from dffl.tables.sources import Table


class AgreedColumns:
    """Makes the encoding. ``alone`` is the only client whose table can be read, as in `Assembly`."""

    def __init__(self, plan: Plan, problems: Problems, tables: TableReader, alone: str | None):
        self.plan, self.problems, self.tables, self.alone = plan, problems, tables, alone

    def encoding(self, sites: Sequence[ClientRows]) -> Encoding | None:
        """What the columns are, from the training rows of all sites; and each site's own fill values."""
        plan, problems = self.plan, self.problems
        trained = [site for site in sites if site.train is not None]
        named = {f"categories.{name}:": name for name in plan.categories}
        named |= {f"{key}: {name!r}": name for key in ("times", "gaps") for name in getattr(plan, key) or ()}
        for where, name in (
            named.items() if self.tables.features.names or self.tables.forecast or self.tables.items.names else ()
        ):
            if name not in self.tables.features.names:
                problems.add(
                    f"{plan.path}: federation.{where} is not a feature (features: {shown(self.tables.features.names)})"
                )
        if not trained:
            return None
        columns = []
        for name in self.tables.features.names:
            with problems.catching(f"{plan.path}: federation.features: column {name!r}"):
                texts = plan.categories.get(name)
                told = [summary(site.training.frame[name], texts or ()) for site in trained]
                if texts is None:
                    self._require_same_kind(name, trained, told)
                column = agreed(name, told, texts)
                if self.alone is not None:
                    self._require_lists(column)
                column = self._as_listed(column, trained)
                for site in trained:
                    self._check_cells(site, column, texts is not None)
                columns.append(column)
        forecast = [Column(name, "number", forecast=True) for name in self.tables.forecast]  # last, in the order of the costs
        items = [Column(name, "number", item=True) for name in self.tables.items.names]
        encoding = Encoding((*columns, *items, *forecast), plan.missing, known=self._known())
        if len(columns) < len(self.tables.features.names) or len(problems):
            return None
        with problems.catching(str(plan.path)):
            names = encoding.feature_names
            if len(set(names)) < len(names):
                twice = next(name for place, name in enumerate(names) if name in names[:place])
                raise ValueError(f"federation.features: two features would be named {twice!r}; rename a column")
        with problems.catching():
            return encoding.with_fills({site.plan.name: site.training for site in trained})
        return None

    def _known(self) -> dict[str, tuple[float, ...]]:
        """The values of features of items that never change, for each cost."""
        numbers, costs = {}, self.tables.costs.names
        for name, value in self.plan.known.items() if costs else ():
            where = f"{self.plan.path}: items.known.{name}"
            with self.problems.catching():
                if not isinstance(value, Mapping) and not EACH.accepts(value):
                    raise ValueError(f"{where}: must be {EACH.text}, or from a file, found {value!r:.60}")
                numbers[name] = tuple(map(float, parameter(value, EACH, costs, self.plan.folder, where)))
        return numbers

    def _require_same_kind(self, name: str, trained: Sequence[ClientRows], told: Sequence[Mapping[str, Any]]) -> None:
        """Refuse a column that holds one kind of cells at one site and another kind at another site; test tables count too."""
        same = SameKind(name)
        for site, kinds in zip(trained, told, strict=True):
            same.require(site.plan.name, site.training, self._kind(site.training, name, kinds["kind"]))
        for site in trained:
            if site.test is not None and site.train is site.rows:
                table = site.test.table
                same.require(site.plan.name, table, self._kind(table, name, summary(table.frame[name])["kind"]))
        known = [
            (site.plan.name, kinds["categories"]) for site, kinds in zip(trained, told, strict=True) if kinds["categories"]
        ]
        for client, texts in known[1:]:
            if not set(texts) & set(known[0][1]):
                what = f"{known[0][0]!r} ({known[0][1][0]!r:.60}) and {client!r} ({texts[0]!r:.60}) have no text in common"
                self.tables.notes.append(f"{self.plan.path}: column {name!r}: {what}; if they mean the same, write them alike")
                break
        else:
            self._note_spellings(name, known)

    def _note_spellings(self, name: str, known: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Note texts that differ only in upper and lower case, and texts that only one of two sites has: they may mean the
        same.
        """
        spelled: dict[str, dict[str, str]] = {}
        for client, texts in known:
            for text in texts:
                spelled.setdefault(text.casefold(), {}).setdefault(text, client)
        where = f"{self.plan.path}: column {name!r}"
        for forms in spelled.values():
            if len(forms) > 1:
                what = " and ".join(f"{text!r:.60} ({client!r})" for text, client in list(forms.items())[:2])
                self.tables.notes.append(f"{where}: {what} differ in case alone and become two columns; write them alike")
                return
        common = set.intersection(*(set(texts) for _, texts in known)) if len(known) > 1 else set()
        alone = [(client, [text for text in texts if text not in common]) for client, texts in known]
        odd = [(client, texts[0]) for client, texts in alone if texts]
        if common and len(odd) == len(known) == 2:  # of more sites, some texts are often missing at some
            what = " and ".join(f"{text!r:.60} at {client!r} alone" for client, text in odd)
            self.tables.notes.append(f"{where}: {what}; if they mean the same, write them alike")

    def _kind(self, table: Table, name: str, kind: str | None) -> str | None:
        """The kind of a column. For the column ``order``, clocks with and without an offset are compared elsewhere."""
        return kind if name == self.plan.order else with_offset(table, name, kind)

    def _require_lists(self, column: Column) -> None:
        """Refuse what a single site cannot know about the other sites, unless the file lists it."""
        plan = self.plan
        fix = f"`dffl init {plan.path} --client {self.alone}` writes what the table of this site holds"
        if column.kind == "category" and column.name not in plan.categories:
            what = f"is missing; column {column.name!r} holds texts, and other sites may have others"
            self.problems.add(f"{plan.path}: federation.categories.{column.name}: {what}; {fix}")
        if column.kind == "date" and plan.times is None:
            what = f"is missing; column {column.name!r} holds dates, and other sites may have a time of day"
            self.problems.add(f"{plan.path}: federation.times: {what}; {fix}")
        if plan.missing == "mean" and plan.gaps is None:
            what = 'is missing; with missing = "mean", other sites may have empty cells'
            self.problems.add(f"{plan.path}: federation.gaps: {what}; {fix}")

    def _as_listed(self, column: Column, trained: Sequence[ClientRows]) -> Column:
        """The column that the lists of the file describe. Cells that the lists do not allow are refused with their place."""
        plan, name = self.plan, column.name
        if name in (plan.times or ()) and column.kind != "date":
            what = f"{WORDS[column.kind]}, and federation.times lists it as a date"
            raise ValueError(f"holds {what}; write dates as 2021-01-31 13:00, or remove it there")
        if plan.times is not None and column.kind == "date":
            if column.time and name not in plan.times:
                self._refuse_first(trained, name, _with_time, "has a time of day, and the column is not among federation.times")
            column = replace(column, time=name in plan.times)
        if plan.gaps is not None:
            if column.flagged and name not in plan.gaps:
                self._refuse_first(trained, name, column.empty, "is empty, and the column is not among federation.gaps")
            column = replace(column, flagged=name in plan.gaps)
        return column

    def _refuse_first(
        self, trained: Sequence[ClientRows], column: str, wrong: Callable[[pd.Series], np.ndarray], what: str
    ) -> None:
        for site in trained:
            table = site.training
            if (row := first_true(wrong(table.frame[column]))) is not None:
                self.problems.add(f"{table.at(row, column)}: {what}; add it there, or correct the cell")

    def _check_cells(self, site: ClientRows, column: Column, listed: bool) -> None:
        """Refuse cells of another kind, also in test rows. In training rows, refuse texts that are not in the list."""
        for rows in (site.rows, site.test if site.test is not None and site.train is site.rows else None):
            if rows is not None:
                with self.problems.catching():
                    require_kind(rows.table, column.name, column.kind, column.empty(rows.table.frame[column.name]))
        if listed:
            table = site.training
            texts = texts_of(table.frame[column.name])
            wrong = ~column.empty(table.frame[column.name]) & ~np.isin(texts.astype(str), column.categories)
            if (row := first_true(wrong)) is not None:
                what = f"{texts[row]!r:.60} is not among federation.categories.{column.name}"
                self.problems.add(f"{table.at(row, column.name)}: {what}; add it there, or correct the cell")
        elif column.kind == "category":  # without filled training rows, 007 in a test row must stay 007
            site.train, site.test = (
                rows if rows is None else rows.with_table(rows.table.as_written(column.name))
                for rows in (site.train, site.test)
            )


def _with_time(cells: pd.Series) -> np.ndarray:
    moments = dates_of(cells)
    return ~np.isnat(moments) & (moments != moments.astype("datetime64[D]"))
