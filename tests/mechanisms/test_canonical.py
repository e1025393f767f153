# SPDX-License-Identifier: Apache-2.0
"""Canonical forms: equal keys have one spelling, forms are of a closed list of types, and nothing raises."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from uuid import UUID, SafeUUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.mechanisms.canonical import NOTHING, canonical, canonical_each, exact_ratio, public_order
from tests.mechanisms.odd import ODD

TYPES = {type(None), int, float, Decimal, Fraction, str, bytes, date, datetime, time, timedelta, UUID, tuple}
PARIS = ZoneInfo("Europe/Paris")


class Word(str):
    __slots__ = ()


class Number(int):
    pass


VALUES = [
    None,
    *(
        True,
        1,
        1.0,
        np.float32(1),
        np.int64(1),
        np.True_,
        1 + 0j,
        Decimal("1.0"),
        Decimal("1.00"),
        Fraction(1),
    ),
    *(0, -0.0, 0.0, Decimal("-0"), False, Number(1), np.longdouble(1), Decimal("1E+2"), 100, 100.0),
    *(
        0.1,
        Decimal("0.1"),
        Decimal("0.10"),
        Fraction(1, 10),
        Fraction(1, 3),
        np.float64(0.1),
        np.float32(0.1),
    ),
    *(math.inf, -math.inf, Decimal("Infinity"), np.float32("inf"), 2**1023, 5e-324, 1.7976931348623157e308),
    *("", "a", Word("a"), np.str_("a"), "\udc80", b"a", np.bytes_(b"a"), memoryview(b"a")),
    *(date(2026, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, fold=1), np.datetime64("2026-01-01")),  # noqa: DTZ001 - naive on purpose
    *(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
    *(datetime(2026, 10, 25, 2, 30, tzinfo=PARIS), datetime(2026, 10, 25, 2, 30, tzinfo=PARIS, fold=1)),
    *(datetime(2026, 1, 1, 1, tzinfo=PARIS), np.datetime64("2026-01-01T00:00:00.000000")),
    *(time(3), time(3, fold=1), timedelta(1), timedelta(hours=24), np.timedelta64(24, "h")),
    *(UUID(int=7), UUID(int=7, is_safe=SafeUUID.safe)),
    *((1, "a"), (True, Word("a")), (), ((1.0,),), ((True,),)),
]


def is_key(value):
    try:
        return isinstance(hash(value), int)
    except TypeError:
        return False


def equal_keys(one, other):
    """Whether a dict takes them for one key."""
    try:
        return len({one, other}) == 1
    except TypeError:  # some pairs of numpy's and Python's numbers refuse to be compared
        return False


def test_equal_keys_have_one_spelling_and_others_have_two():
    for one, other in itertools.product(filter(is_key, VALUES), repeat=2):
        forms = canonical(one), canonical(other)
        assert NOTHING not in forms
        if equal_keys(one, other):
            assert repr(forms[0]) == repr(forms[1])
        if repr(forms[0]) != repr(forms[1]):
            assert forms[0] != forms[1]


@pytest.mark.parametrize("value", [*VALUES, *ODD.values()], ids=range(len(VALUES) + len(ODD)))
def test_forms_are_of_a_closed_list_of_types_and_their_own_forms(value):
    form = canonical(value)
    assert form is NOTHING or type(form) in TYPES
    assert form is NOTHING or repr(canonical(form)) == repr(form)


def test_what_has_no_form():
    zoned = time(3, tzinfo=UTC)
    late = datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))
    fine = np.datetime64("2026-01-01T00:00:00.000000001")
    deep = endless = []
    endless.append(deep)
    nothing = [math.nan, Decimal("sNaN"), 1j, 10**400, Decimal("1e999999999999"), Decimal("1e-999999999999")]
    nothing += [Fraction(1, 3**3000), zoned, late, fine, np.datetime64("NaT"), np.timedelta64(1, "M")]
    nothing += [object(), {1}, {1: 1}, frozenset([1]), (1, math.nan), endless, type, np.ma.masked]
    assert canonical_each(nothing) == [NOTHING] * len(nothing)


@given(st.decimals(allow_nan=False) | st.fractions() | st.floats(allow_nan=False) | st.integers())
def test_numbers_keep_their_value(value):
    form = canonical(value)
    assert form is NOTHING or form == value


@given(st.integers(1, 2**80), st.integers(0, 40), st.integers(0, 40), st.integers(-20, 20))
def test_a_decimal_and_its_ratio_have_one_form(whole, twos, fives, power):
    ratio = Fraction(whole, 2**twos * 5**fives) * Fraction(10) ** power
    places = twos + fives + 20
    written = Decimal((0, tuple(map(int, str(int(ratio * 10**places)))), -places))
    assert repr(canonical(written)) == repr(canonical(ratio))
    assert exact_ratio(written) == ratio


def test_forms_of_all_types_have_an_order():
    forms = {form for form in canonical_each(VALUES) if form is not NOTHING}
    listed = sorted(forms, key=public_order)
    assert all(public_order(one) < public_order(other) for one, other in itertools.pairwise(listed))
