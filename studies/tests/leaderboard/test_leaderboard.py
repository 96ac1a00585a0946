"""The leaderboard: what it searches and judges, who is distinguished from whom, and what its tables say."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dffl.losses import Loss
from dffl.training.aggregators.server import Momentum
from dffl.training.methods import METHODS, request
from dffl_studies.leaderboard import study, tables
from dffl_studies.leaderboard.entries import ENTRIES, FAST, PLAIN, crossed, in_words, read, written
from dffl_studies.leaderboard.federations import PROBLEMS, SEARCH_SEED, SEEDS, divided, search_part, synthetic_part
from dffl_studies.leaderboard.ranking import different, standings
from dffl_studies.running.study import Study

RESULTS = Path(__file__).parents[2] / "results" / "leaderboard"
TINY: dict[str, Any] = {"rounds": 1, "local_epochs": 1}


# What takes part.


def test_every_method_and_every_loss_takes_part() -> None:
    """A method that is added must be entered here, or be named as one that cannot be judged like the others."""
    elsewhere = {"forecast", "oracle-interp-spo", "oracle-interp-mse"}  # they need a forecast, or samples that others lack
    own = {name for name, one in METHODS.items() if one.fit.__module__.startswith("dffl.")}
    assert {entry.method for entry in ENTRIES.values()} == own - elsewhere
    losses = {name.split(", ")[1] for name in ENTRIES if ENTRIES[name].kind == "loss"}
    assert losses == {name for name, kind in Loss.known.items() if kind.trains and kind.__module__.startswith("dffl.")}


def test_every_candidate_is_one_that_its_method_takes() -> None:
    for entry in ENTRIES.values():
        assert 1 <= len(entry.candidates) <= 4
        assert len({written(candidate) for candidate in entry.candidates}) == len(entry.candidates)
        for candidate in entry.candidates:
            asked, settings = request(entry.method, read(written(candidate)))
            assert asked.method.name == entry.method
            from dffl.training import Settings

            Settings.of(**settings)


def test_candidates_are_texts_that_are_read_back() -> None:
    assert read(written(FAST))["aggregate"] == Momentum(rate=0.7, momentum=0.5)
    assert in_words(written({**FAST, "judge": "regret"})) == "fast, judge regret"
    assert in_words(written(PLAIN)) == "plain"
    assert in_words(written({})) == "as it is"
    assert crossed([{"a": 1}, {"a": 2}], [{"b": 3}]) == ({"a": 1, "b": 3}, {"a": 2, "b": 3})


# What is judged on.


def test_the_search_sees_nothing_that_judges() -> None:
    assert SEARCH_SEED not in SEEDS
    assert {part["seed"] for part in search_part()} == {SEARCH_SEED}
    assert Counter(part["degree"] for part in search_part()) == {2: 3, 4: 3, 6: 3, 8: 3}


def test_the_balanced_part_covers_every_pair_of_axes_evenly() -> None:
    part = synthetic_part([0])
    assert len(part) == 48
    assert len(synthetic_part([0], full=True)) == 384
    for one, other in itertools.combinations(("problem", "degree", "eta_obj", "eta_constr", "imbalanced"), 2):
        counts = Counter((job[one], job[other]) for job in part)
        assert len(set(counts.values())) == 1, (one, other)
    # Every stretch of twelve has every degree and heterogeneity of each problem.
    for start, problem in itertools.product(range(0, 48, 12), PROBLEMS):
        some = [job for job in part[start : start + 12] if job["problem"] == problem]
        assert {job["degree"] for job in some} == {2, 4, 6, 8}
        assert {job["eta_obj"] for job in some} == {0.0, 0.25, 0.5, 1.0}


def test_rows_of_before_there_were_paths_are_still_those_of_their_jobs() -> None:
    """A problem that joins adds jobs. It changes no name of a job, and nothing else that a folder is compared with."""
    entries = list(ENTRIES.values())
    zones = Path("nowhere")
    search = study.search_study(entries, zones)
    there = pd.read_parquet(RESULTS / "search" / "rows.parquet")
    before = [job for job in search.jobs if job.parameters["problem"] != "shortest-path"]
    assert len(before) == 784
    assert {job.key for job in before} <= set(there["job"])
    judged = study.judging_study(
        study.choose(there[there["job"].isin({job.key for job in search.jobs})], entries), entries, zones
    )
    kept = {job.key for job in judged.jobs if job.parameters["problem"] != "shortest-path"}
    assert len(kept & set(pd.read_parquet(RESULTS / "judged" / "jobs.parquet")["job"])) >= 1050
    for name, one in (("search", search), ("judged", judged)):
        described = json.loads((RESULTS / name / "study.json").read_text())
        assert (described["study"], described["protocol"]) == (one.name, one.protocol)


def test_paths_are_judged_with_pyepos_noise_on_the_clients_of_training() -> None:
    made = divided(False, None, seed=0, problem="shortest-path", imbalanced=False, degree=2, eta_obj=0.25, eta_constr=1.0)
    assert made.train.counts == [100] * 20
    assert made.test.counts == [1000] * 20
    for train, test in zip(made.train, made.test, strict=True):
        np.testing.assert_array_equal(train.set.closed, test.set.closed)
        assert test.c_mean is not None
        assert (test.c / test.c_mean).std() == pytest.approx(0.5 / np.sqrt(3), rel=0.05)


def test_zones_need_their_folder() -> None:
    from dffl_studies.leaderboard.federations import zones_part

    with pytest.raises(ValueError, match="zones, weather: pass the folder of the zones' tables with --zones"):
        divided(False, None, **zones_part()[0])


def test_jobs_come_in_an_order_that_may_be_stopped() -> None:
    entries = [ENTRIES[name] for name in ("mean-cost", "finetune", "finetune, mse")]
    jobs = [job.parameters for job in study.judging_study(study.first_choice(entries), entries, None, [0]).jobs]
    assert Counter(job["entry"] for job in jobs) == {"mean-cost": 48, "finetune": 144, "finetune, mse": 24}
    equal = [job for job in jobs if not job["imbalanced"]]
    assert jobs[:48] == [job for job in equal if job["start"] == 0 and job["entry"] != "finetune, mse"]  # the quick ones first
    assert Counter((job["problem"], job["start"]) for job in jobs[48:72]) == dict.fromkeys(
        itertools.product(PROBLEMS, (1, 2)), 4
    )
    assert [job["entry"] for job in jobs[72:84]] == ["finetune, mse"] * 12
    assert {(job["imbalanced"], job["start"]) for job in jobs[84:132]} == {(True, 0)}


def test_the_parameter_of_a_loss_is_searched_once_for_both_methods() -> None:
    entries = [ENTRIES["crossfit, dpo"]]
    jobs = [job.parameters for job in study.search_study(entries, None).jobs]
    assert {job["entry"] for job in jobs} == {"finetune, dpo"}
    rows = pd.DataFrame(jobs).assign(relative_regret=[0.1 if '"scale": 1.0' in job["options"] else 0.2 for job in jobs])
    assert '"scale": 1.0' in study.choose(rows, entries)["knapsack"]["crossfit, dpo"]


# One job.


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"seed": 0, "problem": "knapsack", "imbalanced": False, "degree": 2, "eta_obj": 0.0, "eta_constr": 0.0}


def test_a_job_has_one_row_per_client(configuration: dict[str, Any]) -> None:
    rows = study.judge_entry(search=False, entry="fedavg", options=written({**PLAIN, **TINY}), start=0, **configuration)
    assert len(rows) == 20
    assert (rows["refused"] == "").all()
    np.testing.assert_allclose(rows[study.BLOCK_COLUMNS].mean(axis=1), rows["relative_regret"], rtol=1e-4)
    assert (rows["passes"] == 0.2).all()  # a fifth of the clients, one pass
    other = study.judge_entry(search=False, entry="fedavg", options=written({**PLAIN, **TINY}), start=1, **configuration)
    assert not np.allclose(rows["relative_regret"], other["relative_regret"])


def test_an_entry_that_cannot_run_says_why(configuration: dict[str, Any]) -> None:
    rows = study.judge_entry(search=False, entry="crossfit", options=written({"folds": 1}), start=0, **configuration)
    assert rows["refused"].tolist() == ["folds must be a whole number >= 2, found 1"]
    shown = tables.refused_text(rows.assign(problem="knapsack", entry="crossfit"))
    assert shown == "crossfit cannot run on knapsack: folds must be a whole number >= 2, found 1\n"


# Choosing.


def test_the_search_chooses_for_each_problem_by_its_mean() -> None:
    entry = ENTRIES["fedprox"]
    texts = [written(candidate) for candidate in entry.candidates]
    rows = pd.DataFrame(
        [
            {"problem": problem, "entry": "fedprox", "options": text, "relative_regret": value}
            for problem, values in {"knapsack": (3, 1, 2, 5), "portfolio": (3, 4, 2, np.nan)}.items()
            for text, value in zip(texts, values, strict=True)
        ]
    )
    chosen = study.choose(rows, [entry])
    assert chosen["knapsack"]["fedprox"] == texts[1]
    assert chosen["portfolio"]["fedprox"] == texts[2]
    assert chosen["zones, weather"]["fedprox"] == texts[0]


# Ranks.


def _units(**means: tuple[float, float]) -> pd.DataFrame:
    """Twenty federations whose difficulty is shared, and each entry's mean and noise."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=20)
    return pd.DataFrame({name: 10 + shared + mean + noise * rng.normal(size=20) for name, (mean, noise) in means.items()})


