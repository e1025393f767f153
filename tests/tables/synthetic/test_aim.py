# SPDX-License-Identifier: Apache-2.0
"""AIM costs no more than its ρ on any path, finds what pairs cannot show, and gives a copy like any other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.exact import exactly
from discreet.tables.plan.spend import Spend
from discreet.tables.synthetic import aim
from discreet.tables.synthetic.aim import ZcdpFilter
from discreet.tables.synthetic.copy import SyntheticCopy
from discreet.tables.synthetic.mechanism import compile_synthesis, synthesis_request
from discreet.tables.synthetic.spending import AimSpending
from discreet.tables.synthetic.stream import SeededStream
from tests.tables.synthetic.people import opened, session_on

COST = {"epsilon": 5.0, "delta": 1e-6}


def test_the_filter_never_admits_more_than_it_has():
    noise = SeededStream(2, "costs")
    for _ in range(50):
        budget, true = ZcdpFilter(Fraction(1, 10)), Fraction(0)
        for first, second in noise.uniform(200, 2):
            scale, epsilon = float(0.5 + 20 * first), float(second)
            if budget.admits(scale, epsilon):
                true += 1 / (2 * exactly(scale) ** 2) + exactly(epsilon) ** 2 / 8
        assert true <= budget.used <= Fraction(1, 10)
        assert not budget.admits(0.1)
        assert budget.used <= Fraction(1, 10)


def record(monkeypatch):
    """What a run asks of the rows, with its cost by the definitions of its mechanisms."""
    costs = []
    measure, choose = aim.measure_table, aim.choose_table

    def measured(table, noise, reach):
        costs.append(1 / (2 * exactly(noise) ** 2))
        return measure(table, noise, reach)

    def chosen(candidates, scores, epsilon, reach, weight):
        assert weight >= max(map(len, candidates))
        costs.append(exactly(epsilon) ** 2 / 8)
        return choose(candidates, scores, epsilon, reach, weight)

    monkeypatch.setattr(aim, "measure_table", measured)
    monkeypatch.setattr(aim, "choose_table", chosen)
    return costs


@pytest.mark.parametrize("count", [0, 5, 500])
@pytest.mark.parametrize("spend", [Spend(rho=0.02), Spend(rho=2.0), Spend(epsilon=1, delta=1e-6)], ids=str)
def test_all_rounds_together_cost_no_more_than_rho(monkeypatch, count, spend):
    data = opened(count)
    mechanism = compile_synthesis(
        synthesis_request(data, ["sex", "ward", "days", "smokes"], None, 0.01, "aim"), data, spend
    )
    costs = record(monkeypatch)
    mechanism.draw(data)
    rho = exactly(mechanism.spending.rho)
    assert sum(costs) <= rho
    assert float(sum(costs)) > 0.9 * float(rho)
    assert mechanism.guarantee.implies(spend.target(data.unit))


def test_scores_are_weighted_by_the_number_of_columns():
    """The sensitivity of a choice is that of its widest candidate."""
    data = opened(50)
    spending = AimSpending.of(Spend(rho=0.1), 0.0, data.unit)
    assert spending.check == 0
    assert spending.guarantee.concentrated() <= 0.1


def test_parity_is_found():
    """Two columns decide the third, and no pair shows it."""
    count = 4_000
    table = pa.table(
        {
            "id": list(range(count)),
            "a": [str(n % 2) for n in range(count)],
            "b": [str(n // 2 % 2) for n in range(count)],
            "c": [str((n + n // 2) % 2) for n in range(count)],
            "d": [str(n // 4 % 3) for n in range(count)],
        }
    )
    columns = {name: dp.column(values=["0", "1"], null=False) for name in "abc"}
    columns["d"] = dp.column(values=["0", "1", "2"], null=False)
    data = opened(table=table, columns=columns)
    copied = session_on(data).synthesize(data, method="aim", **COST)
    off = np.mean([int(a) ^ int(b) != int(c) for a, b, c, _ in copied.to_rows()])
    assert off < 0.05
    assert copied.quality.value < 0.05
    pairs = session_on(data).synthesize(data, epsilon=1.0, delta=1e-6)
    assert np.mean([int(a) ^ int(b) != int(c) for a, b, c, _ in pairs.to_rows()]) > 0.3
    assert SyntheticCopy.from_json(copied.to_json()).to_rows(50) == copied.to_rows(50)
    assert all(row[0] == "1" for row in copied.to_rows(40, where={"a": "1"}))
    assert "chosen with noise" in copied.statement()
    assert copied.table("a").header == ("a", "count", "count_lo", "count_hi", "synthetic")


def test_a_table_that_was_not_chosen_is_refused_with_one_that_was():
    data = opened(100)
    copied = session_on(data).synthesize(data, columns=["sex", "ward"], method="aim", rho=0.01)
    measured = {table.keys for table in copied.released.chosen}
    for keys in ((0,), (1,), (0, 1)):
        names = [copied.header[key] for key in keys]
        if keys in measured:
            assert len(copied.table(*names)) > 1
        else:
            with pytest.raises(DiscreetError) as caught:
                copied.table(*names)
            assert eval(caught.value.fix, {"copy": copied})


@pytest.mark.parametrize("method", ["", "mst", None, 3])
def test_an_unknown_method_is_refused(method):
    with pytest.raises(DiscreetError):
        synthesis_request(opened(), ["sex"], None, 0.01, method)


def test_columns_with_one_value():
    data = opened(50, columns={"sex": dp.column(values=["F"], null=False), "days": dp.column(bounds=(0, 60))})
    copied = session_on(data).synthesize(data, method="aim", **COST)
    assert {row[0] for row in copied.to_rows(5)} == {"F"}
