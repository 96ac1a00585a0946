"""`dffl.fit` and what it returns."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from dffl.batched import predict_each, solve_each
from dffl.cache import keep_compiled_programs
from dffl.feature_range import normalisers, require_within_reach
from dffl.federation import Client, Federation, limits_met, oracles
from dffl.judging import clipped_shares, judged, predicted, regrets_at_each, regrets_under
from dffl.later import Later, NamedLater
from dffl.losses import Loss
from dffl.new_rows import NewRows, different_items
from dffl.parquet_federation import ParquetFederation
from dffl.predictor import Normaliser, Predictor
from dffl.progress import Progress
from dffl.sets import FeasibleSet
from dffl.sets._calls import CallLimits
from dffl.sets._errors import host_errors
from dffl.training import ALL, Outcome, Run, Settings
from dffl.training.checkpoint import Checkpoint, run_fingerprint
from dffl.training.keywords import FitKeywords, MethodChoice
from dffl.training.methods import Request, request
from dffl.training.newcomers import joining
from dffl.training.privacy import Spending
from dffl.training.run import Spent
from dffl.training.trainers.crossfit import FOLDS
from dffl.training.trainers.tuning import EPOCHS
from dffl.training.units import UnitPrior

if TYPE_CHECKING:
    from dffl.arrays import CostsAt, DecisionsAt, PerSample


DEFAULT_METHOD = "crossfit"
"""The choice of methods that the measurements recommend: see docs/leaderboard.md."""

CLIPPED = 0.05
"""The share of a client's training predictions at the clip above which a fit warns."""
PRIVACY = "privacy"
"""The key of a fit's `about` for what it released."""
UNUSED = "unused_updates"
"""The key of a fit's `about` for the number of updates of each client that were not used in training."""


