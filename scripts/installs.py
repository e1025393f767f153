# SPDX-License-Identifier: Apache-2.0
"""Does what we would publish work where somebody installs it? Builds the wheel and the sdist, and installs them afresh.

    python3 scripts/installs.py                    # every environment; what a machine cannot have is skipped, and said
    python3 scripts/installs.py bare oldest        # some of them

| environment | what is installed | what is run |
|---|---|---|
| bare | the wheel without extras | façade, command line, the refusals that name the missing extra |
| wheel, sdist | the wheel or the sdist with `tables` and `plot`, pinned (`constraints.txt`) | façade, command line, demo |
| oldest | the wheel with the oldest versions that pyproject.toml allows (`constraints-oldest.txt`) | the same, and tests |
| python3.11, 3.12, 3.13 | the wheel with the newest versions that pyproject.toml allows | the same, and tests |

Everything is made in a temporary folder, which is removed at the end and when this is stopped. Needs pip's index, and
no more than the standard library. The last line says how many environments work; the exit status is 1 if one does not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")

#: What the tests themselves need. pytest's plugins are left out: one process is enough for these files.
TOOLS = ("hypothesis", "mpmath", "pandas", "pytest")

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

#: What works with nothing but the core. Prints the path of the data that come with the library.
FACADE = """
import sys
import discreet as dp
from discreet import privacy
from pathlib import Path
missing = []
for name in dp.__all__:
    try:
        getattr(dp, name)
    except dp.errors.MissingExtra as error:
        assert "pip install 'discreet[" in str(error), str(error)
        missing.append(name)
assert missing == sys.argv[1:], missing
train = 1_000 * privacy.gaussian(noise=1.0).sampled(rate=0.01) + privacy.laplace(scale=10)
assert 0 < train.epsilon(delta=1e-6) < 10
assert isinstance(dp.Laplace(epsilon=1, sensitivity=1)(1234).value, float)
print(Path(dp.__file__).parent / "data" / "adult.parquet")
"""

#: The names of the façade that need an extra by themselves.
NEED_AN_EXTRA = ("col", "connect")

REFUSED = """
import sys
import discreet as dp
try:
    dp.open(sys.argv[1], protect=dp.each("id", at_most=1))
except dp.errors.MissingExtra as error:
    assert "pip install 'discreet[tables]'" in str(error), str(error)
else:
    raise SystemExit("a table was opened without the extra")
