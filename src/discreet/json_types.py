# SPDX-License-Identifier: Apache-2.0
"""The types of plain JSON: of what is written, and of what was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["JsonFacts", "JsonObject", "JsonValue"]

#: A value that `json.dumps` writes and `json.loads` gives back.
JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
#: What an object of the library writes itself as: names and values.
JsonObject: TypeAlias = dict[str, JsonValue]
#: Names and values that were read. Their types are not known; whoever uses a value checks it.
JsonFacts: TypeAlias = Mapping[str, Any]
