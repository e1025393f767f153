# SPDX-License-Identifier: Apache-2.0
"""Without an extra: whatever needs it names the line that installs it, and never blames the path.

Libraries are hidden from a child process, all of them (as after `pip install discreet`), or one at a time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import duckdb
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

import discreet as dp
from discreet import privacy
from discreet.cli.app import app
from discreet.errors import EXTRAS
from tests.chance import no_chance
from tests.house.project import ROOT

pytestmark = no_chance("another Python is asked what it refuses, and shows no answer")

HIDING = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder

hidden = set(sys.argv[1].split(","))

class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0].removeprefix("_") in hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Bare if finder is PathFinder else finder for finder in sys.meta_path]

def command(*words):
    from discreet.cli import main
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main(list(words))
    except SystemExit as left:
        return f"exit {left.code or 0}", out.getvalue()

said = {}
for door in json.loads(sys.argv[2]):
    import discreet as dp
    from discreet.errors import DiscreetError
    try:
        found = eval(door.replace("WHOM", sys.argv[3]))
        said[door] = found if isinstance(found, tuple) else ("worked", "")
    except DiscreetError as error:
        said[door] = (error.code, str(error))
    except BaseException as error:
        said[door] = (type(error).__name__, str(error))
print(json.dumps(said))
"""
WHOM = "protect=dp.each('patient_id', at_most=2)"
ANSWER = "__import__('discreet.tables.answer.answer', fromlist=['x']).Answer(('a',), ((1,),), {})"
COUNT = "SELECT COUNT(*) FROM visits"
#: What needs an extra, and which one; by the libraries that are hidden.
NEEDS = {
    "dp.open('visits.parquet', WHOM)": "tables",
    "dp.open('visits.csv', WHOM)": "tables",
    "dp.open('visits.arrow', WHOM)": "tables",
    "dp.open('clinic.duckdb', WHOM)": "tables",
    "dp.open('visits.toml')": "tables",
    "dp.open('visits.parquet')": "tables",
    "dp.open('postgresql://127.0.0.1:1/x', WHOM, table='visits')": "postgres",
    "dp.col('days') + 1": "tables",
    "__import__('discreet.tables').tables.when": "tables",
    "__import__('discreet.tables.engines').tables.engines.duckdb({}, units={})": "tables",
    "__import__('discreet.tables.engines').tables.engines.polars({}, units={})": "tables",
    "dp.Ledger('postgresql://127.0.0.1:1/x')": "postgres",
    "dp.graphs.Graph('visits.parquet', nodes=3)": "tables",
    "dp.plot.loss(dp.privacy.pure(1))": "plot",
    "dp.plot.save(dp.privacy.pure(1), 'pure.png')": "plot",
    "__import__('discreet.learn').learn.LinearRegression": "learn",
    "__import__('discreet.learn.torch')": "torch",
    f"{ANSWER}.to_pandas()": "pandas",
    f"{ANSWER}.to_polars()": "tables",
    f"{ANSWER}.to_arrow()": "tables",
    "command('demo')": "tables",
    "command('describe', 'visits.parquet')": "tables",
    "command('describe', 'visits.toml')": "tables",
    "command('describe', 'adult')": "tables",
    f"command('plan', '{COUNT}', '--data', 'visits.toml', '--epsilon', '1')": "tables",
    f"command('query', '{COUNT}', '--data', 'visits.toml', '--epsilon', '1', '--ledger', 'a.ledger', '--limit', 'eps=1')": "tables",
    "command('release', 'release.toml', '--out', 'tables')": "tables",
    "command('plan', 'release.toml')": "tables",
    "command('budget', '--data', 'visits.toml')": "tables",
    "command('synthesize', '--data', 'visits.toml', '--epsilon', '1', '--delta', '1e-6')": "tables",
    "command('stream', 'show', 'x', '--data', 'visits.toml', '--ledger', 'old.ledger')": "tables",
    "command('statement', 'old.ledger', '--data', 'visits.toml')": "tables",
    "command('budget', '--ledger', 'postgresql://127.0.0.1:1/x')": "postgres",
    "command('account', 'gaussian(1)', '--plot', 'a.png')": "plot",
    "command('serve', 'visits.toml')": "server",
    "command('serve', 'check', 'visits.toml')": "server",
    "command('people', 'list', 'visits.toml')": "server",
    "command('login', 'http://127.0.0.1:1/d/visits')": "tables",
}
#: What works with nothing but the core.
WORKS = [
    "dp.Laplace(epsilon=1, sensitivity=1)(42).value",
    "dp.noisy_max([1, 2], epsilon=1, sensitivity=1)",
    "dp.privacy.gaussian(1.0).epsilon(delta=1e-6)",
    "dp.Ledger('old.ledger').budget()",
    "dp.graphs.Graph('visits.csv', nodes=3)",
    "dp.plot.save(dp.privacy.pure(1), 'pure.svg')",
    "dp.smooth.median([1.0, 2.0, 3.0], bounds=(0, 10), epsilon=1)",
    "dp.audit(dp.Laplace(epsilon=1, sensitivity=1), 0, 1, trials=500)",
    f"{ANSWER}.rows()",
    "command('demo', '--accountant')",
    "command('describe', 'visits.csv')",
    "command('budget', '--ledger', 'old.ledger')",
    "command('ledger', 'show', 'old.ledger')",
    "command('ledger', 'verify', 'old.ledger')",
    "command('ledger', 'export', 'old.ledger')",
    "command('statement', 'old.ledger')",
    "command('account', 'gaussian(1)', '--plot', 'a.svg')",
    "command('account', 'dpsgd', '--help')",
    "command('audit', '--help')",
    "command('version')",
]
NOWHERE = "dp.open('nowhere.parquet', WHOM)"
#: Names of the façade that need an extra by themselves.
NAMES = {"col": "tables", "connect": "tables"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("bare")
    table = pa.table({"patient_id": [1, 2], "days": [3, 4]})
    parquet.write_table(table, place / "visits.parquet")
    csv.write_csv(table, place / "visits.csv")
    feather.write_feather(table, str(place / "visits.arrow"))
    with duckdb.connect(str(place / "clinic.duckdb")) as database:
        database.execute("CREATE TABLE visits (patient_id INTEGER)")
    told = '[dataset]\nsource = "visits.parquet"\nname = "visits"\nunit = "patient_id"\n[limits]\nrows_per_unit = 2\n'
    (place / "visits.toml").write_text(told, encoding="utf-8")
    asked = f'[release]\nname = "a"\ndata = "visits.toml"\nepsilon = 0.1\n[[table]]\nname = "n"\nsql = "{COUNT}"\n'
    (place / "release.toml").write_text(asked, encoding="utf-8")
    limit = dp.Limit.filter(epsilon=1)
    with dp.Ledger(place / "old.ledger", limit=limit, unit="patient_id", dataset="visits") as book:
        book.charge(privacy.pure(0.1, unit="patient_id"))
    return place


def without(hidden, doors, folder):
    """What every door says where these libraries are not installed."""
    words = [sys.executable, "-c", HIDING, ",".join(hidden), json.dumps(list(doors)), WHOM]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def bare(folder):
    """What every door says where no extra is installed, in one Python."""
    names = [f"dp.{name}" for name in dp.__all__]
    return without(EXTRAS, [*NEEDS, *WORKS, *names, NOWHERE], folder)


def test_whatever_needs_an_extra_names_it(bare):
    for door, extra in NEEDS.items():
        kind, text = bare[door]
        assert kind in {"DP501", "exit 3"}, (door, kind, text)
        assert text.startswith("DP501"), (door, text)
        assert f"pip install 'discreet[{extra}]'" in text, (door, text)


def test_the_rest_works(bare):
    assert {door: bare[door] for door in WORKS if bare[door][0] not in {"worked", "exit 0"}} == {}


@pytest.mark.parametrize("name", dp.__all__)
def test_a_name_of_the_facade_is_there_or_names_its_extra(bare, name):
    kind, text = bare[f"dp.{name}"]
    expected = ("DP501", True) if name in NAMES else ("worked", False)
    assert (kind, f"discreet[{NAMES.get(name)}]" in text) == expected, text


def test_every_command_is_tried():
    words = set(re.findall(r"command\('(\w+)'", " ".join([*NEEDS, *WORKS])))
    commands = {command.name for command in app.registered_commands} | {
        one.name for one in app.registered_groups
    }
    assert commands <= words


@pytest.mark.parametrize("library", ["duckdb", "pyarrow", "sqlglot"])
def test_one_library_that_is_missing_is_named(library, folder):
    doors = ["dp.open('visits.parquet', WHOM)", "command('describe', 'visits.toml')"]
    for door, (kind, text) in without([library], doors, folder).items():
        assert kind in {"DP501", "exit 3"}, (door, text)
        assert f"needs {library}, which is not installed" in text, (door, text)


def test_another_engine_needs_its_own_library(folder):
    door = "dp.open('visits.parquet', WHOM, engine='polars')"
    ((kind, text),) = without(["polars"], [door], folder).values()
    assert (kind, "needs polars" in text) == ("DP501", True)


def test_a_path_that_is_wrong_is_blamed_all_the_same(bare):
    assert bare[NOWHERE][0] == "DP802"


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    called = {"scikit-learn": "sklearn", "python-multipart": "python_multipart"}
    for extra, libraries in extras.items():
        if extra in {"all", "dev"}:
            continue
        assert extra in extras["all"][0]
        for library in libraries:
            name = re.match(r"[\w-]+", library)[0]
            assert EXTRAS[called.get(name, name)] == extra
