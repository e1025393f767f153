# SPDX-License-Identifier: Apache-2.0
"""Tables whose rows reach their units through keys, and views."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.tables.algebra.expr import Constant
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, RowScheme
from discreet.tables.algebra.types import NUMBER, Type
from discreet.tables.ask.sql import parse
from discreet.tables.data.dataset import Each, Link

ONE = Constant(1, Type(NUMBER, 1, 1, 0, null=False))
PEOPLE = pa.table({"uid": [1, 2, 3], "city": ["X", "Y", "X"]})
# key 12 is nobody's, key 11 belongs to two people
ORDERS = pa.table({"oid": [10, 11, 11, 12, 13, 13], "buyer": [1, 1, 2, None, 3, 3]})
ITEMS = pa.table(
    {"order_id": [10, 10, 11, 12, 13, 99, None], "price": [1, 2, 4, 8, 16, 32, 64], "iid": list(range(7))}
)
NOTES = pa.table({"item": [0, 2, 4, 4], "stars": [5, 3, 1, 2]})
LINKS = {"orders": "buyer", "items": "order_id -> orders.oid", "notes": "item -> items.iid"}
COLUMNS = {"people": {"city": dp.column(values=["X", "Y"])}, "items": {"price": dp.column(bounds=(0, 100))}}


def opened(links=None, engine="duckdb", **tables):
    sources = {"people": PEOPLE, "orders": ORDERS, "items": ITEMS, "notes": NOTES, **tables}
    protect = dp.each("uid", at_most=9, links=LINKS if links is None else links)
    return dp.open(sources, protect, columns=COLUMNS, engine=engine)


def rows(text, data):
    """The exact number of rows, and of units."""
    question = parse(text, data).question
    features = (ONE, *(aggregate.of for aggregate in question.aggregates if aggregate.of))
    (many, *sums) = data.engine.sums(BoundedSums(question.rows, (), features, RowScheme(1000, 1)))[()]
    (units,) = data.engine.sums(BoundedSums(question.rows, (), (), OnceScheme()))[()]
    return many, units, *sums


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_row_belongs_to_whom_its_key_leads_to(engine):
    data = opened(engine=engine)
    # 1 and 2 share the item of order 11; 3 has order 13 twice, and its item once
    assert rows("SELECT SUM(price) FROM items", data) == (5, 3, 1 + 2 + 4 + 4 + 16)
    assert rows("SELECT COUNT(*) FROM notes", data)[:2] == (1 + 2 + 2, 3)
    assert rows("SELECT COUNT(*) FROM orders", data)[:2] == (5, 3)
    joined = "SELECT SUM(price) FROM people JOIN orders ON uid = buyer JOIN items ON oid = order_id"
    assert rows(joined, data) == (6, 3, 1 + 2 + 4 + 4 + 16 + 16)
    assert rows("SELECT COUNT(*) FROM orders LEFT JOIN items ON oid = order_id WHERE price > 3", data)[0] == 4
    assert (
        rows(
            "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT * FROM orders WHERE buyer = uid AND oid = 13)",
            data,
        )[0]
        == 1
    )
    by_order = "SELECT SUM(s) FROM (SELECT order_id, SUM(price) AS s FROM items GROUP BY order_id) AS o"
    assert rows(by_order, data) == (4, 3, 3 + 4 + 4 + 16)
    assert (
        rows("SELECT COUNT(*) FROM orders WHERE oid IN (SELECT order_id FROM items WHERE price < 4)", data)[0]
        == 1
    )


def test_a_key_is_no_group_and_other_columns_join_nobody():
    data = opened()
    for text, code in {
        "SELECT order_id, COUNT(*) FROM items GROUP BY order_id": "DP704",
        "SELECT COUNT(*) FROM items JOIN orders ON price = oid": "DP703",
        "SELECT COUNT(*) FROM orders WHERE oid NOT IN (SELECT order_id FROM items)": "DP702",
        "SELECT COUNT(*) FROM orders WHERE oid IN (SELECT price FROM items)": "DP702",
    }.items():
        with pytest.raises(DiscreetError) as refused:
            parse(text, data)
        assert refused.value.code == code, text
    with pytest.raises(DiscreetError) as refused:
        parse("SELECT COUNT(*) FROM items JOIN orders ON price = oid", data)
    assert "JOIN orders ON items.order_id = orders.oid" in refused.value.fix


@pytest.mark.parametrize(
    "links",
    [
        {**LINKS, "items": "order_id -> orders.buyers"},
        {**LINKS, "items": "order -> orders.oid"},
        {**LINKS, "items": "order_id -> people.city"},
        {**LINKS, "items": "order_id -> nowhere.oid"},
        {**LINKS, "items": "item -> notes.item"},
        {**LINKS, "orders": "oid -> items.order_id"},
        {"orders": "buyer", "items": "order_id -> orders.oid"},
    ],
)
def test_a_link_that_leads_nowhere_is_refused(links):
    with pytest.raises(DiscreetError) as refused:
        opened(links)
    assert refused.value.code == "DP403"


def test_links_and_views_are_part_of_the_description(tmp_path):
    import pyarrow.parquet as pq

    for name, table in {"people": PEOPLE, "orders": ORDERS, "items": ITEMS, "notes": NOTES}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    sources = {name: tmp_path / f"{name}.parquet" for name in ("people", "orders", "items", "notes")}
    data = dp.open(sources, dp.each("uid", at_most=9, links=LINKS), columns=COLUMNS, name="shop")
    data = data.view("dear", "SELECT * FROM items WHERE price > 3")
    (tmp_path / "shop.toml").write_text(data.to_toml(), encoding="utf-8")
    again = dp.open(tmp_path / "shop.toml")
    assert again.protect == data.protect
    assert again.views == data.views
    assert again.public_description()["tables"]["items"]["unit"] == "order_id -> orders.oid"
    assert again.public_description() == data.public_description()
    assert rows("SELECT COUNT(*) FROM dear", again)[0] == 3
    assert eval(data.protect.as_code(), {"dp": dp}) == data.protect
    assert Link.parse("buyer") is None
    assert Each("uid", 9).as_code() == 'dp.each("uid", at_most=9)'


def test_a_view_is_the_query_that_it_names():
    data = (
        opened()
        .view("dear", "SELECT * FROM items WHERE price > 3")
        .view("both", "SELECT price FROM dear UNION ALL SELECT iid FROM dear")
    )
    text = "SELECT COUNT(*) FROM dear JOIN orders ON order_id = oid"
    assert rows(text, data) == rows(
        text.replace("dear", "(SELECT * FROM items WHERE price > 3) AS dear"), data
    )
    assert rows("SELECT COUNT(*) FROM both", data)[0] == 6
    assert rows("WITH dear AS (SELECT * FROM orders) SELECT COUNT(*) FROM dear", data)[0] == 5
    for name, query in {
        "items": "SELECT * FROM orders",
        "DEAR": "SELECT * FROM orders",
        "two words": "SELECT * FROM orders",
        "bad": "SELECT COUNT(*) FROM orders",
        "worse": "SELECT * FROM orders) AS v, (SELECT * FROM items",
        "none": "SELECT * FROM nothing",
    }.items():
        with pytest.raises(DiscreetError) as refused:
            data.view(name, query)
        assert refused.value.code in {"DP701", "DP702", "DP703"}, name


def test_expressions_follow_links():
    data = opened()
    assert "ON oid = items.order_id" in data["orders"].join("items").count().text
    assert "ON order_id = orders.oid" in data["items"].join("orders").count().text
    assert "ON uid = orders.buyer" in data["people"].join("orders").units().text
    # a key that leads to the unit is not the unit, so the table that has the unit is joined
    units = data["items"].units()
    assert units.text == data["items"].join("orders").units().text
    assert units.question.aggregates[0].kind == "units"
    assert "COUNT(DISTINCT buyer)" in units.text
    assert rows("SELECT COUNT(DISTINCT buyer) FROM items JOIN orders ON order_id = oid", data)[1] == 3
