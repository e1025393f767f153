# SPDX-License-Identifier: Apache-2.0
"""Cubes with private keys: found values, "(other)" for all others, and totals that keep every row."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.exact import exactly
from discreet.privacy.guarantee import compose
from discreet.tables.ask.question import Key, Workload
from discreet.tables.plan import cube_keys
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.cube_keys import OTHER, PrivateCubeStage
from discreet.tables.plan.spend import Spend
from tests.tables.reference import Reference
from tests.tables.small import WARD, dataset, people, question
from tests.tables.test_cube import X, noise_of, shift, squared

PRIVATE = Key("g", WARD, None)
SPEND = Spend(rho=0.5, delta=1e-6)
ROLLUP = ((), (0,), (0, 1))
CUBE = ((), (0,), (1,), (0, 1))


def stage_of(sets=CUBE, keys=(PRIVATE, X), data=None, spend=SPEND):
    asked = replace(question(("count",)), keys=keys, workload=Workload(sets))
    (stage,) = compile_question(asked, data or dataset(at_most=2), spend).stages
    assert isinstance(stage, PrivateCubeStage)
    return stage


@pytest.mark.parametrize(
    ("keys", "sets", "found"),
    [
        ((PRIVATE, X), CUBE, []),
        ((PRIVATE, X), CUBE, [("a",)]),
        ((PRIVATE, X), CUBE, [("a",), (None,), (OTHER,)]),
        ((X, PRIVATE), ROLLUP, []),
        ((X, PRIVATE), ROLLUP, [(0, "a"), (2, "b")]),
        ((X, PRIVATE), ROLLUP, [(0, None), (0, OTHER), (1, "a"), (1, "b")]),
    ],
)
def test_whatever_is_found_no_unit_moves_the_tables_further_than_was_paid_for(keys, sets, found):
    stage = stage_of(sets, keys)
    tables = stage.cube_for([found])
    allowed = 1 / exactly(noise_of(tables)) ** 2
    wards = ("a", "b", None, OTHER)
    lengths = [squared(shift(tables, person)) for person in people((0, 1, 2), wards, most=3, at_least=1)]
    assert max(lengths) <= allowed
    assert max(lengths) >= allowed * Fraction(97, 100)
    # The guarantee of the tables is the one that was composed before anything was found.
    unit = tables.guarantee.unit
    assert any(repr(tables.guarantee) in repr(stage.guarantee) for _ in [unit])


def test_the_guarantee_is_that_of_all_selections_and_of_the_tables():
    second = Key("h", replace(WARD, column="h"), None)
    stage = stage_of(CUBE, (PRIVATE, second))
    tables = stage.cube_for([[], []])
    parts = [(selection.guarantee, 1) for selection in stage.selections]
    assert len(parts) == 2
    assert stage.guarantee.epsilon(delta=1e-6) >= compose([*parts, (tables.guarantee, 1)]).epsilon(
        delta=1e-6
    ) * (1 - 1e-9)
    assert sum(Fraction(1, len(stage.selections)) for _ in stage.selections) == 1


ROWS = 30_000


def towns(seed=3, **more):
    """Four large towns, two hundred small ones, and rows without a town."""
    generator = np.random.default_rng(seed)
    place = np.where(
        generator.random(ROWS) < 0.9, generator.integers(0, 4, ROWS), generator.integers(4, 204, ROWS)
    )
    names = [None if at == 7 else f"town {at}" for at in range(204)]
    columns = {
        "id": np.arange(ROWS).tolist(),
        "town": [names[at] for at in place],
        "region": ["north" if at % 2 else "south" for at in place],
        "sex": generator.choice(["f", "m"], ROWS).tolist(),
    }
    return dp.open(
        {"people": pa.table({**columns, **more})},
        protect=dp.each("id", at_most=1),
        columns={"sex": dp.column(values=["f", "m"])},
    )


def test_every_row_is_in_every_table_and_only_large_towns_are_named():
    session = dp.Session(towns(), limit=dp.Limit.filter(epsilon=10, delta=1e-4))
    cube = session.sql(
        "SELECT town, sex, COUNT(*) AS n FROM people GROUP BY CUBE (town, sex)", epsilon=1, delta=1e-6
    )
    assert [row["town"] for row in cube["town"]] == [OTHER, *(f"town {at}" for at in range(4))]
    # Every row is in the total, and every table adds up to it.
    assert abs(cube.total.value - ROWS) < 100
    for names in (("town",), ("sex",), ("town", "sex")):
        assert abs(sum(cube[names].columns["n"].values) - cube.total.value) < 1e-6
    other = next(row["n"] for row in cube["town"] if row["town"] == OTHER)
    assert abs(other - ROWS * 0.1) < 300
    assert OTHER in cube.suppressed
    assert not any("not listed" in note and "town" in note for note in cube.notes)


def test_a_rollup_of_private_keys_is_a_tree_of_the_found_paths():
    session = dp.Session(towns(), limit=dp.Limit.filter(epsilon=10, delta=1e-4))
    cube = session.sql(
        "SELECT region, town, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, town)", epsilon=1, delta=1e-6
    )
    paths = [(row["region"], row["town"]) for row in cube["region", "town"]]
    assert paths == [
        (OTHER, OTHER),
        ("north", OTHER),
        ("north", "town 1"),
        ("north", "town 3"),
        ("south", OTHER),
        ("south", "town 0"),
        ("south", "town 2"),
    ]
    assert abs(cube.total.value - ROWS) < 100
    for region in cube["region"]:
        parts = [row["n"] for row in cube["region", "town"] if row["region"] == region["region"]]
        assert abs(sum(parts) - region["n"]) < 1e-6


TEXTS = ("a", "b", "a|b", None, OTHER)


@pytest.mark.parametrize(
    "found",
    [
        [],
        [("a", "a", "b"), ("a", "b", "b"), ("b", "a", "a")],
        [("a", "a", None), ("b", "a", None), ("a", "b", None), (None, "a", "b"), (None, None, None)],
        [("a|b", "a", "b"), ("a", "b", "a"), ("a", "a|b", "b"), ("b", "b", "a|b"), ("b", "a", "b")],
        [("a", OTHER, "b"), ("b", "b", "a"), ("b", "a", "a"), (None, "b", "a|b"), ("a", "a|b", None)],
    ],
)
@pytest.mark.parametrize("public", [0, 1])
def test_rows_have_the_longest_path_that_was_found_and_no_other(found, public):
    names = ("g", "h", "k")
    keys = [Key(name, replace(WARD, column=name), None) for name in names]
    if public:
        keys[0] = replace(keys[0], values=("a", "b", "a|b", None))
        found = [path for path in found if path[0] != OTHER]
    stage = stage_of(((), (0,), (0, 1), (0, 1, 2)), tuple(keys))
    sums = stage.cube_for([found]).sums
    paths = [path for path in found if OTHER not in path[public:]]
    known = {path[:length] for path in paths for length in range(public + 1, 4)}
    for row in itertools.product(TEXTS, repeat=3):
        if public and row[0] == OTHER:
            continue
        expected = tuple(
            text if place < public or row[: place + 1] in known else OTHER for place, text in enumerate(row)
        )
        table = Reference({"visits": [{"id": 1, **dict(zip(names, row, strict=True))}]}, {"visits": "id"})
        assert list(table.sums(sums)) == [expected]
        # Nothing falls out of the tree, so no row is lost.
        (axis,) = stage.cube_for([found]).strategy.question.workload.axes
        assert expected in axis.leaves


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_rollup_that_finds_very_many_places_is_answered(engine):
    many = 1200
    rows = [(f"a{place}", f"b{place % 7}") for place in range(many) for _ in range(8)]
    table = pa.table({"id": list(range(len(rows))), "a": [a for a, _ in rows], "b": [b for _, b in rows]})
    data = dp.open({"people": table}, protect=dp.each("id", at_most=1), engine=engine)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=300, delta=1e-2))
    cube = session.sql("SELECT COUNT(*) AS n FROM people GROUP BY ROLLUP (a, b)", epsilon=200, delta=1e-3)
    assert len(cube["a"]) > 1000
    assert abs(cube.total.value - len(rows)) < 100


def test_python_asks_the_same():
    data = towns()
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=10, delta=1e-4))
    cube = session.release(data.cube("town", "sex").count(), epsilon=1, delta=1e-6)
    assert len(cube["town"]) == 5
    again = type(cube).from_json(cube.to_json())
    assert again.groups == cube.groups
    assert again["town", "sex"].columns["count"].values == cube["town", "sex"].columns["count"].values


def test_a_preview_states_margins_for_ten_values():
    session = dp.Session(towns(), limit=dp.Limit.filter(epsilon=10, delta=1e-4))
    text = str(
        session.preview("SELECT COUNT(*) FROM people GROUP BY CUBE (town, sex)", epsilon=1, delta=1e-6)
    )
    assert "with 10 values of each private key: ±" in text
    assert "values of town are found by key selection" in text
    assert session.budget().spent_fraction == 0


def test_an_error_cannot_be_stated_in_advance():
    session = dp.Session(towns(), limit=dp.Limit.filter(epsilon=10, delta=1e-4))
    with pytest.raises(dp.errors.RefusedQuestion, match="DP706"):
        session.sql("SELECT COUNT(*) FROM people GROUP BY CUBE (town)", error="±50", delta=1e-6)
    assert session.budget().spent_fraction == 0


def test_too_many_found_values_are_cut_and_never_refused(monkeypatch):
    stage = stage_of(CUBE)
    monkeypatch.setattr(cube_keys, "_MOST_ROWS", 100)
    tables = stage.cube_for([[(f"town {at}",) for at in range(64)]])
    towns_kept = tables.strategy.shape.values[0]
    # (towns + 1) · (3 + 1) rows at most.
    assert len(towns_kept) == 17
    assert OTHER in towns_kept


def test_noise_that_cannot_be_drawn_for_many_values_is_drawn_for_fewer(monkeypatch):
    stage = stage_of(CUBE)
    real = cube_keys.CubeStrategy.gaussian_stage

    def refuses(self, noise):
        if self.shape.system.sizes[0] > 5:
            raise dp.errors.BadParameter("DP102", "too large.", why="why", fix="fix")
        return real(self, noise)

    monkeypatch.setattr(cube_keys.CubeStrategy, "gaussian_stage", refuses)
    assert len(stage.cube_for([[(f"{at}",) for at in range(64)]]).strategy.shape.values[0]) == 5


def test_a_town_of_one_person_is_not_found():
    lone = [f"town {place}" for place in range(ROWS)]
    data = towns(town=lone)
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=10, delta=1e-4))
    cube = session.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY CUBE (town)", epsilon=1, delta=1e-6)
    assert [row["town"] for row in cube["town"]] == [OTHER]
    assert abs(cube.total.value - ROWS) < 100


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_it_is_charged_what_it_promises(relation):
    rows = list(itertools.chain(range(200)))
    data = dp.open(
        {"people": pa.table({"id": rows, "town": ["a"] * 200})},
        protect=dp.each("id", at_most=1, relation=relation),
    )
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    session.sql("SELECT COUNT(*) FROM people GROUP BY CUBE (town)", epsilon=1, delta=1e-6)
    assert session.budget().spent_fraction == pytest.approx(1, abs=1e-3)
