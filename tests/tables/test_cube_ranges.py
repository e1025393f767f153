# SPDX-License-Identifier: Apache-2.0
"""Ranges, running totals, quantiles and hierarchies: how far a unit moves them, and that they say what they say."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.errors import BadParameter, RefusedQuestion
from discreet.exact import exactly
from discreet.tables.answer.answer import Answer
from discreet.tables.ask.question import Key, Workload, WorkloadAxis
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.chance import may_fail
from tests.tables.small import WARD, dataset, number, people, question
from tests.tables.test_cube import noise_of, shift, squared, stage_of

G = Key("g", WARD, ("a", "b"))
X = Key("x", number(0, 2), (0, 1, 2))
LEAVES = ((0,), (1,), (2,))
PATHS = (("a", 0), ("a", 1), ("b", 2))
AXES = {
    "ranges": ((X, G), (WorkloadAxis("ranges", LEAVES),), ((), (1,))),
    "prefixes": ((X, G), (WorkloadAxis("prefixes", LEAVES),), ((1,),)),
    "tree": ((G, X), (WorkloadAxis("tree", PATHS),), ((),)),
    "two": ((X, G), (WorkloadAxis("ranges", LEAVES), WorkloadAxis("tree", (("a",), ("b",)))), ((),)),
}


def asked(name, *aggregates, objective="each"):
    keys, axes, sets = AXES[name]
    return replace(question(*aggregates), keys=keys, workload=Workload(sets, objective, axes=axes))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "aggregates", [[("count",)], [("count",), ("sum", number(-2, 5))]], ids=["count", "sum"]
)
@pytest.mark.parametrize("name", AXES)
def test_no_unit_moves_them_further_than_the_noise_is_made_for(name, aggregates, relation):
    data = dataset(at_most=2, relation=relation)
    stage = stage_of(asked(name, *aggregates), data)
    crowd = [shift(stage, person) for person in people((0, 1, 2, -3, 9), most=2, at_least=1)]
    allowed = 1 / exactly(noise_of(stage)) ** 2
    lengths = list(map(squared, crowd))
    assert max(lengths) <= allowed
    if relation == "replace":
        vectors = [np.array(vector, float) for vector in crowd]
        lengths = [((one - other) ** 2).sum() for one, other in itertools.combinations(vectors, 2)]
        assert max(lengths) <= float(allowed) * (1 + 1e-9)
    if len(aggregates) == 1 and name != "two":
        assert max(lengths) >= allowed * 0.97


ROWS = tuple(((ward, value),) for ward in ("a", "b") for value in (0, 1, 2, 2, 2) for _ in range(4))


def draw(name, *aggregates, spend=Spend(rho=0.5)):  # noqa: B008 - frozen
    data = dataset(ROWS, rows_are_units=True)
    return compile_question(asked(name, *aggregates), data, spend).draw(data)


@pytest.mark.parametrize("name", AXES)
def test_every_table_is_the_sum_of_its_parts(name):
    answer = draw(name, ("count",), ("sum", number(-2, 5)))
    tables = answer.tables
    for column in answer.columns:
        total = answer.total.columns[column].values[0]
        for table in tables.shape.closure:
            if not any(each.kind == "prefixes" for each in tables.shape.axes):
                part = sum(tables.columns[column].values[row] for row in tables.rows(table))
                assert math.isclose(part, total, abs_tol=1e-6)
    again = Answer.from_json(answer.to_json())
    assert again.rows() == answer.rows()
    assert again.to_json() == answer.to_json()


def test_running_totals_are_sums_of_values():
    answer = draw("ranges", ("count",))
    values = answer["x"].columns["count0"].values
    assert np.allclose(np.cumsum(values), answer.cumulative().columns["count0"].values)
    assert math.isclose(answer.between(1, 2).value, values[1] + values[2])
    by_ward = answer["x", "g"]
    for ward in "ab":
        parts = [row["count0"] for row in by_ward if row["g"] == ward and row["x"] <= 1]
        assert math.isclose(answer.between(0, 1, where={"g": ward}).value, sum(parts))
    again = Answer.from_json(answer.to_json())
    assert again.between(0, 1).rows() == answer.between(0, 1).rows()


def test_the_interval_of_a_range_is_not_a_sum_of_intervals():
    ages = np.repeat(np.arange(40), 30)
    data = dp.open(
        {"people": pa.table({"id": np.arange(len(ages)), "age": ages})},
        protect=dp.each("id", at_most=1),
        columns={"age": dp.column(bounds=(0, 39))},
    )
    session = dp.Session(data, limit=dp.Limit.filter(rho=1))
    answer = session.release(data.ranges("age").count(), rho=0.05)
    low, high = answer.between(5, 34).interval
    parts = [row for row in answer["age"] if 5 <= row["age"] <= 34]
    added = sum(row["count_hi"] - row["count_lo"] for row in parts)
    assert high - low < 0.2 * added
    quantile = answer.quantile(0.5)
    assert quantile.interval[0] <= 19 <= quantile.interval[1]


@may_fail(1e-9, "five numbers, each with a binomial tail")
def test_ranges_and_quantiles_are_covered():
    runs, hits = 150, dict.fromkeys(["range", "prefix", "cell", "median", "quartile"], 0)
    data = dataset(ROWS, rows_are_units=True)
    mechanism = compile_question(asked("ranges", ("count",)), data, Spend(rho=0.02))
    for _ in range(runs):
        answer = mechanism.draw(data)
        low, high = answer.between(1, 2).interval
        hits["range"] += low <= 32 <= high
        row = answer.cumulative("g").rows()[2]
        hits["prefix"] += row[3] <= 8 <= row[4]
        low, high = answer.between(0, 0, where={"g": "b"}).interval
        hits["cell"] += low <= 4 <= high
        # 8 rows have 0, 8 have 1, 24 have 2.
        for name, fraction, exact in (("median", 0.5, 2), ("quartile", 0.15, 0)):
            low, high = answer.quantile(fraction).interval
            hits[name] += low <= exact <= high
    least = binom.ppf(2e-10, runs, 0.95)
    assert all(each >= least for each in hits.values()), hits


GEO = pa.table({"town": list("abcdefgh"), "district": list("AABBCCCD"), "region": list("NNNNSSSS")})


def geography():
    rows = pa.table({"id": np.arange(80), "town": list("abcdefgh") * 10, "old": [True, False] * 40})
    return dp.open({"people": rows}, protect=dp.each("id", at_most=1), public={"places": GEO})


def test_a_rollup_over_a_public_table_is_a_hierarchy():
    session = dp.Session(geography(), limit=dp.Limit.filter(rho=1))
    answer = session.sql(
        "SELECT region, district, town, COUNT(*) AS n FROM people JOIN places USING (town)"
        " GROUP BY ROLLUP (region, district, town), old",
        rho=0.5,
    )
    assert len(answer["region", "district"]) == 4
    assert len(answer["region", "district", "town"]) == 8
    assert len(answer["region", "old"]) == 2 * len(answer["old"])
    parts = sum(row["n"] for row in answer["region", "district"] if row["region"] == "N")
    (north,) = (row["n"] for row in answer["region"] if row["region"] == "N")
    assert math.isclose(parts, north, abs_tol=1e-6)
    with pytest.raises(BadParameter, match="DP105"):
        answer["district"]


REFUSED = {
    "RANGES(sex)": "DP704",
    "RANGES(age, sex)": "DP704",
    "RANGES()": "DP70",
    "CUBE (sex, RANGES(age))": "DP70",
    "RANGES(age), CUBE (age, sex)": "DP704",
    "RANGES(age), PREFIXES(age)": "DP704",
    "RANGES(age), CUBE (education, occupation, native_country, race)": "DP704",
}
ADULT = dp.open(dp.data.path("adult.toml"))


@pytest.mark.parametrize("grouping", REFUSED)
def test_what_has_no_ranges_is_refused(grouping):
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=1))
    with pytest.raises((RefusedQuestion, BadParameter), match=REFUSED[grouping]):
        session.sql(f"SELECT COUNT(*) FROM adult GROUP BY {grouping}", rho=0.1)
    assert session.budget().spent_fraction == 0


def test_a_pure_epsilon_is_refused_with_a_fix_that_works():
    session = dp.Session(ADULT, limit=dp.Limit.filter(epsilon=1, delta=1e-5))
    with pytest.raises(BadParameter, match="delta=1e-6"):
        session.release(ADULT.ranges("age").count(), epsilon=0.1)
    assert session.release(ADULT.ranges("age").count(), epsilon=0.1, delta=1e-6)["age"].keys == ("age",)


@pytest.mark.parametrize("wrong", [("b", "c"), (50, 40), (None, 3)])
def test_ranges_without_values_are_refused(wrong):
    answer = draw("ranges", ("count",))
    with pytest.raises(BadParameter, match="DP102"):
        answer.between(*wrong)


def test_cubes_without_an_ordered_key_have_no_ranges():
    answer = draw("tree", ("count",))
    for ask in (lambda: answer.between(0, 1), answer.cumulative, lambda: answer.quantile(0.5)):
        with pytest.raises(BadParameter, match="DP107"):
            ask()
    with pytest.raises(BadParameter, match="DP107"):
        draw("ranges", ("sum", number(-2, 5))).quantile(0.5)
