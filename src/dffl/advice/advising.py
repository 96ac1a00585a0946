"""`dffl.advise`: what a client should do, and why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from dffl.advice.causes import NOT_EXAMINED, Cause, causes
from dffl.advice.equal import NOTHING, all_decisions_equal
from dffl.advice.equal import REASON as ALL_EQUAL
from dffl.advice.evidence import Evidence, check_fits, given
from dffl.advice.folds import folds as held_out
from dffl.advice.gains import CROSSFIT, FEDERATED, LOCAL, LOCAL_TUNED, Gains, estimate
from dffl.advice.over_time import AdviceOverTime, advise_over_time
from dffl.advice.quick import regressed
from dffl.advice.signals import Signals, signals
from dffl.advice.trained import TrainingPlan, trained
from dffl.advice.untrained import RULES, Untrained, untrained
from dffl.advice.words import METHODS, reason, shared_model
from dffl.checks import require_whole
from dffl.federation import Federation
from dffl.fitting import Fit, require_federation
from dffl.jsonable import jsonable
from dffl.splitting import TIME, Splitting
from dffl.time.bases import FORECAST
from dffl.time.choosing import enough_past
from dffl.training import Settings
from dffl.training.crossing import Crossing, crossing_of, divisible, warning
from dffl.training.crossing import reason as no_verdict
from dffl.training.keywords import SettingsKeywords
from dffl.training.sharing import Sharing, alike_rows, settled, sharing_of, whole_period

LIKELY, UNLIKELY = 0.8, 0.2
"""A gain is likely from the first probability on, and unlikely up to the second: odds of 4 to 1."""
RECOMMENDATIONS = ("federate", "personalise", "stay local", "cannot tell")
REGRETS = {
    "mean_cost": "mean-cost",
    "local": "local",
    "local_tuned": "local-tuned",
    "federated": "fedavg",
    "finetuned": "finetune",
    "crossfit": "crossfit",
}
"""The columns of held-out regrets, and their methods."""
JOINT, PERSONAL = ("fedavg", "finetune", "crossfit"), ("finetune", "crossfit")
"""The methods that need other clients; and those of them that also train at the client."""
TOGETHER = [column for column, method in REGRETS.items() if method in JOINT]
"""The columns of regrets that need other clients."""


@dataclass(frozen=True, eq=False)
class Advice:
    """The result of `dffl.advise`: ``table`` has one row per client.

    ``deploy`` is the answer: the method to use, with the lowest expected regret (if ``quick``, `fedavg` or `local`, as the
    recommendation says). ``recommendation`` is the verdict on joining the others. Its reference is `local-tuned`, the best that
    a client does alone: *federate* if the shared model, as it is, beats it; else *personalise* if `crossfit` does, which trains
    the shared model further at the client; *stay local* if nothing that is trained with the others will; and *cannot tell* in
    between. The two agree: who stays local deploys a model of its own (or the mean of past costs), who federates or
    personalises one that the others helped to train. Where no model beats the mean of past costs, nobody is told to join.
    ``reason`` says why, and ``shared_model`` what the shared model as it is would lose.

    ``gain`` is the share of the reference's regret that the shared model is expected to save, with ``gain_low`` and
    ``gain_high`` the ends of the ``confidence`` interval and ``probability`` the probability that it is positive;
    ``crossfit_gain``, ``crossfit_low``, ``crossfit_high`` and ``crossfit_probability`` are the same for `crossfit`.
    ``mean_cost`` (the naive choice, the mean of past costs), ``local``, ``local_tuned``, ``federated``, ``finetuned`` and
    ``crossfit`` are held-out relative regrets. ``forecast`` is the relative regret of deciding by the forecast that the client
    brings, and ``naive`` that of the best mean of its last rows, called ``naive_rule``, where its rows have an order.
    ``cause`` is what makes the shared model lose more than the own one: constraint, prices, both, neither, unclear, none (it
    does not lose more) or not examined; ``constraint_share`` is the part that goes
    with the constraint. ``pooled_cost_regret``, ``cost_p_value`` and ``decision_distance`` are signals about the client's
    prices and constraint. ``shared_rows`` counts the client's rows that other clients hold too (or whose costs they hold, as in
    one price zone): they teach little that is new. ``crossing_rows`` counts those that are held out while another client trains
    on their equals (see `dffl.training.crossing`); where they are more than 5 % of a client's rows, its verdict is *cannot
    tell*, it deploys a model of its own, and the regrets of models that the others helped to train, and gains, are not numbers.
    ``nothing`` is true where there is nothing to gain; where all decisions are equally good, the verdict is *cannot tell*.
    What is not known is not a number: if ``quick``, the reference is a closed-form model in ``local``; with fits that were
    passed, only `crossfit` and `local-tuned` are compared, and no cause is examined.
    """

    table: pd.DataFrame
    confidence: float
    folds: int
    blocks: bool
    quick: bool
    fits: dict[str, Fit] = field(default_factory=dict)
    """The fits of `crossfit` and `local-tuned` behind the advice, ready to use; empty if ``quick``."""
    sharing: str = ""
    """Which clients share rows, in a sentence; empty if none do."""
    crossing: str = ""
    """Which clients' held-out rows are training rows of others, and what to do about it; empty if few or none are."""

    def __getitem__(self, client: str) -> dict[str, Any]:
        """One client's row."""
        for row in self.rows():
            if row["client"] == client:
                return row
        names = self.table["client"].tolist()
        known = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise ValueError(f"no client {client!r} in this advice; it has {known}")

    def __str__(self) -> str:
        return "\n".join(
            f"{row['client']}: deploy {row['deploy']} ({METHODS[row['deploy']]}); joining: {row['recommendation']}; "
            f"{row['reason']}; {row['shared_model']}"
            for row in self.rows()
        )

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per client."""
        return [{str(key): value for key, value in row.items()} for row in self.table.to_dict("records")]

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        how = {"confidence": self.confidence, "folds": self.folds, "blocks": self.blocks, "quick": self.quick}
        return {**how, "sharing": self.sharing, "crossing": self.crossing, "clients": jsonable(self.rows())}


class AllEvidence(NamedTuple):
    """The evidence of all clients, and the gains of the shared model and of `crossfit`, if known."""

    evidence: list[Evidence]
    shared: Gains | None
    personal: Gains | None
    causes: list[Cause]
    crossed: Mapping[str, Crossing] = MappingProxyType({})
    """The held-out rows of each client that are training rows of others."""
    remedy: Callable[[Crossing], str] = str
    """Why a client with too many of these gets no verdict, and what to do."""

    equal: frozenset[str] = frozenset()
    """The clients for which all decisions are equally good."""
    free: Sequence[Untrained] = ()
    """The rules of each client that need no training."""

    def undecided(self, client: str) -> bool:
        """Whether too many of a client's held-out rows are training rows of others, so that it cannot be judged."""
        return client in self.crossed and self.crossed[client].many

    @property
    def main(self) -> Gains:
        """What is known."""
        known = self.shared or self.personal
        assert known is not None
        return known


