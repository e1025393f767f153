# SPDX-License-Identifier: Apache-2.0
"""Groups, windows, joins, links and stacks of the rows of one unit: each engine gives the whole numbers of the reference."""

from __future__ import annotations

import itertools
import random
from datetime import date

import pyarrow as pa
import pytest

from discreet.errors import RefusedQuestion
from discreet.tables import engines
from discreet.tables.algebra.engine import LINKED, ROW
from discreet.tables.algebra.expr import Arithmetic, Compare, Constant, IsNull, Not, Read
from discreet.tables.algebra.sums import (
    BoundedSums,
    Filtered,
    Linked,
    Lookup,
    MassScheme,
    NormScheme,
    OnceScheme,
    Paired,
    PerUnit,
    Private,
    RowScheme,
    Stacked,
    UnitAggregate,
    UnitSizes,
    Windowed,
    WindowFunction,
)
from discreet.tables.algebra.types import DATE, NUMBER, TEXT, TRUTH, WIDEST, Type, days
from tests.tables.reference import Reference

SCHEMAS = {
    "visits": {
        "u": pa.int64(),
        "t": pa.date32(),
        "x": pa.int64(),
        "g": pa.string(),
        "b": pa.bool_(),
        "r": pa.int64(),
    },
    "calls": {"u": pa.int64(), "y": pa.int64(), "h": pa.string()},
    "orders": {"u": pa.int64(), "o": pa.int64()},
    "items": {"o": pa.int64(), "p": pa.int64()},
    "parts": {"i": pa.int64(), "q": pa.int64()},
    "wards": {"code": pa.string(), "beds": pa.int64()},
    "points": {"x": pa.int64()},
    "dots": {"x": pa.int64()},
}
UNITS = {
    "visits": "u",
    "calls": "u",
    "orders": "u",
    "items": LINKED,
    "parts": LINKED,
    "points": ROW,
    "dots": ROW,
}
GROUPS = ("a", "b", "A", "é", "", None)


def _rows():
    draw = random.Random(7)
    dates = [date(2024, 1, day) for day in (1, 2, 3, 31)] + [None]
    visits = [
        {
            "u": draw.choice((1, 2, 3, 4, 5, None)),
            "t": draw.choice(dates),
            "x": draw.choice((-3, 0, 1, 2, 50, 2**61, None)),
            "g": draw.choice(GROUPS),
            "b": draw.choice((True, False, None)),
            "r": place,
        }
        for place in range(60)
    ]
    visits += [dict(row, r=100 + place) for place, row in enumerate(visits[:9])]
    calls = [
        {"u": draw.choice((2, 3, 5, 6, 7, None)), "y": draw.choice((0, 1, 2, None)), "h": draw.choice(GROUPS)}
        for _ in range(25)
    ]
    orders = [{"u": draw.choice((1, 2, 3, 8, None)), "o": draw.choice((*range(9), None))} for _ in range(20)]
    items = [{"o": draw.choice((*range(12), None)), "p": draw.choice((1, 5, None))} for _ in range(40)]
    parts = [{"i": draw.choice((1, 5, 7, None)), "q": draw.choice((1, 2))} for _ in range(8)]
    wards = [{"code": code, "beds": beds} for beds, code in enumerate(("a", "b", "b", None, "é"))]
    points = [{"x": x} for x in (1, 2, 3)]
    return {
        "visits": visits,
        "calls": calls,
        "orders": orders,
        "items": items,
        "parts": parts,
        "wards": wards,
        "points": points,
        "dots": points[:2],
    }


TABLES = _rows()
REFERENCE = Reference(TABLES, UNITS)


def number(table, column, low=-WIDEST, high=WIDEST):
    return Read(table, column, Type(NUMBER, low, high))


def text(table, column):
    return Read(table, column, Type(TEXT))


def whole(value):
    return Constant(value, Type(NUMBER, value, value, 0, null=False))


ONE = whole(1)
VISITS, CALLS, ORDERS = Private("visits"), Private("calls"), Private("orders")
X, G, H, Y = number("visits", "x"), text("visits", "g"), text("calls", "h"), number("calls", "y")
R = number("visits", "r")
T = Read("visits", "t", Type(DATE, days(date(2020, 1, 1)), days(date(2030, 1, 1))))
B = Read("visits", "b", Type(TRUTH))
ITEMS = Linked("items", ORDERS, number("items", "o"), number("orders", "o"))
PRICE = number("items", "p", 0, 9)

