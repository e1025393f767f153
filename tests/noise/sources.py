# SPDX-License-Identifier: Apache-2.0
"""Sources for tests that choose every word."""

from __future__ import annotations

import numpy as np

from discreet.testing import SeededSource


class Replay:
    """Gives the chosen words first; the bits that refine them come from a seeded source."""

    private = False

    def __init__(self, words):
        self._words = np.asarray(words, np.uint64)
        self._later = SeededSource("refinements")
        self.refined = 0

    def words(self, count):
        given, self._words = self._words[:count], self._words[count:]
        assert given.size == count, "the test gave too few words"
        return given.copy()

    def bits(self, count):
        self.refined += 1
        return self._later.bits(count)
