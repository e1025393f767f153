# SPDX-License-Identifier: Apache-2.0
"""What a compiled question asks of an engine, DuckDB and Polars answer as the reference does."""

from __future__ import annotations

import pytest

from discreet.tables import engines
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables.reference import Reference
from tests.tables.small import WARD, dataset, number, question

pa = pytest.importorskip("pyarrow")

NUMBERS = (None, 0.0, -0.0, 3.25, 60.0, 1e300, float("nan"), float("inf"), -float("inf"), 17.1)
ROWS = [
    {
        "id": None if place % 31 == 0 else who,
        "g": ("a", "b", "c", None)[place * who % 4],
        "x": NUMBERS[(place + who) % 10],
    }
    for who in range(25)
    for place in range(who % 7 * (5 if who % 5 == 0 else 1))
]
TABLE = pa.table(
    {
        "id": pa.array([row["id"] for row in ROWS], pa.int64()),
        "g": pa.array([row["g"] for row in ROWS], pa.string()),
        "x": pa.array([row["x"] for row in ROWS], pa.float64()),
    }
)
X, FINE, WIDE = number(0, 60), number(-100 * 2**20, 1000 * 2**20, places=20), number(0, 2**40)
ASKED = [
    [("count",), ("units",), ("mean", X), ("variance", FINE)],
    [("sum", WIDE), ("mean", WIDE), ("quantile", FINE, {"fraction": (1, 2)}), ("max", X)],
    [("mode", WARD, {"values": ("a", "b")})],
]


@pytest.fixture(scope="module", params=["duckdb", "polars"])
def engine(request):
    pytest.importorskip(request.param)
    source = TABLE if request.param == "duckdb" else pytest.importorskip("polars").from_arrow(TABLE)
    made = getattr(engines, request.param)({"visits": source}, units={"visits": "id"})
    yield made
    made.close()


@pytest.mark.parametrize("keys", [None, ("a", None), "unknown"])
@pytest.mark.parametrize(
    "spend", [Spend(epsilon=0.5, delta=1e-6), Spend(epsilon=0.5), Spend(rho=0.1, delta=1e-6)], ids=repr
)
def test_an_engine_counts_as_the_reference_does(engine, spend, keys):
    if keys == "unknown" and spend.delta is None:
        keys = ("a", "b", "c")
    reference = Reference({"visits": ROWS}, {"visits": "id"})
    for asked in ASKED:
        mechanism = compile_question(question(*asked, keys=keys), dataset(at_most=3), spend)
        found = [mechanism.selection.sums] if mechanism.selection else []
        for sums in (*found, *(part.sums for part in mechanism.stages)):
            assert engine.sums(sums) == reference.sums(sums)
        for part in mechanism.stages:
            if hasattr(part, "exact"):
                assert part.exact(engine) == part.exact(reference)
