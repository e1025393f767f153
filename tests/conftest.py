# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several folders of tests share, and how hypothesis is used in all of them."""

from __future__ import annotations

from hypothesis import settings

from tests.postgres import postgres_database, postgres_dsn

__all__ = ["postgres_database", "postgres_dsn"]

# The same examples every time, however busy the machine is.
settings.register_profile("discreet", derandomize=True, deadline=None, database=None)
settings.load_profile("discreet")
