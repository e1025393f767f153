# SPDX-License-Identifier: Apache-2.0
"""The API under /v1, in JSON. Nothing here touches a session, a ledger's charge or an engine."""

from __future__ import annotations

__all__ = ["API_VERSION"]

#: The version of the API: fields are only added to it.
API_VERSION = "1"