def advise(
    federation: Federation,
    *,
    folds: int = 5,
    blocks: bool = False,
    quick: bool = False,
    fits: Mapping[str, Fit] | None = None,
    confidence: float = 0.9,
    progress: bool | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Advice | AdviceOverTime:
    """Whether each client should federate: the expected gain against staying local, with an interval, and the reason.

    Where all clients have ``times`` and enough rows for `dffl.backtest`, the answer rests on one (`AdviceOverTime`), unless
    ``blocks``, ``quick``, ``fits``, ``split`` or ``privacy`` asks for something else. The rest is about other clients.

    Each client's samples are held out in ``folds``; on them the models of the other folds are compared: what `local`,
    `local-tuned`, `fedavg`, `finetune` and `crossfit` train. ``blocks`` holds out stretches of consecutive samples, as time
    series need; samples with `times` are held out by stretches of time, unless `split` is given. ``quick`` trains nothing:
    closed-form models of the costs replace the networks; the answer takes some seconds and is rougher. ``fits`` are fits of
    `crossfit` and `local-tuned` to the same federation, ``{"crossfit": fit, "local-tuned": fit}``: then nothing is trained
    either, and only these two are compared. ``settings`` are those of `dffl.Settings`; options of the methods are written
    ``finetune.epochs``, ``crossfit.epochs``, ``local-tuned.epochs``.
    """
    require_federation("federation", federation)
    if len(federation) < 2:
        raise ValueError("advise: a federation of one client has no other client to federate with; at least 2 are needed")
    require_whole("folds", folds, least=3)  # the learning curve compares the folds with halves, which are two folds
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), found {confidence!r}")
    if quick and fits is not None:
        raise ValueError("advise: quick uses no fits; leave one of them out")
    otherwise = blocks or quick or fits is not None or any(settings.get(name) for name in ("split", "privacy"))
    if not otherwise and all(client.times is not None for client in federation) and enough_past(federation):
        kept = {name: value for name, value in settings.items() if "." not in name and name not in ("split", "period")}
        return advise_over_time(federation, confidence=confidence, progress=progress, **kept)
    return advise_by_folds(
        federation, folds=folds, blocks=blocks, quick=quick, fits=fits, confidence=confidence, progress=progress, **settings
    )


