# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several folders of tests share."""

from __future__ import annotations

from tests.postgres import postgres_database, postgres_dsn

__all__ = ["postgres_database", "postgres_dsn"]
