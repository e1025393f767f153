# SPDX-License-Identifier: Apache-2.0
"""No unit moves the sums further than the noise is made for, and some unit moves them that far."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.exact import exactly
from discreet.tables.algebra.expr import Case, Compare, Constant
from discreet.tables.algebra.sums import GroupScheme, RowScheme
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from discreet.tables.plan.totals import Totals
from tests.tables.small import dataset, engine, number, people, question, weighted

VALUES = (-3, 0, 2, 9, None)


def where(op, value, of=None, *, otherwise=None):
    """A number in the rows where x compares so, as FILTER and CASE write it."""
    x = number(-2, 5)
    whole = Type(NUMBER, value, value, null=False)
    nothing = Constant(otherwise, Type(NUMBER, otherwise or 0, otherwise or 0, null=otherwise is None))
    return Case(((Compare(op, x, Constant(value, whole)), of or Constant(1, ONE)),), nothing)


ONE = Type(NUMBER, 1, 1, null=False)
AGGREGATES = {
    "exclusive counts": [("count_of", where(op, value)) for op, value in (("=", 2), ("=", 5), ("<", 2))],
    "exclusive sums": [("sum", where(op, 1, number(-2, 5), otherwise=0)) for op in ("<", ">=")],
    "exclusive means": [("mean", where(op, 1, number(-2, 5))) for op in ("<", ">=")],
    "counts that overlap": [("count_of", where(op, 2)) for op in ("<=", ">=")],
    "count": [("count",)],
    "count_of": [("count_of", number(-2, 5))],
    "sum": [("sum", number(-2, 5))],
    "positive sum": [("sum", number(1, 5))],
    "mean": [("mean", number(-2, 5))],
    "all": [("count",), ("sum", number(-2, 5)), ("mean", number(-2, 5)), ("count_of", number(-2, 5))],
    "variance": [("variance", number(-2, 5)), ("mean", number(-2, 5))],
    "two columns": [("mean", number(-2, 5, null=False)), ("sum", number(0, 3)), ("count",)],
    "two sums": [("sum", number(0, 3)), ("sum", number(-2, 5))],
    "positive sums": [("sum", number(0, 3)), ("sum", number(1, 5)), ("sum", number(0, 9))],
    "units": [("units",)],
    "units and rows": [("units",), ("count",), ("mean", number(-2, 5))],
}
PURE, GAUSSIAN = Spend(epsilon=1.0), Spend(rho=0.5)
BOTH = Spend(epsilon=1.0, delta=1e-6)


def distances(mechanism, relation):
    """For every part: how far its farthest neighbours are apart, in noises, and what the guarantee is made for."""
    for part in mechanism.stages:
        assert isinstance(part, Totals)
        gaussian = "gaussian" in repr(part.guarantee)
        noise = np.array([distribution.scale for distribution in part.distributions])
        vectors = []
        for person in people(VALUES, most=3):
            moved = part.exact(engine((person,)))
            nothing = (0,) * noise.size
            vectors.append(np.array([moved.get(group, nothing) for group in mechanism.groups]) / noise)
        found = np.unique([vector.ravel() for vector in vectors], axis=0)
        others = found if relation == "replace" else np.zeros((1, found.shape[1]))
        gaps = np.abs(found[:, None] - others[None])
        yield float((gaps**2 if gaussian else gaps).sum(axis=2).max()), float(bound(part, gaussian=gaussian))


def bound(part, *, gaussian):
    """Σ Δ/scale, or 1/noise²: what the guarantee is calibrated to."""
    if gaussian:
        return 1 / exactly(part.guarantee.noise) ** 2
    parts = part.guarantee.parts if hasattr(part.guarantee, "parts") else [(part.guarantee, 1)]
    return sum(count * Fraction(one.sensitivity) / exactly(one.scale) for one, count in parts)


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN, BOTH], ids=["laplace", "gaussian", "both"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [None, ("a", "b"), ("a",)], ids=["total", "groups", "one group"])
@pytest.mark.parametrize("asked", AGGREGATES.values(), ids=AGGREGATES)
def test_no_unit_moves_the_sums_further_than_guaranteed(asked, keys, relation, spend):
    mechanism = compile_question(question(*asked, keys=keys), dataset(at_most=2, relation=relation), spend)
    for worst, guaranteed in distances(mechanism, relation):
        assert worst <= guaranteed * (1 + 1e-12)
        assert worst >= guaranteed / 4, "the noise is far more than any unit needs"


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_exclusive_columns_cost_what_one_costs(relation):
    data = dataset(at_most=2, relation=relation)
    for keys in (None, ("a", "b")):
        one = compile_question(question(("count_of", where("=", 2)), keys=keys), data, PURE).error()
        three = compile_question(question(*AGGREGATES["exclusive counts"], keys=keys), data, PURE).error()
        factor = 2 if relation == "replace" and keys is None else 1
        assert list(three.values()) == pytest.approx([factor * one["count_of0"]] * 3)
        noises = {
            name: compile_question(question(*AGGREGATES[name], keys=keys), data, GAUSSIAN).error()
            for name in ("exclusive counts", "counts that overlap")
        }
        alone = compile_question(question(("count_of", where("=", 2)), keys=keys), data, GAUSSIAN).error()
        assert max(noises["exclusive counts"].values()) <= 1.01 * alone["count_of0"]
        assert min(noises["counts that overlap"].values()) >= 1.4 * alone["count_of0"]


def test_columns_taken_for_exclusive_are_found_out(monkeypatch):
    """The mutant: every two conditions count as exclusive."""
    monkeypatch.setattr("discreet.tables.plan.exclusive.are_exclusive", lambda *_: True)
    asked = question(*AGGREGATES["counts that overlap"], keys=("a", "b"))
    ((worst, guaranteed),) = distances(compile_question(asked, dataset(at_most=2), PURE), "add-remove")
    assert worst > 1.9 * guaranteed


@pytest.mark.parametrize("at_most", [1, 2, 3])
def test_the_bound_is_attained(at_most):
    data = dataset(at_most=at_most)
    for asked, spend in [
        ("count", PURE),
        ("sum", PURE),
        ("positive sum", PURE),
        ("two sums", PURE),
        ("positive sums", PURE),
        ("mean", PURE),
        ("count", GAUSSIAN),
        ("sum", GAUSSIAN),
    ]:
        mechanism = compile_question(question(*AGGREGATES[asked], keys=("a", "b")), data, spend)
        ((worst, guaranteed),) = distances(mechanism, "add-remove")
        assert math.isclose(worst, guaranteed, rel_tol=1e-6)
    mechanism = compile_question(question(*AGGREGATES["mean"], keys=("a", "b")), data, GAUSSIAN)
    ((worst, guaranteed),) = distances(mechanism, "add-remove")
    assert worst >= 0.97 * guaranteed


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_total_of_replaced_units_moves_by_one_unit(relation):
    data = dataset(at_most=2, relation=relation)
    for asked, spend in [("count", PURE), ("sum", PURE), ("positive sum", PURE), ("units", PURE)]:
        mechanism = compile_question(question(*AGGREGATES[asked]), data, spend)
        ((worst, guaranteed),) = distances(mechanism, relation)
        assert math.isclose(worst, guaranteed, rel_tol=1e-6)


@pytest.mark.parametrize("spend", [PURE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("at_most", [1, 2, 3])
@pytest.mark.parametrize("asked", AGGREGATES.values(), ids=AGGREGATES)
def test_nobody_within_the_limit_is_down_weighted(asked, at_most, spend):
    mechanism = compile_question(question(*asked, keys=("a", "b")), dataset(at_most=at_most), spend)
    for part in mechanism.stages:
        if isinstance(part.sums.scheme, GroupScheme):
            continue  # it weighs groups, not rows
        in_full = replace(part.sums, scheme=RowScheme(10**6, part.sums.scheme.fine))
        for person in people(VALUES, most=at_most):
            assert weighted(part.sums, person) == weighted(in_full, person)


def test_half_the_noise_is_found_out():
    mechanism = compile_question(question(("count",), keys=("a", "b")), dataset(at_most=2), PURE)
    (part,) = mechanism.stages
    object.__setattr__(part.distributions[0], "scale", part.distributions[0].scale / 2)
    ((worst, guaranteed),) = distances(mechanism, "add-remove")
    assert worst > guaranteed
