# SPDX-License-Identifier: Apache-2.0
"""Does what we would publish work where somebody installs it? Builds the wheel and the sdist, and installs them afresh.

    python3 scripts/installs.py                    # every environment; what a machine cannot have is skipped, and said
    python3 scripts/installs.py bare oldest        # some of them

| environment | what is installed | what is run |
|---|---|---|
| bare | the wheel without extras | façade, command line, the refusal that names the missing extra |
| sdist | the sdist with `tables`, pinned | the same, the demo, and the sdist's own tests |
| oldest | the wheel with the oldest versions that pyproject.toml allows (`constraints-oldest.txt`) | the same |
| python3.11, 3.12, 3.13 | the wheel with the newest versions that pyproject.toml allows | the same |

Environments are kept in build/installs and made again only when what goes into them has changed. Needs pip's index;
nothing else is reached. The last line says how many environments worked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "installs"
PYTHONS = ("3.11", "3.12", "3.13")

#: What the tests themselves need. pytest's plugins are left out: one process is enough for these files.
TOOLS = ("hypothesis", "mpmath", "pytest")

#: A part of the tests that touches every dependency: exact noise (cryptography, numpy), accounting (scipy), mechanisms,
#: the ledger, SQL (sqlglot), both engines (DuckDB, Polars, Arrow), the session and the command line (typer, rich).
TESTS = (
    "tests/noise/test_source.py",
    "tests/noise/test_integer.py",
    "tests/privacy/test_reference_values.py",
    "tests/mechanisms/test_additive.py",
    "tests/mechanisms/test_partition.py",
    "tests/ledger/test_ledger.py",
    "tests/tables/test_engines.py",
    "tests/tables/test_sql.py",
    "tests/tables/test_sql_meaning.py",
    "tests/tables/test_compile.py",
    "tests/test_session.py",
    "tests/cli/test_account.py",
    "tests/cli/test_query.py",
    "tests/plot/test_files.py",
)

#: What has to be in the wheel besides Python files.
SHIPPED = ("py.typed", "data/adult.parquet", "data/adult.toml", "mechanisms/partition.proof.md")

FACADE = """
import discreet as dp
from discreet import privacy
for name in dp.__all__:
    try:
        getattr(dp, name)
    except dp.errors.MissingExtra:
        pass
train = 1_000 * privacy.gaussian(noise=1.0).sampled(rate=0.01) + privacy.laplace(scale=10)
assert 0 < train.epsilon(delta=1e-6) < 10
assert isinstance(dp.Laplace(epsilon=1, sensitivity=1)(1234).value, float)
"""

REFUSED = """
import discreet as dp
try:
    dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))
except dp.errors.MissingExtra as error:
    assert "pip install" in str(error) and "tables" in str(error), str(error)
else:
    raise SystemExit("a table was opened without the extra")
