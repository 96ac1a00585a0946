"""A trainer of one's own: each client keeps a slow copy of its model at home."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import dffl
from dffl.training.trainers.base import fetched


@dataclass(frozen=True)  # a value: equal ones are trained once
class SlowCopy(dffl.FedAvg):
    """FedAvg; beside it each client averages the models that it has trained."""

    name: ClassVar[str] = "slow-copy"
    keep: float = 0.9

    def visit(self, site: Any, sent: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """At the clients' site: the first axis of every array counts its clients."""
        answer = super().visit(site, sent)  # {"vector": ...}, for the aggregator
        slow = site.kept("slow", site.initial)  # a first visit starts from `initial`
        site.keep("slow", self.keep * slow + (1 - self.keep) * answer["vector"])
        return answer

    def finish(self, run: dffl.Run, part: Any, state: Any) -> np.ndarray:
        """The result: what the clients kept, one row for each."""
        return fetched(run, self, part, "slow")

    def blank(self, run: dffl.Run, part: Any) -> np.ndarray:
        """The same shape in zeros, for the rehearsal."""
        engine = run.engine(part)
        return np.zeros((len(engine.names), engine.initial.size), engine.initial.dtype)


@dffl.method("slow-copy", label="Slow copy")
def slow_copy(run: dffl.Run, *, keep: float = 0.9) -> dffl.Outcome:
    """Each client decides by its slow copy."""
    return dffl.Outcome(run.personal(run.trained(SlowCopy(keep=keep))))


if __name__ == "__main__":
    options = {"seed": 0, "clients": 4, "samples": 40}
    federation = dffl.synthetic.knapsack(**options)
    test = dffl.synthetic.knapsack(split="test", **options)
    methods = ["local", "fedavg", "slow-copy", ("slow-copy", {"keep": 0.5})]
    table = dffl.compare(federation, methods, test=test, rounds=10)
    print((100 * dffl.summarise(table)[["mean", "max"]]).round(2).to_string())
