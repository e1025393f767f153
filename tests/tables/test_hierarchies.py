# SPDX-License-Identifier: Apache-2.0
"""Hierarchies that the description declares: ROLLUP over them is a tree, without a join."""

from __future__ import annotations

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import BadDescription

PLACES = pa.table(
    {
        "town": ["a", "b", "c", "d", "a"],
        "district": ["A", "A", "B", "B", "C"],
        "region": ["N", "N", "N", "S", "S"],
    }
)
LEVELS = ["region", "district", "town"]
TREE = {("N", "A", "a"), ("N", "A", "b"), ("N", "B", "c"), ("S", "B", "d"), ("S", "C", "a")}
PEOPLE = pa.table(
    {
        "id": list(range(600)),
        "town": (["a"] * 3 + ["b"] * 2 + ["x"]) * 100,
        "district": (["A"] * 5 + ["B"]) * 100,
        "region": ["N"] * 600,
        "sex": ["f", "m"] * 300,
    }
)
SEX = {"sex": dp.column(values=["f", "m"])}
BY_LEVELS = (
    "SELECT region, district, town, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, district, town)"
)
JOINED = BY_LEVELS.replace("FROM people", "FROM people JOIN places USING (region, district, town)")


def opened(people=PEOPLE, **words):
    return dp.open(
        {"people": people},
        protect=dp.each("id", at_most=1),
        public={"places": PLACES},
        columns=SEX,
        hierarchies={"places": LEVELS},
        **words,
    )


def session_of(data):
    return dp.Session(data, limit=dp.Limit.filter(rho=100))


def leaves(cube):
    (axis,) = cube.cube_tables.shape.axes
    return set(axis.leaves)


def test_a_rollup_over_a_declared_hierarchy_is_a_tree():
    cube = session_of(opened()).sql(BY_LEVELS, rho=2)
    assert leaves(cube) == TREE
    rows = {(row["region"], row["district"], row["town"]): row["n"] for row in cube}
    assert rows[("N", "A", "a")] == pytest.approx(300, abs=10)
    assert rows[("S", "C", "a")] == pytest.approx(0, abs=10)
    # Towns that the hierarchy does not know are in no table.
    assert rows[(None, None, None)] == pytest.approx(500, abs=15)
    for above, below in (((), 1), (("N",), 2), (("N", "A"), 3)):
        parts = [
            number
            for path, number in rows.items()
            if path[: len(above)] == above and path[below - 1] and not any(path[below:])
        ]
        assert sum(parts) == pytest.approx(rows[(*above, *[None] * (3 - len(above)))], abs=1e-6)


def test_it_is_the_tree_of_a_join_with_the_table():
    data = opened()
    declared, joined = (session_of(data).sql(text, rho=2) for text in (BY_LEVELS, JOINED))
    assert leaves(declared) == leaves(joined)
    assert str(declared.guarantee) == str(joined.guarantee)
    assert [column.error for column in session_of(data).preview(BY_LEVELS, rho=2).columns] == [
        column.error for column in session_of(data).preview(JOINED, rho=2).columns
    ]


def test_python_crosses_it_with_categories():
    data = opened()
    rollup = session_of(data).release(data.rollup(*LEVELS).count(), rho=1)
    assert leaves(rollup) == TREE
    crossed = session_of(data).sql(
        "SELECT COUNT(*) AS n FROM people AS p GROUP BY ROLLUP (p.region, p.district, p.town), CUBE (sex)",
        rho=1,
    )
    assert leaves(crossed) == TREE
    assert len(crossed["region", "sex"]) == 4


def test_its_columns_have_public_values_and_fewer_levels_are_a_tree_too():
    session = session_of(opened())
    assert [
        row["region"] for row in session.sql("SELECT region, COUNT(*) FROM people GROUP BY region", rho=1)
    ] == [
        "N",
        "S",
    ]
    cube = session.sql("SELECT COUNT(*) FROM people GROUP BY ROLLUP (region, district)", rho=1)
    assert leaves(cube) == {path[:2] for path in TREE}
    north = session.sql(BY_LEVELS.replace(" GROUP", " WHERE region = 'N' GROUP"), rho=1)
    assert leaves(north) == {path for path in TREE if path[0] == "N"}


