# SPDX-License-Identifier: Apache-2.0
"""Naming keys: δ by exact distributions of one and two keys, the best chances against mpmath, and what must never leave."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import mpmath
import numpy as np
import pytest

from discreet import audit, privacy, testing
from discreet.errors import BadParameter, DiscreetError, UnsupportedGuarantee
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.distributions import TruncatedLaplace
from discreet.mechanisms.partition import PartitionSelection, StabilityHistogram
from tests.chance import may_fail, risk
from tests.finite import hockey_stick
from tests.statistical.constants import ALPHA, FEW, MANY
from tests.statistical.fit import accepts, discrete_laplace, rounded_gaussian

NOISES = ["truncated", "laplace", "gaussian"]
EPSILON, DELTA = 1.0, 1e-3


# --- distributions ----------------------------------------------------------------------------------------------------------


def truncated(k, scale, limit):
    weights = np.exp(-np.abs(np.arange(-limit, limit + 1)) / scale)
    return np.where(np.abs(k) <= limit, np.exp(-np.abs(k) / scale), 0) / weights.sum()


def noise_distribution(mechanism, k):
    if mechanism.noise == "truncated":
        return truncated(k, mechanism.distribution.scale, mechanism.distribution.limit)
    return {"laplace": discrete_laplace, "gaussian": rounded_gaussian}[mechanism.noise](
        k, mechanism.distribution.scale
    )


def distribution_of_key(mechanism, users, top):
    """P(not named), then P(named with count c) for c = threshold … top; for keys alone the last is P(named)."""
    if isinstance(mechanism, PartitionSelection):
        named = mechanism.chance(users) if users else 0.0
        return np.array([1 - named, named])
    if not users:
        return np.array([1.0, *np.zeros(top + 1 - mechanism.threshold)])
    counts = np.arange(mechanism.threshold, top + 1)
    named = noise_distribution(mechanism, counts - users)
    return np.array([1 - named.sum(), *named])


def worst_delta(mechanism, epsilon, keys=1, most=40, top=None):
    """The greatest H over all numbers of users of the keys that one user has, and both directions."""
    if top is None:
        top = most + 60
    laws = [distribution_of_key(mechanism, users, top) for users in range(most + 1)]
    worst = 0.0
    for users in itertools.combinations_with_replacement(range(1, most + 1), keys):
        p, q = laws[users[0]], laws[users[0] - 1]
        for n in users[1:]:
            p, q = np.multiply.outer(p, laws[n]), np.multiply.outer(q, laws[n - 1])
        worst = max(worst, hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    return worst


def mechanisms(at_most=1, epsilon=EPSILON, delta=DELTA):
    words = {"epsilon": epsilon, "delta": delta, "at_most": at_most}
    made = [StabilityHistogram(noise=noise, **words) for noise in NOISES]
    return [*made, PartitionSelection(**words)]


# --- δ -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(4))
def test_delta_holds_for_one_key_and_is_nearly_used_up(which):
    mechanism = mechanisms()[which]
    found = worst_delta(mechanism, EPSILON)
    assert 0.3 * DELTA < found <= DELTA
    assert mechanism.guarantee == privacy.approximate(EPSILON, DELTA, unit="user")


@pytest.mark.parametrize("which", range(4))
def test_delta_holds_for_two_keys(which):
    mechanism = mechanisms(at_most=2, epsilon=3.0, delta=0.02)[which]
    found = worst_delta(mechanism, 3.0, keys=2, most=14, top=45)
    assert 0.2 * 0.02 < found <= 0.02


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("at_most", [1, 2, 7])
def test_the_threshold_is_the_least_that_delta_allows(noise, at_most):
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=DELTA, at_most=at_most, noise=noise)

    def leak(threshold):
        far = np.arange(threshold - 1, threshold + 20_000)
        one = float(noise_distribution(mechanism, far).sum())
        return 1 - (1 - one) ** at_most

    assert leak(mechanism.threshold) <= DELTA
    if noise != "truncated":
        assert leak(mechanism.threshold - 1) > DELTA * (1 - 1e-9)
    else:
        smaller = TruncatedLaplace(mechanism.distribution.scale, mechanism.distribution.limit - 1)
        assert 1 - (1 - smaller.tail(smaller.limit) / 2) ** at_most > DELTA


def test_a_strict_inequality_read_as_an_inclusive_one_would_break_delta():
    """The classic slip, by which δ grows by e^ε: one less in the threshold."""
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=DELTA, noise="laplace")
    mechanism.threshold -= 1
    assert worst_delta(mechanism, EPSILON) > DELTA


def test_rows_instead_of_users_would_break_delta():
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=DELTA, noise="laplace")
    lone_with_three_rows = distribution_of_key(mechanism, 3, 100)[1:].sum()
    assert lone_with_three_rows > 2 * DELTA


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_concentrated_selection_keeps_its_curve(epsilon):
    mechanism = StabilityHistogram(rho=0.1, delta=DELTA)
    assert mechanism.guarantee == privacy.approximate_concentrated(DELTA, 0.1, unit="user")
    assert mechanism.distribution.scale == pytest.approx(math.sqrt(1 / 0.2), rel=1e-12)
    assert worst_delta(mechanism, epsilon) <= mechanism.guarantee.delta(epsilon)


def test_the_gaussian_cases_of_many_keys_fit_delta():
    """All ways in which some of a user's keys are nobody else's, in closed form with continuous noise."""
    for at_most in (2, 10, 100, 300):
        mechanism = StabilityHistogram(epsilon=1, delta=1e-5, at_most=at_most, noise="gaussian")
        sigma = mpmath.mpf(mechanism.distribution.scale)
        one = 1 - mpmath.ncdf((mechanism.threshold - mpmath.mpf(3) / 2) / sigma)
        for lone in range(at_most + 1):
            leak, mu = 1 - (1 - one) ** lone, mpmath.sqrt(at_most - lone) / sigma
            shared = mpmath.ncdf(mu / 2 - 1 / mu) - mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu) if mu else 0
            assert leak + (1 - leak) * shared <= 1e-5


def test_needed_users_are_those_of_the_table():
    """ε = 1, δ = 1e-5: users for an even chance, by at_most."""
    words = {"epsilon": 1, "delta": 1e-5}
    table = {1: (13, 12, 18), 2: (25, 23, 25), 3: (38, 34, 31), 10: (133, 110, 58), 100: (1544, 1083, 196)}
    for at_most, expected in table.items():
        found = [
            StabilityHistogram(**words, at_most=at_most, noise=noise).users_needed()
            for noise in ("laplace", "truncated", "gaussian")
        ]
        assert found == list(expected)


# --- groups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("size", [2, 4])
def test_a_group_on_one_key_is_covered(which, size):
    mechanism = mechanisms()[which]
    group = mechanism.guarantee_at(distance=size)
    p, q = distribution_of_key(mechanism, size, 100), distribution_of_key(mechanism, 0, 100)
    at = size * EPSILON
    assert max(hockey_stick(p, q, at), hockey_stick(q, p, at)) <= group.delta(at)


def test_a_leak_beside_the_noise_is_grouped_as_a_whole():
    """Between neighbours a leak and a noisy count cover it; for groups the sum of a leak's and the noise's groups does not."""
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=DELTA, noise="laplace")
    sum_of_parts = privacy.leaky(DELTA) + privacy.discrete_laplace(1 / EPSILON)
    assert worst_delta(mechanism, EPSILON) <= sum_of_parts.delta(EPSILON)
    p, q = distribution_of_key(mechanism, 4, 100), distribution_of_key(mechanism, 0, 100)
    leak_alone = 1 - (1 - DELTA) ** 4
    part_by_part = privacy.leaky(leak_alone) + privacy.discrete_laplace(1 / EPSILON, sensitivity=4)
    found = hockey_stick(p, q, 4 * EPSILON)
    assert part_by_part.delta(4 * EPSILON) < found <= sum_of_parts.group(4).delta(4 * EPSILON)


def test_groups_are_not_guaranteed_anything_by_concentrated_selection():
    with pytest.raises(UnsupportedGuarantee):
        StabilityHistogram(rho=0.1, delta=DELTA).guarantee_at(distance=2)


# --- the best chances ----------------------------------------------------------------------------------------------


def best_chances(epsilon, delta, count):
    """The recursion in 60 digits."""
    with mpmath.workdps(60):
        found, e = [mpmath.mpf(0)], mpmath.exp(epsilon)
        for _ in range(count):
            last = found[-1]
            found.append(min(e * last + delta, 1 - (1 - last - delta) / e, 1))
        return found


def test_the_fixture_of_the_best_chances():
    best = PartitionSelection(epsilon=1, delta=1e-5)
    expected = {
        1: 1e-5,
        5: 0.00085791024883722,
        10: 0.12818308050525,
        12: 0.76031099692263,
        15: 0.98807211723469,
        20: 0.9999254111119,
    }
    for users, chance in expected.items():
        assert best.chance(users) == pytest.approx(chance, rel=2e-11)
        assert best.chance(users) <= chance * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("delta", [0.3, 1e-6, 1e-100])
@pytest.mark.parametrize("at_most", [1, 5])
def test_the_chances_satisfy_their_inequalities_exactly(epsilon, delta, at_most):
    best = PartitionSelection(epsilon=epsilon, delta=delta, at_most=at_most)
    with mpmath.workdps(400):
        e = mpmath.exp(mpmath.mpf(str(epsilon)) / at_most)
        one_key = 1 - (1 - mpmath.mpf(str(delta))) ** (mpmath.mpf(1) / at_most)
        exact = best_chances(mpmath.log(e), one_key, 400)
        chances = [best._chance(users) for users in range(400)]
        chances = [mpmath.mpf(c.numerator) / c.denominator for c in chances]
        for last, this in itertools.pairwise(chances):
            assert last <= this <= e * last + one_key
            assert 1 - last <= e * (1 - this) + one_key
        for found, truth in zip(chances, exact, strict=False):
            assert truth * (1 - mpmath.mpf(10) ** -9) <= found <= truth * (1 + mpmath.mpf(10) ** -20)


@pytest.mark.parametrize("limit", [2, 5, 9])
def test_truncated_noise_names_keys_with_the_best_chances(limit):
    scale = 1.25
    law = TruncatedLaplace(scale, limit)
    with mpmath.workdps(50):
        q = mpmath.exp(-1 / mpmath.mpf("1.25"))
        end = q**limit * (1 - q) / (1 + q - 2 * q ** (limit + 1))
        truth = best_chances(1 / mpmath.mpf("1.25"), end, 2 * limit + 2)
    assert law.tail(limit) / 2 == pytest.approx(float(end), rel=1e-11)
    for users in range(1, 2 * limit + 2):
        named = (
            truncated(np.arange(limit + 1 - users, limit + 1), scale, limit).sum()
            if users <= 2 * limit
            else 1
        )
        assert named == pytest.approx(float(truth[users]), abs=1e-12)


def test_chance_is_the_distribution():
    for mechanism in mechanisms()[:3]:
        for users in (1, 3, mechanism.threshold - 1, mechanism.threshold, 40):
            named = distribution_of_key(mechanism, users, 400)[1:].sum()
            assert mechanism.chance(users) == pytest.approx(float(named), rel=1e-9)


# --- what is drawn -------------------------------------------------------------------------------------------------


@may_fail(2 * ALPHA, "one distribution fits, one does not")
@pytest.mark.parametrize("noise", NOISES)
def test_shown_counts_have_their_distribution(noise):
    """Many keys of one size at once: each is a draw."""
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=DELTA, noise=noise)
    users, keys = mechanism.threshold, MANY // 10
    shown = mechanism.draw(dict.fromkeys(range(keys), users))
    samples = np.array([shown.get(key, mechanism.threshold - 1) for key in range(keys)])

    def law(k, users=users):
        counts = distribution_of_key(mechanism, users, 300)
        return np.array([counts[i - mechanism.threshold + 1] for i in k])

    accepts(samples, law, lambda k: law(k, users + 1))


@may_fail(6 * ALPHA, "three distributions fit, three do not")
def test_keys_are_named_with_the_best_chances():
    best = PartitionSelection(epsilon=1, delta=1e-5)
    for users in (10, 12, 14):
        named = np.zeros(MANY // 10, int)
        named[: len(best.draw(dict.fromkeys(range(named.size), users)))] = 1
        right, wrong = best.chance(users), best.chance(users + 1)
        accepts(
            named,
            lambda k, p=right: np.where(k, p, 1 - p),
            lambda k, p=wrong: np.where(k, p, 1 - p),
        )


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_truncated_noise_stays_within_its_limit():
    law = TruncatedLaplace(3.0, 4)
    samples = law.draw(MANY // 4)
    support = np.arange(-4, 5)
    risk(
        float(np.sum((1 - truncated(support, 3.0, 4)) ** samples.size))
    )  # one of nine is never drawn: 0 to all digits
    assert set(samples.tolist()) == set(support.tolist())
    accepts(samples, lambda k: truncated(k, 3.0, 4), lambda k: truncated(k, 2.4, 4))
    assert law.tail_bound(1e-9) == 4
    assert law.tail(5) == 0


def test_a_rare_key_is_not_named():
    for mechanism in mechanisms(delta=1e-12):
        for _ in range(30):
            assert "rare" not in mechanism({"rare": 1, "common": 10_000}).value


def test_keys_without_users_are_never_named():
    easy = {"epsilon": 50.0, "delta": 0.9}
    for mechanism in (StabilityHistogram(**easy), PartitionSelection(**easy)):
        for _ in range(30):
            assert set(mechanism({"a": 0, "b": -5, math.nan: 9, "c": 10**30}).value) == {"c"}


def test_a_release_without_keys_is_empty():
    for mechanism in mechanisms():
        assert list(mechanism({}).value) == list(mechanism([]).value) == []


# --- order ---------------------------------------------------------------------------------------------------------


def test_keys_leave_sorted_whatever_the_order_of_the_data():
    for mechanism in mechanisms():
        forth = dict.fromkeys("qwertyuiop", 10_000)
        back = dict(reversed(forth.items()))
        assert list(mechanism(forth).value) == list(mechanism(back).value) == sorted(forth)


def test_keys_of_several_types_leave_in_one_public_order():
    names = [("b", 1), "a", 3, None, b"a", 2.5, ("a", 2)]
    for order in itertools.islice(itertools.permutations(names), 0, None, 500):
        found = PartitionSelection(epsilon=1, delta=1e-5).draw(dict.fromkeys(order, 10_000))
        assert found == [None, 2.5, 3, "a", b"a", ("a", 2), ("b", 1)]


# --- whose spelling --------------------------------------------------------------------------------------------------

PARIS = timezone(timedelta(hours=1))
SPELLINGS = [
    [1, 1.0, True, Decimal("1.0"), Decimal("1.00"), Fraction(1), np.float32(1), np.int8(1), 1 + 0j],
    [0.0, -0.0, False, Decimal("-0.000"), np.float64(-0.0)],
    [Decimal("0.10"), Decimal("0.1"), Fraction(1, 10)],
    [datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=PARIS)],
    ["flu", np.str_("flu")],
    [(1, "a"), (True, np.str_("a")), (Decimal("1.0"), "a")],
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=str)
@pytest.mark.parametrize("which", range(4))
def test_a_key_does_not_show_who_spelt_it(which, spellings):
    """Whoever comes first, in the pairs or in the mapping that a caller counted: the same objects leave."""
    mechanism = mechanisms()[which]
    seen = set()
    for first in spellings:
        pairs = [("me", first)] + [(user, spellings[user % len(spellings)]) for user in range(900)]
        for data in (pairs, {first: 900}):
            (key,) = mechanism.draw(data)
            seen.add(repr(key))
    assert len(seen) == 1


def test_the_auditor_cannot_tell_how_one_user_spelt_a_key():
    """The attack: one user writes True where the others write 1, and comes first."""

    def spelt(pairs):
        return repr(PartitionSelection(epsilon=1, delta=1e-6).draw(pairs))

    others = [(user, 1) for user in range(60)]
    found = audit(spelt, [("me", True), *others], others, trials=2_000, confidence=0.999)
    assert found.epsilon_at_least(delta=1e-6) < 0.1

    def careless(pairs):
        return repr([next(key for _, key in pairs)])

    leak = audit(careless, [("me", True), *others], others, trials=2_000, confidence=0.999)
    assert leak.epsilon_at_least(delta=1e-6) > 3


def test_keys_of_one_form_count_as_the_larger_number():
    clock = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Paris"))
    same = {clock: 7, clock.astimezone(UTC): 3}
    assert counted(same) == {clock.astimezone(UTC): 7}


# --- pairs ---------------------------------------------------------------------------------------------------------


def keys_of(pairs, at_most):
    from discreet.mechanisms.partition import _bound_contributions

    return _bound_contributions(pairs, at_most)


def test_each_user_counts_once_for_a_key_and_in_few_of_them():
    pairs = [(user, key) for user in range(50) for key in "abcde" for _ in range(3)]
    assert keys_of(pairs, 5) == dict.fromkeys("abcde", 50)
    for at_most in (1, 2, 4):
        assert sum(keys_of(pairs, at_most).values()) == 50 * at_most
    assert max(keys_of([("ann", "a")] * 9, 3).values()) == 1


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_a_user_keeps_keys_at_random_by_no_other_rule():
    """One of three pairs of keys, equally likely, though one key is everybody's and one was given often."""
    others = [(user, "a") for user in range(20)]
    own = [("me", "a"), *[("me", "b")] * 5, ("me", "c")]
    kept = Counter()
    for _ in range(FEW // 4):
        counts = keys_of([*others, *own], 2)
        kept[(counts["a"] == 21, "b" in counts)] += 1
    samples = np.repeat(np.arange(3), [kept[True, True], kept[True, False], kept[False, True]])
    assert samples.size == FEW // 4
    accepts(samples, lambda k: np.full(len(k), 1 / 3), lambda k: np.where(k == 0, 0.2, 0.4))


def test_rows_without_a_user_are_left_out_and_missing_keys_are_one_key():
    pairs = [(None, "a"), (math.nan, "a"), ("ann", math.nan), ("ann", None), ("ben", None)]
    assert keys_of(pairs, 2) == {None: 2}


def test_pairs_and_counts_give_the_same_keys():
    pairs = [(user, "big") for user in range(500)] + [(0, "small")]
    for mechanism in mechanisms(at_most=2, delta=1e-12):
        assert list(mechanism(pairs).value) == ["big"]


# --- errors and intervals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES)
def test_counts_are_as_close_as_they_say(noise):
    mechanism = StabilityHistogram(epsilon=EPSILON, delta=DELTA, noise=noise)
    error = int(mechanism.error(0.9))
    within = noise_distribution(mechanism, np.arange(-error, error + 1)).sum()
    assert 0.9 <= within < 0.975
    released = mechanism({"a": 500})
    low, high = released.interval
    assert low["a"] <= released.value["a"] <= high["a"]
    assert high["a"] - low["a"] == 2 * released.error
    assert mechanism.interval({"a": 2})[0]["a"] == 1  # a key that is named has somebody


def test_the_error_of_a_selection_is_in_users():
    best = PartitionSelection(epsilon=1, delta=1e-5)
    assert best.chance(int(best.error(0.9))) < 0.9 <= best.chance(int(best.error(0.9)) + 1)


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [StabilityHistogram, PartitionSelection])
@pytest.mark.parametrize("name", ["epsilon", "delta", "at_most"])
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", 2.5e300, [1]])
def test_bad_parameters_are_refused(kind, name, bad):
    with pytest.raises(DiscreetError):
        kind(**{"epsilon": 1.0, "delta": 1e-6, name: bad})


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"epsilon": 1.0, "rho": 1.0},
        {"rho": 1.0, "noise": "laplace"},
        {"epsilon": 1.0, "noise": "cauchy"},
        {"epsilon": 1.0, "noise": 3},
        {"rho": 0},
        {"rho": True},
    ],
)
def test_the_amount_of_noise_is_stated_in_one_way(words):
    with pytest.raises(BadParameter):
        StabilityHistogram(delta=1e-6, **words)