@dataclass(frozen=True)
class Member:
    """What a fit knows of a client of training."""

    name: str
    n: int
    set: FeasibleSet
    maximize: bool
    predictor: Predictor
    choices: dict[str, float] = field(default_factory=dict)
    out_of_fold: dict[str, np.ndarray] | None = None
    """The result of `Fit.out_of_fold`, if the method has folds."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted method: one predictor for each client. It predicts, decides, evaluates and saves."""

    method: str
    settings: Settings
    features: int
    feature_names: tuple[str, ...] | None
    dim: int
    members: Mapping[str, Member]
    shared: Predictor | None
    """The model for a client that did not take part, if the method has one."""
    history: pd.DataFrame
    """What each client saw in training: job, round, client, loss, share of outputs at the clip, norm (scaled units)."""
    about: dict[str, Any] = field(default_factory=dict)
    """JSON values to be saved with the fit, such as how features were made."""
    options: dict[str, Any] = field(default_factory=dict)
    """The given options of the method."""
    cost_names: tuple[str, ...] | None = None
    """The names of the costs, if clients have them."""
    effort: dict[str, float] = field(default_factory=dict)
    """The effort of the fit: ``passes`` over all samples, and mean bytes ``sent`` to and ``answered`` by a client. Trainings
    that are shared with other methods are included. NaN if an interrupted fit was resumed; not saved.
    """
    reads: Callable[[Any, str], np.ndarray] | None = None
    """Reads features from a user's data frame, for a client. `dffl.load` sets it for models of `dffl fit FILE`."""

    def __post_init__(self) -> None:
        if isinstance(self.shared, Later):
            self.__dict__["_later"] = self.__dict__.pop("shared")

    def __getattr__(self, name: str) -> Any:
        """The shared model of clients on disk: its units are those of all their rows, which are read for it."""
        if name != "shared" or "_later" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.__dict__["shared"] = self.__dict__["_later"].make()
        return self.__dict__["shared"]

    def __repr__(self) -> str:
        return f"Fit({self.method!r}, {len(self.members)} clients, {self.features} features, {self.dim} decisions)"

    @property
    def has_forecast(self) -> bool:
        """Whether clients have a forecast of their costs: the last d features."""
        return self.settings.forecast

    @property
    def item_features(self) -> int:
        """The number of features of each item; 0 if items have none."""
        return self.settings.item_features

    def predict(self, client: str | Client, x: Any, forecast: Any = None, items: Any = None, known: Any = None) -> CostsAt:
        """The costs that a client expects at features x (..., p), in raw units.

        A client that did not take part is given as a `Client`, and uses the shared model. Columns of a data frame are found
        by their names, if training knew them. Features that are far outside the range of training are refused, and so are
        predictions that are not finite.

        A model of `dffl fit FILE` that was read by `dffl.load` takes a data frame with the columns of the file's tables.

        If the clients of training had a forecast, new rows need one, in one of these forms:

        - a table ``forecast`` (..., d) in the order of the costs
        - columns of a data frame x with the names of training
        - the last columns of an array x, as in `Client.x`

        Features of items (..., d, q) and ``known`` ones (d, r) are given as to `Client`, or as columns of x, as in
        `Client.x`.
        """
        member = self._member(client)
        features = self._features(self._read(member.name, x), forecast, items, known)
        if not features.size:
            return np.empty((*features.shape[:-1], self.dim))
        require_within_reach(member.name, member.predictor, features, self.feature_names)
        costs = predicted(member.predictor, features, self.dim)
        _require_finite(member.name, costs)
        return costs

    def decide(self, client: str | Client, x: Any, forecast: Any = None, items: Any = None, known: Any = None) -> DecisionsAt:
        """The decision of a client at features x (..., p), on its set; other arguments as in `predict`.

        If a `Client` is given, its own set is used. If a set has helper variables, they follow the decisions; the set's
        `variables` are the names of the columns.
        """
        return self.decide_at(client, self.predict(client, x, forecast, items, known))

    def decide_at(self, client: str | Client, costs: CostsAt) -> DecisionsAt:
        """The decision of a client that expects these costs, in the form of `decide`."""
        member = self._member(client)
        _require_finite(member.name, costs)
        counted = {} if member.set.calls is None else {f"client {member.name!r}": member.set.calls}
        with CallLimits(counted, "decisions"), host_errors([(member.name, member.set)]):
            if member.set.variables is not None:
                return _named(member.name, lambda: member.set.decide(costs, member.maximize))
            signed = (-costs if member.maximize else costs).reshape(-1, self.dim)
            decisions = solve_each([member.set], [signed])[0] if len(signed) else signed
            return decisions.reshape(costs.shape) + 0.0  # no -0.0

    def regrets(self, client: Client) -> PerSample:
        """The regret of each sample of a client.

        The model is found by the client's name; the set and the samples are those of the given client.
        """
        return self.regrets_of([client])[0]

    def regrets_of(self, clients: Sequence[Client]) -> list[PerSample]:
        """`regrets` of many clients; clients with one kind of set are solved together."""
        predictors = [self._member(client).predictor for client in clients]
        for client, predictor in zip(clients, predictors, strict=True):
            require_within_reach(client.name, predictor, client.x, self.feature_names)
        with limits_met(oracles(clients), "solves of regrets"):
            return regrets_under(predictors, clients)

    def judge(self, clients: Sequence[Client]) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Each client's regrets, and those at its conditional-mean costs if they are known."""
        means = [mean for client in clients if (mean := client.expected) is not None and mean is not client]
        asked = [*clients, *means]
        regrets = dict(zip(map(id, asked), self.regrets_of(asked), strict=True))  # without noise a client is its own mean
        return [(regrets[id(client)], regrets.get(id(client.expected))) for client in clients]

    def out_of_fold(self, client: str) -> dict[str, np.ndarray]:
        """Predictions for a client's training samples, each by the models that were not trained on this sample.

        - ``predicted`` (n, d): the costs
        - ``objective`` (n,): what the decisions by these predictions cost (or earn)
        - ``regret`` (n,): their loss compared with the best decisions

        This is an honest estimate, on samples that the client already has.
        """
        table = self._member(client).out_of_fold
        if table is None:
            raise ValueError(f"method {self.method!r} keeps no out-of-fold predictions; crossfit and local-tuned do")
        return table

    def evaluate(self, test: Federation | ParquetFederation) -> pd.DataFrame:
        """One row per client: the loss of its decisions on a test federation.

        - ``regret``: the mean over samples, in raw units
        - ``relative_regret``: the sum of regrets over the sum of |z*|
        - ``mean_ratio``: the mean over samples of regret over |z*|, at the realised costs
        - ``expected_...``: the same at the conditional-mean costs, if the clients know them
        - ``n``, ``n_test``: the numbers of training and of test samples
        - ``took_part``: false for a client that was not in the training, which uses the shared model
        """
        rows = []
        for part in test.parts() if isinstance(test, ParquetFederation) else [test]:
            self.check(part)
            rows += [self.row(client, *lost) for client, lost in zip(part, self.judge(part.clients), strict=True)]
        return pd.DataFrame(rows)

    def joined_by(
        self,
        client: Client,
        *,
        folds: int = FOLDS,
        epochs: int | Sequence[int] = EPOCHS,
        judge: Loss | str = "regret",
        seed: int | None = None,
        progress: bool | None = None,
        prior: UnitPrior | None = None,
    ) -> Fit:
        """This fit with a new member, which tunes the shared model on its own samples.

        It needs no sample of another client, and nothing leaves the newcomer. The shared networks are trained further with
        the settings of the fit, each without one of ``folds`` folds, and stop at each of ``epochs``. The mean of all
        networks decides. No other model changes. Held-out regrets are too small if a member has the same rows. Arguments:

        - ``judge``: the loss on held-out samples that chooses the stop; epoch 0 is the shared network itself
        - ``folds``: a newcomer with fewer samples has fewer folds; with one sample it uses the shared model, with a warning
        - ``seed``: by default that of the fit
        - ``prior``: what is known of the units of others, by default those of the members
        """
        if not isinstance(client, Client):
            raise ValueError(f"client must be a dffl.Client, found {type(client).__name__}")
        who = f"client {client.name!r}"
        if client.name in self.members:
            raise ValueError(f"{who} is already in this fit; a newcomer needs a name of its own")
        federation = Federation([client])
        same_shape(federation, self, who)
        shared = self._member(client).predictor
        require_within_reach(client.name, shared, client.x, self.feature_names)
        asked = joining(
            shared, self._unit_prior() if prior is None else prior, self.settings, folds=folds, epochs=epochs, judge=judge
        )
        # The units of a newcomer follow from its own samples and from the units of the shared model.
        # Its days may all be later than those of training, so its folds are stretches of its own time.
        settings = replace(self.settings, seed=self.settings.seed if seed is None else seed, pooled_units=False, period=None)
        with running(federation, [SharedRun(settings, [asked])], progress=progress) as [run]:
            alone = perform(run, asked)
        if client.n == 1:
            warnings.warn(f"{who}: one sample cannot be held out, so nothing is tuned: it has the shared model", stacklevel=2)
        history = pd.concat([self.history, alone.history], ignore_index=True) if len(alone.history) else self.history
        return replace(self, members={**self.members, **alone.members}, history=history)

    def spending(self) -> Spending:
        """What the trainings of this fit released, if `Settings.privacy` hid something; its ``epsilon(delta)`` is the privacy
        loss.

        Another published fit of the same clients' data adds to it: ``one.epsilon(delta, other)`` is the loss of both
        together.
        """
        if PRIVACY not in self.about:
            raise ValueError("this fit hides nothing: it was trained without the setting privacy")
        return Spending.of(self.about[PRIVACY])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fit to one file (no pickle), completely or not at all. `dffl.load` reads it."""
        from dffl.storage import save

        save(self, path)

    def row(self, client: Client, lost: np.ndarray, known: np.ndarray | None = None) -> dict[str, Any]:
        """A client's row of `evaluate`, from the results of `judge`."""
        member = self.members.get(client.name)
        row: dict[str, Any] = {
            "client": client.name,
            "method": self.method,
            "n": member.n if member else 0,
            "n_test": client.n,
            "took_part": member is not None,
        }
        row |= judged(lost, client)
        if client.expected is not None:
            known = self.regrets(client.expected) if known is None else known
            row |= {f"expected_{name}": value for name, value in judged(known, client.expected).items()}
        return row | (member.choices if member else {})

    def _member(self, client: str | Client) -> Member:
        if isinstance(client, Client):
            self._require_columns(client)
            if client.name in self.members:
                known = self.members[client.name]
                if client.maximize != known.maximize:
                    raise ValueError(f"client {client.name!r}: maximize must be {known.maximize}, as in training")
                return replace(known, set=client.set)
            if self.shared is None:
                raise ValueError(f"client {client.name!r} took no part, and method {self.method!r} has no shared model for it")
            return Member(client.name, 0, client.set, client.maximize, self.shared)
        if client not in self.members:
            names = ", ".join(repr(name) for name in list(self.members)[:5])
            raise ValueError(
                f"no client {client!r} in this fit (it has {names}{', ...' if len(self.members) > 5 else ''}); "
                "pass a dffl.Client to use the shared model for one that took no part"
            )
        return self.members[client]

    def _require_columns(self, client: Client) -> None:
        """Refuse a client whose costs have other names than in training."""
        who = f"client {client.name!r}"
        for table, mine, theirs in (("x", client.feature_names, self.feature_names), ("c", client.cost_names, self.cost_names)):
            if None not in (mine, theirs) and mine != theirs:
                raise ValueError(f"{who}: {table} must have the columns of training, {theirs}, found {mine}")
        _same_forecast(who, client.forecast is not None, self.has_forecast)
        _same_items(who, client.item_features, self.item_features)
        known = self.members.get(client.name)
        if known is None or known.set.variables is None or client.set.variables is None:
            return
        d = self.dim
        if (
            sorted(known.set.variables[:d]) == sorted(client.set.variables[:d])
            and known.set.variables[:d] != client.set.variables[:d]
        ):
            wanted = ", ".join(known.set.variables[: min(d, 4)]) + (", ..." if d > 4 else "")
            fix = f"its decisions must be in the order of training ({wanted}); name its cost columns as there"
            raise ValueError(f"{who}: {fix}")

    def _unit_prior(self) -> UnitPrior:
        """The units of the members, as a prior for those of a newcomer."""
        return UnitPrior.of(
            [Normaliser.middle(normalisers(member.predictor)) for member in self.members.values()],
            [member.n for member in self.members.values()],
        )

    def _read(self, client: str, x: Any) -> Any:
        """Features from a data frame with a user's columns; anything else unchanged."""
        if self.reads is None or not hasattr(x, "columns") or set(self.feature_names or ()) <= set(x.columns):
            return x
        return self.reads(x, client)

    def _features(self, x: Any, forecast: Any = None, items: Any = None, known: Any = None) -> np.ndarray:
        names = self.feature_names, self.cost_names
        return NewRows(self.features, self.dim, *names, self.has_forecast, self.item_features).features_of(
            x, forecast, items, known
        )

    def check(self, test: Federation) -> None:
        """Refuse a test federation that does not match this fit, or that has clients without a model."""
        same_shape(test, self)
        for client in test:
            self._member(client)


