# SPDX-License-Identifier: Apache-2.0
"""What was written by others and lies in this repository is what its list says, and nothing else is there."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

from tests.house.project import PACKAGE, TESTS

STATIC, AXE = PACKAGE / "server" / "static", TESTS / "pages" / "vendored"
#: What is our own among the static files.
OWN = {"ask.js", "site.css"}
LICENCES = {"MIT", "BSD-0-Clause", "0BSD", "MPL-2.0"}


def entries(folder: Path) -> dict[str, dict]:
    return tomllib.loads((folder / "vendored.toml").read_text(encoding="utf-8"))


def differences(folder: Path, own: set[str]) -> list[str]:
    """The files that the list does not describe, or describes otherwise."""
    listed = entries(folder)
    there = {path.name for path in folder.iterdir()} - own - {"vendored.toml"}
    wrong = list(there ^ listed.keys())
    return wrong + [
        name
        for name in there & listed.keys()
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != listed[name]["sha256"]
    ]


@pytest.mark.parametrize(("folder", "own"), [(STATIC, OWN), (AXE, set())], ids=["static", "tests"])
def test_vendored_files_are_those_of_the_list(folder, own):
    assert differences(folder, own) == []


@pytest.mark.parametrize("folder", [STATIC, AXE], ids=["static", "tests"])
def test_every_package_has_an_exact_version_and_a_known_licence(folder):
    packages = [package for entry in entries(folder).values() for package in entry["packages"]]
    assert packages
    assert {package["licence"] for package in packages} <= LICENCES
    assert all(package["version"][0].isdigit() for package in packages)


def test_a_changed_file_is_noticed(tmp_path):
    for path in AXE.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert differences(tmp_path, set()) == []
    with (tmp_path / "axe.js").open("ab") as file:
        file.write(b"\n")
    (tmp_path / "other.js").write_text("1")
    assert differences(tmp_path, set()) == ["other.js", "axe.js"]
