"""The paper's grid and its fits."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest

import dffl
from dffl.cases.paper import study as paper
from dffl.cases.paper import variants
from dffl.studies import Study, run

SMALL = {
    "methods": ["mean-cost", "local", "fedavg", "interp-spo", "oracle-interp-spo", "finetune"],
    "test_samples": 40,
    "validation_samples": 30,
    "settings": {"rounds": 2, "local_epochs": 2, "finetune.epochs": [0, 2]},
}
CONFIGURATION = {"seed": 3, "imbalanced": True, "degree": 4, "eta_obj": 0.5, "eta_constr": 1.0, "problem": "knapsack"}


def test_the_grid_is_the_papers():
    study = paper.study()
    assert len(study.jobs) == 2560
    jobs = pd.DataFrame([job.parameters for job in study.jobs])
    assert jobs.nunique().to_dict() == {
        "noise": 2, "seed": 5, "imbalanced": 2, "degree": 4, "eta_obj": 4, "eta_constr": 4, "problem": 2,
    }  # fmt: skip
    assert (jobs["noise"][:1280] == 0).all(), "what the paper's tables need comes first"


def test_the_quick_version_covers_every_pair_of_axes_evenly():
    jobs = pd.DataFrame([job.parameters for job in paper.quick().jobs])
    assert len(jobs) == 32
    for one, other in itertools.combinations(["imbalanced", "degree", "eta_obj", "eta_constr", "problem"], 2):
        counts = jobs.groupby([one, other]).size()
        assert len(counts) == jobs[one].nunique() * jobs[other].nunique()
        assert counts.min() == counts.max()


@pytest.mark.slow
def test_rows_are_those_of_compare():
    rows = paper.fit_configuration(**CONFIGURATION, noise=0.0, **SMALL)
    common = {k: v for k, v in CONFIGURATION.items() if k != "problem"}
    federation = dffl.synthetic.knapsack(**common)
    test = dffl.synthetic.knapsack(split="test", samples=40, **common)
    validation = dffl.synthetic.knapsack(split="validation", samples=30, **common)
    alike = {"test": test, "validation": validation, "starts": 1, "seed": 3, "progress": False}
    table = dffl.compare(federation, SMALL["methods"], **alike, **SMALL["settings"])
    assert rows["method"].tolist() == table["method"].tolist()
    assert rows["n"].tolist() == table["n"].tolist()
    np.testing.assert_allclose(rows["relative_regret"], table["relative_regret"], rtol=1e-6)
    np.testing.assert_allclose(rows["lambda"], table["lambda"], rtol=1e-6)
    assert rows["expected_relative_regret"].isna().all()
    saturated = {client.name: client.set.saturated for client in test}
    assert rows["saturated"].tolist() == [saturated[name] for name in table["client"]]
    assert 0 < rows["saturated"].mean() < 1
    two = paper.fit_configuration(**CONFIGURATION, noise=0.0, **SMALL | {"methods": ["interp-spo", "fedavg"]})
    alike = [rows[rows["method"] == method] for method in ("interp-spo", "fedavg")]
    pd.testing.assert_frame_equal(two, pd.concat(alike, ignore_index=True))  # whatever other methods are asked for


def test_both_kinds_of_relative_regret_and_both_judges():
    settings = {"rounds": 2, "local_epochs": 2}
    two = SMALL | {"methods": ["mean-cost", "local"], "settings": settings}
    rows = paper.fit_configuration(**CONFIGURATION, noise=1.0, **two)
    common = {k: v for k, v in CONFIGURATION.items() if k != "problem"} | {"noise": 1.0}
    fit = dffl.fit(dffl.synthetic.knapsack(**common), "local", seed=3, progress=False, **settings)
    client = dffl.synthetic.knapsack(split="test", samples=40, **common)[0]
    row = rows[(rows["method"] == "local") & (rows["client"] == 1)].iloc[0]
    predicted = fit.predict(client.name, client.x)
    for prefix, costs in (("", client.c), ("expected_", client.c_mean)):
        relative = dffl.relative_regret(predicted, costs, client.set, maximize=True)
        ratio = dffl.mean_of_regret_ratios(predicted, costs, client.set, maximize=True)
        assert row[f"{prefix}relative_regret"] == pytest.approx(float(relative), rel=1e-4)
        assert row[f"{prefix}mean_ratio"] == pytest.approx(float(ratio), rel=1e-4)
    assert row["relative_regret"] > row["expected_relative_regret"], "noise that nobody can foresee costs regret"


def test_the_best_possible_decisions_lose_what_nobody_can_foresee():
    small = SMALL | {"settings": {"rounds": 2, "local_epochs": 2}}
    known = small | {"methods": [paper.KNOWN_MEAN]}
    for problem in paper.PROBLEMS:
        where = CONFIGURATION | {"problem": problem}
        rows = paper.fit_configuration(**where, noise=1.0, **known)
        assert rows["n"].tolist() == [500] * 10 + [50] * 10
        assert (rows["relative_regret"] > 0).any()
        assert (rows["expected_relative_regret"] == 0).all()
        trained = paper.fit_configuration(**where, noise=1.0, **(small | {"methods": ["local", paper.KNOWN_MEAN]}))
        means = trained.groupby("method")["relative_regret"].mean()
        assert means[paper.KNOWN_MEAN] < means["local"]
        pd.testing.assert_frame_equal(rows, trained[trained["method"] == paper.KNOWN_MEAN].reset_index(drop=True))
        quiet = paper.fit_configuration(**where, noise=0.0, **known)
        assert (quiet["relative_regret"] == 0).all()


def test_one_factor_for_all_costs_changes_nothing():
    """Why noise drawn once, and not for every cost, could not show in the paper's tables: fits do not see a client's scale."""
    plain = dffl.synthetic.portfolio(seed=1, clients=3, degree=6)
    scaled = dffl.Federation([dffl.Client(c.name, c.x, 0.37 * c.c, c.set, c.maximize) for c in plain])
    test = dffl.synthetic.portfolio(seed=1, clients=3, degree=6, split="test", samples=50)
    settings = {"rounds": 3, "progress": False}
    ours = dffl.fit(plain, "fedavg", **settings).evaluate(test)["relative_regret"]
    theirs = dffl.fit(scaled, "fedavg", **settings).evaluate(test)["relative_regret"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_workers(tmp_path):
    jobs = [job for job in paper.quick().jobs if job.parameters["eta_obj"] == 0 and job.parameters["eta_constr"] <= 0.25]
    study = Study("small", paper.fit_configuration, jobs, SMALL)
    one = run(study, tmp_path / "one", workers=1, progress=False)
    two = run(study, tmp_path / "two", workers=2, progress=False)
    assert not one.failed
    pd.testing.assert_frame_equal(one.rows, two.rows)


def test_every_variant_has_its_part_of_the_grid():
    study = variants.study()
    jobs = pd.DataFrame([job.parameters for job in study.jobs])
    assert len({job.key for job in study.jobs}) == len(study.jobs), "equal fits run once"
    for variant in variants.COMBINED:
        part = variants.rows_of(variant, jobs[jobs["seed"].isin(variants.FIRST)])
        assert len(part) == 32 * len(variants.FIRST), variant
        assert (part.groupby(["problem", "seed", "degree"]).size() == 4).all()
        assert set(part.loc[part["eta_obj"] > 0, "turned"]) == {variant.turned}
    for variant in (*variants.FINALISTS, *variants.AROUND):
        part = variants.rows_of(variant, jobs)
        assert len(part) == 160, variant
    assert variants.Variant() in variants.FINALISTS, "the settings of the authors' later code are always judged"


def test_the_part_of_the_grid_is_balanced():
    jobs = pd.DataFrame([job.parameters for job in paper.study().jobs if not job.parameters["noise"]])
    part = jobs[[variants.in_part(job) for job in jobs.to_dict("records")]]
    assert (part.groupby(["seed", "problem"]).size() == 16).all()
    four = part[part["seed"] < 4]
    assert len(four.drop_duplicates(["eta_obj", "eta_constr"])) == 16
    for level in ("eta_obj", "eta_constr", "degree"):
        counts = four.groupby([level, "imbalanced"]).size()
        assert (counts == counts.iloc[0]).all()


def test_budgets_drawn_once_are_equal_in_all_seeds():
    make = partial(dffl.synthetic.knapsack, clients=2, samples=4, eta_constr=1.0)
    first, second = make(seed=1, constraint_seed=0), make(seed=2, constraint_seed=0)
    assert [client.set.budget for client in first] == [client.set.budget for client in second]
    np.testing.assert_array_equal(first[0].set.weights, second[0].set.weights)
    assert not np.array_equal(first[0].c, second[0].c)
    assert make(seed=1).clients[0].set.budget != first[0].set.budget
    np.testing.assert_array_equal(make(seed=0).clients[0].c, make(seed=0, constraint_seed=0).clients[0].c)
    bounds = [dffl.synthetic.portfolio(seed, clients=1, constraint_seed=5)[0].set.min_entropy for seed in (1, 2)]
    assert bounds[0] == bounds[1]
    with pytest.raises(ValueError, match="constraint_seed"):
        make(constraint_seed=-1)


def test_a_variant_counts_when_it_is_finished():
    first = variants.Variant()
    jobs = [job for job in variants.study().jobs if job.parameters["seed"] in variants.FIRST]
    mine = [job for job in jobs if len(variants.rows_of(first, pd.DataFrame([job.parameters])))]
    lines = []
    for job in mine:
        for method in variants.PAPER_SIX:
            for client in range(1, 21):
                n = 100 if not job.parameters["imbalanced"] else 500 if client <= 10 else 50
                lines.append({"job": job.key, "method": method, "client": client, "n": n, **job.parameters})
    rows = pd.DataFrame(lines).assign(saturated=False, relative_regret=0.01, mean_ratio=0.02, **{"lambda": np.nan})
    table = next(iter(variants.tables(rows, variants.study())))
    assert table.name == "variants-first"
    assert {cell.row for cell in table.cells} == {(first.words(), "in total"), (first.words(), "per sample")}
    assert not variants.tables(rows[rows["job"] != mine[0].key], variants.study()), "half a variant would mislead"
