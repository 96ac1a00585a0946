"""Clients and federations: the data of users, checked before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from dffl.batched import in_parts, solve_each
from dffl.forecasts import appended, named_columns, placed_last, table_in_order
from dffl.items import combined, inserted, of_items
from dffl.sets import FeasibleSet
from dffl.sets._calls import CallLimits
from dffl.sets._errors import host_errors
from dffl.splitting import DATES, ZONED, Splitting, about, chained, cost_digests, keyed

if TYPE_CHECKING:
    from dffl.arrays import Costs, CostsAt, Decisions, Features, PerSample, RowNumbers


@dataclass(frozen=True, eq=False)
class Client:
    """One decision maker: its name, features x (n, p), costs c (n, d), feasible set, and whether it minimises or maximises.

    ``c_mean`` holds the conditional-mean costs given x, if they are known, as in synthetic data.
    """

    name: str
    x: Features
    c: Costs
    set: FeasibleSet
    maximize: bool = False
    c_mean: Costs | None = None
    feature_names: tuple[str, ...] | None = None
    """The names of the columns of x, from a data frame. They must be the same for all clients and in test data."""
    cost_at: Callable[[np.ndarray], CostsAt] | None = None
    """A function that gives the conditional-mean costs at features (..., p), if it is known, as in synthetic data."""
    cost_names: tuple[str, ...] | None = None
    """The names of the columns of c, from a data frame. They must be the same for all clients and in test data."""
    keys: np.ndarray | None = None
    """A value for each row that identifies it, such as a date. Rows with equal keys are held out together, at all clients (see
    `Settings.split`). By default a digest of the row's features and costs.
    """
    times: np.ndarray | None = None
    """The time of each sample, in ascending order: numbers or dates. With `Settings.split` "time", folds are stretches of it.
    """
    forecast: Any = None
    """A forecast of the costs that the client has; networks learn a correction to it. It is given as one of:

    - a table (n, d); columns of a data frame are matched with those of c by name
    - names of columns of x: a pattern such as ``"dnn_*"``, matched with the names of the costs by the text in place of the
      star, or a list in the order of the costs

    Afterwards it is an array (n, d) in the order of the costs, and also the last d columns of ``x``.
    """
    items: Any = None
    """Features of the items of a decision, (n, d, q), known before the decision and in the order of the costs. Afterwards an
    array that includes the ``known`` ones, and also columns of ``x``, after its other features and before a forecast. ``x``
    may then be None.
    """
    known: Any = None
    """Features of items that never change, (d, r), such as weights. Afterwards they are included in ``items``."""
    key_kinds: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    """The kinds of values of the keys, each with an example. They must be the same for all clients."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"a client's name must be a non-empty text, found {self.name!r}")
        if not self.name.isprintable():
            raise ValueError(f"a client's name must have printable characters only, found {self.name!r:.80}")
        who = f"client {self.name!r}"
        if not isinstance(self.set, FeasibleSet):
            raise ValueError(f"{who}: set must be a feasible set such as dffl.TopK, found {type(self.set).__name__}")
        if self.set.batch_shape:
            raise ValueError(f"{who}: set must be a single set, found a stack of shape {self.set.batch_shape}")
        if not isinstance(self.maximize, bool | np.bool_):
            raise ValueError(f"{who}: maximize must be True or False, found {self.maximize!r}")
        has_items = self.items is not None or self.known is not None
        x = None if self.x is None and has_items else checked_table(who, "x", self.x)
        c = checked_table(who, "c", self.c)
        x = np.zeros((len(c), 0)) if x is None else x
        object.__setattr__(self, "feature_names", _named(who, "feature_names", self.feature_names, "x", self.x))
        object.__setattr__(self, "cost_names", _named(who, "cost_names", self.cost_names, "c", self.c))
        if len(x) != len(c):
            raise ValueError(f"{who}: x and c must have one row per sample, found {len(x)} and {len(c)} rows")
        if c.shape[1] != self.set.dim:
            fix = f"c has {c.shape[1]} columns and its set {self.set.dim} decisions"
            raise ValueError(f"{who}: c must have a column for each decision of its set, found that {fix}")
        try:
            object.__setattr__(self, "set", self.set if self.cost_names is None else self.set.matched(self.cost_names))
            self.set.require_sense(bool(self.maximize))
        except ValueError as error:
            raise ValueError(f"{who}: {error}") from None
        without_noise = self.c_mean is self.c
        if self.forecast is not None:
            x = self._with_forecast(who, x, c.shape)
        if has_items:
            x = self._with_items(who, x, c.shape)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "c", c)
        object.__setattr__(self, "maximize", bool(self.maximize))
        if self.c_mean is not None:
            mean = c if without_noise else checked_table(who, "c_mean", self.c_mean)
            if mean.shape != c.shape:
                raise ValueError(f"{who}: c_mean must have the shape of c, {c.shape}, found {mean.shape}")
            _agreed(who, "c_mean", column_names(self.c_mean), self.cost_names, "as c has")
            object.__setattr__(self, "c_mean", mean)
        if self.keys is not None:
            keys, kinds = keyed(self.keys, f"{who}: ")
            object.__setattr__(self, "keys", _one_each(who, "keys", keys, len(x)))
            object.__setattr__(self, "key_kinds", kinds)
        if self.times is not None:
            object.__setattr__(self, "times", _one_each(who, "times", checked_times(who, self.times), len(x)))

    def _with_forecast(self, who: str, x: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """The features with the forecast as their last columns, in the order of the costs."""
        owner, names, costs = f"{who}: forecast", self.feature_names, self.cost_names
        columns = named_columns(self.forecast)
        if columns is not None:
            x, names = placed_last(owner, x, names, columns, costs, shape[1])
        else:
            table, forecast_names = checked_table(who, "forecast", self.forecast), column_names(self.forecast)
            table, forecast_names = table_in_order(owner, table, forecast_names, costs, shape)
            x, names = appended(owner, x, names, table, forecast_names, costs)
        x.flags.writeable = False
        object.__setattr__(self, "feature_names", names)
        object.__setattr__(self, "forecast", x[:, -shape[1] :])
        return x

    def _with_items(self, who: str, x: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        """The features with those of the items in their place."""
        items, brings = combined(f"{who}: ", self.items, self.known, shape[:1], shape[1]), self.forecast is not None
        x, names = inserted(x, self.feature_names, items, brings, self.cost_names)
        x.flags.writeable = False
        object.__setattr__(self, "feature_names", names)
        for name, value in {"items": of_items(x, shape[1], items.shape[2], brings), "known": None}.items():
            object.__setattr__(self, name, value)
        if brings:
            object.__setattr__(self, "forecast", x[:, -shape[1] :])
        return x

    def __repr__(self) -> str:
        sense = ", maximize=True" if self.maximize else ""
        return f"Client({self.name!r}, n={self.n}, {self.x.shape[1]} features, {self.set!r}{sense})"

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.x)

    @property
    def item_features(self) -> int:
        """The number of features of each item; 0 if items have none."""
        return 0 if self.items is None else int(self.items.shape[-1])

    @property
    def row_features(self) -> Features:
        """The features without those of a forecast and of items."""
        added = self.item_features + (self.forecast is not None)
        return self.x[:, : self.x.shape[1] - added * self.c.shape[1]]

    @property
    def sense(self) -> int:
        """-1 for a client that maximises, 1 for a client that minimises."""
        return -1 if self.maximize else 1

    @property
    def w_star(self) -> Decisions:
        """w*(c), the best decision of each sample, computed once."""
        optimum = optima([self])[0]
        return optimum if optimum.shape[1] == self.set.dim else optimum[:, : self.set.dim]

    @cached_property
    def oracle(self) -> FeasibleSet:
        """The set for losses and regrets: it includes the known part of the objective, if there is one."""
        return self.set.lifted

    def completed(self, c: CostsAt, scale: float = 1.0) -> CostsAt:
        """Costs, divided by a scale, in the form of `oracle`: followed by the known costs, divided by the same scale."""
        known = np.full((*c.shape[:-1], self.oracle.dim - self.set.dim), 1.0 / scale)
        return np.concatenate([c, known], axis=-1) if known.size else c

    @property
    def best_objective(self) -> PerSample:
        """z*(c), the best objective of each sample, with its known part."""
        return np.sum(self.completed(self.c) * optima([self])[0], axis=-1)

    @property
    def z_star_size(self) -> PerSample:
        """|z*(c)|, the size of the best objective of each sample. Relative regrets are relative to it."""
        return np.abs(self.best_objective)

    @cached_property
    def expected(self) -> Client | None:
        """The client with its conditional-mean costs as costs, if they are known."""
        if self.c_mean is self.c:
            return self
        return None if self.c_mean is None else replace(self, c=self.c_mean)

    @cached_property
    def row_keys(self) -> RowNumbers:
        """A number for each row, equal for equal rows of any client: from its key, or from its features and costs."""
        return self.content_keys if self.keys is None else self.keys

    @cached_property
    def content_keys(self) -> RowNumbers:
        """A number for each row, equal for rows with equal features and costs, also in another currency or precision."""
        features = self.x if self.forecast is None else self.x[:, : -self.c.shape[1]]
        return chained(np.column_stack([about(features), self.cost_keys]))

    @cached_property
    def cost_keys(self) -> RowNumbers:
        """A number for each row, equal for rows with equal costs of any client, also in another currency or precision."""
        return cost_digests(self.c)

    def with_set(self, s: FeasibleSet) -> Client:
        """The client with another set."""
        return self if s is self.set else replace(self, set=s)

    def with_rows(self, x: Features, c: Costs, times: np.ndarray) -> Client:
        """The client with other rows. ``x`` has its columns, including those of a forecast and of items."""
        brings, dim = self.forecast is not None, self.c.shape[1]
        return Client(
            self.name, x, c, self.set, self.maximize, times=times,
            feature_names=self.feature_names, cost_names=self.cost_names, forecast=x[:, -dim:] if brings else None,
            items=None if self.items is None else of_items(x, dim, self.item_features, brings),
        )  # fmt: skip

    def rows(self, index: Any) -> Client:
        """The client with some of its samples: a slice, row numbers or a mask, which may be empty."""
        part = copy(self)  # checks of all samples hold for some of them, too
        for name in DERIVED:
            part.__dict__.pop(name, None)
        for name in ("x", "c", "keys", "times"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(part, name, _frozen(array[index]))
        if self.c_mean is not None:
            object.__setattr__(part, "c_mean", part.c if self.c_mean is self.c else _frozen(self.c_mean[index]))
        if self.forecast is not None:
            object.__setattr__(part, "forecast", part.x[:, -self.c.shape[1] :])
        if self.items is not None:
            item_values = of_items(part.x, self.c.shape[1], self.item_features, self.forecast is not None)
            object.__setattr__(part, "items", item_values)
        if self in _OPTIMA:
            _OPTIMA[part] = _OPTIMA[self][index]
        return part


DERIVED = ("expected", "row_keys", "content_keys", "cost_keys")
"""Cached results that some of its samples must compute again."""


class Federation(Sequence[Client]):
    """Clients of any sizes and any mix of set families, with the same features and the same d decisions."""

    def __init__(self, clients: Sequence[Client]):
        self.clients = tuple(clients)
        if not self.clients:
            raise ValueError("a federation needs at least one client, found none")
        first = self.clients[0]
        self._by_name: dict[str, Client] = {}
        self.feature_names: tuple[str, ...] | None = None
        self.cost_names: tuple[str, ...] | None = None
        for client in self.clients:
            if not isinstance(client, Client):
                raise ValueError(f"a federation is made of dffl.Client, found {type(client).__name__}")
            if client.name in self._by_name:
                raise ValueError(f"client {client.name!r}: name must be unique, found it twice")
            self._by_name[client.name] = client
            who = f"client {client.name!r}"
            if (client.keys is None) != (first.keys is None):
                raise ValueError(f"{who}: keys must be given for all clients of a federation or for none")
            _require_kinds(client, first)
            if (client.forecast is None) != (first.forecast is None):
                has, others_have = ("no forecast", "one") if client.forecast is None else ("a forecast", "none")
                fix = "all clients of a federation bring a forecast, or none"
                raise ValueError(f"{who}: brings {has}, client {first.name!r} {others_have}; {fix}")
            if client.item_features != first.item_features:
                like = f"as those of client {first.name!r} have"
                what = f"each item must have {first.item_features} features, {like}, found {client.item_features}"
                raise ValueError(f"{who}: items: {what}; known ones count too")
            for table, mine, theirs in (("c", client.c.shape[1], first.c.shape[1]), ("x", client.x.shape[1], first.x.shape[1])):
                if mine != theirs:
                    like = f"as client {first.name!r} has"
                    raise ValueError(f"{who}: {table} must have {theirs} columns, {like}, found {mine}")
            self.feature_names = _agreed(who, "x", client.feature_names, self.feature_names)
            self.cost_names = _agreed(who, "c", client.cost_names, self.cost_names)

    def __len__(self) -> int:
        return len(self.clients)

    def __contains__(self, key: object) -> bool:
        """Whether a client, or a client of this name, is a member."""
        return key in self._by_name if isinstance(key, str) else key in self.clients

    def __getitem__(self, key: Any) -> Any:
        """A client by its name or position."""
        if not isinstance(key, str):
            return self.clients[key]
        if key not in self._by_name:
            raise ValueError(f"no client {key!r} in this federation; it has {_some(self.names)}")
        return self._by_name[key]

    def __iter__(self) -> Iterator[Client]:
        return iter(self.clients)

    def __repr__(self) -> str:
        return f"Federation({len(self)} clients, {sum(self.counts)} samples, {self.features} features, {self.dim} decisions)"

    @property
    def names(self) -> list[str]:
        """The clients' names, in order."""
        return [client.name for client in self.clients]

    @property
    def counts(self) -> list[int]:
        """The clients' numbers of samples, in order."""
        return [client.n for client in self.clients]

    @property
    def features(self) -> int:
        """The number of features p."""
        return int(self.clients[0].x.shape[1])

    @property
    def has_forecast(self) -> bool:
        """Whether the clients have a forecast of their costs: the last d features."""
        return self.clients[0].forecast is not None

    @property
    def item_features(self) -> int:
        """The number of features of each item; 0 if items have none."""
        return self.clients[0].item_features

    @property
    def dim(self) -> int:
        """The number of decisions d."""
        return int(self.clients[0].c.shape[1])

    def oracles(self) -> Iterator[tuple[str, FeasibleSet]]:
        """The clients' names and oracles."""
        return oracles(self.clients)

    def parts(self) -> Iterator[Federation]:
        """All clients in order, as many at once as memory is meant to hold: here all of them."""
        yield self

    def relaxed(self) -> Federation:
        """The clients on sets without integer conditions; training on these is easier."""
        return Federation([client.with_set(client.set.relaxed) for client in self])

    def split(
        self, fraction: float = 0.2, seed: int = 0, blocks: bool = False, *, how: Splitting | None = None
    ) -> tuple[Federation, Federation]:
        """Training and validation federations: each client holds out this fraction of its samples at random.

        With ``blocks`` it holds out one stretch of consecutive samples, as time series need. The seed chooses its position,
        the same for all clients: otherwise the shared model would have been trained, at another client, on the days on which
        it is judged. Samples are matched by position, not by date, so all clients must have the same days. ``how`` replaces
        the other two arguments: `dffl.splitting.Splitting` can also divide by row or by time; a client may then hold out
        nothing.
        """
        optima(self.clients)  # computed once, for both parts
        rule = how or Splitting(seed, blocks=blocks)
        return self._parted([rule.held(client, fraction) for client in self.clients])

    def fold(
        self, number: int, count: int, seed: int = 0, blocks: bool = False, *, how: Splitting | None = None
    ) -> tuple[Federation, Federation]:
        """Training and validation federations of one of ``count`` folds: each client holds out one fold of its samples.

        Over all folds, every sample is held out once. With ``blocks``, a fold is a stretch of consecutive samples. ``how``
        is as in `split`.
        """
        optima(self.clients)  # computed once, for all folds
        rule = how or Splitting(seed, blocks=blocks)
        for client in self.clients:
            if client.n < count:
                raise ValueError(
                    f"client {client.name!r}: x must have at least {count} samples for {count} folds, found {client.n}"
                )
        return self._parted([rule.folds(client, count)[number] for client in self.clients])

    def _parted(self, places: Sequence[np.ndarray]) -> tuple[Federation, Federation]:
        """The clients without these samples, and with only these samples."""
        remaining = [client.rows(np.setdiff1d(np.arange(client.n), out)) for client, out in zip(self, places, strict=True)]
        return Federation(remaining), Federation([client.rows(out) for client, out in zip(self, places, strict=True)])


def _require_kinds(client: Client, first: Client) -> None:
    """Refuse keys of other kinds than the first client's: such keys could never be equal."""
    mine, theirs = client.key_kinds, first.key_kinds
    if not mine or not theirs or mine.keys() & theirs.keys():
        return
    (kind, example), (wanted, other) = next(iter(mine.items())), next(iter(theirs.items()))
    like = f"as client {first.name!r} has ({other!r:.40})"
    fix = "give all moments with their time zone, or none" if {kind, wanted} == {DATES, ZONED} else "write them in the same way"
    raise ValueError(f"client {client.name!r}: keys must be {wanted}, {like}, found {kind} ({example!r:.40}); {fix}")


_OPTIMA: WeakKeyDictionary[Client, np.ndarray] = WeakKeyDictionary()
"""The known w*(c) of clients, on their `oracle`. A client never changes, so neither does its w*(c)."""


def optima(clients: Sequence[Client]) -> list[np.ndarray]:
    """w*(c) of each client on its `oracle`, in float64. Unknown ones are computed, kind of set by kind of set."""
    lacking = [client for client in dict.fromkeys(clients) if client not in _OPTIMA]
    for part in in_parts([client.c.size for client in lacking]):
        some = lacking[part]
        costs = [client.sense * client.completed(client.c) for client in some]
        with host_errors((client.name, client.oracle, costs_of) for client, costs_of in zip(some, costs, strict=True)):
            solved = solve_each([client.oracle for client in some], costs)
        _OPTIMA.update(zip(some, solved, strict=True))
    return [_OPTIMA[client] for client in clients]


def oracles(clients: Iterable[Client]) -> Iterator[tuple[str, FeasibleSet]]:
    """The clients' names and oracles."""
    return ((client.name, client.oracle) for client in clients)


def limits_met(asked: Iterable[tuple[str, FeasibleSet]], what: str) -> CallLimits:
    """A context that warns of the clients, given as `oracles`, whose solvers stop at a limit inside it."""
    counted = {f"client {name!r}": oracle.calls for name, oracle in asked}
    return CallLimits({name: calls for name, calls in counted.items() if calls is not None}, what)


def column_names(table: Any) -> tuple[str, ...] | None:
    """The names of a data frame's columns; numbers are not names."""
    columns = tuple(getattr(table, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _named(who: str, field: str, field_names: Any, table_field: str, table: Any) -> tuple[str, ...] | None:
    """The names of a table's columns: the given ones, or those of the table."""
    if field_names is None:
        return column_names(table)
    names, columns = tuple(field_names), np.shape(table)[1]
    if len(names) != columns:
        raise ValueError(f"{who}: {field} must have a name for each column of {table_field}, found {len(names)} of {columns}")
    return names


def _agreed(
    who: str, field: str, mine: tuple[str, ...] | None, known: tuple[str, ...] | None, like: str = "as other clients have"
) -> tuple[str, ...] | None:
    """The names so far. Names that differ from those of the first client that has any, also in their order, are refused."""
    if mine is None or known is None:
        return mine if known is None else known
    for place, (name, wanted) in enumerate(zip(mine, known, strict=True)):
        if name != wanted:
            what = f"{wanted!r} in column {place}, {like}, found {name!r}"
            raise ValueError(f"{who}: {field} must have {what}; reorder or rename its columns")
    return known


LARGEST = 1e100
"""The largest allowed number in a table: the sum of squares of all its numbers must be finite."""


def checked_table(who: str, field: str, value: Any) -> np.ndarray:
    """``value`` as a finite float64 table with at least one row and one column."""
    names = list(value.columns) if hasattr(value, "columns") else None
    if names is not None:
        for name, kind in zip(names, value.dtypes, strict=True):
            if kind.kind not in "biuf":
                raise ValueError(f"{who}: {field} must be numbers, found column {name!r} of type {kind}")
    kind = getattr(value, "dtype", np.dtype(np.float64))
    if getattr(kind, "kind", "") in "cMm":  # NumPy would drop the imaginary part, and convert dates to counts
        raise ValueError(f"{who}: {field} must be numbers, found {kind}")
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who}: {field} must be numbers ({error})") from None
    if array.ndim != 2:
        raise ValueError(f"{who}: {field} must be a table with one row per sample, found {array.ndim} axes")
    if 0 in array.shape:
        raise ValueError(f"{who}: {field} must have at least one row and one column, found shape {array.shape}")
    for wrong, wanted in ((~np.isfinite(array), "finite"), (np.abs(array) > LARGEST, f"at most {LARGEST:g} in size")):
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            where = f"row {row}, column {column if names is None else repr(names[column])}"
            raise ValueError(f"{who}: {field} must be {wanted}, found {array[row, column]} in {where}")
    array.flags.writeable = False
    return array


def checked_times(who: str, value: Any) -> np.ndarray:
    """Times as numbers that do not decrease; dates as nanoseconds since 1970."""
    array = np.asarray(value)
    if array.dtype.kind == "M":
        array = np.where(np.isnat(array), np.nan, array.astype("M8[ns]").astype(np.int64).astype(np.float64))
    elif array.dtype.kind not in "iuf":
        raise ValueError(f"{who}: times must be numbers or dates, found {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{who}: times must be finite, found {array[~np.isfinite(array)].flat[0]}")
    if array.ndim == 1 and (np.diff(array) < 0).any():
        row = int(np.argmax(np.diff(array) < 0)) + 1
        raise ValueError(f"{who}: times must not decrease, found an earlier one in row {row}; sort the samples by time")
    return array


def _one_each(who: str, field: str, values: np.ndarray, rows: int) -> np.ndarray:
    if values.shape != (rows,):
        raise ValueError(f"{who}: {field} must have one value for each of the {rows} rows, found shape {values.shape}")
    return _frozen(values)


def _frozen(array: np.ndarray) -> np.ndarray:
    """The array, read-only; a view of a read-only array is read-only already."""
    array.flags.writeable = False
    return array


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
