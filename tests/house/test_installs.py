# SPDX-License-Identifier: Apache-2.0
"""What `make installs` installs is what pyproject.toml allows, and `.ci/run` asks for it."""

from __future__ import annotations

import re
import tomllib

from tests.house.project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: What is installed with the oldest versions only so that the others work.
COMPANIONS = {"pyparsing"}


def as_numbers(version):
    """Versions are equal up to zeros at their end."""
    return re.sub(r"(\.0)+$", "", version)


def test_the_oldest_versions_are_the_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    allowed = [
        *PROJECT["dependencies"],
        *(each for extra in ("tables", "plot", "pandas") for each in extras[extra]),
    ]
    bounds = dict(each.split(">=") for each in allowed)
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert {name: as_numbers(version) for name, version in oldest.items() if name not in COMPANIONS} == {
        name: as_numbers(version) for name, version in bounds.items()
    }


def test_every_python_that_is_guaranteed_is_installed():
    guaranteed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    script = (ROOT / "scripts" / "installs.py").read_text(encoding="utf-8")
    told = ", ".join(f'"{version}"' for version in guaranteed)
    assert f"PYTHONS = ({told})" in script


def test_every_file_that_is_run_there_exists():
    script = (ROOT / "scripts" / "installs.py").read_text(encoding="utf-8")
    files = re.findall(r'"(tests/[\w/]+\.py)"', script)
    assert len(files) > 10
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_nothing_lands_without_it():
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line.split(" 2>&1")[0].split(" ||")[0] for line in commands if line.startswith("make ")] == [
        "make test",
        "make installs",
    ]
