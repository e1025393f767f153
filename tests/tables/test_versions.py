# SPDX-License-Identifier: Apache-2.0
"""A folder that keeps deleted rows beside the others is no table: its files are refused, and its log is asked."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from tests.refusals import assert_refused

ROWS = pa.table({"p": [1, 1, 2, 3], "ward": ["a", "a", "b", "b"], "x": [1, 2, 3, 4]})
PROTECT = dp.each("p", at_most=2)


def total(data):
    with data:
        return round(
            dp.Session(data, dp.Limit.filter(1e9)).sql("SELECT COUNT(*) FROM data", epsilon=1e6).value
        )


@pytest.fixture(params=[[], ["ward"]], ids=["plain", "in folders"])
def delta_table(request, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    place = tmp_path / "sales"
    deltalake.write_deltalake(str(place), ROWS, partition_by=request.param)
    deltalake.DeltaTable(str(place)).delete("p = 1")
    return place


@pytest.mark.parametrize("pattern", ["", "*.parquet", "**/*.parquet", "one"])
@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_a_delta_table_is_opened_by_its_log(delta_table, pattern, engine):
    files = sorted(delta_table.rglob("*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) > 2, "deleted rows are still there"
    source = files[0] if pattern == "one" else delta_table / pattern
    if pattern == "*.parquet" and files[0].parent != delta_table:
        pytest.skip("the pattern means no file")
    error = assert_refused("DP802", dp.open, source, PROTECT, engine=engine)
    assert "Delta" in error.what
    assert "ward" not in error.what
    names = {"deltalake": __import__("deltalake")}
    exec(error.fix.partition(";")[0], names)
    assert total(dp.open(names["frame"], PROTECT, engine=engine)) == 2


@pytest.mark.parametrize(
    ("log", "kind"),
    [(".hoodie/hoodie.properties", "Hudi"), ("metadata/v1.metadata.json", "Iceberg")],
)
def test_other_formats_that_keep_versions_are_refused_too(tmp_path, log, kind):
    folder = tmp_path / "sales"
    (folder / "data").mkdir(parents=True)
    pq.write_table(ROWS, folder / "data" / "1.parquet")
    assert total(dp.open(folder / "data" / "*.parquet", PROTECT, name="data")) == 4
    (folder / log).parent.mkdir()
    (folder / log).write_text("{}")
    for source in (folder, folder / "data", folder / "data" / "1.parquet", folder / "**" / "*.parquet"):
        error = assert_refused("DP802", dp.open, source, PROTECT)
        assert kind in error.what
        assert "dp.open(frame, protect=…)" in error.fix
    assert total(dp.open(pq.read_table(folder / "data" / "1.parquet"), PROTECT)) == 4
