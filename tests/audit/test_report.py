# SPDX-License-Identifier: Apache-2.0
"""A report draws itself, and the façade finds the auditor whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import discreet as dp
from discreet import privacy
from tests.chance import no_chance


def _numbers(data, count):
    return np.asarray(dp.Laplace(scale=2.0, sensitivity=1).draw_many(data, count))


@pytest.mark.parametrize("claim", [None, privacy.pure(0.5)])
def test_a_report_draws_the_claim_and_the_band(claim) -> None:
    report = dp.audit.audit(dp.audit.batched(_numbers), 0, 1, trials=4_000, claim=claim)
    figure = report.plot()
    (axes,) = figure.axes
    assert len(axes.collections) == 1  # the band
    assert len(axes.lines) == (1 if claim is None else 2)  # the diagonal, and the claim
    low = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert low.max() <= 1
    assert "certified to measured" in dp.plot.alt_text(figure)


@no_chance("what is audited has no noise")
@pytest.mark.parametrize("first", ["import discreet.audit", "import discreet.audit as a", ""])
def test_the_facade_has_the_auditor(first) -> None:
    program = f"{first}\nimport discreet as dp\nprint(dp.audit(lambda x: x, 0, 1, trials=2000).epsilon_at_least() > 1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