"""

COUNT = "SELECT COUNT(*) FROM adult"

#: Commands that need an extra, which they have to name.
COMMANDS = {
    ("demo",): "tables",
    ("describe", "adult"): "tables",
    ("describe", "adult.toml"): "tables",
    ("plan", COUNT, "--data", "adult.toml", "--epsilon", "1"): "tables",
    (
        "query",
        COUNT,
        "--data",
        "adult.toml",
        "--epsilon",
        "1",
        "--ledger",
        "a.ledger",
        "--limit",
        "eps=1",
    ): "tables",
    ("release", "release.toml", "--out", "tables"): "tables",
    ("budget", "--data", "adult.toml"): "tables",
    ("budget", "--ledger", "postgresql://127.0.0.1:1/x"): "postgres",
    ("account", "gaussian(1)", "--plot", "a.png"): "plot",
}


@dataclass(frozen=True)
class Environment:
    """What is installed, with which Python (any will do if none is named), and whether tests are run there."""

    name: str
    python: str | None = None
    extras: str = "tables,plot"
    constraints: str | None = None
    from_sdist: bool = False
    tested: bool = False


ENVIRONMENTS = (
    Environment("oldest", PYTHONS[0], constraints="constraints-oldest.txt", tested=True),
    *(Environment(f"python{version}", version, tested=True) for version in PYTHONS),
    Environment("wheel", constraints="constraints.txt"),
    Environment("sdist", constraints="constraints.txt", from_sdist=True),
    Environment("bare", extras=""),
)


class Failed(Exception):
    """An environment does not work; the text says what was run and what it said."""


@dataclass
class Place:
    """The temporary folder, and the processes that are running in it."""

    folder: Path
    running: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, *words: str, cwd: Path | None = None, home: bool = False, refused: bool = False) -> str:
        """What a command says, in an empty folder or the given one, without this project on Python's path.

        Only pip sees the user's `home`: its settings and its cache are there. Raises if the command fails, or if it
        works and should have `refused`.
        """
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        environment |= {"NO_COLOR": "1", "COLUMNS": "100", "TMPDIR": str(self.made("tmp"))}
        if not home:
            environment |= {"HOME": str(self.made("home")), "MPLCONFIGDIR": str(self.made("home"))}
        with self.lock:
            if self.stopped:
                raise Failed("stopped")
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                cwd=cwd or self.made("empty"),
                env=environment,
                start_new_session=True,  # so that its own children can be stopped with it
            )
            self.running.add(process)
        said, _ = process.communicate()
        self.running.discard(process)
        if (process.returncode != 0) is not refused:
            raise Failed(f"$ {' '.join(words)}\n{said[-6_000:]}\n(exit status {process.returncode})")
        return said

    def made(self, name: str) -> Path:
        """A folder of this name inside the temporary one."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def stop(self) -> None:
        """End what is running, and start nothing any more."""
        with self.lock:
            self.stopped = True
            for process in self.running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def main(wanted: list[str]) -> int:
    """Build, install, run; two environments at a time."""
    unknown = set(wanted) - {each.name for each in ENVIRONMENTS}
    if unknown:
        print(f"no such environment: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, _stopped)
    chosen = [each for each in ENVIRONMENTS if not wanted or each.name in wanted]
    pythons = {None: sys.executable} | {version: interpreter(version) for version in PYTHONS}
    able = [each for each in chosen if pythons[each.python]]
    for each in chosen:
        if each not in able:
            print(f"SKIP {each.name}: this machine has no Python {each.python} with venv", flush=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="installs-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder))
        try:
            working = _all(able, pythons, place)
        except Failed as failed:
            print(f"the package cannot be built\n{failed}", flush=True)
            return 1
        except BaseException:
            place.stop()
            raise
    print(
        f"installs: {working} work, {len(able) - working} broken, {len(chosen) - len(able)} skipped "
        f"({time.monotonic() - begun:.0f} s)",
        flush=True,
    )
    return 0 if working == len(able) else 1


def _stopped(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def _all(able: list[Environment], pythons: dict[str | None, str | None], place: Place) -> int:
    """How many of the environments work."""
    wheel, sdist, tree = build(place)

    def works(each: Environment) -> bool:
        begun = time.monotonic()
        try:
            python = install(each, str(pythons[each.python]), sdist if each.from_sdist else wheel, place)
            said = check(each, python, tree, place)
        except Failed as failed:
            if not place.stopped:
                print(f"{each.name:12} BROKEN\n{failed}", flush=True)
            return False
        finally:
            shutil.rmtree(place.folder / each.name, ignore_errors=True)
        print(f"{each.name:12} works, {time.monotonic() - begun:.0f} s: {said}", flush=True)
        return True

    pool = ThreadPoolExecutor(max_workers=2)
    try:
        return sum(pool.map(works, able))
    except BaseException:
        place.stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


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


def build(place: Place) -> tuple[Path, Path, Path]:
    """The wheel, the sdist, and the folder that the sdist unpacks to, after a look into both."""
    tools = place.folder / "tools"
    place.run(sys.executable, "-m", "venv", str(tools))
    pip(place, tools, "install", "build")
    packed = place.made("packed")
    place.run(str(tools / "bin" / "python"), "-m", "build", "--outdir", str(packed), str(ROOT), home=True)
    (wheel,), (sdist,) = packed.glob("*.whl"), packed.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    if missing := [name for name in SHIPPED if f"discreet/{name}" not in names]:
        raise Failed(f"the wheel lacks {', '.join(missing)}")
    if strangers := [name for name in names if not name.startswith(("discreet/", "discreet-"))]:
        raise Failed(f"the wheel installs {', '.join(strangers)}")
    with tarfile.open(sdist) as archive:
        archive.extractall(place.folder / "unpacked", filter="data")
    return wheel, sdist, place.folder / "unpacked" / sdist.name.removesuffix(".tar.gz")


def install(each: Environment, python: str, package: Path, place: Place) -> Path:
    """Make the environment; the answer is its Python."""
    folder = place.folder / each.name
    constraints = [] if each.constraints is None else ["--constraint", str(ROOT / each.constraints)]
    place.run(python, "-m", "venv", "--without-pip", str(folder))
    target = f"{package}[{each.extras}]" if each.extras else str(package)
    pip(place, folder, "install", "--no-compile", *constraints, target, *(TOOLS if each.tested else ()))
    pip(place, folder, "check")
    return folder / "bin" / "python"


def check(each: Environment, python: Path, tree: Path, place: Place) -> str:
    """Use what was installed; the answer is pytest's closing line, where tests were run."""
    command, here = str(python.with_name("discreet")), place.made(f"{each.name}/here")
    data = place.run(str(python), "-c", FACADE, *(() if each.extras else NEED_AN_EXTRA), cwd=here).strip()
    for words in (["--version"], ["--help"], ["account", "3 * pure(1)", "--delta", "0"]):
        place.run(command, *words, cwd=here)
    if not each.extras:
        return _refused(python, command, Path(data), here, place)
    place.run(command, "demo", cwd=here)
    if not each.tested:
        return "façade, command line, demo"
    options = ("-p", "no:cacheprovider", "--no-header", "-r", "fE", "--color", "no")
    said = place.run(str(python), "-m", "pytest", *options, f"--basetemp={here / 'tmp'}", *TESTS, cwd=tree)
    return said.strip().splitlines()[-1]


def _refused(python: Path, command: str, data: Path, here: Path, place: Place) -> str:
    """Whatever needs an extra names it, and nothing falls over."""
    place.run(str(python), "-c", REFUSED, str(data), cwd=here)
    shutil.copy(data, here)
    shutil.copy(data.with_suffix(".toml"), here)
    (here / "release.toml").write_text(
        f'[release]\nname = "a"\ndata = "adult.toml"\nepsilon = 0.1\n[[table]]\nname = "n"\nsql = "{COUNT}"\n',
        encoding="utf-8",
    )
    for words, extra in COMMANDS.items():
        said = place.run(command, *words, cwd=here, refused=True)
        if f"pip install 'discreet[{extra}]'" not in said:
            raise Failed(f"$ discreet {' '.join(words)}\n{said[-6_000:]}\ndoes not name the extra {extra}")
    return f"façade, command line, {len(COMMANDS)} commands that name their extra"


def pip(place: Place, folder: Path, *words: str) -> str:
    """The pip of the tools, which works on any environment."""
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check")
    tools = place.folder / "tools" / "bin" / "python"
    return place.run(
        str(tools), "-m", "pip", "--python", str(folder / "bin" / "python"), *quiet, *words, home=True
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
