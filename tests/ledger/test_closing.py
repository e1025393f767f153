# SPDX-License-Identifier: Apache-2.0
"""A charge that closes an accounting track for everybody says so: before it in a preview, and with it on its receipt."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import discreet as dp
from discreet import privacy
from discreet.errors import DiscreetError
from discreet.ledger import Asker, Ledger, Limit

COUNT = "SELECT COUNT(*) FROM visits"
CHARGES = [
    privacy.pure(0.01),
    privacy.pure(0.3),
    privacy.pure(0.8),
    privacy.concentrated(1e-9),
    privacy.gaussian(noise=50.0),
    privacy.approximate(0.1, 1e-7),
    privacy.approximate(1.0, 1e-6),
    privacy.leaky(delta=1e-8),
    privacy.renyi(order=8, epsilon=0.01),
    100 * privacy.gaussian(noise=1.0).sampled(rate=0.001),
]
LIMITS = {
    "lanes": Limit.filter(1, 1e-6),
    "fixed": Limit.filter(1, 1e-6, leaks=0.75),
    "basic": Limit.filter(1, 1e-6, kind="basic"),
    "zcdp": Limit.filter(1, 1e-6, kind="zcdp"),
    "pure": Limit.filter(1),
    "shared": Limit.filter(1, 1e-6, analysts={"ana": 0.5, "ben": 0.5}),
    "reserved": Limit.filter(1, 1e-6, analysts={"ana": 0.5, "ben": 0.5}, reserved=True),
    "months": Limit.filter(1, 1e-6, window="month", lifetime=Limit.filter(4, 1e-6)),
    "odometer": Limit.odometer(1e-6),
}


def closed(left):
    return {track.name.split(" of order")[0] for track in left.tracks if not track.is_open}


def opened(limit=None, **more):
    data = dp.open(pa.table({"p": [1, 2, 3]}), dp.each("p", at_most=1), name="visits")
    return dp.Session(data, limit or Limit.filter(1, 1e-6), **more)


@pytest.mark.parametrize("name", LIMITS)
@given(asked=st.lists(st.tuples(st.sampled_from(CHARGES), st.sampled_from(["ana", "ben"])), max_size=6))
def test_nothing_is_closed_without_a_word(name, asked):
    ledger = Ledger(":memory:", limit=LIMITS[name])
    for guarantee, whose in asked:
        who = {"asker": Asker(whose)} if name in {"shared", "reserved"} else {}
        before = closed(ledger.budget(**who))
        try:
            receipt = ledger.charge(guarantee, **who)
        except DiscreetError:
            continue
        now = closed(ledger.budget(**who)) - before
        assert len(receipt.closes) >= len(now)
        assert bool(now) <= bool(receipt.closes)
        assert all(word in str(receipt) for word in receipt.closes)


@pytest.mark.parametrize("asked", [{"rho": 1e-9}, {"epsilon": 0.8}])
def test_a_preview_warns_and_the_answer_says_it(asked):
    session = opened()
    track = "pure track" if "rho" in asked else "Rényi track"
    (warning,) = [note for note in session.preview(COUNT, **asked).notes if "closes" in note]
    assert f"closes the {track} of the budget" in warning
    assert "everybody" in warning
    assert len(session.ledger) == 1
    answer = session.sql(COUNT, **asked)
    assert answer.receipt.closes == (track,)
    assert any(f"has closed the {track}" in note for note in answer.notes)
    again = session.sql(COUNT, **{name: value / 100 for name, value in asked.items()})
    assert not any("close" in note for note in again.notes), "it is closed once"


def test_the_numbers_of_the_warning_are_those_of_the_limit():
    session = opened()
    (warning,) = [note for note in session.preview(COUNT, rho=1e-9).notes if "closes" in note]
    before = session.budget().like(privacy.pure(0.1, unit="p"))
    session.sql(COUNT, rho=1e-9)
    after = session.budget().like(privacy.pure(0.1, unit="p"))
    assert f"before it {before:g} answers at ε = 0.1 fit, after it {after:g}." in warning
    assert after < before


def test_a_batch_a_mechanism_and_a_training_run_say_it_too():
    batch = opened().release_batch({"a": (COUNT, {"rho": 1e-6}), "b": (COUNT, {"epsilon": 0.1})})
    assert [answer.receipt.closes for answer in batch.values()] == [("pure track",), ()]
    noise = dp.Gaussian(scale=100.0, sensitivity=1, unit="p")
    assert opened().release(noise, 3).receipt.closes == ("pure track",)
    run = 10 * privacy.gaussian(noise=10.0, unit="p").sampled(rate=0.01)
    assert opened().charge(run, question="training").closes == ("pure track",)


def test_where_only_one_track_exists_nothing_is_closed():
    for limit in (Limit.filter(1), Limit.filter(1, 1e-6, kind="zcdp")):
        session = opened(limit)
        asked = {"epsilon": 0.1}
        assert not any("closes" in note for note in session.preview(COUNT, **asked).notes)
        assert session.sql(COUNT, **asked).receipt.closes == ()


def test_reserved_allocations_are_not_closed_by_others():
    ledger = Ledger(":memory:", limit=LIMITS["reserved"])
    before = str(ledger.budget(asker=Asker(analyst="ben")))
    for guarantee in CHARGES:
        try:
            ledger.charge(guarantee, asker=Asker(analyst="ana"))
        except DiscreetError:
            continue
    assert str(ledger.budget(asker=Asker(analyst="ben"))) == before


def test_the_command_line_warns(tmp_path, monkeypatch):
    from discreet.cli.app import app

    monkeypatch.chdir(tmp_path)
    words = ["plan", "SELECT COUNT(*) FROM adult", "--data", "adult", "--rho", "1e-6"]
    words += ["--ledger", "adult.ledger", "--limit", "eps=1,delta=1e-6"]
    said = CliRunner().invoke(app, words)
    assert "closes the pure track" in " ".join(said.output.split())
    facts = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert facts["budget"]["closes"] == ["pure track"]


def test_a_preview_of_what_the_limit_does_not_count_is_a_preview():
    assert opened(Limit.filter(1)).preview(COUNT, rho=0.1).cost
