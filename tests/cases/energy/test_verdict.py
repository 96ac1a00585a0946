"""What a run comes to, in words."""

import pandas as pd

from dffl.cases.energy.verdict import Verdict
from tests.cases.energy.test_tables import rows


def made(average: float):
    table = rows(["A", "B", "C", "D"])
    for rule in ("yesterday", "steady-average"):
        more = table[table["method"] == "moving-average"].assign(method=rule)
        table = pd.concat([table, more])
    table.loc[table["method"].isin(["mean-cost", "yesterday", "moving-average"]), "regret"] = 50.0
    table.loc[table["method"] == "steady-average", "regret"] = average
    return table


def test_a_model_is_compared_with_the_best_naive_rule():
    good = Verdict.of(made(average=25.0))
    assert (good.rule, good.beats("finetune-mix")) == ("steady-average", True)
    assert "The best naive rule, steady moving average, loses 25.00: the model is 23.1 % better." in good.in_words()
    assert "Federated harms 1.0 of 4 zones in a seed (the worst: +5 %)" in good.in_words()
    poor = Verdict.of(made(average=10.0))
    assert not poor.beats("finetune-mix")
    assert "the model is 92.2 % worse." in poor.in_words()


def test_where_nobody_can_lose_nothing_is_said_in_percent():
    table = made(average=1.0)
    assert Verdict.of(table.assign(regret=0.0)).in_words() == "a rule without any regret leaves nothing to gain."
