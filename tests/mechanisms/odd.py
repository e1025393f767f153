# SPDX-License-Identifier: Apache-2.0
"""Records that are extreme, invalid or rude: whatever reads records must read these, one among others."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

SECRET = "the secret of one record"


class Stop(KeyboardInterrupt):
    """What a record may raise, and no user pressed."""


ERRORS = (RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit, Stop, MemoryError)


def rude(error: type[BaseException]) -> Any:
    """A record of which every method raises."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise error(SECRET)

    names = [
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "hash",
        "repr",
        "str",
        "bool",
        "float",
        "int",
        "index",
        "complex",
        "len",
        "iter",
        "getitem",
        "contains",
        "call",
        "array",
    ]
    names += [
        "add",
        "radd",
        "sub",
        "rsub",
        "mul",
        "rmul",
        "truediv",
        "rtruediv",
        "neg",
        "abs",
        "round",
        "floor",
        "ceil",
        "trunc",
        "format",
        "bytes",
    ]
    return type(f"Rude{error.__name__}", (), {f"__{name}__": refuse for name in names})()


class LyingNumber(float):
    """A float that refuses to be one."""

    def __float__(self) -> float:
        raise SystemExit(SECRET)

    def __eq__(self, other: object) -> bool:
        raise SystemExit(SECRET)

    __lt__ = __le__ = __gt__ = __ge__ = __eq__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def as_integer_ratio(self) -> tuple[int, int]:
        raise SystemExit(SECRET)


class LyingText(str):
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise SystemExit(SECRET)

    def __hash__(self) -> int:
        raise SystemExit(SECRET)


class LyingRow(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        raise SystemExit(SECRET)

    def __iter__(self) -> Any:
        raise SystemExit(SECRET)


def endless() -> list[Any]:
    """A list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


ODD: dict[str, Any] = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "minus zero": -0.0,
    "subnormal": 5e-324,
    "largest float": 1.7976931348623157e308,
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,
    "2**63": 2**63,
    "2**64": 2**64,
    "-2**63": -(2**63),
    "none": None,
    "true": True,
    "false": False,
    "complex": 1j,
    "empty text": "",
    "text": "x",
    "numeral": "7",
    "surrogate": "\udc80",
    "nul": "\x00",
    "bytes": b"\xff\xfe",
    "bytearray": bytearray(b"x"),
    "memoryview": memoryview(b"x"),
    "decimal": Decimal("1.10"),
    "huge decimal": Decimal("1e99999"),
    "tiny decimal": Decimal("1e-99999"),
    "decimal nan": Decimal("NaN"),
    "decimal snan": Decimal("sNaN"),
    "decimal infinity": Decimal("-Infinity"),
    "fraction": Fraction(10**400, 3),
    "first datetime": datetime.min,  # noqa: DTZ901 - naive on purpose
    "last datetime": datetime.max.replace(tzinfo=UTC),
    "date": date.max,
    "time": time(3, tzinfo=UTC),
    "timedelta": timedelta.max,
    "list": [1, 2],
    "nested list": [[1], [2, 3]],
    "endless list": endless(),
    "dict": {"a": 1},
    "set": {1},
    "tuple": (1, 2, 3),
    "empty tuple": (),
    "object": object(),
    "type": int,
    "function": len,
    "ellipsis": ...,
    "array": np.arange(3.0),
    "empty array": np.zeros(0),
    "table": np.zeros((2, 2)),
    "array of one": np.array([7.0]),
    "number as an array": np.array(7.0),
    "float16": np.float16("inf"),
    "float32": np.float32("nan"),
    "longdouble": np.longdouble("1e4000"),
    "int8": np.int8(-128),
    "uint64": np.uint64(2**64 - 1),
    "numpy bool": np.True_,
    "numpy complex": np.complex64(1j),
    "numpy text": np.str_("\udc80"),
    "numpy bytes": np.bytes_(b"\xff"),
    "nat": np.datetime64("NaT"),
    "far moment": np.datetime64(2**62, "ns"),
    "year": np.datetime64(200_000, "Y"),
    "span": np.timedelta64(2**62, "ns"),
    "void": np.zeros(1, "i4,f8")[0],
    "masked": np.ma.masked,
    "lying number": LyingNumber(3.0),
    "lying text": LyingText("x"),
    "lying row": LyingRow([1, 2]),
    **{f"rude {error.__name__}": rude(error) for error in ERRORS},
}
