# SPDX-License-Identifier: Apache-2.0
"""`import discreet` is nearly free: heavy modules are loaded by those who use them."""

from __future__ import annotations

import json
import subprocess
import sys

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
def test_errors_need_no_numbers():
    modules = loaded_by("import discreet\ndiscreet.errors.DiscreetError")
    assert "discreet.errors" in modules
    assert not {"numpy", "scipy"} & modules


@no_chance("another Python imports and draws nothing")
def test_accounting_loads_nothing_heavy():
    modules = loaded_by("import discreet\ndiscreet.privacy.gaussian(noise=1.0).epsilon(delta=1e-6)")
    assert "numpy" in modules
    assert not HEAVY & modules


@no_chance("another Python imports and draws nothing")
def test_the_command_line_starts_light():
    modules = loaded_by("import discreet.cli")
    assert "typer" in modules
    assert not (HEAVY | {"scipy"}) & modules


@no_chance("another Python imports and draws nothing")
def test_the_list_names_what_it_sees():
    assert "scipy.stats" in loaded_by("import scipy.stats") & HEAVY
