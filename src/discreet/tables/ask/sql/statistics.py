# SPDX-License-Identifier: Apache-2.0
"""Statistics that are computed from several aggregates: sample variances, covariance, correlation,
regression lines, geometric means, and whether a condition is ever true.

    COVAR_POP(y, x)    AVG((x − m)(y − n)) − (AVG(x) − m)(AVG(y) − n)      m, n: the middles of the bounds
    CORR(y, x)         COVAR_POP(y, x) / √(VAR_POP(x) · VAR_POP(y))
    VAR_SAMP(x)        VAR_POP(x) · (1 + 1 / (n − 1))
    GEOMEAN(x)         EXP(AVG(LN(x)))
    BOOL_OR(c)         COUNT_IF(c) is above 0, with 95 % confidence

As in SQL, statistics of two columns read the rows in which neither is NULL.

**Guarantee.** A statistic is post-processing of aggregates that are released with noise, so it
costs what they cost. Its interval follows from the joint noise of the sums that they were computed
from (`answer/joint.py`). A correlation has the bounds −1 and 1 where nothing more is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from discreet.tables.algebra.expr import Expr, IsNull, Not
from discreet.tables.algebra.types import NUMBER, TRUTH
from discreet.tables.ask import build, curves
from discreet.tables.ask.question import Aggregate
from discreet.tables.ask.released import PublicValue, ReleasedColumn, ReleasedExpression, ReleasedOperation
from discreet.tables.ask.sql.aggregates import (
    AggregateCall,
    Aggregates,
    called_name,
    filter_operand,
    short_name,
)
from discreet.tables.ask.sql.refuse import node_text, question_error
from discreet.tables.ask.sql.scalar import Scalar

__all__ = ["is_statistic", "statistic"]


def is_statistic(node: exp.Expression) -> bool:
    """Whether a node is computed from several aggregates."""
    return called_name(node) in _MAKERS


def statistic(node: exp.Expression, aggregates: Aggregates) -> tuple[ReleasedExpression, str]:
    """A statistic as an expression on aggregates, which are added, and the kind of its values."""
    call, condition = aggregates.call(node)
    made = _MAKERS[call.name](_Parts(aggregates, call, condition))
    return made, TRUTH if call.name in _TRUTHS else NUMBER


@dataclass(frozen=True)
class _Parts:
    """Adds the aggregates that a statistic is computed from."""

    aggregates: Aggregates
    call: AggregateCall
    condition: exp.Expression | None

    def _add(self, kind: str, of: Expr, what: str) -> ReleasedColumn:
        aggregate = Aggregate(kind, of, name=f"{kind}_{what}", text=self.call.text)
        return ReleasedColumn(self.aggregates.add(aggregate))

    def mean(self, operand: _Operand) -> ReleasedColumn:
        return self._add("mean", operand.of, operand.name)

    def variance(self, operand: _Operand) -> ReleasedColumn:
        return self._add("variance", operand.of, operand.name)

    def rows(self, operand: _Operand) -> ReleasedColumn:
        return self._add("count_of", operand.of, operand.name)

    def one(self) -> _Operand:
        """The only operand."""
        node = self.call.only_argument()
        return _Operand(self._filter(self.call.number(node)), short_name(node))

    def truth(self, *, negated: bool = False) -> _Operand:
        """A row for each TRUE of the only operand, or for each FALSE."""
        node = self.call.only_argument()
        condition = Scalar(self.call.rows.scope, self.call.text).condition(node)
        of = build.case([(Not(condition) if negated else condition, Fraction(1))], build.NULL)
        return _Operand(self._filter(of), short_name(node))

    def two(self) -> tuple[_Operand, _Operand]:
        """The two operands, each NULL where the other is."""
        nodes = self.call.arguments
        if len(nodes) != 2 or self.call.order is not None:
            raise question_error(
                "DP706",
                f"{self.call.text} needs two columns.",
                f"{self.call.name} says how one column goes with another.",
                f"{self.call.name}(cost, days)",
            )
        y, x = (self._filter(self.call.number(node)) for node in nodes)
        names = [short_name(node) for node in nodes]
        return _Operand(_beside(y, x), names[0]), _Operand(_beside(x, y), names[1])

    def _filter(self, of: Expr) -> Expr:
        return build.on_grid(filter_operand(of, self.condition, self.call.rows))


@dataclass(frozen=True)
class _Operand:
    """What an aggregate reads of a row, and its name."""

    of: Expr
    name: str

    @property
    def middle(self) -> Fraction:
        """The middle of its bounds."""
        low, high = self.of.type.bounds
        return (low + high) / 2

    @property
    def half(self) -> Fraction:
        """Half of the distance between its bounds, which no standard deviation exceeds."""
        low, high = self.of.type.bounds
        return (high - low) / 2


def _beside(of: Expr, other: Expr) -> Expr:
    """An operand that is NULL where the other one is."""
    if not other.type.null or of == other:
        return of
    return build.case([(Not(IsNull(other)), of)], build.NULL)


# --- one maker for each function ---------------------------------------------------------------------


def _apply(op: str, *parts: ReleasedExpression | Fraction | int) -> ReleasedOperation:
    return ReleasedOperation(op, tuple(_public(part) for part in parts))


def _public(part: ReleasedExpression | Fraction | int) -> ReleasedExpression:
    if isinstance(part, Fraction):
        return PublicValue(int(part) if part.denominator == 1 else float(part))
    return PublicValue(part) if isinstance(part, int) else part


def _of_sample(population: ReleasedExpression, rows: ReleasedColumn) -> ReleasedOperation:
    """What was divided by n, divided by n − 1."""
    return _apply("sample", population, rows)


def _variance_of_sample(parts: _Parts) -> ReleasedOperation:
    x = parts.one()
    # The greatest is that of two rows, one at each bound.
    return _apply("within", _of_sample(parts.variance(x), parts.rows(x)), 0, 2 * x.half**2)


def _deviation_of_sample(parts: _Parts) -> ReleasedOperation:
    return _apply("sqrt", _variance_of_sample(parts))


@dataclass(frozen=True)
class _Pair:
    """Two columns, and the aggregates of both together."""

    parts: _Parts
    y: _Operand
    x: _Operand

    @classmethod
    def of(cls, parts: _Parts) -> _Pair:
        return cls(parts, *parts.two())

    @property
    def product(self) -> _Operand:
        """The product of both about the middles of their bounds, where it is shortest."""
        y, x = (build.arithmetic("-", part.of, part.middle) for part in (self.y, self.x))
        return _Operand(build.on_grid(build.arithmetic("*", y, x)), f"{self.y.name}_{self.x.name}")

    @property
    def moments(self) -> tuple[ReleasedExpression | Fraction, ...]:
        """The mean of the product, both means, and the middles of both bounds."""
        parts = self.parts
        return (
            *(parts.mean(part) for part in (self.product, self.y, self.x)),
            self.y.middle,
            self.x.middle,
        )

    @property
    def covariance(self) -> ReleasedOperation:
        return _apply("within", _apply("covariance", *self.moments), -self.greatest, self.greatest)

    @property
    def greatest(self) -> Fraction:
        """The greatest covariance: half of the rows at each corner of the bounds."""
        return self.y.half * self.x.half

    @property
    def rows(self) -> ReleasedColumn:
        return self.parts.rows(self.product)

    @property
    def correlation(self) -> ReleasedOperation:
        variances = (self.parts.variance(part) for part in (self.y, self.x))
        return _apply("within", _apply("correlation", *self.moments, *variances), -1, 1)

    def line(self, statistic: str) -> ReleasedOperation:
        """The slope or the intercept of the regression line."""
        return _apply(statistic, *self.moments, self.parts.variance(self.x))


def _covariance(parts: _Parts) -> ReleasedOperation:
    return _Pair.of(parts).covariance


def _covariance_of_sample(parts: _Parts) -> ReleasedOperation:
    pair = _Pair.of(parts)
    # The greatest is that of two rows, one at each corner.
    return _apply("within", _of_sample(pair.covariance, pair.rows), -2 * pair.greatest, 2 * pair.greatest)


def _correlation(parts: _Parts) -> ReleasedOperation:
    return _Pair.of(parts).correlation


def _slope(parts: _Parts) -> ReleasedOperation:
    return _Pair.of(parts).line("slope")


def _intercept(parts: _Parts) -> ReleasedOperation:
    return _Pair.of(parts).line("intercept")


def _explained_share(parts: _Parts) -> ReleasedOperation:
    correlation = _Pair.of(parts).correlation
    return _apply("power", correlation, 2)


def _rows_of_both(parts: _Parts) -> ReleasedColumn:
    return _Pair.of(parts).rows


def _mean_of(place: int) -> Callable[[_Parts], ReleasedColumn]:
    return lambda parts: parts.mean(parts.two()[place])


def _squares_of(place: int) -> Callable[[_Parts], ReleasedOperation]:
    def make(parts: _Parts) -> ReleasedOperation:
        pair = _Pair.of(parts)
        of = (pair.y, pair.x)[place]
        return _apply("squares", pair.rows, parts.variance(of), parts.mean(of), of.middle)

    return make


def _products(parts: _Parts) -> ReleasedOperation:
    pair = _Pair.of(parts)
    return _apply("products", pair.rows, *pair.moments)


def _geometric_mean(parts: _Parts) -> ReleasedOperation:
    x = parts.one()
    logarithm = _Operand(
        build.on_grid(curves.logarithm(x.of, operand=node_text(parts.call.only_argument()))), f"ln_{x.name}"
    )
    return _apply("exp", parts.mean(logarithm))


def _ever(parts: _Parts) -> ReleasedOperation:
    return _apply("surely", parts.rows(parts.truth()))


def _always(parts: _Parts) -> ReleasedOperation:
    counterexamples = parts.truth(negated=True)
    counterexamples = replace(counterexamples, name=f"not_{counterexamples.name}")
    return _apply("not", _apply("surely", parts.rows(counterexamples)))


_TRUTHS = {"BOOL_OR", "LOGICAL_OR", "BOOL_AND", "LOGICAL_AND", "EVERY"}
_MAKERS: dict[str, Callable[[_Parts], ReleasedExpression]] = {
    **dict.fromkeys(("VAR_SAMP", "VARIANCE_SAMP"), _variance_of_sample),
    **dict.fromkeys(("GEOMEAN", "GEOMETRIC_MEAN"), _geometric_mean),
    "STDDEV_SAMP": _deviation_of_sample,
    "COVAR_POP": _covariance,
    "COVAR_SAMP": _covariance_of_sample,
    "CORR": _correlation,
    "REGR_SLOPE": _slope,
    "REGR_INTERCEPT": _intercept,
    "REGR_R2": _explained_share,
    "REGR_COUNT": _rows_of_both,
    "REGR_AVGY": _mean_of(0),
    "REGR_AVGX": _mean_of(1),
    "REGR_SYY": _squares_of(0),
    "REGR_SXX": _squares_of(1),
    "REGR_SXY": _products,
    **dict.fromkeys(("BOOL_OR", "LOGICAL_OR"), _ever),
    **dict.fromkeys(("BOOL_AND", "LOGICAL_AND", "EVERY"), _always),
}