COUNTED = PerUnit(
    VISITS,
    "p",
    (),
    (
        ("n", UnitAggregate("count")),
        ("k", UnitAggregate("count_of", X)),
        ("s", UnitAggregate("sum", X)),
        ("lo", UnitAggregate("min", X)),
        ("t", UnitAggregate("max", T)),
        ("d", UnitAggregate("distinct", G)),
    ),
)
KEYED = PerUnit(
    VISITS,
    "p",
    (("g", G), ("b", B), ("t", T)),
    (("N", UnitAggregate("count")), ("n", UnitAggregate("sum", X))),
)
BY_DATE = ((T, False), (X, True), (R, False))


def window(kind, of=None, order=BY_DATE, partition=(), **words):
    return WindowFunction(kind, of, partition, order, **words)


WINDOWS = {
    "row_number": window("row_number"),
    "row_number of groups": window("row_number", partition=(G,)),
    "rank": window("rank", order=((T, False),)),
    "dense_rank": window("dense_rank", order=((T, True), (B, False)), partition=(B,)),
    "lag": window("lag", X),
    "lag of dates": window("lag", T, offset=2),
    "lead": window("lead", X, partition=(G,)),
    "first": window("first", X),
    "sum": window("sum", X, ()),
    "sum of peers": window("sum", X, ((T, False),), rows=False),
    "sum so far": window("sum", X),
    "count": window("count", order=()),
    "count of peers": window("count", order=((T, False),), rows=False),
    "count so far": window("count_of", X, partition=(B,)),
    "min so far": window("min", X),
    "max of peers": window("max", X, ((T, False),), rows=False),
    "max": window("max", X, ()),
}
SAME_WARD = ((G, H),)
SMALLER = Compare("<", Y, number("visits", "x", -5, 5))
RELATIONS = {
    "counted": (
        COUNTED,
        (),
        (*(number("p", name, 0, 40) for name in ("n", "k", "d")), number("p", "s"), number("p", "lo")),
    ),
    "counted, as keys": (
        COUNTED,
        (number("p", "n", 0, 9), Read("p", "t", T.of)),
        (ONE, number("p", "s", -4, 4)),
    ),
    "keyed": (
        KEYED,
        (text("p", "g"), Read("p", "b", Type(TRUTH))),
        (ONE, number("p", "N"), number("p", "n", 0, 60)),
    ),
    "only keys": (PerUnit(VISITS, "p", (("g", G),)), (text("p", "g"),), (ONE,)),
    "having": (
        Filtered(COUNTED, Compare(">", number("p", "n"), whole(12))),
        (),
        (ONE, number("p", "s", 0, 9)),
    ),
    "grouped twice": (
        PerUnit(
            KEYED, "q", (), (("m", UnitAggregate("max", number("p", "N"))), ("n", UnitAggregate("count")))
        ),
        (number("q", "m"),),
        (number("q", "n"), ONE),
    ),
    **{
        f"window {name}": (
            Windowed(VISITS, "w", (("v", made),)),
            (G, Read("w", "v", T.of) if made.of is T else number("w", "v", -9, 60)),
            (ONE, X),
        )
        for name, made in WINDOWS.items()
    },
    "windows": (
        Filtered(
            Windowed(
                VISITS, "w", (("N", WINDOWS["row_number"]), ("n", WINDOWS["lag"]), ("m", WINDOWS["sum"]))
            ),
            Compare("<=", number("w", "N"), whole(3)),
        ),
        (B,),
        (number("w", "n", -9, 9), number("w", "m"), ONE),
    ),
    **{
        f"paired {kind}": (Paired(VISITS, CALLS, (), kind), (H,), (ONE, X, Y))
        for kind in ("inner", "left", "full")
    },
    **{
        f"paired {kind} on more": (Paired(VISITS, CALLS, SAME_WARD, kind), (G,), (ONE, Y))
        for kind in ("left", "full")
    },
    **{f"{kind}": (Paired(VISITS, CALLS, (), kind), (G,), (ONE, X)) for kind in ("semi", "anti")},
    **{
        f"{kind} on more": (Paired(VISITS, CALLS, SAME_WARD, kind), (G,), (ONE, X))
        for kind in ("semi", "anti")
    },
    **{
        f"{kind} if": (Paired(VISITS, CALLS, SAME_WARD, kind, SMALLER), (G,), (ONE, X))
        for kind in ("inner", "left", "semi", "anti")
    },
    "left if, its columns": (Paired(VISITS, CALLS, (), "left", SMALLER), (H, G), (ONE, Y)),
    "left without a match": (Filtered(Paired(VISITS, CALLS, (), "left"), IsNull(H)), (G,), (ONE,)),
    "stacked": (
        Stacked("s", ("x", "g"), ((VISITS, (X, G)), (Filtered(CALLS, Not(IsNull(H))), (Y, H)))),
        (text("s", "g"),),
        (number("s", "x", -2, 3), ONE),
    ),
    "projected": (
        Stacked(
            "s",
            ("x", "X"),
            ((VISITS, (number("visits", "x", 0, 9), Arithmetic("+", number("visits", "x", 0, 9), ONE))),),
        ),
        (),
        (number("s", "x"), number("s", "X", 0, 5)),
    ),
    "joined to itself": (Paired(VISITS, Private("visits", "v")), (), (ONE, number("v", "x", 0, 5))),
    "linked": (ITEMS, (number("items", "p"),), (ONE, PRICE)),
    "linked twice": (
        Linked("parts", ITEMS, number("parts", "i"), number("items", "p")),
        (number("parts", "q"),),
        (ONE,),
    ),
    "linked and joined": (
        Paired(ORDERS, ITEMS, ((number("orders", "o"), number("items", "o")),), "left"),
        (number("orders", "o"),),
        (ONE, PRICE),
    ),
    "linked and counted": (
        PerUnit(ITEMS, "p", (("o", number("items", "o")),), (("s", UnitAggregate("sum", PRICE)),)),
        (number("p", "s"),),
        (ONE, number("p", "o", 0, 20)),
    ),
    "looked up twice": (
        Lookup(
            Lookup(VISITS, "wards", ((G, text("wards", "code")),)),
            "wards",
            ((G, text("w", "code")),),
            keep=True,
            name="w",
        ),
        (number("w", "beds"),),
        (ONE, number("wards", "beds")),
    ),
    "all together": (
        Filtered(
            PerUnit(
                Windowed(
                    Paired(COUNTED, ITEMS, (), "left"),
                    "w",
                    (("v", window("row_number", order=((PRICE, False),))),),
                ),
                "q",
                (("p", PRICE),),
                (
                    ("v", UnitAggregate("max", number("w", "v"))),
                    ("n", UnitAggregate("min", number("p", "n"))),
                ),
            ),
            Compare("<", number("q", "v"), whole(40)),
        ),
        (number("q", "p"),),
        (number("q", "v"), number("q", "n"), ONE),
    ),
    "rows stacked": (
        Stacked(
            "s",
            ("x",),
            ((Private("points"), (number("points", "x"),)), (Private("dots"), (number("dots", "x"),))),
        ),
        (number("s", "x"),),
        (ONE,),
    ),
}


