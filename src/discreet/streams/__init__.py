# SPDX-License-Identifier: Apache-2.0
"""Numbers that are published again every period, under one budget: the mathematics of streams.

    participation.py    how often one unit takes part in the whole stream           ◄ read this first
    factor.py           the integer matrix that sums are encoded with before noise is added
    decoding.py         totals, single periods and windows from noisy rows, and the errors of them
    choice.py           the factor with the least error

Public numbers only: no question, no row of data and no ε is known here. `participation.proof.md`
proves the guarantee. `Session.stream` uses it.
"""

from __future__ import annotations

from discreet.streams.choice import Prediction, best_factor, predict
from discreet.streams.factor import Factor, banded_inverse, independent, square_root
from discreet.streams.participation import Participation

__all__ = [
    "Factor",
    "Participation",
    "Prediction",
    "banded_inverse",
    "best_factor",
    "independent",
    "predict",
    "square_root",
]
