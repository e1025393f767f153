# SPDX-License-Identifier: Apache-2.0
"""Which texts of a PostgreSQL database Python can read, as a pattern on their bytes in hexadecimal.

A database in another encoding than UTF-8 may hold texts that exist only there: any bytes under
SQL_ASCII, or characters of EUC_JP that Unicode lacks. One of them among the keys would make the
whole answer fail.

**Guarantee.** A text whose bytes match is decoded by Python without an error, and two different
texts stay different: every character is one code point, which is encoded to the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache

__all__ = ["readable_bytes"]

_HIGH = range(0x80, 0x100)
#: EUC_JP writes the characters of JIS X 0212 with three bytes, of which this is the first.
_THREE = 0x8F
_DIGITS = "0123456789abcdef"
_MORE = "[89ab][0-9a-f]"
#: Well-formed UTF-8 (Unicode, table 3-7), byte by byte.
_UTF8 = "|".join(
    (
        "[0-7][0-9a-f]",
        f"(?:c[2-9a-f]|d[0-9a-f]){_MORE}",
        f"e0[ab][0-9a-f]{_MORE}",
        f"e[1-9a-cef](?:{_MORE}){{2}}",
        f"ed[89][0-9a-f]{_MORE}",
        f"f0[9ab][0-9a-f](?:{_MORE}){{2}}",
        f"f[1-3](?:{_MORE}){{3}}",
        f"f48[0-9a-f](?:{_MORE}){{2}}",
    )
)


@cache
def readable_bytes(codec: str) -> str:
    """A pattern for the whole of a text that Python reads with this codec, in hexadecimal."""
    return f"(?:{_UTF8 if codec == 'utf-8' else _characters(codec)})*"


def _characters(codec: str) -> str:
    """All characters of a codec: those of one byte, then those that begin with the same bytes
    together.
    """
    alone = [byte for byte in range(1, 0x100) if _is_character(bytes([byte]), codec)]
    patterns = [_one_of(alone)]
    for first in (b"", bytes([_THREE])):
        starts: dict[frozenset[int], list[int]] = defaultdict(list)
        for start in _HIGH:
            is_single = start in alone and not first
            ends = {
                last for last in _HIGH if not is_single and _is_character(first + bytes([start, last]), codec)
            }
            starts[frozenset(ends)].append(start)
        patterns += [
            f"{first.hex()}{_one_of(start)}{_one_of(ends)}" for ends, start in starts.items() if ends
        ]
    return "|".join(patterns)


def _is_character(text: bytes, codec: str) -> bool:
    try:
        sign = text.decode(codec)
        return len(sign) == 1 and sign.encode(codec) == text
    except UnicodeError:
        return False


def _one_of(values: Iterable[int]) -> str:
    """A pattern for one byte of these, in hexadecimal."""
    lows: dict[int, list[str]] = defaultdict(list)
    for value in sorted(values):
        lows[value >> 4].append(_DIGITS[value & 15])
    highs: dict[str, list[str]] = defaultdict(list)
    for high, low in lows.items():
        highs["".join(low)].append(_DIGITS[high])
    return "(?:" + "|".join(f"[{''.join(high)}][{low}]" for low, high in highs.items()) + ")"
