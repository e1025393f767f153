# SPDX-License-Identifier: Apache-2.0
"""One suite for all engines: each gives exactly the whole numbers of the reference."""

from __future__ import annotations

import itertools
from datetime import date

import pytest

from discreet.errors import RefusedQuestion
from discreet.tables import engines
from discreet.tables.algebra.expr import (
    Arithmetic,
    AsDate,
    AsMoment,
    Bucket,
    Case,
    Clamp,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    Extreme,
    IsIn,
    IsNull,
    Like,
    Logic,
    Modulo,
    Not,
    Quotient,
    Read,
    Root,
    Scaled,
    Shifted,
    Steps,
    Truncated,
)
from discreet.tables.algebra.strings import Cased, Joined, Length, Substring, Trimmed
from discreet.tables.algebra.sums import (
    BoundedSums,
    Filtered,
    GroupScheme,
    Lookup,
    Margin,
    MarginScheme,
    MassScheme,
    NormScheme,
    OnceScheme,
    Paired,
    Private,
    RowScheme,
    UnitSizes,
)
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type, days, micros
from discreet.tables.ask.curves import exponential, logarithm, power
from tests.tables import nasty
from tests.tables.nasty import COMPOSED, REFERENCE, TABLES, UNITS

BIG = 2**40


def number(column, low, high, places=0, table="visits"):
    return Read(table, column, Type(NUMBER, low, high, places))


def word(column, table="visits"):
    return Read(table, column, Type(TEXT))


def whole(value):
    return Constant(value, Type(NUMBER, value, value, 0, null=False))


def cells(value, places):
    return Constant(value, Type(NUMBER, value, value, places, null=False))


RID, SMALL, X = number("rid", 0, 10**6), number("small", -100, 100), number("x", -(2**20), 2**20, 10)
T, G = word("t"), word("g")
B = Read("visits", "b", Type(TRUTH))
D = Read(
    "visits", "d", Type(DATE, days(min(d for d in nasty.DATES if d)), days(max(d for d in nasty.DATES if d)))
)
MODERN = Read("visits", "d", Type(DATE, days(date(1900, 1, 1)), days(date(2100, 1, 1))))
MOMENT_ENDS = (
    micros(min(m for m in nasty.MOMENTS if m)) - 10**10,
    micros(max(m for m in nasty.MOMENTS if m)) + 10**10,
)
TS, TZ = (Read("visits", name, Type(MOMENT, *MOMENT_ENDS)) for name in ("ts", "tz"))
NULL = Constant(None, Type(NUMBER))
ONE = whole(1)

READS = [
    *(number("i", *ends) for ends in ((-WIDEST, WIDEST), (0, 60), (-5, -1), (10, 10))),
    *(number("i", low << p, high << p, p) for low, high, p in ((0, 60, 20), (-3, 5, 50), (-1, 1, 60))),
    *(number("small", *ends) for ends in ((-WIDEST, WIDEST), (-2, 3))),
    *(
        number("x", low, high, p)
        for low, high, p in ((-WIDEST, WIDEST, 0), (-WIDEST, WIDEST, 20), (0, 500 << 15, 15))
    ),
    *(
        number("x", low, high, p)
        for low, high, p in ((-3 << 52, 5 << 52, 52), (1, 2**53 + 1, 0), (-7, -3, 1), (-1, 1, 60))
    ),
    *(number("x32", low, high, p) for low, high, p in ((-WIDEST, WIDEST, 24), (0, 3 << 10, 10))),
    *(
        number("dec", low, high, p)
        for low, high, p in ((-WIDEST, WIDEST, 0), (0, 60 << 15, 15), (-5 << 58, 5 << 58, 58))
    ),
    *(
        number("money", low, high, p)
        for low, high, p in ((-WIDEST, WIDEST, 0), (0, 60 << 24, 24), (-5 << 58, 5 << 58, 58))
    ),
    *(
        number("tn", low, high, p)
        for low, high, p in ((-WIDEST, WIDEST, 0), (0, 60 << 24, 24), (-5 << 58, 5 << 58, 58))
    ),
    *(number("tn", low, high, p) for low, high, p in ((-(10**6) << 5, 10**6 << 5, 5), (-2, -1, 0))),
    *(number("b", low, high, p) for low, high, p in ((0, 1, 0), (-9, 9 << 10, 10), (2, 3, 0))),
    T,
    B,
    D,
    Read("visits", "d", Type(DATE, days(nasty.DATES[3]), days(nasty.DATES[0]))),
    TS,
    TZ,
    Read("visits", "tz", Type(MOMENT, -(10**9), 10**9)),
]

