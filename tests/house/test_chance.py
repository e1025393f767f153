# SPDX-License-Identifier: Apache-2.0
"""The guarantees of tests/chance.py: repeated noise is repeated, fresh noise is stated, and the sum of chances is bounded.

Small files of tests are run by a pytest of their own, with this project's hooks and nothing else of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests import chance
from tests.house.project import ROOT

pytestmark = chance.may_fail(1e-70, "two lists of 256 bits agree, of a hundred pairs at most")

HEADER = """
import json, os, random, subprocess, sys, threading
from pathlib import Path
import numpy as np
import pytest
from discreet.noise.source import current
from tests.chance import may_fail, no_chance, risk

def note(name, found):
    with open("noted.jsonl", "a") as notes:
        notes.write(json.dumps([name, found]) + "\\n")

def words():
    return [int(word) for word in current().words(4)]
"""

DRAWS = """
@pytest.fixture(scope="module")
def shared():
    return words()

def test_first():
    note("first", words())

@pytest.mark.parametrize("case", ["a", "b"])
def test_cases(case):
    note(f"case {case}", words())

def test_the_generators_of_the_data():
    note("python", random.getrandbits(256))
    note("numpy", np.random.default_rng().integers(2**62, size=5).tolist())

def test_shared(shared):
    note("shared", shared)

@may_fail(1e-70, "two words agree")
def test_fresh():
    note("fresh", words())
"""

ELSEWHERE = """
def thread():
    one = threading.Thread(target=words)
    one.start()
    one.join()

def child():
    if (number := os.fork()) == 0:
        words()
        os._exit(0)
    assert os.waitpid(number, 0)[1] == 0

def python():
    subprocess.run([sys.executable, "-c", "pass"], check=True)

def here():
    words()

WAYS = pytest.mark.parametrize("way", [here, thread, child, python])

@WAYS
def test_unstated(way):
    way()

@no_chance("nothing is looked at")
@WAYS
def test_stated(way):
    way()

@may_fail(3e-10, "two assertions")
@pytest.mark.parametrize("times", [2, 4])
def test_risked(times):
    for _ in range(times):
        risk(1e-10)
"""

MANY = """
@may_fail(1e-8, "ten assertions")
@pytest.mark.parametrize("number", range({}))
def test_many(number):
    pass
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a file of tests, and answers with the exit status, what was said, and what the tests noted."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = chance\n", encoding="utf-8")

    def run_file(text, *options):
        (folder / "test_small.py").write_text(HEADER + text, encoding="utf-8")
        noted = folder / "noted.jsonl"
        noted.unlink(missing_ok=True)
        plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:xdist")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rA", "--color=no", *plugins, *options, "test_small.py"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []
        return done.returncode, done.stdout + done.stderr, dict(map(json.loads, lines))

    return run_file


@pytest.fixture(scope="module")
def one(run):
    """What the tests that draw noted in one run."""
    code, said, noted = run(DRAWS)
    assert code == 0, said
    return noted


def test_noise_is_the_same_in_every_run_and_differs_between_names_and_seeds(run, one):
    (_, _, again), (_, _, other) = run(DRAWS), run(DRAWS, "--noise-seed=7")
    assert set(one) == {"first", "case a", "case b", "python", "numpy", "shared", "fresh"}
    assert {name for name in one if one[name] == again[name]} == set(one) - {"fresh"}
    assert {name for name in one if one[name] == other[name]} == set()
    drawn = [str(found) for noted in (one, other) for found in noted.values()]
    assert len(set(drawn)) == len(drawn)


def test_noise_does_not_depend_on_which_tests_are_run(run, one):
    code, said, two = run(DRAWS, "-k", "case or shared")
    assert code == 0, said
    assert two == {name: one[name] for name in ("case a", "case b", "shared")}


def test_whoever_draws_where_noise_cannot_be_repeated_or_risks_too_much_has_to_say_so(run):
    code, said, _ = run(ELSEWHERE)
    assert code == 1, said
    failed = set(re.findall(r"^FAILED test_small.py::(\S+)", said, re.MULTILINE))
    passed = set(re.findall(r"^PASSED test_small.py::(\S+)", said, re.MULTILINE))
    assert failed == {
        "test_unstated[thread]",
        "test_unstated[child]",
        "test_unstated[python]",
        "test_risked[4]",
    }
    assert passed == {
        "test_unstated[here]",
        "test_risked[2]",
        *(f"test_stated[{way}]" for way in ("here", "thread", "child", "python")),
    }
    assert "state how likely it is to fail" in said
    assert "risks more than the chance that it states" in said


@pytest.mark.parametrize(("number", "fits"), [(99, True), (100, False)])
def test_chances_are_added_and_too_great_a_sum_is_refused(run, number, fits):
    code, said, _ = run(MANY.format(number))
    assert (code == 0) is fits, said
    assert (f"{number} passed" in said) is fits
    assert ("fail by chance with probability 1e-06" in said) is not fits


def test_the_bounds_of_a_mark_are_checked():
    for bound in (-1e-9, 1.1e-6, float("nan")):
        with pytest.raises(AssertionError):
            chance.may_fail(bound, "two words agree")
    with pytest.raises(AssertionError, match="say what"):
        chance.may_fail(1e-9, "")
    with pytest.raises(AssertionError, match="so often"):
        chance.risk(1.1e-9)
    chance.risked()
    assert chance.total([1e-9] * 1000) == pytest.approx(1e-6, rel=1e-12)
