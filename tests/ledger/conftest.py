# SPDX-License-Identifier: Apache-2.0
"""Places for ledgers: a file, and a database on a server."""

from __future__ import annotations

import pytest

from tests.postgres import schema


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    """A place where there is no ledger yet."""
    if request.param == "sqlite":
        return str(tmp_path / "a.ledger")
    return schema(request.getfixturevalue("postgres_dsn"))
