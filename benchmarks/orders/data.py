# SPDX-License-Identifier: Apache-2.0
"""Synthetic orders, the same for everybody: users who order often and users who do not, and products few people buy.

    python data.py 1000000        # prints the path of the Parquet file, which is written on first use

| column  | type   | law                                                                                   |
|---------|--------|---------------------------------------------------------------------------------------|
| user_id | int64  | rows per user: log-normal, 10.25 on average, at most 558; no two users are neighbours in the file |
| region  | text   | 50 of them; every user has a home region, where 7 in 10 of the orders come from        |
| product | text   | 10,000 of them, Zipf                                                                    |
| amount  | double | log-normal, a median of 24 to 40 by region; 1 in 600 is above 500                      |
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from questions import PRODUCTS, REGIONS

HOME = Path(__file__).resolve().parent.parent / ".data"
MOST_ROWS, SPREAD, LOCATION = 558, 1.07, 1.7538  # of the log-normal: its mean, rounded and capped, is 10.25
AT_HOME = 0.7
CHUNK = 1 << 17  # rows in a row group


def path_of(rows: int) -> Path:
    """The file with so many rows; it is written if it is not there, and never half-written."""
    path = HOME / str(rows) / "orders.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        _write(unfinished, rows)
        unfinished.rename(path)
    return path


def _write(path: Path, rows: int) -> None:
    with pq.ParquetWriter(path, next(_chunks(1)).schema) as writer:
        for chunk in _chunks(rows):
            writer.write_table(chunk, row_group_size=CHUNK)


def _chunks(rows: int) -> Iterator[pa.Table]:
    dice = np.random.default_rng(20_260_701)
    users = _users(dice, rows)
    homes = dice.choice(50, size=int(users.max()) + 1, p=_zipf(50, 0.5)).astype(np.int8)
    popularity = np.cumsum(_zipf(len(PRODUCTS), 1.0))
    for start in range(0, rows, CHUNK):
        user = users[start : start + CHUNK]
        size = len(user)
        region = np.where(dice.random(size) < AT_HOME, homes[user], dice.integers(0, 50, size)).astype(
            np.int8
        )
        product = np.searchsorted(popularity, dice.random(size) * popularity[-1], side="right")
        amount = np.round(np.exp(dice.normal(3.2 + 0.01 * region, 0.95, size)), 2)
        columns = {
            "user_id": pa.array(user.astype(np.int64)),
            "region": _texts(region, REGIONS),
            "product": _texts(product.astype(np.int32), PRODUCTS),
            "amount": pa.array(amount),
        }
        yield pa.table(columns)


def _users(dice: np.random.Generator, rows: int) -> np.ndarray:
    """One user per row, in no order."""
    enough = 16 + rows // 8
    counts = np.rint(dice.lognormal(LOCATION, SPREAD, enough)).clip(1, MOST_ROWS).astype(np.int64)
    users = np.repeat(np.arange(enough, dtype=np.int32), counts)[:rows]
    dice.shuffle(users)
    return users


def _texts(codes: np.ndarray, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names)).cast(pa.string())


def _zipf(size: int, power: float) -> np.ndarray:
    weights = 1.0 / np.arange(1, size + 1) ** power
    return weights / weights.sum()


if __name__ == "__main__":
    print(path_of(int(sys.argv[1])))
