# SPDX-License-Identifier: Apache-2.0
"""Streams in a session: charged once, one row for each period for ever, and refused where that could break."""

from __future__ import annotations

import json
import shutil

import polars as pl
import pytest

import discreet as dp
from discreet import testing
from discreet.errors import BadParameter, DiscreetError, EngineFailed, LedgerError
from discreet.ledger import Ledger
from discreet.session.stream_file import StreamFile
from discreet.streams import Participation
from tests.chance import no_chance
from tests.processes import run_threads
from tests.streams.world import BOUNDS, START, data, day, kept, session, visits

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_WARD = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS m FROM visits GROUP BY ward"
WEEKS = {"every": "week", "periods": 12, "start": "2026-01-05"}
#: So little noise that a count, rounded, is exact.
CLEAR = {"epsilon": 1e4}
COST = {"epsilon": 1, "delta": 1e-6}


def code(call, *arguments, **words):
    with pytest.raises(DiscreetError) as refusal:
        call(*arguments, **words)
    return refusal.value.code


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "visits.ledger")


def on(number: int):
    return testing.today(day(number))


# --- the figures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bound", [None, Participation(1), Participation(2, 4, 3), Participation(3, 12)], ids=repr
)
@pytest.mark.parametrize("cost", [CLEAR, {"rho": 1e9}], ids=["laplace", "gaussian"])
def test_figures_are_those_of_the_kept_rows(bound, cost):
    frame = visits()
    rows = kept(frame, bound or Participation(3))
    asked = session(frame, epsilon=1e6)
    if "rho" in cost:
        asked = dp.Session(data(frame), limit=dp.Limit.filter(rho=1e10))
    stream = asked.stream(COUNT, **WEEKS, **cost, per_unit=bound)

    def true(first, last):
        return sum(first <= period <= last for period, _, _ in rows)

    with on(84):
        weekly = stream.release()
    assert [round(value) for value in weekly.columns["n"].values] == [true(t, t) for t in range(12)]
    assert [round(value) for value in stream.totals().columns["n"].values] == [true(0, t) for t in range(12)]
    assert [round(v) for v in stream.windows(4).columns["n"].values] == [true(t - 3, t) for t in range(3, 12)]
    assert round(stream.total().value) == true(0, 11)
    assert round(stream.window(5).value) == true(7, 11)
    assert round(stream.between("2026-01-19", "2026-02-15").value) == true(2, 5)
    assert weekly.keys == ("week_from", "week_to")
    assert weekly.groups[1] == (day(7), day(13))


def test_groups_sums_and_means(place):
    frame = visits()
    rows = kept(frame, Participation(3))
    asked = dp.Session(data(frame), limit=dp.Limit.filter(rho=1e12), ledger=place)
    stream = asked.stream(BY_WARD, **WEEKS, rho=1e11)
    with on(84):
        stream.release()
    answer = {row["ward"]: row for row in stream.between("2026-01-05", "2026-02-01")}
    for ward in "ABC":
        own = [min(cost, 40) for period, where, cost in rows if where == ward and period <= 3]
        # Rows of one day are ordered by what the question reads, so other rows of that day may be kept.
        assert round(answer[ward]["n"]) == pytest.approx(len(own), abs=3)
        assert answer[ward]["m"] == pytest.approx(sum(own) / len(own), abs=3)
        assert answer[ward]["s"] == pytest.approx(answer[ward]["n"] * answer[ward]["m"], rel=1e-3)


def test_computed_columns_and_expressions():
    asked = dp.Session(data(), limit=dp.Limit.filter(rho=1e12))
    by_sql = asked.stream("SELECT SUM(cost) / COUNT(*) AS q FROM visits", **WEEKS, rho=1e10)
    by_expression = asked.stream(asked.data.where(dp.col("cost") > 3).count(), **WEEKS, rho=1e10)
    with on(84):
        assert len(by_sql.release()) == len(by_expression.release()) == 12
    assert 0 < by_sql.total().value < 40
    assert by_expression.total().value > 0
    assert asked.streams() == [by_sql.name, by_expression.name]
    assert by_sql.name == "SELECT SUM(cost) / COUNT(*) AS q FROM visits"


