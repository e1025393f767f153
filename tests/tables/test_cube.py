# SPDX-License-Identifier: Apache-2.0
"""Cubes: no unit moves their tables further than the noise is made for, and the tables agree with each other."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

import discreet as dp
from discreet import noise as noises
from discreet.audit import batched
from discreet.errors import BadParameter, RefusedQuestion
from discreet.exact import exactly
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.cube import CubeAnswer
from discreet.tables.ask.question import Key, Workload
from discreet.tables.plan import cube
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from discreet.tables.workloads.measurement import Layout, SparseTable, measurement_at
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import ResidualSystem, closure_of
from tests.chance import may_fail
from tests.tables.small import WARD, dataset, number, people, question, weighted

G = Key("g", WARD, ("a", "b"))
X = Key("x", number(0, 2), (0, 1, 2))
VALUES = (0, 2, -3, 9)
SPEND = Spend(rho=0.5)
CUBE = closure_of([(0, 1)])
WORKLOADS = {
    "cube": CUBE,
    "finest": ((0, 1),),
    "two": ((0,), (1,)),
    "rollup": ((), (0,), (0, 1)),
    "total": ((),),
}
AGGREGATES = {
    "count": [("count",)],
    "sum": [("sum", number(-2, 5))],
    "positive": [("sum", number(1, 5)), ("count",)],
    "all": [("count",), ("sum", number(-2, 5)), ("mean", number(-2, 5)), ("variance", number(-2, 5))],
}


def asked(*aggregates, sets=CUBE, objective="each", keys=(G, X)):
    return replace(question(*aggregates), keys=keys, workload=Workload(tuple(sets), objective))


def stage_of(asked_question, data, spend=SPEND):
    (stage,) = compile_question(asked_question, data, spend).stages
    return stage


def sparse(stage, sums, feature):
    """The sums of one feature as the stage hands them to its noise."""
    shape = stage.strategy.shape
    width = len(shape.axes) + len(shape.values)
    return cube.sparse_table(sums, cube.place_cells(shape, sums), feature, width)


def shift(stage, person):
    """Everything that is measured of one person alone, in units of the noise on it."""
    sums, numbers = weighted(stage.sums, person), []
    for place, measurement in enumerate(stage.noise.measurements):
        cells = sparse(stage, sums, place)
        for keys, block in measurement.layout.exact_blocks(cells, measurement.multipliers):
            scale = exactly(measurement.scales[keys])
            numbers += [Fraction(int(each)) / scale for each in np.ravel(block)]
    return numbers


def noise_of(stage):
    """The noise of its Gaussian guarantee, in sensitivities."""
    return float(re.match(r"gaussian\(noise=([^,)]+)", repr(stage.guarantee))[1])


def squared(vector):
    return sum((part * part for part in vector), Fraction(0))


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("aggregates", AGGREGATES)
def test_no_unit_moves_the_tables_further_than_the_noise_is_made_for(workload, aggregates):
    rows = 1 if aggregates == "all" else 3
    data = dataset(at_most=rows)
    stage = stage_of(asked(*AGGREGATES[aggregates], sets=WORKLOADS[workload]), data)
    allowed = 1 / exactly(noise_of(stage)) ** 2
    lengths = [squared(shift(stage, person)) for person in people(VALUES, most=min(rows + 1, 3), at_least=1)]
    assert max(lengths) <= allowed
    # A sum of values of both signs is largest at a bound; COUNT(*) and a sum attain it together.
    assert max(lengths) >= allowed * Fraction(999, 1000)


@pytest.mark.parametrize("aggregates", ["count", "sum", "positive"])
@pytest.mark.parametrize("workload", ["cube", "rollup", "two", "one key"])
def test_no_replaced_unit_moves_them_further(workload, aggregates):
    data, keys = dataset(at_most=2, relation="replace"), (G,) if workload == "one key" else (G, X)
    sets = ((), (0,)) if workload == "one key" else WORKLOADS[workload]
    stage = stage_of(asked(*AGGREGATES[aggregates], sets=sets, keys=keys), data)
    vectors = [np.array(shift(stage, person), float) for person in [(), *people(VALUES, most=2, at_least=1)]]
    greatest = max(float(((one - other) ** 2).sum()) for one, other in itertools.combinations(vectors, 2))
    allowed = 1 / float(noise_of(stage)) ** 2
    assert greatest <= allowed * (1 + 1e-9)
    # Where x is a key and a value, two rows of different cells do not have all pairs of values.
    if aggregates == "count" or (workload == "one key" and aggregates == "sum"):
        assert greatest >= allowed * 0.999


def laplace_shift(stage, one, other=()):
    """How far two people are apart in everything that is measured, in scales of the noise on it: an ε."""
    total = Fraction(0)
    for place, scales in enumerate(stage.noise.scales):
        cells = [sparse(stage, weighted(stage.sums, person), place) for person in (one, other)]
        for keys, scale in scales.items():
            tables = [each.totals(keys, stage.noise.system.shape(keys)) for each in cells]
            total += Fraction(int(np.abs(tables[0] - tables[1]).sum())) / exactly(scale)
    return total


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("aggregates", AGGREGATES)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_unit_moves_tables_with_laplace_noise_further_than_epsilon(workload, aggregates, relation):
    data = dataset(at_most=2, relation=relation)
    stage = stage_of(asked(*AGGREGATES[aggregates], sets=WORKLOADS[workload]), data, Spend(epsilon=0.5))
    assert stage.guarantee.epsilon(delta=0) <= 0.5
    crowd = list(people(VALUES[:3], most=2, at_least=1))
    others = [()] if relation == "add-remove" else [(("a", 0), ("a", 0)), (("a", 2), ("a", 2))]
    moved = [laplace_shift(stage, one, other) for one in crowd for other in others]
    assert max(moved) <= Fraction(1, 2)
    if aggregates == "count" and workload != "total":
        assert max(moved) >= Fraction(4999, 10000)


def test_the_noise_with_less_error_is_taken():
    data = dataset(rows_are_units=True)
    few = stage_of(asked(("count",)), data, Spend(epsilon=1, delta=1e-6))
    assert few.noise.word == "Laplace"
    many = stage_of(asked(("count",)), data, Spend(epsilon=0.05, delta=0.01))
    assert many.noise.word == "Gaussian"


class TestMutants:
    """Each of these makes some unit move the tables further than is stated."""

    def longest(self, stage, rows=3):
        return max(squared(shift(stage, person)) for person in people(VALUES, most=rows, at_least=1))

    def test_rows_that_are_left_out_of_the_sensitivity(self):
        stage = stage_of(asked(("count",)), dataset(at_most=3))
        careless = stage_of(asked(("count",)), dataset(at_most=1))
        mutant = replace(stage, noise=careless.noise)
        assert self.longest(mutant) > 1 / exactly(noise_of(stage)) ** 2

    def test_the_reach_of_a_value_that_is_left_out(self, monkeypatch):
        monkeypatch.setattr(cube, "_distances", lambda features, *_: [Fraction(1)] * len(features.features))
        stage = stage_of(asked(("sum", number(-2, 5))), dataset(at_most=1))
        assert self.longest(stage, 1) > 1 / exactly(noise_of(stage)) ** 2

    def test_a_replaced_unit_that_is_taken_for_an_added_one(self):
        stage = stage_of(asked(("count",), sets=((0,), (1,))), dataset(at_most=1))
        vectors = [np.array(shift(stage, person), float) for person in people(VALUES, most=1, at_least=1)]
        greatest = max(float(((one - other) ** 2).sum()) for one, other in itertools.combinations(vectors, 2))
        assert greatest > 1 / float(noise_of(stage)) ** 2


TABLE = tuple(((ward, value),) for ward in ("a", "b") for value in (0, 1, 2, 2) for _ in range(5))


LAPLACE = Spend(epsilon=1)


def draw(asked_question, table=TABLE, spend=SPEND, **words):
    data = dataset(table, **words)
    return compile_question(asked_question, data, spend).draw(data)


@pytest.mark.parametrize(
    "words",
    [{}, {"at_most": 3}, {"rows_are_units": True}, {"spend": LAPLACE}, {"spend": LAPLACE, "at_most": 3}],
)
def test_every_table_is_the_sum_of_every_larger_one(words):
    many = tuple(((ward, 1),) * rows for ward in ("a", "b") for rows in (1, 2, 3, 7))
    answer = draw(asked(("count",), ("sum", number(-2, 5)), sets=((0, 1),)), many, **words)
    for name in answer.columns:
        tables = answer.tables
        finest = tables.table(name, (0, 1))
        assert np.allclose(finest.sum(axis=1), tables.table(name, (0,)), atol=1e-6)
        assert np.allclose(finest.sum(axis=0), tables.table(name, (1,)), atol=1e-6)
        assert math.isclose(finest.sum(), tables.table(name, ()), abs_tol=1e-6)
        assert np.allclose(answer["g"].columns[name].values, tables.table(name, (0,)))


def test_the_rows_name_their_table():
    answer = draw(asked(("count",)))
    assert answer.keys[:3] == ("g", "x", "grouping")
    assert [group[:3] for group in answer.groups[:4]] == [
        (None, None, "total"),
        ("a", None, "g"),
        ("b", None, "g"),
        (None, 0, "x"),
    ]
    assert len(answer) == 1 + 2 + 3 + 6
    # NULL as a value and a total over the key are two things.
    with_null = draw(asked(("count",), keys=(G, Key("x", number(0, 2), (0, 1, None)))), (((("a", None)),),))
    rows = [group[:3] for group in with_null.groups]
    assert ("a", None, "g") in rows
    assert ("a", None, "g, x") in rows


@pytest.mark.parametrize("spend", [Spend(rho=0.005), Spend(epsilon=0.3)], ids=["gaussian", "laplace"])
@may_fail(1e-9, "11 numbers, each with a binomial tail")
def test_every_interval_covers_and_a_narrower_one_does_not(spend):
    asked_question, runs = asked(("count",), ("mean", number(0, 2)), sets=CUBE), 120
    truth = {(None, None): 40.0, ("a", None): 20.0, (None, 2): 20.0, ("a", 2): 10.0, ("b", 0): 5.0}
    hits, narrow = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    means = 0
    data = dataset(TABLE, rows_are_units=True)
    mechanism = compile_question(asked_question, data, spend)
    for _ in range(runs):
        answer = mechanism.draw(data)
        count, mean = answer.columns.values()
        for row, group in enumerate(answer.groups):
            if group[:2] in truth:
                exact = truth[group[:2]]
                hits[group[:2]] += count.lo[row] <= exact <= count.hi[row]
                middle, half = count.values[row], (count.hi[row] - count.lo[row]) / 8
                narrow[group[:2]] += abs(middle - exact) <= half
        means += mean.lo[0] <= 1.25 <= mean.hi[0]
    least = binom.ppf(1e-11, runs, 0.95)
    assert all(each >= least for each in [*hits.values(), means])
    # A quarter as wide, they would hold in less than 60 % of all runs.
    assert all(each <= binom.ppf(1 - 1e-11, runs, 0.6) for each in narrow.values())


@may_fail(1e-9, "the tails of a sum of squares of 200 normal variables")
def test_the_covariances_are_those_of_the_noise():
    data = dataset(TABLE, rows_are_units=True)
    mechanism = compile_question(asked(("count",)), data, Spend(rho=0.005))
    answers = [mechanism.draw(data) for _ in range(200)]
    difference = [
        each.tables.table("count0", (0, 1))[0, 0] - each.tables.table("count0", (0,))[0] for each in answers
    ]
    one, other = {"g": "a", "x": 0}, {"g": "a"}
    covariance = answers[0].covariance
    variance = (
        covariance("count0", one, one)
        + covariance("count0", other, other)
        - 2 * covariance("count0", one, other)
    )
    spread = float(np.square(np.array(difference) - (5 - 20)).sum()) / variance
    assert chi2.ppf(2e-10, 200) < spread < chi2.ppf(1 - 2e-10, 200)
    # With half the deviation it would be another distribution.
    assert not chi2.ppf(2e-10, 200) < 4 * spread < chi2.ppf(1 - 2e-10, 200)


def test_variances_of_parts_add_up_to_that_of_the_total():
    covariance = draw(asked(("count",))).covariance
    parts = [{"g": "a"}, {"g": "b"}]
    added = sum(covariance("count0", one, other) for one in parts for other in parts)
    assert math.isclose(added, covariance("count0", {}, {}), rel_tol=1e-9)


def test_no_table_is_worse_than_on_its_own_with_its_part():
    for objective in ("each", "worst"):
        stage = stage_of(asked(("count",), objective=objective), dataset(rows_are_units=True))
        alone = 4 * float(noise_of(stage)) ** 2
        variances = [stage.estimates(keys)["count0"].noise.variances[0] for keys in CUBE]
        assert max(variances) <= alone


class TestAnswers:
    def cube(self, **words):
        return draw(asked(("count",), ("mean", number(0, 2))), **words)

    @pytest.mark.parametrize("spend", [SPEND, LAPLACE])
    def test_a_cube_is_read_back_as_it_was(self, spend):
        answer = self.cube(spend=spend)
        again = Answer.from_json(answer.to_json())
        assert isinstance(again, CubeAnswer)
        assert again.rows() == answer.rows()
        assert again["x", "g"].rows() == answer["x", "g"].rows()
        cells = {"g": "a"}, {"g": "a", "x": 1}
        assert again.covariance("count0", *cells) == answer.covariance("count0", *cells)
        assert again.to_json() == answer.to_json()

    def test_a_table_that_is_no_part_of_it_is_refused(self):
        answer = draw(asked(("count",), sets=((0,), (1,))))
        for wrong in (("g", "x"), ("y",), (3,)):
            with pytest.raises(BadParameter, match="DP105"):
                answer[wrong]
        assert len(answer.total) == 1
        with pytest.raises(BadParameter, match="DP105"):
            answer.covariance("count0", {"g": "z"}, {"g": "a"})
        with pytest.raises(BadParameter, match="DP105"):
            self.cube().covariance("mean1", {"g": "a"}, {"g": "a"})

    def test_a_mean_of_a_table_is_inside_its_interval(self):
        for row in self.cube()["g"]:
            assert row["mean1_lo"] <= row["mean1"] <= row["mean1_hi"]

    def test_private_keys_without_a_delta_are_refused(self):
        private = asked(("count",), keys=(Key("g", WARD, None), X))
        for spend in (SPEND, Spend(epsilon=1)):
            with pytest.raises(RefusedQuestion, match="needs a delta"):
                compile_question(private, dataset(), spend)


ADULT = dp.open(dp.data.path("adult.toml"))


def test_sql_and_python_ask_the_same():
    written = "SELECT sex, race, COUNT(*) FROM adult GROUP BY"
    pairs = {
        f"{written} CUBE (sex, race)": ADULT.cube("sex", "race"),
        f"{written} ROLLUP (sex, race)": ADULT.rollup("sex", "race"),
        f"{written} GROUPING SETS ((sex), (sex, race))": ADULT.grouping_sets("sex", ("sex", "race")),
        f"{written} MARGINALS(1, sex, race)": ADULT.marginals(1, ["sex", "race"]),
        f"{written} CUBE (sex, race) WITH (objective = 'worst')": ADULT.cube(
            "sex", "race", objective="worst"
        ),
    }
    for text, query in pairs.items():
        assert query.count().text == text
        parsed = dp.Session(ADULT, limit=dp.Limit.filter(rho=1)).preview(text, rho=0.1)
        assert parsed.question == text


@pytest.mark.parametrize(
    ("grouping", "sets"),
    [
        ("CUBE (sex, race)", {"", "sex", "race", "sex race"}),
        ("ROLLUP (sex, (race, over_50k))", {"", "sex", "sex race over_50k"}),
        ("sex, ROLLUP (race)", {"sex", "sex race"}),
        ("sex, race WITH ROLLUP", {"", "sex", "sex race"}),
        ("CUBE (sex), CUBE (race)", {"", "sex", "race", "sex race"}),
        ("GROUPING SETS (CUBE (sex), (race, sex), race)", {"", "sex", "race", "sex race"}),
        ("GROUPING SETS ((), (sex, sex))", {"", "sex"}),
        ("MARGINALS(2, sex, race, over_50k)", {"sex race", "sex over_50k", "race over_50k"}),
        ("GROUPING SETS (MARGINALS(1, sex, race), ())", {"", "sex", "race"}),
        ("ROLLUP (1)", {"", "sex"}),
    ],
)
def test_the_grouping_sets_are_those_of_standard_sql(grouping, sets):
    text = f"SELECT sex, COUNT(*) FROM adult GROUP BY {grouping}"
    from discreet.tables.ask.sql import parse

    parsed = parse(text, ADULT).question
    assert parsed.workload is not None
    names = [key.name for key in parsed.keys]
    found = {frozenset(names[place] for place in places) for places in parsed.workload.sets}
    assert found == {frozenset(each.split()) for each in sets}


def test_grouping_tells_totals_from_keys():
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=1))
    answer = session.sql(
        "SELECT sex, race, GROUPING(sex, race) AS level, COUNT(*) AS n FROM adult GROUP BY CUBE (sex, race)"
        " HAVING GROUPING(sex) = 1 ORDER BY level DESC, n",
        rho=0.1,
    )
    assert answer.keys == ("sex", "race", "grouping")
    assert answer.columns["level"].values == (3, 2, 2, 2, 2, 2)
    assert answer["sex"].keys == ("sex",)


def test_an_answer_under_a_key_is_shown_again_for_free():
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=1))
    cube_question = ADULT.cube("sex", "race").mean("hours_per_week")
    first = session.release(cube_question, rho=0.1, key="cube")
    spent = session.budget().spent_fraction
    again = session.release(cube_question, rho=0.1, key="cube")
    assert again.rows() == first.rows()
    assert again["race"].rows() == first["race"].rows()
    assert session.budget().spent_fraction == spent


def test_rows_without_a_listed_value_are_named_and_null_can_be_one():
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=100))
    answer = session.sql("SELECT workclass, COUNT(*) AS n FROM adult GROUP BY CUBE (workclass)", rho=5)
    assert any("NULL or a value that is not listed in workclass" in note for note in answer.notes)
    named = session.sql(
        "SELECT COALESCE(workclass, '?') AS work, COUNT(*) AS n FROM adult GROUP BY CUBE (work)", rho=5
    )
    values = [row["work"] for row in named["work"]]
    assert "?" in values
    assert named.total.value > answer.total.value + 1000


REFUSED = {
    "GROUP BY CUBE (sex, race) , person_id": "DP70",
    "GROUP BY CUBE ()": "DP70",
    "GROUP BY MARGINALS(3, sex, race)": "DP70",
    "GROUP BY MARGINALS(sex)": "DP70",
    "GROUP BY MARGINALS(1.5, sex)": "DP70",
    "GROUP BY CUBE (sex) WITH (objective = 'best')": "DP706",
    "GROUP BY CUBE (sex) WITH (objective = 'sex: -1')": "DP706",
    "GROUP BY CUBE (sex) WITH (objective = 'sex: nan')": "DP706",
    "GROUP BY CUBE (sex) WITH (objective = 'race: 1')": "DP701",
    "GROUP BY ROLLUP (sex, race) WITH (objective = 'race: 1')": "DP706",
    "GROUP BY sex WITH (objective = 'each')": "DP706",
    "GROUP BY CUBE (workclass, education, marital_status, occupation, relationship, race, sex, native_country,"
    " over_50k, split, age, education_level, hours_per_week)": "DP70",
    "GROUP BY CUBE (education, occupation, native_country, age, hours_per_week)": "DP704",
}


@pytest.mark.parametrize("grouping", REFUSED)
def test_what_cannot_be_released_together_is_refused(grouping):
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=1))
    with pytest.raises((RefusedQuestion, BadParameter), match=REFUSED[grouping]):
        session.sql(f"SELECT COUNT(*) FROM adult {grouping}", rho=0.1)
    assert session.budget().spent_fraction == 0


@pytest.mark.parametrize("aggregate", ["MEDIAN(age)", "COUNT(DISTINCT person_id)", "MODE(sex)", "MAX(age)"])
def test_what_does_not_add_up_is_refused(aggregate):
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=1))
    with pytest.raises(RefusedQuestion, match="DP706"):
        session.sql(f"SELECT sex, {aggregate} FROM adult GROUP BY CUBE (sex)", rho=0.1)


def test_a_margin_of_error_can_be_asked_for():
    session = dp.Session(ADULT, limit=dp.Limit.filter(epsilon=5, delta=1e-5))
    preview = session.preview(ADULT.cube("sex", "race").count(), error="±50", delta=1e-6)
    answer = session.release(ADULT.cube("sex", "race").count(), error="±50", delta=1e-6)
    halves = [
        (high - low) / 2
        for low, high in zip(answer.columns["count"].lo, answer.columns["count"].hi, strict=True)
    ]
    assert 40 < max(halves) <= 50.5
    assert "±" in preview.columns[0].error


class TestArithmetic:
    """Arithmetic with numbers of a cube uses what is known of the noise that they share."""

    def test_a_difference_has_the_variance_of_the_difference(self):
        answer = draw(asked(("count",)))
        table = answer["g", "x"]
        one, other = table.take([0]), table.take([1])
        # Both are cells of one table: the keys that differ are left out of the comparison.
        difference = replace(one, keys=(), groups=((),)) - replace(other, keys=(), groups=((),))
        low, high = difference.interval
        cells = {"g": "a", "x": 0}, {"g": "a", "x": 1}
        variance = sum(
            (1 if first == second else -1) * answer.covariance("count0", first, second)
            for first in cells
            for second in cells
        )
        assert math.isclose((high - low) / 2, 1.959964 * variance**0.5, rel_tol=0.01)
        assert math.isclose(difference.value, one.value - other.value)

    def test_a_total_of_all_parts_has_the_noise_of_the_total(self):
        answer = draw(asked(("count",)))
        ((*_, value, low, high),) = answer["g"].running_total().take([1]).rows()
        total = answer.total
        assert math.isclose(value, total.value, abs_tol=1e-6)
        # Ends of whole counts are rounded inwards, those of computed numbers are not.
        assert math.isclose(
            high - low, 2 * 1.959964 * answer.covariance("count0", {}, {}) ** 0.5, rel_tol=0.01
        )

    def test_a_share_is_covered_and_narrower_than_without_the_covariance(self):
        table = tuple(((ward, value),) for ward in ("a", "b") for value in (0, 1, 2) for _ in range(50))
        answer = draw(asked(("count",)), table, Spend(rho=0.05))
        shares = answer.share_of("g")
        for row in shares:
            assert row["count0_lo"] <= 0.5 <= row["count0_hi"] or row["count0"] != 0.5
        separate = answer["g"].take([0]) / replace(
            answer.total,
            columns={name: replace(column, linear=None) for name, column in answer.total.columns.items()},
        )
        widths = [
            row["count0_hi"] - row["count0_lo"] for each in (shares.take([0]), separate) for row in each
        ]
        assert widths[0] < widths[1]

    def test_answers_that_were_stored_know_their_noise(self):
        answer = draw(asked(("count",)))
        again = Answer.from_json(answer.to_json())
        # The same numbers, so nothing is left of the noise in their difference.
        nothing = answer["g"] - again["g"]
        assert all(row["count0_hi"] - row["count0_lo"] < 0.1 for row in nothing)

    def test_laplace_noise_keeps_to_what_is_proved(self):
        answer = draw(asked(("count",)), spend=LAPLACE)
        assert all(row["count0_lo"] <= row["count0"] <= row["count0_hi"] for row in answer.share_of("g"))


class TestViews:
    def test_numbers_without_negative_ones_agree_and_keep_their_intervals(self):
        table = ((("a", 0),),) * 3
        for _ in range(5):
            answer = draw(asked(("count",)), table, Spend(rho=0.05), rows_are_units=True)
            view = answer.nonnegative(consistent=True)
            rows = {row[:3]: row[3:] for row in view.rows()}
            assert len(rows) == len(answer)
            for (g, x, name), (value, low, high) in rows.items():
                assert 0 <= low <= value <= high
                if name == "g":
                    parts = [rows[g, other, "g, x"][0] for other in (0, 1, 2)]
                    assert math.isclose(sum(parts), value, abs_tol=1e-6)
                assert (
                    high
                    >= answer.columns["count0"].hi[[each[:3] for each in answer.groups].index((g, x, name))]
                )

    def test_the_nearest_table_is_nearest(self):
        """Against a general solver, in the metric of the noise."""
        from scipy.optimize import nnls

        from discreet.tables.answer import cube_views
        from tests.tables.workloads import dense

        answer = draw(asked(("count",)), ((("a", 0),),) * 2, Spend(rho=0.05), rows_are_units=True)
        ((_, released),) = answer.tables.numbers("count0")
        sizes = released.system.sizes
        rows, numbers = [], []
        for keys in released.system.residuals:
            part = dense.residual(sizes, keys) @ dense.marginal(sizes, keys)
            rows.append(part / released.variances[keys] ** 0.5)
            numbers.append(np.ravel(released.residuals[keys]) / released.variances[keys] ** 0.5)
        best, _ = nnls(np.concatenate(rows), np.concatenate(numbers))
        assert np.allclose(cube_views._nearest_table(released).ravel(), best, atol=1e-3)

    def test_whole_numbers_of_a_rollup_add_up(self):
        for _ in range(5):
            answer = draw(
                asked(("count",), sets=WORKLOADS["rollup"]), spend=Spend(rho=0.02), rows_are_units=True
            )
            view = answer.whole_numbers()
            rows = {row[:3]: row[3:] for row in view.rows()}
            for (g, _, name), (value, low, high) in rows.items():
                assert isinstance(value, int)
                assert 0 <= low <= value <= high
                if name == "g":
                    assert value == sum(rows[g, x, "g, x"][0] for x in (0, 1, 2))
                if name == "total":
                    assert value == sum(rows[each, None, "g"][0] for each in "ab")
        with pytest.raises(BadParameter, match="DP107"):
            draw(asked(("count",))).whole_numbers()

    def test_only_clear_numbers_are_kept(self):
        answer = draw(asked(("count",)), ((("a", 0),),) * 60, Spend(rho=0.5), rows_are_units=True)
        names = {row[:3] for row in answer.sparse(min_z=6).rows()}
        assert names == {(None, None, "total"), ("a", None, "g"), (None, 0, "x"), ("a", 0, "g, x")}
        for wrong in (0, -1, math.nan, "3"):
            with pytest.raises(BadParameter):
                answer.sparse(min_z=wrong)

    def test_a_share_of_something_else_is_refused(self):
        answer = draw(asked(("count",)))
        with pytest.raises(BadParameter, match="DP105"):
            answer.share_of("g", of=("x",))


class TestAudit:
    """The whole release, and one whose tables are not made to residuals, on two neighbouring tables."""

    SETS = closure_of([(0, 1, 2, 3)])

    def statistics(self, mutant):
        """Draws the sum that tells a row from none best, of everything that is released."""
        layout = Layout(
            (),
            ResidualSystem((2, 2, 2, 2), self.SETS),
            plan_noise(ResidualSystem((2,) * 4, self.SETS)).variances,
        )
        measurement = measurement_at(layout, 1.0)
        row = SparseTable(np.zeros((1, 4), np.int64), np.array([1]))
        blocks = dict(layout.exact_blocks(row, measurement.multipliers))
        if mutant:
            blocks = {
                keys: measurement.multipliers[keys] * layout.system.cells(keys) * (np.arange(block.size) == 0)
                for keys, block in blocks.items()
            }

        def draw(rows, count):
            total = np.zeros(count)
            for keys, block in blocks.items():
                shift = np.ravel(block).astype(float) / measurement.scales[keys]
                scale = exactly(measurement.scales[keys])
                drawn = noises.rounded_gaussian(scale, count * shift.size).reshape(count, -1)
                total += (rows * np.ravel(block) + drawn) / measurement.scales[keys] @ shift
            return total

        return draw

    @may_fail(1e-9, "an audit with its own confidence, on each of two functions")
    def test_the_release_keeps_its_guarantee_and_the_mutant_does_not(self):
        words = {"trials": 6_000, "confidence": 1 - 4e-10, "claim": dp.privacy.gaussian(1.0), "workers": 1}
        sound = dp.audit(batched(self.statistics(mutant=False)), 0, 1, **words)
        assert not sound.refutes()
        assert dp.audit(batched(self.statistics(mutant=True)), 0, 1, **words).refutes()


def test_a_printed_cube_says_that_its_numbers_are_rounded_one_by_one():
    session = dp.Session(ADULT, limit=dp.Limit.filter(rho=1))
    cube = session.release(ADULT.cube("sex", "race").count(), rho=0.1)
    for shown in (str(cube), cube._repr_html_()):
        assert "add up to those of the whole" in shown
    assert "add up" not in str(cube["sex"])
    # What is said is true of the numbers themselves.
    for names in (("sex",), ("race",), ("sex", "race")):
        assert sum(cube[names].columns["count"].values) == pytest.approx(cube.total.value, abs=1e-6)
