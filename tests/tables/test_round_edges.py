# SPDX-License-Identifier: Apache-2.0
"""Histograms whose edges nobody stated: round, between the bounds, and stated in the question."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.ask.round_edges import round_edges
from tests.tables.world import world

VISITS = world()["visits"]


@given(st.integers(-(10**15), 10**15), st.integers(0, 10**15), st.integers(0, 24))
def test_edges_are_few_and_between_the_bounds(low, width, places):
    kind = Type(NUMBER, low, low + width, places)
    edges = round_edges(kind)
    assert 1 <= len(edges) <= 14
    assert edges == sorted(set(edges))
    if len(edges) > 1:
        assert all(kind.bounds[0] < Fraction(edge) < kind.bounds[1] for edge in edges)
    if width > 14:
        assert len(edges) >= 5
    assert places or all(edge == int(edge) for edge in edges)


def test_the_question_states_them():
    assert "BUCKET(days, 5, 10, 15" in VISITS.histogram("days").text
    assert "BUCKET(cost, 50, 100, 150" in VISITS.where(dp.col("urgent")).histogram("cost").text
    assert "BUCKET(CLAMP(weight, 0, 1), 0.1, 0.2" in VISITS.histogram(dp.col("weight").clamp(0, 1)).text
    assert VISITS.histogram("days").question.keys[0].values == (*range(12), None)
    assert VISITS.histogram("days", [3]).question.keys[0].values == (0, 1, None)
    assert len(VISITS.group_by("ward").histogram("days").question.keys) == 2


@pytest.mark.parametrize("of", ["weight", "note", "day", "patient_id", "nothing"])
def test_what_has_no_bounds_is_refused(of):
    with pytest.raises(DiscreetError):
        VISITS.histogram(of)