FINE = number("x", -(2**12), 2**12, 4)
_MADE = [
    Scaled(SMALL, 20),
    *(Arithmetic(op, SMALL, number("i", -50, 50)) for op in "+-*"),
    Arithmetic("-", SMALL, Arithmetic("-", whole(3), SMALL)),
    Arithmetic("*", SMALL, SMALL),
    Arithmetic("*", X, FINE),
    Arithmetic("+", SMALL, NULL),
    *(
        Quotient(SMALL, right, places)
        for right in (number("i", -9, 9), whole(3), whole(1))
        for places in (0, 12)
    ),
    *(Quotient(SMALL, whole(value)) for value in (-3, 7)),
    Quotient(number("i", -WIDEST, WIDEST), number("small", -3, 3)),
    Quotient(number("i", -WIDEST, WIDEST), whole(WIDEST)),
    Quotient(number("i", -WIDEST, WIDEST), whole(3)),
    Quotient(X, cells(1 << 10, 10)),
    Quotient(X, FINE, 20),
    Quotient(SMALL, whole(0)),
    *(
        Modulo(of, divisor)
        for of in (SMALL, number("i", -WIDEST, WIDEST), number("i", 0, 100))
        for divisor in (1, 3, 7)
    ),
    Modulo(number("i", -WIDEST, WIDEST), WIDEST),
    *(Extreme(op, (SMALL, number("i", -4, 4), whole(1))) for op in ("least", "greatest")),
    Extreme("least", (SMALL,)),
    Clamp(SMALL, -2, 3),
    Clamp(number("i", -WIDEST, WIDEST), -WIDEST, 0),
    *(Compare(op, SMALL, number("i", -4, 4)) for op in ("=", "<>", "<", "<=", ">", ">=")),
    *(Compare(op, T, word("g")) for op in ("=", "<>")),
    *(Compare("=", T, Constant(text, Type(TEXT))) for text in nasty.TEXTS),
    *(Compare(op, B, Constant(value, Type(TRUTH))) for op in ("=", "<>") for value in (True, False, None)),
    *(Compare(op, D, Constant(days(nasty.DATES[2]), D.of)) for op in ("=", "<", ">=")),
    *(Compare(op, TS, TZ) for op in ("<", "=", ">")),
    IsIn(SMALL, (-7, 0, 3)),
    IsIn(T, ("a", COMPOSED, "O'Reilly", "a\\b", "")),
    IsIn(B, (True,)),
    IsIn(D, (days(nasty.DATES[0]), days(nasty.DATES[2]))),
    IsIn(SMALL, ()),
    *(
        Like(T, p)
        for p in (
            "a%b",
            "a_b",
            "%",
            "",
            "_",
            "__",
            "%'%",
            "a\\%b",
            "a\\_b",
            "%\\",
            "caf_",
            "l%k",
            "[a]",
            "A",
            "%%_",
        )
    ),
    Like(T, "\U0001f600_"),
    IsNull(T),
    IsNull(SMALL),
    IsNull(X),
    Not(B),
    Case(((B, SMALL), (IsNull(T), whole(5))), whole(9)),
    Case(((Not(B), word("t")),), Constant(None, Type(TEXT))),
    Case(((B, NULL),), SMALL),
    Case(((Compare("<", SMALL, whole(0)), Constant("low", Type(TEXT))),), T),
    Coalesce((SMALL, number("i", -4, 4), whole(77))),
    Coalesce((T, Constant("none", Type(TEXT)))),
    Coalesce((NULL, SMALL)),
    Bucket(SMALL, (-3, 0, 1, 5)),
    Bucket(SMALL, tuple(range(-6, 7, 2))),
    Bucket(number("i", -WIDEST, WIDEST), (-WIDEST, 0, WIDEST)),
    Bucket(number("i", -WIDEST, WIDEST), tuple(range(0, 100, 7))),
    Bucket(X, tuple(k * k * 700 - 5000 for k in range(40))),
    Bucket(SMALL, ()),
    *(
        DatePart(part, of)
        for part in ("year", "isoyear", "quarter", "month", "week", "day", "doy", "isodow")
        for of in (D, TS, TZ)
    ),
    *(DatePart(part, of) for part in ("hour", "minute", "second") for of in (TS, TZ)),
    *(Truncated(part, of) for part in ("year", "quarter", "month", "week", "day") for of in (D, AsDate(TZ))),
    *(Truncated(part, of) for part in ("hour", "minute", "second") for of in (TS, TZ)),
    *(AsDate(of) for of in (TS, TZ)),
    AsMoment(MODERN),
    AsMoment(D),
    *(Shifted(of, cells) for of in (MODERN, TS) for cells in (-31, 0, 40)),
    *(Steps(of, (-10, 0, 19_782), (5, -7, 0, 10**4)) for of in (MODERN, SMALL)),
    Steps(TS, (0, 10**15), (3_600_000_000, 7_200_000_000, 0)),
    Steps(MODERN, (), (3,)),
    *(Root(of, places) for of in (SMALL, number("i", 0, 60)) for places in (0, 10)),
    Root(number("i", -5, 2**51 - 1), 0),
    Root(number("x", 0, 500 << 10, 10), 17),
    logarithm(number("x", 1 << 8, 500 << 10, 10)),
    logarithm(number("i", 0, 60), "LOG10"),
    exponential(number("x", -20 << 10, 5 << 10, 10)),
    *(
        power(of, exponent)
        for of in (number("i", 1, 900), number("x", 1, 30 << 10, 10))
        for exponent in (0.5, -0.5, 2.5)
    ),
    Joined((T, Constant("-", Type(TEXT)), G)),
    *(Cased(case, of) for case in ("upper", "lower") for of in (T, G)),
    Trimmed(T),
    Trimmed(Joined((Constant(" \t ", Type(TEXT)), T, Constant("\u00a0 ", Type(TEXT))))),
    *(Substring(T, start, length) for start in (1, 2, 30) for length in (0, 1, 3, 10**6)),
    *(Length(of) for of in (T, Joined((T, T)))),
    Compare("=", Cased("upper", T), Constant("AB", Type(TEXT))),
    IsIn(Substring(T, 1, 1), ("a", "\U0001f600")),
]
_TRUTHS = [B, IsNull(T), Constant(None, Type(TRUTH)), Compare("=", SMALL, whole(1))]
_MADE += [Logic(op, pair) for op in ("and", "or") for pair in itertools.product(_TRUTHS, repeat=2)]
_MADE += [Logic("or", tuple(_TRUTHS)), Not(Logic("and", tuple(_TRUTHS)))]

