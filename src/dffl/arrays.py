"""Arrays by what they hold, for signatures: n samples, p features, d costs; a decision has d numbers too.

Shapes of dffl's arrays are written here once. A name ends in ``At`` where any axes may come before the last one. Other modules
import these names for type checkers alone (``if TYPE_CHECKING``), since JAX is slow to import.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, UInt32, UInt64

# A client's samples, and what is computed of them: NumPy, in float64.
Features = Float[np.ndarray, "n p"]
Costs = Float[np.ndarray, "n d"]
Decisions = Float[np.ndarray, "n d"]
PerSample = Float[np.ndarray, "n"]
CostsAt = Float[np.ndarray, "... d"]
DecisionsAt = Float[np.ndarray, "... d"]
RowNumbers = UInt64[np.ndarray, "n"]

# What compiled programs compute with.
ScaledFeatures = Float[Array, "n p"]
ScaledCosts = Float[Array, "n d"]
ScaledDecisions = Float[Array, "n d"]
LossPerSample = Float[Array, "n"]
Vectors = Float[Array, "... d"]
Values = Float[Array, "..."]
TruthValues = Bool[Array, "..."]

# What engines hand to the client update: NumPy arrays, and traced ones inside the compiled program.
Model = Float[Any, "numbers"]
Scalar = Float[Any, ""]
Table = Float[Any, "rows columns"]
Minibatches = Int[Any, "steps rows"]
StepCount = Int[Any, ""]
Key = UInt32[Any, "2"]
StepKeyWords = UInt32[Any, "steps 2"]
StepNoise = Float[Any, "steps numbers"]
