# SPDX-License-Identifier: Apache-2.0
"""Expressions on cells as SQL: one method for each class of `expr`, and nothing that an engine
decides.

**Guarantee.** The SQL of an expression has the meaning of `expr`. Division and remainder have
nonnegative operands, because engines disagree about others. No term leaves 64 bits: every node of
an expression is within ±2^62 by its type, and so are the terms made here on the way (see
`_quotient`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatchmethod
from itertools import pairwise
from typing import Any

from sqlglot import exp

from discreet.tables.algebra import expr as e
from discreet.tables.algebra import strings
from discreet.tables.algebra.curves import RealFunction
from discreet.tables.algebra.types import TEXT, TRUTH, WIDEST, Type
from discreet.tables.engines import terms as t
from discreet.tables.engines.calendar import spelled_out
from discreet.tables.engines.dialect import Dialect
from discreet.tables.engines.read import clamp
from discreet.tables.engines.terms import Term
from discreet.tables.engines.tree import normal

__all__ = ["ColumnNames", "Writer", "search_tree"]

_SIGNS: dict[str, type[exp.Binary]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


class ColumnNames:
    """The names of columns of cells; a column that is read in two ways is two."""

    def __init__(self) -> None:
        self._names: dict[e.Read, str] = {}

    def name(self, read: e.Read) -> str:
        """The name of a column."""
        return self._names.setdefault(normal(read), f"c{len(self._names)}")

    def column(self, read: e.Read) -> Term:
        """A column by its name."""
        return t.column(self.name(read))


class Writer:
    """Writes expressions whose columns have been read already; `read` gives each of them."""

    def __init__(self, dialect: Dialect, read: Callable[[e.Read], Term]) -> None:
        self.dialect, self.read = dialect, read

    def constant(self, value: Any, of: Type) -> Term:
        """A public value."""
        if value is None:
            return t.nothing({TEXT: "TEXT", TRUTH: "BOOLEAN"}.get(of.kind, t.BIGINT))
        if of.kind == TEXT:
            return self.dialect.literal(value)
        return t.truth(value) if of.kind == TRUTH else t.number(value)

    def members(self, values: Iterable[Any], of: Type) -> list[Term]:
        """Public values of a list, none of them NULL; an engine finds one type for all of it.

        A cast of each number would take longer to write and read than the rows that it selects.
        """
        return [
            exp.Literal.number(value) if of.kind not in {TEXT, TRUTH} else self.constant(value, of)
            for value in values
        ]

    @singledispatchmethod
    def write(self, expr: e.Expr) -> Term:
        """An expression as SQL; a fresh tree every time."""
        raise AssertionError(f"no engine knows {type(expr).__name__}")

    @write.register
    def _read(self, expr: e.Read) -> Term:
        return self.read(expr)

    @write.register
    def _constant(self, expr: e.Constant) -> Term:
        return self.constant(expr.value, expr.of)

    @write.register
    def _scale(self, expr: e.Scaled) -> Term:
        return t.times(self.write(expr.of), t.number(1 << (expr.places - expr.of.type.places)))

    @write.register
    def _arithmetic(self, expr: e.Arithmetic) -> Term:
        return t.binary(_SIGNS[expr.op], self.write(expr.left), self.write(expr.right))

    @write.register
    def _quotient(self, expr: e.Quotient) -> Term:
        ends, divisor = (expr.left.type.low << expr.shift, expr.left.type.high << expr.shift), expr.right
        above = self.write(expr.left)
        if expr.shift:
            above = t.times(above, t.number(1 << expr.shift))
        if isinstance(divisor, e.Constant) and divisor.value is not None and divisor.value > 0:
            return self._over_constant(above, divisor.value, *ends)
        below = self.write(divisor)
        flipped = t.binary(exp.LT, below, t.number(0))
        zero = t.number(0)
        top = t.cases([(flipped, t.binary(exp.Sub, zero, above.copy()))], above)
        bottom = t.cases(
            [
                (t.binary(exp.LT, below.copy(), t.number(0)), t.binary(exp.Sub, zero.copy(), below.copy())),
                (t.binary(exp.EQ, below.copy(), t.number(0)), t.nothing(t.BIGINT)),
            ],
            below.copy(),
        )
        return self._rounded_down(top, bottom)

    def _rounded_down(self, top: Term, bottom: Term) -> Term:
        """⌊top / bottom⌋ for any top: of a negative one, minus the quotient rounded up."""
        size = t.cases(
            [(t.binary(exp.LT, top, t.number(0)), t.binary(exp.Sub, t.number(0), top.copy()))], top.copy()
        )
        up = t.add(t.binary(exp.Sub, bottom.copy(), t.number(1)), size.copy())
        negative = t.binary(exp.Sub, t.number(0), self.dialect.over(up, bottom.copy()))
        whens = [(t.binary(exp.LT, top.copy(), t.number(0)), negative)]
        return t.cases(whens, self.dialect.over(size, bottom))

    def _over_constant(self, top: Term, divisor: int, low: int, high: int) -> Term:
        """By a positive constant: shifted by a multiple of it so that nothing is negative, if there
        is room.
        """
        if divisor == 1:
            return top
        if low >= 0:
            return self.dialect.over(top, t.number(divisor))
        whole = -(low // divisor)
        if high + whole * divisor >= 2 * WIDEST:
            return self._rounded_down(top, t.number(divisor))
        shifted = self.dialect.over(t.add(top, t.number(whole * divisor)), t.number(divisor))
        return t.binary(exp.Sub, shifted, t.number(whole))

    @write.register
    def _modulo(self, expr: e.Modulo) -> Term:
        first = t.binary(exp.Mod, self.write(expr.left), t.number(expr.divisor))
        if expr.left.type.low >= 0:
            return first
        return t.binary(exp.Mod, t.add(first, t.number(expr.divisor)), t.number(expr.divisor))

    @write.register
    def _extreme(self, expr: e.Extreme) -> Term:
        if len(expr.items) == 1:
            return self.write(expr.items[0])
        unknown = t.both([t.is_null(self.write(item)) for item in expr.items], exp.Or)
        best = t.call(expr.op.upper(), *(self.write(item) for item in expr.items))
        return t.cases([(unknown, t.nothing(t.BIGINT))], best)

    @write.register
    def _clamp(self, expr: e.Clamp) -> Term:
        of = self.write(expr.of)
        kept = clamp(of.copy(), t.number(expr.low), t.number(expr.high))
        return t.cases([(t.is_null(of), t.nothing(t.BIGINT))], kept)

    @write.register
    def _compare(self, expr: e.Compare) -> Term:
        return t.binary(_SIGNS[expr.op], self.write(expr.left), self.write(expr.right))

    @write.register
    def _is_in(self, expr: e.IsIn) -> Term:
        of = self.write(expr.of)
        if not expr.values:
            return t.cases([(t.is_null(of), t.nothing("BOOLEAN"))], t.truth(False))
        return exp.In(this=exp.Paren(this=of), expressions=self.members(expr.values, expr.of.type))

    @write.register
    def _like(self, expr: e.Like) -> Term:
        return t.binary(
            exp.Like, self.write(expr.of), self.dialect.literal(self.dialect.pattern(expr.pattern))
        )

    @write.register
    def _is_null(self, expr: e.IsNull) -> Term:
        return t.is_null(self.write(expr.of))

    @write.register
    def _logic(self, expr: e.Logic) -> Term:
        return t.both([self.write(item) for item in expr.items], exp.And if expr.op == "and" else exp.Or)

    @write.register
    def _not(self, expr: e.Not) -> Term:
        return t.negate(self.write(expr.of))

    @write.register
    def _case(self, expr: e.Case) -> Term:
        return t.cases([(self.write(w), self.write(v)) for w, v in expr.whens], self.write(expr.otherwise))

    @write.register
    def _coalesce(self, expr: e.Coalesce) -> Term:
        return t.call("COALESCE", *(self.write(item) for item in expr.items))

    @write.register(e.AsDate)
    @write.register(e.AsMoment)
    @write.register(e.DatePart)
    @write.register(e.Shifted)
    @write.register(e.Truncated)
    def _calendar(self, expr: e.Expr) -> Term:
        return self.write(spelled_out(expr))

    @write.register
    def _steps(self, expr: e.Steps) -> Term:
        of = self.write(expr.of)
        moved = [t.number(value) for value in expr.values]
        return t.add(of, _value_tree(of.copy(), expr.edges, moved))

    @write.register
    def _root(self, expr: e.Root) -> Term:
        of = self.write(expr.of)
        safe = t.cases([(t.binary(exp.GTE, of, t.number(0)), of.copy())], t.number(0))
        root = self.dialect.root(t.times(safe, t.number(1 << expr.shift)))
        return t.cases([(t.binary(exp.GTE, of.copy(), t.number(0)), root)], t.nothing(t.BIGINT))

    @write.register
    def _curve(self, expr: RealFunction) -> Term:
        x = t.times(t.cast(self.write(expr.of), t.DOUBLE), t.real(expr.unit))
        exponent = [t.real(expr.exponent)] if expr.function == "power" else []
        scaled = t.times(t.call(expr.function.upper(), x, *exponent), t.real(expr.scale))
        return t.cast(t.call("FLOOR", t.add(scaled, t.real(expr.nudge))), t.BIGINT)

    @write.register
    def _join(self, expr: strings.Joined) -> Term:
        first, *others = (self.write(item) for item in expr.items)
        for other in others:
            first = t.binary(exp.DPipe, first, other)
        return first

    @write.register
    def _change_case(self, expr: strings.Cased) -> Term:
        return t.call(
            "TRANSLATE", self.write(expr.of), *(t.text(letters) for letters in strings.CASES[expr.case])
        )

    @write.register
    def _trim(self, expr: strings.Trimmed) -> Term:
        return self.dialect.trim_spaces(self.write(expr.of))

    @write.register
    def _substring(self, expr: strings.Substring) -> Term:
        ends = (t.number(end, "INT") for end in (expr.start, expr.length))
        return t.call("SUBSTR", self.dialect.characters(self.write(expr.of)), *ends)

    @write.register
    def _length(self, expr: strings.Length) -> Term:
        return t.cast(t.call("LENGTH", self.dialect.characters(self.write(expr.of))), t.BIGINT)

    @write.register
    def _bucket(self, expr: e.Bucket) -> Term:
        of, edges = self.write(expr.of), expr.edges
        if not edges:
            return t.cases([(t.is_null(of), t.nothing(t.BIGINT))], t.number(0))
        steps = {after - before for before, after in pairwise(edges)}
        even = len(steps) == 1 and max(steps) <= WIDEST // 2 and max(map(abs, edges)) <= WIDEST // 2
        tree = self._even(of, edges, steps.pop()) if even else search_tree(of, edges, 0, len(edges))
        return t.cases([(t.is_null(of.copy()), t.nothing(t.BIGINT))], tree)

    def _even(self, of: Term, edges: tuple[int, ...], step: int) -> Term:
        """Edges at equal distances: a division. Clamped first, so that what is divided is not
        negative.
        """
        inside = clamp(of, t.number(edges[0] - step), t.number(edges[-1]))
        return self.dialect.over(t.binary(exp.Sub, inside, t.number(edges[0] - step)), t.number(step))


def search_tree(of: Term, edges: Sequence[int], first: int, last: int) -> Term:
    """A search tree: how many edges are at or below, known to be between `first` and `last`."""
    return _value_tree(of, edges[first:last], [t.number(place) for place in range(first, last + 1)])


def _value_tree(of: Term, edges: Sequence[int], values: Sequence[Term]) -> Term:
    """A search tree: the value whose place is how many edges are at or below; there is one value
    more than edges.
    """
    if not edges:
        return values[0]
    middle = len(edges) // 2
    below = t.binary(exp.LT, of.copy(), t.number(edges[middle]))
    lower = _value_tree(of, edges[:middle], values[: middle + 1])
    return t.cases([(below, lower)], _value_tree(of, edges[middle + 1 :], values[middle + 1 :]))