def test_the_intervals_of_all_periods_are_wider_and_those_of_more_confidence_too():
    stream = session().stream(COUNT, **WEEKS, **COST)
    with on(84):
        stream.release()

    def width(answer):
        return max(
            high - low for low, high in zip(answer.columns["n"].lo, answer.columns["n"].hi, strict=True)
        )

    assert (
        width(stream.totals()) < width(stream.totals(together=True)) < width(stream.totals(confidence=0.9999))
    )
    assert width(stream.totals(confidence=0.5)) < width(stream.totals())
    assert stream.total(together=True).rows()[0][2:] == stream.totals(together=True).rows()[-1][2:]
    assert any("at once" in note for note in stream.totals(together=True).notes)


def test_an_open_ended_stream_has_ten_times_the_periods():
    asked = session()
    one = asked.preview_stream(COUNT, **WEEKS, **COST)
    ten = asked.preview_stream(COUNT, **WEEKS, **COST, open_ended=True)
    assert one.errors["the total"]["n"] < ten.errors["the total"]["n"] < 3 * one.errors["the total"]["n"]
    assert asked.stream(COUNT, **WEEKS, **COST, open_ended=True).periods == 120


def test_groups_appear_in_the_course_of_time():
    frame = pl.concat(
        pl.DataFrame(
            {
                "id": [1000 * week + at for at in range(300)],
                "ward": ["A" if week > 1 else "B"] * 300,
                "day": [day(7 * week)] * 300,
                "cost": [1] * 300,
            }
        )
        for week in range(4)
    ).vstack(pl.DataFrame({"id": [9], "ward": ["solo"], "day": [day(2)], "cost": [1]}))
    stream = session(frame, keys=False, at_most=1).stream(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", **WEEKS, epsilon=8, delta=1e-6
    )
    with on(28):
        weekly = stream.release()
    assert {group[2] for group in weekly.groups} == {"A", "B"}
    assert len(weekly) == 4 + 1
    by_ward = {row["ward"]: row["n"] for row in stream.total()}
    assert by_ward == {"A": pytest.approx(600, abs=30), "B": pytest.approx(600, abs=30)}
    # A's first row is of everything until it appeared, so no range begins in between.
    assert {row["ward"] for row in stream.between("2026-01-12", "2026-02-01")} == {"B"}
    assert {row["ward"] for row in stream.between("2026-01-26", "2026-02-01")} == {"A", "B"}


# --- once, and the same for ever ------------------------------------------------------------------------


def test_it_is_charged_once_and_every_row_stays_what_it_is(place):
    first = session(ledger=place)
    stream = first.stream(BY_WARD, **WEEKS, **COST, name="by ward")
    spent = first.ledger.spent
    with on(20):
        two = stream.release()
        assert stream.release().rows() == two.rows()
    with on(60):
        more = session(ledger=place).stream(BY_WARD, **WEEKS, **COST, name="by ward").release()
        found = session(ledger=place).find_stream("by ward")
        assert found.release().rows() == more.rows()
        assert found.release(until=day(13)).rows() == more.rows()[: len(two)] == two.rows()
    assert first.ledger.spent == spent
    assert stream.shown == 8
    assert first.ledger.verify().intact
    statement = first.statement().to_dict()
    (line,) = statement["released"] if "released" in statement else statement["releases"]
    assert "periods published: 8" in line["status"]


