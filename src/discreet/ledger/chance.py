# SPDX-License-Identifier: Apache-2.0
"""Names that nobody else has, and pauses of uneven length. Nothing that protects anybody is drawn
here.
"""

from __future__ import annotations

import time

from discreet import check


def random_name() -> str:
    """A name that nobody else has taken: 128 random bits, in hexadecimal."""
    return check.random_bytes(16).hex()


def jitter() -> float:
    """Something between 0 and 1 that two processes hardly ever have in common; from the clock,
    which never fails.
    """
    return time.perf_counter_ns() % 1000 / 1000