def advise_by_folds(
    federation: Federation,
    *,
    folds: int = 5,
    blocks: bool = False,
    quick: bool = False,
    fits: Mapping[str, Fit] | None = None,
    confidence: float = 0.9,
    progress: bool | None = None,
    **settings: Unpack[SettingsKeywords],
) -> Advice:
    """`advise` by cross-validation, whether rows have an order or not."""
    rule = settled(federation, _rule(federation, settings, folds, by_position=blocks or fits is not None))
    blocks = blocks or rule.validation_blocks
    if not blocks and all(client.times is not None for client in federation):
        what = "its clients have times, and their samples are held out as if they were in no order"
        warnings.warn(f"advise: {what}: intervals are too narrow; write split='time'", stacklevel=3)
    plan = TrainingPlan.of(folds, blocks, {**settings, "split": rule.split, "period": rule.period})
    alike = sharing_of(federation)
    how: dict[str, Any] = {"blocks": blocks, "seed": plan.settings.seed, "folds": folds}
    how["keys"] = _keys(federation, blocks)
    crossed = {one.client: one for one in crossing_of(federation, plan.settings.splitting, min(folds, max(federation.counts)))}
    many = [one for one in crossed.values() if one.many]
    how["crossed"] = np.array([client.name in {one.client for one in many} for client in federation])
    used: Mapping[str, Fit] = {}
    if quick:
        evidence = regressed(federation, plan.settings, folds)
        shared, personal = estimate(evidence, FEDERATED, LOCAL, quick=True, **how), None
    elif fits is not None:
        check_fits(federation, fits)
        evidence, used = given(federation, fits, held_out(federation, folds, plan.settings.splitting)), fits
        shared, personal = None, estimate(evidence, CROSSFIT, **how)
    else:
        evidence, used = trained(federation, plan, folds, progress)
        shared, personal = estimate(evidence, FEDERATED, **how), estimate(evidence, CROSSFIT, **how)
    why = causes(federation, evidence, "local" if quick else "local_tuned", blocks, plan.settings.seed)
    ruled = str(rule.split)
    equal = _equal(federation, evidence, plan.settings.seed)
    rows = untrained(federation)
    all_evidence = AllEvidence(evidence, shared, personal, why, crossed, lambda entry: no_verdict(entry, ruled), equal, rows)
    table = _table(all_evidence, signals(federation, plan.settings, blocks), alike, confidence, folds, blocks)
    crosses = warning(many, ruled) if many else ""
    return Advice(table, confidence, folds, blocks, quick, dict(used), alike.words(len(federation)), crosses)


