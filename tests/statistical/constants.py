# SPDX-License-Identifier: Apache-2.0
"""The constants of every statistical test, in one place.

The tests are not seeded. Each accepts the right distribution, which a sound sampler fails with probability ALPHA at most, and
must reject a distribution that is wrong by WRONG or so, which it fails to do with probability ALPHA at most: `fit.py` computes
it. `scripts/chances.py` adds these up over the whole suite: a red test is a bug.
"""

from __future__ import annotations

ALPHA = 1e-9
WRONG = 0.20
MANY = 200_000  # samples where a sampler is fast
FEW = 10_000  # samples where every decision is forced through exact arithmetic
LEAST_EXPECTED = 25.0  # rare values share a cell until it expects so many
