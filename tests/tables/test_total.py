# SPDX-License-Identifier: Apache-2.0
"""No row decides whether there is an answer: the extreme and the invalid values of every type, on every engine.

Each column of a table is grouped by, counted, summed, cut into buckets (as quantiles are), filtered by and used as the
unit. What does not fit is NULL or the nearest bound, row by row; what cannot be read at all is refused by its type.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import DiscreetError, RefusedQuestion
from discreet.tables import engines
from discreet.tables.algebra.expr import (
    Arithmetic,
    Bucket,
    Case,
    Compare,
    Constant,
    DatePart,
    IsNull,
    Like,
    Read,
)
from discreet.tables.algebra.sums import (
    BoundedSums,
    Filtered,
    GroupScheme,
    MassScheme,
    NormScheme,
    OnceScheme,
    Private,
    RowScheme,
    UnitSizes,
)
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type
from discreet.tables.data.readers.sound import sanitize, sanitize_for_spark
from discreet.tables.engines.results import _WHOLE
from tests.postgres import database
from tests.tables.test_conformance import whole

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

ONE = whole(1)
_NUMBERS = (Type(NUMBER, -10, 10), Type(NUMBER, -WIDEST, WIDEST), Type(NUMBER, 0, 60 << 10, 10))
#: What each kind of column is read as.
READ_AS = {
    "integer": _NUMBERS,
    "real": _NUMBERS,
    "decimal": _NUMBERS,
    "boolean": (Type(TRUTH), *_NUMBERS),
    "text": (Type(TEXT), *_NUMBERS),
    "date": (_WHOLE["date"], Type(DATE, -10, 10)),
    "timestamp": (_WHOLE["timestamp"], Type(MOMENT, -(10**6), 10**6), Type(MOMENT, -WIDEST, WIDEST)),
}


def questions(table, column, of):
    """Everything that is done with a column."""
    rows, read = Private(table), Read(table, column, of)
    known = Case(((IsNull(read), whole(0)),), ONE)
    wide = of.is_ordered and of.high == WIDEST
    keyed = () if wide and of.kind == MOMENT else (read,)
    yield BoundedSums(rows, keyed, (ONE, known), RowScheme(1, 4))
    yield BoundedSums(rows, keyed, (), GroupScheme(3, 4, 2))
    yield BoundedSums(rows, keyed, (), OnceScheme())
    if of.is_ordered:
        cells = Arithmetic("+", read, whole(0)) if of.kind != NUMBER else read
        if of.kind == NUMBER and not of.places:
            yield BoundedSums(rows, (), (known, cells), NormScheme(3, 4, (1, 1)))
            yield BoundedSums(rows, (), (cells,), MassScheme(3, 4))
        yield BoundedSums(rows, (Bucket(read, (-5, 0, 5)),), (ONE,), RowScheme(1, 4))
        yield BoundedSums(Filtered(rows, Compare(">", cells, whole(0))), (), (ONE,), RowScheme(1, 4))
    if of.kind in {DATE, MOMENT} and not wide:
        yield BoundedSums(rows, (DatePart("year", read), DatePart("isodow", read)), (ONE,), RowScheme(1, 4))
    if of.kind == TEXT:
        for text in ("a", "é", "", "\\"):
            same = Compare("=", read, Constant(text, Type(TEXT)))
            yield BoundedSums(Filtered(rows, same), keyed, (ONE,), RowScheme(1, 4))
        for pattern in ("%", "_", "a%\\_"):
            yield BoundedSums(Filtered(rows, Like(read, pattern)), keyed, (ONE,), RowScheme(1, 4))
    yield UnitSizes(rows, keyed, (1, 2), 2)


def is_within(part, of):
    """Whether what comes back is a value of the type that was asked for."""
    kinds = {NUMBER: int, TEXT: str, TRUTH: bool, DATE: date, MOMENT: datetime}
    if part is None:
        return True
    if of.kind == TEXT:
        part.encode()  # a text that nobody could write down would make what follows fail
    return type(part) is kinds[of.kind] and (of.kind != NUMBER or of.low <= part <= of.high)


def unread(engine, table):
    """The columns of which no question can be asked; every other question is answered."""
    left_out = []
    for column, kind in engine.columns(table).items():
        if kind == "other":
            with pytest.raises(RefusedQuestion):
                engine.sums(
                    BoundedSums(Private(table), (Read(table, column, Type(TEXT)),), (ONE,), RowScheme(1, 1))
                )
            left_out.append(column)
            continue
        for of in READ_AS[kind]:
            for asked in questions(table, column, of):
                try:
                    answer = engine.sizes(asked) if isinstance(asked, UnitSizes) else engine.sums(asked)
                except DiscreetError as error:
                    raise AssertionError((engine.name, column, of, asked)) from error
                if isinstance(asked, BoundedSums) and asked.keys == (Read(table, column, of),):
                    assert all(is_within(part, of) for (part,) in answer)
    return left_out


def unread_units(open_with_unit, table, columns):
    """The columns that cannot be a unit; with every other one, people are counted."""
    left_out = []
    for column in columns:
        engine = open_with_unit(column)
        try:
            counted = engine.sums(BoundedSums(Private(table), (), (ONE,), RowScheme(1, 1)))
            assert 0 <= counted[()][0] <= 50
            assert engine.sums(BoundedSums(Private(table), (), (), OnceScheme()))[()][0] <= 50
        except RefusedQuestion:
            left_out.append(column)
        engine.close()
    return left_out


# --- DuckDB ----------------------------------------------------------------------------------------

_WHOLES = {
    "TINYINT": 7,
    "SMALLINT": 15,
    "INTEGER": 31,
    "BIGINT": 63,
    "HUGEINT": 127,
}
DUCKDB = {
    **{kind: [str(-(2**bits)), str(2**bits - 1), "0"] for kind, bits in _WHOLES.items()},
    **{f"U{kind}": ["0", str(2 ** (bits + 1) - 1)] for kind, bits in _WHOLES.items()},
    **{
        key: ["'nan'", "'-nan'", "'inf'", "'-inf'", "1e-45", "3e38", "-0.0", "'1e308'"]
        for key in ("FLOAT", "DOUBLE")
    },
    "DECIMAL(38,38)": [
        "'0.99999999999999999999999999999999999999'",
        "'-0.00000000000000000000000000000000000001'",
    ],
    "DECIMAL(38,0)": [
        "'99999999999999999999999999999999999999'",
        "'-99999999999999999999999999999999999999'",
    ],
    "DECIMAL(4,2)": ["99.99", "-99.99"],
    "VARCHAR": [
        "''",
        "chr(0)",
        "'a' || chr(0) || 'b'",
        "chr(1114111)",
        "repeat('9', 100000)",
        "'-'",
        "'1e5'",
    ],
    "UUID": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'00000000-0000-0000-0000-000000000000'"],
    "BOOLEAN": ["true", "false"],
    "ENUM('a', '')": ["'a'", "''"],
    "DATE": ["'infinity'", "'-infinity'", "'5881580-07-10'", "'5877642-06-25 (BC)'", "'0001-01-01 (BC)'"],
    "TIMESTAMP": [
        "'infinity'",
        "'-infinity'",
        "'294247-01-10 04:00:54.775806'",
        "'290309-12-22 (BC) 00:00:00'",
        "'0001-01-01'",
    ],
    "TIMESTAMP_S": ["'infinity'", "'-infinity'", "'294247-01-10 04:00:54'", "'290309-12-22 (BC) 00:00:00'"],
    "TIMESTAMP_MS": [
        "'infinity'",
        "'-infinity'",
        "'294247-01-10 04:00:54.775'",
        "'290309-12-22 (BC) 00:00:00'",
    ],
    "TIMESTAMP_NS": ["'infinity'", "'-infinity'", "'2262-04-11 23:47:16.854775806'", "'1677-09-22'"],
    "TIMESTAMPTZ": [
        "'infinity'",
        "'-infinity'",
        "'294247-01-10 04:00:54.775806+00'",
        "'0001-01-01 (BC) 00:00:00+00'",
    ],
    "TIME": ["'24:00:00'"],
    "INTERVAL": ["INTERVAL 999999999 MONTHS"],
    "BLOB": ["'\\xFF'"],
    "BIT": ["'101'"],
    "INTEGER[]": ["[1]"],
    "STRUCT(a INTEGER)": ["{'a': 1}"],
}


def filled(connection, types):
    """A table with one column of each type, in which every value stands once beside NULL elsewhere."""
    names = {f"c{place}": kind for place, kind in enumerate(types)}
    columns = ", ".join(f'"{name}" {kind}' for name, kind in names.items())
    connection.execute(f"CREATE TABLE t (who integer, {columns})")
    for name, kind in names.items():
        for place, value in enumerate([*types[kind], "NULL"]):
            connection.execute(f'INSERT INTO t (who, "{name}") VALUES ({place % 3}, CAST({value} AS {kind}))')
    return names


def test_duckdb_is_total():
    connection = duckdb.connect()
    names = filled(connection, DUCKDB)
    engine = engines.duckdb({"t": (connection, "t")}, units={"t": "who"})
    others = [names[column] for column in unread(engine, "t")]
    assert others == ["UHUGEINT", "TIME", "INTERVAL", "BLOB", "BIT", "INTEGER[]", "STRUCT(a INTEGER)"]
    units = unread_units(lambda unit: engines.duckdb({"t": (connection, "t")}, units={"t": unit}), "t", names)
    assert [names[column] for column in units] == others


# --- Arrow, in DuckDB and in Polars ----------------------------------------------------------------

_ENDS = [-(2**63), 2**63 - 1, -(2**62), 2**62, 0, -1, 10**18, None]
_DAYS = [-(2**31), 2**31 - 1, -(2**31) + 1, 0, None]


def _raw(values, kind):
    """Numbers as they lie in memory, under another type."""
    plain = pa.int32() if kind == pa.date32() else pa.int64()
    return pa.array(values, plain).view(kind)


ARROW = {
    **{
        f"timestamp {unit} {zone}": _raw(_ENDS, pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "America/Los_Angeles")
    },
    "date32": _raw(_DAYS, pa.date32()),
    "uint64": pa.array([0, 2**64 - 1, None], pa.uint64()),
    "float32": pa.array([float("nan"), float("inf"), 3e38, -0.0, None], pa.float32()),
    "float64": pa.array([float("nan"), -float("inf"), 1e308, 5e-324, None], pa.float64()),
    "decimal": pa.array(
        [Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1"), None], pa.decimal128(38, 38)
    ),
    "dictionary": pa.array(["", "a\0", None, "\U0010ffff"]).dictionary_encode(),
    "large": pa.array(["9" * 100_000, "-", None], pa.large_string()),
    "truth": pa.array([True, False, None]),
}


def arrow_table(cells):
    """A table of one column, whose rows belong to three people."""
    return pa.table({"who": pa.array([place % 3 for place in range(len(cells))]), "c": cells})


@pytest.mark.parametrize("kind", list(ARROW))
def test_arrow_is_total(kind):
    table = arrow_table(ARROW[kind])
    for make, source in ((engines.duckdb, table), (engines.polars, polars.from_arrow(table))):
        engine = make({"t": source}, units={"t": "who"})
        assert unread(engine, "t") == []
        assert unread_units(lambda unit, m=make, s=source: m({"t": s}, units={"t": unit}), "t", ["c"]) == []
        engine.close()


@pytest.mark.parametrize("kind", [kind for kind in ARROW if kind.startswith(("timestamp", "date"))])
def test_parquet_is_total(kind, tmp_path):
    path = tmp_path / "t.parquet"
    try:
        pq.write_table(arrow_table(ARROW[kind]), path)
    except pa.ArrowInvalid:
        assert kind.startswith("timestamp s"), "Parquet has no seconds, and cannot multiply these"
        return
    for make in (engines.duckdb, engines.polars):
        engine = make({"t": path}, units={"t": "who"})
        assert unread(engine, "t") == []
        assert unread_units(lambda unit, m=make: m({"t": path}, units={"t": unit}), "t", ["c"]) == []
        engine.close()


def test_moments_mean_the_same_with_and_without_a_time_zone(tmp_path):
    """Milliseconds take another way than microseconds, and a time zone is a way to write a moment."""
    paris = [-1, 0, 1_710_037_800_000, None]
    moment = Arithmetic("+", Read("t", "c", _WHOLE["timestamp"]), whole(0))
    for unit, zone in ((unit, zone) for unit in ("ms", "us") for zone in (None, "UTC", "Europe/Paris")):
        cells = pa.array(paris, pa.timestamp("ms")).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, "UTC"))
        table = arrow_table(cells.cast(pa.timestamp(unit, zone)))
        pq.write_table(table, tmp_path / "t.parquet")
        for make, source in (
            (engines.duckdb, table),
            (engines.duckdb, tmp_path / "t.parquet"),
            (engines.duckdb, table.to_pandas()),
            (engines.polars, polars.from_arrow(table)),
            (engines.polars, tmp_path / "t.parquet"),
        ):
            engine = make({"t": source}, units={"t": "who"})
            assert engine.sums(BoundedSums(Private("t"), (moment,), (), OnceScheme())) == {
                (None if cell is None else cell * 1000,): (1,) for cell in paris
            }
            engine.close()


# --- PostgreSQL ------------------------------------------------------------------------------------

POSTGRES = {
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    **{
        key: ["'NaN'", "'Infinity'", "'-Infinity'", "1e-37", "-0.0", "1e37"]
        for key in ("real", "double precision")
    },
    "numeric": ["'NaN'", "'Infinity'", "'-Infinity'", "1e1000", "-1e1000", "1e-1000", "'0'"],
    "numeric(1000,1000)": ["1e-1000", "'NaN'", "-0.5"],
    "text": ["''", "'-'", "repeat('9', 100000)", "E'a\\nb'", "E'\\\\'"],
    "character(3)": ["'a'", "''"],
    "character varying(3)": ["'a '"],
    "name": ["'n'"],
    "uuid": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "boolean": ["true", "false"],
    "date": [
        "'infinity'",
        "'-infinity'",
        "'5874897-12-31'",
        "'4714-11-24 BC'",
        "'0001-01-01 BC'",
        "'10000-01-01'",
    ],
    **{
        key: [
            "'infinity'",
            "'-infinity'",
            "'294276-12-31 23:59:59.4'",
            "'294247-01-10 04:00:54.775808'",
            "'4714-11-24 00:00:00 BC'",
            "'0001-01-01 BC'",
        ]
        for key in ("timestamp", "timestamp(0)")
    },
    "timestamptz": [
        "'infinity'",
        "'-infinity'",
        "'294276-12-31 23:59:59.999999+00'",
        "'4714-11-24 00:00:00+00 BC'",
        "'2024-03-10 02:30:00+00'",
    ],
    "time": ["'24:00:00'"],
    "timetz": ["'24:00:00+15:59'"],
    "interval": ["'178000000 years'", "'-178000000 years'"],
    "money": ["'92233720368547758.07'", "'-92233720368547758.08'"],
    "bytea": ["'\\xff'"],
    "json": ["'{}'"],
    "jsonb": ["'{}'"],
    "integer[]": ["'{1}'"],
    "inet": ["'::1'"],
    "bit(3)": ["B'101'"],
    "daterange": ["'[-infinity,infinity]'"],
    "oid": ["4294967295"],
}
UNREADABLE = POSTGRES.keys() & {
    *("time", "timetz", "interval", "money", "bytea", "json", "jsonb", "integer[]", "inet", "bit(3)"),
    *("daterange", "oid"),
}


def test_postgres_is_total(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        names = filled(connection, POSTGRES)
    engine = engines.postgres(postgres_database, {"t": "t"}, units={"t": "who"})
    assert {names[column] for column in unread(engine, "t")} == UNREADABLE
    engine.close()
    units = unread_units(
        lambda unit: engines.postgres(postgres_database, {"t": "t"}, units={"t": unit}), "t", names
    )
    assert {names[column] for column in units} == UNREADABLE


#: Bytes that a database of an encoding can hold, and how many of them Python can read.
ENCODINGS = {
    "SQL_ASCII": ([b"a", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"a\xc3", b"\xf4\x90\x80\x80", b"\x80"], 2),
    "EUC_JP": ([b"a", b"\xc6\xfc\xcb\xdc", b"\xa9\xa1", b"a\xfe\xfe", b"\x8f\xfe\xfe", b"\x8e\xb1"], 3),
    "EUC_KR": ([b"a", b"\xb0\xa1", b"\xc9\xa1", b"\xfe\xfe"], 2),
    "WIN1252": ([b"a", b"\xe9", b"\x81", b"\x9d"], 2),
    "LATIN1": ([b"a", b"\xe9", b"\x81"], 3),
    "UTF8": ([b"a", b"\xc3\xa9", b"\xf4\x8f\xbf\xbf"], 3),
}


@pytest.fixture(params=list(ENCODINGS))
def encoded(request, postgres_dsn):
    """A database of an encoding, with a row for every text, twice: beside a person, and as the person."""
    psycopg = pytest.importorskip("psycopg")
    with database(postgres_dsn, encoding=request.param) as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (who integer, c text)")
            connection.execute(f"SET client_encoding = '{request.param}'")
            for place, text in enumerate(ENCODINGS[request.param][0]):
                escaped = "".join(f"\\x{byte:02x}" for byte in text)
                connection.execute(f"INSERT INTO t VALUES ({place}, E'{escaped}')".encode("ascii"))
        yield request.param, dsn


def test_texts_of_every_encoding_of_postgres_are_total(encoded):
    encoding, dsn = encoded
    texts, readable = ENCODINGS[encoding]
    engine = engines.postgres(dsn, {"t": "t"}, units={"t": "who"})
    word = Read("t", "c", Type(TEXT))
    answer = engine.sums(BoundedSums(Private("t"), (word,), (ONE,), RowScheme(1, 1)))
    unread_rows = {(None,): (len(texts) - readable,)} if readable < len(texts) else {}
    assert len(answer) == readable + len(unread_rows)
    assert answer["a",] == (1,)
    assert answer.items() >= unread_rows.items()
    for asked in questions("t", "c", Type(TEXT)):
        try:
            engine.sizes(asked) if isinstance(asked, UnitSizes) else engine.sums(asked)
        except RefusedQuestion:
            assert encoding.startswith("EUC_K"), "é is a character of all others"
    engine.close()
    people = engines.postgres(dsn, {"t": "t"}, units={"t": "c"})
    assert people.sums(BoundedSums(Private("t"), (), (), OnceScheme())) == {(): (len(texts),)}
    people.close()


# --- Spark -----------------------------------------------------------------------------------------

SPARK = {
    **{
        kind: [f"CAST({-(2**bits)} AS {kind})", f"CAST({2**bits - 1} AS {kind})"]
        for kind, bits in (("tinyint", 7), ("smallint", 15), ("int", 31))
    },
    "bigint": ["-9223372036854775807L - 1", "9223372036854775807L"],
    **{
        kind: [f"CAST('{word}' AS {kind})" for word in ("NaN", "Infinity", "-Infinity", "-0.0", "1e38")]
        for kind in ("float", "double")
    },
    "decimal(38,38)": ["0." + "9" * 38 + "BD", "-0." + "0" * 37 + "1BD"],
    "decimal(38,0)": ["9" * 38 + "BD", "-" + "9" * 38 + "BD"],
    "decimal(38,18)": ["9" * 20 + "." + "9" * 18 + "BD", "-0." + "0" * 17 + "1BD"],
    "string": [
        *(f"CAST(X'{raw}' AS STRING)" for raw in ("FF", "FE", "61C3", "EDA080", "00", "C3A9", "F4908080")),
        "''",
        "repeat('9', 10000)",
    ],
    "boolean": ["true", "false"],
    "date": [f"date_from_unix_date({days})" for days in (-(2**31), 2**31 - 1, -800000)],
    "timestamp": [
        f"timestamp_micros({micros})"
        for micros in ("-9223372036854775807L - 1", "9223372036854775807L", "-1L")
    ],
    "timestamp_ntz": [
        f"CAST('{text}' AS TIMESTAMP_NTZ)"
        for text in (
            "2024-03-10 02:30:00",
            "+294247-01-10 04:00:54.775807",
            "-290308-12-21 19:59:05.224192",
            "0001-01-01",
        )
    ],
    "binary": ["X'FF'"],
    "interval day to second": ["INTERVAL '106751991 04:00:54.775807' DAY TO SECOND"],
    "array<int>": ["array(1)"],
    "struct<a:int>": ["named_struct('a', 1)"],
}
FOREIGN = {"binary", "interval day to second", "array<int>", "struct<a:int>"}


def spark_frame(session, types):
    """One column of each type; values stand beside each other, so that there are few rows."""
    names = {f"c{place}": kind for place, kind in enumerate(types)}
    count = max(map(len, types.values())) + 1
    rows = []
    for place in range(count):
        cells = [(types[kind] + ["NULL"] * count)[place] for kind in names.values()]
        columns = [
            f"CAST({cell} AS {kind}) AS {name}"
            for cell, (name, kind) in zip(cells, names.items(), strict=True)
        ]
        rows.append(f"SELECT {place % 3} AS who, {', '.join(columns)}")
    return names, session.sql(" UNION ALL ".join(rows))


def one_answer(engine, table):
    """All columns in one question each way, because every question of Spark takes long; the columns left out."""
    kinds = engine.columns(table)
    reads = {
        name: [Read(table, name, of) for of in READ_AS[kind]]
        for name, kind in kinds.items()
        if kind != "other"
    }
    every = [read for column in reads.values() for read in column]
    keys = [read for read in every if not (read.of.kind == MOMENT and read.of.high == WIDEST)]
    numbers = [read for read in every if read.of.kind == NUMBER and not read.of.places]
    answer = engine.sums(BoundedSums(Private(table), tuple(keys), (ONE, *numbers), RowScheme(1, 4)))
    assert all(is_within(part, read.of) for key in answer for read, part in zip(keys, key, strict=True))
    parts = tuple(DatePart("year", read) for read in keys if read.of.kind in {DATE, MOMENT})
    buckets = tuple(Bucket(read, (-5, 0, 5)) for read in every if read.of.is_ordered)
    engine.sums(BoundedSums(Private(table), (*parts, *buckets), tuple(numbers), MassScheme(3, 4)))
    texts = [read for read in every if read.of.kind == TEXT]
    for condition in (Compare("=", texts[0], Constant("a\\'", Type(TEXT))), Like(texts[0], "%\\_")):
        engine.sums(BoundedSums(Filtered(Private(table), condition), tuple(texts), (ONE,), RowScheme(1, 4)))
    return [name for name, kind in kinds.items() if kind == "other"], answer


def test_spark_is_total(spark_session):
    names, frame = spark_frame(spark_session, SPARK)
    engine = engines.spark(spark_session, {"t": frame}, units={"t": "who"})
    left_out, _ = one_answer(engine, "t")
    assert {names[column] for column in left_out} == FOREIGN
    text = next(name for name, kind in names.items() if kind == "string")
    answer = engine.sums(BoundedSums(Private("t"), (Read("t", text, Type(TEXT)),), (), OnceScheme()))
    assert set(answer) == {(None,), ("\0",), ("é",), ("",), ("9" * 10000,)}
    engine.close()
    people = engines.spark(spark_session, {"t": frame}, units={"t": text})
    assert people.sums(BoundedSums(Private("t"), (), (), OnceScheme())) == {(): (9,)}, (
        "each of them is somebody"
    )
    people.close()
    some = [name for name, kind in names.items() if kind in {"double", "timestamp_ntz", *FOREIGN}]
    units = unread_units(
        lambda unit: engines.spark(spark_session, {"t": frame}, units={"t": unit}), "t", some
    )
    assert {names[column] for column in units} == FOREIGN


@pytest.mark.parametrize("kind", [kind for kind in ARROW if kind.startswith(("timestamp", "date"))])
def test_moments_on_their_way_to_spark_are_total(kind):
    cells = sanitize_for_spark(sanitize(arrow_table(ARROW[kind])), None).column("c").to_pylist()
    assert [cell is None for cell in cells] == ARROW[kind].is_null().to_pylist()
    assert all(cell is None or date.min.year <= cell.year <= date.max.year for cell in cells)
    at = pa.array([-1, 1_999, None]).view(pa.timestamp("ns"))
    assert sanitize_for_spark(sanitize(pa.table({"c": at})), None).column("c").to_pylist() == [
        datetime.fromisoformat("1969-12-31T23:59:59.999999"),
        datetime.fromisoformat("1970-01-01T00:00:00.000001"),
        None,
    ]
