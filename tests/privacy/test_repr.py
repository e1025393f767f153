# SPDX-License-Identifier: Apache-2.0
"""What is printed of an object is the expression that makes it."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet import audit, plot, privacy
from discreet.privacy.explain import Explanation

step = privacy.gaussian(noise=1.0).sampled(rate=0.01)
GUARANTEES = [
    privacy.pure(0.5),
    privacy.approximate(0.5, 1e-6, unit="patient", relation="replace"),
    privacy.concentrated(0.1),
    privacy.concentrated(0.1, xi=0.2, unit="patient"),
    privacy.approximate_concentrated(1e-6, 0.1),
    privacy.exponential(0.5),
    privacy.laplace(2.0, relation="replace"),
    privacy.gaussian(1.0),
    privacy.discrete_laplace(4, sensitivity=2),
    privacy.discrete_gaussian(4, sensitivity=2),
    privacy.randomized_response(1.0, outcomes=3),
    privacy.leaky(1e-6),
    privacy.leaky_randomized_response(1.0, 1e-6),
    privacy.two_gaussians(0.5, 1.1),
    privacy.pair([0.9, 0.1], [0.2, 0.8]),
    privacy.pair([0.9, 0.1], [0.2, 0.8], unit="patient", relation="replace"),
    step,
    step.group(3),
    privacy.gaussian_mixture(1.0, {0.0: 0.5, 2.0: 0.5}),
    privacy.truncated_batches(1.0, 0.1, 20, 90),
    privacy.shuffled(privacy.pure(1.0, relation="replace"), n=100),
    privacy.gaussian(1.0).allocated(100),
    (2 * step).allocated(12, times=3),
    (2 * step + privacy.pure(0.1)).sampled(0.5),
    privacy.laplace(2.0).sampled(0.1, scheme="without-replacement", relation="replace"),
    privacy.parallel(privacy.pure(0.1), 2 * privacy.laplace(1.0)),
    privacy.parallel(privacy.pure(0.1), relation="replace"),
    privacy.one_of(privacy.pure(0.1), privacy.laplace(1.0)),
    privacy.selected(privacy.laplace(10), mean_runs=10),
    1_000 * step + privacy.laplace(scale=10),
]
#: A stored statement quotes this form, so it stays although `renyi` takes one order.
QUOTED = [
    (privacy.renyi(order=8, epsilon=1.0), "renyi(points=((8.0, 1.0),))"),
    (privacy.renyi_curve({2: 0.1, 8: 0.6}), "renyi(points=((2.0, 0.1), (8.0, 0.6)))"),
]
OTHERS = [
    dp.Unit("patient", "replace"),
    privacy.laplace(2.0).bound(delta=1e-6),
    privacy.gaussian(2.0).explain(units=1_000),
    plot.Band([0.0, 1.0], [0.0, 1.0], [0.2, 1.0], name="audit"),
    audit.exact(lambda bit: {bit: Fraction(3, 4), 1 - bit: Fraction(1, 4)}, 0, 1),
    audit.one_run([True, False] * 50, [1.0, 0.0] * 50),
    audit.Event(
        "value is 1", "x", audit.Rate(9, 10, 0.5, "Clopper-Pearson", 0.1), audit.Rate(1, 10, 0.5, "", 0.1)
    ),
]
NAMES = {name: getattr(privacy, name) for name in privacy.__all__} | {
    name: getattr(audit, name) for name in audit.__all__
}
NAMES |= {"Band": plot.Band, "Fraction": Fraction, "Explanation": Explanation}


@pytest.mark.parametrize("thing", [*GUARANTEES, *OTHERS], ids=lambda thing: repr(thing)[:60])
def test_what_is_printed_makes_the_same_object(thing):
    assert eval(repr(thing), dict(NAMES)) == thing


@pytest.mark.parametrize(("guarantee", "text"), QUOTED)
def test_a_form_that_statements_quote_stays(guarantee, text):
    assert repr(guarantee) == text


def test_a_large_table_is_printed_by_its_size_and_unit():
    many = privacy.pair([0.1] * 10, [0.1] * 10, unit="patient")
    assert repr(many) == "pair(<10 outcomes>, unit='patient')"


def test_a_failing_concentrated_guarantee_with_a_constant_is_stored():
    guarantee = privacy.concentrated(0.1, xi=0.2, delta=1e-6)
    assert privacy.from_json(guarantee.to_json()) == guarantee
    assert guarantee.epsilon(delta=1e-7) == float("inf")
