"""What each method is, in words that need no paper: naive, of a client alone, or trained together."""

from __future__ import annotations

from dffl.report.colours import on_both
from dffl.report.data import Method
from dffl.training.methods import colour_of, label_of

NAIVE = ("mean-cost", "forecast", "nearest", "ridge")
ALONE = ("local", "local-tuned", "trees")
WORDS = {
    "mean-cost": "the mean of past costs, without features",
    "forecast": "the forecast that the client already has",
    "nearest": "the costs of the most similar past samples",
    "ridge": "a straight-line model of the client's own costs",
    "ridge-pooled": "one straight-line model of all clients' costs",
    "trees": "a random forest of the client's own samples",
    "local": "the client's own model, trained for a fixed time",
    "local-tuned": "the client's own model, tuned with as much care as crossfit",
    "fedavg": "one model that all clients share, as it is",
    "interp-mse": "a mix of own and shared model, weighted by prediction errors",
    "interp-spo": "a mix of own and shared model, weighted by decisions",
    "interp-refit": "a mix of own and shared model, weighted in folds",
    "finetune": "the shared model, trained further at each client",
    "finetune-mix": "the shared model, trained further at each client and mixed with it",
    "crossfit": "shared models of several folds, trained further at each client",
}
ORDER = ("naive", "alone", "together")


def known(title: str) -> Method:
    """A method by its title, which may have options behind it: ``ditto(pull=0.1)``."""
    name = title.partition("(")[0]
    kind = "naive" if name in NAIVE else "alone" if name in ALONE else "together"
    return Method(title, kind, WORDS.get(name) or label_of(name), on_both(colour_of(name)))