VISITS, CALLS, POINTS = Private("visits"), Private("calls"), Private("points")
SUM = Clamp(number("x", -(2**20), 2**20, 4), 0, 2**19)
AMOUNT = Quotient(number("x", 0, 500 << 10, 10), cells(1 << 10, 10))
HUGE = number("i", -WIDEST, WIDEST)
WARD = ((G, word("code", "wards")),)
LABEL, BEDS = word("label", "wards"), number("beds", -100, 100, table="wards")
PRICE = Quotient(number("price", 0, 8 << 3, 3, table="wards"), cells(8, 3))
H, Y = word("h", "calls"), number("y", -5, 5, table="calls")

RELATIONS = {
    "plain": (VISITS, (G,), (ONE, AMOUNT)),
    "amounts": (VISITS, (G,), (AMOUNT, Clamp(SMALL, 0, 5))),
    "amounts, no keys": (VISITS, (), (AMOUNT,)),
    "amounts, some keys": (
        Filtered(VISITS, IsIn(G, ("north", "nörd"))),
        (G, B),
        (AMOUNT, number("i", 0, 10**6)),
    ),
    "amounts, nothing left": (Filtered(VISITS, Compare(">", SMALL, whole(50))), (), (AMOUNT,)),
    "no keys": (VISITS, (), (ONE, AMOUNT, SMALL)),
    "filtered": (Filtered(VISITS, Compare(">", SMALL, whole(0))), (G, B), (ONE, SMALL)),
    "filtered twice": (Filtered(Filtered(VISITS, B), Like(G, "n%")), (G,), (ONE, SMALL)),
    "some keys": (Filtered(Filtered(VISITS, B), IsIn(G, ("north", "nörd", "nowhere"))), (G,), (ONE, SMALL)),
    "some keys of two": (
        Filtered(
            Filtered(
                Filtered(VISITS, IsIn(G, ("north", "nörd"))), IsIn(T, ("a", "A", "", "O'Reilly", COMPOSED))
            ),
            IsIn(G, ("north",)),
        ),
        (T, G),
        (ONE, SMALL),
    ),
    "no such key": (Filtered(VISITS, IsIn(G, ("nowhere",))), (G,), (ONE, SMALL)),
    "some keys or none": (
        Filtered(VISITS, Logic("or", (IsIn(G, ("north",)), IsNull(G)))),
        (G,),
        (ONE, SMALL),
    ),
    "constants": (VISITS, (G,), (whole(-3), NULL, AMOUNT, whole(10**9), whole(-3))),
    "constants, no keys": (VISITS, (), (whole(0), whole(10**9))),
    "nothing left": (Filtered(VISITS, Compare(">", SMALL, whole(50))), (G,), (ONE, SMALL)),
    "nothing left, no keys": (Filtered(VISITS, Compare(">", SMALL, whole(50))), (), (ONE, SMALL)),
    "dates": (VISITS, (D, TZ), (ONE, SMALL)),
    "numbers": (VISITS, (SMALL, Bucket(X, (0, 1000))), (ONE, SMALL)),
    "huge": (VISITS, (G,), (HUGE, ONE)),
    "long": (Private("long"), (word("g", "long"),), (number("y", -WIDEST, WIDEST, table="long"),)),
    "narrow": (VISITS, (G,), (ONE, Arithmetic("*", number("i", 0, 100), number("i", 0, 100)))),
    "lookup": (Lookup(VISITS, "wards", WARD), (G, LABEL), (ONE, BEDS, PRICE)),
    "lookup kept": (Lookup(VISITS, "wards", WARD, keep=True), (LABEL,), (ONE, BEDS)),
    "lookup by two": (
        Lookup(VISITS, "wards", (*WARD, (SMALL, number("number", -100, 100, table="wards"))), keep=True),
        (G, LABEL),
        (ONE, BEDS),
    ),
    "lookup, then filtered": (
        Filtered(Lookup(Filtered(VISITS, Not(IsNull(G))), "wards", WARD), Compare(">", BEDS, whole(0))),
        (LABEL,),
        (ONE, SMALL),
    ),
    "lookup, some keys": (
        Filtered(Lookup(VISITS, "wards", WARD, keep=True), IsIn(LABEL, ("N", "O'W"))),
        (LABEL, G),
        (ONE, BEDS),
    ),
    "paired": (Paired(VISITS, CALLS), (G, H), (ONE, Arithmetic("*", SMALL, Y))),
    "paired on more": (Paired(Filtered(VISITS, B), CALLS, ((G, H),)), (G,), (ONE, Y)),
    "paired and looked up": (Lookup(Paired(VISITS, CALLS), "wards", ((H, WARD[0][1]),)), (LABEL,), (ONE, Y)),
    "named people": (Private("notes"), (), (ONE, number("y", -5, 5, table="notes"))),
    "real people": (Private("gauges"), (), (ONE, number("y", -5, 5, table="gauges"))),
    "empty": (Private("nothing"), (word("g", "nothing"),), (ONE, number("y", -5, 5, table="nothing"))),
    "empty, no keys": (Private("nothing"), (), (ONE, number("y", -5, 5, table="nothing"))),
    "nobody": (Private("nobody"), (word("g", "nobody"),), (ONE, number("y", -5, 5, table="nobody"))),
    "rows": (POINTS, (word("g", "points"),), (ONE, number("x", 0, 500, table="points"))),
    "rows, some keys": (
        Filtered(POINTS, IsIn(word("g", "points"), ("north", "a"))),
        (word("g", "points"),),
        (whole(7), number("x", 0, 500, table="points")),
    ),
    "rows, no keys": (POINTS, (), (ONE, number("n", -5, 5, table="points"))),
    "rows looked up": (
        Lookup(
            POINTS,
            "codes",
            ((number("n", -100, 100, table="points"), number("number", -100, 100, table="codes")),),
            keep=True,
        ),
        (word("label", "codes"),),
        (ONE, number("x", 0, 500, table="points")),
    ),
}


