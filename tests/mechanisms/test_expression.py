# SPDX-License-Identifier: Apache-2.0
"""Every mechanism prints as the expression that made it; a class of somebody else shows no argument."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest

from discreet import graphs
from discreet import mechanisms as m
from discreet.mechanisms import local, proposals, ptr, queries, query, smooth
from discreet.privacy.unit import Unit
from tests.mechanisms.examples import EXAMPLES, half_as_wrong

NAMES = {
    **{
        name: value
        for module in (query, proposals, smooth, ptr, local)
        for name, value in vars(module).items()
    },
    **vars(queries),
    **vars(graphs),
    **vars(m),
    "Fraction": Fraction,
    "partial": partial,
    "half_as_wrong": half_as_wrong,
    "sum": sum,
    "len": len,
    "max": max,
}

#: What `EXAMPLES` leaves out, and public objects that are no mechanism.
OTHERS = [
    m.AdaptiveQueries(records=1_000, queries=10, epsilon=1, unit="patient"),
    m.Thresholdout(records=1_000, threshold=0.1, overfits=1, queries=100, epsilon=1),
    m.UnboundedSum(epsilon=1.0, share=0.5),
    m.StabilityHistogram(rho=0.1, delta=1e-6, at_most=3),
    m.Laplace.for_error(10, sensitivity=1),
    queries.variance((0, 10), size=100).gaussian(rho=0.1),
    ptr.StabilityTest(epsilon=1, delta=1e-6, test="laplace"),
    ptr.median(bounds=(0, 100)).release(bound=1, test_epsilon=0.5, release_epsilon=0.5, delta=1e-6),
    smooth.SmoothMechanism(smooth.OrderStatistic((0, 100), q=0.5), smooth.SmoothBudget(epsilon=1.0)),
    smooth.SmoothLomax(4.0),
    smooth.SmoothMechanism(smooth.Reciprocal(where=abs), smooth.SmoothBudget(rho=0.5), size=50),
    queries.mean((0, 1), of=abs),
    graphs.Triangles(nodes=5, epsilon=1.0),
    graphs.KStars(k=2, nodes=100, epsilon=0.5, method="global"),
    graphs.EdgeCount(epsilon=0.5, unit="node", at_most=20),
    graphs.DegreeSequence(nodes=4, epsilon=1.0),
    graphs.CumulativeDegrees(most=10, epsilon=1.0),
]


@pytest.mark.parametrize("thing", [mechanism for mechanism, _, _ in EXAMPLES.values()] + OTHERS, ids=repr)
def test_a_mechanism_prints_as_the_expression_that_made_it(thing):
    twin = eval(repr(thing), dict(NAMES))
    assert type(twin) is type(thing)
    assert repr(twin) == repr(thing)
    assert getattr(twin, "guarantee", None) == getattr(thing, "guarantee", None)
    assert getattr(twin, "__dict__", {}).keys() == getattr(thing, "__dict__", {}).keys()


def test_a_vector_mechanism_prints_its_length_once_it_has_one():
    assert repr(m.Laplace(epsilon=1, sensitivity=1).for_size_of([1.0, 2.0])) == (
        "Laplace(epsilon=1, sensitivity=1, dimension=2)"
    )


class Foreign(m.Laplace):
    """Whoever writes a mechanism may put data into it."""

    def __init__(self, rows):
        super().__init__(epsilon=1, sensitivity=1)
        self.rows = rows


class Holder:
    def __call__(self, data):
        return 0

    def __repr__(self):
        return "a secret"


def test_a_class_of_somebody_else_shows_no_argument():
    assert "secret" not in repr(Foreign(["secret"]))
    assert "epsilon" not in repr(Foreign(["secret"]))


def test_a_callable_shows_its_name_alone():
    shown = repr(m.StableValue(Holder(), partial(Holder()), epsilon=1, delta=1e-6))
    assert shown == "StableValue(…, partial(…), epsilon=1, delta=1e-06)"
    assert repr(m.Geometric(epsilon=1, sensitivity=1).then(abs)) == (
        "Then(Geometric(epsilon=1, sensitivity=1), abs, None)"
    )


def test_a_unit_keeps_its_words():
    mechanism = m.Gaussian(rho=0.1, sensitivity=1, unit="patient", relation="replace")
    assert eval(repr(mechanism), dict(NAMES)).unit == Unit("patient", "replace")
