# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the tests of tables."""

from __future__ import annotations

from tests.tables.conftest import spark_session

__all__ = ["spark_session"]
