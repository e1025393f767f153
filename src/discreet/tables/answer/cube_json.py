# SPDX-License-Identifier: Apache-2.0
"""The answer to a question with grouping sets as JSON, and back.

**Guarantee.** Only the answer is written: the noisy whole numbers that were released, what is
computed from them, and public values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from discreet.json_types import JsonObject
from discreet.tables.answer import frames
from discreet.tables.answer.answer import Answer
from discreet.tables.answer.cube import CubeAnswer, CubeTables, is_long_answer, long_answer
from discreet.tables.answer.noisy import Noisy

__all__ = ["cube_of_dict", "cube_to_dict"]


def cube_to_dict(cube: CubeAnswer) -> JsonObject:
    """The whole answer as plain JSON types.

    The long table is left out if it has all rows of the tables that were asked for, in their order.
    """
    tables = cube.cube_tables
    is_whole = is_long_answer(cube)
    table = replace(cube, groups=(), columns={}) if is_whole else cube
    return frames.answer_to_dict(table) | {
        "discreet.answer": frames.CUBE_VERSION,
        "cube": {
            **tables.to_dict(),
            "whole": is_whole,
            "columns": {name: frames.column_to_dict(column) for name, column in tables.columns.items()},
        },
    }


def cube_of_dict(
    answer: Answer, stored: Mapping[str, Any], column_of: Callable[[dict[str, Any]], Noisy]
) -> CubeAnswer:
    """The cube whose long table is `answer`."""
    columns = {name: column_of(column) for name, column in stored["columns"].items()}
    fields = {name: getattr(answer, name) for name in Answer.__dataclass_fields__}
    cube = CubeAnswer(**fields, tables=CubeTables.from_dict(stored, columns))
    return long_answer(cube) if stored["whole"] else cube
