# SPDX-License-Identifier: Apache-2.0
"""Coarse distributions: their moments are the same however many are computed at once."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import privacy
from discreet.privacy import coarse
from discreet.privacy.guarantee import alternatives


@pytest.mark.parametrize("at_once", [1, 500, 10**9])
def test_moments_do_not_depend_on_how_many_are_computed_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Those of two Gaussian mechanisms are known: K(λ) = Σ λ(λ + 1) / 2σ², and the coarse ones lie above."""
    (bag,) = alternatives(privacy.gaussian(noise=2.0) + 3 * privacy.gaussian(noise=5.0))
    found = bag.compositions[0].coarse
    tilts = np.array([0.5, 1.0, 2.0, 7.0, 20.0])
    monkeypatch.setattr(coarse, "_AT_ONCE", at_once)
    moments = found.log_moments(tilts)
    exact = tilts * (tilts + 1) / 2 * (1 / 4 + 3 / 25)
    assert (moments >= exact).all()
    assert moments == pytest.approx(exact, rel=0.2)
    one_by_one = [float(found.log_moments(np.array([tilt]))[0]) for tilt in tilts]
    assert moments == pytest.approx(one_by_one, rel=1e-12)
