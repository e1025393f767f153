# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any time, and many processes at once: every row that anybody saw has one value for ever, and is charged once."""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.ledger import Ledger
from tests.chance import no_chance
from tests.ledger.conftest import where as _where
from tests.streams.workers import NAME, run
from tests.streams.world import data

where = _where
PERIODS = 6


@pytest.fixture
def opened(where, tmp_path):
    """A stream that is paid for: the place of its ledger, and its stream file."""
    file = str(tmp_path / "n.streams")
    session = dp.Session(data(), limit=dp.Limit.filter(epsilon=2, delta=1e-6), ledger=where)
    session.stream(
        "SELECT COUNT(*) AS n FROM visits",
        every="week",
        periods=12,
        start="2026-01-05",
        name=NAME,
        epsilon=1,
        delta=1e-6,
        file=file,
    )
    session.ledger.close()
    return where, file


def check_one_value_for_each_row(place, reports):
    """What was shown anywhere is what the ledger holds; nothing was charged but the opening."""
    shown: dict[str, tuple] = {}
    for report in reports:
        for row in report.get("shown", ()):
            assert shown.setdefault(row[0], tuple(row)) == tuple(row)
    assert len(shown) == PERIODS
    with Ledger(place) as ledger:
        entries = list(ledger.entries())
        assert ledger.verify().intact
    assert sum(entry.kind == "reserved" for entry in entries) == 1
    assert sum(entry.kind == "period" for entry in entries) == PERIODS
    assert len({entry.key for entry in entries if entry.kind == "period"}) == PERIODS


@no_chance("any noise will do")
def test_a_row_has_one_value_whenever_its_process_is_killed(opened):
    place, file = opened
    reports = run("kill_at_any_time", where=place, file=file, kills=6, periods=PERIODS)
    assert reports[-1]["ended"] == [0]
    check_one_value_for_each_row(place, reports)


@pytest.mark.slow
@no_chance("any noise will do")
def test_a_hundred_kills(opened):
    place, file = opened
    reports = run("kill_at_any_time", where=place, file=file, kills=100, periods=PERIODS)
    assert reports[-1]["ended"] == [0]
    check_one_value_for_each_row(place, reports)


@no_chance("any noise will do")
def test_processes_that_publish_at_once_show_the_same_rows(opened):
    place, file = opened
    reports = run("race", where=place, file=file, processes=4, periods=PERIODS)
    assert reports[-1]["ended"] == [0] * 4
    assert sum("shown" in report for report in reports) == 4 * PERIODS
    check_one_value_for_each_row(place, reports)
