"""`dffl.fit` and `dffl.load`: a method that is trained once gives a `Fit`, and the choice over time a `Chosen`.

A model of `dffl fit FILE` knows the columns of the user's tables, so it takes their data frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from dffl import chosen_files
from dffl.choosing import fit_best
from dffl.federation import Federation
from dffl.fitting import DEFAULT_METHOD, Fit, require_federation
from dffl.fitting import fit as fit_once
from dffl.limits import Limits
from dffl.parquet_federation import ParquetFederation
from dffl.predictor import NetworkFactory
from dffl.time.choosing import enough_past, fit_chosen
from dffl.time.chosen import Chosen
from dffl.time.outcome import CHOSEN
from dffl.training.keywords import MethodChoice

OWN_DATA = "own_data"
"""The key of a model's `about` with the description of a user's columns."""


def fit(federation: Federation | ParquetFederation, method: MethodChoice | None = None, **keywords: Any) -> Fit | Chosen:
    """Fit one method to a federation.

    - ``method``: a name, or a name with options: ``("ditto", {"pull": 0.1})``. Where all clients have ``times``, the default is
      ``chosen``: a backtest of the latest past chooses among naive rules, the forecast that clients bring, models and averages,
      and what is chosen is fitted on all rows; ``keywords`` are then those of `dffl.backtest`. Without times, and where the
      past is too short for it, the default is ``crossfit``. ``chosen`` without times chooses by out-of-fold regret.
    - ``keywords``: those of `dffl.fitting.fit`: options of the method, settings of `dffl.Settings`, ``validation``,
      ``progress`` and ``checkpoint``.
    """
    if isinstance(federation, ParquetFederation):
        return fit_once(federation, DEFAULT_METHOD if method is None else method, **keywords)
    require_federation("federation", federation)
    timed = all(client.times is not None for client in federation)
    if method is None:
        method = CHOSEN if timed and enough_past(federation, keywords) else DEFAULT_METHOD
    if method != CHOSEN:
        return fit_once(federation, method, **keywords)
    return fit_chosen(federation, **keywords) if timed else fit_best(federation, **keywords)


def load(
    path: str | PathLike[str],
    network: NetworkFactory | None = None,
    solvers: Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, float] | None = None,
) -> Fit | Chosen:
    """Read a fit that `Fit.save` wrote, or a model of `chosen` over time. ``network`` is the factory of a custom network.

    ``solvers`` has, by name, the functions of `dffl.Solver` sets, or those sets themselves, which keep their options; for
    `dffl.sets.pyepo` also PyEPO's models.

    The file may come from a stranger: it holds no code, names no path, and what it asks for is bounded before it is built.
    ``limits`` raises the bounds for a large model of a known origin, such as ``{"clients": 50_000}`` (see `dffl.Limits`).

    A model of `dffl fit FILE` takes data frames with the columns of the file's tables.
    """
    return with_columns(chosen_files.load(path, network, solvers, limits))


def with_columns(model: Fit | Chosen) -> Fit | Chosen:
    """A model that reads data frames with the columns of its tables, if it knows them."""
    from dffl.tables.encoding import Encoding
    from dffl.tables.frames import Columns  # the reader of tables is in a higher layer, and slow to import

    about = model.about.get(OWN_DATA)
    try:
        encoding = Encoding.from_json(about["encoding"]).composed()  # type: ignore[index]
        if isinstance(model, Chosen):
            columns = Columns(encoding, about["order"], about["costs"], model.dates)  # type: ignore[index]
            return replace(model, reads=columns.rows)
    except (ValueError, KeyError, TypeError, AttributeError):  # a file may contain anything; `dffl decide` reports problems
        return model
    return replace(model, reads=encoding.features)
