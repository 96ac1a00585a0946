"""What one process of `against_baseline.py` computes, with whichever version of dffl it finds first.

    python benchmarks/baseline_cases.py CASE --package FOLDER --out FILE [--dtype float64] [...]

The same functions run under the older package and under the working tree, so they use public names alone. What has no public
name, or has moved, is imported in one place: `_energy_study`, `_quick_study`, `_shortened`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

PREDICTED = 100
"""How many test samples of a client make its mean prediction in `quick`."""
FINETUNE_SHORT = (0, 3, 10)
"""What `finetune` chooses from where ``--rounds`` shortens training."""
SIZES = range(50, 200)
"""The numbers of samples in `sizes`, one for each client."""
STRIDE = 9
"""Every ninth configuration, around and around: the first four are both problems, balanced and not."""


def demo(options: argparse.Namespace) -> pd.DataFrame:
    """The table of `dffl demo`, a row a client and method."""
    found = _module("demo", "cases.demo").run(seed=0, progress=False, dtype=options.dtype)
    return found[1] if isinstance(found, tuple) else found.table


def plan(options: argparse.Namespace) -> dict[str, Any]:
    """The configurations and the protocol of the quick study. The baseline's are used for both sides."""
    study = _quick_study()
    jobs = [dict(job.parameters) for job in study.jobs]
    return {"jobs": [jobs[(STRIDE * place) % len(jobs)] for place in range(len(jobs))], "protocol": study.protocol}


def quick(options: argparse.Namespace) -> pd.DataFrame:
    """The quick study at full precision: a row a configuration, method and client.

    ``mean_prediction`` moves with every weight of a predictor, where regrets only move when a decision does.
    """
    import dffl

    planned = json.loads(options.plan.read_text())
    protocol, tables = planned["protocol"], []
    methods, short = (protocol["methods"], {}) if options.rounds is None else _shortened(protocol["methods"], options.rounds)
    for number, job in enumerate(planned["jobs"][: options.configurations]):
        rest = {name: value for name, value in job.items() if name != "problem"}
        make = {"knapsack": dffl.synthetic.knapsack, "portfolio": dffl.synthetic.portfolio}[job["problem"]]
        settings = protocol["settings"] | short | {"dtype": options.dtype, "seed": job["seed"]}
        validation = make(split="validation", samples=protocol["validation_samples"], **rest)
        fits = dffl.fit_all(make(**rest), methods, validation=validation, progress=False, **settings)
        test = make(split="test", samples=protocol["test_samples"], **rest)
        for method in protocol["methods"]:
            means = [float(fits[method].predict(client.name, client.x[:PREDICTED]).mean()) for client in test]
            tables.append(fits[method].evaluate(test).assign(mean_prediction=means, configuration=number))
    return pd.concat(tables, ignore_index=True)


def energy(options: argparse.Namespace) -> pd.DataFrame:
    """The rows behind `dffl energy run`, a row a zone, seed and method, naive rules among them."""
    study, protocol = _energy_study()
    whole = study(options.data, protocol(lags=options.lags, settings={"dtype": options.dtype}), range(options.seeds))
    places = getattr(whole, "places", {})  # older versions handed the panel on in the environment
    tables = [whole.task(**whole.protocol, **job.parameters, **places).assign(**job.parameters) for job in whole.jobs]
    return pd.concat(tables, ignore_index=True)


def sizes(options: argparse.Namespace) -> None:
    """Fit, evaluate and compare with 150 clients of as many sizes, or of one size."""
    import dffl

    samples = list(SIZES) if options.distinct else [(SIZES.start + SIZES.stop) // 2] * len(SIZES)
    train, test = (dffl.synthetic.knapsack(0, split, clients=len(SIZES), samples=samples) for split in ("train", "test"))
    settings: dict[str, Any] = {"rounds": 5, "local_epochs": 1, "dtype": options.dtype, "progress": False}
    dffl.fit(train, "interp-spo", **settings).evaluate(test)
    dffl.compare(train, test=test, **settings)


def _shortened(methods: list[str], rounds: int) -> tuple[list[Any], dict[str, Any]]:
    """The methods and the settings of so many rounds, with fewer epochs of fine-tuning: a setting once, now its option."""
    from dffl import Settings

    if "finetune_epochs" in {one.name for one in fields(Settings)}:
        return list(methods), {"rounds": rounds, "finetune_epochs": FINETUNE_SHORT}
    fewer = ("finetune", {"epochs": FINETUNE_SHORT})
    return [fewer if name == "finetune" else name for name in methods], {"rounds": rounds}


def _quick_study() -> Any:
    return _module("dffl_studies.paper.study", "cases.paper.study", "studies.paper").quick()


def _energy_study() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function that makes the energy study of a panel, and what is asked of it."""
    asked = _module("dffl_studies.energy.setup", "cases.energy.setup", "studies.energy.protocol")
    made = _module("dffl_studies.energy.study", "cases.energy.study", "studies.energy.study")
    return made.study, getattr(asked, "Setup", None) or asked.Protocol


def _module(*homes: str) -> Any:
    """The first of these modules that this version of dffl has."""
    for home in homes:
        try:
            return import_module(home if home.startswith("dffl_studies") else f"dffl.{home}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("dffl"):  # a dependency that is missing is another matter
                raise
    raise ModuleNotFoundError(f"dffl has none of {', '.join(homes)}")


def require_package(folder: Path) -> str:
    """The file of the dffl that is imported; one from another folder is refused."""
    import dffl

    found = Path(dffl.__file__).resolve()
    if not found.is_relative_to(folder.resolve()):
        raise SystemExit(f"dffl comes from {found}, and not from {folder}")
    return str(found)


CASES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "demo": demo,
    "plan": plan,
    "quick": quick,
    "energy": energy,
    "sizes": sizes,
}


def main() -> None:
    """Compute one case, write it, and print how long it took as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--package", type=Path, required=True, help="the folder that dffl must come from")
    parser.add_argument("--out", type=Path, help="a Parquet file (JSON for plan); default: nothing is written")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--plan", type=Path, help="quick: the file that the case plan has written")
    parser.add_argument("--configurations", type=int, help="quick: how many; default: all")
    parser.add_argument("--rounds", type=int, help="quick: fewer than the study's, and fewer epochs of fine-tuning")
    parser.add_argument("--data", type=Path, help="energy: the folder with prices and weather")
    parser.add_argument("--lags", action="store_true", help="energy: with past prices")
    parser.add_argument("--seeds", type=int, default=1, help="energy: how many")
    parser.add_argument("--distinct", action="store_true", help="sizes: every client has another")
    options = parser.parse_args()
    started = time.perf_counter()
    package = require_package(options.package)
    result = CASES[options.case](options)
    seconds = time.perf_counter() - started
    if options.out is not None:
        unfinished = options.out.with_suffix(".part")
        if isinstance(result, pd.DataFrame):
            result.to_parquet(unfinished, index=False)
        else:
            unfinished.write_text(json.dumps(result, indent=1))
        unfinished.replace(options.out)
    print(json.dumps({"package": package, "value": seconds}))


if __name__ == "__main__":
    main()
