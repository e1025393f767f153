# SPDX-License-Identifier: Apache-2.0
"""What every file of the project owes: a licence line, finished work, exact randomness, its own words."""

from __future__ import annotations

import ast
import re
import subprocess

import pytest

from tests.house.project import ROOT, read, relative, source_files, text_files, tree_of

SPDX = "# SPDX-License-Identifier: Apache-2.0"
PYTHON = [path for path in text_files() if path.suffix == ".py"]

# Written in halves, so that this file may pass its own rule.
ELSEWHERE = [
    r"\.\./" + "shared",
    r"/work/" + "[a-z.]",
    r"\.\./\." + "library",
    r"/root" + "/",
    r"/home" + "/",
    r"/opt/" + "(pypi|wheels)",
    r"\biss" + r"ue #?\d+\b",
    r"(?i)\bsub" + "agent",
    r"(?i)\bcl" + r"aude\b",
    r"(?i)pypi\." + "org",
    r"(?i)python" + r"hosted\.org",
]
#: Files that hide the generators of others, or look whether they moved, and the only names that they use.
KEEPERS = {"src/discreet/learn/torch/generators.py", "src/discreet/learn/torch/snapshot.py"}
KEEPING = {
    *("seed", "get_state", "set_state", "getstate", "setstate", "get_bit_generator", "set_bit_generator"),
    *("MT19937", "Random", "Generator", "RandomState"),
}
#: Bytes; the census of the examples, 370 kB, is the largest file that is meant to be here.
LARGEST = 500_000
#: What may be larger: the checker of accessibility, whole as its authors publish it.
LARGE = {"tests/pages/vendored/axe.js"}
UNFINISHED = ["TO" + "DO", "FIX" + "ME", "X" * 3, "NotImplemented" + "Error", "pragma: no " + "cover"]


def outside_words(text: str) -> list[str]:
    return [match.group() for pattern in ELSEWHERE for match in re.finditer(pattern, text)]


def random_imports(tree: ast.AST) -> list[int]:
    """Lines that reach for a generator that is not cryptographic."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(n.name in {"random", "numpy.random"} for n in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module in {"random", "numpy.random"})
        or (isinstance(node, ast.ImportFrom) and node.module == "numpy" and _names(node, "random"))
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in {"np.random", "numpy.random"})
    ]


def random_names(tree: ast.AST) -> set[str]:
    """What is used of generators that are not cryptographic."""
    reached = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in reached if ast.unparse(node.value) in {"random", "np.random"}}


def _names(node: ast.ImportFrom, name: str) -> bool:
    return any(alias.name == name for alias in node.names)


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_every_python_file_starts_with_its_licence(path):
    assert read(path).splitlines()[:1] in ([], [SPDX])


@pytest.mark.parametrize("path", text_files(), ids=relative)
def test_the_project_speaks_only_of_itself(path):
    assert outside_words(read(path)) == []


@pytest.mark.parametrize("path", PYTHON, ids=relative)
def test_no_work_is_left_unfinished(path):
    assert [word for word in UNFINISHED if word in read(path)] == []
    assert [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ] == []


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_no_generator_that_can_be_predicted(path):
    if relative(path) in KEEPERS:
        assert random_names(tree_of(path)) <= KEEPING
    else:
        assert random_imports(tree_of(path)) == []


def test_no_package_or_data_set_is_committed_by_accident():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("needs a checkout of git")
    tracked = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    sizes = {relative(path): path.stat().st_size for path in tracked if path.is_file()}
    assert {name for name, size in sizes.items() if size > LARGEST} == LARGE
    assert {name for name in sizes if name.endswith((".whl", ".gz", ".zip", ".so"))} == set()


def test_the_licence_is_whole():
    text = read(ROOT / "LICENSE")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_rules_see_a_breach():
    assert outside_words("see .." + "/shared/x and Iss" + "ue 7, iss" + "ue 8") == [
        "../" + "shared",
        "iss" + "ue 8",
    ]
    bad = "import random\nimport numpy as np\nnp.random.normal()\nfrom numpy import random\n"
    assert random_imports(ast.parse(bad)) == [1, 4, 3]
    assert random_names(ast.parse(bad + "random.random()")) == {"normal", "random"}
