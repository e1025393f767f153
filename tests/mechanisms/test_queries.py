# SPDX-License-Identifier: Apache-2.0
"""Sensitivities are true and reached, for all small data sets and both relations; no record can break an answer."""

from __future__ import annotations

import itertools
import math
import numbers
import pickle
import random
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadParameter, DiscreetError, UnsupportedGuarantee
from discreet.mechanisms import exact, queries
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.moments import FromShares

ODD = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    -(10**400),
    "text",
    b"x",
    [1],
    {},
    1j,
    object(),
    Decimal("sNaN"),
]


class Rude:
    """A record that raises whatever is done to it."""

    def __hash__(self):
        raise RuntimeError("secret")

    def __eq__(self, other):
        raise RuntimeError("secret")

    def __float__(self):
        raise RuntimeError("secret")


numbers.Real.register(Rude)


def _vector(found):
    return [
        Fraction(int(x)) if isinstance(x, np.integer) else Fraction(x)
        for x in np.atleast_1d(np.array(found, object))
    ]


def _distance(query, a, b, norm):
    gaps = [abs(x - y) for x, y in zip(_vector(query.exact(a)), _vector(query.exact(b)), strict=True)]
    return sum(gaps) if norm == 1 else sum(gap * gap for gap in gaps)


def _neighbours(values, size, relation):
    for data in itertools.product(values, repeat=size):
        for value in values:
            yield data, ((*data, value) if relation == "add-remove" else (*data[:-1], value))


def _greatest(query, values, relation, norm, sizes):
    return max(
        _distance(query, list(a), list(b), norm)
        for size in sizes
        for a, b in _neighbours(values, size, relation)
    )


SECTORS = [lambda x: x in {1, 4}, lambda x: x in {2, 4}, lambda x: x in {3, 4}]
CASES = {
    "count": (queries.count(lambda x: x > 1), [0, 1, 2, None], (1, 2)),
    "counts": (queries.counts(SECTORS), range(5), (1, 2)),
    "counts, disjoint": (queries.counts(SECTORS, at_most=1), range(5), (1, 2)),
    "counts, two of three": (
        queries.counts([lambda x: x & 1, lambda x: x & 2, lambda x: x & 4], at_most=2),
        range(8),
        (1,),
    ),
    "one count as a list": (queries.counts([bool]), [0, 1], (1, 2)),
    "histogram": (queries.histogram(["a", "b", "c"]), ["a", "b", "z", None], (1, 2)),
    "histogram with others": (queries.histogram(["a"], other=True), ["a", "z", [1]], (1, 2)),
    "histogram of one": (queries.histogram(["a"]), ["a", "z"], (1, 2)),
    "sum": (queries.sum((-2, 5)), [-9, -2, 0, 5, 0.3, math.nan, math.inf], (1, 2)),
    "sum below zero": (queries.sum((-0.7, -0.1)), [-9, -0.7, 0, -0.1, None], (1, 2)),
    "mean": (queries.mean((-1, 2)), [-1, 2, 0.25, None, 7], (1, 2)),
    "variance": (queries.variance((-1, 2)), [-1, 2, 0.25, None, 7], (1, 2)),
    "sized mean": (queries.mean((-1, 2), size=3), [-1, 2, 0.25, 7], (3,)),
    "sized variance": (queries.variance((-1, 2), size=3), [-1, 2, 0.5, 7], (3,)),
    "variance of two": (queries.variance((-1, 2), size=2), [-1, 2, 0.5, math.nan], (2,)),
    "statistical": (queries.statistical(lambda x: x / 4, size=3), [0, 1, 4, 9, "x"], (3,)),
}
ROWS = [(name, relation) for name, case in CASES.items() for relation in case[0].relations]


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("name", "relation"), ROWS)
def test_a_sensitivity_is_true_and_reached(name, relation, norm):
    query, values, sizes = CASES[name]
    truth = _greatest(query, values, relation, norm, sizes)
    stated = query.moves(relation, norm) ** norm
    assert truth <= stated
    assert float(stated) == pytest.approx(float(truth), rel=1e-15)
    assert query.sensitivity(relation, norm) == pytest.approx(
        float(truth) ** (1 / norm) / query.per, rel=1e-12
    )
    assert Fraction(query.sensitivity(relation, norm)) >= query.moves(relation, norm) / query.per * (
        1 - Fraction(1, 10**15)
    )