def test_entries_that_differ_clearly_are_told_apart_and_others_share_ranks() -> None:
    units = _units(good=(0.0, 0.1), same=(0.0, 0.1), bad=(2.0, 0.1))
    assert set(different(units)) == {("good", "bad"), ("same", "bad")}
    found = standings(units, "good")
    assert (found["good"].best, found["good"].worst) == (1, 2)
    assert (found["same"].best, found["same"].worst) == (1, 2)
    assert (found["bad"].best, found["bad"].worst) == (3, 3)
    assert found["good"][:2] == (0.0, 0.0)
    assert found["bad"].difference == pytest.approx(2.0, abs=0.2)
    assert 0 < found["bad"].half < 0.2


def test_the_correction_is_for_the_number_of_comparisons() -> None:
    """A hundred pairs of nothing but noise: without the correction some would be called different."""
    rng = np.random.default_rng(1)
    noise = pd.DataFrame(rng.normal(size=(20, 15)), columns=[f"e{k}" for k in range(15)])
    assert different(noise) == []
    from scipy.stats import wilcoxon

    pairs = itertools.combinations(noise.columns, 2)
    assert any(wilcoxon(noise[a] - noise[b]).pvalue < 0.05 for a, b in pairs)


# Tables.


def _rows(entries: dict[str, float], starts: int = 3, clients: int = 4) -> pd.DataFrame:
    """Rows of two federations, in which each entry's blocks are its level with a little noise."""
    rng = np.random.default_rng(2)
    made = []
    for seed, start, (entry, level) in itertools.product((0, 1), range(starts), entries.items()):
        if start >= (1 if ENTRIES[entry].kind == "naive" else starts):
            continue
        for place in range(clients):
            blocks = level * (1 + place) + 0.001 * rng.normal(size=study.BLOCKS)
            row = {"problem": "knapsack", "seed": seed, "eta_obj": 0.0, "eta_constr": 0.0, "degree": 2, "imbalanced": False}
            row |= {"entry": entry, "options": "{}", "start": start, "client": f"c{place}", "refused": "", "fit_seconds": 2.0}
            row |= {"passes": 5.0, "sent": 1000.0, "answered": 3000.0, "relative_regret": blocks.mean()}
            made.append(row | dict(zip(study.BLOCK_COLUMNS, blocks, strict=True)))
    return pd.DataFrame(made)


