# SPDX-License-Identifier: Apache-2.0
"""A question becomes one mechanism: what it guarantees, what it answers, what it refuses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet import testing
from discreet.errors import BadParameter, DiscreetError, EngineFailed, RefusedQuestion
from discreet.exact import exactly
from discreet.mechanisms import check_mechanism
from discreet.tables.ask.question import Key
from discreet.tables.plan.cap import CapMechanism
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.chance import may_fail
from tests.statistical.constants import ALPHA, WRONG
from tests.statistical.fit import accepts, discrete_laplace
from tests.tables.small import WARD, dataset, number, question

X = number(0, 60)
SPENDS = [
    Spend(epsilon=0.1),
    Spend(epsilon=1),
    Spend(epsilon=1, delta=1e-6),
    Spend(rho=0.02),
    Spend(epsilon=7, delta=1e-9),
]
ASKED = {
    "count": [("count",)],
    "mean": [("mean", X), ("count",)],
    "many": [
        ("count",),
        ("units",),
        ("variance", X),
        ("sum", X),
        ("quantile", X, {"fraction": (1, 2)}),
        ("max", X),
    ],
    "mode": [("mode", WARD, {"values": ("a", "b")}), ("units",)],
}


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("keys", "spend"),
    [
        *itertools.product([None, ("a", "b")], SPENDS),
        ("unknown", Spend(epsilon=1, delta=1e-6)),
        ("unknown", Spend(rho=0.02, delta=1e-6)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_the_guarantee_implies_the_spend(asked, keys, spend, relation):
    data = dataset(at_most=20, relation=relation)
    mechanism = compile_question(question(*asked, keys=keys), data, spend)
    assert mechanism.unit == data.unit
    assert mechanism.guarantee.implies(spend.target(data.unit))
    if spend.is_pure:
        assert mechanism.guarantee.epsilon(delta=0) >= 0.999 * spend.epsilon


def test_ten_questions_at_a_tenth_fit_one():
    data = dataset(at_most=3)
    for asked in ASKED.values():
        guarantee = compile_question(question(*asked, keys=("a", "b")), data, Spend(epsilon=0.1)).guarantee
        assert exactly((10 * guarantee).epsilon(delta=0)) <= 1


def test_every_public_group_is_answered_in_order():
    table = [(("b", 5), (None, 7))] * 50 + [(("elsewhere", 5),)] * 50
    asked = question(("count",), ("mean", X), keys=("b", "a", None, "b"))
    mechanism = compile_question(asked, dataset(table, at_most=2), Spend(epsilon=1000))
    assert mechanism.error(1 - 1e-12)["count0"] < 0.2
    answer = mechanism.draw(dataset(table, at_most=2))
    assert answer.groups == (("a",), ("b",), (None,))
    assert [row["count0"] for row in answer] == pytest.approx([0, 50, 50], abs=0.2)
    # counts are off by 0.2 and sums by 60 times that, at most: the means by less than 0.3
    assert [row["mean1"] for row in answer][1:] == pytest.approx([5, 7], abs=0.3)
    assert answer.guarantee is not None
    assert answer.columns["mean1"].text == "MEAN(…)"


def test_rows_elsewhere_take_nothing_from_a_unit():
    """Somebody with one row in a public group and many in others counts in full."""
    table = [(("a", 5), *[("x", 1)] * 9)] * 100
    for spend in (Spend(epsilon=50), Spend(rho=500)):
        answer = compile_question(question(("count",), keys=("a",)), dataset(table), spend).draw(
            dataset(table)
        )
        assert answer.value == pytest.approx(100, abs=2)


def test_people_with_more_rows_are_down_weighted_and_a_note_says_so():
    table = [(("a", 60),) * 8] * 100
    for spend in (Spend(epsilon=100), Spend(rho=5000)):
        mechanism = compile_question(question(("count",), ("mean", X)), dataset(table, at_most=4), spend)
        answer = mechanism.draw(dataset(table, at_most=4))
        assert next(iter(answer))["count0"] == pytest.approx(400, rel=0.02)
        assert next(iter(answer))["mean1"] == pytest.approx(60, rel=0.02)
        assert any("contributes at most 4 rows" in note for note in answer.notes)


@pytest.mark.parametrize("spend", [Spend(epsilon=100), Spend(rho=5000)], ids=repr)
@pytest.mark.parametrize(
    ("at_most", "groups", "counted"), [(3, None, 3), (3, 2, 2), (1, None, 1), (9, None, 3)]
)
def test_units_in_several_groups_count_in_full_as_far_as_was_said(spend, at_most, groups, counted):
    """Units in m groups count 1 in each if m <= c, else c/m (in l1) or √(c/m) (in l2)."""
    table = [(("a", 1), ("a", 2), ("b", 1), ("c", 1))] * 200 + [(("a", 1),)] * 100
    data = dataset(table, at_most, groups)
    answer = compile_question(question(("units",), keys=("a", "b", "c")), data, spend).draw(data)
    share = counted / 3 if spend.is_pure else math.sqrt(counted / 3)
    assert answer.columns["units0"].values == pytest.approx(
        [100 + 200 * share, 200 * share, 200 * share], abs=3
    )


def test_rows_that_are_units_give_whole_numbers():
    table = [(("a", 1),)] * 100
    for spend in (Spend(epsilon=3), Spend(rho=2), Spend(epsilon=2, delta=1e-6)):
        asked = question(("count",), ("units",), ("mean", X), keys=("a", "b"))
        answer = compile_question(asked, dataset(table, rows_are_units=True), spend).draw(dataset(table))
        for row in answer:
            assert all(isinstance(row[name], int) for name in ("count0", "count0_lo", "count0_hi", "units1"))
        assert len(answer.notes) == bool(spend.delta)
        assert all("Laplace noise, which leaves less error" in note for note in answer.notes)


NAN, INF = float("nan"), float("inf")


def test_values_that_are_no_numbers_do_no_harm():
    table = [(("a", v),) for v in (NAN, INF, -INF, None, 1e308, -0.0, 5e-324)] * 30
    asked = question(
        ("count",), ("count_of", X), ("sum", X), ("variance", X), ("quantile", X, {"fraction": (1, 2)})
    )
    for spend in (Spend(epsilon=100), Spend(rho=1000)):
        (row,) = compile_question(asked, dataset(table), spend).draw(dataset(table))
        assert row["count0"] == pytest.approx(210, abs=2)
        assert row["count_of1"] == pytest.approx(150, abs=2)
        assert row["sum2"] == pytest.approx(60 * 60, abs=100)


def test_an_empty_table_is_answered_like_any_other():
    for asked, spend in itertools.product(ASKED.values(), SPENDS):
        answer = compile_question(question(*asked, keys=("a", "b")), dataset(), spend).draw(dataset())
        assert len(answer) == 2


def test_an_engine_that_fails_says_nothing():
    class Broken:
        def sums(self, asked):
            raise ValueError("could not convert string 'Ann'")

    data = dataset()
    object.__setattr__(data, "engine", Broken())
    with pytest.raises(EngineFailed) as failed:
        compile_question(question(("count",)), dataset(), Spend(epsilon=1)).draw(data)
    assert "Ann" not in str(failed.value)
    assert failed.value.__context__ is None


@may_fail(4 * ALPHA, "two distributions fit, two do not")
def test_the_noise_has_the_guaranteed_scale():
    keys = tuple(str(i) for i in range(20_000))
    data = dataset(rows_are_units=True)
    counts = compile_question(question(("count",), keys=keys), data, Spend(epsilon=0.25)).draw(data)
    drawn = np.array(counts.columns["count0"].values)
    accepts(drawn, lambda k: discrete_laplace(k, 4.0), lambda k: discrete_laplace(k, 4.0 * (1 - WRONG)))
    mechanism = compile_question(question(("count",), keys=keys), data, Spend(rho=0.02))
    drawn = np.array(mechanism.draw(data).columns["count0"].values)

    def rounded(k, sigma):
        return stats.norm.cdf((k + 0.5) / sigma) - stats.norm.cdf((k - 0.5) / sigma)

    accepts(drawn, lambda k: rounded(k, 5.0), lambda k: rounded(k, 5.0 * (1 - WRONG)))


class Everywhere:
    """The same people in every group of as many groups as one likes."""

    def __init__(self, table, groups):
        self._one, self._groups = dataset(table).engine, groups
        self.check = self._one.check

    def sums(self, asked):
        whole = dict(self._one.sums(asked))
        ((_, values),) = whole.items()
        return {(group,): values for group in self._groups}


KINDS = {
    "count": len,
    "sum": sum,
    "mean": np.mean,
    "variance": np.var,
    "stddev": np.std,
}


@pytest.mark.parametrize("spend", [Spend(epsilon=1), Spend(rho=0.5)], ids=repr)
@pytest.mark.parametrize("values", [[0] * 4, [50] * 30, [7, 55] * 40], ids=["few", "off centre", "wide"])
@pytest.mark.parametrize("together", [True, False])
def test_intervals_cover(spend, values, together):
    """Each column covers its exact number at least as often as it says, and not for being infinitely wide."""
    groups = tuple(f"{i}" for i in range(1500))
    kinds = KINDS if together else {"mean": KINDS["mean"]}
    asked = question(*(((kind,) if kind == "count" else (kind, X)) for kind in kinds), keys=groups)
    data = dataset()
    object.__setattr__(data, "engine", Everywhere([(("0", x),) for x in values], groups))
    answer = compile_question(asked, data, spend).draw(data)
    for (kind, exact), column in zip(kinds.items(), answer.columns.values(), strict=True):
        truth = exact(values)
        for confidence in (0.95, 0.5):
            low, high = column.interval(confidence)
            inside = sum(a - 1e-9 <= truth <= b + 1e-9 for a, b in zip(low, high, strict=True))
            assert inside >= stats.binom.ppf(ALPHA, len(groups), confidence), (kind, confidence)
        if kind == "count":
            assert inside < 0.75 * len(groups), "an interval at 50 % that always covers says nothing"


def test_more_confidence_is_wider():
    data = dataset([(("a", 30),)] * 1000)
    answer = compile_question(question(("mean", X), ("count",)), data, Spend(epsilon=1)).draw(data)
    for column in answer.columns.values():
        (low,), (high,) = column.interval(0.5)
        assert column.lo[0] <= low <= column.values[0] <= high <= column.hi[0]


def numbers(answer):
    return np.array([row[1:] for row in answer.rows()], dtype=float)


@pytest.mark.parametrize("spend", [Spend(epsilon=1), Spend(epsilon=1, delta=1e-6)], ids=repr)
def test_it_is_a_mechanism_like_any_other(spend):
    here, there = (
        dataset([(("a", 9), ("b", 9))] * 3, at_most=2),
        dataset([(("a", 9), ("b", 9))] * 2, at_most=2),
    )
    asked = question(("count",), ("mean", X), keys=("a", "b"))
    seen = compile_question(asked, here, spend).then(numbers)
    assert check_mechanism(seen, here, neighbour=there) is None
    assert check_mechanism(CapMechanism(here, epsilon=1), here, neighbour=there) is None


def test_an_audit_finds_nothing():
    here, there = (
        dataset([(("a", 9), ("b", 9))] * 3, at_most=2),
        dataset([(("a", 9), ("b", 9))] * 2, at_most=2),
    )
    for spend in (Spend(epsilon=1), Spend(epsilon=1, delta=1e-3)):
        mechanism = compile_question(question(("count",), keys=("a", "b")), here, spend)
        seen = mechanism.then(lambda answer: answer.columns["count0"].values)
        assert not dp.audit(seen, here, there, trials=500, workers=1).refutes()


def test_an_audit_finds_noise_that_is_too_small():
    here, there = dataset([(("a", 9),)] * 3), dataset([(("a", 9),)] * 2)
    mechanism = compile_question(question(("count",)), here, Spend(epsilon=8))
    seen = mechanism.then(lambda answer: answer.value)
    claim = compile_question(question(("count",)), here, Spend(epsilon=1)).guarantee
    assert dp.audit(seen, here, there, trials=500, workers=1, claim=claim).refutes()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (question(("sum", WARD)), "DP706"),
        (question(("mean", WARD)), "DP706"),
        (question(), "DP706"),
        (question(("count",), keys=()), "DP704"),
    ],
)
def test_what_cannot_be_answered_is_refused(asked, code):
    with pytest.raises(RefusedQuestion) as refused:
        compile_question(asked, dataset(), Spend(epsilon=1))
    assert refused.value.code == code


def test_reals_and_too_many_keys_are_refused():
    base = question(("count",))
    for keys in (
        (Key("x", number(0, 8, places=2), None),),
        *[(Key("g", WARD, tuple(map(str, range(3200)))),) * 2],
    ):
        with pytest.raises(RefusedQuestion) as refused:
            compile_question(
                type(base)(base.rows, base.aggregates, keys), dataset(), Spend(epsilon=1, delta=1e-6)
            )
        assert refused.value.code == "DP704"


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": NAN},
        {"epsilon": INF},
        {"epsilon": True},
        {"epsilon": "1"},
        {"rho": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": -1e-9},
        {"delta": 1e-6},
    ],
)
def test_a_spend_is_checked(words):
    with pytest.raises(BadParameter):
        Spend(**words)


def test_auto_needs_a_number_first():
    with pytest.raises(BadParameter) as refused:
        compile_question(question(("count",)), dataset(at_most="auto"), Spend(epsilon=1))
    assert refused.value.code == "DP107"
    mechanism = compile_question(question(("count",)), dataset(at_most="auto"), Spend(epsilon=1), cap=7)
    assert mechanism.scope.contribution.rows == 7


def test_a_budget_that_is_far_too_small_is_refused():
    with pytest.raises(DiscreetError):
        compile_question(question(("sum", number(0, 2**50))), dataset(at_most=10**6), Spend(epsilon=1e-9))


def test_coarse_values_are_still_right():
    """A range of 2^40 cells is rounded to a grid, to the nearest, and zero stays zero."""
    wide = number(-(2**40), 2**40, places=8)
    table = [(("a", x),) for x in (0.0, 1e6, -2.5e6, 3e6)] * 200
    for spend in (Spend(epsilon=1000), Spend(rho=1e6)):
        mechanism = compile_question(
            question(("mean", wide), ("sum", wide), ("count",)), dataset(table), spend
        )
        (row,) = mechanism.draw(dataset(table))
        assert row["mean0"] == pytest.approx(375_000, rel=1e-3, abs=2e5)
        assert row["sum1"] == pytest.approx(3e8, rel=1e-3, abs=1e8)
        assert any("nearest multiple" in note for note in mechanism.notes)


def test_a_repeatable_source_is_marked():
    with testing.seeded(7):
        answer = compile_question(question(("count",)), dataset(), Spend(epsilon=1)).draw(dataset())
    assert not answer.private


def test_a_preview_says_what_will_come():
    asked = question(("count",), ("variance", X), ("mean", X), keys="unknown")
    spend = Spend(epsilon=1, delta=1e-6)
    mechanism = compile_question(asked, dataset(at_most=20), spend)
    preview = mechanism.preview()
    assert "found by key selection" in preview.groups
    assert [column.name for column in preview.columns] == ["count0", "variance1", "mean2"]
    counted = question(("count",), ("sum", X), keys=("a", "b"))
    advice = compile_question(counted, dataset(at_most=20), spend).preview().cheaper
    assert any("without" in sentence for sentence in advice)
    assert preview.to_dict()["protects"] == "one id added or removed"
    for text in (str(preview), preview._repr_html_()):
        assert "count0" in text
        assert "1000 rows" in text
    pure = compile_question(
        question(*[("sum", number(0, i)) for i in range(1, 40)]), dataset(), Spend(epsilon=1)
    )
    assert any("Gaussian" in sentence for sentence in pure.preview().cheaper)


def test_errors_are_those_of_the_noise():
    data = dataset(rows_are_units=True)
    mechanism = compile_question(question(("count",), ("mean", X)), data, Spend(epsilon=1))
    assert mechanism.error()["mean1"] is None
    (count,) = compile_question(question(("count",)), data, Spend(epsilon=1)).error().values()
    q = math.exp(-1)
    assert 2 * q ** (count + 1) / (1 + q) <= 0.05 < 2 * q**count / (1 + q)
    with pytest.raises(BadParameter):
        mechanism.error(confidence=1.0)