@pytest.mark.parametrize(("name", "relation"), ROWS)
def test_the_order_of_records_does_not_matter(name, relation):
    query, values, sizes = CASES[name]
    for data in itertools.product(values, repeat=max(sizes)):
        assert _vector(query.exact(list(data))) == _vector(query.exact(list(data)[::-1]))


def test_the_stated_answers_are_the_textbook_ones():
    ages = [3, 17, 18, 64, 65, 90, 200, -4]
    clipped = [min(max(age, 0), 120) for age in ages]
    assert queries.count(lambda age: age >= 65).exact(ages) == 3
    assert queries.count().exact(np.zeros((7, 2))) == 7
    assert queries.counts([lambda a: a < 18, lambda a: a >= 18]).exact(ages).tolist() == [3, 5]
    assert queries.histogram([3, 17.0], other=True).exact(ages).tolist() == [1, 1, 6]
    assert queries.sum((0, 120)).exact(ages) == sum(clipped)
    assert queries.sum((0, 120), of=lambda age: age / 2).exact(ages) == Fraction(
        sum(min(max(a / 2, 0), 120) for a in ages)
    )
    query = queries.variance((0, 120), size=8)
    assert float(query.exact(ages) / query.per) == pytest.approx(np.var(clipped), rel=1e-12)
    shares = queries.variance((0, 120))
    assert float(shares.answer_from(shares.exact(ages))) == pytest.approx(np.var(clipped), rel=1e-12)
    shares = queries.mean((0, 120))
    assert float(shares.answer_from(shares.exact(ages))) == pytest.approx(np.mean(clipped), rel=1e-12)
    assert shares.answer_from(shares.exact(ages)).size == pytest.approx(8)


def test_only_the_first_conditions_count_where_a_record_satisfies_too_many():
    three = [lambda _: True] * 3
    assert queries.counts(three, at_most=2).exact([0, 0]).tolist() == [2, 2, 0]
    assert queries.counts(three, at_most=9).exact([0, 0]).tolist() == [2, 2, 2]


# --- exact sums --------------------------------------------------------------------------------------


def test_sums_are_exact_at_every_magnitude():
    generator = random.Random(5)
    values = [math.ldexp(generator.uniform(-1, 1), generator.randint(-1074, 300)) for _ in range(3_000)]
    values += [5e-324, -5e-324, 0.0, -0.0, 1e100, -1e100, 1 - 2**-53, -(1 - 2**-53)]
    assert exact.total(np.array(values)) == sum(map(Fraction, values))
    assert exact.total_of_squares(np.array(values)) == sum(Fraction(x) ** 2 for x in values)
    assert exact.total(np.array([])) == exact.total_of_squares(np.array([])) == 0


def test_a_chunk_of_the_greatest_mantissas_does_not_overflow():
    greatest, count = 1 - 2.0**-53, 2**20 + 3
    for sign in (1, -1):
        many = np.full(count, sign * greatest)
        assert exact.total(many) == sign * count * Fraction(greatest)
        assert exact.total_of_squares(many) == count * Fraction(greatest) ** 2


def test_the_limbs_of_a_chunk_fit_into_int64():
    """The sum of a chunk is at most its greatest limb times its length; squares of extreme mantissas are whole."""
    edges = [2**53 - 1, 2**52, 2**36 - 1, 2**18 - 1, 1, 0]
    mantissas = np.array(edges + [-edge for edge in edges], np.int64)
    limbs = exact._squares(mantissas)
    assert sum(limb.astype(object) << shift for limb, shift in limbs).tolist() == [
        int(m) ** 2 for m in mantissas
    ]
    assert max(int(np.abs(limb).max()) for limb, _ in limbs) * exact._CHUNK < 2**63
    assert (2**53 >> 27) * exact._CHUNK < 2**63


