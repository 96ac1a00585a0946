"""What a run comes to, in words."""

from dffl_studies.energy.model import METHOD
from dffl_studies.energy.tables import name_of
from dffl_studies.energy.verdict import Verdict
from studies.tests.energy.made_rows import with_weeks
from studies.tests.energy.test_tables import rows


def made(average: float, best: float = 50.0):
    """The steady average loses so much, and is chosen; the historical mean so much; other rules 50."""
    table = rows(["A", "B", "C", "D"])
    for rule, lost in {"yesterday": 50.0, "moving-average": 50.0, "mean-cost": best, "steady-average": average}.items():
        table.loc[table["method"] == rule, "regret"] = lost
    table = with_weeks(table)
    table.loc[table["method"] == "steady-average", "training_regret"] = 1.0
    return table


def test_the_model_is_compared_with_own_models_and_the_rule_that_the_training_days_choose():
    good = Verdict.of(made(average=25.0, best=22.0))
    assert (good.rules.chosen, good.rules.hindsight, good.beaten) == ("steady-average", "mean-cost", False)
    text = good.in_words()
    assert "lose 21.00: -6.2 % (95 % interval: " in text
    assert "It harms 1 of 4 zones beyond luck; 1.0 are over 1 % worse in a seed, the worst by +5 %." in text
    assert "Against own models as in the paper (local: 26.25) it would be -25.0 %" in text
    assert "choose, steady moving average, loses 25.00; against it the model has -21.2 % (95 % interval: " in text
    assert "In hindsight, which nobody could have known," in text
    assert "the best rule is historical mean price (22.00)" in text
    poor = Verdict.of(made(average=10.0))
    assert poor.beaten
    assert "against it the model has +96.9 %" in poor.in_words()
    assert "the best rule" not in poor.in_words()


def test_the_model_is_not_chosen_by_the_test_days():
    table = made(average=25.0)
    table.loc[table["method"] == "fedavg", "regret"] = 1.0
    found = Verdict.of(with_weeks(table))
    assert found.best == "fedavg"
    assert found.in_words().startswith(name_of(METHOD)[0].lower() + name_of(METHOD)[1:])
    assert "the best model is federated (1.00)" in found.in_words()


def test_where_nobody_can_lose_nothing_is_said_in_percent():
    table = with_weeks(made(average=1.0).assign(regret=0.0))
    assert Verdict.of(table).in_words() == "a rule without any regret leaves nothing to gain."


def test_two_seeds_do_not_tell_luck():
    table = made(average=25.0)
    text = Verdict.of(table[table["seed"] < 2]).in_words()
    assert "(no interval: too few seeds)" in text
    assert "Whom it harms of 4 zones is unknown; 1.0 are over 1 % worse in a seed" in text
