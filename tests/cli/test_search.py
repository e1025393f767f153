# SPDX-License-Identifier: Apache-2.0
"""A number written as `?` is found on the safe side of the target, at its edge, and can be typed again."""

from __future__ import annotations

import pytest

from discreet import privacy

TARGET = privacy.approximate(1.0, 1e-6)
STEP = privacy.gaussian(1.0).sampled(0.01)
# the flags, the family, and a factor that crosses the edge
FAMILIES = {
    "--gaussian ? --sampled 0.01 --times 1000": (
        lambda z: 1000 * privacy.gaussian(z).sampled(0.01),
        1 - 1e-5,
    ),
    "--laplace ? --times 10": (lambda b: 10 * privacy.laplace(b), 1 - 1e-5),
    "--gaussian 1.0 --sampled ? --times 1000": (lambda q: 1000 * privacy.gaussian(1.0).sampled(q), 1 + 1e-5),
    "--concentrated ?": (privacy.concentrated, 1 + 1e-5),
    "--exponential ? --times 5": (lambda e: 5 * privacy.exponential(e), 1 + 1e-5),
    "--approximate 0.1,? --times 3": (lambda d: 3 * privacy.approximate(0.1, d), 1 + 1e-4),
}


@pytest.mark.parametrize("flags", FAMILIES)
def test_the_number_found_is_at_the_edge_and_safe(discreet, flags):
    family, beyond = FAMILIES[flags]
    found = discreet(
        f"account {flags.replace('?', chr(39) + '?' + chr(39))} --for-epsilon 1 --delta 1e-6 --json"
    )
    value = found.object["calibrated"]["value"]
    assert value == float(f"{value:.6e}"), "seven digits can be typed"
    assert family(value).implies(TARGET)
    assert not family(value * beyond).implies(TARGET)
    assert found.object["epsilon"] == family(value).epsilon(delta=1e-6)


def test_the_most_runs(discreet):
    found = discreet("account --gaussian 1.0 --sampled 0.01 --times '?' --for-epsilon 1 --json").object
    most = found["calibrated"]["value"]
    assert found["calibrated"] == {"flag": "--times", "parameter": "K", "value": most}
    assert (most * STEP).implies(TARGET)
    assert not ((most + 1) * STEP).implies(TARGET)


def test_a_round_number_is_found_as_such(discreet):
    assert (
        "the greatest --pure is 0.1, for ε = 1 at δ = 0"
        in discreet("account --pure '?' --times 10 --for-epsilon 1 --delta 0").words
    )
    assert (
        "the least --laplace is 1, for" in discreet("account --laplace '?' --for-epsilon 1 --delta 0").words
    )


def test_the_line_to_check_keeps_the_target(discreet):
    words = discreet("account --gaussian '?' --times 3 --relation replace --for-epsilon 1 --delta 1e-9").words
    line = words.partition("to check discreet ")[2].partition(" protects ")[0]
    assert "--relation replace" in line
    again = discreet(f"{line} --json").object
    assert again["epsilon"] <= 1.0
    assert again["delta"] == 1e-9
