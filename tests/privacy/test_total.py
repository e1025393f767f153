# SPDX-License-Identifier: Apache-2.0
"""Any legal question gets an answer, in bounded time and memory: a number, or CannotCertify with the best bracket.

The grid covers ε from 1e-6 to 1e4, δ from 0 to nearly 1, counts to 1e9, rates from 1e-9 and a thousand different
mechanisms. What is checked is what must hold of any answer; how tight it is, other tests say.
"""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from discreet import errors, privacy

COUNTS = (1, 7, 1_000, 1_000_000, 1_000_000_000)
RATES = (1e-9, 1e-3, 0.3)
DELTAS = (0.0, 1e-300, 1e-100, 1e-15, 0.5, 0.999)
EPSILONS = (0.0, 1e-6, 1.0, 1e4)
FEW_DELTAS, FEW_EPSILONS = (0.0, 1e-15), (1.0,)
SECONDS = 90  # of processor time for one test: a guard against hanging, not a measurement
MEMORY = 8 * 2**30  # of address space for the whole process

resource = pytest.importorskip("resource", reason="limits of a process are asked of a Unix system")


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """Whoever asks for more memory or time than that gets an error: the test fails instead of the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"no answer within {SECONDS} seconds of processor time")


def _bracket(question: Callable[[], Any]) -> tuple[float, float]:
    """The bracket that was proved, or that comes with a refusal to certify."""
    try:
        answer = question()
    except errors.CannotCertify as refusal:
        return refusal.bracket or (0.0, math.inf)
    return answer.lower, answer.upper


def check_answers(
    guarantee: Any, deltas: tuple[float, ...] = FEW_DELTAS, epsilons: tuple[float, ...] = FEW_EPSILONS
) -> None:
    """Brackets in order, never negative, falling as δ or ε grows, and δ a probability."""
    last = math.inf
    for delta in deltas:
        lower, upper = _bracket(lambda d=delta: guarantee.bound(delta=d))
        assert 0 <= lower <= upper, f"δ={delta}: [{lower!r}, {upper!r}]"
        assert lower <= last * (1 + 1e-9) + 1e-300, (
            f"δ={delta}: at least {lower!r}, but {last!r} at a smaller δ"
        )
        last = min(last, upper)
    last = 1.0
    for epsilon in epsilons:
        lower, upper = _bracket(lambda e=epsilon: guarantee.bound(epsilon=e))
        assert 0 <= lower <= upper <= 1, f"ε={epsilon}: [{lower!r}, {upper!r}]"
        assert lower <= last * (1 + 1e-9) + 1e-300, (
            f"ε={epsilon}: at least {lower!r}, but {last!r} at a smaller ε"
        )
        last = min(last, upper)


PURE: dict[str, Callable[[float], Any]] = {
    "pure": privacy.pure,
    "laplace": lambda e: privacy.laplace(scale=1 / e),
    "answer": lambda e: privacy.randomized_response(epsilon=e),
    "dice": lambda e: privacy.randomized_response(epsilon=e, outcomes=6),
    "exponential": privacy.exponential,
    "integers": lambda e: privacy.discrete_laplace(scale=2 / e, sensitivity=2),
}


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 50.0, 1e4])
@pytest.mark.parametrize("name", PURE)
def test_pure_mechanisms_have_a_finite_epsilon_at_delta_zero(name: str, epsilon: float) -> None:
    once = PURE[name](epsilon)
    for count in COUNTS:
        assert math.isclose((count * once).epsilon(delta=0.0), count * epsilon, rel_tol=1e-9)
    check_answers(once, DELTAS, EPSILONS)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("noise", [1e6, 30.0, 1.0, 1e-3])
def test_many_gaussian_mechanisms_have_every_answer(noise: float, count: int) -> None:
    many = count * privacy.gaussian(noise)
    check_answers(many, DELTAS, EPSILONS)
    assert many.epsilon(delta=0.0) == math.inf


@pytest.mark.parametrize("count", [7, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e4])
def test_many_pure_mechanisms_have_every_answer(epsilon: float, count: int) -> None:
    check_answers(count * privacy.pure(epsilon))


@pytest.mark.parametrize("count", [7, 1_000_000_000])
@pytest.mark.parametrize("scale", [1e6, 10.0, 1e-4])
def test_many_laplace_mechanisms_have_every_answer(scale: float, count: int) -> None:
    check_answers(count * privacy.laplace(scale))


@pytest.mark.parametrize("count", [1_000, 1_000_000_000])
@pytest.mark.parametrize("rate", RATES)
def test_many_sampled_gaussians_have_every_answer(rate: float, count: int) -> None:
    check_answers(count * privacy.gaussian(1.0).sampled(rate=rate))


@pytest.mark.parametrize("count", [1_000, 1_000_000_000])
@pytest.mark.parametrize("rate", RATES)
def test_many_sampled_answers_have_every_answer(rate: float, count: int) -> None:
    many = count * privacy.randomized_response(epsilon=2.0).sampled(rate=rate)
    check_answers(many)
    assert math.isclose(many.epsilon(delta=0.0), count * math.log1p(rate * math.expm1(2.0)), rel_tol=1e-9)


@pytest.mark.parametrize("count", [1, 1_000, 1_000_000_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-300), (0.1, 1e-12), (1e4, 0.999)])
def test_many_approximate_mechanisms_have_every_answer(epsilon: float, delta: float, count: int) -> None:
    many = count * privacy.approximate(epsilon, delta)
    check_answers(many)
    leaked = -math.expm1(count * math.log1p(-delta))
    if leaked < 1e-9:
        assert many.epsilon(delta=2 * leaked) < math.inf
    assert many.epsilon(delta=0.0) == math.inf


EXTREMES: dict[str, Callable[[], Any]] = {
    "faint": lambda: 7 * privacy.laplace(1e6),
    "loud": lambda: 1_000 * privacy.pure(1e4),
    "usual": lambda: 100 * privacy.laplace(10.0) + privacy.gaussian(3.0),
    "training": lambda: 1_000 * privacy.gaussian(1.0).sampled(rate=0.01),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_the_ends_of_the_range(name: str) -> None:
    check_answers(EXTREMES[name](), (1e-300, 1e-100, 0.999), (1e-6, 1e4))


OTHERS: dict[str, Callable[[], Any]] = {
    "concentrated": lambda: privacy.concentrated(rho=0.5),
    "huge concentrated": lambda: privacy.concentrated(rho=1e6),
    "tiny concentrated": lambda: privacy.concentrated(rho=1e-12),
    "shifted concentrated": lambda: privacy.concentrated(rho=0.5, xi=0.1),
    "approximate concentrated": lambda: privacy.approximate_concentrated(delta=1e-6, rho=0.5),
    "renyi": lambda: privacy.renyi(order=8, epsilon=1.0),
    "renyi near one": lambda: privacy.renyi(order=1.0001, epsilon=1.0),
    "renyi curve": lambda: privacy.renyi_curve({2: 0.1, 8: 0.6}),
    "leaky": lambda: privacy.leaky(delta=0.01),
    "leaky answer": lambda: privacy.leaky_randomized_response(epsilon=1.0, delta=0.01),
    "table": lambda: privacy.pair([0.9, 0.1], [0.2, 0.8]),
    "certain table": lambda: privacy.pair([1.0, 0.0], [0.0, 1.0]),
    "silent table": lambda: privacy.pair([0.5, 0.5], [0.5, 0.5]),
    "wide gaussian": lambda: privacy.two_gaussians(shift=0.5, ratio=1.1),
    "narrow gaussian": lambda: privacy.two_gaussians(shift=0.5, ratio=0.5),
    "discrete gaussian": lambda: privacy.discrete_gaussian(scale=3.0, sensitivity=2),
    "wide discrete gaussian": lambda: privacy.discrete_gaussian(scale=1e7, sensitivity=1),
    "narrow discrete gaussian": lambda: privacy.discrete_gaussian(scale=0.01, sensitivity=1),
    "fixed-size sample": lambda: privacy.gaussian(1.0, relation="replace").sampled(
        0.1, scheme="without-replacement"
    ),
    "group": lambda: privacy.gaussian(10.0).group(1_000),
    "group of answers": lambda: privacy.approximate(0.1, 1e-9).group(5),
}


@pytest.mark.parametrize("count", [1, 1_000_000_000])
@pytest.mark.parametrize("name", OTHERS)
def test_many_of_every_other_mechanism_have_every_answer(name: str, count: int) -> None:
    check_answers(count * OTHERS[name]())


@pytest.mark.parametrize("name", OTHERS)
def test_every_view_of_everything_else(name: str) -> None:
    once = OTHERS[name]()
    assert once.advantage() >= 0
    assert once.concentrated() >= 0
    assert once.renyi(order=2.0) >= 0
    for alarm in (0.0, 1e-300, 0.5, 1.0):
        assert 0 <= once.tradeoff(false_alarm=alarm) <= 1 - alarm + 1e-12
    assert 0.5 <= once.posterior(prior=0.5, delta=1e-6) <= 1
    assert 0 <= once.posterior_exceeds(0.9, prior=0.5) <= 1


def test_disjoint_parts_have_every_answer() -> None:
    check_answers(privacy.parallel(privacy.laplace(1.0), privacy.gaussian(1.0), 5 * privacy.pure(0.1)))


def test_a_thousand_different_mechanisms_have_every_answer() -> None:
    tree = privacy.pure(1e-6)
    for i in range(1, 480):
        tree = tree + privacy.gaussian(50.0 + i) + privacy.pure(1e-4 + 1e-6 * i)
    for i in range(1, 22):
        tree = tree + privacy.laplace(100.0 + i) + i * privacy.gaussian(5.0 + i).sampled(rate=1e-3 * i)
    lower, upper = _bracket(lambda: tree.bound(delta=1e-6))
    assert 0 < lower <= upper < math.inf
    assert tree.epsilon(delta=0.0) == math.inf


def test_a_thousand_different_pure_mechanisms() -> None:
    parts = [1e-3 + 1e-6 * i for i in range(1_000)]
    tree = privacy.pure(parts[0])
    for part in parts[1:]:
        tree = tree + privacy.pure(part)
    assert math.isclose(tree.epsilon(delta=0.0), math.fsum(parts), rel_tol=1e-9)
    assert tree.epsilon(delta=1e-9) < math.fsum(parts)


def test_a_mixed_tree_of_curves_and_pairs() -> None:
    answers = 20 * privacy.randomized_response(epsilon=0.2)
    check_answers(privacy.concentrated(rho=0.1) + answers + privacy.gaussian(2.0))
    check_answers(
        privacy.renyi(order=8, epsilon=0.1) + privacy.approximate_concentrated(delta=1e-9, rho=0.1) + answers
    )


@pytest.mark.parametrize("amount", [1e-100, 1e-50, 1e-20, 1e-5, 1e-4, 0.01, 0.03, 1e10, 1e100])
def test_any_legal_amount_of_noise_has_an_answer(amount) -> None:
    """Also where a loss is far beyond what doubles can add up, or far below what they can see."""
    whole = [
        privacy.gaussian(amount) + privacy.pure(1),
        privacy.laplace(amount) + privacy.gaussian(1),
        10 * privacy.gaussian(amount).sampled(0.1),
        3 * privacy.laplace(amount).sampled(0.1),
        privacy.concentrated(1 / amount) + privacy.laplace(1),
        5 * privacy.gaussian(amount, relation="replace").sampled(0.1, scheme="without-replacement"),
    ]
    found = []
    for guarantee in whole:
        for asked in ({"delta": 1e-6}, {"epsilon": 1.0}, {"epsilon": 1e4}):
            try:
                bound = guarantee.bound(**asked)
            except errors.CannotCertify as refusal:
                found.append(refusal.bracket or (math.nan, math.nan))
            else:
                found.append((bound.lower, bound.upper))
    assert all(lower <= upper for lower, upper in found)


def test_sampling_keeps_the_losses_of_the_other_side() -> None:
    """A sampled Laplace of large ε: δ(ε) of one step by its formula, of three between one and three times that."""
    step = privacy.laplace(0.01).sampled(0.1)
    for epsilon in (1.0, 50.0, 97.0):
        inner = math.log1p(math.expm1(epsilon) / 0.1)
        truth = 0.1 * -math.expm1((inner - 100) / 2)
        assert step.delta(epsilon) == pytest.approx(truth, rel=1e-9)
        assert truth <= (3 * step).delta(epsilon) <= 3 * truth * (1 + 1e-9)
