# SPDX-License-Identifier: Apache-2.0
"""How pyqrlew is asked: it rewrites a query into another one, bounding and noise included, which DuckDB runs.

It knows no DuckDB, but what it writes for PostgreSQL runs there. It never draws rows: it scales a user's rows down to
an ℓ2 norm of `max_multiplicity`, and the noise is Gaussian, by float arithmetic inside the data base.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import duckdb
import pyqrlew
from questions import AT_MOST, BOUNDS, DELTA, EPSILON, REGIONS, Answer, Question, Unsupported, as_answer

_SELECT = {
    "Q1": "COUNT(*) AS n",
    "Q2": "SUM(amount) AS total, AVG(amount) AS average",
    "Q3": "COUNT(*) AS n",
    "Q5": "COUNT(DISTINCT user_id) AS n",
}
_ANY_INTEGER = {"min": str(-(2**63)), "max": str(2**63 - 1)}
_TYPES = {
    "user_id": {"name": "Integer", "integer": {"base": "INT64", **_ANY_INTEGER}},
    "region": {"name": "Text UTF-8", "text": {"encoding": "UTF-8"}},
    "product": {"name": "Text UTF-8", "text": {"encoding": "UTF-8"}},
    "amount": {"name": "Float64", "float": {"base": "FLOAT64", "min": BOUNDS[0], "max": BOUNDS[1]}},
}


@dataclass(frozen=True)
class _Table:
    description: pyqrlew.Dataset
    base: duckdb.DuckDBPyConnection


def open_table(path: str, _question: Question, _variant: str) -> _Table:
    base = duckdb.connect()
    low, high = BOUNDS
    columns = f"user_id, region, product, greatest({low}, least({high}, amount)) AS amount"
    base.execute(f"CREATE VIEW orders AS SELECT {columns} FROM '{path}'")
    (rows,) = base.execute("SELECT COUNT(*) FROM orders").fetchone()
    return _Table(_described(rows).with_possible_values(None, "orders", "region", REGIONS), base)


def ask(opened: _Table, question: Question) -> Answer:
    if question.key not in _SELECT:
        raise Unsupported("no quantiles")
    text = f"SELECT {question.group}, {_SELECT[question.key]} FROM orders GROUP BY {question.group}"
    private = opened.description.relation(text).rewrite_with_differential_privacy(
        opened.description,
        ([("orders", [], "user_id")], False),
        {"epsilon": EPSILON, "delta": DELTA},
        max_multiplicity=float(AT_MOST),
        max_multiplicity_share=1.0,
        max_privacy_unit_groups=AT_MOST,
    )
    return as_answer(opened.base.execute(private.relation().to_query()).fetchall())


def _described(rows: int) -> pyqrlew.Dataset:
    """What `Dataset.from_database` would have read off a data base that it knows."""
    fields = [{"name": name, "type": kind} for name, kind in _TYPES.items()]
    kind = {"name": "Struct", "struct": {"fields": fields}}
    schema = {"name": "Union", "union": {"fields": [{"name": "orders", "type": kind}]}}
    sizes = [
        {"name": name, "statistics": {"name": "Integer", "integer": {"size": rows, "multiplicity": 1.0}}}
        for name in _TYPES
    ]
    struct = {"fields": sizes, "size": str(rows), "multiplicity": 1.0}
    statistics = [{"name": "orders", "statistics": {"name": "Struct", "struct": struct}}]
    documents = [
        {"@type": "sarus_data_spec/sarus_data_spec.Dataset", "uuid": "1", "name": "orders", "spec": {}},
        {"@type": "sarus_data_spec/sarus_data_spec.Schema", "uuid": "2", "name": "orders", "type": schema},
        {
            "@type": "sarus_data_spec/sarus_data_spec.Size",
            "uuid": "3",
            "name": "orders_sizes",
            "statistics": {"name": "Union", "union": {"fields": statistics}},
        },
    ]
    return pyqrlew.Dataset.from_str(*map(json.dumps, documents))