def _rule(federation: Federation, settings: Mapping[str, Any], folds: int, by_position: bool) -> Settings:
    """How samples are held out, in all comparisons: by default by stretches of time, if all clients have several of them."""
    split, period = settings.get("split"), settings.get("period")
    if split is None and not by_position and all(client.times is not None for client in federation):
        how = Splitting(rule=TIME, period=whole_period(federation))
        split = TIME if all(divisible(client, how, folds) for client in federation) else None
    return Settings.of(split=split, period=period)


def _keys(federation: Federation, blocks: bool) -> Sequence[np.ndarray] | None:
    """What tells which rows are alike: moments, where rows follow each other; else equal rows, or those of one key."""
    times = [client.times for client in federation if client.times is not None]
    if blocks and len(times) == len(federation):
        return times
    found = alike_rows(federation.clients)
    whole = np.concatenate(found)
    return found if len(np.unique(whole)) < len(whole) else None


def _equal(federation: Federation, evidence: list[Evidence], seed: int) -> frozenset[str]:
    """The clients for which all decisions are equally good; if some method has a loss, they are not."""
    lossless = {entry.name for entry in evidence if not any(getattr(entry, name).mean() > NOTHING for name in REGRETS)}
    return frozenset(client.name for client in federation if client.name in lossless and all_decisions_equal(client, seed))


def recommend(shared: float, personal: float, nothing: bool) -> str:
    """From the probabilities that the shared model and `crossfit` are better than the own model; NaN is unknown."""
    known = [gain for gain in (shared, personal) if not math.isnan(gain)]
    if nothing or max(known) <= UNLIKELY:
        return "stay local"
    if shared >= LIKELY:
        return "federate"
    return "personalise" if personal >= LIKELY else "cannot tell"


def _table(collected: AllEvidence, why: Signals, alike: Sharing, confidence: float, folds: int, blocks: bool) -> pd.DataFrame:
    context = {
        "median": float(np.median([entry.n for entry in collected.evidence])),
        "distance": float(np.median(why.decision_distance)),
        "steep": math.expm1(collected.main.curve.own) if collected.shared else 0.0,
    }
    shared, personal = (
        _gain_columns(gains, prefix, confidence, len(collected.evidence))
        for gains, prefix in ((collected.shared, ""), (collected.personal, "crossfit_"))
    )
    common, rows = alike.counts, []
    for place, entry in enumerate(collected.evidence):
        row: dict[str, Any] = {"client": entry.name, "n": entry.n, "deploy": "", "recommendation": ""}
        row |= {name: values[place] for name, values in (shared | personal).items()}
        row |= {name: float(getattr(entry, name).mean()) for name in REGRETS} | collected.free[place]._asdict()
        row["shared_rows"] = common.get(entry.name, 0)
        row["crossing_rows"] = collected.crossed[entry.name].rows if entry.name in collected.crossed else 0
        row["nothing"] = bool(collected.main.nothing[place])
        row |= {
            "cause": collected.causes[place].cause,
            "constraint_share": collected.causes[place].share,
            "pooled_cost_regret": why.pooled_cost_regret[place],
            "cost_p_value": why.cost_p_value[place],
            "decision_distance": why.decision_distance[place],
        }
        if collected.undecided(entry.name) and not row["nothing"]:
            row |= {"cause": NOT_EXAMINED, "constraint_share": math.nan} | dict.fromkeys(TOGETHER, math.nan)
            row["recommendation"], row["deploy"] = settle("cannot tell", _expected(row, "", collected, place, folds, blocks))
            rows.append(row | {"reason": collected.remedy(collected.crossed[entry.name]), "shared_model": shared_model(row)})
            continue
        if entry.name in collected.equal:
            row["recommendation"], row["deploy"] = settle("cannot tell", _expected(row, "", collected, place, folds, blocks))
            rows.append(row | {"reason": ALL_EQUAL, "shared_model": shared_model(row)})
            continue
        verdict = recommend(row["probability"], row["crossfit_probability"], row["nothing"])
        row["recommendation"], row["deploy"] = settle(verdict, _expected(row, verdict, collected, place, folds, blocks))
        tuning = verdict == "stay local" != row["recommendation"]
        more = {"unknown": bool(collected.main.unknown[place]), "tuning": tuning}
        rows.append(row | {"reason": reason(row | more, **context), "shared_model": shared_model(row)})
    return pd.DataFrame(rows)