"""


@dataclass(frozen=True)
class Environment:
    """What is installed, and with which Python."""

    name: str
    python: str
    extras: str = "tables,plot"
    constraints: str | None = None
    from_sdist: bool = False

    @property
    def folder(self) -> Path:
        return PLACE / self.name

    @property
    def interpreter(self) -> Path:
        return self.folder / "bin" / "python"


ENVIRONMENTS = (
    Environment("bare", PYTHONS[0], extras=""),
    Environment("sdist", PYTHONS[0], extras="tables", constraints="constraints.txt", from_sdist=True),
    Environment("oldest", PYTHONS[0], constraints="constraints-oldest.txt"),
    *(Environment(f"python{version}", version) for version in PYTHONS),
)


class Failed(Exception):
    """An environment does not work; the text says what was run and what it said."""


def main(wanted: list[str]) -> int:
    """Build, install, run; the exit status is 1 if an environment does not work."""
    unknown = set(wanted) - {each.name for each in ENVIRONMENTS}
    if unknown:
        print(f"no such environment: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [each for each in ENVIRONMENTS if not wanted or each.name in wanted]
    pythons = {version: python for version in PYTHONS if (python := interpreter(version)) is not None}
    working, skipped, broken = 0, 0, 0
    try:
        wheel, sdist = build(next(iter(pythons.values()), sys.executable))
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    for each in chosen:
        begun = time.monotonic()
        if each.python not in pythons:
            print(f"{each.name:12} skipped: this machine has no Python {each.python}", flush=True)
            skipped += 1
            continue
        try:
            install(each, pythons[each.python], sdist if each.from_sdist else wheel)
            said = check(each, sdist)
        except Failed as failed:
            print(f"{each.name:12} BROKEN\n{failed}", flush=True)
            broken += 1
        else:
            print(f"{each.name:12} works, {time.monotonic() - begun:.0f} s: {said}", flush=True)
            working += 1
    print(f"installs: {working} work, {broken} broken, {skipped} skipped", flush=True)
    return 1 if broken else 0


def interpreter(version: str) -> str | None:
    """A Python of that version: on the path, or among those of pyenv or uv; nothing is downloaded."""
    candidates = [shutil.which(f"python{version}"), sys.executable]
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += sorted(map(str, home.glob(f"{version}.*/bin/python")), reverse=True)
    if (uv := shutil.which("uv")) is not None:
        found = subprocess.run(
            [uv, "python", "find", "--offline", version], capture_output=True, text=True, check=False
        )
        candidates.append(found.stdout.strip())
    return next((each for each in candidates if each and _version(each) == version), None)


def _version(python: str) -> str:
    words = [python, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def build(python: str) -> tuple[Path, Path]:
    """The wheel and the sdist, and a look into both."""
    tools = PLACE / "tools"
    if not (tools / "bin" / "python").exists():
        run(python, "-m", "venv", str(tools))
        pip(tools, "install", "build")
    packed = PLACE / "packed"
    shutil.rmtree(packed, ignore_errors=True)
    run(str(tools / "bin" / "python"), "-m", "build", "--outdir", str(packed), str(ROOT))
    (wheel,), (sdist,) = packed.glob("*.whl"), packed.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    if missing := [name for name in SHIPPED if f"discreet/{name}" not in names]:
        raise Failed(f"the wheel lacks {', '.join(missing)}")
    if strangers := [name for name in names if not name.startswith(("discreet/", "discreet-"))]:
        raise Failed(f"the wheel installs {', '.join(strangers)}")
    with tarfile.open(sdist) as archive:
        shutil.rmtree(PLACE / "unpacked", ignore_errors=True)
        archive.extractall(PLACE / "unpacked", filter="data")
    return wheel, sdist


def install(each: Environment, python: str, package: Path) -> None:
    """Make the environment, unless it is there and made of the same things; the package is always the new one."""
    constraints = [] if each.constraints is None else ["--constraint", str(ROOT / each.constraints)]
    stamp = each.folder / ".made-of"
    made_of = hashlib.sha256(
        b"".join([repr((each, python, TOOLS)).encode(), *(Path(p).read_bytes() for p in constraints[1:])])
        + (ROOT / "pyproject.toml").read_bytes()
    ).hexdigest()
    target = f"{package}[{each.extras}]" if each.extras else str(package)
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == made_of):
        shutil.rmtree(each.folder, ignore_errors=True)
        run(python, "-m", "venv", str(each.folder))
        # the bare environment is asked what it has before the tests' tools come
        pip(each.folder, "install", *constraints, target, *(TOOLS if each.extras else ()))
        stamp.write_text(made_of, encoding="utf-8")
    pip(each.folder, "install", "--force-reinstall", "--no-deps", str(package))
    pip(each.folder, "check")


def check(each: Environment, sdist: Path) -> str:
    """Use what was installed; the answer is pytest's closing line, where tests were run."""
    python, command = str(each.interpreter), str(each.interpreter.with_name("discreet"))
    run(python, "-c", FACADE)
    run(command, "--version")
    run(command, "--help")
    run(command, "account", "--pure", "1", "--times", "3", "--delta", "0")
    if not each.extras:
        run(python, "-c", REFUSED)
        return "without extras"
    run(command, "demo")
    tree = PLACE / "unpacked" / sdist.name.removesuffix(".tar.gz")
    options = ("-q", "-p", "no:cacheprovider", "--no-header", "-r", "fE")
    said = run(python, "-m", "pytest", *options, *TESTS, cwd=tree)
    return said.strip().splitlines()[-1]


def pip(folder: Path, *words: str) -> str:
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check")
    return run(str(folder / "bin" / "python"), "-m", "pip", *quiet, *words)


def run(*words: str, cwd: Path | None = None) -> str:
    """Run a command in an empty folder, or the given one, without this project on Python's path; raises if it fails."""
    place = cwd or PLACE / "empty"
    place.mkdir(parents=True, exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=place, env=environment)
    if done.returncode:
        raise Failed(f"$ {' '.join(words)}\n{(done.stdout + done.stderr)[-6_000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
