# SPDX-License-Identifier: Apache-2.0
"""Places for ledgers: a file, and a database on a server."""

from __future__ import annotations

import pytest

from discreet.ledger import Ledger, Limit
from tests.postgres import schema


def spend(limit, *guarantees, state=None):
    """The state of a limit that has admitted them in this order."""
    state = limit.start() if state is None else state
    for guarantee in guarantees:
        state = limit.admit(state, limit.cost(guarantee))
    return state


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A place where there is no ledger yet."""
    if request.param == "sqlite":
        return str(tmp_path / "a.ledger")
    return schema(request.getfixturevalue("postgres_dsn"))


@pytest.fixture
def closed_ledger(where):
    """The place of one with a limit of 1, which is closed."""
    Ledger(where, limit=Limit.filter(epsilon=1)).close()
    return where


@pytest.fixture
def ledger(where):
    """An open one, with a limit of 1."""
    with Ledger(where, limit=Limit.filter(epsilon=1)) as opened:
        yield opened