def questions(step=1):
    wide = {"linked", "counted", "window sum", "stacked"}
    for place, (name, (rows, keys, features)) in enumerate(RELATIONS.items()):
        narrow = tuple(of for of in features if of.type.reach <= 2**20)
        if place % step and name not in wide:
            continue
        yield name, BoundedSums(rows, keys, narrow, RowScheme(5, 1024))
        yield f"{name}, once", BoundedSums(rows, keys, (), OnceScheme())
        if name in wide:
            yield f"{name}, norm", BoundedSums(rows, keys, narrow, NormScheme(100, 4096, (1,) * len(narrow)))
            yield f"{name}, mass", BoundedSums(rows, keys, features, MassScheme(40, 4096))


def arrows():
    return {
        name: pa.table(
            {column: pa.array([row[column] for row in TABLES[name]], kind) for column, kind in schema.items()}
        )
        for name, schema in SCHEMAS.items()
    }


def check(engine, step=1):
    asked_questions = list(questions(step))
    for name, asked in asked_questions:
        assert engine.sums(asked) == REFERENCE.sums(asked), name
    for name in ("counted", "linked", "paired full"):
        rows, keys, _ = RELATIONS[name]
        asked = UnitSizes(rows, keys, (1, 2, 5), 2)
        assert engine.sizes(asked) == REFERENCE.sizes(asked), name
    return len(asked_questions)


