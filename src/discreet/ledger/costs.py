# SPDX-License-Identifier: Apache-2.0
"""Exact running totals: what has been spent in each track, and what one more answer would add.

**Guarantee.** Totals are exact ratios of whole numbers. What is a ratio is added as it is (ten
times 0.1 is 1), what is not is rounded up to a multiple of 2^-80 before it is added; so nothing
that costs something is ever free, in whatever order it comes. What has no end in a track is
`math.inf`, and stays so.

>>> from discreet.exact import exactly
>>> spent = State({"epsilon": Fraction(9, 10)})
>>> spent.plus(Amounts({"epsilon": exactly(0.1)}))
State({'epsilon': '1'})
"""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Self

from discreet.errors import BadDescription
from discreet.json_types import JsonFacts, JsonObject

#: A parameter that somebody writes: a number, or an exact ratio.
Number = float | Fraction
#: An exact amount, or `math.inf`.
Amount = Fraction | float

#: Irrational amounts are multiples of this; those from closed forms in doubles are raised by
#: `_ULPS` before.
GRID = Fraction(1, 1 << 80)
_ULPS = Fraction(1, 1 << 46)
#: A total whose denominator has more bits than this is rounded up, to a multiple of `_FINE`.
DENOMINATOR_BITS = 512
_FINE = Fraction(1, 1 << 128)


def above(value: float, condition: float = 1.0) -> Amount:
    """An amount that is not below what a closed form computed; `condition` says how badly its terms
    cancel.

    It is never zero: what underflowed to nothing still costs one step of the grid.
    """
    if math.isinf(value):
        return math.inf
    return max(GRID, ceiling(Fraction(value) * (1 + _ULPS * math.ceil(condition)), GRID))


def ceiling(value: Fraction, step: Fraction) -> Fraction:
    """The least multiple of the step that is not below the value."""
    return math.ceil(value / step) * step


def floor(value: Fraction, step: Fraction) -> Fraction:
    """The greatest multiple of the step that is not above the value."""
    return math.floor(value / step) * step


def near_float(amount: Amount) -> float:
    """A float near it: infinity for what is beyond all of them, and never zero for what is not."""
    if isinstance(amount, float):
        return amount
    over, under = amount.as_integer_ratio()
    try:
        return over / under or (5e-324 if over else 0.0)
    except OverflowError:
        return math.inf


