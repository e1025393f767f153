# SPDX-License-Identifier: Apache-2.0
"""The most memory and threads that an engine may use.

**Guarantee.** They change no number and no guarantee, only what a question takes. A limit that the
engine cannot keep is refused when the data set is opened.

What would break a limit: frames that are in memory already, and the few megabytes of a Python
process, are outside it. A question that does not fit writes to a temporary folder; if that is not
enough, it fails after its charge, like any failure of an engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from discreet import check
from discreet.errors import BadParameter

__all__ = ["ANY", "Resources"]

_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([KMGT]i?B)", re.IGNORECASE)
_UNITS = {
    f"{letter}{kind}b": base**power
    for power, letter in enumerate("kmgt", 1)
    for kind, base in (("", 1000), ("i", 1024))
}
#: Below this no question ends.
_LEAST = 64 * 1000**2
_MOST_THREADS = 1024


@dataclass(frozen=True)
class Resources:
    """The most memory, as "1GB", and threads; "" and None mean all of the machine.

    >>> Resources("1.5GiB", 2).bytes
    1610612736
    """

    memory: str = ""
    threads: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.memory, str) or (self.memory and self.bytes < _LEAST):
            raise BadParameter(
                "DP104",
                "memory must be a size of 64 MB or more, with its unit.",
                why="an engine needs that to group rows at all.",
                fix='memory="1GB"',
            )
        if self.threads is not None and check.whole(threads=self.threads) > _MOST_THREADS:
            raise BadParameter(
                "DP102",
                f"threads must be at most {_MOST_THREADS}.",
                why="each thread takes memory of its own.",
                fix="threads=2",
            )

    @property
    def bytes(self) -> int:
        """The bytes of `memory`; 0 if it is no size."""
        parts = _SIZE.fullmatch(self.memory)
        return int(float(parts[1]) * _UNITS[parts[2].lower()]) if parts else 0

    @property
    def named(self) -> list[str]:
        """The limits that are set, as they are written in a call."""
        set_limits = {"memory": f'"{self.memory}"' if self.memory else None, "threads": self.threads}
        return [f"{name}={value}" for name, value in set_limits.items() if value is not None]

    def refuse(self, what: str, why: str, fix: str) -> None:
        """Refuse the limits that are set, if there are any."""
        if self.named:
            raise BadParameter("DP107", f"{what} cannot keep {' and '.join(self.named)}.", why=why, fix=fix)


#: No limits.
ANY = Resources()