def test_float_sums_that_fail_elsewhere():
    """numpy's sum depends on order by thousands of sensitivities here; and int64 sums wrap around."""
    data = [2.0**50, 1.0, -(2.0**50)] * 1000
    query = queries.sum((-(2.0**50), 2.0**50))
    assert query.exact(data) == query.exact(sorted(data)) == 1000
    assert queries.sum((0, 2.0**63)).exact(np.full(5, 2**62, np.int64)) == 5 * 2**62
    assert queries.sum((0, 2.0**64)).exact(np.full(5, 2**64 - 1, np.uint64)) == 5 * 2**64
    assert isinstance(queries.sum((0, 2.0**63)).laplace(epsilon=1)([2**62] * 5).value, float)


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.uint64, np.float16, np.float32, np.longdouble, np.bool_, object]
)
def test_every_kind_of_array_is_read_like_a_list(kind):
    data = np.array([0, 1, 1], kind)
    assert queries.sum((0, 3)).exact(data) == queries.sum((0, 3)).exact(data.tolist()) == 2
    assert queries.histogram([0, 1]).exact(data).tolist() == [1, 2]


# --- records that are no numbers ---------------------------------------------------------------------


@pytest.mark.parametrize("odd", [*ODD, Rude()], ids=lambda odd: type(odd).__name__)
def test_a_record_never_changes_what_another_counts_as(odd):
    alone, others = [odd], [1.5, 2, True, Decimal("0.25")]
    for query in (
        queries.sum((0, 10)),
        queries.mean((0, 10)),
        queries.histogram([2, 1.5]),
        queries.count(lambda x: x > 1),
    ):
        together = _vector(query.exact(alone + others))
        assert together == [
            a + b for a, b in zip(_vector(query.exact(alone)), _vector(query.exact(others)), strict=True)
        ]


def test_what_is_no_number_counts_as_the_middle_and_infinities_as_the_bounds():
    query = queries.sum((2, 8))
    assert [query.exact([odd]) for odd in ODD] == [5, 5, 8, 2, 8, 2, 5, 5, 5, 5, 5, 5, 5]
    assert query.exact([Rude()]) == query.exact(np.array([np.nan])) == 5
    assert query.exact(np.ma.masked_array([3, 999], mask=[False, True])) == 8
    assert query.exact(np.array([np.inf, -np.inf, 1e308, -0.0, 5e-324])) == 8 + 2 + 8 + 2 + 2
    assert query.exact(np.array(["3", "4"])) == 10
    assert queries.sum((-3, 8)).exact([-0.0, 5e-324]) == Fraction(5e-324)


def test_functions_of_a_record_never_fail_and_never_warn():
    def troubled(x):
        warnings.warn("record", stacklevel=1)
        return 1 / x

    data = [0, 1, 4, "a", None]
    assert queries.sum((0, 1), of=troubled).exact(data) == Fraction(1, 2) + 1 + Fraction(1, 4) + 1
    assert queries.count(troubled).exact(data) == 2
    assert queries.counts([troubled, lambda x: x]).exact(data).tolist() == [2, 2]
    odd = [None, math.nan, "yes", [1], np.array([True, True]), 0, False, np.False_, 2, True, np.True_, -0.5]
    assert queries.count(lambda i: odd[i]).exact(range(len(odd))) == 4
    assert (
        queries.statistical(lambda i: odd[i], size=len(odd)).exact(list(range(len(odd))))
        == 5 * Fraction(1, 2) + 3
    )


@pytest.mark.parametrize("name", CASES)
def test_empty_records_and_odd_ones_are_answered_like_others(name):
    query, _, sizes = CASES[name]
    noisy = [query.laplace(epsilon=1), query.gaussian(rho=0.5)]
    noisy += [query.geometric(epsilon=1)] if hasattr(query, "geometric") else []
    sized = "size" in getattr(query, "__dataclass_fields__", {})
    for mechanism in noisy:
        kinds = set()
        for data in ([], [1], ODD, [Rude()], np.array([np.nan])):
            right = (list(data) + [0] * sizes[0])[: sizes[0]]
            release = mechanism(right if sized else data)
            assert np.all(np.isfinite(np.asarray(release.value, float)))
            shape = np.shape(release.value), len(release.interval)
            kinds.add((type(release.value), type(release.error), shape))
        assert len(kinds) == 1


@pytest.mark.parametrize("records", [5, None, "abc", b"abc", {1: 2}, {1, 2}, np.float64(3), np.array(3)])
def test_what_is_no_list_is_refused(records):
    for query in (queries.count(), queries.sum((0, 1)), queries.mean((0, 1)), queries.histogram([1])):
        with pytest.raises(BadParameter) as caught:
            query.exact(records)
        assert caught.value.code == "DP104"


