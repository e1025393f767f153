# SPDX-License-Identifier: Apache-2.0
"""Who is asked: the environment, the module that asks, and what each of them is."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "discreet, ε"


@dataclass(frozen=True)
class Library:
    """`variant` is handed to the module; `keeps` says that a later question may find something prepared."""

    name: str
    environment: str
    module: str
    variant: str = ""
    private: bool = True
    keeps: bool = False
    huge: bool = False  # whether it is asked 1e8 rows, too

    @property
    def ours(self) -> bool:
        return self.environment == "discreet" and self.private


LIBRARIES = (
    Library("DuckDB, not private", "discreet", "ask_duckdb", private=False, huge=True),
    Library("Polars, not private", "discreet", "ask_polars", private=False),
    Library(OURS, "discreet", "ask_discreet", "pure", keeps=True, huge=True),
    Library("discreet, (ε, δ)", "discreet", "ask_discreet", "approximate", keeps=True, huge=True),
    Library("opendp", "opendp-tables", "ask_opendp"),
    Library("pyqrlew in DuckDB", "qrlew", "ask_qrlew", huge=True),
    Library("smartnoise-sql, frame", "smartnoise", "ask_smartnoise"),
    Library("smartnoise-sql, PostgreSQL", "smartnoise", "ask_smartnoise", "PostgreSQL"),
    Library("pipeline-dp, local", "pipeline-dp", "ask_pipeline_dp"),
    Library("tmlt.analytics, Spark", "tmlt-analytics", "ask_tmlt"),
)

# What must be said of an answer that is not what was asked for.
REMARKS = {
    ("pyqrlew in DuckDB", "Q5"): "counts rows, not users",
}
