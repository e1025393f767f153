# SPDX-License-Identifier: Apache-2.0
"""What day it is: the clock of this machine, in UTC, or that of a test (`testing.today`)."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import UTC, date, datetime

__all__ = ["fake_day", "today"]

#: The day of a test; None for the clock of the machine.
fake_day: ContextVar[date | None] = ContextVar("discreet_fake_day", default=None)


def today() -> date:
    """The day it is, in UTC."""
    return fake_day.get() or datetime.now(UTC).date()