def test_a_table_is_refused_where_a_column_is_meant():
    with pytest.raises(BadParameter):
        queries.sum((0, 1)).exact(np.zeros((2, 2)))
    assert queries.sum((0, 9), of=lambda row: row[1]).exact(np.array([[1, 2], [3, 4]])) == 6


# --- mechanisms --------------------------------------------------------------------------------------


def test_the_guarantee_is_what_was_asked_for_at_the_relation_of_the_query():
    for query, relation in ((queries.mean((0, 1), size=5), "replace"), (queries.mean((0, 1)), "add-remove")):
        guarantee = query.laplace(epsilon=0.7, unit="patient").guarantee
        assert guarantee.epsilon(delta=0) <= 0.7
        assert guarantee.unit.relation == relation
        assert guarantee.unit.protects == "patient"
        assert query.gaussian(epsilon=0.7, delta=1e-5).guarantee.delta(epsilon=0.7) <= 1e-5
        assert query.gaussian(rho=0.1).guarantee.concentrated() <= 0.1
    both = queries.histogram([1, 2])
    assert both.geometric(epsilon=1).scale == 1
    assert both.geometric(epsilon=1, relation="replace").scale == 2


PICKLED = [
    queries.count(),
    queries.count(bool),
    queries.counts([bool, math.isfinite], at_most=1),
    queries.histogram([0, 1], other=True),
    queries.sum((-1, 1)),
    queries.mean((-1, 1)),
    queries.variance((-1, 1)),
    queries.mean((-1, 1), size=3),
    queries.variance((-1, 1), size=3),
    queries.statistical(bool, size=3),
]


@pytest.mark.parametrize("query", PICKLED)
def test_an_answer_keeps_the_rules_of_a_mechanism(query):
    noisy = [query.laplace(epsilon=1), query.gaussian(rho=0.5)]
    noisy += [query.geometric(epsilon=1)] if hasattr(query, "geometric") else []
    for mechanism in noisy:
        check_mechanism(mechanism, [0, 1, 1], [1, 1, 1], neighbour=[0, 1, 0])


def test_means_of_public_size_lose_nothing_to_rounding():
    answer = queries.mean((0, 1), size=50).gaussian(scale=0.1)
    assert answer.scale == pytest.approx(0.1, rel=1e-15)
    assert answer.guarantee.mu == pytest.approx(1 / (50 * 0.1), rel=1e-12)
    assert queries.mean((0, 1), size=50).laplace(epsilon=0.3).scale == pytest.approx(
        1 / (50 * 0.3), rel=1e-12
    )


def test_the_total_variation_of_statistical_queries():
    """Gaussian 2Φ(1/(2mσ)) - 1 exactly; Laplace at most 1 - e^(-ε/2), and both within tanh(ε/2)."""
    for size, scale, truth in ((50, 0.1, 0.0796557), (1, 0.2, 0.98758)):
        found = queries.statistical(bool, size=size).gaussian(scale=scale).guarantee.advantage()
        assert found == pytest.approx(math.erf(1 / (2 * size * scale) / math.sqrt(2)), rel=1e-9)
        assert found == pytest.approx(truth, rel=1e-5)
    for epsilon in (0.1, 1.0, 4.0):
        found = queries.statistical(bool, size=7).laplace(epsilon=epsilon).guarantee.advantage()
        assert 0.999 * -math.expm1(-epsilon / 2) <= found <= -math.expm1(-epsilon / 2) * (1 + 1e-3)
        assert found < math.tanh(epsilon / 2)


def test_a_public_size_is_not_answered_under_add_remove():
    for query in (
        queries.mean((0, 1), size=5),
        queries.variance((0, 1), size=5),
        queries.statistical(bool, size=5),
    ):
        with pytest.raises(UnsupportedGuarantee) as caught:
            query.laplace(epsilon=1, relation="add-remove")
        assert caught.value.code == "DP203"
        with pytest.raises(BadParameter) as refused:
            query.exact([0, 1, 77])
        assert "3" not in str(refused.value)
        assert "77" not in str(refused.value)
        assert "size=" in caught.value.fix
    with pytest.raises(UnsupportedGuarantee) as caught:
        queries.count().sensitivity("replace")
    assert "relation=" not in caught.value.fix


class Noise:
    """Stands in for drawn noise: the noisy numbers are the exact ones plus this."""

    def __init__(self, error):
        self._error = error

    def error(self, confidence):
        return self._error


