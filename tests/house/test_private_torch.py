# SPDX-License-Identifier: Apache-2.0
"""Private names of PyTorch are used in one module, and that module looks each of them up when it is first used."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.chance import no_chance
from tests.house.project import PACKAGE, relative, tree_of

FOLDER = PACKAGE / "learn" / "torch"
ADAPTER = FOLDER / "internals.py"
FILES = [path for path in sorted(FOLDER.rglob("*.py")) if path != ADAPTER]
#: What Python itself calls the fields of a named tuple.
_OF_PYTHON = {"_asdict", "_fields", "_replace"}
_BY_NAME = {"getattr", "setattr", "hasattr", "delattr"}


def is_private(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return name.startswith("_") and not dunder and name not in _OF_PYTHON


def own_names(tree: ast.AST) -> set[str]:
    """What a file defines itself: functions, classes, variables, and attributes that it sets on `self`."""
    stores = [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return (
        {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        | {node.id for node in stores if isinstance(node, ast.Name)}
        | {
            node.attr
            for node in stores
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
        }
    )


def private_torch_names(tree: ast.AST) -> list[str]:
    """Imports of private modules and names of torch, and private attributes that the file does not define."""
    own, names = own_names(tree), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
            names += [
                ".".join(parts) for parts in modules if parts[0] == "torch" and any(map(is_private, parts))
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            imported = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name for name in imported if any(map(is_private, name.split(".")))]
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            names.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in _BY_NAME and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(str(name.value)) and name.value not in own:
                names.append(ast.unparse(node))
    return names


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_private_names_of_torch_are_in_the_adapter_only(path):
    assert private_torch_names(tree_of(path)) == []


@no_chance("another Python imports and draws nothing")
def test_loading_the_package_looks_up_no_private_name():
    pytest.importorskip("torch")
    program = (
        "import discreet.learn.torch; from discreet.learn.torch import internals; "
        "print([name for name in internals.NAMES if name in vars(internals)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import torch._C", ["torch._C"]),
        ("from torch.utils import _pytree", ["torch.utils._pytree"]),
        ("from torch.utils._pytree import tree_map", ["torch.utils._pytree.tree_map"]),
        ("from torch.nn.modules.batchnorm import _NormBase", ["torch.nn.modules.batchnorm._NormBase"]),
        ("import torch\ntorch._foreach_add_(a, b)", ["torch._foreach_add_"]),
        ("tensor._version", ["tensor._version"]),
        ("hasattr(model, '_orig_mod')", ["hasattr(model, '_orig_mod')"]),
        (
            "class A:\n def f(self, other):\n  self._x = 1\n  return other._x, self.__class__, other._y",
            ["other._y"],
        ),
        ("from discreet.noise import _own\nimport torch\ntorch.ops.aten.add", []),
    ],
)
def test_the_rule_finds_private_names_and_no_others(code, names):
    assert private_torch_names(ast.parse(code)) == names