def test_the_summary_has_regret_harm_and_cost() -> None:
    rows = _rows({"local": 0.02, "local-tuned": 0.015, "crossfit": 0.01, "fedavg": 0.03, "mean-cost": 0.10})
    found = tables.summary(tables.shared_federations(rows))
    assert found.loc["crossfit", "mean"] == pytest.approx(2.5, rel=0.02)  # 1, 2, 3 and 4 %
    assert found.loc["crossfit", "worst"] == pytest.approx(4.0, rel=0.02)
    assert found.loc["crossfit", "harmed"] == 0
    assert found.loc["fedavg", "harmed"] == found.loc["fedavg", "harmed (local)"] == 100
    assert found.loc["mean-cost", "harmed"] == 100  # one fit stands for all starts
    assert np.isnan(found.loc["local-tuned", "harmed"])
    assert found.loc["local", "in one run"] == 100
    assert found.loc["fedavg", "kB"] == 4.0
    assert found.loc["fedavg", "difference"] == pytest.approx(5.0, rel=0.02)
    assert found.loc["crossfit", "core-seconds"] == 2.0


def test_fewer_starts_judge_nobody() -> None:
    found = tables.summary(tables.shared_federations(_rows({"local": 0.02, "local-tuned": 0.015, "crossfit": 0.01}, starts=2)))
    assert np.isnan(found.loc["crossfit", "harmed"])
    assert found.loc["crossfit", "in one run"] == 0


