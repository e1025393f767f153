# SPDX-License-Identifier: Apache-2.0
"""`import discreet` is nearly free: heavy modules are loaded by those who use them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.chance import no_chance

HEAVY = {"duckdb", "ibis", "torch", "matplotlib", "pandas", "fastapi", "sklearn", "pyspark", "scipy.stats"}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `statement`."""
    program = f"import sys\n{statement}\nimport json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@no_chance("another Python imports and draws nothing")
def test_importing_the_facade_loads_only_itself():
    new = {name.split(".")[0] for name in loaded_by("import discreet") - loaded_by("")}
    assert new - sys.stdlib_module_names == {"discreet"}


@no_chance("another Python imports and draws nothing")
@pytest.mark.parametrize(
    ("statement", "needed", "heavy"),
    [
        ("import discreet\ndiscreet.errors.DiscreetError", "discreet.errors", {"numpy", "scipy"}),
        ("import discreet\ndiscreet.privacy.gaussian(noise=1.0).epsilon(delta=1e-6)", "numpy", HEAVY),
        ("import discreet.cli", "typer", HEAVY | {"scipy"}),
        (
            "import discreet as dp\ndp.Session(dp.open(dp.data.path('adult.toml')), limit=dp.Limit.filter(epsilon=1))",
            "duckdb",
            HEAVY - {"duckdb"},
        ),
    ],
    ids=["errors", "accounting", "command line", "session"],
)
def test_nothing_heavy_is_loaded_that_is_not_needed(statement, needed, heavy):
    modules = loaded_by(statement)
    assert needed in modules
    assert not heavy & modules


@no_chance("another Python imports and draws nothing")
def test_the_list_names_what_it_sees():
    assert "scipy.stats" in loaded_by("import scipy.stats") & HEAVY
