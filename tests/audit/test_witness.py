# SPDX-License-Identifier: Apache-2.0
"""What an audit prints reproduces what it claims: counts, runs and error probabilities give back every bound.

The bounds are recomputed here with `scipy.stats` and textbook formulas, from the printed text or the JSON alone. Nothing
below depends on luck: whatever was drawn, the arithmetic of its report must agree.
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet import privacy
from discreet.audit import audit, audit_bits, batched, exact, one_run
from discreet.mechanisms import Geometric, Laplace
from discreet.mechanisms.mechanism import Refusal

_RATE = re.compile(
    r"(\d+) of (\d+) runs on (x'?), (\d+) of (\d+) on (x'?); probability at least ([\d.e+-]+) on x'?, "
    r"at most ([\d.e+-]+) on x'? \((.*?)\)(?:;|$)"
)
_PROOF = re.compile(
    r"(Clopper-Pearson|Dvoretzky-Kiefer-Wolfowitz), error probability ([\d.e+-]+?)(?: each|,|$)"
)


def _generator():
    return np.random.default_rng()


def coin(truth):
    return batched(lambda bit, count: np.where(_generator().random(count) < truth, bit, 1 - bit))


def laplace(scale):
    return batched(lambda value, count: value + _generator().laplace(0, scale, count))


def rare(bit, count):
    """Something that happens on the second input only, seldom: a test for the direction."""
    return np.where((_generator().random(count) < 0.05) & (bit == 1), 2.0, 1.0)


def words(bit, count):
    return [("yes" if _generator().random() < 0.8 else "no") if bit else Refusal("no") for _ in range(count)]


SUBJECTS = {
    "coin": (coin(0.9), (0, 1)),
    "hidden coin": (coin(0.5), (0, 1)),
    "laplace": (laplace(0.5), (0.0, 1.0)),
    "laplace back": (laplace(0.5), (1.0, 0.0)),
    "gaussian": (batched(lambda value, n: value + _generator().normal(0, 1, n)), (0.0, 1.0)),
    "vector": (batched(lambda value, n: value + _generator().laplace(0, 1, (n, 3))), (0.0, 1.0)),
    "rare": (batched(rare), (0, 1)),
    "rare back": (batched(rare), (1, 0)),
    "nothing": (batched(lambda _, n: np.zeros(n)), (0, 1)),
    "words": (batched(words), (0, 1)),
    "mechanism": (Laplace(epsilon=1, sensitivity=1), (0, 1)),
    "integers": (Geometric(epsilon=2, sensitivity=1), (10**9, 10**9 + 1)),
}
CLAIMS = [None, privacy.pure(0.05), privacy.approximate(0.5, 0.01), privacy.gaussian(3.0)]


def lower(hits, runs, method, error):
    if method == "Clopper-Pearson":
        return stats.beta.ppf(error, hits, runs - hits + 1) if hits else 0.0
    return max(0.0, hits / runs - math.sqrt(math.log(1 / error) / (2 * runs)))


def upper(hits, runs, method, error):
    if method == "Clopper-Pearson":
        return stats.beta.ppf(1 - error, hits + 1, runs - hits) if hits < runs else 1.0
    return min(1.0, hits / runs + math.sqrt(math.log(1 / error) / (2 * runs)))


def epsilon(low, high, delta):
    return math.log((low - delta) / high) if low > delta else 0.0


def printed_rates(text):
    """What a reader computes from one printed witness, and the two rates that are printed."""
    hits, runs, here, others, other_runs, there, low, high, how = _RATE.search(text).groups()
    assert {here, there} == {"x", "x'"}
    proofs = [(method, float(error)) for method, error in _PROOF.findall(how)]
    first, second = proofs * 2 if len(proofs) == 1 else proofs
    again = lower(int(hits), int(runs), *first), upper(int(others), int(other_runs), *second)
    return again, (float(low), float(high))


def stored_rates(witness):
    """What a program computes from one witness in the JSON."""
    often, seldom = witness["at_least"], witness["at_most"]
    counts = [(rate["hits"], rate["runs"], rate["method"], rate["error"]) for rate in (often, seldom)]
    return (lower(*counts[0]), upper(*counts[1])), (often["bound"], seldom["bound"])


def is_close_below(found, recomputed):
    """A printed bound is never above what its counts prove, and hardly below: a digit of rounding."""
    return recomputed - 2e-4 <= found <= recomputed + 1e-7


@pytest.mark.parametrize("look", [audit, audit_bits])
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_reader_gets_the_printed_bounds_from_the_printed_counts(name, claim, look):
    subject, pair = SUBJECTS[name]
    report = look(subject, *pair, trials=1_000, claim=claim)
    rows = report.rows()
    for at, (label, value) in enumerate(rows):
        if label not in {"ε at least", "μ at least"} or float(value.partition(" ")[0].rstrip(":")) == 0:
            continue
        witness = rows[at + 1][1]
        witness = rows[at - 1][1] if witness == "the same event" else witness
        (low, high), shown = printed_rates(witness)
        assert (shown[0] <= low * (1 + 1e-6), shown[1] >= high * (1 - 1e-6)) == (True, True)
        if label == "μ at least":
            assert is_close_below(float(value.partition(":")[0]), stats.norm.ppf(low) - stats.norm.ppf(high))
        else:
            number, delta = re.match(r"([\d.]+) at δ = ([\d.e-]+)", value).groups()
            assert is_close_below(float(number), epsilon(low, high, float(delta)))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_program_gets_every_bound_from_the_json_alone(name, claim):
    subject, pair = SUBJECTS[name]
    report = audit(subject, *pair, trials=1_000, claim=claim)
    found = json.loads(report.to_json())
    for bound in found["bounds"]:
        (low, high), _ = stored_rates(bound["witness"])
        assert is_close_below(bound["epsilon_at_least"], max(0.0, epsilon(low, high, bound["delta"])))
    (low, high), _ = stored_rates(found["mu_witness"])
    assert is_close_below(found["mu_at_least"], max(0.0, stats.norm.ppf(low) - stats.norm.ppf(high)))
    for event in found["events"]:
        again, stored = stored_rates(event)
        assert stored == pytest.approx(again, rel=1e-6, abs=1e-8)
    if found["refuted"]:
        (low, high), _ = stored_rates(found["witness"])
        assert low > 1 - report.claim.tradeoff(high * (1 - 1e-9))


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("name", SUBJECTS)
def test_the_witness_of_any_delta_proves_the_bound_there(name, delta):
    subject, pair = SUBJECTS[name]
    report = audit(subject, *pair, trials=1_000)
    (low, high), _ = stored_rates(report.epsilon_witness(delta).to_dict())
    assert is_close_below(report.epsilon_at_least(delta), max(0.0, epsilon(low, high, delta)))


def test_the_likelier_input_comes_first():
    for name, there in (("rare", "neighbour"), ("rare back", "x")):
        subject, pair = SUBJECTS[name]
        event = audit(subject, *pair, trials=2_000).epsilon_witness()
        assert event.likelier_on == there
        assert event.often.hits > event.seldom.hits
        assert event.complement.complement.often.hits == event.often.hits


@pytest.mark.parametrize("size", [1_234_567_890, 2**52 + 1, 1 / 3, 1e-12 + 1e-18])
def test_an_event_is_printed_with_all_its_digits(size):
    """Two outputs that agree in six digits are told apart, so the words must tell them apart too."""
    near = float(np.nextafter(size, np.inf)) if size < 1e6 or size > 2**50 else size + 1
    report = audit(
        batched(lambda bit, n: np.full(n, near if bit else size)), 0, 1, trials=400, look_at="values"
    )
    event = report.epsilon_witness()
    assert (event.often.hits, event.seldom.hits) == (200, 0)
    numbers = {float(word) for word in re.findall(r"-?\d[\d.]*(?:e[+-]?\d+)?", event.words)}
    assert numbers & {float(size), near}


@pytest.mark.parametrize("guesses", [None, 200])
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_one_run_prints_what_proves_it(guesses, delta):
    included = np.arange(400) % 2 == 0
    score = included + 0.3 * np.sin(np.arange(400.0) * 7)
    run = one_run(included, np.where(np.arange(400) % 9 == 0, -score, score), guesses=guesses, delta=delta)
    text = str(run)
    right, tried = map(int, re.search(r"(\d+) of (\d+) guesses right", text).groups())
    error = float(re.search(r"error probability ([\d.e-]+)", text).group(1))
    shown = float(re.search(r"ε at least ([\d.]+)", text).group(1))
    assert run.to_dict()["witness"] == {"guesses": tried, "right": right, "error": pytest.approx(error)}
    if delta == 0:
        # the greatest ε at which so many right guesses have a binomial tail of at most `error`
        rate = stats.beta.ppf(error, right, tried - right + 1)
        assert is_close_below(shown, math.log(rate / (1 - rate)))
    assert error * len(run.tried) == pytest.approx(0.05)


@pytest.mark.parametrize("epsilon_", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("kept", [Fraction(1), Fraction(9, 10)])
def test_an_exact_audit_names_the_event_that_proves_its_delta(epsilon_, kept):
    """With some mass left open the bound counts it to the other input."""
    distributions = [
        [Fraction(6, 10), Fraction(3, 10), Fraction(1, 10)],
        [Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)],
    ]
    report = exact(
        lambda bit: ({n: kept * mass for n, mass in enumerate(distributions[bit])}, 1 - kept), 0, 1
    )
    outcomes, often, seldom = report.witness(epsilon_)
    first, second = (
        {n: kept * mass for n, mass in enumerate(distribution)} for distribution in distributions
    )
    sides = [sum((distribution[n] for n in outcomes), Fraction(0)) for distribution in (first, second)]
    assert often in sides
    assert seldom - (1 - kept) in sides
    proved = max(0.0, float(often) - math.exp(epsilon_) * float(seldom))
    assert report.delta(epsilon_)[0] == pytest.approx(proved, abs=1e-12)