def test_the_first_period_is_the_present_one_and_stays_it(place):
    words = {"every": "week", "periods": 12}
    with on(9):
        stream = session(ledger=place).stream(COUNT, **words, **COST)
    with on(30):
        again = session(ledger=place).stream(COUNT, **words, **COST)
        assert again.release().groups[0] == (day(7), day(13))
    assert len(stream.totals()) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.9},
        {"periods": 13},
        {"every": "month"},
        {"start": "2026-01-12"},
        {"per_unit": {"rows": 2}},
        {"best_for": "periods"},
        {"question": "SELECT COUNT(*) AS m FROM visits"},
    ],
    ids=str,
)
def test_another_stream_under_the_same_name_is_refused(place, change):
    asked = session(ledger=place)
    words = {"question": COUNT, "name": "n", **WEEKS, **COST}
    asked.stream(words.pop("question"), **words)
    spent = asked.ledger.spent
    words = {"question": COUNT, "name": "n", **WEEKS, **COST, **change}
    assert code(asked.stream, words.pop("question"), **words) == "DP604"
    assert asked.ledger.spent == spent


def test_a_period_that_is_not_over_is_refused_and_the_fix_works():
    stream = session().stream(COUNT, **WEEKS, **COST)
    with on(6):
        assert code(stream.release) == code(stream.release, until=day(6)) == "DP611"
        assert code(stream.total) == "DP611"
        assert stream.shown == 0
    with on(7):
        assert len(stream.release()) == 1
        with pytest.raises(LedgerError) as refusal:
            stream.release(until=day(13))
        assert refusal.value.code == "DP611"
        assert len(eval(refusal.value.fix, {"stream": stream})) == 1
        assert code(stream.release, until=day(3)) == code(stream.release, until="2020-01-01") == "DP611"
    with on(10_000):
        assert len(stream.release()) == 12


