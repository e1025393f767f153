# SPDX-License-Identifier: Apache-2.0
"""Whatever is given as a path, and wherever: a coded error, no exception of anybody else, and nothing of the data.

A wall of bad paths is tried at every door: `dp.open` in all its forms, descriptions, graphs, ledgers, files to write, and
every command that takes a file.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import discreet as dp
from discreet import graphs, paths, privacy
from discreet.cli import main
from discreet.errors import DiscreetError
from discreet.tables.data.toml import value_text
from tests.chance import no_chance

#: Cells of the data, and a password: none of them is ever in an error.
SECRETS = ("Quill", "880001", "hunter2")
TABLE = pa.table({"patient_id": [880001, 880002], "ward": ["Quill", "Quill"], "days": [3, 4]})
WHOM = dp.each("patient_id", at_most=2)
TOML = '[dataset]\nsource = {}\nname = "visits"\nunit = "patient_id"\n[limits]\nrows_per_unit = 2\n'

ADDRESSES = [
    "snowflake://account/clinic",
    "bigquery://project/clinic",
    "mysql+pymysql://ana:hunter2@host/clinic",
    "s3://bucket/visits.parquet",
    "https://example.org/visits.csv?token=hunter2",
    "HTTPS://example.org/visits.toml",
    "file:///visits.parquet",
    "sqlite:///clinic.sqlite",
    "jdbc:postgresql://ana:hunter2@host/clinic",
    "postgresql+psycopg://ana:hunter2@host/clinic?password=hunter2",
    "mongodb://ana:hunter2@host",
]
FILES = [
    *(
        "nowhere.parquet",
        "no/where.csv",
        "visits.parquet/x.csv",
        "nowhere.toml",
        "visits.xlsx",
        "~nobody/x.csv",
    ),
    *(
        "",
        ".",
        "/",
        "~",
        "folder",
        "folder.parquet",
        "folder.csv",
        "folder.sqlite",
        "folder.toml",
        "hive",
        "mixed",
    ),
    *(
        "empty.parquet",
        "empty.csv",
        "empty.arrow",
        "empty.sqlite",
        "empty.duckdb",
        "empty.toml",
        "no_tables.sqlite",
    ),
    *(
        "junk.parquet",
        "junk.csv",
        "junk.arrow",
        "junk.sqlite",
        "junk.duckdb",
        "junk.toml",
        "cr.csv",
        "utf16.csv",
    ),
    *("broken.parquet", "broken.csv", "broken.toml", "loop.parquet", "loop.csv", "loop.toml", "pipe.csv"),
    *("a\0b.parquet", "a\0b.csv", "a\0b.toml", "\udcff.csv", "bad\ud800.parquet", "visits.parquet\n"),
    *(
        "x" * 300 + ".parquet",
        "x" * 300 + ".toml",
        "d/" * 3_000 + "x.csv",
        "[",
        "*",
        "**",
        "mixed/*",
        "*.nothing",
    ),
]
WALL = [*FILES, *ADDRESSES]


@pytest.fixture(scope="module")
def wall(tmp_path_factory):
    """A folder with everything that the names above mean, and good files to go with them."""
    folder = tmp_path_factory.mktemp("wall")
    with contextlib.chdir(folder):
        parquet.write_table(TABLE, "visits.parquet")
        csv.write_csv(TABLE, "visits.csv")
        Path("visits.toml").write_text(TOML.format('"visits.parquet"'), encoding="utf-8")
        for ending in ("parquet", "csv", "arrow", "sqlite", "duckdb", "toml"):
            Path(f"empty.{ending}").write_bytes(b"")
            Path(f"junk.{ending}").write_bytes(b"Quill,880001\xff\0" * 50)
        Path("visits.xlsx").write_bytes(b"Quill")
        Path("cr.csv").write_bytes(b"patient_id,ward,days\r880001,Quill,3\r880002,Quill,4\r")
        Path("utf16.csv").write_bytes("patient_id,ward,days\n880001,Quill,3\n".encode("utf-16"))
        for name in ("folder", "folder.parquet", "folder.csv", "folder.sqlite", "folder.toml", "mixed"):
            Path(name).mkdir()
        for year in (2025, 2026):
            Path(f"hive/year={year}").mkdir(parents=True)
            parquet.write_table(TABLE, f"hive/year={year}/part.parquet")
        parquet.write_table(TABLE, "mixed/a.parquet")
        csv.write_csv(TABLE, "mixed/b.csv")
        for ending in ("parquet", "csv", "toml"):
            Path(f"broken.{ending}").symlink_to(f"gone.{ending}")
            Path(f"loop.{ending}").symlink_to(f"loop.{ending}")
        os.mkfifo("pipe.csv")
        with contextlib.closing(sqlite3.connect("no_tables.sqlite")) as database:
            database.execute("CREATE TABLE x (a)")
            database.execute("DROP TABLE x")
            database.commit()
        with contextlib.closing(sqlite3.connect("clinic.sqlite")) as database:
            database.execute("CREATE TABLE visits (patient_id INTEGER)")
            database.execute("CREATE TABLE beds (patient_id INTEGER)")
            database.commit()
    return folder


@pytest.fixture
def here(wall, monkeypatch):
    monkeypatch.chdir(wall)
    return wall


def _from_toml(source):
    text = TOML.format(value_text(source))
    if source.isascii():
        Path("told.toml").write_text(text, encoding="utf-8")
        dp.open("told.toml").close()


READING = {
    "open": lambda path: dp.open(path, protect=WHOM).close(),
    "open a Path": lambda path: dp.open(Path(path), protect=WHOM).close(),
    "open by name": lambda path: dp.open({"visits": path}, protect=WHOM).close(),
    "a public table": lambda path: dp.open("visits.parquet", protect=WHOM, public={"wards": path}).close(),
    "a table of it": lambda path: dp.open(path, protect=WHOM, table="visits").close(),
    "with Polars": lambda path: dp.open(path, protect=WHOM, engine="polars").close(),
    "without protect": dp.open,
    "from a description": _from_toml,
    "a graph": lambda path: graphs.Graph(path, nodes=3),
    "a graph from a Path": lambda path: graphs.Graph(Path(path), nodes=3),
}


def refusal(door, path):
    """The coded error, which tells nothing; None if there is none. Every other exception is a failure."""
    try:
        door(path)
    except DiscreetError as error:
        harmless(error)
        return error
    return None


def harmless(error):
    text = f"{error} {error!r} {error.args}"
    assert not [secret for secret in SECRETS if secret in text], ascii(text)
    # what led to it would be printed below it
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert error.spent == "nothing"
    assert "\n" not in error.what


@pytest.mark.parametrize("door", READING.values(), ids=READING)
def test_whatever_is_read_is_read_or_refused_with_a_code(door, here):
    for path in WALL:
        error = refusal(door, path)
        assert error is None or "the source could not be opened" not in error.what, ascii(path)


WRITING = {
    "a session": lambda path: dp.Session(
        dp.open("visits.parquet", protect=WHOM), dp.Limit.filter(epsilon=1), ledger=path
    ).ledger.close(),
    "a ledger": lambda path: dp.Ledger(path, limit=dp.Limit.filter(epsilon=1)).close(),
    "a picture": lambda path: dp.plot.save(privacy.pure(1), path),
    "a picture in .svg": lambda path: dp.plot.save(privacy.pure(1), f"{path}.svg"),
}


@pytest.mark.parametrize("door", WRITING.values(), ids=WRITING)
def test_whatever_is_written_is_written_or_refused_with_a_code(door, wall, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parquet.write_table(TABLE, "visits.parquet")
    Path("folder").mkdir()
    Path("loop.parquet").symlink_to("loop.parquet")
    for path in [
        "",
        ".",
        "/",
        "no/where.csv",
        "folder",
        "visits.parquet/x",
        "loop.parquet",
        *UNNAMEABLE,
        *ADDRESSES,
    ]:
        if path.startswith("postgres"):
            continue  # a server is asked, and nobody answers
        error = refusal(door, path)
        assert error is None or error.code in {"DP102", "DP104", "DP105", "DP602", "DP603", "DP606"}, ascii(
            path
        )


UNNAMEABLE = ["a\0b.csv", "bad\ud800.svg", "x" * 300 + ".csv", "d/" * 3_000 + "x.csv"]


def test_answers_are_written_or_refused_with_a_code(here, tmp_path):
    data = dp.open("visits.parquet", protect=WHOM)
    answer = dp.Session(data, dp.Limit.filter(epsilon=9)).sql("SELECT COUNT(*) FROM visits", epsilon=1)
    for path in ["", ".", "/", "no/where.csv", "folder", "visits.parquet/x", *UNNAMEABLE, *ADDRESSES]:
        for write in (answer.to_csv, answer.to_parquet):
            with pytest.raises(DiscreetError) as refused:
                write(path)
            harmless(refused.value)
    answer.to_csv(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text(encoding="utf-8").startswith("count")


# --- the command -------------------------------------------------------------------------------------

COUNT = "SELECT COUNT(*) FROM visits"
LIMIT = ("--limit", "eps=1000")
COMMANDS = {
    "describe": lambda path: ["describe", "--", path],
    "describe --out": lambda path: ["describe", "visits.parquet", f"--out={path}"],
    "query --data": lambda path: [
        "query",
        COUNT,
        f"--data={path}",
        "--epsilon=1",
        "--ledger=q.ledger",
        *LIMIT,
    ],
    "query --ledger": lambda path: [
        "query",
        COUNT,
        "--data=visits.toml",
        "--epsilon=1",
        f"--ledger={path}",
        *LIMIT,
    ],
    "query --out": lambda path: [
        *["query", COUNT, "--data=visits.toml", "--epsilon=1", "--ledger=q.ledger", *LIMIT],
        f"--out={path}",
    ],
    "plan": lambda path: ["plan", COUNT, f"--data={path}", "--epsilon=1"],
    "release": lambda path: ["release", "--out=tables", "--", path],
    "budget --ledger": lambda path: ["budget", f"--ledger={path}"],
    "budget --data": lambda path: ["budget", f"--data={path}"],
    "ledger show": lambda path: ["ledger", "show", "--", path],
    "ledger verify": lambda path: ["ledger", "verify", "--", path],
    "ledger export": lambda path: ["ledger", "export", "--", path],
    "statement": lambda path: ["statement", "--", path],
    "account --plot": lambda path: ["account", "gaussian(1)", f"--plot={path}"],
}
OF_A_COMMAND = [
    *(
        "nowhere.parquet",
        "no/where.csv",
        "",
        ".",
        "folder",
        "empty.csv",
        "junk.parquet",
        "junk.toml",
        "cr.csv",
    ),
    *(
        "broken.toml",
        "loop.toml",
        "a\0b.toml",
        "bad\ud800.csv",
        "x" * 300 + ".toml",
        "hive",
        "no_tables.sqlite",
    ),
    *(address for address in ADDRESSES if "jdbc" not in address),
]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_is_done_or_refused_with_a_code(command, wall, tmp_path, monkeypatch):
    # a folder of its own: some commands write
    for one in wall.iterdir():
        (tmp_path / one.name).symlink_to(one)
    monkeypatch.chdir(tmp_path)
    for path in OF_A_COMMAND:
        if path == "postgresql+psycopg" or (
            command is COMMANDS["query --ledger"] and (tmp_path / "x" / path).exists()
        ):
            continue
        code, printed = called(command(path))
        assert code in {0, 2, 3, 5}, ascii(printed)
        assert code == 0 or re.match(r"DP\d{3}  ", printed), ascii(printed)
        assert not [secret for secret in SECRETS if secret in printed], ascii(printed)


def called(words):
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as left, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(words)
    code = int(left.value.code or 0)
    return code, err.getvalue() if code else out.getvalue()


# --- fixes -------------------------------------------------------------------------------------------


def fix_of(path, **words):
    with pytest.raises(DiscreetError) as refused:
        dp.open(path, **({"protect": WHOM} | words))
    return refused.value.fix


def paste(fix):
    """The call in a fix, made; `…` is what the user wrote before."""
    call = re.search(r"dp\.open\(.*\)", fix)[0].partition("   ")[0].replace("protect=…", "protect=WHOM")
    with eval(call, {"dp": dp, "WHOM": WHOM}) as data:
        return data.unit.protects


@pytest.mark.parametrize("path", ["hive", "hive/", "mixed", "mixed/*", "folder/../hive", "hive/*"])
def test_the_fix_for_a_folder_means_files(path, here):
    assert paste(fix_of(path)) == "patient_id"


@pytest.mark.parametrize("path", ["visit.parquet", "visits", "visits.parque", "hive/../visitz.csv"])
def test_the_fix_for_a_slip_is_a_file_that_opens(path, here):
    meant = re.fullmatch(r"is  (.+)  meant\?", fix_of(path))[1]
    with dp.open(meant, protect=WHOM) as data:
        assert data.unit.protects == "patient_id"


def test_the_fix_for_an_address_opens_the_file_that_was_copied(here, tmp_path):
    assert "dp.open('visits.parquet', protect=…)" in fix_of("s3://bucket/visits.parquet")
    for address in ("s3://bucket/visits.parquet", "https://example.org/visits.csv?token=hunter2"):
        paste(fix_of(address))
    paste(fix_of(f"file://{here}/visits.parquet"))
    paste(fix_of("sqlite:///clinic.sqlite"))
    with pytest.raises(DiscreetError) as refused:
        dp.open("HTTPS://example.org/visits.toml")
    paste(refused.value.fix)


def test_an_address_names_what_can_be_opened(here):
    for address in ADDRESSES:
        with pytest.raises(DiscreetError) as refused:
            dp.open(address, protect=WHOM)
        error = refused.value
        scheme = address.partition("://")[0].lower()
        assert error.code == "DP802"
        assert error.what.startswith(f"{scheme}:// cannot be opened")
        assert all(word in error.what for word in (".parquet", "postgresql://", "frames"))


def test_the_fix_for_carriage_returns_and_other_encodings_is_a_command(here):
    for name in ("cr.csv", "utf16.csv"):
        fix = fix_of(name)
        command = fix.partition(":  ")[2]
        made = command.rpartition(" ")[2]
        subprocess.run(["bash", "-c", command], check=True)
        with dp.open(made, protect=WHOM) as data:
            assert list(next(iter(data.tables.values())).columns)[:2] == ["patient_id", "ward"]


def test_the_fix_for_a_missing_unit_names_a_column_that_is_there(here):
    with pytest.raises(DiscreetError) as refused:
        dp.open("visits.parquet")
    assert 'dp.each("patient_id", at_most=20)' in refused.value.fix
    paste(refused.value.fix)
    visits = pa.table({"uid": [1], "days": [2.5], "ward": ["A"]})
    with pytest.raises(DiscreetError) as refused:
        dp.open(visits)
    assert 'dp.each("uid", at_most=20))   (or each of: ward)' in refused.value.fix


def test_a_file_that_is_called_like_an_address_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("old:").mkdir()
    csv.write_csv(TABLE, Path("visits.csv").absolute())
    Path("visits.csv").rename("old:/visits.csv")
    dp.open("old:/visits.csv", protect=WHOM).close()
    assert paths.short_path("mysql://ana:hunter2@host/x") == "mysql://…"


# --- permissions -------------------------------------------------------------------------------------

AS_NOBODY = """
import contextlib, io, json, os, sys
import discreet as dp
from discreet import graphs
from discreet.cli import main
from discreet.errors import DiscreetError

