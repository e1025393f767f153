# SPDX-License-Identifier: Apache-2.0
"""The queries of TPC-H about customers, on a few made-up rows: answered as plain DuckDB does, or refused with a question that works."""

from __future__ import annotations

import random
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.errors import DiscreetError

pytest.importorskip("duckdb")
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
MONEY = pa.decimal128(15, 2)
KINDS = {
    "key": pa.int64(),
    "date": pa.date32(),
    "price": MONEY,
    "cost": MONEY,
    "discount": MONEY,
    "tax": MONEY,
    "bal": MONEY,
}
NATIONS = ("FRANCE", "GERMANY", "BRAZIL", "SAUDI ARABIA", "INDIA", "CHINA", "PERU")
REGIONS = ("EUROPE", "EUROPE", "AMERICA", "MIDDLE EAST", "ASIA", "ASIA", "AMERICA")
BRANDS = {"Brand#12": "SM BOX", "Brand#23": "MED BOX", "Brand#34": "LG CASE"}


@pytest.fixture(scope="module")
def tpch():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import tpch  # type: ignore[import-not-found]
    yield tpch
    for name in ("tpch", "tpch_queries"):
        sys.modules.pop(name, None)


def made_rows():
    draw = random.Random(5)
    money = lambda low, high: Decimal(draw.randrange(low, high)) / 100  # noqa: E731
    regions = sorted(set(REGIONS))
    rows = {
        "region": [{"r_regionkey": key, "r_name": name} for key, name in enumerate(regions)],
        "nation": [
            {"n_nationkey": key, "n_name": name, "n_regionkey": regions.index(region)}
            for key, (name, region) in enumerate(zip(NATIONS, REGIONS, strict=True))
        ],
        "supplier": [
            {
                "s_suppkey": key,
                "s_name": f"Supplier#{key}",
                "s_nationkey": key % len(NATIONS),
                "s_acctbal": money(-90_000, 900_000),
                "s_address": f"Street {key}",
                "s_phone": f"13-{key}",
                "s_comment": draw.choice(("plain", "a Customer with Complaints")),
            }
            for key in range(9)
        ],
        "part": [
            {
                "p_partkey": key,
                "p_name": draw.choice(("dark green", "pale red")),
                "p_type": draw.choice(("PROMO TIN", "ECONOMY ANODIZED STEEL", "SMALL BRASS")),
                "p_mfgr": f"Maker#{key % 3}",
                "p_brand": brand,
                "p_container": BRANDS[brand],
                "p_size": draw.choice((1, 3, 4, 9, 15)),
            }
            for key, brand in enumerate([*BRANDS] * 4)
        ],
    }
    rows["partsupp"] = [
        {"ps_partkey": part, "ps_suppkey": supplier, "ps_supplycost": money(100, 90_000), "ps_availqty": 5}
        for part in range(12)
        for supplier in range(9)
    ]
    rows["customer"] = [
        {
            "c_custkey": key,
            "c_name": f"Customer#{key}",
            "c_nationkey": draw.randrange(len(NATIONS)),
            "c_phone": draw.choice(("13-1", "31-2", "23-3", "11-4")),
            "c_acctbal": money(-90_000, 900_000),
            "c_mktsegment": draw.choice(("BUILDING", "MACHINERY")),
        }
        for key in range(60)
    ]
    rows["orders"], rows["lineitem"] = [], []
    for key in range(150):
        # some customers have no orders
        day = date(1993, 1, 1) + timedelta(days=draw.randrange(1500))
        rows["orders"].append(
            {
                "o_orderkey": key,
                "o_custkey": draw.randrange(40),
                "o_orderstatus": draw.choice("FO"),
                "o_orderdate": day,
                "o_orderpriority": draw.choice(("1-URGENT", "2-HIGH", "5-LOW")),
                "o_shippriority": 0,
                "o_comment": draw.choice(("plain", "special big requests")),
            }
        )
        for _ in range(draw.randrange(1, 6)):
            shipped = day + timedelta(days=draw.randrange(1, 90))
            rows["lineitem"].append(
                {
                    "l_orderkey": key,
                    "l_partkey": draw.randrange(12),
                    "l_suppkey": draw.randrange(9),
                    "l_quantity": money(1, 51) * 100,
                    "l_extendedprice": money(90_000, 10_000_000),
                    "l_discount": money(0, 11),
                    "l_tax": money(0, 9),
                    "l_returnflag": draw.choice("ANR"),
                    "l_linestatus": draw.choice("FO"),
                    "l_shipdate": shipped,
                    "l_commitdate": day + timedelta(days=draw.randrange(30, 90)),
                    "l_receiptdate": shipped + timedelta(days=draw.randrange(1, 30)),
                    "l_shipmode": draw.choice(("AIR", "MAIL", "SHIP", "TRUCK")),
                    "l_shipinstruct": draw.choice(("DELIVER IN PERSON", "NONE")),
                }
            )
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tpch")
    for name, rows in made_rows().items():
        columns = {
            column: pa.array(
                [row[column] for row in rows], MONEY if isinstance(rows[0][column], Decimal) else None
            )
            for column in rows[0]
        }
        pq.write_table(pa.table(columns), place / f"{name}.parquet")
    return place