CHANGES = {
    "a late row": lambda frame: frame.vstack(
        pl.DataFrame({"id": [777], "ward": ["A"], "day": [day(1)], "cost": [2]})
    ),
    "a row less": lambda frame: frame.filter(pl.col("day") > day(0)),
    "a person less": lambda frame: frame.filter(pl.col("id") != frame["id"][0]),
    "a value": lambda frame: frame.with_columns(cost=(pl.col("cost") + 1) % 40),
    "a day": lambda frame: frame.with_columns(day=pl.col("day") + pl.duration(days=7)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_data_that_changed_in_a_published_period_are_refused(place, change):
    frame = visits().select("id", "ward", pl.col("day"), "cost")
    first = session(frame, ledger=place).stream(BY_WARD, **WEEKS, **COST, name="n")
    with on(14):
        published = first.release().rows()
    changed = session(CHANGES[change](frame), ledger=place).find_stream("n")
    with on(30):
        assert code(changed.release) == "DP610"
        assert changed.shown == 2
        assert changed.totals().groups
        # With the rows as they were it goes on.
        assert session(frame, ledger=place).find_stream("n").release().rows()[:6] == published


def test_equal_sums_do_not_show_in_what_is_public():
    """The ledger is public. Three weeks that count the same, and two in which nothing happened, look like any five."""
    ids = [person for _ in range(3) for person in range(40)]
    frame = pl.DataFrame({"id": ids, "day": [day(7 * (at // 40)) for at in range(120)]})
    one = dp.Session(
        dp.open(frame, protect=dp.each("id", at_most=3), columns={"day": dp.column(bounds=BOUNDS)}),
        limit=dp.Limit.filter(epsilon=1e6, delta=1e-5),
    )
    digests = []
    for name in ("first", "second"):
        stream = one.stream(one.data.count(), every="week", periods=9, start=START, epsilon=1, name=name)
        with testing.today(day(36)):
            stream.release()
        digests += [json.loads(row)["digest"] for row in one.ledger.periods(stream._key)]
    assert len(digests) == len(set(digests)) == 10


def test_rows_of_later_periods_are_no_change(place):
    frame = visits()
    early = frame.filter(pl.col("day") < day(14))
    with on(14):
        published = session(early, ledger=place).stream(COUNT, **WEEKS, **COST, name="n").release().rows()
    with on(60):
        again = session(frame, ledger=place).find_stream("n").release()
    assert again.rows()[:2] == published
    assert len(again) == 8


# --- crashes, processes, copies -------------------------------------------------------------------------


def test_a_draw_that_was_not_stored_is_seen_by_nobody(place, monkeypatch):
    asked = session(ledger=place)
    stream = asked.stream(COUNT, **WEEKS, **COST, name="n")

    def crash(*_, **__):
        raise KeyboardInterrupt

    with on(30):
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "add_period", crash)
            with pytest.raises(KeyboardInterrupt):
                stream.release()
        assert stream.shown == 0
        with monkeypatch.context() as broken:
            broken.setattr(StreamFile, "record", crash)
            with pytest.raises(KeyboardInterrupt):
                stream.release()
        assert stream.shown == 1
        first = asked.ledger.periods("discreet: stream n")
        stream.release()
        assert asked.ledger.periods("discreet: stream n")[:1] == first


def test_the_row_that_was_stored_first_is_the_one_that_is_shown(place, monkeypatch):
    asked = session(ledger=place)
    stream = asked.stream(COUNT, **WEEKS, **COST, name="n")
    other = session(ledger=place).find_stream("n")
    real, shown = Ledger.add_period, []

    def late(self, key, period, text, **words):
        if period == 1 and not shown:
            # Another process is quicker while this one draws.
            shown.append(None)
            shown[0] = other.release().rows()
        return real(self, key, period, text, **words)

    monkeypatch.setattr(Ledger, "add_period", late)
    with on(30):
        assert stream.release().rows() == shown[0]
    assert len([entry for entry in asked.ledger.entries() if entry.kind == "period"]) == 4


@no_chance("any noise will do")
def test_threads_that_release_at_once_show_the_same_rows(place):
    session(ledger=place).stream(COUNT, **WEEKS, **COST, name="n")
    answers = []

    def work():
        with on(80):
            answers.append(session(ledger=place).find_stream("n").release().rows())

    run_threads(*[work] * 4)
    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)
    with Ledger(place) as ledger:
        assert len(ledger.periods("discreet: stream n")) == 11
        assert ledger.verify().intact


def test_a_ledger_that_was_put_back_is_noticed(place, tmp_path):
    asked = session(ledger=place)
    stream = asked.stream(COUNT, **WEEKS, **COST, name="n")
    with on(8):
        stream.release()
    asked.ledger.close()
    shutil.copy(place, tmp_path / "backup")
    with on(30):
        stream.release()
    asked.ledger.close()
    shutil.copy(tmp_path / "backup", place)
    again = session(ledger=place).find_stream("n")
    with on(40):
        assert code(again.release) == "DP610"
    assert again.shown == 1


def test_the_stream_file_is_needed_and_belongs_to_its_ledger(place, tmp_path):
    session(ledger=place).stream(COUNT, **WEEKS, **COST, name="n")
    file = tmp_path / "visits.ledger.streams"
    assert file.stat().st_mode & 0o077 == 0
    text = file.read_text()
    file.unlink()
    assert code(session(ledger=place).find_stream, "n") == "DP610"
    other = str(tmp_path / "other.ledger")
    session(ledger=other).stream(COUNT, **WEEKS, **COST, name="n")
    shutil.copy(other + ".streams", file)
    assert code(session(ledger=place).find_stream, "n") == "DP610"
    for damaged in ("", "{}", text[:40], text.replace('"secret": "', '"secret": "zz'), "\x00"):
        file.write_text(damaged)
        assert code(session(ledger=place).find_stream, "n") == "DP610"
    head = json.loads(text.splitlines()[0]) | {"secret": "00" * 32}
    file.write_text(json.dumps(head) + "\n")
    assert code(session(ledger=place).find_stream, "n") == "DP610"
    file.write_text(text + "cut o")
    assert session(ledger=place).find_stream("n").shown == 0
    moved = tmp_path / "elsewhere"
    file.rename(moved)
    assert session(ledger=place).find_stream("n", file=moved).shown == 0


def test_a_stream_belongs_to_whoever_opened_it(place):
    session(ledger=place).stream(COUNT, **WEEKS, **COST, name="n")
    ana = dp.Session(data(), ledger=place, analyst="ana")
    assert ana.streams() == []
    assert code(ana.find_stream, "n") == "DP604"
    assert code(ana.stream, COUNT, **WEEKS, **COST, name="n") == "DP604"
    assert code(ana.ledger.add_period, "discreet: stream n", 0, "{}", asker=ana._account.asker) == "DP604"


def test_rows_come_in_their_order_and_only_after_an_opening():
    asked = session()
    assert code(asked.ledger.add_period, "discreet: stream n", 0, "{}") == "DP610"
    asked.stream(COUNT, **WEEKS, **COST, name="n")
    key = "discreet: stream n"
    assert code(asked.ledger.add_period, key, 1, "{}") == "DP610"
    assert asked.ledger.add_period(key, 0, "one") == asked.ledger.add_period(key, 0, "two") == "one"
    assert code(asked.ledger.add_period, key, -1, "{}") == "DP102"
    assert code(asked.ledger.add_period, key, 1, 7) == "DP104"
    assert asked.ledger.periods(key) == ["one"]
    asked.sql("SELECT COUNT(*) FROM visits", epsilon=0.1, key="k")
    assert code(asked.ledger.add_period, "k", 0, "{}") == "DP610"


# --- refusals that cost nothing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"every": "fortnight"}, "DP105"),
        ({"every": 7}, "DP105"),
        ({"periods": 0}, "DP102"),
        ({"periods": 2.5}, "DP103"),
        ({"periods": 10**6}, "DP102"),
        ({"periods": float("nan")}, "DP103"),
        ({"start": "tomorrow"}, "DP104"),
        ({"start": 20260105}, "DP104"),
        ({"start": "9999-01-01"}, "DP102"),
        ({"start": "2020-01-06"}, "DP708"),
        ({"name": ""}, "DP102"),
        ({"name": "x" * 200}, "DP102"),
        ({"name": 7}, "DP102"),
        ({"name": "a\nb"}, "DP102"),
        ({"per_unit": 3}, "DP104"),
        ({"per_unit": {"row": 3}}, "DP104"),
        ({"per_unit": {"rows": 0}}, "DP102"),
        ({"per_unit": {"apart": 3}}, "DP107"),
        ({"best_for": "weeks"}, "DP102"),
        ({"best_for": -1}, "DP102"),
        ({"open_ended": "yes"}, "DP104"),
        ({"epsilon": 0}, "DP102"),
        ({"epsilon": -1}, "DP102"),
        ({"epsilon": float("inf")}, "DP101"),
        ({"epsilon": float("nan")}, "DP101"),
        ({"delta": 1.5}, "DP102"),
        ({"epsilon": None}, "DP107"),
        ({"rho": 1}, "DP107"),
        ({"epsilon": 1e-30}, "DP102"),
        ({"epsilon": 1e7}, "DP601"),
        ({"question": "SELECT"}, "DP702"),
        ({"question": "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits"}, "DP107"),
        ({"question": 7}, "DP104"),
        ({"question": None}, "DP104"),
        ({"question": "SELECT MAX(cost) FROM visits"}, "DP708"),
        ({"time": 3}, "DP708"),
        ({"file": 3}, "DP610"),
        ({"file": ""}, "DP610"),
        ({"file": "a\0b"}, "DP610"),
        ({"file": "/no/such/folder/x"}, "DP610"),
    ],
    ids=str,
)
def test_bad_input_is_refused_and_changes_nothing(place, change, expected):
    asked = session(ledger=place)
    words = {"question": COUNT, **WEEKS, **COST, **change}
    assert code(asked.stream, words.pop("question"), **words) == expected
    assert len(asked.ledger) == 1
    assert asked.streams() == []


def test_figures_of_bad_ranges_are_refused_and_the_fixes_work():
    stream = session().stream(COUNT, **WEEKS, **COST)
    with on(30):
        stream.release()
    for first, last in (
        ("2026-01-06", "2026-01-11"),
        ("2026-01-05", "2026-12-31"),
        ("2025-01-01", "2026-01-11"),
    ):
        with pytest.raises(BadParameter) as refusal:
            stream.between(first, last)
        assert len(eval(refusal.value.fix, {"stream": stream})) == 1
    for wrong in (0, 5, 1.5, "two", True, float("nan")):
        assert code(stream.window, wrong).startswith("DP10")
        assert code(stream.windows, wrong).startswith("DP10")
    assert code(stream.total, confidence=1.5) == "DP102"
    assert code(stream.totals, together="yes") == "DP104"
    assert code(stream.plot, figures="all") == "DP105"
    assert code(stream.release, until=3) == "DP104"


def test_a_limit_with_windows_has_no_streams():
    limit = dp.Limit.filter(epsilon=1, delta=1e-6, window="month")
    asked = dp.Session(data(), limit=limit)
    assert code(asked.stream, COUNT, **WEEKS, **COST) == "DP610"
    assert len(asked.ledger) == 1


def test_what_was_opened_as_an_expression_needs_no_text():
    """Whatever the text of a question, what was paid for can be published."""
    asked = session()
    question = asked.data.where(dp.col("cost") > 3).count()
    stream = asked.stream(question, **WEEKS, **COST, name="n")
    with on(8):
        assert len(stream.release()) == len(asked.find_stream("n").release()) == 1


def test_repeatable_noise_is_refused():
    asked = session()
    stream = asked.stream(COUNT, **WEEKS, **COST)
    with on(30), testing.seeded(1):
        assert code(stream.release) == "DP605"
        assert code(asked.stream, COUNT, **WEEKS, **COST, name="other") == "DP605"
    assert stream.shown == 0


def test_data_that_cannot_be_read_now_leave_everything_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "visits.parquet"
    visits().write_parquet(path)
    opened = dp.open(
        str(path), protect=dp.each("id", at_most=3), columns={"day": dp.column(bounds=(day(0), day(999)))}
    )
    asked = dp.Session(opened, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
    stream = asked.stream(COUNT, **WEEKS, **COST)
    visits(rows=10).write_parquet(path)
    with on(30), pytest.raises(EngineFailed):
        stream.release()
    assert stream.shown == 0


def test_a_session_with_a_response_time_returns_late():
    opened = data()
    asked = dp.Session(opened, limit=dp.Limit.filter(epsilon=1, delta=1e-6), response_time="200ms")
    assert asked.describe()


def test_the_chart_has_a_band_for_each_group():
    pytest.importorskip("matplotlib")
    stream = session().stream(BY_WARD, **WEEKS, **COST)
    with on(60):
        stream.release()
    for figures in ("totals", "periods"):
        figure = stream.plot(figures=figures)
        (axes,) = figure.axes
        assert len(axes.lines) == len(axes.collections) == 3
        assert "2026-03-01" in dp.plot.alt_text(figure)


def test_it_describes_itself():
    asked = session()
    preview = asked.preview_stream(COUNT, **WEEKS, **COST)
    assert len(asked.ledger) == 1
    stream = asked.stream(COUNT, **WEEKS, **COST, name="weekly")
    assert stream.predicted == preview
    assert "12 weeks, paid for when it was opened; 0 published." in stream.describe()
    with on(8):
        stream.release()
    assert repr(stream) == "<Stream 'weekly': 1 of 12 weeks published>"
    assert "1 published, until 2026-01-11." in str(stream)
    assert preview.guarantee == stream.guarantee
