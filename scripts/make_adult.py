# SPDX-License-Identifier: Apache-2.0
"""Makes src/discreet/data/adult.parquet from the two published files of the Adult data set.

    python scripts/make_adult.py adult.data adult.test

The files are those of the UCI repository (doi 10.24432/C5XW20); their digests are checked, so that the same
Parquet file comes out for everybody. src/discreet/data/README.md says what is changed, and gives the credit.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).resolve().parents[1] / "src" / "discreet" / "data" / "adult.parquet"
DIGESTS = {
    "train": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
#: The published columns, in their order; None is left out.
COLUMNS: tuple[tuple[str, Any] | None, ...] = (
    ("age", pa.int32()),
    ("workclass", pa.string()),
    None,  # fnlwgt: how many people a sampled person stood for; it is nearly a name
    ("education", pa.string()),
    ("education_level", pa.int32()),
    ("marital_status", pa.string()),
    ("occupation", pa.string()),
    ("relationship", pa.string()),
    ("race", pa.string()),
    ("sex", pa.string()),
    ("capital_gain", pa.int32()),
    ("capital_loss", pa.int32()),
    ("hours_per_week", pa.int32()),
    ("native_country", pa.string()),
    ("over_50k", pa.bool_()),
)
KEPT = [column for column in COLUMNS if column is not None]


def records(path: Path, split: str) -> list[dict[str, Any]]:
    """The rows of one file; the test file has a title line and a full stop after each label."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != DIGESTS[split]:
        raise SystemExit(f"{path} is not the published {split} file")
    rows = list(csv.reader(content.decode("ascii").splitlines(), skipinitialspace=True))
    return [{**_record(row), "split": split} for row in rows if len(row) == len(COLUMNS)]


def _record(row: list[str]) -> dict[str, Any]:
    named = {column[0]: (cell, column[1]) for column, cell in zip(COLUMNS, row, strict=True) if column}
    return {name: _value(cell, kind) for name, (cell, kind) in named.items()}


def _value(cell: str, kind: Any) -> Any:
    if cell == "?":
        return None
    if kind == pa.bool_():
        return {">50K": True, "<=50K": False}[cell.rstrip(".")]
    return cell if kind == pa.string() else int(cell)


def main(train: str, test: str) -> None:
    rows = records(Path(train), "train") + records(Path(test), "test")
    numbered = [{"person_id": number, **row} for number, row in enumerate(rows, start=1)]
    schema = pa.schema([("person_id", pa.int32()), *KEPT, ("split", pa.string())])
    table = pa.Table.from_pylist(numbered, schema=schema)
    pq.write_table(table, TARGET, compression="zstd", compression_level=19, row_group_size=len(rows))
    print(f"{TARGET.name}: {table.num_rows} rows, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
