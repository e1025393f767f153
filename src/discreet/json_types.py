# SPDX-License-Identifier: Apache-2.0
"""The types of plain JSON, as what writes it returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["JsonObject", "JsonValue"]

#: A value that `json.dumps` writes and `json.loads` gives back.
JsonValue: TypeAlias = bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
#: What an object of the library writes itself as: names and values.
JsonObject: TypeAlias = dict[str, JsonValue]
