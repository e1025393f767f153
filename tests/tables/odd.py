# SPDX-License-Identifier: Apache-2.0
"""Arrow columns whose cells are the extremes of their types, or no values of them at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

WIDE = 2**63
#: No text, or hardly any: not UTF-8 in all the ways there are, NUL, an empty one, a very long one.
BYTES = [
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"a\x00b",
    b"\x00",
    b"",
    b"x" * 100_000,
    b"\xef\xbb\xbfa",
    b"\xef\xbf\xbf",
    None,
]
_FLOATS = [b"\x01" + b"\x00" * 7, b"\xff" * 8, b"\x01\x00\x00\x00\x00\x00\xf0\x7f", b"\x00" * 7 + b"\x80"]


def text(kind, cells=BYTES):
    """Bytes under the name of a text type, which nobody has looked at."""
    alike = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    raw = pa.array(cells, alike.get(kind, pa.binary_view()))
    return pa.Array.from_buffers(kind, len(raw), raw.buffers())


def numbers(kind, cells):
    """Whole numbers under the name of a type of the same width."""
    return pa.array(cells, {32: pa.int32(), 64: pa.int64()}[kind.bit_width]).view(kind)


def decimals(kind, cells):
    width = kind.bit_width // 8
    raw = b"".join(cell.to_bytes(width, "little", signed=True) for cell in cells)
    return pa.Array.from_buffers(kind, len(cells), [None, pa.py_buffer(raw)])


def floats(kind):
    size = kind.bit_width // 8
    cells = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        1.5,
        float(np.finfo(f"f{size}").max),
        float(np.finfo(f"f{size}").tiny),
    ]
    plain = np.array(cells, f"f{size}").tobytes()
    payloads = b"".join(cell[:size] if cell[0] else cell[-size:] for cell in _FLOATS)
    return pa.Array.from_buffers(kind, len(cells) + len(_FLOATS), [None, pa.py_buffer(plain + payloads)])


def columns():
    """Odd columns by name; each has its own number of cells."""
    found = {}
    for bits in (8, 16, 32, 64):
        found[f"int{bits}"] = pa.array([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, None], f"int{bits}")
        found[f"uint{bits}"] = pa.array([2**bits - 1, 0, 1, None], f"uint{bits}")
    for kind in (pa.float16(), pa.float32(), pa.float64()):
        found[str(kind)] = floats(kind)
    for digits, scale in ((4, 2), (18, 0), (18, 18), (38, 0), (38, 18), (38, 38)):
        ends = [0, 1, -1, 10**digits - 1, 1 - 10**digits]
        beyond = [10**digits, -(10**digits), 2**127 - 1, -(2**127)]
        found[f"decimal_{digits}_{scale}"] = decimals(pa.decimal128(digits, scale), ends + beyond)
    found["decimal256"] = decimals(pa.decimal256(70, 2), [0, 10**70, -(2**255)])
    found["date32"] = numbers(pa.date32(), [-(2**31), 2**31 - 1, 1 - 2**31, -1, 0, None, 2932896, 2932897])
    found["date64"] = numbers(pa.date64(), [-WIDE, WIDE - 1, -1, 0, None, 10**15])
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "Asia/Kolkata"):
            cells = [-WIDE, WIDE - 1, 1 - WIDE, 10**16, -(10**16), -1, 0, None]
            found[f"at_{unit}_{'zoned' if zone else 'plain'}"] = numbers(pa.timestamp(unit, zone), cells)
        found[f"for_{unit}"] = numbers(pa.duration(unit), [-WIDE, WIDE - 1, 0])
    for unit, kind in (("s", pa.time32), ("ms", pa.time32), ("us", pa.time64), ("ns", pa.time64)):
        width = 31 if kind is pa.time32 else 63
        found[f"time_{unit}"] = numbers(kind(unit), [-(2**width), 2**width - 1, 0])
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        found[str(kind)] = text(kind)
    places = pa.array([*range(len(BYTES) - 1), None], pa.int8())
    found["dictionary"] = pa.DictionaryArray.from_arrays(places, text(pa.string(), BYTES[:-1]))
    found["nothing"] = pa.DictionaryArray.from_arrays(places, text(pa.string()))
    found["moments"] = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None], pa.uint16()), numbers(pa.timestamp("ms"), [10**16, 0])
    )
    found["boolean"] = pa.array([True, False, None])
    found["null"] = pa.nulls(2)
    found["bytes"] = pa.array(BYTES, pa.binary())
    found["fixed"] = pa.array([b"\xff" * 3, None], pa.binary(3))
    found["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\xff" * 16, None], pa.binary(16)))
    found["list"] = pa.ListArray.from_arrays([0, 1, 2], text(pa.string(), [b"\xff", b"a"]))
    found["struct"] = pa.StructArray.from_arrays([text(pa.string(), [b"\xff", b"a"])], ["x"])
    return found


def cell(column, place):
    """One cell as a column; another type's cells are not looked at."""
    return column.slice(place % len(column), 1)
