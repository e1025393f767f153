# SPDX-License-Identifier: Apache-2.0
"""A fork waits for whoever is busy, and longer each time, so that it is not kept waiting for ever."""

from __future__ import annotations

import os
import threading

import pytest

from discreet import forks


class Busy:
    """Something that is hardly ever free: whoever holds it holds it longer than a fork waits at first."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.slept = 0

    def sleep(self) -> None:
        self.slept += 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_longer_where_it_waited_in_vain(monkeypatch):
    waited = []

    class Lock:
        """Is free for whoever waits half a second for it."""

        def acquire(self, timeout=-1):
            waited.append(timeout)
            return timeout > 0.5

        def release(self):
            pass

    busy = Busy()
    busy.lock = Lock()
    monkeypatch.setattr(forks, "_all", {busy})
    monkeypatch.setattr(forks.time, "sleep", lambda _: None)
    forks._before_fork()
    forks._after_fork()
    assert waited == sorted(set(waited))
    assert waited[0] < 0.1
    assert waited[-1] > 0.5
    assert busy.slept == 1
