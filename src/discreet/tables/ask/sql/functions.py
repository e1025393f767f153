# SPDX-License-Identifier: Apache-2.0
"""Functions of one row by name, and the reasons for which others are refused.

**Guarantee.** A function means the same on every engine. A name that is not in the table never
reaches an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.tables.algebra.types import NUMBER
from discreet.tables.ask import build, compare, curves, strings
from discreet.tables.ask.build import Term
from discreet.tables.ask.columns import exact_number, similar_names
from discreet.tables.ask.sql.dates import DATE_FORMS, DATE_FUNCTIONS
from discreet.tables.ask.sql.literals import literal_number, whole_number
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only, with_own_column

if TYPE_CHECKING:
    from discreet.tables.ask.sql.scalar import Scalar

__all__ = ["AGGREGATES", "FUNCTIONS", "LENGTHS", "call"]

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
    "GEOMEAN",
    "GEOMETRIC_MEAN",
    "VAR_SAMP",
    "VARIANCE_SAMP",
    "STDDEV_SAMP",
    "COVAR_POP",
    "COVAR_SAMP",
    "CORR",
    "REGR_SLOPE",
    "REGR_INTERCEPT",
    "REGR_R2",
    "REGR_COUNT",
    "REGR_AVGX",
    "REGR_AVGY",
    "REGR_SXX",
    "REGR_SYY",
    "REGR_SXY",
    "BOOL_OR",
    "BOOL_AND",
    "LOGICAL_OR",
    "LOGICAL_AND",
    "EVERY",
}

#: The names of the function that counts characters.
LENGTHS = ("LENGTH", "LEN", "CHAR_LENGTH")
_MOST_BUCKETS = 10_000
_MOST_POWER = 8
_MOST_CHARACTERS = 1_000_000

Arguments = list[exp.Expression]


def call(scalar: Scalar, node: exp.Expression) -> Term:
    """A function of one row."""
    require_only(node, "this", "expressions")
    name, arguments = name_of(node), node.expressions
    if name in AGGREGATES:
        raise question_error(
            "DP706",
            f"{node_text(node)} is an aggregate, and a value of one row is needed here.",
            "in WHERE, in a key or inside another aggregate its exact value would decide about rows.",
            f"HAVING {node_text(node)} > 100   is a condition on the released number;   or release {node_text(node)} first",
        )
    if name not in FUNCTIONS:
        raise unknown_function_error(name, node)
    least, most, make = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise question_error(
            "DP702",
            f"{name} got {len(arguments)} arguments.",
            f"it takes {least}" + (f" to {most}." if most > least else "."),
            _FORMS.get(name, f"{name}(x)" if least == 1 else f"{name}(x, y)"),
        )
    return make(scalar, arguments)


def unknown_function_error(name: str, node: exp.Expression) -> Exception:
    """The error for a function that is not in the table, with its own reason where there is one."""
    for names, code, why, fix in _REFUSED:
        if name in names:
            return question_error(
                code, f"{name} is not supported: {node_text(node)}", why, with_own_column(fix, node)
            )
    known = similar_names(name, [*FUNCTIONS, *sorted(AGGREGATES)])
    return question_error(
        "DP702",
        f"there is no function {name} here.",
        "only functions that are proved to mean the same on every engine are allowed.",
        f"use {known}",
    )


def _clamp(scalar: Scalar, arguments: Arguments) -> Term:
    """CLAMP around a column: its ends are the bounds of the column, so it needs no others."""
    low, high = (literal_number(end, "an end of CLAMP") for end in arguments[1:])
    if low > high:
        what, why = "the lower end of CLAMP is above the upper end.", "the lower end comes first."
        turned = ", ".join(node_text(arguments[at]) for at in (0, 2, 1))
        raise question_error("DP705", what, why, f"CLAMP({turned})")
    ref = scalar.scope.column(arguments[0])
    if ref is None or ref.table.columns[ref.column].kind not in {"integer", "real", "decimal"}:
        return build.clamp(scalar.term(arguments[0]), low, high)
    # The bounds of a column of an inner query are those that it has without CLAMP.
    declared = None if ref.table.of == "" else ref.table.columns[ref.column].bounds
    ends = (low, high)
    if declared is not None:
        # Clamping twice is clamping once, to the inner ends.
        ends = tuple(min(max(exact_number(end), low), high) for end in declared)  # type: ignore[assignment]
    if any(end.denominator != 1 for end in ends) and ref.table.columns[ref.column].kind == "integer":
        outside = (Fraction(ends[0].__floor__()), Fraction(ends[1].__ceil__()))
        return build.clamp(scalar.read_clamped(ref, outside), low, high)
    return scalar.read_clamped(ref, ends)


def _bucket(scalar: Scalar, arguments: Arguments) -> Term:
    edges = [literal_number(edge, "an edge of BUCKET") for edge in arguments[1:]]
    if edges != sorted(set(edges)):
        rising = ", ".join(f"{float(edge):g}" for edge in sorted(set(edges)))
        what, why = "the edges of BUCKET must increase.", "each bucket lies between two neighbouring edges."
        raise question_error("DP705", what, why, f"BUCKET({node_text(arguments[0])}, {rising})")
    return build.bucket(scalar.operand(arguments[0]), edges)


def _width_bucket(scalar: Scalar, arguments: Arguments) -> Term:
    low, high = (literal_number(end, "an end of WIDTH_BUCKET") for end in arguments[1:3])
    count = whole_number(arguments[3], "the number of buckets", 1, _MOST_BUCKETS)
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


def _case_of(case: str) -> Callable[[Scalar, Arguments], Term]:
    return lambda scalar, arguments: strings.change_case(case, scalar.term(arguments[0]))


def _trim(scalar: Scalar, arguments: Arguments) -> Term:
    return strings.trim(scalar.term(arguments[0]))


def _length(scalar: Scalar, arguments: Arguments) -> Term:
    return strings.length(scalar.term(arguments[0]))


def _search(
    matches: Callable[[Term, Term], Term],
) -> Callable[[Scalar, Arguments], Term]:
    return lambda scalar, arguments: matches(*(scalar.term(item) for item in arguments))


def _concat(scalar: Scalar, arguments: Arguments) -> Term:
    return strings.join_known([scalar.term(item) for item in arguments])


def _substring(scalar: Scalar, arguments: Arguments) -> Term:
    start = whole_number(arguments[1], "the first character of SUBSTR", 1, _MOST_CHARACTERS)
    count = _MOST_CHARACTERS
    if len(arguments) == 3:
        count = whole_number(arguments[2], "the number of characters of SUBSTR", 0, _MOST_CHARACTERS)
    return strings.substring(scalar.term(arguments[0]), start, count)


def _first_characters(scalar: Scalar, arguments: Arguments) -> Term:
    count = whole_number(arguments[1], "the number of characters of LEFT", 0, _MOST_CHARACTERS)
    return strings.substring(scalar.term(arguments[0]), 1, count)


def _root(scalar: Scalar, arguments: Arguments) -> Term:
    return build.root(scalar.term(arguments[0]))


def _floor(scalar: Scalar, arguments: Arguments) -> Term:
    return build.floor(scalar.term(arguments[0]))


def _ceiling(scalar: Scalar, arguments: Arguments) -> Term:
    zero = Fraction(0)
    mirrored = build.floor(build.arithmetic("-", zero, scalar.term(arguments[0])))
    return build.arithmetic("-", zero, mirrored)


def _round(scalar: Scalar, arguments: Arguments) -> Term:
    """To the nearest whole number, halves upwards, on every engine."""
    if len(arguments) == 2 and literal_number(arguments[1], "the digits of ROUND") != 0:
        raise question_error(
            "DP705",
            "inside an aggregate, ROUND rounds to whole numbers only.",
            "decimal fractions are not exact in binary.",
            "ROUND(AVG(x), 2) rounds the released number",
        )
    term = scalar.term(arguments[0])
    if build.kind_of(term) == NUMBER and build.on_grid(term).type.places == 0:
        return term
    return build.floor(build.arithmetic("+", term, Fraction(1, 2)))


def _power(scalar: Scalar, arguments: Arguments) -> Term:
    base, exponent = scalar.term(arguments[0]), literal_number(arguments[1], "the exponent of POWER")
    if exponent.denominator != 1 or not 1 <= exponent <= _MOST_POWER:
        return curves.power(base, exponent, node_text(arguments[0]))
    result = base
    for _ in range(int(exponent) - 1):
        result = build.arithmetic("*", result, base)
    return result


def _regular(scalar: Scalar, arguments: Arguments) -> Term:
    return compare.regular(scalar.operand(arguments[0]), scalar.term(arguments[1]))


def _exponential(scalar: Scalar, arguments: Arguments) -> Term:
    return curves.exponential(scalar.term(arguments[0]), node_text(arguments[0]))


def _logarithm(name: str) -> Callable[[Scalar, Arguments], Term]:
    return lambda scalar, arguments: curves.logarithm(
        scalar.term(arguments[0]), name, node_text(arguments[0])
    )


_MANY = 1_000
#: An example of each function with several arguments.
_FORMS = {
    "CLAMP": "CLAMP(days, 0, 60)",
    "BUCKET": "BUCKET(days, 0, 10, 20)",
    "WIDTH_BUCKET": "WIDTH_BUCKET(days, 0, 60, 6)",
    "IF": "IF(days > 7, 1, 0)",
    "IIF": "IIF(days > 7, 1, 0)",
    "POWER": "POWER(days, 2)",
    "POW": "POW(days, 2)",
    "SUBSTR": "SUBSTR(ward, 1, 2)",
    "SUBSTRING": "SUBSTRING(ward, 1, 2)",
    "LEFT": "LEFT(ward, 2)",
    **dict.fromkeys(("REGEXP_MATCHES", "REGEXP_LIKE"), "REGEXP_MATCHES(ward, '^A')"),
    "STARTS_WITH": "STARTS_WITH(ward, 'A')",
    "ENDS_WITH": "ENDS_WITH(ward, 'A')",
    "CONTAINS": "CONTAINS(ward, 'A')",
    **DATE_FORMS,
}
#: For each name the least and the greatest number of arguments, and the function that builds the term.
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
    "SQRT": (1, 1, _root),
    **{name: (1, 1, _logarithm(name)) for name in curves.LOGARITHMS},
    "EXP": (1, 1, _exponential),
    **{name: (1, 1, _case_of("upper")) for name in ("UPPER", "UCASE")},
    **{name: (1, 1, _case_of("lower")) for name in ("LOWER", "LCASE")},
    "TRIM": (1, 1, _trim),
    **dict.fromkeys(LENGTHS, (1, 1, _length)),
    **dict.fromkeys(("SUBSTR", "SUBSTRING"), (2, 3, _substring)),
    "LEFT": (2, 2, _first_characters),
    **dict.fromkeys(("REGEXP_MATCHES", "REGEXP_LIKE"), (2, 2, _regular)),
    "CONCAT": (1, _MANY, _concat),
    **dict.fromkeys(("STARTS_WITH", "STARTSWITH", "PREFIX"), (2, 2, _search(strings.starts_with))),
    **dict.fromkeys(("ENDS_WITH", "ENDSWITH", "SUFFIX"), (2, 2, _search(strings.ends_with))),
    "CONTAINS": (2, 2, _search(strings.contains)),
    **DATE_FUNCTIONS,
}

#: Functions that are not supported: their names, the code, the reason, and what to write instead.
_REFUSED: tuple[tuple[set[str], str, str, str], ...] = (
    (
        {"INITCAP"},
        "DP705",
        "engines disagree on where a word begins.",
        "UPPER(ward) = 'A'",
    ),
    (
        {
            "RIGHT",
            "LTRIM",
            "RTRIM",
            "REPLACE",
            "REGEXP_REPLACE",
            "SPLIT_PART",
        },
        "DP705",
        "engines disagree on it.",
        "SUBSTR(ward, 1, 2)   or   TRIM(ward)   or   ward || '-' || ward",
    ),
    (
        {"RANDOM", "RAND", "UUID", "GEN_RANDOM_UUID", "HASH", "MD5", "SHA256"},
        "DP702",
        "a row must have the same value each time it is read.",
        "leave it out; every answer has noise anyway",
    ),
    (
        {"NOW", "CURRENT_DATE", "CURRENT_TIMESTAMP", "GETDATE", "TODAY", "SYSDATE", "LOCALTIMESTAMP"},
        "DP702",
        "the same text would ask a different question tomorrow.",
        "write the day itself:  came_on >= DATE '2026-01-01'",
    ),
    (
        {"TRUNC"},
        "DP705",
        "of a date and of a number it means different things.",
        "DATE_TRUNC('month', came_on)",
    ),
    (
        {"TO_DATE", "STRFTIME", "STRPTIME", "DATE_FORMAT", "TO_CHAR", "TO_TIMESTAMP"},
        "DP705",
        "engines write and read dates in different ways.",
        "came_on >= DATE '2026-01-01'   or   DATE_TRUNC('month', came_on)",
    ),
    (
        {"DAYOFWEEK", "DOW", "WEEKDAY"},
        "DP705",
        "engines disagree on the first day of a week.",
        "ISODOW(came_on)   is 1 on Monday and 7 on Sunday",
    ),
    (
        {"LOG"},
        "DP705",
        "engines disagree on its base.",
        "LN(x)   or   LOG10(x)",
    ),
    (
        {"SIN", "COS", "TAN"},
        "DP705",
        "engines return different last digits for such functions.",
        "BUCKET(x, 1, 10, 100, 1000) groups by size",
    ),
    (
        {"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"},
        "DP702",
        "the rank of a row depends on the rows of other people.",
        "MEDIAN(x)   or   QUANTILE(x, 0.9)",
    ),
    (
        {"HISTOGRAM"},
        "DP706",
        "a histogram is written as a count for each bucket.",
        "SELECT BUCKET(days, 0, 10, 20) AS bucket, COUNT(*) FROM visits GROUP BY bucket",
    ),
    (
        {"APPROX_TOP_K", "APPROX_TOP_COUNT", "TOP_K", "TOPK"},
        "DP706",
        "it stands for a whole question: the counts of all values, of which the greatest are shown.",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2 DESC LIMIT 3",
    ),
    (
        {"PERCENTILE_DISC", "QUANTILE_DISC", "APPROX_QUANTILE", "APPROX_PERCENTILE", "PERCENTILE"},
        "DP706",
        "a private quantile has one form, a value near that rank.",
        "QUANTILE(x, 0.9)",
    ),
    (
        {"APPROX_COUNT_DISTINCT", "APPROX_DISTINCT", "COUNT_DISTINCT"},
        "DP706",
        "every answer is approximate, so it is written in one form.",
        "COUNT(DISTINCT x)",
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
        "it would return values of single rows.",
        "COUNT(*)   or, of numbers,   AVG(days), MEDIAN(days)",
    ),
    (
        {
            "SKEWNESS",
            "KURTOSIS",
            "PRODUCT",
            "ENTROPY",
        },
        "DP706",
        "its sensitivity is not known.",
        "release other parts of its distribution:  AVG(x), VAR_POP(x), MEDIAN(x)",
    ),
)
