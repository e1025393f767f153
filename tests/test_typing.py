# SPDX-License-Identifier: Apache-2.0
"""A type checker finds a misspelt name in a program that uses the library, and finds nothing in a right one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chance import no_chance
from tests.house.project import ROOT

pytest.importorskip("mypy")

PRELUDE = """\
import discreet as dp

data = dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))
session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6), ledger="visits.ledger")
count = "SELECT COUNT(*) FROM visits"
"""
#: A line with a slip, and what the type checker says of it.
SLIPS = {
    "session.sql(count, epsilom=0.1)": "epsilom",
    "session.sql(count, epsilon='much')": "epsilon",
    "session.sql(epsilon=0.1)": "text",
    "session.sql(count, error=['±50'])": "error",
    "session.sql(count, epsilon=0.1, keys='monday')": "keys",
    "session.sql(count, epsilon=0.1).intervall": "intervall",
    "session.sqll(count, epsilon=0.1)": "sqll",
    "session.preview(count, rhoo=0.1)": "rhoo",
    "session.preview(7, epsilon=0.1)": "preview",
    "session.release(data.count(), epsilom=0.1)": "release",
    "session.release(data.count(), epsilon=0.1).rowz()": "rowz",
    "session.release(dp.Laplace(epsilon=1, sensitivity=1), 42, epsilon=1)": "release",
    "session.release(dp.Laplace(epsilon=1, sensitivity=1), 42).rows()": "rows",
    "session.release_batch({'monday': (count, {'epsilom': 0.1})})": "epsilom",
    "session.release_batch([count])": "release_batch",
    "session.charge(0.1, question='a survey')": "charge",
    "session.charge(dp.privacy.pure(0.1), questions='a survey')": "questions",
    "session.find(7, count)": "find",
    "session.budget().spent_fractoin": "spent_fractoin",
    "session.bound_guarantee(epsillon=0.1)": "epsillon",
    "dp.each('patient_id', at_mots=20)": "at_mots",
    "dp.Session(data, limit=1.0)": "limit",
    "dp.Session(data, legder='visits.ledger')": "legder",
    "dp.Sesion(data)": "Sesion",
    "dp.audit(len, [1], [2], trails=300)": "trails",
    "dp.audit.one_run([True], [1.0], gueses=1)": "gueses",
    "dp.audit.one_runn(len)": "one_runn",
}
RIGHT = """
answer = session.sql(count, epsilon=0.1, key="monday")
header: list[str] = answer.header
print(session.preview(data.where(dp.col("age") >= 65).count(), error="±50").cost)
value = session.release(dp.Laplace(epsilon=1, sensitivity=1), 42, key="monday").value
batch = session.release_batch({"monday": (count, {"epsilon": 0.1}), "week": (data.count(), {"rho": 0.01})})
rows = batch["monday"].rows()
refuted: bool = dp.audit(len, [1], [2], trials=300, claim=dp.privacy.pure(1)).refutes()
bound: float = dp.audit.one_run([True, False], [1.0, 0.0]).epsilon_at_least
same: bool = dp.audit.audit(len, [1], [2], trials=300).refutes()
remaining: float = session.budget().remaining_fraction
print(dp.data.path("adult.toml"), dp.learn, dp.tables, dp.ledger, dp.noise, dp.testing)
"""


def complaints(programs: dict[str, str], folder: Path) -> dict[str, dict[int, str]]:
    """What mypy says of each line of some programs, with its usual settings, in one run."""
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program, encoding="utf-8")
    options = ["--config-file=", "--cache-dir", str(folder / "cache"), "--no-error-summary", "--no-pretty"]
    # What is inside of the library is checked elsewhere.
    silent = ["--follow-imports=silent", "--ignore-missing-imports", "--check-untyped-defs"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *silent, *(f"{name}.py" for name in programs)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines: dict[str, dict[int, str]] = {name: {} for name in programs}
    for name, number, text in re.findall(r"^(\w+)\.py:(\d+): (.*)", done.stdout, flags=re.MULTILINE):
        lines[name][int(number)] = lines[name].get(int(number), "") + text + "\n"
    return lines


def readme_program() -> str:
    """The Python of the README as one program."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


@no_chance("mypy runs no program")
def test_each_slip_is_found_and_what_is_right_and_the_readme_have_no_complaints(tmp_path):
    slips = PRELUDE + "".join(f"{slip}\n" for slip in SLIPS) + RIGHT
    lines = complaints({"slips": slips, "readme": readme_program()}, tmp_path)
    first = PRELUDE.count("\n") + 1
    missed = [
        slip for number, slip in enumerate(SLIPS, first) if SLIPS[slip] not in lines["slips"].get(number, "")
    ]
    assert missed == []
    assert {number: text for number, text in lines["slips"].items() if number >= first + len(SLIPS)} == {}
    assert lines["readme"] == {}