def test_columns_of_another_type_and_stated_values_are_left_alone():
    numbered = PEOPLE.set_column(3, "region", pa.array([1] * 600))
    data = opened(numbered)
    assert data.tables["people"].columns["region"].values is None
    assert data.tables["people"].columns["town"].values == ("a", "b", "c", "d")
    stated = dp.open(
        {"people": PEOPLE},
        protect=dp.each("id", at_most=1),
        public={"places": PLACES},
        columns={"region": dp.column(values=["N"])},
        hierarchies={"places": LEVELS},
    )
    assert stated.tables["people"].columns["region"].values == ("N",)
    assert leaves(session_of(stated).sql(BY_LEVELS, rho=1)) == {path for path in TREE if path[0] == "N"}


@pytest.mark.parametrize(
    ("kind", "column"),
    [(int, dp.column(values=[0, 1])), (str, dp.column(values=["0", "1"])), (str, dp.column(values=["x"]))],
    ids=["numbers", "texts", "no common value"],
)
def test_a_hierarchy_of_another_type_or_without_a_common_value_is_none(kind, column):
    places = {"region": [str(at) if kind is int else at for at in (0, 1)], "town": ["a", "b"]}
    if column.values == ("x",):
        places["region"] = ["0", "1"]
    rows = {"id": list(range(100)), "region": [kind(at % 2) for at in range(100)], "town": ["a", "b"] * 50}
    data = dp.open(
        {"people": pa.table(rows)},
        protect=dp.each("id", at_most=1),
        public={"places": pa.table(places)},
        columns={"region": column, "town": dp.column(values=["a", "b"])},
        hierarchies={"places": ["region", "town"]},
    )
    cube = session_of(data).sql("SELECT COUNT(*) AS n FROM people GROUP BY ROLLUP (region, town)", rho=2)
    assert not cube.cube_tables.shape.axes
    assert [row["region"] for row in cube["region"]] == list(column.values)


def test_a_file_declares_it(tmp_path):
    from pyarrow import parquet

    parquet.write_table(PLACES, tmp_path / "places.parquet")
    parquet.write_table(PEOPLE, tmp_path / "people.parquet")
    text = """[dataset]
unit = "id"
[limits]
rows_per_unit = 1
[tables.people]
source = "people.parquet"
[public.places]
source = "places.parquet"
hierarchy = ["region", "district", "town"]
"""
    (tmp_path / "census.toml").write_text(text, encoding="utf-8")
    data = dp.open(tmp_path / "census.toml")
    assert leaves(session_of(data).sql(BY_LEVELS, rho=1)) == TREE
    assert data.public_description()["tables"]["places"]["hierarchy"] == LEVELS
    (tmp_path / "again.toml").write_text(data.to_toml(), encoding="utf-8")
    again = dp.open(tmp_path / "again.toml")
    assert again.to_toml() == data.to_toml()
    assert leaves(session_of(again).sql(BY_LEVELS, rho=1)) == TREE


@pytest.mark.parametrize(
    "hierarchy", ['"region"', "[]x", '["region"]', '["region", "region"]', '["region", "regoin"]', "[1, 2]"]
)
def test_a_list_that_is_none_is_refused(tmp_path, hierarchy):
    text = f"""[dataset]
unit = "id"
[limits]
rows_per_unit = 1
[tables.people]
source = "people.csv"
[tables.people.columns.id]
type = "integer"
[public.places]
source = "places.csv"
hierarchy = {hierarchy}
"""
    for name, content in (("people.csv", "id\n1\n"), ("places.csv", "region,town\nN,a\n"), ("c.toml", text)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(BadDescription, match="DP403"):
        dp.open(tmp_path / "c.toml")
