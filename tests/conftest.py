# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several folders of tests share, how hypothesis is used in all of them, and where their noise comes from."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import chance
from tests.postgres import postgres_database, postgres_dsn

__all__ = ["postgres_database", "postgres_dsn"]

# The same examples every time, however busy the machine is.
settings.register_profile("discreet", derandomize=True, deadline=None, database=None)
settings.load_profile("discreet")

_PYTHONS = chance.Pythons()


def pytest_addoption(parser):
    group = parser.getgroup("discreet")
    group.addoption("--noise-seed", default="0", help="other noise for every test that has no stated chance")
    group.addoption("--drew", default=None, help="append the names of the tests that drew noise to this file")


def pytest_collection_modifyitems(config, items):
    """Refuse to run tests that together are too likely to fail by chance."""
    found = [said[0] for item in items if (said := chance.stated(item)) is not None]
    if chance.total(found) >= chance.ALL:
        raise pytest.UsageError(
            f"these tests fail by chance with probability {chance.total(found):.2g}; "
            f"{chance.ALL:.0e} is the most (see scripts/chances.py)"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """One test with its own words, or with fresh ones if it says how likely it is to fail."""
    if chance.stated(item) is not None:
        return (yield)
    with chance.repeated(f"{item.config.option.noise_seed} {item.nodeid}") as item.discreet_noise:
        item.discreet_pythons = _PYTHONS.started
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """A fixture that several tests share has words of its own, so that it does not matter who asks first."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}"
    begun = _PYTHONS.started
    with chance.repeated(f"{request.config.option.noise_seed} {name}"):
        try:
            return (yield)
        finally:
            # a server that is started for all tests is not one test's doing
            if (noted := getattr(request._pyfuncitem, "discreet_pythons", None)) is not None:
                request._pyfuncitem.discreet_pythons = noted + _PYTHONS.started - begun


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run the test; then refuse one that may fail by chance and does not say so, or says too little."""
    chance.risked()
    result = yield
    said = chance.stated(item)
    if said is None:
        _must_be_repeated(item)
    elif chance.risked() > said[0] * (1 + 1e-12):
        pytest.fail("this test risks more than the chance that it states", pytrace=False)
    return result


def _must_be_repeated(item):
    noise = item.discreet_noise
    if (noise.drawn or noise.elsewhere) and item.config.option.drew:
        with Path(item.config.option.drew).open("a", encoding="utf-8") as drew:
            drew.write(item.nodeid + "\n")
    if noise.elsewhere or _PYTHONS.started > item.discreet_pythons:
        pytest.fail(
            "this test draws noise in a thread, in a child or in another Python, where it is fresh in every run: "
            "state how likely it is to fail with tests.chance.may_fail(...), or no_chance(...) if any noise will do",
            pytrace=False,
        )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into.

    It does not lie below the folder of pytest, which every start of pytest closes to other users, so that two
    that run at the same time would disturb each other.
    """
    with tempfile.TemporaryDirectory(prefix="discreet-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if not all(parent.stat().st_mode & stat.S_IXOTH for parent in folder.parents):
            pytest.skip("other users may not look into the folder for temporary files")
        yield folder
