# SPDX-License-Identifier: Apache-2.0
"""The data are written and opened once for all mistakes; every mistake has its own session and folder."""

from __future__ import annotations

import shutil

import pytest

from discreet.tables.open import each
from tests.mistakes import clinic


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A folder with the files."""
    folder = tmp_path_factory.mktemp("clinic")
    clinic.files(folder)
    return folder


@pytest.fixture
def folder(written, tmp_path, monkeypatch):
    """A copy of it, and the current one."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def visits():
    return clinic.visits()


@pytest.fixture
def here(visits, folder):
    """Python in a folder with the files, with a session on the visits."""
    return clinic.Here(data=visits)


@pytest.fixture(scope="session")
def two_tables():
    return clinic.clinic()


@pytest.fixture(scope="session")
def unknown_cap():
    """The same, where how many rows count is found privately."""
    return clinic.visits(each("patient_id", at_most="auto"))