def margin_schemes(keys, features):
    """Weights by the norm of the tables of all sets of keys, and of the finest alone."""
    sets = [places for size in range(keys + 1) for places in itertools.combinations(range(keys), size)]
    for rows, most, fine, steps, cell in (
        (1, 40, 64, 16, 7),
        (2, 700, 1024, 256, 1),
        (3, 2**31 - 1, 4096, 1, 2**30),
        (1, 2**30, 64, 2**20, 1),
    ):
        margins = tuple(Margin(places, (cell,) * features) for places in sets)
        yield MarginScheme(rows, most, fine, margins, (steps,) * features)
        yield MarginScheme(rows, most, fine, margins[-1:], (steps,) * features)


def schemes(keys, features):
    """Each scheme at a few sizes; (scheme, present)."""
    yield from ((RowScheme(most, fine), 0) for most, fine in ((1, 1), (3, 4096), (7, 1000), (10**6, 2**20)))
    yield RowScheme(3, 1024), 17
    for most, fine, cell in (
        (1, 64, 1),
        (5, 4096, 1),
        (100, 4096, 7),
        (2**30, 1024, 2**20),
        (2**30, 1024, 1),
    ):
        yield NormScheme(most, fine, (cell,) * len(features)), 0
        yield NormScheme(most, fine, (*((cell,) * len(features)), 3)), 11
    yield from (
        (MassScheme(most, fine), 0) for most, fine in ((1, 64), (40, 4096), (2**40, 2**20), (2**61, 1))
    )
    yield from ((scheme, 0) for scheme in margin_schemes(len(keys), len(features)))
    yield from (
        (GroupScheme(most, fine, norm), 0)
        for most in (0, 1, 4)
        for fine in (1, 1000, 2**26 - 1)
        for norm in (1, 2)
    )
    yield from (
        (GroupScheme(most, 4096, norm, full), 0) for most in (2, 9) for norm in (1, 2) for full in (2, 3)
    )
    yield OnceScheme(), 0


