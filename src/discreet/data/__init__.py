# SPDX-License-Identifier: Apache-2.0
"""Data that come with the library, to try it out: the Adult data set of the UCI repository.

    data = dp.open(discreet.data.path("adult.toml"))

`README.md` in this folder says who made it, under which licence it is shared, and what was changed.
"""

from __future__ import annotations

from pathlib import Path

from discreet.errors import BadParameter

__all__ = ["path"]

_FOLDER = Path(__file__).parent
_FILES = ("adult.toml", "adult.parquet", "README.md")


def path(name: str) -> Path:
    """Where a file of this folder lies.

    >>> path("adult.toml").name
    'adult.toml'
    """
    if name in _FILES:
        return _FOLDER / name
    raise BadParameter(
        "DP105",
        f"the files that come with discreet are {', '.join(_FILES)}.",
        why="no other data are shipped.",
        fix='discreet.data.path("adult.toml")',
    )
