# SPDX-License-Identifier: Apache-2.0
"""Imports go along the arrows of docs/explain/architecture.md, and only there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.house.project import PACKAGE, SRC, module_name, relative, source_files, tree_of

# part -> the parts whose arrows point at it. What those stand on may be imported too.
ARROWS: dict[str, tuple[str, ...]] = {
    "errors": (),
    "check": ("errors",),
    "exact": (),
    "json_types": (),
    "paths": ("errors",),
    "extras": ("errors",),
    "data": ("errors",),
    "noise": ("check", "exact"),
    "privacy": ("check", "exact", "json_types"),
    "mechanisms": ("noise", "privacy"),
    "forks": (),
    "streams": ("check",),
    "clock": (),
    "tables": ("mechanisms", "streams", "plot", "paths", "extras", "forks"),
    "graphs": ("mechanisms",),
    "learn": ("mechanisms", "plot"),
    "ledger": ("privacy", "paths", "forks"),
    "session": ("tables", "graphs", "learn", "ledger", "clock"),
    "plot": ("mechanisms", "paths"),
    "audit": ("mechanisms", "plot"),
    "testing": ("noise", "clock"),
    "client": ("session",),
    "cli": ("session", "audit", "data", "server", "client"),
    "server": ("session", "audit", "data"),
    "__main__": ("cli",),
    "__init__": ("extras",),  # the façade loads its names lazily and is imported by nobody
}

# The folders of `tables`, and the folders that each may import. A question goes from `ask` to `plan` to `answer`; all of
# them speak `algebra`.
TABLES: dict[str, tuple[str, ...]] = {
    "algebra": (),
    "data": ("algebra",),
    "workloads": (),
    "ask": ("algebra", "data"),
    "answer": ("algebra", "ask", "data", "workloads"),
    "plan": ("algebra", "answer", "ask", "data", "workloads"),
    "streams": ("algebra", "answer", "ask", "data", "plan"),
    "synthetic": ("algebra", "plan", "answer", "ask", "data", "workloads"),
    "engines": ("algebra", "data"),
    "open": ("algebra", "ask", "data", "engines"),
    "__init__": ("answer", "ask", "data", "plan"),
}

# Third-party modules, and the only places where they may be named.
HOMES: dict[str, tuple[str, ...]] = {
    "numpy": (
        "privacy",
        "noise",
        "mechanisms",
        "streams",
        "tables",
        "graphs",
        "learn",
        "audit",
        "plot",
        "session",
        "cli",
    ),
    "scipy": ("privacy", "noise", "mechanisms", "tables", "graphs", "learn", "audit"),
    "cryptography": ("noise", "ledger"),
    "typer": ("cli",),
    "rich": ("cli", "learn"),
    # `tables`, `learn` and `session` name its types only.
    "matplotlib": ("plot", "audit", "tables", "learn", "session"),
    "duckdb": ("tables",),
    "polars": ("tables",),
    "pyarrow": ("tables",),
    "openpyxl": ("tables",),
    "sqlglot": ("tables",),
    "pyspark": ("tables",),
    "psycopg": ("ledger", "tables", "server"),
    "sklearn": ("learn",),
    "torch": ("learn",),
    "fastapi": ("server",),
    "starlette": ("server",),
    "pydantic": ("server",),
    "uvicorn": ("server", "cli"),
    "jinja2": ("server",),
    "httpx": ("client", "server"),
}

FILES = source_files()
MODULES = {module_name(path): path for path in FILES}


def stands_on(part: str) -> set[str]:
    """Everything that `part` may import: along the arrows, any number of them."""
    return set().union(*({near} | stands_on(near) for near in ARROWS[part]))


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def targets(node: ast.Import | ast.ImportFrom, module: str, path: Path) -> Iterator[str]:
    """The modules that an import statement names; `from package import sub` names package.sub."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
        base = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        yield inner if inner in MODULES else base


def imports(path: Path, *, at_load_only: bool = False) -> list[tuple[int, str]]:
    module = module_name(path)
    nodes = loaded_at_once(tree_of(path)) if at_load_only else ast.walk(tree_of(path))
    return [
        (node.lineno, target)
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in targets(node, module, path)
    ]


def loaded_at_once(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when the module is loaded: not in functions, not for types only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from loaded_at_once(child)


def forbidden(path: Path) -> list[str]:
    """The imports of this file that go against an arrow, or through its own façade."""
    module = module_name(path)
    part, package = part_of(module), module if path.name == "__init__.py" else module.rpartition(".")[0]
    allowed = stands_on(part) | {part}
    found = []
    for line, target in imports(path):
        if target.split(".")[0] != "discreet" or module == "discreet":
            continue
        if target in {"discreet", package} and target != module:
            found.append(f"line {line}: {module} imports its own façade {target}")
        elif part_of(target) not in allowed:
            found.append(f"line {line}: {part} may not import {part_of(target)}")
    return found


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_follow_the_arrows(path):
    assert part_of(module_name(path)) in ARROWS, "a new part: draw its arrow here and in architecture.md"
    assert forbidden(path) == []


@pytest.mark.parametrize("path", sorted((PACKAGE / "tables").rglob("*.py")), ids=relative)
def test_a_question_never_goes_back_to_a_folder(path):
    folder = folder_of(module_name(path))
    against = {target for _, target in imports(path) if target.startswith("discreet.tables.")}
    against = {target for target in against if folder_of(target) not in {folder, *TABLES[folder]}}
    assert against == set()


def folder_of(module: str) -> str:
    """The folder of `tables` that a module lies in."""
    return module.split(".")[2] if module != "discreet.tables" else "__init__"


def test_siblings_and_ancestors_are_out_of_reach():
    assert "learn" not in stands_on("tables")
    assert "ledger" not in stands_on("audit")
    assert stands_on("privacy") == {"check", "errors", "exact", "json_types"}
    assert {"noise", "privacy", "ledger"} <= stands_on("cli")


def test_no_module_needs_itself_to_load():
    needs = {
        module: {target for _, target in imports(path, at_load_only=True) if target in MODULES}
        for module, path in MODULES.items()
    }
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as cycle:
        order = cycle.args[1]
    assert len(order) == len(set(order)), f"an import cycle: {' -> '.join(order)}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_third_party_modules_are_named_only_at_home(path):
    part = part_of(module_name(path))
    strangers = {
        target.split(".")[0]
        for _, target in imports(path)
        if target.split(".")[0] in HOMES and part not in HOMES[target.split(".")[0]]
    }
    assert strangers == set()


def test_the_rule_sees_a_breach(monkeypatch):
    breach = PACKAGE / "privacy" / "breach.py"
    source = "from discreet import Guarantee\nfrom discreet.noise.source import Source\nfrom . import pure\n"
    monkeypatch.setattr("tests.house.test_imports.tree_of", lambda _: ast.parse(source))
    assert breach.is_relative_to(SRC)
    assert len(forbidden(breach)) == 3