TOO_WIDE = [f"{name}, RowScheme(most=1000000, fine=1048576), 0" for name in ("huge", "long")]
ALL_SUMS = {
    f"{name}, {scheme}, {present}": BoundedSums(rows, keys, features, scheme, present)
    for name, (rows, keys, features) in RELATIONS.items()
    for scheme, present in schemes(keys, features)
}
#: Rows of units that are in few groups, as key selection by counts asks for them.
FEW_GROUPS = {
    f"{name}, at most {most} groups": BoundedSums(rows, keys, (ONE,), RowScheme(3, 64), most_groups=most)
    for name, (rows, keys, _) in RELATIONS.items()
    for most in (1, 2, 4)
    if keys
}
LONGEST = "long, NormScheme(most=1073741824, fine=1024, cells=(1,)), 0"
REFUSED = [ALL_SUMS.pop(name) for name in TOO_WIDE]


def every(step, asked=ALL_SUMS):
    """Every so-many-th question; a step that shares no factor with their periods meets every relation and scheme."""
    return dict(list(asked.items())[::step])


SIZES = [
    UnitSizes(rows, keys, edges, norm)
    for rows, keys, _ in (RELATIONS[name] for name in ("plain", "lookup", "rows", "empty", "paired"))
    for edges in ((1, 2, 3, 4, 6, 8), (2,), ())
    for norm in (1, 2)
]


def batches(exprs, size):
    return [tuple(exprs[start : start + size]) for start in range(0, len(exprs), size)]


def check_expressions(engine, exprs, size=25):
    """The value of each expression in each row: as a key beside the row's number."""
    for batch in batches(exprs, size):
        asked = BoundedSums(VISITS, (RID, *batch), (), OnceScheme())
        theirs, ours = engine.sums(asked), REFERENCE.sums(asked)
        pairs = list(zip(by_row(ours), by_row(theirs), strict=True))
        wrong = [
            (expr, [(a[0], a[place], b[place]) for a, b in pairs if repr(a[place]) != repr(b[place])])
            for place, expr in enumerate(batch, start=1)
        ]
        assert [(expr, rows) for expr, rows in wrong if rows] == []
        assert theirs == ours


def by_row(answer):
    return sorted(answer, key=lambda key: key[0])


def check_sums(engine, asked):
    for name, question in asked.items():
        answer = engine.sums(question)
        assert answer == REFERENCE.sums(question), name
        assert all(type(part) is int for sums in answer.values() for part in sums), name
    return len(asked)


def check_sizes(engine, sizes):
    for asked in sizes:
        assert engine.sizes(asked) == REFERENCE.sizes(asked), asked