@pytest.fixture(scope="module")
def session(tpch, folder):
    return dp.Session(tpch.opened(folder), limit=dp.Limit.filter(epsilon=1e13))


def test_queries_about_customers_are_answered_as_plain_sql_does(tpch, folder, session):
    truth = tpch.plain(folder)
    average = float(truth.execute(tpch.AVERAGE).fetchone()[0])
    assert abs(session.sql(tpch.AVERAGE, epsilon=tpch.HUGE).value - average) < 0.1
    empty = []
    for number, text in tpch.ANSWERED.items():
        asked = text.format(average=f"{average:.2f}")
        rows = truth.execute(asked).fetchall()
        wrong = tpch.errors(session.sql(asked, epsilon=tpch.HUGE), rows)
        assert max(wrong, default=0) < 1e-3, number
        empty += [] if wrong and any(any(row[1:] if len(row) > 1 else row) for row in rows) else [number]
    assert empty == [], "a query without rows shows nothing"


def test_queries_that_name_customers_or_compare_them_are_refused_with_another_question(tpch, session):
    for number, (refused, instead) in tpch.REFUSED.items():
        with pytest.raises(DiscreetError) as error:
            session.sql(refused, epsilon=1)
        assert error.value.code in {"DP702", "DP704", "DP706"}, number
        assert error.value.spent == "nothing", number
        assert len(session.sql(instead, epsilon=1)) > 0, number


def test_what_a_refusal_says_to_run_first_is_answered(tpch, session):
    for number in (17, 20):
        with pytest.raises(DiscreetError) as error:
            session.sql(tpch.REFUSED[number][0], epsilon=1)
        first = error.value.fix.split("   and write")[0].removeprefix("run it first:  ")
        assert first.startswith("SELECT 0."), number
        assert session.sql(first, epsilon=1).value is not None


def test_queries_about_public_tables_are_run_exactly_and_for_nothing(tpch, folder, session):
    assert set(tpch.ANSWERED) | set(tpch.REFUSED) | set(tpch.PUBLIC) == set(range(1, 23))
    truth, entries = tpch.plain(folder), len(session.ledger)
    for number, text in tpch.PUBLIC.items():
        answer, rows = session.sql(text), truth.execute(text).fetchall()
        assert [[float(part) if isinstance(part, Decimal) else part for part in row] for row in rows] == [
            list(row) for row in answer.rows()
        ], number
        assert rows, "a query without rows shows nothing"
        assert answer.guarantee is None
        assert answer.receipt is None
        assert "Only public tables were read" in answer.notes[0]
    assert len(session.ledger) == entries
