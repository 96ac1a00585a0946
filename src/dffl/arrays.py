"""Types of arrays for signatures: n samples, p features, d costs; a decision has d numbers too.

Names that end in ``At`` allow any axes before the last one. Other modules import these names only for type checkers (``if
TYPE_CHECKING``), because the import of JAX is slow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, UInt32, UInt64

# The samples of a client and results for them: NumPy, float64.
Features = Float[np.ndarray, "n p"]
Costs = Float[np.ndarray, "n d"]
Decisions = Float[np.ndarray, "n d"]
PerSample = Float[np.ndarray, "n"]
CostsAt = Float[np.ndarray, "... d"]
DecisionsAt = Float[np.ndarray, "... d"]
RowNumbers = UInt64[np.ndarray, "n"]

# Arrays in compiled programs.
ScaledFeatures = Float[Array, "n p"]
ScaledCosts = Float[Array, "n d"]
ScaledDecisions = Float[Array, "n d"]
LossPerSample = Float[Array, "n"]
Vectors = Float[Array, "... d"]
Values = Float[Array, "..."]
TruthValues = Bool[Array, "..."]

# Arrays that engines pass to the client update: NumPy arrays, or traced arrays in a compiled program.
Model = Float[Any, "numbers"]
Scalar = Float[Any, ""]
Table = Float[Any, "rows columns"]
Minibatches = Int[Any, "steps rows"]
StepCount = Int[Any, ""]
Key = UInt32[Any, "2"]
StepKeyWords = UInt32[Any, "steps 2"]
StepNoise = Float[Any, "steps numbers"]