whom, doors = dp.each("patient_id", at_most=2), {}
# everything is loaded before the user changes, who may not read the library
for name in ("visits.parquet", "visits.csv"):
    dp.open(name, protect=whom, public={"w": name}).close()
    dp.open(name, protect=whom, engine="polars").close()
dp.open("visits.toml").close()
def command(*words):
    err = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            main(list(words))
    except SystemExit as left:
        return [left.code or 0, err.getvalue()]
command("describe", "visits.parquet"); command("describe", "visits.toml"); command("release", "visits.toml", "--out", "t")
with contextlib.suppress(DiscreetError):
    dp.open("none.parquet", protect=whom)
with contextlib.suppress(DiscreetError):
    graphs.Graph("none.csv", nodes=3)
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
said = {}
for path in sys.argv[1:]:
    for name, door in {
        "open": lambda: dp.open(path, protect=whom).close() if not path.endswith("toml") else dp.open(path).close(),
        "public": lambda: dp.open("visits.parquet", protect=whom, public={"w": path}).close(),
        "graph": lambda: graphs.Graph(path, nodes=3),
        "describe": lambda: command("describe", path),
        "release": lambda: command("release", path, "--out", "t"),
        "ledger": lambda: dp.Ledger(path, limit=dp.Limit.filter(epsilon=1)).close(),
    }.items():
        try:
            result = door()
            said[f"{name} {path}"] = ["left", *result] if isinstance(result, list) else ["worked"]
        except DiscreetError as error:
            said[f"{name} {path}"] = ["coded", error.code, str(error)]
        except BaseException as error:
            said[f"{name} {path}"] = ["foreign", type(error).__name__, str(error)]
