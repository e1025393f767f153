# SPDX-License-Identifier: Apache-2.0
"""Numbers are shown on the safe side, and long work is announced to those who look."""

from __future__ import annotations

import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from discreet.cli import terminal
from discreet.cli.terminal import at_least_percent, at_most_percent, round_to_side
from discreet.exact import lower_bound_text, upper_bound_text

#: The width of what is dropped before rounding.
MARGIN = 1e-10
numbers = st.floats(min_value=1e-300, max_value=1e300)


@given(numbers)
def test_a_bound_is_rounded_to_its_own_side_and_not_far(x):
    assert x * (1 - MARGIN) <= float(upper_bound_text(x)) <= x * (1 + 1.1e-5)
    assert x * (1 - 1.1e-5) <= float(lower_bound_text(x)) <= x * (1 + MARGIN)
    assert x * (1 - MARGIN) <= round_to_side(x, upwards=True) <= x * (1 + 1.1e-6)
    assert x * (1 - 1.1e-6) <= round_to_side(x, upwards=False) <= x * (1 + MARGIN)


@given(st.floats(min_value=0, max_value=1))
def test_percentages_are_rounded_to_their_own_side(share):
    low, high = (float(shown(share).split()[0]) for shown in (at_least_percent, at_most_percent))
    assert low - 1e-8 <= 100 * share <= high + 1e-8
    assert high - low < 0.0101


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.30000000000000004, "0.3"), (2.163281, "2.16329"), (0.0, "0"), (math.inf, "∞"), (1e-7, "1e-07")],
)
def test_a_short_number_stays_short(value, shown):
    assert upper_bound_text(value) == shown


def test_work_is_announced_on_a_terminal_only(monkeypatch, capsys):
    with terminal.working("searching"):
        pass
    assert capsys.readouterr() == ("", "")
    screen = Console(file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(terminal, "console", lambda **_: screen)
    with terminal.working("searching"):
        pass
    assert "searching" in screen.file.getvalue()
