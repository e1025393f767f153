# SPDX-License-Identifier: Apache-2.0
"""What engines owe beside the right numbers: order, threads, files, frames, odd types, and silence when they fail."""

from __future__ import annotations

import itertools
import math
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from discreet.errors import BadParameter, DiscreetError, EngineFailed, RefusedQuestion
from discreet.tables import engines
from discreet.tables.algebra.engine import guard_engine
from discreet.tables.algebra.expr import (
    Arithmetic,
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
    Logic,
    Modulo,
    Not,
    Quotient,
    Read,
    Scaled,
    align,
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
from discreet.tables.algebra.types import DATE, MOMENT, NUMBER, TEXT, TRUTH, WIDEST, Type, days
from tests.tables import nasty
from tests.tables.reference import Reference
from tests.tables.test_conformance import RID, every, number, whole, word

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

ONE = whole(1)
SCHEMES = [RowScheme(3, 4096), NormScheme(5, 4096, (1, 7)), GroupScheme(3, 1000, 2), OnceScheme()]


def opened(kind, tables, units):
    if kind == "polars":
        return engines.polars({name: polars.from_arrow(table) for name, table in tables.items()}, units=units)
    return engines.duckdb(tables, units=units)


# --- order and threads -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["duckdb", "polars"])
def test_the_order_of_rows_changes_nothing(kind):
    first = opened(kind, nasty.arrows(), nasty.UNITS)
    tables = nasty.arrows()
    count = tables["visits"].num_rows
    order = [place * 45 % count for place in range(count)]
    assert sorted(order) == list(range(count))
    tables["visits"] = tables["visits"].take(order)
    second = opened(kind, tables, nasty.UNITS)
    for asked in every(31).values():
        assert first.sums(asked) == second.sums(asked)


def many_rows():
    """300,000 rows of 20,000 people, and one person with a million."""
    place = np.arange(1_300_000, dtype=np.int64)
    people = np.where(place < 300_000, place * 7919 % 20_000, -1)
    cells = place * 104_729 % 1009
    reals = np.where(cells % 97 == 0, np.nan, cells / 8)
    names = pa.DictionaryArray.from_arrays(pa.array(place % 5, pa.int32()), ["a", "b", "c", "d", "é"])
    return pa.table({"u": people, "x": reals, "g": names.cast(pa.string())})


def closed_form(table, scheme):
    """The same sums by sorting: an algorithm that no engine uses."""
    people, groups = table["u"].to_numpy(), table["g"].to_numpy(zero_copy_only=False)
    cells = np.floor(np.nan_to_num(np.clip(table["x"].to_numpy(), 0, 100), nan=0.0)).astype(np.int64)
    names = sorted(set(groups.tolist()))
    codes = np.array([names.index(name) for name in names])[np.searchsorted(names, groups)]
    keys, inverse = np.unique(people * len(names) + codes, return_inverse=True)
    counts, sums = np.bincount(inverse), np.bincount(inverse, weights=cells).astype(np.int64)
    units, which = np.unique(keys // len(names), return_inverse=True)
    if isinstance(scheme, RowScheme):
        size = np.bincount(which, weights=counts).astype(np.int64)
        weights = np.where(size <= scheme.most, scheme.fine, scheme.most * scheme.fine // size)
    else:
        steps = [counts, -(-sums // scheme.cells[1])]
        square = sum(np.bincount(which, weights=(step * step).astype(float)) for step in steps)
        root = [scheme.most * scheme.fine // (math.floor(math.sqrt(q)) + 2) for q in square]
        weights = np.where(square <= scheme.most**2, scheme.fine, root)
    assert len(weights) == len(units)
    answer = {name: [0, 0] for name in names}
    for key, count, total, weight in zip(
        keys.tolist(), counts.tolist(), sums.tolist(), weights[which].tolist(), strict=True
    ):
        pair = answer[names[key % len(names)]]
        pair[0] += weight * count
        pair[1] += weight * total
    return {(name,): tuple(pair) for name, pair in answer.items()}


def test_a_million_rows_of_one_person_and_any_number_of_threads():
    table = many_rows()
    features = (ONE, Quotient(number("x", 0, 800, 3, "t"), Constant(8, Type(NUMBER, 8, 8, 3))))
    asked = {scheme: BoundedSums(Private("t"), (word("g", "t"),), features, scheme) for scheme in SCHEMES[:2]}
    expected = {scheme: closed_form(table, scheme) for scheme in asked}
    for threads in (1, 4):
        engine = engines.duckdb({"t": table}, units={"t": "u"})
        engine._temporary.connection.execute(f"SET threads = {threads}")
        assert {scheme: engine.sums(sums) for scheme, sums in asked.items()} == expected
        engine.close()
    engine = opened("polars", {"t": table}, {"t": "u"})
    assert {scheme: engine.sums(sums) for scheme, sums in asked.items()} == expected
    assert engine.sizes(UnitSizes(Private("t"), (), (15, 10**6 - 1), 1)) == (20_000, 0, 1)


# --- expressions of any shape ----------------------------------------------------------------------

_NUMBERS = st.sampled_from(
    [
        number("small", -100, 100),
        number("i", -50, 50),
        number("i", -WIDEST, WIDEST),
        number("x", -(2**20), 2**20, 10),
        number("money", 0, 60 << 4, 4),
        number("tn", -9, 9),
        whole(3),
        whole(-2),
        whole(0),
        Constant(None, Type(NUMBER)),
    ]
)
_TRUTHS = st.sampled_from([Read("visits", "b", Type(TRUTH)), IsNull(word("t")), Constant(None, Type(TRUTH))])


def made(build):
    """What a builder makes of its parts, unless their bounds do not allow it."""

    def attempt(*parts):
        try:
            expr = build(*parts)
            assert expr.type is not None
        except RefusedQuestion:
            assume(False)
        return expr

    return attempt


def _deeper(inner):
    pair = st.tuples(inner, inner).map(lambda two: align(*two))
    truths = st.one_of(
        _TRUTHS,
        st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), pair).map(
            lambda x: made(Compare)(x[0], *x[1])
        ),
        st.tuples(inner, st.lists(st.integers(-9, 9), max_size=4)).map(lambda x: IsIn(x[0], tuple(x[1]))),
    )
    both = st.tuples(st.sampled_from(["and", "or"]), st.lists(truths, min_size=1, max_size=3))
    logic = st.one_of(truths, both.map(lambda x: Logic(x[0], tuple(x[1]))), truths.map(Not))
    edges = st.sets(st.integers(-2000, 2000), max_size=9).map(lambda x: tuple(sorted(x)))
    return st.one_of(
        st.tuples(st.sampled_from("+-"), pair).map(lambda x: made(Arithmetic)(x[0], *x[1])),
        st.tuples(inner, inner).map(lambda x: made(lambda a, b: Arithmetic("*", a, b))(*x)),
        st.tuples(inner, inner).map(
            lambda x: made(lambda a, b: Quotient(a, b, max(a.type.places - b.type.places, 0)))(*x)
        ),
        inner.map(made(lambda x: Scaled(x, x.type.places + 3))),
        st.tuples(inner, st.integers(1, 99)).map(
            made(lambda x: Modulo(x[0], x[1]) if not x[0].type.places else x[0])
        ),
        st.tuples(st.sampled_from(["least", "greatest"]), pair).map(lambda x: Extreme(*x)),
        inner.map(lambda x: Clamp(x, -7, 1000)),
        st.tuples(logic, pair).map(lambda x: made(lambda c, two: Case(((c, two[0]),), two[1]))(*x)),
        pair.map(made(Coalesce)),
        st.tuples(inner, edges).map(lambda x: Bucket(*x)),
    )


EXPRESSIONS = st.recursive(_NUMBERS, _deeper, max_leaves=6)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.lists(EXPRESSIONS, min_size=6, max_size=6))
def test_expressions_of_any_shape_agree(exprs):
    from tests.tables.nasty import REFERENCE

    try:
        asked = BoundedSums(Private("visits"), (RID, *exprs), (), OnceScheme())
        for expr in exprs:
            assert expr.type.low <= expr.type.high
    except RefusedQuestion:
        assume(False)
    expected = REFERENCE.sums(asked)
    for key in expected:
        for expr, cell in zip(exprs, key[1:], strict=True):
            assert cell is None or expr.type.low <= cell <= expr.type.high
    assert DUCK.sums(asked) == expected
    assert BEAR.sums(asked) == expected


DUCK, BEAR = (opened(kind, nasty.arrows(), nasty.UNITS) for kind in ("duckdb", "polars"))


# --- DuckDB prepares -------------------------------------------------------------------------------


def test_what_was_prepared_serves_the_next_question():
    engine = opened("duckdb", nasty.arrows(), nasty.UNITS)
    group, amount = word("g"), number("small", -9, 9)
    rows = BoundedSums(Private("visits"), (group,), (ONE, amount), RowScheme(3, 4096))
    engine.sums(rows)
    made = engine._temporary.made
    engine.sums(BoundedSums(Private("visits"), (), (amount,), RowScheme(1, 64)))
    assert engine._temporary.made == made
    engine.sums(
        BoundedSums(Private("visits"), (word("t"),), (ONE,), RowScheme(3, 4096))
    )  # one more column: made again
    assert engine._temporary.made > made
    engine.sums(rows)
    pairs = BoundedSums(Private("visits"), (group,), (ONE,), NormScheme(3, 64, (1,)))
    first, made = engine.sums(pairs), engine._temporary.made
    assert engine.sums(pairs) == first
    assert engine._temporary.made == made
    for most in range(8):  # only the last few are kept
        engine.sums(
            BoundedSums(
                Filtered(Private("visits"), Compare(">", amount, whole(most))),
                (group,),
                (ONE,),
                RowScheme(3, 64),
            )
        )
    kept = "SELECT COUNT(*) FROM duckdb_tables() WHERE temporary"
    assert engine._temporary.connection.execute(kept).fetchone()[0] <= 7
    engine.close()


def test_whatever_counts_rows_or_units_in_the_same_groups_is_made_from_the_same_pairs():
    engine, group = opened("duckdb", nasty.arrows(), nasty.UNITS), word("g")
    reference = Reference(nasty.TABLES, nasty.UNITS)

    def made(features, scheme, present=0):
        """How many tables a question makes; its answer is right."""
        asked = BoundedSums(Private("visits"), (group,), features, scheme, present)
        before = engine._temporary.made
        assert engine.sums(asked) == reference.sums(asked)
        return engine._temporary.made - before

    made((ONE,), NormScheme(3, 64, (1,)))
    assert made((ONE,), NormScheme(3, 64, (1,))) == 0
    assert made((), NormScheme(2, 64, (1,)), present=1) == 1  # other weights, of the same pairs
    assert made((), GroupScheme(3, 64, 2)) == 1  # rows and groups of each unit
    assert made((), GroupScheme(2, 4096, 1)) == 0
    assert made((ONE,), RowScheme(2, 64)) == 0
    assert made((), OnceScheme()) == 0
    sizes = UnitSizes(Private("visits"), (group,), (1, 2, 4), 2)
    before = engine._temporary.made
    assert engine.sizes(sizes) == reference.sizes(sizes)
    assert engine._temporary.made == before
    engine.close()


def test_a_real_unit_of_two_spellings_is_one_unit_in_parts_too(monkeypatch):
    from discreet.tables.engines import in_polars

    monkeypatch.setattr(in_polars, "_ROWS_AT_ONCE", 1)
    rows = polars.DataFrame({"u": [0.0, -0.0] * 8, "g": ["a"] * 16})
    engine = engines.polars({"t": rows}, units={"t": "u"})
    group = Read("t", "g", Type(TEXT))
    counted = BoundedSums(Private("t"), (group,), (ONE,), RowScheme(4, 64))
    assert engine.sums(counted) == {("a",): (4 * 64,)}


def test_polars_makes_the_pairs_of_key_selection_and_of_its_sums_once(monkeypatch):
    from discreet.tables.engines import in_polars

    grouped = []
    made = in_polars.Polars._group_pairs
    monkeypatch.setattr(
        in_polars.Polars, "_group_pairs", lambda *these: [grouped.append(these[1]), made(*these)][1]
    )
    engine, group = opened("polars", nasty.arrows(), nasty.UNITS), word("g")
    reference, amount = Reference(nasty.TABLES, nasty.UNITS), number("small", -9, 9)
    weights = BoundedSums(Private("visits"), (group,), (ONE, amount), GroupScheme(3, 64, 2))
    engine.selected_groups(weights, lambda found: np.arange(found.size))
    for features, scheme in [
        ((ONE,), NormScheme(3, 64, (1,))),
        ((amount,), MassScheme(9, 64)),
        ((ONE, amount), RowScheme(2, 64)),
        ((), GroupScheme(2, 4096, 1)),
    ]:
        asked = BoundedSums(Private("visits"), (group,), features, scheme)
        assert engine.sums(asked) == reference.sums(asked)
    assert len(grouped) == 1
    other = BoundedSums(Private("visits"), (group,), (number("small", -8, 9),), MassScheme(9, 64))
    assert engine.sums(other) == reference.sums(other)
    assert len(grouped) == 2


@pytest.mark.parametrize("texts", [9_999, 10_001])
def test_keys_are_chosen_with_and_without_a_list_of_texts(texts):
    table = pa.table({"u": [place % 7 for place in range(texts)], "g": [f"{n}" for n in range(texts)]})
    engine, group = engines.duckdb({"t": table}, units={"t": "u"}), word("g", "t")
    some = Filtered(Private("t"), IsIn(group, ("0", "7", "14", "8", "x")))
    asked = BoundedSums(some, (group,), (ONE,), NormScheme(1, 4096, (1,)))
    weights = {"0": 4096 // 3, "7": 4096 // 3, "14": 4096 // 3, "8": 4096}  # ⌊√3⌋ + 2 is 3
    assert engine.sums(asked) == {(text,): (weight,) for text, weight in weights.items()}
    engine.close()


def test_no_statement_has_a_window_a_random_number_or_an_order(monkeypatch):
    engine = opened("duckdb", nasty.arrows(), nasty.UNITS)
    said = []
    connection = engine._temporary.connection

    class Listening:
        def execute(self, statement):
            said.append(statement.upper())
            return connection.execute(statement)

    monkeypatch.setattr(engine._temporary, "connection", Listening())
    for asked in every(23).values():
        engine.sums(asked)
    assert len(said) > 20
    for statement in said:
        assert not {"OVER(", "RANDOM", "ORDER BY", "HASH(", "SAMPLE"} & set(
            statement.replace(" (", "(").split()
        )
        assert " OVER (" not in statement
        assert "ORDER BY" not in statement


# --- what does not leave ---------------------------------------------------------------------------


def wanted_questions():
    """Questions with keys of every kind, and some groups that are wanted, of which some are nowhere."""
    reads = {
        word("t"): ["a", None, "nowhere", "a\\b"],
        number("small", -9, 9): [0, 3, None, 8],
        Read("visits", "b", Type(TRUTH)): [True, None],
        Read("visits", "d", Type(DATE, -9, 9)): [date(1970, 1, 1), date(1970, 1, 5), None],
    }
    amount = number("i", 0, 50)
    for (read, values), scheme in itertools.product(reads.items(), [*SCHEMES, MassScheme(5, 64)]):
        features = () if isinstance(scheme, GroupScheme | OnceScheme) else (amount, amount)
        some = tuple((value,) for value in values)
        yield BoundedSums(Private("visits"), (read, word("g")), features, scheme, 0, some)
        yield BoundedSums(Private("visits"), (read,), features, scheme, 0, some)


@pytest.mark.parametrize("kind", ["duckdb", "polars"])
def test_groups_that_are_not_wanted_may_be_left_out_and_no_number_changes(kind):
    engine, reference = opened(kind, nasty.arrows(), nasty.UNITS), Reference(nasty.TABLES, nasty.UNITS)
    for asked in wanted_questions():
        expected = {key: row for key, row in reference.sums(asked).items() if key[:1] in asked.among}
        assert engine.sums(asked) == expected
    engine.close()


def test_postgres_leaves_out_groups_that_are_not_wanted(postgres_database):
    nasty.fill_postgres(postgres_database)
    engine = engines.postgres(postgres_database, {"visits": "visits"}, units={"visits": "u"})
    for asked in list(wanted_questions())[::3]:
        expected = {key: row for key, row in nasty.REFERENCE.sums(asked).items() if key[:1] in asked.among}
        assert engine.sums(asked) == expected
    engine.close()


@pytest.mark.parametrize("kind", ["duckdb", "polars"])
def test_a_wanted_text_that_cannot_be_said_is_looked_for_outside(kind):
    table = pa.table({"u": [1, 2, 3], "g": ["a\0", "b", "c"]})
    engine = opened(kind, {"t": table}, {"t": "u"})
    asked = BoundedSums(Private("t"), (word("g", "t"),), (ONE,), RowScheme(1, 1), 0, (("a\0",), ("b",)))
    assert engine.sums(asked).items() >= {("a\0",): (1,), ("b",): (1,)}.items()


@pytest.mark.parametrize("kind", ["duckdb", "polars"])
def test_groups_of_those_who_count_in_none_do_not_leave(kind):
    table = pa.table({"u": [0] * 5000 + [1, 2], "g": [str(n) for n in range(5000)] + ["0", "x"]})
    engine = opened(kind, {"t": table}, {"t": "u"})
    asked = BoundedSums(Private("t"), (word("g", "t"),), (), GroupScheme(1000, 4, 2))
    assert engine.sums(asked) == {("0",): (4,), ("x",): (4,)}


# --- sources ---------------------------------------------------------------------------------------

SMALL = pa.table({"u": [1, 1, 2, None], "x": [1.0, 2.0, math.nan, 9.0], "g": ["a", "b", "a", "a"]})
COUNT = BoundedSums(Private("t"), (word("g", "t"),), (ONE,), RowScheme(1, 2))
COUNTED = {("a",): (3,), ("b",): (1,)}


def sources(folder):
    pq.write_table(SMALL, folder / "one.parquet")
    pq.write_table(SMALL.slice(0, 1), folder / "part1.parquet")
    pq.write_table(SMALL.slice(1), folder / "part2.parquet")
    (folder / "t.csv").write_text("u,x,g\n1,1.0,a\n1,2,b\n2,NaN,a\n,9,a\n")
    connection = duckdb.connect()
    connection.register("arrow", SMALL)
    connection.execute('CREATE SCHEMA "My Shop"; CREATE TABLE "My Shop"."T t" AS SELECT * FROM arrow')
    return {
        "path": folder / "one.parquet",
        "text path": str(folder / "one.parquet"),
        "pattern": str(folder / "part*.parquet"),
        "csv": folder / "t.csv",
        "arrow": SMALL,
        "pandas": SMALL.to_pandas(),
        "polars": polars.from_arrow(SMALL),
        "lazy": polars.from_arrow(SMALL).lazy(),
        "relation": connection.sql('SELECT * FROM "My Shop"."T t"'),
        "table": (connection, "My Shop.T t"),
    }


def test_duckdb_takes_every_kind_of_source(tmp_path):
    for name, source in sources(tmp_path).items():
        engine = engines.duckdb({"t": source}, units={"t": "u"})
        assert engine.sums(COUNT) == COUNTED, name
        assert list(engine.columns("t")) == ["u", "x", "g"]
        engine.close()


def test_polars_takes_frames_and_files(tmp_path):
    kinds = sources(tmp_path)
    for name in ("path", "text path", "pattern", "polars", "lazy", "csv"):
        engine = engines.polars({"t": kinds[name]}, units={"t": "u"})
        assert engine.sums(COUNT) == COUNTED, name
        engine.close()


@pytest.mark.parametrize("make", [engines.duckdb, engines.polars])
def test_a_file_that_has_changed_is_not_counted(tmp_path, make):
    pq.write_table(SMALL, tmp_path / "t.parquet")
    engine = make({"t": tmp_path / "t.parquet"}, units={"t": "u"})
    assert engine.sums(COUNT) == COUNTED
    pq.write_table(SMALL.slice(0, 2), tmp_path / "t.parquet")
    with pytest.raises(EngineFailed) as caught:
        engine.sums(BoundedSums(Private("t"), (), (ONE,), RowScheme(1, 2), 1))
    assert caught.value.code == "DP803"


@pytest.mark.parametrize("make", [engines.duckdb, engines.polars])
def test_what_is_not_there_cannot_be_opened(tmp_path, make):
    (tmp_path / "bad.parquet").write_bytes(b"secret rows")
    for path in ("none.parquet", "bad.parquet"):
        with pytest.raises(EngineFailed) as caught:
            make({"t": tmp_path / path}, units={"t": "u"})
        assert caught.value.code == "DP802"
        assert "secret" not in str(caught.value)


def test_tables_of_two_databases_are_not_mixed():
    one, other = ((duckdb.connect(), "t") for _ in range(2))
    with pytest.raises(BadParameter):
        engines.duckdb({"a": one, "b": other}, units={})


def test_a_failing_engine_says_nothing_of_the_data():
    def work():
        raise ValueError("could not convert 'Ann has flu'")

    with pytest.raises(DiscreetError) as caught:
        guard_engine(work)
    assert caught.value.code == "DP801"
    assert "Ann" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_check_refuses_without_reading_a_row():
    engine = opened("duckdb", nasty.arrows(), nasty.UNITS)
    engine._temporary.connection.close()
    with pytest.raises(RefusedQuestion):
        engine.check(BoundedSums(Private("visits"), (number("nothing", 0, 1),), (ONE,), RowScheme(1, 1)))
    engine.check(BoundedSums(Private("visits"), (word("g"),), (ONE,), RowScheme(1, 1)))
    engine.check(UnitSizes(Private("visits"), (word("g"),), (1,), 2))


# --- types and values of one engine ----------------------------------------------------------------


def test_odd_types_of_duckdb_are_read_or_refused():
    connection = duckdb.connect()
    connection.execute("""
        CREATE TABLE t (u UUID, name VARCHAR COLLATE NOCASE, huge HUGEINT, big UBIGINT, mood ENUM ('sad', 'ok'),
          d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, ns TIMESTAMP_NS, ms TIMESTAMP_MS, s TIMESTAMP_S, l INTEGER[], tm TIME);
        INSERT INTO t VALUES
          ('00000000-0000-0000-0000-000000000001', 'Ann', 170141183460469231731687303715884105727,
           18446744073709551615, 'ok', 'infinity', 'infinity', 'infinity', TIMESTAMP_NS '1969-12-31 23:59:59.999999999',
           '1969-12-31 23:59:59.999', '1969-12-31 23:59:59', [1], '00:00'),
          ('00000000-0000-0000-0000-000000000001', 'ann', -170141183460469231731687303715884105728, 0, NULL,
           '-infinity', '-infinity', '-infinity', NULL, NULL, NULL, NULL, NULL),
          ('00000000-0000-0000-0000-000000000002', 'ANN', 5, 5, 'sad', '1970-01-02', '1970-01-01 00:00:01',
           '1970-01-01 01:00:00+01', TIMESTAMP_NS '1970-01-01 00:00:00.000001999', '1970-01-01 00:00:00.001',
           '1970-01-01 00:00:01', [2], '00:00');
    """)
    engine = engines.duckdb({"t": (connection, "t")}, units={"t": "u"})
    kinds = ["text", "text", "integer", "integer", "text", "date", *["timestamp"] * 5, "other", "other"]
    assert list(engine.columns("t").values()) == kinds
    moment = Type(MOMENT, -(10**9), 10**9)
    reads = [
        word("name", "t"),
        number("huge", -9, 9, 0, "t"),
        number("big", -9, 9, 0, "t"),
        word("mood", "t"),
    ]
    reads += [Read("t", "d", Type(DATE, -5, 5))]
    asked = BoundedSums(Private("t"), tuple(reads), (ONE,), GroupScheme(9, 4, 1))
    assert engine.sums(asked) == {
        ("Ann", 9, 9, "ok", date(1970, 1, 6)): (2,),
        ("ann", -9, 0, None, date(1969, 12, 27)): (2,),
        ("ANN", 5, 5, "sad", date(1970, 1, 2)): (4,),
    }
    moments = tuple(
        Arithmetic("+", Read("t", name, moment), whole(0)) for name in ("ts", "tz", "ns", "ms", "s")
    )
    assert engine.sums(BoundedSums(Private("t"), moments, (), OnceScheme())) == {
        (10**9, 10**9, -1, -1000, -(10**6)): (1,),
        (-(10**9), -(10**9), None, None, None): (1,),
        (10**6, 0, 1, 1000, 10**6): (1,),
    }
    named = engines.duckdb({"t": (connection, "t")}, units={"t": "name"})
    assert named.sums(BoundedSums(Private("t"), (), (), OnceScheme())) == {(): (3,)}, (
        "Ann, ann and ANN are three"
    )
    with pytest.raises(RefusedQuestion):
        engines.duckdb({"t": (connection, "t")}, units={"t": "l"}).sums(
            BoundedSums(Private("t"), (), (ONE,), RowScheme(1, 1))
        )


def test_odd_types_of_polars_are_read_or_refused():
    frame = polars.DataFrame(
        {
            "u": [1, 1, 2],
            "big": polars.Series([2**64 - 1, 0, 5], dtype=polars.UInt64),
            "mood": polars.Series(["ok", None, "sad"], dtype=polars.Enum(["sad", "ok"])),
            "word": polars.Series(["x", "y", "x"], dtype=polars.Categorical),
            "ns": polars.Series([-1, None, 1999], dtype=polars.Datetime("ns", "Asia/Tokyo")),
            "ms": polars.Series([-1, None, 2**62], dtype=polars.Datetime("ms")),
            "deep": polars.Series(
                [Decimal("-0.0000000000000000000000001"), None, Decimal(3)], dtype=polars.Decimal(38, 25)
            ),
            "many": [[1], [2], None],
        }
    )
    engine = engines.polars({"t": frame}, units={"t": "u"})
    kinds = ["integer", "integer", "text", "text", "timestamp", "timestamp", "decimal", "other"]
    assert list(engine.columns("t").values()) == kinds
    moment = Type(MOMENT, -(10**9), 10**9)
    keys = (
        number("big", -9, 9, 0, "t"),
        word("mood", "t"),
        word("word", "t"),
        number("deep", -9, 9 << 18, 18, "t"),
    )
    keys += tuple(Arithmetic("+", Read("t", name, moment), whole(0)) for name in ("ns", "ms"))
    assert engine.sums(BoundedSums(Private("t"), keys, (), OnceScheme())) == {
        (9, "ok", "x", -1, -1, -1000): (1,),
        (0, None, "y", None, None, None): (1,),
        (5, "sad", "x", 3 << 18, 1, 10**9): (1,),
    }
    with pytest.raises(RefusedQuestion):
        engine.sums(BoundedSums(Private("t"), (number("deep", -9, 9 << 19, 19, "t"),), (), OnceScheme()))


def test_odd_types_of_postgres_are_read_or_refused(postgres_database):
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("""
            CREATE TYPE mood AS ENUM ('sad', 'ok');
            CREATE DOMAIN score AS numeric(5,1);
            CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
            CREATE SCHEMA "Shop";
            CREATE TABLE "Shop"."T" (who text COLLATE blind, pad char(5), any_size numeric, s score, m mood, d date,
              ts timestamp, tz timestamptz, j json);
            INSERT INTO "Shop"."T" VALUES
              ('Ann', 'a', 'NaN', 'NaN', 'ok', 'infinity', 'infinity', '-infinity', '{}'),
              ('ann', 'a  ', 'Infinity', 1.5, 'sad', '-infinity', NULL, NULL, NULL),
              ('ANN', 'b', '-1e500', -0.1, NULL, '1970-01-02', '1970-01-01 00:00:01', '1970-01-01 01:00:00+01', NULL);
            CREATE VIEW people AS SELECT * FROM "Shop"."T";
        """)
    for table in ("Shop.T", "people"):
        engine = engines.postgres(postgres_database, {"t": table}, units={"t": "who"})
        assert list(engine.columns("t").values()) == [
            *["text", "text", "decimal", "decimal", "text", "date", "timestamp", "timestamp", "other"]
        ]
        moment = Type(MOMENT, -(10**9), 10**9)
        keys = [word("who", "t"), word("pad", "t"), number("any_size", -9 << 30, 9 << 30, 30, "t")]
        keys += [number("s", -9 << 1, 9 << 1, 1, "t"), word("m", "t"), Read("t", "d", Type(DATE, -5, 5))]
        keys += [Arithmetic("+", Read("t", name, moment), whole(0)) for name in ("ts", "tz")]
        assert engine.sums(BoundedSums(Private("t"), tuple(keys), (ONE,), RowScheme(1, 2))) == {
            ("Ann", "a", None, None, "ok", date(1970, 1, 6), 10**9, -(10**9)): (2,),
            ("ann", "a", 9 << 30, 3, "sad", date(1969, 12, 27), None, None): (2,),
            ("ANN", "b", -9 << 30, -1, None, date(1970, 1, 2), 10**6, 0): (2,),
        }
        engine.close()
    with pytest.raises(EngineFailed):
        engines.postgres(postgres_database, {"t": "nowhere"}, units={"t": "who"})


def test_an_identifier_and_a_text_are_never_sql():
    name = 'x"; DROP TABLE t; --'
    table = pa.table({"u": [1, 2], name: ["it's", "\\'; --"]})
    rows = Reference({"t": table.to_pylist()}, {"t": "u"})
    for kind in ("duckdb", "polars"):
        engine = opened(kind, {"t": table}, {"t": "u"})
        for text in ("it's", "\\'; --", "'", "''"):
            same = Compare("=", word(name, "t"), Constant(text, Type(TEXT)))
            asked = BoundedSums(Private("t"), (word(name, "t"), same), (ONE,), RowScheme(1, 1))
            assert engine.sums(asked) == rows.sums(asked)
        with pytest.raises(RefusedQuestion):
            engine.sums(
                BoundedSums(
                    Private("t"),
                    (Compare("=", word(name, "t"), Constant("\0", Type(TEXT))),),
                    (),
                    OnceScheme(),
                )
            )


def test_a_quotient_whose_numerator_would_overflow_is_refused():
    wide = Type(NUMBER, 0, 2**40)
    with pytest.raises(RefusedQuestion):
        _ = Quotient(Read("t", "a", wide), Read("t", "b", Type(NUMBER, 2**30, 2**31)), 23).type


def test_every_day_of_an_era_has_its_parts():
    """The arithmetic of the calendar against Python's own: 400 years, after which it repeats, and both ends."""
    first, last = days(date.min), days(date.max)
    every_day = [
        *range(first, first + 800),
        *range(days(date(1600, 1, 1)), days(date(2000, 1, 1))),
        *range(last - 800, last + 1),
    ]
    table = pa.table({"d": pa.array(every_day, pa.int32()).cast(pa.date32())})
    engine = engines.duckdb({"t": table}, units={"t": engines.ROW})
    day = Read("t", "d", Type(DATE, first, last))
    parts = tuple(DatePart(part, day) for part in ("year", "month", "day", "isodow", "quarter"))
    sums = engine.sums(BoundedSums(Private("t"), parts, (Arithmetic("+", day, whole(0)),), RowScheme(1, 1)))
    dates = [date.fromordinal(number_of_day - first + 1) for number_of_day in every_day]
    assert sums == {
        (at.year, at.month, at.day, at.isoweekday(), (at.month + 2) // 3): (days(at),) for at in dates
    }