def _named(client: str, decide: Callable[[], np.ndarray]) -> np.ndarray:
    """The decisions of a set. Its errors are raised with the client's name."""
    try:
        return decide()
    except ValueError as error:
        raise ValueError(f"client {client!r}: {error}") from None


def _require_finite(client: str, costs: np.ndarray) -> None:
    """Refuse costs (..., d) that carry no information, but by which a set would decide."""
    rows = np.isfinite(costs).reshape(-1, np.shape(costs)[-1]).all(axis=-1)
    if not rows.all():
        row = int(np.argmin(rows))
        bad = np.reshape(costs, (len(rows), -1))[row]
        raise ValueError(f"client {client!r}: expected costs must be finite, found {bad[~np.isfinite(bad)][0]} in row {row}")


def require_federation(name: str, value: Any) -> None:
    """Refuse what is not a federation in memory."""
    if isinstance(value, ParquetFederation):
        raise ValueError(f"{name} must be in memory here: dffl.Federation(list({name})) reads all {len(value)} clients")
    if not isinstance(value, Federation):
        raise ValueError(f"{name} must be a dffl.Federation, found {type(value).__name__}")


def same_shape(test: Federation, like: Federation | Fit, what: str = "test") -> None:
    """Refuse a test federation with other features or decisions; ``what`` is its name in messages."""
    require_federation(what, test)
    _same_forecast(what, test.has_forecast, like.has_forecast)
    _same_items(what, test.item_features, like.item_features)
    for name in ("features", "dim"):
        mine, theirs = getattr(test, name), getattr(like, name)
        if mine != theirs:
            raise ValueError(f"{what}: {name} must be {theirs}, as in training, found {mine}")
    for table, name in (("x", "feature_names"), ("c", "cost_names")):
        mine, theirs = getattr(test, name), getattr(like, name)
        if None not in (mine, theirs) and mine != theirs:
            raise ValueError(f"{what}: {table} must have the columns of training, {theirs}, found {mine}")


