# SPDX-License-Identifier: Apache-2.0
"""The command in this very process: a line in, what it printed and its exit code out."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

import pytest

from discreet.cli import main
from tests.cli import visits


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """What was printed, whatever the spacing."""
        return " ".join(self.out.split())

    @property
    def object(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture
def discreet(capsys, monkeypatch):
    """Run `discreet …` and look."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(line: str) -> Done:
        with pytest.raises(SystemExit) as left:
            main(shlex.split(line))
        printed = capsys.readouterr()
        return Done(int(left.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, which holds a private table, its description and its release."""
    monkeypatch.chdir(tmp_path)
    visits.make(tmp_path)
    return tmp_path
