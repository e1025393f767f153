# SPDX-License-Identifier: Apache-2.0
"""The functions of one row, by name; and why others are refused.

**Guarantee.** A function means what is written here on every engine. No name that is not in the table is passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.tables.ask import build, compare
from discreet.tables.ask.build import Term
from discreet.tables.ask.leaf import exact, near
from discreet.tables.ask.sql.literals import whole, written_number
from discreet.tables.ask.sql.refuse import name_of, only, owned, refused, shown
from discreet.tables.data import expr
from discreet.tables.data.rules import closest
from discreet.tables.data.types import NUMBER

if TYPE_CHECKING:
    from discreet.tables.ask.sql.scalar import Scalar

__all__ = ["AGGREGATES", "FUNCTIONS", "call", "date_part"]

#: Functions of many rows: see aggregates.py.
AGGREGATES = {
    "COUNT",
    "COUNT_IF",
    "SUM",
    "AVG",
    "MEAN",
    "VAR",
    "VARIANCE",
    "VAR_POP",
    "STDDEV",
    "STDDEV_POP",
    "MEDIAN",
    "QUANTILE",
    "QUANTILE_CONT",
    "PERCENTILE_CONT",
    "MIN",
    "MAX",
    "MODE",
}

_MOST_BUCKETS = 10_000
_MOST_POWER = 8

Arguments = list[Any]


def call(scalar: Scalar, node: Any) -> Term:
    """A function of one row."""
    only(node, "this", "expressions")
    name, arguments = name_of(node), node.expressions
    if name in AGGREGATES:
        raise refused(
            "DP706",
            f"{shown(node)} stands where a value of one row is needed.",
            "inside WHERE, a key or another aggregate, its exact value would decide about rows.",
            f"HAVING {shown(node)} > 100   is a condition on the released number;   or ask for {shown(node)} first",
        )
    if name not in FUNCTIONS:
        raise unknown(name, node)
    least, most, make = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise refused(
            "DP702",
            f"{name} has {len(arguments)} arguments here.",
            f"it takes {least}" + (f" to {most}." if most > least else "."),
            _FORMS.get(name, f"{name}(x)" if least == 1 else f"{name}(x, y)"),
        )
    return make(scalar, arguments)


def date_part(scalar: Scalar, name: str, node: Any) -> Term:
    """The part of a date that goes by a name."""
    part = name.lower()
    if part in {"year", *expr.PARTS}:
        return build.part(part, scalar.term(node))
    raise refused(
        "DP705",
        f"{name} is not a part of a date that is answered.",
        "weeks, and the first day of one, are counted differently by engines.",
        f"EXTRACT({_nearest_part(part)} FROM {shown(node)})   or, in its place, one of year, "
        + ", ".join(expr.PARTS),
    )


def _nearest_part(part: str) -> str:
    return "isodow" if part in {"dow", "dayofweek", "weekday"} else closest(part, ["year", *expr.PARTS])


def unknown(name: str, node: Any) -> Exception:
    """A function that is not in the table, with the reason if it is a frequent one."""
    for names, code, why, fix in _REFUSED:
        if name in names:
            return refused(code, f"{name} is not answered: {shown(node)}", why, owned(fix, node))
    known = near(name, [*FUNCTIONS, *sorted(AGGREGATES)])
    return refused(
        "DP702",
        f"there is no function {name} here.",
        "only functions that are proved to mean the same for every row and on every engine are passed on.",
        f"use {known}",
    )


def _clamp(scalar: Scalar, arguments: Arguments) -> Term:
    """A column is read between these ends at once, so that it needs no others."""
    low, high = (written_number(end, "an end of CLAMP") for end in arguments[1:])
    if low > high:
        what, why = "the ends of CLAMP are the wrong way round.", "the lower one comes first."
        turned = ", ".join(shown(arguments[at]) for at in (0, 2, 1))
        raise refused("DP705", what, why, f"CLAMP({turned})")
    found = scalar.scope.column(arguments[0])
    if found is None or found.table.columns[found.column].kind not in {"integer", "real", "decimal"}:
        return build.clamp(scalar.term(arguments[0]), low, high)
    declared = found.table.columns[found.column].bounds
    ends = (low, high)
    if declared is not None:  # clamping twice is clamping once, to the inner ends
        ends = tuple(min(max(exact(end), low), high) for end in declared)  # type: ignore[assignment]
    if any(end.denominator != 1 for end in ends) and found.table.columns[found.column].kind == "integer":
        outside = (Fraction(ends[0].__floor__()), Fraction(ends[1].__ceil__()))
        return build.clamp(scalar.bounded(found, outside), low, high)
    return scalar.bounded(found, ends)


def _bucket(scalar: Scalar, arguments: Arguments) -> Term:
    edges = [written_number(edge, "an edge of BUCKET") for edge in arguments[1:]]
    if edges != sorted(set(edges)):
        rising = ", ".join(f"{float(edge):g}" for edge in sorted(set(edges)))
        what, why = "the edges of BUCKET must rise.", "a bucket lies between two of them."
        raise refused("DP705", what, why, f"BUCKET({shown(arguments[0])}, {rising})")
    return build.bucket(scalar.operand(arguments[0]), edges)


def _width_bucket(scalar: Scalar, arguments: Arguments) -> Term:
    low, high = (written_number(end, "an end of WIDTH_BUCKET") for end in arguments[1:3])
    count = whole(arguments[3], "the number of buckets", 1, _MOST_BUCKETS)
    return build.bucket(
        scalar.operand(arguments[0]), [low + i * (high - low) / count for i in range(count + 1)]
    )


def _extreme(op: str) -> Callable[[Scalar, Arguments], Term]:
    return lambda scalar, arguments: build.extreme(op, [scalar.term(item) for item in arguments])


def _coalesce(scalar: Scalar, arguments: Arguments) -> Term:
    return build.coalesce([scalar.term(item) for item in arguments])


def _nullif(scalar: Scalar, arguments: Arguments) -> Term:
    term = scalar.term(arguments[0])
    return build.case([(compare.compare("=", term, scalar.term(arguments[1])), build.NULL)], term)


def _if(scalar: Scalar, arguments: Arguments) -> Term:
    condition, yes, *no = arguments
    otherwise = scalar.term(no[0]) if no else build.NULL
    return build.case([(scalar.condition(condition), scalar.term(yes))], otherwise)


def _floor(scalar: Scalar, arguments: Arguments) -> Term:
    return build.down(scalar.term(arguments[0]))


def _ceiling(scalar: Scalar, arguments: Arguments) -> Term:
    zero = Fraction(0)
    mirrored = build.down(build.arithmetic("-", zero, scalar.term(arguments[0])))
    return build.arithmetic("-", zero, mirrored)


def _round(scalar: Scalar, arguments: Arguments) -> Term:
    """To the nearest whole number, halves upwards; in one way on every engine."""
    if len(arguments) == 2 and written_number(arguments[1], "the digits of ROUND") != 0:
        raise refused(
            "DP705",
            "inside an aggregate, ROUND goes to whole numbers only.",
            "decimal digits are not exact in binary.",
            "ROUND(AVG(x), 2) rounds the released number",
        )
    term = scalar.term(arguments[0])
    if build.kind_of(term) == NUMBER and build.on_grid(term).type.places == 0:
        return term
    return build.down(build.arithmetic("+", term, Fraction(1, 2)))


def _power(scalar: Scalar, arguments: Arguments) -> Term:
    base = scalar.term(arguments[0])
    result = base
    for _ in range(whole(arguments[1], "the exponent of POWER", 1, _MOST_POWER) - 1):
        result = build.arithmetic("*", result, base)
    return result


def _part(name: str) -> Callable[[Scalar, Arguments], Term]:
    return lambda scalar, arguments: date_part(scalar, name, arguments[0])


def _date_part(scalar: Scalar, arguments: Arguments) -> Term:
    name, of = arguments
    if not isinstance(name, exp.Literal):
        raise refused(
            "DP702",
            "a part of a date is named in quotes.",
            "it is part of the question.",
            "DATE_PART('year', came_on)",
        )
    return date_part(scalar, name.this, of)


_MANY = 1_000
#: How a function with several arguments is written.
_FORMS = {
    "CLAMP": "CLAMP(days, 0, 60)",
    "BUCKET": "BUCKET(days, 0, 10, 20)",
    "WIDTH_BUCKET": "WIDTH_BUCKET(days, 0, 60, 6)",
    "IF": "IF(days > 7, 1, 0)",
    "IIF": "IIF(days > 7, 1, 0)",
    "POWER": "POWER(days, 2)",
    "POW": "POW(days, 2)",
    "DATE_PART": "DATE_PART('year', day)",
}
#: name → least and most arguments, and what it becomes.
FUNCTIONS: dict[str, tuple[int, int, Callable[[Scalar, Arguments], Term]]] = {
    "CLAMP": (3, 3, _clamp),
    "BUCKET": (2, _MANY, _bucket),
    "WIDTH_BUCKET": (4, 4, _width_bucket),
    "LEAST": (1, _MANY, _extreme("least")),
    "GREATEST": (1, _MANY, _extreme("greatest")),
    "ABS": (1, 1, lambda scalar, arguments: build.absolute(scalar.term(arguments[0]))),
    "COALESCE": (1, _MANY, _coalesce),
    "IFNULL": (2, 2, _coalesce),
    "NULLIF": (2, 2, _nullif),
    "IF": (2, 3, _if),
    "IIF": (2, 3, _if),
    "FLOOR": (1, 1, _floor),
    "CEIL": (1, 1, _ceiling),
    "CEILING": (1, 1, _ceiling),
    "ROUND": (1, 2, _round),
    "MOD": (2, 2, lambda scalar, arguments: build.modulo(*(scalar.term(item) for item in arguments))),
    "POWER": (2, 2, _power),
    "POW": (2, 2, _power),
    "DATE_PART": (2, 2, _date_part),
    **{name.upper(): (1, 1, _part(name)) for name in ("year", *expr.PARTS)},
}

#: Functions that people will ask for, with the reason why not and what to write instead.
_REFUSED: tuple[tuple[set[str], str, str, str], ...] = (
    (
        {"UPPER", "LOWER", "UCASE", "LCASE", "INITCAP"},
        "DP705",
        "ß becomes ẞ, ß or SS: engines disagree, and two people could become one.",
        "ward IN ('A', 'a')",
    ),
    (
        {
            "SUBSTR",
            "SUBSTRING",
            "LEFT",
            "RIGHT",
            "TRIM",
            "CONCAT",
            "REPLACE",
            "LENGTH",
            "REGEXP_REPLACE",
            "SPLIT_PART",
        },
        "DP705",
        "texts are compared as they are; engines disagree about parts of them.",
        "CASE WHEN ward LIKE 'A%' THEN 'A' ELSE 'other' END",
    ),
    (
        {"RANDOM", "RAND", "UUID", "GEN_RANDOM_UUID", "HASH", "MD5", "SHA256"},
        "DP702",
        "a row must mean the same each time it is read.",
        "leave it out: noise is added to every answer",
    ),
    (
        {"NOW", "CURRENT_DATE", "CURRENT_TIMESTAMP", "GETDATE", "TODAY", "SYSDATE", "LOCALTIMESTAMP"},
        "DP702",
        "the same question would mean something else tomorrow, and the record would not say what.",
        "write the day itself:  came_on >= DATE '2026-01-01'",
    ),
    (
        {"DATE_TRUNC", "TRUNC"},
        "DP705",
        "a month or a week is not a day, and engines return different types for it.",
        "GROUP BY YEAR(came_on), MONTH(came_on)",
    ),
    (
        {
            "DATE",
            "DATEDIFF",
            "DATE_DIFF",
            "DATE_ADD",
            "DATE_SUB",
            "TO_DATE",
            "STRFTIME",
            "DATE_FORMAT",
            "TO_CHAR",
        },
        "DP705",
        "arithmetic on dates is not the same on every engine.",
        "came_on >= DATE '2026-01-01'   or   YEAR(came_on)   or   MONTH(came_on)",
    ),
    (
        {"DAYOFWEEK", "DOW", "WEEKDAY", "WEEK", "WEEKOFYEAR", "DAYOFYEAR"},
        "DP705",
        "engines disagree on the day with which a week begins.",
        "ISODOW(came_on)   is 1 on Monday and 7 on Sunday",
    ),
    (
        {"LN", "LOG", "LOG2", "LOG10", "EXP", "SQRT", "SIN", "COS", "TAN"},
        "DP705",
        "the last digits of such functions differ among engines, so an answer could not be checked.",
        "BUCKET(x, 1, 10, 100, 1000) groups by size",
    ),
    (
        {"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"},
        "DP702",
        "the rank of a row depends on other people's rows.",
        "MEDIAN(x)   or   QUANTILE(x, 0.9)",
    ),
    (
        {"VAR_SAMP", "STDDEV_SAMP", "VARIANCE_SAMP"},
        "DP706",
        "the noise is larger than the difference between n and n - 1, so only the population's is given.",
        "VAR_POP(x)   or   STDDEV_POP(x)",
    ),
    (
        {"HISTOGRAM"},
        "DP706",
        "a histogram is a count for each bucket.",
        "SELECT BUCKET(days, 0, 10, 20) AS bucket, COUNT(*) FROM visits GROUP BY bucket",
    ),
    (
        {"PERCENTILE_DISC", "QUANTILE_DISC", "APPROX_QUANTILE", "APPROX_PERCENTILE", "PERCENTILE"},
        "DP706",
        "a private quantile is a value near that rank, in one form.",
        "QUANTILE(x, 0.9)",
    ),
    (
        {"APPROX_COUNT_DISTINCT", "APPROX_DISTINCT", "COUNT_DISTINCT"},
        "DP706",
        "one person may bring many values, so that such a count has no small bound.",
        "COUNT(DISTINCT patient_id) counts people; GROUP BY finds the values that are frequent",
    ),
    (
        {
            "ARRAY_AGG",
            "STRING_AGG",
            "GROUP_CONCAT",
            "LISTAGG",
            "LIST",
            "ANY_VALUE",
            "FIRST",
            "LAST",
            "ARG_MAX",
            "ARG_MIN",
        },
        "DP706",
        "it would show the rows themselves.",
        "COUNT(*)   or, of numbers,   AVG(days), MEDIAN(days)",
    ),
    (
        {
            "CORR",
            "COVAR_POP",
            "COVAR_SAMP",
            "REGR_SLOPE",
            "SKEWNESS",
            "KURTOSIS",
            "GEOMEAN",
            "PRODUCT",
            "ENTROPY",
        },
        "DP706",
        "no noise is calibrated to it here.",
        "release its parts:  SUM(days * cost), SUM(days), SUM(cost), COUNT(*)",
    ),
)
