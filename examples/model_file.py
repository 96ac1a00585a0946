"""A model from an MPS file: whole numbers, helpers with costs of their own, names."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import dffl

# An oven is on in two of three hours. The prices of the hours are predicted.
# start_t is at least 1 if the oven starts in hour t; it costs 6, which is known.
MPS = """NAME oven
ROWS
 N cost
 E hours
 L begin1
 L begin2
 L begin3
COLUMNS
 M1 'MARKER' 'INTORG'
 on_1 hours 1 begin1 1
 on_1 begin2 -1
 on_2 hours 1 begin2 1
 on_2 begin3 -1
 on_3 hours 1 begin3 1
 M2 'MARKER' 'INTEND'
 start_1 cost 6 begin1 -1
 start_2 cost 6 begin2 -1
 start_3 cost 6 begin3 -1
RHS
 RHS hours 2
BOUNDS
 BV BND on_1
 BV BND on_2
 BV BND on_3
ENDATA
"""


def prices(seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Features, and prices in columns whose names end like those of the variables."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 2))
    c = 20 + x @ [[6.0, -3.0, 2.0], [1.0, 5.0, -4.0]] + rng.normal(size=(60, 3))
    return x, pd.DataFrame(c, columns=["price_2", "price_3", "price_1"])


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "oven.mps"
    path.write_text(MPS)
    oven = dffl.ModelFile(path, predicted="on_*")  # price_3 belongs to on_3

bakery = dffl.Client("bakery", *prices(0), oven)
laundry = dffl.Client("laundry", *prices(1), dffl.TopK(3, 2))
federation = dffl.Federation([bakery, laundry])
fit = dffl.fit(federation, "interp-spo", rounds=5)
print(fit.evaluate(federation)[["client", "relative_regret"]].round(4).to_string())

fit.save("oven.dffl")  # with the text of the model: its file is no longer there
loaded = dffl.load("oven.dffl")
plan = loaded.decide("bakery", bakery.x[:3])
print(pd.DataFrame(plan, columns=loaded.members["bakery"].set.variables).to_string())