class Amounts(Mapping[str, Amount]):
    """An amount for each of some names; never changed, equal by value."""

    __slots__ = ("_of", "_parts")

    def __init__(self, of: Mapping[str, Amount], parts: Mapping[str, Self] | None = None) -> None:
        self._of = dict(of)
        #: What `under` gives, by prefix, as far as it is known.
        self._parts: dict[str, Self] = {} if parts is None else dict(parts)

    def __getitem__(self, name: str) -> Amount:
        return self._of[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __eq__(self, other: object) -> bool:
        return self._of == other._of if isinstance(other, Amounts) else super().__eq__(other)

    # As fast as the dictionary inside: a long ledger is checked by a million of these.

    def __contains__(self, name: object) -> bool:
        return name in self._of

    def keys(self) -> KeysView[str]:
        return self._of.keys()

    def items(self) -> ItemsView[str, Amount]:
        return self._of.items()

    def __hash__(self) -> int:
        return hash(frozenset(self._of.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()})"

    def plus(self, other: Mapping[str, Amount]) -> Self:
        """The sum, name by name."""
        total = dict(self._of)
        for name, more in other.items():
            spent = total.get(name)
            # what has no end stays so
            if not (isinstance(spent, float) and spent == math.inf):
                try:
                    # a sum with nothing is what there is: most answers leave the δ account alone
                    total[name] = _limit_denominator(
                        more if spent is None else spent + more if more else spent
                    )
                except OverflowError:  # of infinity and a fraction that is no float
                    total[name] = math.inf
        return type(self)(total)

    def times(self, count: int) -> Self:
        """Every amount that many times."""
        return type(self)({name: _limit_denominator(count * of) for name, of in self.items()})

    def under(self, prefix: str) -> Self:
        """The amounts whose names begin with the prefix, without it."""
        part = self._parts.get(prefix)
        if part is None:
            part = self._parts[prefix] = type(self)(
                {name.removeprefix(prefix): of for name, of in self.items() if name.startswith(prefix)}
            )
        return part

    def replace_under(self, prefix: str, inner: Mapping[str, Amount]) -> Self:
        """The same with the amounts under the prefix replaced."""
        before = dict(self.under(prefix).items())
        after = inner if isinstance(inner, type(self)) else type(self)(inner)
        others = self._of
        if before.keys() != after.keys():
            others = {name: of for name, of in self.items() if not name.startswith(prefix)}
        changed = {prefix + name: of for name, of in after.items() if of is not before.get(name)}
        parts = {
            name: part
            for name, part in self._parts.items()
            if not name.startswith(prefix) and not prefix.startswith(name)
        }
        return type(self)(others | changed, parts | {prefix: after})

    def is_stated(self, texts: JsonFacts, before: Self, before_texts: JsonFacts) -> bool:
        """Whether the texts are those of the amounts; what is as before has the text that it had."""
        former = before._of
        if self._of.keys() != texts.keys():
            return False
        for name, amount in self._of.items():
            unchanged = name in before_texts and amount is former.get(name)
            if texts[name] != (before_texts[name] if unchanged else str(amount)):
                return False
        return True

    def to_dict(self) -> dict[str, str]:
        """Each amount as "p/q", "p" or "inf"."""
        return {name: str(of) for name, of in self.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> Self:
        """What `to_dict` wrote; anything else is refused."""
        try:
            return cls({str(name): read_amount(text) for name, text in data.items()})
        except (ValueError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise unreadable_error("amounts") from error


class State(Amounts):
    """What has been spent so far, track by track.

    **Guarantee.** Amounts are exact fractions, and no admitted charge lowers any of them.
    """

    __slots__ = ()


@dataclass(frozen=True)
class CostRow:
    """One way to pay: which theorem embeds the mechanism, and the amounts that it adds."""

    name: str
    amounts: Amounts

    def to_dict(self) -> JsonObject:
        """As JSON."""
        return {"row": self.name, "amounts": self.amounts.to_dict()}


class Menu:
    """Rows of which one is paid. It remembers which of them led last, to find the best row faster."""

    __slots__ = ("floats", "leads", "rows")

    def __init__(self, rows: Sequence[CostRow], names: Sequence[str]) -> None:
        self.rows = rows
        #: The amounts of each row as nearby floats, in the order of the names.
        self.floats = [tuple(near_float(row.amounts[name]) for name in names) for row in rows]
        #: The last lead under each budget, which its totals as floats tell apart.
        self.leads: dict[tuple[float, ...], Lead] = {}


class Lead(NamedTuple):
    """The best row of a menu under a budget, and how long it stays the best.

    `spent` holds the fractions of the totals that were spent when it was found. It is still the
    best row while none of them has grown by more than `reach`.
    """

    row: CostRow
    spent: Sequence[float]
    reach: float

    def holds(self, spent: Sequence[float]) -> bool:
        """Whether the row is still the best, now that these fractions of the totals are spent."""
        for before, after in zip(self.spent, spent, strict=True):
            if before != after and not 0 <= after - before <= self.reach:
                return False
        return True


class Repetition(NamedTuple):
    """How a limit pays a cost that it has just admitted, if it is charged again and again.

    **Guarantee.** Take any state with the names and at least the amounts of the state for which
    this was made, in which no amount is above that in `until`, and any time before `ends`. There
    the limit admits the cost, for the same asker, and adds `added` and nothing else.
    """

    added: Mapping[str, Amount]
    until: Mapping[str, Amount]
    ends: datetime | None = None

    @classmethod
    def join(cls, parts: Mapping[str, Repetition | None], ends: datetime | None = None) -> Repetition | None:
        """Several charges at once, each to the amounts under its prefix; None if one of them is
        None.
        """
        added: dict[str, Amount] = {}
        until: dict[str, Amount] = {}
        for prefix, part in parts.items():
            if part is None:
                return None
            added |= {prefix + name: amount for name, amount in part.added.items()}
            until |= {prefix + name: amount for name, amount in part.until.items()}
        return cls(added, until, ends)


@dataclass(frozen=True)
class Cost:
    """What an answer would cost: a menu of ways to pay, each a list of rows; and the same for the
    lifetime, if kept.

    A filter's way is one row. A plan's way is one row for each mechanism, listing the slots that it
    would fit.

    **Guarantee.** Each way bounds the mechanism by the theorem that its rows name, rounded up. It
    depends on the guarantee alone, never on data.
    """

    ways: tuple[tuple[CostRow, ...], ...]
    lifetime: Cost | None = None

    @cached_property
    def rows(self) -> tuple[CostRow, ...]:
        """The first row of every way."""
        return tuple(way[0] for way in self.ways)

    @cached_property
    def without_lifetime(self) -> Cost:
        """The same without the cost for the lifetime."""
        return Cost(self.ways)

    @cached_property
    def menus(self) -> dict[tuple[str, ...], tuple[Menu, Menu]]:
        """The first rows as filters have split them, by the names of what a filter counts."""
        return {}

    @cached_property
    def rows_by_names(self) -> dict[frozenset[str], tuple[CostRow, ...]]:
        """The first rows, by the names of what they count."""
        rows: dict[frozenset[str], tuple[CostRow, ...]] = {}
        for row in self.rows:
            names = frozenset(row.amounts)
            rows[names] = (*rows.get(names, ()), row)
        return rows

    def times(self, count: int) -> Cost:
        """The cost of that many such answers, all paid in the same way."""
        ways = tuple(tuple(CostRow(row.name, row.amounts.times(count)) for row in way) for way in self.ways)
        return Cost(ways, self.lifetime.times(count) if self.lifetime else None)

    def to_dict(self) -> JsonObject:
        """As JSON."""
        ways = [[row.to_dict() for row in way] for way in self.ways]
        return {"ways": ways} | ({"lifetime": self.lifetime.to_dict()} if self.lifetime else {})

    @classmethod
    def from_dict(cls, data: JsonFacts) -> Cost:
        """What `to_dict` wrote; anything else is refused."""
        try:
            ways = tuple(
                tuple(CostRow(str(row["row"]), Amounts.from_dict(row["amounts"])) for row in way)
                for way in data["ways"]
            )
            inner = data.get("lifetime")
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable_error("a cost") from error
        return cls(ways, cls.from_dict(inner) if inner is not None else None)


def menu(rows: list[CostRow]) -> Cost:
    """A cost that may be paid by any one of the rows."""
    return Cost(tuple((row,) for row in rows))


def read_amount(text: str) -> Amount:
    """One amount from its text."""
    if text == "inf":
        return math.inf
    value = Fraction(text)
    if not isinstance(text, str) or value < 0:
        raise ValueError(text)
    return value


def unreadable_error(what: str) -> BadDescription:
    """The error for a stored text that is not what was written."""
    return BadDescription(
        "DP401",
        f"this is not a description of {what}.",
        why="a damaged description must not turn into some other promise.",
        fix="pass what to_dict() returned, unchanged.",
    )


def _limit_denominator(total: Amount) -> Amount:
    """A total with a denominator of bearable size, rounded up if need be."""
    if isinstance(total, Fraction) and total.denominator.bit_length() > DENOMINATOR_BITS:
        return ceiling(total, _FINE)
    return total
