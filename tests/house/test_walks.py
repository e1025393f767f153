# SPDX-License-Identifier: Apache-2.0
"""A question goes through the folders of `tables` in the order that docs/explain/architecture.md explains."""

from __future__ import annotations

import importlib.util
import sys

from tests.house.project import ROOT

#: Each line is a folder, below the one that calls it. A folder that comes again has its reason in architecture.md.
WAY = """\
session
  tables/ask
    tables/data
  tables/plan
    tables/engines
  tables/data
    tables/engines
  ledger
  tables/plan
    tables/engines
    tables/answer
  tables/answer
  ledger
"""
#: What lies below them and is called wherever a guarantee or a number is needed.
BELOW = {"privacy", "mechanisms", "noise"}


def load_walks(monkeypatch):
    spec = importlib.util.spec_from_file_location("walks", ROOT / "scripts" / "walks.py")
    walks = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "walks", walks)
    spec.loader.exec_module(walks)
    return walks


def lines(visit, depth=0):
    for inner in visit.inner:
        if inner.folder not in BELOW:
            yield "  " * depth + inner.folder
            yield from lines(inner, depth + 1)


def test_a_question_enters_no_folder_again_without_a_reason(tmp_path, monkeypatch):
    walks = load_walks(monkeypatch)
    top = walks.trace(walks.question(tmp_path))
    assert "\n".join(lines(top)) + "\n" == WAY