def _gain_columns(gains: Gains | None, prefix: str, confidence: float, clients: int) -> dict[str, np.ndarray]:
    names = (f"{prefix}gain", f"{prefix or 'gain_'}low", f"{prefix or 'gain_'}high", f"{prefix}probability")
    if gains is None:
        return {name: np.full(clients, np.nan) for name in names}
    return dict(zip(names, (gains.gain, *gains.interval(confidence), gains.probability), strict=True))


def settle(verdict: str, expected: dict[str, float]) -> tuple[str, str]:
    """The verdict on joining and the method to deploy, made to agree. ``expected`` are the regrets that methods will have.

    Nobody is told to stay local while a method that needs the others is expected to lose less: that is undecided. Nor is
    anybody told to join for a model that loses more than the mean of past costs, or than the client's own forecast.
    """
    best = min(expected, key=lambda name: expected[name])
    allowed = {"federate": JOINT, "personalise": PERSONAL}.get(verdict)
    if (verdict == "stay local" and best in JOINT) or (allowed is not None and best in ("mean-cost", *RULES)):
        return "cannot tell", best
    if allowed is None:
        return verdict, best
    return verdict, min((name for name in expected if name in allowed), key=lambda name: expected[name])


def _expected(
    row: dict[str, Any], verdict: str, collected: AllEvidence, place: int, folds: int, blocks: bool
) -> dict[str, float]:
    """The expected regret of each method, relative to the expected regret of `local-tuned`."""
    free = {FORECAST: row["forecast"], row["naive_rule"]: row["naive"]}
    free = {name: value for name, value in free.items() if not math.isnan(value)}
    if collected.personal is None:
        name, column = ("fedavg", "federated") if verdict == "federate" else ("local", "local")
        return {name: row[column], **free}
    if row["nothing"]:
        return {"local-tuned": row["local_tuned"], "mean-cost": row["mean_cost"]}
    curve = collected.personal.curve
    tuned_alone = max(row["local_tuned"] * math.exp(-LOCAL_TUNED.fall(curve)), 1e-9)
    expected = {"local-tuned": 1.0, "mean-cost": row["mean_cost"] / tuned_alone}
    # A naive rule is replaced because of what was measured, not because of what more rows may bring.
    expected |= {name: value / max(row["local_tuned"], 1e-9) for name, value in free.items()}
    if collected.shared is not None:
        expected["local"] = row["local"] * math.exp(-LOCAL.fall(curve, folds, blocks)) / tuned_alone
    if collected.undecided(row["client"]):
        return expected
    expected["crossfit"] = math.exp(collected.personal.ratio[place])
    if collected.shared is not None:
        expected["fedavg"] = math.exp(collected.shared.ratio[place])
        if row["federated"] > 0:
            # Tuning is compared with the shared model, from which it starts; the ratio of own and shared has been shrunk.
            tuned = expected["fedavg"] * row["finetuned"] / row["federated"]
            if collected.shared.ratio[place] > 0:
                # If it loses more, its ratio was cut and moved towards that of the fleet, which is not due to tuning.
                tuned = max(tuned, row["finetuned"] * math.exp(-FEDERATED.fall(curve, folds, blocks)) / tuned_alone)
            expected["finetune"] = tuned
    return expected