GRID = [-1.0, -0.5, 0.0, 0.5, 1.0]
DATA = [list(d) for n in range(1, 5) for d in itertools.combinations_with_replacement([0.0, 0.5, 1.0], n)]
DATA += [d * 25 for d in DATA]


@pytest.mark.parametrize("error", [0.3, 2.0, 9.0])
def test_the_interval_of_a_protected_mean_holds_whenever_its_sums_are_as_wrong_as_stated(error):
    query = queries.mean((0, 1))
    for data in DATA:
        sums, truth = query.exact(data), np.mean(data)
        for off in itertools.product(GRID, repeat=2):
            value = query.answer_from([float(s) + error * o for s, o in zip(sums, off, strict=True)])
            low, high = query.interval(Noise(error), value, 0.95)
            assert low - 1e-12 <= truth <= high + 1e-12
            assert low - 1e-12 <= value <= high + 1e-12
            assert abs(value - truth) <= error / len(data) + 1e-12
    tight = query.answer_from([25.0 + error, 75.0 - error])
    assert tight - 0.25 == pytest.approx(error / 100)


@pytest.mark.parametrize("error", [0.3, 2.0, 9.0])
def test_the_interval_of_a_protected_variance_holds_whenever_its_sums_are_as_wrong_as_stated(error):
    query = queries.variance((0, 1))
    for data in DATA:
        sums, truth, n = query.exact(data), np.var(data), len(data)
        for off in itertools.product(GRID[::2], repeat=3):
            value = query.answer_from([float(s) + error * o for s, o in zip(sums, off, strict=True)])
            low, high = query.interval(Noise(error), value, 0.95)
            assert low - 1e-12 <= truth <= high + 1e-12
            if n > 3 * error:
                assert abs(value - truth) <= 2 * error / (n - 3 * error) + 1e-12


def test_a_value_without_its_sums_has_no_better_interval_than_the_bounds():
    for query, widest in ((queries.mean((2, 4)), (2, 4)), (queries.variance((2, 4)), (0, 1))):
        mechanism = query.laplace(epsilon=1)
        assert mechanism.interval(3.0) == widest
        assert mechanism.error() is None
        with pytest.raises(BadParameter):
            mechanism.error(confidence=1)
    kept = pickle.loads(pickle.dumps(FromShares(0.5, (1.0, 2.0))))
    assert (kept, kept.shares, kept.size) == (0.5, (1.0, 2.0), 3.0)


@pytest.mark.parametrize("amount", [{"epsilon": 0.5}, {"rho": 0.1}, {"epsilon": 0.5, "delta": 1e-6}])
def test_so_many_records_suffice(amount):
    goal = 0.02
    mean = queries.mean((0, 4), size=1)
    size = mean.sample_size(error=goal, confidence=0.9, **amount)

    def error_at(query_of, n):
        made = query_of(n)
        return (made.laplace(**amount) if set(amount) == {"epsilon"} else made.gaussian(**amount)).error(0.9)

    assert error_at(lambda n: queries.mean((0, 4), size=n), size) <= goal
    assert error_at(lambda n: queries.mean((0, 4), size=n), size - 1) > goal
    size = queries.variance((0, 2), size=2).sample_size(error=goal, confidence=0.9, **amount)
    assert error_at(lambda n: queries.variance((0, 2), size=n), size) <= goal
    assert error_at(lambda n: queries.variance((0, 2), size=n), int(size * 0.99)) > goal
    for query in (queries.mean((0, 4)), queries.variance((0, 2))):
        size = query.sample_size(error=goal, confidence=0.9, **amount)
        assert size > query.sample_size(error=2 * goal, confidence=0.9, **amount) > 1
        made = query.laplace(**amount) if set(amount) == {"epsilon"} else query.gaussian(**amount)
        half = [share * size / 4 for share in ((2, 2) if query.dimension == 2 else (1, 2, 1))]
        low, high = made.interval(query.answer_from(half), 0.9)
        assert (high - low) / 2 <= goal * 1.05


