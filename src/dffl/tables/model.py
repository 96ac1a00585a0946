"""What a model of users' own data holds in addition to its predictors: how columns become features, units, and cost ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from dffl.archive import in_one_line
from dffl.cells import composed
from dffl.federation import Client
from dffl.fitting import Fit, Member
from dffl.limits import Limits
from dffl.models import OWN_DATA, load
from dffl.tables.cost_range import CostRange
from dffl.tables.encoding import Encoding
from dffl.tables.money import is_per
from dffl.time.chosen import Chosen

VERSION = 2
"""Increased when the saved values change their meaning. Version 1 had one range for all rows."""


@dataclass(frozen=True)
class OwnModel:
    """A fit of a user's data."""

    fit: Fit | Chosen
    encoding: Encoding
    about: dict[str, Any]

    @classmethod
    def load(cls, path: str | PathLike[str], limits: Limits | Mapping[str, float] | None = None) -> OwnModel:
        """Read what `dffl fit` wrote; ``limits`` as in `dffl.load`."""
        fit = load(path, limits=limits)
        about = fit.about.get(OWN_DATA)
        if not isinstance(about, dict) or about.get("version") != VERSION:
            fix = "train it again with dffl fit federation.toml"
            raise ValueError(f"{path}: is not a model of `dffl fit` of this version; {fix}")
        try:
            _require_sound(fit, about)
            return cls(fit, Encoding.from_json(about["encoding"]).composed(), about)
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # a file may contain anything
            raise ValueError(f"{path}: what it says of its columns or ranges is damaged ({in_one_line(error)})") from None

    def member(self, client: str) -> Member | Client:
        """A client of the model."""
        return self.fit.member(client) if isinstance(self.fit, Chosen) else self.fit._member(client)

    def only(self, client: str) -> OwnModel:
        """The values that one client needs, without those of the others."""
        client = client if client in self.fit.members else composed(client)
        self.member(client)
        mine = {
            "encoding": self.encoding.only(client).as_json(),
            "units": {name: unit for name, unit in self.about["units"].items() if name == client},
            "evaluation": [row for row in self.about["evaluation"] if row["client"] == client],
            "ranges": {name: client_range for name, client_range in self.about["ranges"].items() if name == client},
        }
        about = {name: value for name, value in self.about.items() if name != "report"} | mine  # it is about all clients
        if isinstance(self.fit, Chosen):
            chosen = replace(self.fit.only(client), about={**self.fit.about, OWN_DATA: about})
            return OwnModel(chosen, self.encoding.only(client), about)
        history = self.fit.history[self.fit.history["client"] == client].reset_index(drop=True)
        fit = replace(
            self.fit,
            members={client: self.fit.members[client]},
            shared=None,
            history=history,
            about={**self.fit.about, OWN_DATA: about},
        )
        return OwnModel(fit, self.encoding.only(client), about)


def _require_sound(fit: Fit | Chosen, about: dict[str, Any]) -> None:
    """Refuse values that `dffl fit` never writes: the file may come from a stranger, and its texts are printed."""
    costs, units, order = about["costs"], about["units"], about["order"]
    if not isinstance(costs, list) or len(costs) != fit.dim or not all(map(_is_name, costs)):
        raise ValueError(f"costs must be the names of {fit.dim} columns, found {costs!r:.80}")
    if not isinstance(units, dict) or not all(map(_is_name, units.values())) or not (order is None or _is_name(order)):
        raise ValueError(f"units and order must be texts that can be printed, found {units!r:.80} and {order!r:.80}")
    if about.get("per") is not None and not is_per(about["per"]):
        raise ValueError(f"per must say what a row is, found {about['per']!r:.80}")
    if about.get("instead") is not None and not _is_name(about["instead"]):
        raise ValueError(f"instead must be the name of a method, found {about['instead']!r:.80}")
    if not all(isinstance(row, dict) and "client" in row for row in about["evaluation"]):
        raise ValueError("evaluation must have a row for each client and method")
    for plain in about["ranges"].values():
        guide = CostRange.from_json(plain).guide
        lines = () if guide is None else (guide.middle, guide.log_stray)
        if any(len(line.slopes) != fit.features + 1 for line in lines):
            raise ValueError(f"a range must have one number for each of {fit.features} features, and for the expected cost")


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and bool(value)
