# SPDX-License-Identifier: Apache-2.0
"""What a module exports exists, and the façade stays small."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys

import pytest

import discreet
from tests.chance import no_chance
from tests.house.project import module_name, source_files, tree_of

MOST_NAMES = 36


def exports(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(t) == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


EXPORTING = [module_name(path) for path in source_files() if exports(tree_of(path)) is not None]


@pytest.mark.parametrize("name", EXPORTING)
def test_every_exported_name_is_bound(name):
    module = importlib.import_module(name)
    assert [export for export in module.__all__ if not hasattr(module, export)] == []
    assert len(module.__all__) == len(set(module.__all__))


def test_every_package_says_what_it_exports():
    packages = [module_name(path) for path in source_files() if path.name == "__init__.py"]
    assert [name for name in packages if name not in EXPORTING] == []


def test_the_facade_is_small_and_lists_itself():
    assert len(discreet.__all__) <= MOST_NAMES
    assert dir(discreet) == sorted(discreet.__all__)


#: Forks once for each name, so that each is the first to be used; libraries of others are loaded once, before that.
FIRST_USES = """
import os, sys, traceback
import duckdb, numpy, pyarrow, scipy.optimize, scipy.special, scipy.stats, sqlglot
import discreet

for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            getattr(discreet, name), getattr(discreet, name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(name)
"""


@no_chance("another Python imports and draws nothing")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_every_facade_name_resolves_on_first_use():
    words = [sys.executable, "-c", FIRST_USES, *discreet.__all__]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_type_checkers_see_every_name_of_the_audit():
    package = importlib.import_module("discreet.audit")
    named = {name for name in vars(package.CallableAudit) if not name.startswith("__")}
    assert named == set(package.__all__)
    for name in named:
        assert getattr(package.CallableAudit, name) is getattr(package, name)


def test_a_facade_name_is_the_thing_itself():
    assert discreet.calibrate is importlib.import_module("discreet.privacy.calibrate").calibrate
    assert discreet.Guarantee is importlib.import_module("discreet.privacy.guarantee").Guarantee


def test_an_unknown_name_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'epsilon'"):
        discreet.epsilon  # noqa: B018
