"""A method: each client mixes its own model with the shared one."""

import numpy as np

import dffl


@dffl.method("half-shared", words="a fixed mix of the own and the shared model")
def half_shared(run: dffl.Run, *, share: float = 0.5) -> dffl.Outcome:
    """``share`` is the weight of the shared model."""
    own = run.personal(run.trained(dffl.Local()))
    common, newcomer = run.common(run.trained(dffl.FedAvg()))
    mixed = [
        dffl.MixedPredictor(a, b, np.asarray(share))
        for a, b in zip(own, common, strict=True)
    ]
    return dffl.Outcome(mixed, shared=newcomer)
