# SPDX-License-Identifier: Apache-2.0
"""A data set that comes with the library, to try it out: Adult, of the UCI repository.

    adult = dp.open(dp.data.path("adult.toml"))

`README.md` in this folder says who made it, under which licence it is shared, and what was changed.
"""

from __future__ import annotations

from pathlib import Path

from discreet.errors import BadParameter

__all__ = ["path"]

_FOLDER = Path(__file__).parent
_FILES = ("adult.toml", "adult.parquet", "README.md")


def path(name: str) -> Path:
    """The path of a file that comes with the library.

    >>> path("adult.toml").name
    'adult.toml'
    """
    if name in _FILES:
        return _FOLDER / name
    raise BadParameter(
        "DP105",
        f"the files that come with discreet are {', '.join(_FILES)}.",
        why="no other data are shipped.",
        fix='dp.data.path("adult.toml")',
    )
