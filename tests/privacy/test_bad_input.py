# SPDX-License-Identifier: Apache-2.0
"""Every numeric parameter of every primitive, view and operator refuses what is no number in its range.

One table: a name, a call that takes the value under test, and the values that this parameter also refuses
beyond those that no number may be. Each refusal is a coded error with its four lines, and nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import errors, privacy

NOT_A_NUMBER = (math.nan, math.inf, -math.inf, True, False, "1", None, [1.0], 1j, 10**400, np.True_, np.nan)
NOT_A_COUNT = (*NOT_A_NUMBER[:-3], 1.5, 2.0, -1, 0, np.float64(3.0), "3")
NEGATIVE = (-1, -1e-300, -(10**400))
NOT_POSITIVE = (*NEGATIVE, 0, 0.0, -0.0)
NOT_A_DELTA = (*NEGATIVE, 1, 1.0, 1.5, 10)
NOT_A_RATE = (*NOT_POSITIVE, 1.0000001, 2, 100)
NOT_A_PROBABILITY = (*NEGATIVE, 1.0000001, 2)
NOT_INNER = (*NOT_POSITIVE, 1, 1.0, 2)
NOT_AN_ORDER = (*NOT_POSITIVE, 1, 1.0, 0.5)

base = privacy.gaussian(1.0)
pure = privacy.pure(1.0)


def flat(_: float) -> float:
    return 1.0


def double(_: float) -> float:
    return 2.0


def broken(_: float) -> float:
    return math.nan


Call = Callable[[Any], Any]
NUMBERS: dict[str, tuple[Call, tuple[Any, ...]]] = {
    # primitives
    "gaussian noise": (lambda v: privacy.gaussian(noise=v), NOT_POSITIVE),
    "laplace scale": (lambda v: privacy.laplace(scale=v), NOT_POSITIVE),
    "pure epsilon": (privacy.pure, NOT_POSITIVE),
    "approximate epsilon": (lambda v: privacy.approximate(v, 1e-6), NEGATIVE),
    "approximate delta": (lambda v: privacy.approximate(1.0, v), NOT_A_DELTA),
    "concentrated rho": (lambda v: privacy.concentrated(rho=v), NOT_POSITIVE),
    "concentrated xi": (lambda v: privacy.concentrated(rho=0.5, xi=v), NEGATIVE),
    "approximate_concentrated delta": (
        lambda v: privacy.approximate_concentrated(delta=v, rho=0.5),
        NOT_A_DELTA,
    ),
    "approximate_concentrated rho": (
        lambda v: privacy.approximate_concentrated(delta=1e-6, rho=v),
        NOT_POSITIVE,
    ),
    "renyi order": (lambda v: privacy.renyi(order=v, epsilon=1.0), NOT_AN_ORDER),
    "renyi epsilon": (lambda v: privacy.renyi(order=2, epsilon=v), NOT_POSITIVE),
    "renyi_curve epsilon": (lambda v: privacy.renyi_curve({2: 0.1, 8: v}), NOT_POSITIVE),
    "randomized_response epsilon": (lambda v: privacy.randomized_response(epsilon=v), NOT_POSITIVE),
    "exponential epsilon": (lambda v: privacy.exponential(epsilon=v), NOT_POSITIVE),
    "discrete_laplace scale": (lambda v: privacy.discrete_laplace(scale=v, sensitivity=1), NOT_POSITIVE),
    "discrete_gaussian scale": (lambda v: privacy.discrete_gaussian(scale=v, sensitivity=1), NOT_POSITIVE),
    "leaky delta": (lambda v: privacy.leaky(delta=v), NOT_INNER),
    "leaky_randomized_response epsilon": (
        lambda v: privacy.leaky_randomized_response(epsilon=v, delta=0.1),
        NOT_POSITIVE,
    ),
    "leaky_randomized_response delta": (
        lambda v: privacy.leaky_randomized_response(epsilon=1.0, delta=v),
        NOT_INNER,
    ),
    "pair first": (lambda v: privacy.pair([v, 0.5], [0.5, 0.5]), (-0.5, 0.4, 2)),
    "pair second": (lambda v: privacy.pair([0.5, 0.5], [0.5, v]), (-0.5, 0.4, 2)),
    "two_gaussians shift": (lambda v: privacy.two_gaussians(shift=v, ratio=1.1), ()),
    "two_gaussians ratio": (lambda v: privacy.two_gaussians(shift=0.5, ratio=v), NOT_POSITIVE),
    # sampling
    "sampled rate": (lambda v: base.sampled(rate=v), NOT_A_RATE),
    "sampled rate without replacement": (
        lambda v: privacy.gaussian(1.0, relation="replace").sampled(v, scheme="without-replacement"),
        NOT_A_RATE,
    ),
    # views
    "epsilon at delta": (lambda v: base.epsilon(delta=v), NOT_A_DELTA),
    "epsilon by route": (lambda v: base.epsilon(delta=v, route="gdp"), NOT_A_DELTA),
    "delta at epsilon": (lambda v: base.delta(epsilon=v), NEGATIVE),
    "bound at delta": (lambda v: base.bound(delta=v), NOT_A_DELTA),
    "bound at epsilon": (lambda v: base.bound(epsilon=v), NEGATIVE),
    "compare": (lambda v: base.compare(delta=v), NOT_A_DELTA),
    "tradeoff": (lambda v: base.tradeoff(false_alarm=v), NOT_A_PROBABILITY),
    "posterior prior": (lambda v: pure.posterior(prior=v), NOT_INNER),
    "posterior delta": (lambda v: pure.posterior(prior=0.5, delta=v), NOT_A_DELTA),
    "posterior_exceeds level": (lambda v: base.posterior_exceeds(v, prior=0.5), NOT_INNER),
    "posterior_exceeds prior": (lambda v: base.posterior_exceeds(0.9, prior=v), NOT_INNER),
    "renyi view": (lambda v: base.renyi(order=v), NOT_AN_ORDER),
}
COUNTS: dict[str, Call] = {
    "count on the left": lambda v: v * base,
    "count on the right": lambda v: base * v,
    "group": base.group,
    "outcomes": lambda v: privacy.randomized_response(epsilon=1.0, outcomes=v),
    "discrete_laplace sensitivity": lambda v: privacy.discrete_laplace(scale=1.0, sensitivity=v),
    "discrete_gaussian sensitivity": lambda v: privacy.discrete_gaussian(scale=1.0, sensitivity=v),
}
OPTIONAL = {"concentrated xi", "bound at delta", "bound at epsilon"}  # here None means "not given"


def must_refuse(
    call: Callable[[], Any], family: type[errors.DiscreetError], prefix: str
) -> errors.DiscreetError:
    """The error that `call` raises, after checking that it is one of ours and says all it must."""
    with pytest.raises(errors.DiscreetError) as caught:
        call()
    error = caught.value
    assert isinstance(error, family)
    assert error.code in errors.CODES
    assert error.code.startswith(prefix)
    first, *rest = str(error).splitlines()
    assert first.startswith(error.code)
    assert [line.split()[0] for line in rest] == ["Why", "Fix", "Spent"]
    assert all(len(line.split()) > 1 for line in rest)
    assert error.spent == "nothing"
    return error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 20 else f"{text[:6]}...{len(text)} digits"


def _table() -> list[Any]:
    """Every call with every value that it must refuse."""
    numbers = [(name, call, (*NOT_A_NUMBER, *also)) for name, (call, also) in NUMBERS.items()]
    counts = [(name, call, NOT_A_COUNT) for name, call in COUNTS.items()]
    return [
        pytest.param(call, value, id=f"{name}={_shown(value)}")
        for name, call, values in numbers + counts
        for value in values
        if not (value is None and name in OPTIONAL)
    ]


@pytest.mark.parametrize(("call", "value"), _table())
def test_a_bad_number_is_refused(call: Call, value: Any) -> None:
    assert must_refuse(lambda: call(value), errors.BadParameter, "DP1")


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), Fraction(1, 2), 0.5])
def test_every_kind_of_real_number_is_welcome(value: Any) -> None:
    for call in (privacy.gaussian, privacy.laplace, privacy.pure):
        assert call(value) == call(0.5)
    assert base.sampled(rate=value) == base.sampled(rate=0.5)
    assert base.epsilon(delta=value) == base.epsilon(delta=0.5)


def test_every_kind_of_whole_number_is_a_count() -> None:
    assert np.int64(3) * base == base * np.int32(3) == 3 * base


@pytest.mark.parametrize(
    "call",
    [
        lambda: privacy.pair([0.5, 0.5], [1.0]),
        lambda: privacy.pair([], []),
        lambda: privacy.pair([0.5, 0.4], [0.5, 0.5]),
        lambda: privacy.pair([[0.5, 0.5]], [[0.5, 0.5]]),
        lambda: privacy.pair(None, None),
        lambda: privacy.pair("ab", "cd"),
        lambda: privacy.pair(0.5, 0.5),
        lambda: privacy.pair([0.5, 0.5], [0.5, "half"]),
        lambda: privacy.renyi_curve({}),
        lambda: privacy.renyi_curve({1: 0.5}),
        lambda: privacy.renyi_curve({math.nan: 0.5}),
        lambda: privacy.renyi_curve({"2": 0.5}),
        lambda: privacy.renyi_curve(0.5),
        lambda: privacy.renyi_curve(None),
        lambda: privacy.pair_of_densities(None, None, support=(0, 1)),
        lambda: privacy.pair_of_densities(flat, flat, support=(1, 0)),
        lambda: privacy.pair_of_densities(flat, flat, support=(0, math.nan)),
        lambda: privacy.pair_of_densities(flat, flat, support=None),
        lambda: privacy.pair_of_densities(flat, double, support=(0, 1)),
        lambda: privacy.pair_of_densities(flat, lambda x: 1.5 - 3 * (x > 0.5), support=(0, 1)),
        lambda: privacy.pair_of_densities(broken, flat, support=(0, 1)),
        base.bound,
        lambda: base.bound(delta=1e-6, epsilon=1.0),
        lambda: base.epsilon(delta=1e-6, route="shortest"),
        lambda: base.epsilon(delta=1e-6, route=7),
        lambda: base.sampled(rate=0.1, scheme="at random"),
        lambda: base.sampled(rate=0.1, scheme=None),
        lambda: base.sampled(rate=0.1, relation="swap"),
        lambda: privacy.gaussian(1.0, relation="swap"),
        lambda: privacy.gaussian(1.0, unit=7),
        privacy.parallel,
        lambda: privacy.parallel(base, 1.0),
        lambda: base.implies(1.0),
        lambda: dp.calibrate(privacy.gaussian, to=1.0),
        lambda: dp.calibrate(None, to=pure),
        lambda: dp.calibrate(lambda z: z, to=privacy.approximate(1.0, 1e-6)),
    ],
)
def test_a_malformed_question_is_refused(call: Callable[[], Any]) -> None:
    assert must_refuse(call, errors.BadParameter, "DP1")


@pytest.mark.parametrize(
    "call",
    [
        lambda: base + privacy.gaussian(1.0, relation="replace"),
        lambda: base + privacy.gaussian(1.0, unit="household"),
        lambda: privacy.pure(1.0, unit="visit") + privacy.pure(1.0, unit="patient"),
        lambda: privacy.parallel(base, privacy.gaussian(1.0, relation="replace")),
        lambda: privacy.parallel(base, privacy.gaussian(1.0, unit="household")),
        lambda: sum([base, privacy.pure(1.0, relation="replace")][1:], start=base),
    ],
)
def test_different_people_or_neighbours_do_not_add(call: Callable[[], Any]) -> None:
    assert must_refuse(call, errors.UnitMismatch, "DP2").code == "DP201"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: privacy.gaussian(1.0, relation="replace").sampled(0.1, relation="add-remove"), "DP202"),
        (lambda: privacy.parallel(base, pure).sampled(rate=0.1), "DP202"),
        (lambda: privacy.parallel(base, pure).group(2), "DP203"),
        (lambda: privacy.parallel(privacy.gaussian(1.0, relation="replace")), "DP203"),
        (lambda: privacy.renyi(order=2, epsilon=1.0).group(2), "DP203"),
        (lambda: privacy.concentrated(rho=0.5, xi=0.1).group(2), "DP203"),
        (lambda: privacy.approximate(1.0, 0.5).group(2), "DP203"),
    ],
)
def test_what_no_theorem_covers_is_refused(call: Callable[[], Any], code: str) -> None:
    assert must_refuse(call, errors.UnsupportedGuarantee, "DP2").code == code


@pytest.mark.parametrize(
    ("guarantee", "route"),
    [(base, "optimal"), (base, "advanced"), (pure, "gdp"), (privacy.renyi(order=2, epsilon=1.0), "zcdp")],
)
def test_a_route_whose_theorem_says_nothing_is_refused(guarantee: Any, route: str) -> None:
    error = must_refuse(
        lambda: guarantee.epsilon(delta=1e-6, route=route), errors.UnsupportedGuarantee, "DP2"
    )
    assert error.code == "DP204"


@pytest.mark.parametrize(
    "text", ["", "null", "7", "[]", "{}", '{"version": 1}', "{broken", base.to_json()[:-5], None, b"\xff", 7]
)
def test_a_damaged_description_is_refused(text: Any) -> None:
    error = must_refuse(lambda: privacy.from_json(text), errors.DiscreetError, "DP")
    assert error.code == "DP401"


def test_a_description_from_the_future_is_refused() -> None:
    newer = {**json.loads(base.to_json()), "discreet": 10**6}
    assert must_refuse(lambda: privacy.from_json(json.dumps(newer)), errors.BadDescription, "DP402")


def test_a_target_that_nothing_reaches_is_refused() -> None:
    leaks = lambda z: privacy.gaussian(z) + privacy.leaky(delta=0.1)  # noqa: E731
    assert must_refuse(
        lambda: dp.calibrate(leaks, to=privacy.approximate(1.0, 1e-6)), errors.CannotCertify, "DP302"
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: base + 1,
        lambda: 1 + base,
        lambda: base + "noise",
        lambda: base + None,
        lambda: base - base,
        lambda: base**2,
        lambda: base / 2,
        lambda: base < pure,
        lambda: base @ base,
        lambda: setattr(base, "noise", 2.0),
    ],
)
def test_there_is_no_other_arithmetic(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, AttributeError, errors.DiscreetError)):
        call()
