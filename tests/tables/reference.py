# SPDX-License-Identifier: Apache-2.0
"""The meaning of expressions and plans: an interpreter on lists of rows, exact and as simple as it can be.

    tables      {"visits": [{"patient": 1, "days": 2.5}, …], …}
    units       {"visits": "patient"}, or ROW where every row is a unit of its own

Every engine is compared with this; nothing here is shared with them but the classes that are interpreted.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import singledispatch
from typing import Any

from discreet.tables.algebra import expr as e
from discreet.tables.algebra import strings
from discreet.tables.algebra import sums as p
from discreet.tables.algebra.curves import RealFunction
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER

NUMERAL = re.compile(r"[+-]?[0-9]{1,18}([.][0-9]{1,18})?")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[tuple[str, str], Any]


# --- expressions -----------------------------------------------------------------------------------


@singledispatch
def value(expr: e.Expr, row: Row) -> Any:
    raise TypeError(type(expr))


@value.register
def _(expr: e.Read, row: Row) -> Any:
    # a row without a match has no columns of the other table
    raw, kind = row.get((expr.table, expr.column)), expr.of
    if raw is None or kind.kind not in {NUMBER, DATE, MOMENT}:
        return raw
    if kind.kind == DATE:
        return clamp((raw - date(1970, 1, 1)).days, kind.low, kind.high)
    if kind.kind == MOMENT:
        aware = raw if raw.tzinfo else raw.replace(tzinfo=UTC)
        return clamp((aware - EPOCH) // timedelta(microseconds=1), kind.low, kind.high)
    number = exactly(raw)
    if number is None or number in {math.inf, -math.inf}:
        return {None: None, math.inf: kind.high, -math.inf: kind.low}[number]
    return clamp(math.floor(number * 2**kind.places), kind.low, kind.high)


def exactly(raw: Any) -> Any:
    """A number, ±∞, or None for what is no number."""
    if isinstance(raw, str):
        return Fraction(raw) if NUMERAL.fullmatch(raw) else None
    if isinstance(raw, float | Decimal) and not math.isfinite(raw):
        return None if math.isnan(raw) else math.inf if raw > 0 else -math.inf
    return Fraction(raw)


def clamp(number: int, low: int, high: int) -> int:
    return min(max(number, low), high)


@value.register
def _(expr: e.Constant, row: Row) -> Any:
    return expr.value


@value.register
def _(expr: e.Scaled, row: Row) -> Any:
    inner = value(expr.of, row)
    return None if inner is None else inner * 2 ** (expr.places - expr.of.type.places)


@value.register
def _(expr: e.Arithmetic, row: Row) -> Any:
    left, right = value(expr.left, row), value(expr.right, row)
    if left is None or right is None:
        return None
    return {"+": left + right, "-": left - right, "*": left * right}[expr.op]


@value.register
def _(expr: e.Quotient, row: Row) -> Any:
    left, right = value(expr.left, row), value(expr.right, row)
    if left is None or right is None or right == 0:
        return None
    real = Fraction(left, 2**expr.left.type.places) / Fraction(right, 2**expr.right.type.places)
    return math.floor(real * 2**expr.places)


@value.register
def _(expr: e.Modulo, row: Row) -> Any:
    left = value(expr.left, row)
    return None if left is None else left % expr.divisor


@value.register
def _(expr: e.Extreme, row: Row) -> Any:
    items = [value(item, row) for item in expr.items]
    return None if None in items else (min if expr.op == "least" else max)(items)


@value.register
def _(expr: e.Clamp, row: Row) -> Any:
    inner = value(expr.of, row)
    return None if inner is None else clamp(inner, expr.low, expr.high)


@value.register
def _(expr: e.Compare, row: Row) -> Any:
    a, b = value(expr.left, row), value(expr.right, row)
    if a is None or b is None:
        return None
    if expr.op in {"=", "<>"}:
        return (a == b) == (expr.op == "=")
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[expr.op]


@value.register
def _(expr: e.IsIn, row: Row) -> Any:
    inner = value(expr.of, row)
    return None if inner is None else inner in expr.values


@value.register
def _(expr: e.Like, row: Row) -> Any:
    inner = value(expr.of, row)
    parts = [{"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in expr.pattern]
    return None if inner is None else re.fullmatch("".join(parts), inner, re.DOTALL) is not None


@value.register
def _(expr: e.IsNull, row: Row) -> Any:
    return value(expr.of, row) is None


@value.register
def _(expr: e.Logic, row: Row) -> Any:
    items = [value(item, row) for item in expr.items]
    decided = expr.op == "or"
    return decided if decided in items else None if None in items else not decided


@value.register
def _(expr: e.Not, row: Row) -> Any:
    inner = value(expr.of, row)
    return None if inner is None else not inner


@value.register
def _(expr: e.Case, row: Row) -> Any:
    for when, then in expr.whens:
        if value(when, row) is True:
            return value(then, row)
    return value(expr.otherwise, row)


@value.register
def _(expr: e.Coalesce, row: Row) -> Any:
    return next((found for item in expr.items if (found := value(item, row)) is not None), None)


@value.register
def _(expr: e.DatePart, row: Row) -> Any:
    cells = value(expr.of, row)
    if cells is None:
        return None
    moment = moment_of(cells, expr.of.type.kind)
    iso = moment.isocalendar()
    special = {
        "isodow": iso.weekday,
        "week": iso.week,
        "isoyear": iso.year,
        "doy": moment.timetuple().tm_yday,
        "quarter": (moment.month + 2) // 3,
    }
    return special[expr.part] if expr.part in special else getattr(moment, expr.part)


def moment_of(cells: int, kind: str) -> datetime:
    return EPOCH + (timedelta(days=cells) if kind == DATE else timedelta(microseconds=cells))


@value.register
def _(expr: e.AsDate, row: Row) -> Any:
    cells = value(expr.of, row)
    return None if cells is None else (moment_of(cells, MOMENT).date() - EPOCH.date()).days


@value.register
def _(expr: e.AsMoment, row: Row) -> Any:
    cells = value(expr.of, row)
    return None if cells is None else cells * 86_400_000_000


@value.register
def _(expr: e.Truncated, row: Row) -> Any:
    cells = value(expr.of, row)
    if cells is None:
        return None
    at = moment_of(cells, expr.of.type.kind)
    if expr.part in {"hour", "minute", "second"}:
        zeros = {"hour": ("minute", "second"), "minute": ("second",), "second": ()}[expr.part]
        return (at.replace(microsecond=0, **dict.fromkeys(zeros, 0)) - EPOCH) // timedelta(microseconds=1)
    first = {
        "year": at.replace(month=1, day=1),
        "quarter": at.replace(month=(at.month - 1) // 3 * 3 + 1, day=1),
        "month": at.replace(day=1),
        "week": None,
        "day": at,
    }[expr.part]
    number = (at.date() - EPOCH.date()).days
    return number - at.weekday() if first is None else (first.date() - EPOCH.date()).days


@value.register
def _(expr: e.Shifted, row: Row) -> Any:
    cells = value(expr.of, row)
    return None if cells is None else cells + expr.cells


@value.register
def _(expr: e.Steps, row: Row) -> Any:
    cells = value(expr.of, row)
    return None if cells is None else cells + expr.values[sum(edge <= cells for edge in expr.edges)]


@value.register
def _(expr: e.Bucket, row: Row) -> Any:
    inner = value(expr.of, row)
    return None if inner is None else sum(edge <= inner for edge in expr.edges)


@value.register
def _(expr: e.Root, row: Row) -> Any:
    inner = value(expr.of, row)
    if inner is None or inner < 0:
        return None
    return math.isqrt(inner * 4**expr.places // 2**expr.of.type.places)


@value.register
def _(expr: RealFunction, row: Row) -> Any:
    """In 60 digits, so that the last digits of a double cannot decide."""
    inner = value(expr.of, row)
    if inner is None:
        return None
    with localcontext() as context:
        context.prec = 60
        x = Decimal(inner) / Decimal(2**expr.of.type.places)
        exact = {"ln": x.ln, "exp": x.exp, "power": lambda: x ** Decimal(expr.exponent)}[expr.function]()
        return math.floor(exact * Decimal(expr.scale) + Decimal(expr.nudge))


@value.register
def _(expr: strings.Joined, row: Row) -> Any:
    items = [value(item, row) for item in expr.items]
    return None if None in items else "".join(items)


@value.register
def _(expr: strings.Cased, row: Row) -> Any:
    text = value(expr.of, row)
    change = str.upper if expr.case == "upper" else str.lower
    return None if text is None else "".join(change(sign) if sign.isascii() else sign for sign in text)


@value.register
def _(expr: strings.Trimmed, row: Row) -> Any:
    text = value(expr.of, row)
    return None if text is None else re.sub(r"\A *(.*?) *\Z", r"\1", text, flags=re.DOTALL)


@value.register
def _(expr: strings.Substring, row: Row) -> Any:
    text = value(expr.of, row)
    return None if text is None else "".join(list(text)[expr.start - 1 :][: expr.length])


@value.register
def _(expr: strings.Length, row: Row) -> Any:
    text = value(expr.of, row)
    return None if text is None else sum(1 for _ in text)


# --- relations -------------------------------------------------------------------------------------


class Reference:
    """An engine in a few lines of Python."""

    name = "reference"

    def __init__(self, tables: dict[str, list[dict[str, Any]]], units: dict[str, str]) -> None:
        self.tables, self.units = tables, units

    def rows(self, rows: p.Relation) -> list[tuple[Any, Row]]:
        """Pairs of a unit and its row."""
        match rows:
            case p.Private():
                return self._private(rows)
            case p.Filtered():
                return [
                    (unit, row) for unit, row in self.rows(rows.rows) if value(rows.condition, row) is True
                ]
            case p.Lookup():
                public = [spread(rows.label, row) for row in self.tables[rows.table]]
                return [
                    pair for unit, row in self.rows(rows.rows) for pair in matched(unit, row, public, rows)
                ]
            case p.Stacked():
                return [
                    (
                        unit,
                        {
                            (rows.name, name): raw(of, row)
                            for name, of in zip(rows.columns, exprs, strict=True)
                        },
                    )
                    for part, exprs in rows.parts
                    for unit, row in self.rows(part)
                ]
            case p.Linked():
                owners = {(unit, value(rows.key, row)) for unit, row in self.rows(rows.owners)}
                mine = [spread(rows.label, row) for row in self.tables[rows.table]]
                return [
                    (unit, row) for row in mine for unit, key in owners if equal(value(rows.column, row), key)
                ]
        units: dict[Any, list[Row]] = defaultdict(list)
        for unit, row in self.rows(rows.rows):
            units[unit].append(row)
        if isinstance(rows, p.Paired):
            others: dict[Any, list[Row]] = defaultdict(list)
            for unit, row in self.rows(rows.other):
                others[unit].append(row)
            return [
                (unit, row) for unit in {*units, *others} for row in paired(rows, units[unit], others[unit])
            ]
        made = per_unit if isinstance(rows, p.PerUnit) else windowed
        return [(unit, row) for unit, own in units.items() for row in made(rows, own)]

    def _private(self, rows: p.Private) -> list[tuple[Any, Row]]:
        column = self.units[rows.table]
        found = []
        for place, row in enumerate(self.tables[rows.table]):
            unit = row.get(column, (rows.table, place))
            if unit is not None and unit == unit:  # noqa: PLR0124 - NaN is nobody
                found.append((unit, spread(rows.label, row)))
        return found

    def check(self, asked: p.BoundedSums | p.UnitSizes) -> None:
        """Everything can be asked here."""

    def sums(self, asked: p.BoundedSums) -> p.ExactSums:
        vectors: dict[Any, dict[p.GroupKey, list[int]]] = defaultdict(dict)
        sizes: Counter[Any] = Counter()
        for unit, row in self.rows(asked.rows):
            key = tuple(key_of(part, row) for part in asked.keys)
            here = vectors[unit].setdefault(key, [0] * len(asked.features))
            sizes[unit] += 1
            for place, feature in enumerate(asked.features):
                here[place] += value(feature, row) or 0
        once = isinstance(asked.scheme, p.GroupScheme | p.OnceScheme)
        extra = [asked.present] if asked.present else []
        answer: dict[p.GroupKey, list[int]] = {}
        for unit, groups in vectors.items():
            whole = {key: [1] if once else here + extra for key, here in groups.items()}
            w = weight(asked.scheme, whole, sizes[unit])
            w = 0 if asked.most_groups and len(whole) > asked.most_groups else w
            for key, here in whole.items():
                total = answer.setdefault(key, [0] * len(here))
                answer[key] = [a + w * b for a, b in zip(total, here, strict=True)]
        width = 1 if once else len(asked.features) + len(extra)
        if not asked.keys:
            answer.setdefault((), [0] * width)
        some = (isinstance(asked.scheme, p.GroupScheme) and asked.keys) or asked.most_groups
        return {key: tuple(total) for key, total in answer.items() if any(total) or not some}

    def sizes(self, asked: p.UnitSizes) -> tuple[int, ...]:
        groups: dict[Any, Counter[Any]] = defaultdict(Counter)
        for unit, row in self.rows(asked.rows):
            groups[unit][tuple(key_of(part, row) for part in asked.keys)] += 1
        bins = [0] * (len(asked.edges) + 1)
        for counts in groups.values():
            size = sum(counts.values())
            if asked.norm == 2:
                size = math.isqrt(sum(count * count for count in counts.values()) - 1) + 1
            bins[sum(edge < size for edge in asked.edges)] += 1
        return tuple(bins)


def paired(rows: p.Paired, ours: list[Row], theirs: list[Row]) -> list[Row]:
    def fits(row: Row, other: Row) -> bool:
        both = {**row, **other}
        same = all(equal(value(a, row), value(b, other)) for a, b in rows.on)
        return same and (rows.condition is None or value(rows.condition, both) is True)

    if rows.kind in {"semi", "anti"}:
        wanted = rows.kind == "semi"
        return [row for row in ours if any(fits(row, other) for other in theirs) == wanted]
    found = [{**row, **other} for row in ours for other in theirs if fits(row, other)]
    if rows.kind in {"left", "full"}:
        found += [row for row in ours if not any(fits(row, other) for other in theirs)]
    if rows.kind == "full":
        found += [other for other in theirs if not any(fits(row, other) for row in ours)]
    return found


def raw(of: e.Expr, row: Row) -> Any:
    """The value of an expression as a cell of a table would have it."""
    return as_raw(value(of, row), of.type)


def as_raw(cells: Any, kind: Any) -> Any:
    if cells is None or kind.kind not in {NUMBER, DATE, MOMENT}:
        return cells
    if kind.kind == DATE:
        return date(1970, 1, 1) + timedelta(days=cells)
    return EPOCH + timedelta(microseconds=cells) if kind.kind == MOMENT else Fraction(cells, 2**kind.places)


def per_unit(rows: p.PerUnit, own: list[Row]) -> list[Row]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in own:
        groups[tuple(raw(key, row) for _, key in rows.keys)].append(row)
    names = [name for name, _ in rows.keys]
    return [
        {
            **{(rows.name, name): part for name, part in zip(names, key, strict=True)},
            **{(rows.name, name): aggregated(made.kind, made.of, these) for name, made in rows.aggregates},
        }
        for key, these in groups.items()
    ]


def aggregated(kind: str, of: e.Expr | None, rows: list[Row]) -> Any:
    if of is None:
        return len(rows)
    known = [cell for row in rows if (cell := value(of, row)) is not None]
    if kind in {"count_of", "distinct"}:
        return len(known if kind == "count_of" else set(known))
    made = {"sum": sum, "min": min, "max": max}[kind]
    return as_raw(made(known) if known else None, of.type)


def windowed(rows: p.Windowed, own: list[Row]) -> list[Row]:
    found = [dict(row) for row in own]
    for name, function in rows.columns:
        groups: dict[Any, list[int]] = defaultdict(list)
        for place, row in enumerate(own):
            groups[tuple(value(part, row) for part in function.partition)].append(place)
        for found_places in groups.values():
            places = found_places
            # all that a row has, read or not: rows that are equal in what is read may be in any order
            places.sort(key=lambda place: sorted(repr(item) for item in own[place].items()))
            for of, descends in reversed(function.order):
                known = [place for place in places if value(of, own[place]) is not None]
                known.sort(key=lambda place: value(of, own[place]), reverse=descends)
                places = [*known, *(place for place in places if value(of, own[place]) is None)]
            ordered = [own[place] for place in places]
            peers = [tuple(value(of, row) for of, _ in function.order) for row in ordered]
            for at, place in enumerate(places):
                found[place][rows.name, name] = window(function, ordered, peers, at)
    return found


def window(function: p.WindowFunction, rows: list[Row], peers: list[Any], at: int) -> Any:
    kind, of = function.kind, function.of
    if kind == "row_number":
        return at + 1
    if kind == "rank":
        return peers.index(peers[at]) + 1
    if kind == "dense_rank":
        return len(set(peers[: at + 1]))
    if kind in {"lag", "lead", "first"}:
        there = {"lag": at - function.offset, "lead": at + function.offset, "first": 0}[kind]
        return raw(of, rows[there]) if 0 <= there < len(rows) else None
    last = len(rows) - 1
    if function.order:
        last = at if function.rows else max(i for i, peer in enumerate(peers) if peer == peers[at])
    return aggregated(kind, None if kind == "count" else of, rows[: last + 1])


def spread(table: str, row: dict[str, Any]) -> Row:
    return {(table, name): cell for name, cell in row.items()}


def matched(unit: Any, row: Row, public: list[Row], rows: p.Lookup) -> list[tuple[Any, Row]]:
    found = [
        (unit, {**row, **other})
        for other in public
        if all(equal(value(a, row), value(b, other)) for a, b in rows.on)
    ]
    names = {name for other in public for name in other} | {(rows.label, read.column) for _, read in rows.on}
    return found or ([(unit, {**row, **dict.fromkeys(names)})] if rows.keep else [])


def equal(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one == other


def key_of(expr: e.Expr, row: Row) -> Any:
    cells = value(expr, row)
    if cells is None or expr.type.kind not in {DATE, MOMENT}:
        return cells
    return (
        date(1970, 1, 1) + timedelta(days=cells)
        if expr.type.kind == DATE
        else EPOCH + timedelta(microseconds=cells)
    )


def weight(scheme: p.Scheme, vector: dict[p.GroupKey, list[int]], rows: int) -> int:
    """What one unit's vector is multiplied with."""
    if isinstance(scheme, p.OnceScheme):
        return 1
    if isinstance(scheme, p.RowScheme):
        return scheme.fine if rows <= scheme.most else scheme.most * scheme.fine // rows
    if isinstance(scheme, p.GroupScheme):
        m = len(vector)
        if m > scheme.most:
            return 0
        if m <= scheme.full:
            return scheme.fine
        shared = scheme.full * scheme.fine**scheme.norm // m
        return shared if scheme.norm == 1 else math.isqrt(shared)
    if isinstance(scheme, p.MassScheme):
        mass = sum(abs(v) for here in vector.values() for v in here)
        if mass <= scheme.most:
            return scheme.fine
        return 0 if mass >= 2**62 else scheme.most * scheme.fine // mass
    if isinstance(scheme, p.MarginScheme):
        return margin_weight(scheme, vector, rows)
    return norm_weight(scheme, vector)


