# SPDX-License-Identifier: Apache-2.0
"""How pipeline-dp is asked: its local backend, which runs over Python rows in this process."""

from __future__ import annotations

import pipeline_dp
import pyarrow.parquet as pq
from questions import AT_MOST, BOUNDS, DELTA, EPSILON, QUANTILES, REGIONS, Answer, Question

_METRIC = pipeline_dp.Metrics
_METRICS = {
    "Q1": [_METRIC.COUNT],
    "Q2": [_METRIC.SUM, _METRIC.MEAN],
    "Q3": [_METRIC.COUNT],
    "Q4g": [_METRIC.PERCENTILE(100 * q) for q in QUANTILES],
    "Q5": [_METRIC.PRIVACY_ID_COUNT],
}
_ROWS = {"max_contributions": AT_MOST}
_GROUPS = {"max_partitions_contributed": AT_MOST, "max_contributions_per_partition": 1}
_LIMITS = {
    "Q1": _ROWS,
    "Q2": _ROWS,
    "Q3": _GROUPS,
    "Q4g": _GROUPS,
    "Q5": _GROUPS,
}  # what it accepts for which
_EXTRACTORS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)

Rows = list[tuple]


def open_table(path: str, question: Question, _variant: str) -> Rows:
    names = ["user_id", question.group, "amount"]
    table = pq.read_table(path, columns=names)
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def ask(opened: Rows, question: Question) -> Answer:
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    parameters = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        metrics=_METRICS[question.key],
        min_value=BOUNDS[0],
        max_value=BOUNDS[1],
        **_LIMITS[question.key],
    )
    public = REGIONS if question.keys_are_public else None
    result = engine.aggregate(opened, parameters, _EXTRACTORS, public_partitions=public)
    budget.compute_budgets()
    return {key: list(map(float, _in_order(numbers, question))) for key, numbers in result}


def _in_order(numbers: tuple, question: Question) -> list[float]:
    found = numbers._asdict()
    return [found["sum"], found["mean"]] if question.key == "Q2" else list(found.values())
