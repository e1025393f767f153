# SPDX-License-Identifier: Apache-2.0
"""`discreet audit`: exit code 5 for a guarantee that is not kept, 0 for one that is not refuted."""

from __future__ import annotations

import pytest

from discreet import privacy
from discreet.cli.audit import read_claim

MINE = """
from discreet.mechanisms import Geometric, Laplace
from discreet.audit import batched
import numpy as np

kept = Geometric(epsilon=1, sensitivity=1)
pair = ([0, 1], [0])

def honest(data):
    return kept.draw(len(data))

def leaks(data):
    return sum(data)

class Family:
    half = batched(lambda data, count: data + np.random.default_rng().laplace(0, 0.5, count))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "audited_example.py").write_text(MINE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_guarantee_that_holds_exits_with_status_0(discreet, here):
    done = discreet("audit audited_example:kept --trials 400")
    assert (done.code, done.err) == (0, "")
    assert "not refuted" in done.words
    assert "discrete_laplace" in done.words


def test_a_guarantee_that_does_not_hold_exits_with_status_5(discreet, here):
    done = discreet("audit audited_example.py:leaks --inputs audited_example:pair --claim eps=1 --trials 400")
    assert done.code == 5
    assert "REFUTED" in done.words
    assert "value" in done.words


def test_inputs_may_be_written_out(discreet, here):
    done = discreet(
        "audit audited_example:Family.half --inputs '[0, 1]' --claim eps=1 --trials 20000 --look-at values --json"
    )
    assert done.code == 5
    found = done.object
    assert found["command"] == "audit"
    assert found["refuted"] is True
    assert 1.5 < found["epsilon_at_least"] < 2


def test_several_claims_are_judged_one_by_one(discreet, here):
    line = "audit audited_example:honest --inputs audited_example:pair --trials 4000 --json"
    done = discreet(f"{line} --claim eps=1 --claim eps=0.1 --claim mu=5")
    assert done.code == 5
    assert [verdict["refuted"] for verdict in done.object["claims"]] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps=1", privacy.pure(1.0)),
        ("eps=1, delta=1e-6", privacy.approximate(1.0, 1e-6)),
        ("rho=0.5", privacy.concentrated(0.5)),
        ("mu=2", privacy.gaussian(0.5)),
    ],
)
def test_a_claim_is_read_from_its_words(text, claim):
    assert read_claim(text) == claim


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("audit audited_example:kept --claim sigma=1", 2, "DP105"),
        ("audit audited_example:kept --claim eps=one", 2, "DP104"),
        ("audit audited_example:kept --claim eps=-1", 2, "DP102"),
        ("audit audited_example:kept --claim rho=1,mu=1", 2, "DP105"),
        ("audit audited_example:missing", 2, "DP105"),
        ("audit no_such_module:name", 2, "DP105"),
        ("audit audited_example", 2, "DP105"),
        ("audit audited_example:kept --inputs '[0]'", 2, "DP107"),
        ("audit audited_example:kept --inputs '[0'", 2, "DP107"),
        ("audit audited_example:leaks", 3, "DP203"),
        ("audit audited_example:kept --trials 10", 2, "DP102"),
        ("audit audited_example:kept --look-at nothing", 2, "DP105"),
    ],
)
def test_what_cannot_be_audited_is_refused(discreet, here, line, code, message):
    done = discreet(line)
    assert done.code == code
    assert done.err.startswith(message)


def test_the_help_says_what_five_means(discreet):
    out = discreet("audit --help").out
    assert [
        flag for flag in ("--claim", "--inputs", "--trials", "--confidence", "--json") if flag not in out
    ] == []
    assert "5" in out