def norm_weight(scheme: p.NormScheme, vector: dict[p.GroupKey, list[int]]) -> int:
    """The weight that scales a vector down to its norm."""
    steps = [
        -(-abs(v) // cell) for here in vector.values() for v, cell in zip(here, scheme.cells, strict=True)
    ]
    square = sum(step * step for step in steps)
    if square <= scheme.most**2:
        return scheme.fine
    if sum(steps) >= 2**31:
        return 0
    return scheme.most * scheme.fine // (math.floor(math.sqrt(square)) + 2)


def margin_weight(scheme: p.MarginScheme, vector: dict[p.GroupKey, list[int]], rows: int) -> int:
    """The greater of the weight by rows and of that by the norm of all tables."""
    if rows <= scheme.rows:
        return scheme.fine
    steps = []
    for margin in scheme.margins:
        table: dict[p.GroupKey, list[int]] = {}
        for key, here in vector.items():
            cell = tuple(key[place] for place in margin.keys)
            table[cell] = [a + b for a, b in zip(table.get(cell, [0] * len(here)), here, strict=True)]
        steps += [
            math.ceil(Fraction(abs(v) * step, cell))
            for here in table.values()
            for v, step, cell in zip(here, scheme.steps, margin.cells, strict=True)
        ]
    square, by_rows = sum(step * step for step in steps), scheme.rows * scheme.fine // rows
    if square <= scheme.most**2:
        return scheme.fine
    if sum(steps) >= 2**31:
        return by_rows
    return max(by_rows, scheme.most * scheme.fine // (math.floor(math.sqrt(square)) + 2))