SQL = {pa.int64(): "bigint", pa.string(): "text", pa.bool_(): "boolean", pa.date32(): "date"}


def fill_postgres(dsn):
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, schema in SCHEMAS.items():
            connection.execute(
                f'CREATE TABLE "{name}" ({", ".join(f"{c} {SQL[k]}" for c, k in schema.items())})'
            )
            with connection.cursor() as cursor, cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in TABLES[name]:
                    copy.write_row(tuple(row.values()))


def spark_frames(session):
    return {
        name: session.createDataFrame(
            [tuple(row.values()) for row in TABLES[name]],
            ", ".join(f"{c} {SQL[k].replace('text', 'string')}" for c, k in schema.items()),
        )
        for name, schema in SCHEMAS.items()
    }


def test_duckdb_has_the_numbers_of_the_reference():
    assert check(engines.duckdb(arrows(), units=UNITS)) > 10


def test_polars_has_the_numbers_of_the_reference():
    polars = pytest.importorskip("polars")
    frames = {name: polars.from_arrow(table) for name, table in arrows().items()}
    assert check(engines.polars(frames, units=UNITS)) > 10


def test_polars_has_them_of_lazy_frames():
    polars = pytest.importorskip("polars")
    frames = {name: polars.from_arrow(table).lazy() for name, table in arrows().items()}
    assert check(engines.polars(frames, units=UNITS), step=3) > 10


def test_postgres_has_the_numbers_of_the_reference(postgres_database):
    fill_postgres(postgres_database)
    engine = engines.postgres(postgres_database, {name: name for name in TABLES}, units=UNITS)
    assert check(engine) > 10
    engine.close()


def test_spark_has_the_numbers_of_the_reference(spark_session):
    engine = engines.spark(spark_session, spark_frames(spark_session), units=UNITS)
    assert check(engine, step=5) > 10
    engine.close()


def test_rows_that_are_equal_in_the_order_are_told_apart_by_what_they_are_and_never_by_their_place():
    polars = pytest.importorskip("polars")
    tied = ("row_number", "lag", "first", "sum")
    answers = set()
    for seed, kind in itertools.product(range(3), ("duckdb", "polars")):
        tables = arrows()
        order = list(range(tables["visits"].num_rows))
        random.Random(seed).shuffle(order)
        tables["visits"] = tables["visits"].take(order)
        if kind == "polars":
            tables = {name: polars.from_arrow(table) for name, table in tables.items()}
        engine = getattr(engines, kind)(tables, units=UNITS)
        functions = tuple(
            (name, window(name, None if name == "row_number" else X, ((B, False),))) for name in tied
        )
        reads = tuple(number("w", name, -100, 100) for name in tied)
        asked = BoundedSums(Windowed(VISITS, "w", functions), (G, reads[0]), reads, RowScheme(9, 64))
        answers.add(repr(sorted(engine.sums(asked).items(), key=repr)))
    assert len(answers) == 1


def test_what_does_not_stay_with_a_unit_is_refused():
    engine = engines.duckdb(arrows(), units=UNITS)
    points = Private("points")
    for rows in (
        Paired(VISITS, VISITS),
        Paired(points, Private("dots")),
        PerUnit(points, "p"),
        Windowed(points, "w", (("v", window("row_number", order=())),)),
        Private("items"),
        Linked("visits", ORDERS, R, number("orders", "o")),
        Linked("wards", ORDERS, number("wards", "beds"), number("orders", "o")),
        Lookup(VISITS, "items", ((R, number("items", "o")),)),
        Stacked("s", ("x",), ((VISITS, (X,)), (points, (number("points", "x"),)))),
    ):
        with pytest.raises(RefusedQuestion) as caught:
            engine.sums(BoundedSums(rows, (), (ONE,), RowScheme(1, 1)))
        assert caught.value.code in {"DP701", "DP703"}, rows
