# SPDX-License-Identifier: Apache-2.0
"""How opendp is asked: its Polars interface, where rows are drawn per user inside the query plan."""

from __future__ import annotations

from dataclasses import dataclass

import opendp.prelude as dp
import polars as pl
from questions import AT_MOST, BOUNDS, DELTA, EPSILON, QUANTILES, REGIONS, Answer, Question, as_answer

dp.enable_features("contrib")

_AMOUNT = pl.col("amount").fill_null(0.0).fill_nan(0.0)
_CANDIDATES = [float(value) for value in range(int(BOUNDS[0]), int(BOUNDS[1]) + 1)]
_AGGREGATES = {
    "Q1": lambda: [dp.len(signed=True)],
    "Q2": lambda: [_AMOUNT.dp.sum(BOUNDS).alias("sum"), dp.len(signed=True)],
    "Q3": lambda: [dp.len(signed=True)],
    "Q4g": lambda: [_AMOUNT.dp.quantile(q, _CANDIDATES).alias(str(q)) for q in QUANTILES],
    "Q5": lambda: [pl.col("user_id").dp.n_unique(signed=True)],
}

# Ten groups with one row each are ten rows, too: a row limit alone would count a quantile as ten groups times ten rows.
_ONE_ROW_A_GROUP = {"Q4g", "Q5"}


@dataclass(frozen=True)
class _Table:
    rows: pl.LazyFrame
    margin: dp.polars.Margin


def open_table(path: str, _question: Question, _variant: str) -> _Table:
    """A float sum wants to know how long a group can be, and its noise grows with the square: as long as the file."""
    rows = pl.scan_parquet(path)
    most = rows.select(pl.len()).collect().item()
    return _Table(rows, dp.polars.Margin(by=["region"], max_length=most, max_groups=len(REGIONS)))


def ask(opened: _Table, question: Question) -> Answer:
    loss = {"epsilon": EPSILON} | ({} if question.keys_are_public else {"delta": DELTA})
    context = dp.Context.compositor(
        data=opened.rows,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=1,
        margins=[opened.margin],
    )
    query = context.query()
    if question.key in _ONE_ROW_A_GROUP:
        # In this version keep="sample" fails: a field would be named twice.
        query = query.truncate_per_group(1, by=["region"])
        query = query.truncate_num_groups(AT_MOST, by=["region"], keep="first")
    else:
        query = query.truncate_per_group(AT_MOST)
    grouped = query.group_by(question.group).agg(_AGGREGATES[question.key]())
    if question.keys_are_public:
        grouped = grouped.with_keys(pl.LazyFrame({"region": REGIONS}))
    rows = grouped.release().collect().rows()
    if question.key == "Q2":
        rows = [(key, total, total / max(1, count)) for key, total, count in rows]
    return as_answer(rows)
