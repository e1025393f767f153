# SPDX-License-Identifier: Apache-2.0
"""The constants of every statistical test, in one place.

The tests are not seeded. Each accepts the right law, which a sound sampler fails with probability ALPHA, and
must reject the same law with a scale that is wrong by WRONG, which it fails to do with a probability far below
ALPHA at these sample sizes. A run of the whole suite makes fewer than 10,000 such decisions: a red test is a bug.
"""

from __future__ import annotations

ALPHA = 1e-9
WRONG = 0.20
MANY = 200_000  # samples where a sampler is fast
FEW = 8_000  # samples where every decision is forced through exact arithmetic
LEAST_EXPECTED = 25.0  # a cell of the chi-square test expects at least so many
