# SPDX-License-Identifier: Apache-2.0
"""A number written as `?` is found on the safe side of the target, at its edge, and can be typed again."""

from __future__ import annotations

import pytest

from discreet import privacy

TARGET = privacy.approximate(1.0, 1e-6)
STEP = privacy.gaussian(1.0).sampled(0.01)
# the expression, the family, and a factor that crosses the edge
FAMILIES = {
    "1000 * gaussian(?).sampled(0.01)": (
        lambda z: 1000 * privacy.gaussian(z).sampled(0.01),
        1 - 1e-5,
    ),
    "10 * laplace(scale=?)": (lambda b: 10 * privacy.laplace(b), 1 - 1e-5),
    "1000 * gaussian(1.0).sampled(?)": (lambda q: 1000 * privacy.gaussian(1.0).sampled(q), 1 + 1e-5),
    "concentrated(?)": (privacy.concentrated, 1 + 1e-5),
    "5 * exponential(?)": (lambda e: 5 * privacy.exponential(e), 1 + 1e-5),
    "3 * approximate(0.1, ?)": (lambda d: 3 * privacy.approximate(0.1, d), 1 + 1e-4),
}


@pytest.mark.parametrize("text", FAMILIES)
def test_the_number_found_is_at_the_edge_and_safe(discreet, text):
    family, beyond = FAMILIES[text]
    done = discreet(f"account '{text}' --epsilon 1 --delta 1e-6 --json")
    value = done.object["calibrated"]["value"]
    assert value == float(f"{value:.6e}"), "seven digits can be typed"
    assert family(value).implies(TARGET)
    assert not family(value * beyond).implies(TARGET)
    assert done.object["epsilon"] == family(value).epsilon(delta=1e-6)


def test_account_finds_the_greatest_count_that_fits(discreet):
    done = discreet("account '? * gaussian(1.0).sampled(0.01)' --epsilon 1 --json")
    most = done.object["calibrated"]["value"]
    assert done.object["calibrated"] == {"flag": "?", "parameter": "count", "value": most}
    assert (most * STEP).implies(TARGET)
    assert not ((most + 1) * STEP).implies(TARGET)
    assert discreet("account 'gaussian(1.0).sampled(0.01) * ?' --epsilon 1 --json").object == done.object


def test_the_most_units_in_a_group(discreet):
    done = discreet("account 'pure(0.25).group(?)' --epsilon 1 --delta 0 --json")
    assert done.object["calibrated"] == {"flag": "?", "parameter": "size", "value": 4}


def test_a_round_number_is_found_as_such(discreet):
    words = discreet("account '10 * pure(?)' --epsilon 1 --delta 0").words
    assert "the greatest epsilon of pure is 0.1, for ε = 1 at δ = 0" in words
    assert (
        "the least scale of laplace is 1, for" in discreet("account 'laplace(?)' --epsilon 1 --delta 0").words
    )


def test_the_line_to_check_keeps_the_target(discreet):
    words = discreet("account '3 * gaussian(?)' --relation replace --epsilon 1 --delta 1e-9").words
    line = words.partition("to check discreet ")[2].partition(" protects ")[0]
    assert "--relation replace" in line
    again = discreet(f"{line} --json").object
    assert again["epsilon"] <= 1.0
    assert again["delta"] == 1e-9


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("'gaussian(?) + laplace(?)' --epsilon 1", "DP107"),
        ("'gaussian(?)'", "DP107"),
        ("'gaussian(?)' --delta 1e-6", "DP107"),
        ("'renyi(?, 1)' --epsilon 1", "DP104"),
        ("'renyi(8, 0.5, unit=?)' --epsilon 1", "DP104"),
        ("'? + gaussian(1)' --epsilon 1", "DP105"),
        ("'?' --epsilon 1", "DP105"),
        ("'gaussian?' --epsilon 1", "DP105"),
        ("'gaussian(??)' --epsilon 1", "DP105"),
        ("'gaussian(?)' --epsilon 0", "DP102"),
        ("'gaussian(1)' --epsilon 1 --delta 1e-6", "DP107"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(discreet, line, code):
    done = discreet(f"account {line}")
    assert (done.code, done.err[:5]) == (2, code)