@pytest.mark.parametrize("kind", [StabilityHistogram, PartitionSelection])
def test_replaced_users_are_refused(kind):
    with pytest.raises(UnsupportedGuarantee) as refused:
        kind(epsilon=1, delta=1e-6, relation="replace")
    assert refused.value.code == "DP203"


def test_a_list_of_chances_that_would_not_end_is_refused():
    with pytest.raises(BadParameter) as refused:
        PartitionSelection(epsilon=1e-9, delta=1e-12)
    assert refused.value.code == "DP102"
    assert StabilityHistogram(epsilon=1e-9, delta=1e-12).threshold > 10**6


def test_noise_that_cannot_be_drawn_exactly_is_refused_at_once():
    with pytest.raises(BadParameter) as refused:
        StabilityHistogram(epsilon=1e-15, delta=1e-12)
    assert refused.value.code == "DP108"


def counted(data):
    from discreet.mechanisms.partition import _count_users

    return _count_users(data)


def test_what_is_no_number_of_users_counts_as_none():
    data = {"a": 2.9, "b": "3", "c": None, "d": True, "e": [1], "f": math.nan, "g": -1, "h": Decimal("1.5")}
    assert counted(data) == {"a": 2, "d": 1, "h": 1}
    assert counted({"a": math.inf, "b": 10**400}) == {"a": 10**18, "b": 10**18}


@pytest.mark.parametrize("bad", [7, None, "ab", b"ab", (row for row in [(1, 2)])])
def test_what_is_neither_counts_nor_pairs_is_refused_by_its_type(bad):
    with testing.using(testing.ScriptedSource(())), pytest.raises(BadParameter) as refused:
        PartitionSelection(epsilon=1, delta=1e-6)(bad)
    assert refused.value.code == "DP104"


def test_rows_that_are_no_pairs_are_left_out():
    odd = [1, "ab", (1, 2, 3), (1, {2}), ({1}, 2), (), None, np.array(3.0), {"a": 1, "b": 2}]
    assert keys_of([*odd, ("ann", "a"), ["ben", "a"], np.array(["cem", "a"])], 1) == {"a": 3}


def test_repeated_draws_are_stamped():
    with testing.seeded(1):
        assert not PartitionSelection(epsilon=1, delta=1e-6)({"a": 1}).private


@pytest.mark.parametrize("which", range(4))
def test_each_passes_the_suite_of_mechanisms(which):
    check_mechanism(mechanisms()[which], {"a": 9, "b": 1}, neighbour={"a": 10, "b": 1})
    check_mechanism(mechanisms()[which], [(1, "a"), (2, "a")], neighbour=[(1, "a")])