def test_sample_sizes_are_those_of_the_textbook():
    """ln(1/β)/(αε) for a mean with Laplace noise; the grid adds less than a thousandth."""
    size = queries.mean((0, 1), size=1).sample_size(error=0.01, confidence=0.75, epsilon=0.5)
    assert math.log(4) / (0.01 * 0.5) <= size <= math.log(4) / (0.01 * 0.5) * 1.002 + 1
    protected = queries.mean((0, 1)).sample_size(error=0.01, confidence=0.75, epsilon=0.5)
    joint = -math.log(1 - math.sqrt(0.75))
    assert joint / (0.01 * 0.5) <= protected <= joint / (0.01 * 0.5) * 1.003 + 1


def test_answers_stay_within_their_range():
    for query, low, high in (
        (queries.mean((2, 3)), 2, 3),
        (queries.mean((2, 3), size=1), 2, 3),
        (queries.variance((0, 2)), 0, 1),
    ):
        mechanism = query.laplace(epsilon=1e-3)
        values = [mechanism([2.5]) for _ in range(20)]
        assert all(low <= release.value <= high for release in values)
        assert all(low <= release.interval[0] <= release.interval[1] <= high for release in values)


# --- parameters --------------------------------------------------------------------------------------

BAD_NUMBERS = [0, -1, math.nan, math.inf, True, "1", None, 10**400, [1]]
REFUSED = [
    *[
        lambda b=b: queries.sum(b)
        for b in (
            None,
            5,
            (0,),
            (1, 1),
            (2, 1),
            (0, math.nan),
            (0, math.inf),
            ("a", 1),
            (False, 1),
            (0, 1e200),
            (1, 1 + 1e-200),
            "ab",
            (0, 1, 2),
            {0: 1, 1: 2},
        )
    ],
    *[lambda n=n: queries.mean((0, 1), size=n) for n in (0, -1, 1.5, True, "3", math.nan, 10**16)],
    *[lambda n=n: queries.variance((0, 1), size=n) for n in (0, 1, 2.0)],
    *[lambda n=n: queries.statistical(bool, size=n) for n in (None, 0, 2.5)],
    *[lambda f=f: queries.statistical(f, size=5) for f in (None, 3, "x")],
    *[lambda f=f: queries.count(f) for f in (3, "x", True)],
    *[lambda c=c: queries.counts(c) for c in (None, [], [3], bool, "ab")],
    *[lambda m=m: queries.counts([bool], at_most=m) for m in (0, -1, True, 1.0, "1")],
    *[lambda c=c: queries.histogram(c) for c in (None, [], "abc", [1, 1.0], [[1]], [math.nan], 3)],
    lambda: queries.histogram([1], other=1),
    lambda: queries.sum((0, 1), of=3),
    *[lambda e=e: queries.sum((0, 1)).laplace(epsilon=e) for e in BAD_NUMBERS],
    *[lambda r=r: queries.sum((0, 1)).gaussian(rho=r) for r in BAD_NUMBERS],
    *[lambda s=s: queries.mean((0, 1), size=3).laplace(scale=s) for s in BAD_NUMBERS],
    lambda: queries.variance((0, 1), size=10**9).laplace(scale=1e300),
    lambda: queries.sum((0, 1)).laplace(),
    lambda: queries.sum((0, 1)).laplace(epsilon=1, scale=1),
    lambda: queries.sum((0, 1)).gaussian(epsilon=1),
    lambda: queries.sum((0, 1)).laplace(epsilon=1, relation="bounded"),
    lambda: queries.sum((0, 1)).laplace(epsilon=1, unit=""),
    *[lambda n=n: queries.sum((0, 1)).sensitivity(norm=n) for n in (0, 3, True, "1", None, 1.5)],
    lambda: queries.sum((0, 1)).sensitivity("other"),
    *[lambda e=e: queries.mean((0, 1)).sample_size(error=e, epsilon=1) for e in BAD_NUMBERS],
    *[
        lambda c=c: queries.mean((0, 1), size=3).sample_size(error=1, confidence=c, epsilon=1)
        for c in (0, 1, 2, math.nan, True)
    ],
]


@pytest.mark.parametrize("ask", [queries.sum, queries.mean, queries.variance])
def test_missing_bounds_are_asked_for(ask):
    with pytest.raises(BadParameter, match="bounds must be two numbers") as caught:
        ask()
    assert caught.value.code == "DP104"


@pytest.mark.parametrize("call", REFUSED)
def test_bad_parameters_are_refused_with_a_code(call):
    with pytest.raises(DiscreetError) as caught:
        call()
    assert caught.value.code.startswith("DP")
