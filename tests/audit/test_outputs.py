# SPDX-License-Identifier: Apache-2.0
"""Outputs of every kind become cells, and nothing that an attacker sees is lost."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet import privacy
from discreet.audit.cells import bit_columns, lowest_bit
from discreet.audit.draws import ExceptionOutcome
from discreet.audit.outputs import OutputColumn, columns_of
from discreet.mechanisms.mechanism import Refusal, Release


def cells(*outputs):
    """Each column as what it says of each output."""
    return {
        column.name: [
            number if code == 0 else column.words[code]
            for number, code in zip(column.numbers.tolist(), column.codes, strict=True)
        ]
        for column in columns_of([list(outputs)])
    }


@pytest.mark.parametrize(
    ("outputs", "name", "expected"),
    [
        ((1.5, 2.5), "value", [1.5, 2.5]),
        ((1, 2), "value", [1.0, 2.0]),
        ((True, False), "value", [1.0, 0.0]),
        ((Fraction(1, 2), Fraction(1, 4)), "value", [0.5, 0.25]),
        ((np.float32(0.5), np.float32(1.0)), "value", [0.5, 1.0]),
        ((float("nan"), float("inf"), 1.0), "value", ["nan", "inf", 1.0]),
        (("yes", "no"), "value", ["'yes'", "'no'"]),
        ((None, 3.0), "value", ["nothing", 3.0]),
        ((Refusal("unstable"), 3.0), "value", ["refused: unstable", 3.0]),
        ((ExceptionOutcome("ValueError"), 3.0), "value", ["raised ValueError", 3.0]),
        (((1.0, "a"), (2.0, "b")), "value[1]", ["'a'", "'b'"]),
        (((1.0,), (1.0, 2.0)), "value[1]", ["absent", 2.0]),
        (((1.0,), (1.0, 2.0)), "length of value", [1.0, 2.0]),
        (({"a": 1, "b": 2}, {"b": 2, "a": 1}), "keys of value", ["'a', 'b'", "'b', 'a'"]),
        (({"a": 1}, {"b": 1}), "value['a']", [1.0, "absent"]),
        (({"x"}, {"y"}), "'x' in value", [1.0, "absent"]),
        (([[1, 2]], [[1, 3]]), "value[0][1]", [2.0, 3.0]),
        ((np.zeros(2), np.zeros(2, np.float32)), "shape of value", ["float64 (2,)", "float32 (2,)"]),
        ((1, 1.0), "type", ["int", "float"]),
        ((2**70 + 1, 2**70 + 2), "value mod 2^20", [1.0, 2.0]),
        ((Release(1.0, privacy.pure(1.0)), Release(2.0, privacy.pure(1.0))), "value", [1.0, 2.0]),
    ],
)
def test_what_an_output_becomes(outputs, name, expected):
    assert [str(cell) for cell in cells(*outputs)[name]] == [str(cell) for cell in expected]


def test_a_data_frame_is_its_dictionary():
    class Frame:
        def __init__(self, value):
            self.value = value

        def to_dict(self):
            return {"ward": {0: "a"}, "n": {0: self.value}}

    assert cells(Frame(1), Frame(2))["value['n'][0]"] == [1.0, 2.0]


def test_arrays_and_lists_say_the_same():
    values = np.array([[1.0, 2.0], [3.0, np.nan]])
    fast = {column.name: column for column in columns_of([values[:1], values[1:]])}
    slow = cells(*[row.tolist() for row in values])
    assert list(fast) == ["value[0]", "value[1]"]
    assert fast["value[0]"].numbers.tolist() == slow["value[0]"]
    assert fast["value[1]"].words[fast["value[1]"].codes[1]] == slow["value[1]"][1] == "nan"


def test_large_whole_numbers_keep_their_last_digits():
    columns = columns_of([np.array([2**60, 2**60 + 1])])
    assert [column.name for column in columns] == ["value mod 2^20"]


def exact_lowest_bit(value):
    ratio = Fraction(value)
    if ratio == 0:
        return 2000
    twos = (ratio.numerator & -ratio.numerator).bit_length() - 1
    return twos - (ratio.denominator.bit_length() - 1)


def test_the_lowest_bit_is_that_of_exact_arithmetic():
    generator = np.random.default_rng()
    values = generator.normal(size=300) * 2.0 ** generator.integers(-1000, 1000, 300)
    values = np.concatenate(
        [values, np.round(values[:50] / 2.0**-20) * 2.0**-20, [0.0, -0.0, 1.0, 5e-324, -6.0]]
    )
    values = values[np.isfinite(values)]
    assert lowest_bit(values).tolist() == [exact_lowest_bit(value) for value in values.tolist()]


def test_the_offset_to_an_input_is_exact_or_said_not_to_be():
    generator = np.random.default_rng()
    value = 0.3
    values = value + generator.laplace(size=500)
    column = OutputColumn.of_numbers("value", values)
    found = {cell.name: cell for cell in bit_columns(column, (value, [7.0]))}
    cell = found["lowest bit of (value - x)"]
    for number, code, v in zip(cell.numbers, cell.codes, values.tolist(), strict=True):
        difference = Fraction(v) - Fraction(value)
        if Fraction(float(difference)) == difference:
            assert (code == 0 and number == exact_lowest_bit(difference)) or difference == 0
        else:
            assert cell.words[code] == "that of no float"
    assert "exponent of (value - x')" in found


def test_inputs_without_numbers_have_no_offsets():
    column = OutputColumn.of_numbers("value", np.array([0.1, 0.2]))
    assert not [cell for cell in bit_columns(column, ("a", {"b": 1})) if "- x" in cell.name]