print(json.dumps(said))
"""


@no_chance("another Python opens files, and draws nothing")
def test_what_may_not_be_read_is_refused_with_a_code(open_folder):
    with contextlib.chdir(open_folder):
        parquet.write_table(TABLE, "visits.parquet")
        csv.write_csv(TABLE, "visits.csv")
        Path("visits.toml").write_text(TOML.format('"visits.parquet"'), encoding="utf-8")
        Path("locked").mkdir()
        bad = []
        for ending in ("parquet", "csv", "toml"):
            for name in (f"secret.{ending}", f"locked/visits.{ending}"):
                Path(name).write_bytes(Path(f"visits.{ending}").read_bytes())
                bad.append(name)
            Path(f"secret.{ending}").chmod(0)
        bad += ["locked/*.parquet", "locked"]
        Path("locked").chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, *bad], cwd=open_folder, capture_output=True, text=True, check=False
    )
    (open_folder / "locked").chmod(0o700)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said) == 6 * len(bad)
    for door, (kind, *rest) in said.items():
        assert kind in {"coded", "left"}, (door, rest)
        if kind == "left":
            assert rest[0] in {2, 3}, (door, rest)
            assert re.match(r"DP\d{3}  ", rest[1]), (door, rest)
        assert not [secret for secret in SECRETS if secret in str(rest)], (door, rest)
    assert "may not be read by this user" in said["open secret.parquet"][2]