def _same_forecast(what: str, mine: bool, theirs: bool) -> None:
    if mine != theirs:
        fix = (
            "bring a forecast, as in training: dffl.Client(..., forecast=...)"
            if theirs
            else "bring no forecast: training had none"
        )
        raise ValueError(f"{what}: must {fix}")


def _same_items(what: str, mine: int, theirs: int) -> None:
    if mine != theirs:
        raise ValueError(different_items(what, mine, theirs))


def fit(
    federation: Federation | ParquetFederation,
    method: MethodChoice = DEFAULT_METHOD,
    *,
    validation: Federation | None = None,
    progress: bool | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **keywords: Unpack[FitKeywords],
) -> Fit:
    """Fit one method to a federation.

    - ``method``: a name, or a name with options: ``("ditto", {"pull": 0.1})``.
    - ``keywords``: options of the method and the settings of `dffl.Settings`: seed, rounds, local_epochs, batch_size,
      client_fraction, loss, aggregate and so on. A method may have its own defaults for some settings, such as the learning
      rate of `crossfit-turned`; a keyword replaces them.
    - ``validation``: the separate federation by which the oracle methods choose.
    - ``progress``: switches the bar on or off; by default it is shown in a terminal.
    - ``checkpoint``: a file from which an interrupted fit resumes to the same numbers; it is removed when the fit is
      complete.
    """
    asked, settings = request(method, keywords)
    with running(federation, [SharedRun(Settings.of(**settings), [asked])], validation, progress, checkpoint) as [run]:
        return perform(run, asked)


