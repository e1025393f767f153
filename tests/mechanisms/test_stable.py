# SPDX-License-Identifier: Apache-2.0
"""Stable values: every small election, the exact distribution of what is said, ties, and what must never leave."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.errors import DiscreetError, UnsupportedGuarantee
from discreet.mechanisms import PartitionSelection, Refusal
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.distance import check_distance
from discreet.mechanisms.stable import StableArgmax, StableMode, StableTopK, StableValue, StableVote
from tests.chance import may_fail
from tests.mechanisms.sticks import bags, neighbours, to_unsafe
from tests.statistical.constants import ALPHA, FEW
from tests.statistical.fit import accepts

RELATIONS = ["add-remove", "replace"]
EPSILON, DELTA = 0.8, 0.02
AMOUNTS = {"epsilon": EPSILON, "delta": DELTA}
LETTERS = "abc"


def distribution(test, value, distance):
    chance = test.chance(distance)
    return {None: 1 - chance, ("said", value): chance}


def worst_delta(test, pairs, value, distance, epsilon=EPSILON):
    worst = 0.0
    for one, other in pairs:
        p, q = (
            distribution(test, value(one), distance(one)),
            distribution(test, value(other), distance(other)),
        )
        worst = max(worst, sum(max(0.0, p[k] - math.exp(epsilon) * q.get(k, 0.0)) for k in p))
    return worst


def counts_of(bag):
    return [Counter(bag)[letter] for letter in LETTERS]


def outcome(contest, scores):
    winners, distance = contest._winners(scores)
    return tuple(winners), distance


# --- elections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("test", ["best", "laplace"])
def test_every_small_election_keeps_the_guarantee_and_uses_it_up(relation, test):
    vote = StableVote(LETTERS, relation=relation, test=test, **AMOUNTS)
    assert vote.guarantee == privacy.approximate(EPSILON, DELTA, relation=relation)
    found = worst_delta(
        vote.test,
        neighbours(LETTERS, 6, relation),
        lambda bag: outcome(vote, counts_of(bag))[0],
        lambda bag: outcome(vote, counts_of(bag))[1],
    )
    assert DELTA * math.exp(-EPSILON) < found <= DELTA


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_distance_of_a_vote(relation):
    vote = StableVote(LETTERS, relation=relation, **AMOUNTS)
    for bag in bags(LETTERS, 7):
        first, second, _ = sorted(counts_of(bag), reverse=True)
        expected = first - second - 1 if relation == "add-remove" else math.ceil((first - second) / 2) - 1
        assert outcome(vote, counts_of(bag))[1] == max(0, expected)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_distance_is_at_most_the_exact_one_and_within_one_of_it(relation):
    """The exact one knows the rule for ties: the first candidate keeps the win at a tie, and is one safer."""
    vote = StableVote(LETTERS, relation=relation, **AMOUNTS)
    exact = to_unsafe(
        LETTERS,
        8,
        relation,
        lambda a, b: outcome(vote, counts_of(a))[0] != outcome(vote, counts_of(b))[0],
    )
    for bag in bags(LETTERS, 4):
        if bag and (relation == "add-remove" or len(set(bag)) > 1):
            true = exact[tuple(bag)]
            assert true - 1 <= outcome(vote, counts_of(bag))[1] <= true


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [1, 2])
def test_approval_ballots_and_top_sets(relation, count):
    """Each ballot approves any set of four candidates: every count moves by one at most."""
    ballots = [ballot for size in range(5) for ballot in itertools.combinations(range(4), size)]
    contest = StableTopK(
        sensitivity=1, count=count, monotone=relation == "add-remove", relation=relation, **AMOUNTS
    )

    def scores(bag):
        return [sum(letter in ballot for ballot in bag) for letter in range(4)]

    checked = check_distance(
        lambda bag: outcome(contest, scores(bag))[0],
        lambda bag: outcome(contest, scores(bag))[1],
        domain=ballots,
        most=3,
        relation=relation,
    )
    assert checked > 2_000


def test_top_two_of_four_by_single_votes():
    contest = StableTopK(sensitivity=1, count=2, monotone=True, **AMOUNTS)
    check_distance(
        lambda bag: outcome(contest, [bag.count(letter) for letter in "abcd"])[0],
        lambda bag: outcome(contest, [bag.count(letter) for letter in "abcd"])[1],
        domain="abcd",
        most=7,
    )
    assert outcome(contest, [5, 9, 1, 5]) == ((0, 1), 0)
    assert outcome(contest, [8, 9, 1, 5]) == ((0, 1), 2)


@pytest.mark.parametrize("monotone", [False, True])
def test_scores_that_move_by_fractions(monotone):
    """Scores on a lattice, moved by every pattern of ±0.3 (or all up, or all down)."""
    contest = StableArgmax(sensitivity=0.3, monotone=monotone, **AMOUNTS)
    moves = [Fraction(0), Fraction(3, 10)] if monotone else [Fraction(-3, 10), Fraction(0), Fraction(3, 10)]
    for scores in itertools.product([Fraction(k, 10) for k in range(0, 16, 3)], repeat=3):
        winner, distance = outcome(contest, scores)
        for move in itertools.product(moves, repeat=3):
            moved = [score + step for score, step in zip(scores, move, strict=True)]
            other, far = outcome(contest, moved)
            assert abs(distance - far) <= 1
            assert winner == other or distance == far == 0


# --- wrong variants ------------------------------------------------------------------------------------------------


def vote_values(vote):
    return lambda bag: outcome(vote, counts_of(bag))[0]


def test_a_distance_without_less_one_leaks():
    """min edits that change f, without the "- 1": δ grows by e^ε."""
    vote = StableVote(LETTERS, test="laplace", **AMOUNTS)
    off = worst_delta(
        vote.test,
        neighbours(LETTERS, 5, "add-remove"),
        vote_values(vote),
        lambda bag: outcome(vote, counts_of(bag))[1] + 1,
    )
    assert off == pytest.approx(vote.test.chance(1))
    assert off > vote.test.chance(0) * 2


def test_the_distance_for_added_ballots_is_wrong_for_replaced_ones():
    vote = StableVote(LETTERS, **AMOUNTS)
    with pytest.raises(UnsupportedGuarantee):
        check_distance(
            vote_values(vote),
            lambda bag: outcome(vote, counts_of(bag))[1],
            domain=LETTERS,
            most=5,
            relation="replace",
        )


def test_a_gap_of_scores_that_are_not_monotone_needs_twice_the_room():
    careless = StableArgmax(sensitivity=1, monotone=True, **AMOUNTS)
    one, other = outcome(careless, [2, 0]), outcome(careless, [1, 1])
    assert (
        one[1] == 1
    )  # but a move of 1 each closes the gap, and the tie goes to the first; the next step flips
    assert outcome(careless, [3, 1])[1] == 1
    assert outcome(careless, [2, 2])[1] == other[1] == 0
    assert abs(outcome(careless, [5, 0])[1] - outcome(careless, [4, 1])[1]) == 2
    careful = StableArgmax(sensitivity=1, **AMOUNTS)
    assert abs(outcome(careful, [5, 0])[1] - outcome(careful, [4, 1])[1]) == 1


# --- utility -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", RELATIONS)
def test_refusals_fall_with_the_gap_as_stated(relation):
    vote = StableVote("ab", relation=relation, epsilon=1, delta=1e-6, test="laplace")
    closes = 1 if relation == "add-remove" else 2
    q = math.exp(-1)
    for gap in range(1, 80):
        distance = max(0, math.ceil(gap / closes) - 1)
        missing = distance - vote.test.threshold
        if missing >= 0:
            assert 1 - vote.chance(gap) == pytest.approx(q ** (missing + 1) / (1 + q), rel=1e-9, abs=1e-15)
    needed = vote.gap_needed(confidence=0.9)
    assert vote.chance(needed + 1) >= 0.9 > vote.chance(needed)


def test_the_number_of_candidates_does_not_matter():
    few, many = (StableVote(range(count), epsilon=1, delta=1e-6) for count in (2, 5_000))
    assert few.gap_needed(0.99) == many.gap_needed(0.99)


@may_fail(2 * ALPHA, "one distribution fits, one does not")
def test_what_is_said_has_its_chance():
    vote = StableVote("ab", epsilon=0.5, delta=0.01)
    ballots = ["a"] * 12 + ["b"] * 3
    said = np.array([not isinstance(vote.draw(ballots), Refusal) for _ in range(FEW // 4)], int)
    chances = {gap: np.array([1 - vote.chance(gap), vote.chance(gap)]) for gap in (9, 12)}
    accepts(said, lambda k: chances[9][k], lambda k: chances[12][k])


def test_naming_a_key_is_a_stable_value():
    """Its distance is the number of users less one; then it is partition selection."""
    key = StableValue(lambda _: "key", lambda users: len(users) - 1, epsilon=1, delta=1e-5)
    keys = PartitionSelection(epsilon=1, delta=1e-5)
    assert [key.test.chance(n - 1) for n in range(1, 30)] == [keys.chance(n) for n in range(1, 30)]


# --- what leaves ---------------------------------------------------------------------------------------------------


def test_votes_for_nobody_do_not_count():
    vote = StableVote(["yes", "no"], epsilon=1, delta=1e-9)
    ballots = ["yes"] * 60 + ["maybe"] * 500 + [None, math.nan, ["yes"], 7]
    assert {vote(ballots).value for _ in range(20)} == {"yes"}
    assert vote([]).refused


def test_a_mode_needs_no_candidates():
    mode = StableMode(epsilon=1, delta=1e-9)
    assert mode(["flu"] * 70 + ["gout"] * 9).value == "flu"
    assert mode(np.array([3] * 70 + [4] * 9)).value == 3
    assert mode([[1, 2]] * 70).value == (1, 2)
    assert mode([Rude()] * 99).refused
    assert mode([]).refused
    assert mode([None] * 99).refused
    assert mode(["a"] * 40 + ["b"] * 40).refused


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_mode_keeps_the_guarantee(relation):
    mode = StableMode(relation=relation, **AMOUNTS)

    def contest(bag):
        counts = Counter(bag)
        kinds = sorted(counts)
        winners, distance = mode._winners([*(counts[kind] for kind in kinds), 0, 0])
        return (kinds[winners[0]] if winners[0] < len(kinds) else None), distance

    check_distance(
        lambda bag: contest(bag)[0], lambda bag: contest(bag)[1], domain="abc", most=6, relation=relation
    )
    found = worst_delta(
        mode.test, neighbours("abc", 5, relation), lambda bag: contest(bag)[0], lambda bag: contest(bag)[1]
    )
    assert found <= DELTA


def test_the_mode_does_not_show_how_somebody_else_wrote_it():
    mode = StableMode(epsilon=1, delta=1e-9)
    for stranger in (1.0, True, np.float64(1.0)):
        for records in ([stranger, *[1] * 60], [*[1] * 60, stranger]):
            assert type(mode(records).value) is int
    assert math.copysign(1, mode([-0.0, *[0.0] * 60]).value) == 1


class Rude:
    def __repr__(self):
        raise RuntimeError("secret")


def test_a_record_that_cannot_be_shown_is_one_like_the_others():
    assert StableMode(epsilon=1, delta=1e-9)([Rude(), *["a"] * 60]).value == "a"
    assert StableVote("ab", epsilon=1, delta=1e-9)([Rude(), *["a"] * 60]).value == "a"


def test_scores_that_are_no_numbers_count_as_zero():
    contest = StableArgmax(epsilon=1, delta=1e-9, sensitivity=1)
    for nothing in (math.nan, math.inf, -math.inf, None, "9"):
        assert contest([nothing, 100.0, 1]).value == 1
        assert contest([nothing, -100.0, -100]).value == 0
    sharp = StableArgmax(epsilon=50, delta=0.5, sensitivity=Fraction(1, 100), monotone=True)
    assert sharp([False, True]).value == sharp([0, np.True_]).value == 1
    assert contest(np.array([1, 2**62, 5])).value == 1
    assert contest([10**400, Fraction(1, 3), 2.5]).value == 0


def test_scores_are_compared_as_the_numbers_that_they_are():
    """2**53 and 2**53 + 1 are different integers and the same float."""
    contest = StableArgmax(epsilon=50, delta=0.5, sensitivity=Fraction(1, 100), monotone=True)
    assert outcome(contest, [2**53, 2**53 + 1]) == ((1,), 99)


def test_names_are_given_where_they_are_known():
    top = StableTopK(epsilon=1, delta=1e-9, sensitivity=1, count=2, candidates=["a", "b", "c"])
    assert top([0, 500, 300]).value == ["b", "c"]
    assert StableTopK(epsilon=1, delta=1e-9, sensitivity=1, count=2)([0, 500, 300]).value == [1, 2]


def test_the_mode_takes_no_two_pictures_for_one():
    """The attack: the text of an array leaves most of it out, so sixty different ones were one, and the first was shown."""
    pictures = [np.zeros((60, 60)) for _ in range(60)]
    for place, picture in enumerate(pictures):
        picture[30, 30] = place
    assert StableMode(epsilon=1, delta=1e-9)(pictures).refused
    assert StableMode(epsilon=1, delta=1e-9)([pictures[3]] * 60).value[30][30] == 3


def test_a_stable_value_is_shown_in_one_spelling():
    first = StableValue(lambda data: data[0], lambda _: 99, epsilon=1, delta=1e-9)
    for one in (1, True, 1.0, Decimal("1.00"), np.int8(1)):
        assert repr(first([one]).value) == "1"
    assert (
        repr(first([np.array([1.0, 2.5])]).value) == repr(first([[True, Fraction(5, 2)]]).value) == "(1, 2.5)"
    )
    assert first([Rude()]).value is None


def test_a_candidate_has_a_canonical_form():
    with pytest.raises(DiscreetError, match="DP104"):
        StableVote([Rude(), "b"], **AMOUNTS)
    with pytest.raises(DiscreetError, match="DP107"):
        StableVote([1, True], **AMOUNTS)


def test_a_function_that_raises_says_none():
    made = StableValue(lambda _: 1 / 0, lambda _: 99, epsilon=1, delta=1e-9)
    assert made([1]).value is None
    assert StableValue(len, lambda _: 1 / 0, epsilon=1, delta=1e-9)([1]).refused


@pytest.mark.parametrize(
    ("make", "words"),
    [
        *[
            (make, {name: bad})
            for make in (
                lambda **w: StableValue(len, len, **{**AMOUNTS, **w}),
                lambda **w: StableVote("ab", **{**AMOUNTS, **w}),
                lambda **w: StableMode(**{**AMOUNTS, **w}),
                lambda **w: StableArgmax(sensitivity=1, **{**AMOUNTS, **w}),
            )
            for name, bad in (
                ("epsilon", 0),
                ("epsilon", True),
                ("epsilon", math.nan),
                ("delta", 0),
                ("delta", 1),
                ("delta", "x"),
                ("test", "none"),
                ("relation", "swap"),
                ("unit", ""),
            )
        ],
        (lambda **w: StableArgmax(**AMOUNTS, **w), {"sensitivity": 0}),
        (lambda **w: StableArgmax(**AMOUNTS, **w), {"sensitivity": math.nan}),
        (lambda **w: StableArgmax(sensitivity=1, **AMOUNTS, **w), {"monotone": 1}),
        (lambda **w: StableArgmax(sensitivity=1, **AMOUNTS, **w), {"monotone": True, "relation": "replace"}),
        (lambda **w: StableTopK(sensitivity=1, **AMOUNTS, **w), {"count": 0}),
        (lambda **w: StableTopK(sensitivity=1, count=3, **AMOUNTS, **w)([1, 2, 3]), {}),
        (lambda **w: StableArgmax(sensitivity=1, candidates="ab", **AMOUNTS, **w)([1, 2, 3]), {}),
        (lambda **w: StableVote(["a"], **AMOUNTS, **w), {}),
        (lambda **w: StableVote(["a", "a"], **AMOUNTS, **w), {}),
        (lambda **w: StableValue(3, len, **AMOUNTS, **w), {}),
        (lambda **w: StableMode(**AMOUNTS, **w)(7), {}),
        (lambda **_: StableVote("ab", **AMOUNTS).chance(-1), {}),
        (lambda **_: StableVote("ab", **AMOUNTS).gap_needed(1.0), {}),
    ],
)
def test_bad_parameters_are_refused(make, words):
    with pytest.raises(DiscreetError):
        make(**words)


def test_they_keep_the_rules_of_mechanisms():
    check_mechanism(StableVote("ab", **AMOUNTS), ["a"] * 6 + ["b"], neighbour=["a"] * 5 + ["b"])
    check_mechanism(StableMode(**AMOUNTS), ["a"] * 6 + ["b"], neighbour=["a"] * 5 + ["b"])
    check_mechanism(StableTopK(sensitivity=1, count=2, **AMOUNTS), [9, 7, 1], neighbour=[9, 8, 1])
    check_mechanism(StableArgmax(sensitivity=1, **AMOUNTS), [9, 2, 1], neighbour=[9, 3, 1])
    check_mechanism(StableValue(len, len, **AMOUNTS), [1, 2, 3], neighbour=[1, 2])