def check_refusals(engine):
    """From schemas and public tables alone."""
    twice = Lookup(POINTS, "wards", ((word("g", "points"), word("code", "wards")),))
    refused = {
        "DP701": [Private("wards"), Private("nowhere"), Lookup(VISITS, "calls", ((G, H),))],
        "DP703": [twice, Paired(VISITS, VISITS), Paired(VISITS, Private("notes")), Paired(POINTS, CALLS)],
    }
    for code, relations in refused.items():
        for rows in relations:
            with pytest.raises(RefusedQuestion) as caught:
                engine.sums(BoundedSums(rows, (), (ONE,), RowScheme(1, 1)))
            assert caught.value.code == code, rows
    for of in (
        word("x"),
        number("t", 0, 1, 61),
        number("d", 0, 1),
        Read("visits", "g", Type(TRUTH)),
        number("no", 0, 1),
    ):
        with pytest.raises(RefusedQuestion):
            engine.sums(BoundedSums(VISITS, (of,), (), OnceScheme()))
    with pytest.raises(RefusedQuestion):
        engine.values("visits", ("g",))
    for asked in REFUSED:
        with pytest.raises(RefusedQuestion):
            engine.sums(asked)


def check_schema(engine):
    assert sorted(engine.tables()) == sorted(TABLES)
    kinds = (
        ["integer"] * 4
        + ["real"] * 2
        + ["decimal"] * 2
        + ["text"] * 2
        + ["boolean", "date", "timestamp", "timestamp", "text"]
    )
    assert engine.columns("visits") == dict(zip(nasty.COLUMNS, kinds, strict=True))
    values = [("north", 1), ("north", 2), ("nörd", 60), ("south", 2), ("west", -7), (None, None)]
    assert engine.values("wards", ("code", "number")) == values


def conforms(engine, step, batch=25):
    check_schema(engine)
    check_expressions(engine, READS + _MADE, batch)
    check_sums(engine, {**every(step), LONGEST: ALL_SUMS[LONGEST]})
    check_sums(engine, every(min(step, 7), FEW_GROUPS))
    check_sizes(engine, SIZES[:: min(step, 7)])
    check_refusals(engine)
    return True


@pytest.fixture(scope="module")
def duckdb_engine():
    pytest.importorskip("duckdb")
    return engines.duckdb(nasty.arrows(), units=UNITS)


@pytest.fixture(scope="module")
def polars_engine():
    polars = pytest.importorskip("polars")
    return engines.polars(
        {name: polars.from_arrow(table) for name, table in nasty.arrows().items()}, units=UNITS
    )


STEP, SLOWLY = 5, 41


def test_duckdb_conforms(duckdb_engine):
    assert conforms(duckdb_engine, STEP)


def test_polars_conforms(polars_engine):
    assert conforms(polars_engine, STEP)


def test_polars_conforms_where_it_groups_a_part_of_the_units_at_a_time(monkeypatch):
    in_polars = pytest.importorskip("discreet.tables.engines.in_polars")
    monkeypatch.setattr(in_polars, "_ROWS_AT_ONCE", 4)
    split = in_polars._parts_of
    parts = []
    monkeypatch.setattr(
        in_polars, "_parts_of", lambda rows: [parts.append(len(made := split(rows))), made][1]
    )
    tables = {name: in_polars.pl.from_arrow(table) for name, table in nasty.arrows().items()}
    engine = engines.polars(tables, units=UNITS)
    check_sums(engine, {**every(STEP), **every(2, FEW_GROUPS)})
    check_sizes(engine, SIZES[::7])
    # Units that are real numbers stay in one part: two that are equal may have different hashes.
    assert max(parts) > 3
    assert min(parts) == 1


def test_postgres_conforms(postgres_database):
    nasty.fill_postgres(postgres_database)
    engine = engines.postgres(postgres_database, {name: name for name in TABLES}, units=UNITS)
    assert conforms(engine, STEP)
    engine.close()


def test_spark_conforms(spark_session):
    engine = engines.spark(spark_session, nasty.spark_frames(spark_session), units=UNITS)
    assert conforms(engine, SLOWLY, batch=60)
    engine.close()


@pytest.mark.slow
def test_duckdb_and_polars_conform_in_every_case(duckdb_engine, polars_engine):
    for engine in (duckdb_engine, polars_engine):
        assert check_sums(engine, ALL_SUMS) > 500


@pytest.mark.slow
def test_postgres_conforms_in_every_case(postgres_database):
    nasty.fill_postgres(postgres_database)
    engine = engines.postgres(postgres_database, {name: name for name in TABLES}, units=UNITS)
    assert check_sums(engine, ALL_SUMS) > 500
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_conforms_under_both_rules_for_errors(spark_session, setting, ansi):
    compiled = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
    for name, value in {
        **compiled,
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.ansi.enabled": ansi,
    }.items():
        setting(name, value)
    engine = engines.spark(spark_session, nasty.spark_frames(spark_session), units=UNITS)
    assert conforms(engine, 13)
    engine.close()