class SharedRun(NamedTuple):
    """Methods that share a run: they have the same settings."""

    settings: Settings
    asked: list[Request]


@contextmanager
def running(
    federation: Federation | ParquetFederation,
    plans: Sequence[SharedRun],
    validation: Federation | None = None,
    progress: bool | Progress | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Iterator[list[Run]]:
    """A run for each plan. Everything that can be refused is refused before training.

    ``progress`` may be a bar that several calls share; its owner closes it.
    """
    if not isinstance(federation, ParquetFederation):
        require_federation("federation", federation)
    keep_compiled_programs()
    owned = nullcontext(progress) if isinstance(progress, Progress) else Progress(progress)
    with limits_met(federation.oracles(), "solves of training"), owned as bar, ExitStack() as stack:
        runs, work, unused, saved = [], 0.0, validation is not None, []
        for number, (plan_settings, asked) in enumerate(plans):
            settings = plan_settings.for_clients(federation)
            if checkpoint is not None:
                path = Path(checkpoint) if number == 0 else Path(f"{checkpoint}-{number + 1}")
                saved.append(Checkpoint(path, run_fingerprint(federation, validation, settings.at(federation.dim))))
            run = stack.enter_context(Run(federation, settings, validation, bar, saved[-1] if saved else None))
            rehearsal = run.rehearse(asked)
            work += rehearsal.work
            unused = unused and bool(asked) and rehearsal.complete and ALL not in run.judged
            runs.append(run)
        if unused:
            names = ", ".join(request.method.name for plan in plans for request in plan.asked)
            raise ValueError(f"validation is not used by {names}; oracle-interp-spo and oracle-interp-mse take it")
        bar.begin_run(work)
        yield runs
        for file in saved:
            file.remove()


def perform(run: Run, asked: Request) -> Fit:
    """One method's fit."""
    outcome, jobs = run.asked_by(asked)
    return wrap(run, asked, outcome, jobs)


def wrap(run: Run, asked: Request, outcome: Outcome, jobs: list[str]) -> Fit:
    """The outcome of a method as a fit; ``jobs`` are the trainings that it asked for."""
    name = asked.method.name
    if not isinstance(outcome, Outcome):
        raise TypeError(f"method {name!r} must return a dffl.Outcome, found {type(outcome).__name__}")
    if len(outcome.predictors) != len(run.federation):
        wanted = f"a predictor for each of {len(run.federation)} clients"
        raise ValueError(f"method {name!r} must return {wanted}, found {len(outcome.predictors)}")
    for trained in () if run.on_disk else outcome.predictors:
        if not isinstance(trained, Predictor):
            fix = "run.personal(vectors) makes predictors of vectors"
            raise TypeError(f"method {name!r} must return dffl predictors, found {type(trained).__name__}; {fix}")
    for label, values in outcome.choices.items():
        if np.ndim(values) != 1 or len(values) != len(run.federation):
            raise ValueError(f"method {name!r}: choices[{label!r}] must have one number for each client, found {values!r:.60}")
    unseen, federation, history = _out_of_fold(run, outcome), run.federation, run.history.frame(only=jobs)

    def member(position: int) -> Member:
        if isinstance(federation, ParquetFederation):
            who = federation.about(position)
        else:
            client = federation[position]
            who = client.name, client.n, client.set, client.maximize
        choices = {label: values[position] for label, values in outcome.choices.items()}
        out_of_fold = unseen[position] if unseen else None
        if out_of_fold is not None:
            choices["out_of_fold_regret"] = float(out_of_fold["regret"].mean())
        return Member(*who, outcome.predictors[position], choices, out_of_fold)

    members: Mapping[str, Member] = NamedLater(member, {name: place for place, name in enumerate(federation.names)})
    clipped = history.loc[history["clipped"] > 0, "client"].unique()
    if len(clipped):  # otherwise no output was clipped, and there is nothing to compute
        stored = federation if isinstance(federation, ParquetFederation) else None
        whose = [stored.places[name] for name in clipped[:MOST_CHECKED]] if stored is not None else range(len(federation))
        _warn_of_clip(federation, whose, outcome.predictors, run.settings.tau)
    return Fit(
        method=name,
        options=dict(asked.options),
        settings=run.settings,
        features=federation.features,
        feature_names=federation.feature_names,
        cost_names=federation.cost_names,
        dim=federation.dim,
        members=members if run.on_disk else dict(members),
        shared=outcome.shared,
        history=history,
        effort=_effort(run, jobs),
        about=_about(run, jobs),
    )


MOST_CHECKED = 64
"""Clients on disk that are read to see whether their model is clipped."""
_CLIP_SAID: WeakKeyDictionary[Federation | ParquetFederation, set[float | None]] = WeakKeyDictionary()
"""The clips of which the user was warned already: one line for a federation, not one for each method and seed."""


def _warn_of_clip(
    federation: Federation | ParquetFederation, whose: Sequence[int], predictors: Sequence[Predictor], tau: float | None
) -> None:
    """Warn of clients whose model is clipped at many of its training samples: it cannot express what it has learnt."""
    if tau in _CLIP_SAID.setdefault(federation, set()):
        return
    some = [federation[place] for place in whose]
    shares = clipped_shares([predictors[place] for place in whose], [client.x for client in some], federation.dim)
    named = [f"client {one.name!r}: {share:.0%}" for one, share in zip(some, shares, strict=True) if share > CLIPPED]
    if named:
        _CLIP_SAID[federation].add(tau)
        more = f"; and {len(named) - 5} more" if len(named) > 5 else ""
        fix = "try a larger tau; with scale_costs=False, its unit is that of the costs"
        warnings.warn(f"training predictions are clipped at norm tau ({'; '.join(named[:5])}{more}): {fix}", stacklevel=3)


def _about(run: Run, jobs: Sequence[str]) -> dict[str, Any]:
    """What the trainings released, and whose updates they did not use, if any."""
    spending, unused = run.spending(jobs), sum((run.left_out[job] for job in jobs), start=Counter[str]())
    return ({} if spending is None else {PRIVACY: spending.as_json()}) | ({UNUSED: dict(unused)} if unused else {})


def _effort(run: Run, jobs: Sequence[str]) -> dict[str, float]:
    spent = sum((run.spent[job] for job in jobs), start=Spent())
    clients = len(run.federation)
    return {
        "passes": spent.samples / sum(run.federation.counts),
        "sent": spent.sent / clients,
        "answered": spent.answered / clients,
    }


def _out_of_fold(run: Run, outcome: Outcome) -> list[dict[str, np.ndarray]]:
    """For each client the result of `Fit.out_of_fold`, for its own rows; empty for a method without folds."""
    if not outcome.unseen:
        return []
    clients, settings = [*run.federation], run.settings
    predictions = [np.empty(client.c.shape) for client in clients]
    for part, models in outcome.unseen:
        rows = [settings.splitting.folds(client, part.count)[part.number] for client in clients]
        some = [place for place, mine in enumerate(rows) if len(mine)]
        features = [clients[place].x[rows[place]] for place in some]
        outputs = predict_each([models[place] for place in some], features, run.federation.dim)
        for place, values in zip(some, outputs, strict=True):
            predictions[place][rows[place]] = values
    lost = regrets_at_each(clients, predictions)
    return [
        {"predicted": costs.astype(np.float32), "objective": client.best_objective + client.sense * mine, "regret": mine}
        for client, costs, mine in zip(clients, predictions, lost, strict=True)
    ]
