# SPDX-License-Identifier: Apache-2.0
"""Every example in the documentation runs, and every value that it shows is right."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from discreet.cli import main
from tests.chance import no_chance
from tests.docs.blocks import Block, agrees, blocks, files, pages, run
from tests.house.project import ROOT, read, relative

PAGES = {relative(path): read(path) for path in pages()}
WITH_PYTHON = [page for page, text in PAGES.items() if blocks(text, "python")]
WITH_FILES = [page for page, text in PAGES.items() if files(text)]
COMMAND = re.compile(r"^\$ (.+)$", flags=re.MULTILINE)


def told(page):
    """The commands of a page, block by block."""
    return [tuple(COMMAND.findall(block.text)) for block in blocks(PAGES[page], "console")]


def ours(commands):
    return tuple(command for command in commands if command.startswith("discreet "))


COMMANDS = sorted({command for page in PAGES for block in told(page) for command in block})
BLOCKS = sorted(
    {ours(block) for page in PAGES if page not in WITH_FILES for block in told(page) if ours(block)}
)


#: Pages whose code draws in a thread, and shows nothing of what is drawn there.
IN_THREADS = {"docs/reference/errors.md": no_chance("a question with a response time shows an error")}


@pytest.mark.parametrize("page", [pytest.param(page, marks=IN_THREADS.get(page, ())) for page in WITH_PYTHON])
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "docs"}
    for block in blocks(PAGES[page], "python"):
        run(block, names, page)
    assert len(names) > 2, "the page imports nothing"


@pytest.mark.parametrize("commands", BLOCKS, ids=lambda commands: commands[0])
def test_the_commands_of_a_block_run_in_their_order(commands, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert failed(commands) == []


@pytest.mark.parametrize("page", WITH_FILES)
def test_the_commands_of_a_page_with_files_run_in_their_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in files(PAGES[page]).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    commands = [command for block in told(page) for command in ours(block)]
    assert commands
    assert failed(commands) == []


def failed(commands):
    """Those of the commands that fail, or print nothing, one after another in the current folder."""
    failures = []
    for command in commands:
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
            main(shlex.split(command)[1:])
        if left.value.code or not out.getvalue().strip():
            failures.append((command, left.value.code, err.getvalue()))
    return failures


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make ")])
def test_a_make_target_of_the_documentation_exists(command):
    assert re.search(rf"^{command.split()[1]}:", read(ROOT / "Makefile"), flags=re.MULTILINE)


def test_the_documentation_shows_no_other_kind_of_command():
    assert {command.split()[0] for command in COMMANDS} <= {"discreet", "make", "pip", "git", "cd"}


@pytest.mark.parametrize("page", PAGES)
def test_no_code_hides_in_a_fence_that_is_not_run(page):
    fences = re.findall(r"^ *```(\S*)", PAGES[page], flags=re.MULTILINE)
    assert set(fences[::2]) <= {"python", "console", "text", "json", "toml"}, (
        "name the language of every fence"
    )
    assert fences.count("toml") == len(files(PAGES[page])), "name the file that it is"
    assert set(fences[1::2]) <= {""}


@no_chance("only whether a command works is asked")
def test_the_pages_build_without_a_warning_and_without_a_network(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(https?:)?//', home), "the page loads something from elsewhere"


def test_a_page_is_held_to_what_it_says():
    run(Block("python", "x = 2\nx / 3   # → 0.667\nx > 1  # → True", 1), {})
    with pytest.raises(AssertionError, match="page:2: the value is"):
        run(Block("python", "x = 2\nx / 3   # → 0.65", 1), {})
    with pytest.raises(AssertionError, match="nothing was raised"):
        run(Block("python", "1 + 1   # raises DP201", 1), {})
    with pytest.raises(ZeroDivisionError):
        run(Block("python", "1 / 0", 1), {})


def test_digits_shown_are_digits_checked():
    assert agrees(2.4812, "2.48")
    assert agrees(1.04e-7, "1e-7")
    assert not agrees(2.4812, "2.50")
    assert not agrees(float("inf"), "2.5")
    assert agrees(float("inf"), "inf")
    assert agrees(3, "3")
    assert not agrees(3, "3.0")
