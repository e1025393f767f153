# SPDX-License-Identifier: Apache-2.0
"""Work in a Python of its own, and work in threads."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Seconds for anything that ends, on a machine that is busy with everything else; reached only where something hangs.
PATIENCE = 600.0


def run_module(name: str, *arguments: str, timeout: float = 2 * PATIENCE) -> subprocess.CompletedProcess[str]:
    """What a module of the tests prints in a process that copies nothing of pytest; it has to end well."""
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", name, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done


def run_threads(*works: Callable[[], None]) -> None:
    """All at once, each in its thread; returns when all have ended."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