def test_the_table_is_ordered_and_says_how_to_read_it() -> None:
    rows = _rows({"local": 0.02, "local-tuned": 0.015, "crossfit": 0.01})
    [table] = tables.all_tables(rows)
    assert table.name == "methods-knapsack"
    order = list(dict.fromkeys(cell.row[0] for cell in table.cells))
    assert order == ["crossfit", "local-tuned", "local"]
    assert "2 federations" in table.note


def test_a_table_has_the_federations_that_all_its_entries_have() -> None:
    rows = _rows({"local": 0.02, "local-tuned": 0.015, "crossfit": 0.01})
    rows = rows[(rows["entry"] != "local") | (rows["seed"] == 0)]  # local is not judged on the second federation yet
    whole, more = tables.all_tables(rows)
    assert (whole.name, more.name) == ("methods-knapsack", "more-knapsack")
    assert "1 federations" in whole.note
    assert "2 federations" in more.note
    assert {cell.row[0] for cell in whole.cells} == {"local", "local-tuned", "crossfit"}
    assert {cell.row[0] for cell in more.cells} == {"local-tuned", "crossfit"}


def test_names_beside_a_panel_do_not_cover_each_other() -> None:
    from dffl_studies.leaderboard.figure import spread

    for wanted in ([0.1, 0.11, 0.12, 0.9], [0.98, 0.99, 1.0], [0.0, 0.0, 0.0], [0.2, 0.5]):
        found = spread(np.array(wanted), gap=0.05)
        assert (np.diff(found) > 0.05 - 1e-5).all()
        assert found.min() > -1e-9
        assert found.max() < 1 + 1e-9
    np.testing.assert_array_equal(spread(np.array([0.2, 0.5]), gap=0.05), [0.2, 0.5])


def test_losses_alone_have_tables_and_no_figure(tmp_path: Path) -> None:
    from dffl_studies.leaderboard.figure import draw

    rows = _rows({"crossfit, spo+": 0.01, "finetune, mse": 0.02}, starts=1)
    assert [table.name for table in tables.all_tables(rows)] == ["losses-knapsack"]
    assert draw(rows, tmp_path) == []


def test_what_was_chosen_is_a_table() -> None:
    text = tables.chosen_text(study.first_choice([ENTRIES["crossfit"]]))
    assert "| crossfit | 4 | plain, judge spo+ |" in text


def test_what_had_no_search_says_so() -> None:
    entries = [ENTRIES[name] for name in ("crossfit", "mean-cost", "crossfit, dpo")]
    rows = pd.DataFrame({"problem": ["knapsack", "portfolio"], "entry": ["crossfit", "finetune, dpo"]})
    lines = tables.chosen_text(study.first_choice(entries), study.searched(rows)).splitlines()
    assert lines[4].startswith("| crossfit | 4 | plain, judge spo+ | plain, judge spo+ (not searched) |")
    assert "not searched" not in lines[5]  # there is nothing to choose
    assert [cell.endswith("(not searched) ") for cell in lines[6].split("|")[3:6]] == [True, False, True]


def test_the_command_refuses_what_does_not_fit_together(tmp_path: Path) -> None:
    from dffl_studies.leaderboard.command import judge
    from dffl_studies.running.result import RunOptions

    with pytest.raises(ValueError, match="--quick judges three federations of its own; leave --all and --only out"):
        judge(RunOptions(tmp_path), [], None, quick=True, full=True)
    with pytest.raises(ValueError, match="unknown entry 'crossfitt'; did you mean 'crossfit'"):
        judge(RunOptions(tmp_path), ["crossfitt"], None, quick=True)
    assert list(tmp_path.iterdir()) == []


def test_it_runs_from_the_command_to_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dffl_studies.leaderboard.command import judge
    from dffl_studies.running.result import RunOptions

    small = {name: entry for name, entry in ENTRIES.items() if name in ("mean-cost", "ridge")}
    result = judge(RunOptions(tmp_path, workers=1, progress=False), list(small), None, quick=True)
    assert (tmp_path / "figures" / "regret-against-cost.png").stat().st_size > 10_000
    assert {path.stem for path in (tmp_path / "tables").glob("methods-*.md")} == {f"methods-{name}" for name in PROBLEMS}
    answer = json.loads(json.dumps(result.as_json()))
    assert answer["finished"] == answer["configurations"] == 6


def test_a_problem_is_searched_alone_and_the_choice_of_others_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dffl_studies.leaderboard import command
    from dffl_studies.running import result

    entry = ENTRIES["ridge-pooled"]
    best = written(entry.candidates[1])
    ran: list[tuple[str, set[str]]] = []

    def finished(whole: Study, options: result.RunOptions) -> result.StudyRows:
        """Nothing is trained: the rows say that the second candidate is better, on every problem."""
        asked = whole.only(options.only)
        if not options.show:
            ran.append((whole.name, {job.parameters["problem"] for job in asked.jobs}))
        blank = {"client": "c", "refused": "", "fit_seconds": 1.0, "passes": 1.0, "sent": 0.0, "answered": 0.0}
        blank |= dict.fromkeys(study.BLOCK_COLUMNS, 0.1)
        rows = [{**job.parameters, **blank, "job": job.key, "dffl": "0.2.0"} for job in asked.jobs]
        found = pd.DataFrame(rows).assign(relative_regret=lambda table: np.where(table["options"] == best, 0.1, 0.2))
        return result.StudyRows(whole, tmp_path, found, pd.DataFrame({"cpu_seconds": [1.0]}), [], [])

    monkeypatch.setattr(result, "finished_rows", finished)
    command.judge(result.RunOptions(tmp_path, only=["seed=0", "problem=shortest-path"], workers=1), [entry.name], None)
    assert ran == [("leaderboard-search", {"shortest-path"}), ("leaderboard", {"shortest-path"})]
    line = (tmp_path / "tables" / "chosen.md").read_text().splitlines()[4]
    assert line.startswith("| ridge-pooled | 2 | degree 2 | degree 2 | degree 2 | degree 1 (not searched) |")
