# SPDX-License-Identifier: Apache-2.0
"""An answer hands on what was released, with its intervals, and says what must be said."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from discreet import privacy
from discreet.errors import BadDescription, BadParameter
from discreet.tables.algebra.sums import Private
from discreet.tables.answer.answer import Answer, Noisy
from discreet.tables.answer.arrange import arrange
from discreet.tables.ask.question import AnswerColumn, Question, SortOrder
from discreet.tables.ask.released import PublicValue, ReleasedColumn, ReleasedOperation


def noisy(values, half=2.0, **more):
    lo = tuple(None if value is None else value - half for value in values)
    hi = tuple(None if value is None else value + half for value in values)
    return Noisy(tuple(values), lo, hi, **more)


def wards(**more) -> Answer:
    columns = {
        "count": noisy([10, -1, 7], whole=True, nonnegative=True, text="COUNT(*)", noise="Laplace"),
        "avg_days": noisy([3.5, None, 1.25], 0.5, text="AVG(days)"),
    }
    said = {"question": "SELECT …", "notes": ("Values were moved between 0 and 60.",), "suppressed": ""}
    return Answer.of(
        keys=["ward"],
        groups=[("a",), ("b",), (None,)],
        columns=columns,
        **said | {"guarantee": privacy.pure(0.5)} | more,
    )


def asked(**more) -> Question:
    return Question(Private("visits"), (), **more)


COUNT, DAYS, WARD = ReleasedColumn("count"), ReleasedColumn("avg_days"), ReleasedColumn("ward")


def test_every_noisy_column_has_its_two_ends():
    assert wards().header == [
        "ward",
        "count",
        "count_lo",
        "count_hi",
        "avg_days",
        "avg_days_lo",
        "avg_days_hi",
    ]
    assert wards().rows()[0] == ("a", 10, 8.0, 12.0, 3.5, 3.0, 4.0)
    assert [row["ward"] for row in wards()] == ["a", "b", None]
    assert len(wards()) == 3


def test_the_text_shows_the_numbers_and_what_must_be_said():
    text = str(wards(private=False, suppressed="Groups of fewer than 20 are likely withheld."))
    assert "NOT PRIVATE" in text
    assert "fewer than 20" in text
    assert "between 0 and 60" in text
    assert "pure(epsilon=0.5)" in text
    page = wards()._repr_html_()
    assert page.count("<tr>") == 4
    assert "<script>" not in Answer.of(keys=["<script>"], groups=[], columns={})._repr_html_()


def test_one_number_is_a_value_and_several_are_not():
    one = Answer.of(keys=[], groups=[()], columns={"count": noisy([5])})
    assert one.value == 5
    assert one.interval == (3.0, 7.0)
    with pytest.raises(BadParameter) as refused:
        wards().value  # noqa: B018
    assert refused.value.code == "DP107"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_hold_the_table(library):
    pytest.importorskip(library)
    answer = wards()
    table = {"pandas": answer.to_pandas, "polars": answer.to_polars, "pyarrow": answer.to_arrow}[library]()
    names = list(table.columns) if library != "pyarrow" else table.column_names
    assert names == answer.header
    column = table["count"].to_pylist() if library == "pyarrow" else list(table["count"])
    assert column == [10, -1, 7]


def test_files_hold_the_table_and_what_is_said(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    answer = wards()
    answer.to_csv(tmp_path / "wards.csv")
    answer.to_parquet(tmp_path / "wards.parquet")
    with (tmp_path / "wards.csv").open(encoding="utf-8") as file:
        assert next(csv.reader(file)) == answer.header
    metadata = parquet.read_schema(tmp_path / "wards.parquet").metadata
    assert metadata[b"discreet.noise.count"] == b"Laplace"
    assert privacy.from_json(metadata[b"discreet.guarantee"].decode()) == privacy.pure(0.5)
    with pytest.raises(BadParameter) as refused:
        answer.to_csv(tmp_path / "nowhere" / "wards.csv")
    assert refused.value.code == "DP102"


def test_json_brings_everything_back():
    day, moment = date(2026, 11, 16), datetime(2026, 11, 16, 4, 5, 6, tzinfo=UTC)
    answer = Answer.of(
        keys=["day", "moment", "flag"],
        groups=[(day, moment, True)],
        columns={"count": Noisy((3,), (-math.inf,), (4,), deviation=1.5, whole=True)},
        guarantee=privacy.gaussian(2.0),
        suppressed="some",
    )
    back = Answer.from_json(answer.to_json())
    assert back.groups == ((day, moment, True),)
    assert back.columns["count"] == Noisy((3,), (None,), (4,), deviation=1.5, whole=True)
    assert (back.guarantee, back.suppressed) == (privacy.gaussian(2.0), "some")


def test_an_answer_of_the_first_version_is_read():
    stored = json.loads(wards().to_json())
    stored["columns"]["count"] |= {"gaussian": True, "step": 0.5}
    assert Answer.from_json(json.dumps(stored)).columns == wards().columns


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "DP401"),
        ("[]", "DP401"),
        ("{}", "DP401"),
        ('{"discreet.answer": 99}', "DP402"),
        (json.dumps({"discreet.answer": 1, "columns": {"x": {"values": [1], "odd": 2}}}), "DP401"),
    ],
)
def test_what_is_no_answer_is_refused(text, code):
    with pytest.raises(BadDescription) as refused:
        Answer.from_json(text)
    assert refused.value.code == code


# --- outputs, HAVING, ORDER BY, LIMIT ---------------------------------------------------------------


def test_outputs_are_renamed_and_computed_with_their_intervals():
    # A quotient is one thing with two noises, each of which needs an interval of more than 95 %.
    def wider(column):
        return replace(column, interval=lambda _: (column.lo, column.hi))

    answer = wards()
    answer = replace(answer, columns={name: wider(column) for name, column in answer.columns.items()})
    per = ReleasedOperation("*", (ReleasedOperation("/", (DAYS, COUNT)), PublicValue(100)))
    shown = arrange(
        answer, asked(outputs=(AnswerColumn("w", WARD), AnswerColumn("n", COUNT), AnswerColumn("per", per)))
    )
    unknown = arrange(wards(), asked(outputs=(AnswerColumn("per", per),))).columns["per"]
    assert (unknown.lo[0], unknown.hi[0]) == (None, None)
    assert shown.header == ["w", "n", "n_lo", "n_hi", "per", "per_lo", "per_hi"]
    assert shown.columns["per"].values == (35.0, None, pytest.approx(1.25 / 7 * 100))
    assert shown.columns["per"].lo[0] == pytest.approx(3.0 / 12 * 100)
    assert shown.columns["per"].hi[0] == pytest.approx(4.0 / 8 * 100)


def test_a_quotient_by_what_may_be_zero_says_nothing():
    answer = Answer.of(keys=[], groups=[()], columns={"a": noisy([1]), "b": noisy([1])})
    shown = arrange(
        answer,
        asked(
            outputs=(AnswerColumn("q", ReleasedOperation("/", (ReleasedColumn("a"), ReleasedColumn("b")))),)
        ),
    )
    assert (shown.columns["q"].values, shown.columns["q"].lo, shown.columns["q"].hi) == (
        (1.0,),
        (None,),
        (None,),
    )


def test_two_noisy_columns_are_taken_at_a_higher_confidence_each():
    seen = []

    def ends(confidence):
        seen.append(confidence)
        return (0,), (10,)

    columns = {name: noisy([5], interval=ends) for name in "ab"}
    answer = Answer.of(keys=[], groups=[()], columns=columns)
    shown = arrange(
        answer,
        asked(
            outputs=(AnswerColumn("s", ReleasedOperation("+", (ReleasedColumn("a"), ReleasedColumn("b")))),)
        ),
    )
    assert seen == pytest.approx([0.975, 0.975])
    assert (shown.columns["s"].lo, shown.columns["s"].hi) == ((0,), (20,))


@pytest.mark.parametrize(
    ("op", "parts", "value", "ends"),
    [
        ("-", (COUNT,), -10, (-12, -8)),
        ("-", (COUNT, PublicValue(1)), 9, (7, 11)),
        ("abs", (ReleasedOperation("-", (PublicValue(9), COUNT)),), 1, (0, 3)),
        ("abs", (ReleasedOperation("-", (PublicValue(1), COUNT)),), 9, (7, 11)),
        ("round", (DAYS,), 4, (3, 4)),
        ("round", (DAYS, PublicValue(1)), 3.5, (3.0, 4.0)),
        ("least", (COUNT, PublicValue(9)), 9, (8, 9)),
        ("greatest", (COUNT, PublicValue(11)), 11, (11, 12)),
        ("*", (COUNT, PublicValue(-1)), -10, (-12, -8)),
    ],
)
def test_the_interval_of_an_operator_is_its_hull(op, parts, value, ends):
    shown = arrange(wards(), asked(outputs=(AnswerColumn("x", ReleasedOperation(op, parts)),)))
    column = shown.columns["x"]
    assert (column.values[0], column.lo[0], column.hi[0]) == (value, *ends)


def test_having_order_and_limit_read_released_numbers_only():
    few = ReleasedOperation(">", (COUNT, PublicValue(0)))
    shown = arrange(wards(), asked(having=few, order=(SortOrder(COUNT),), limit=1))
    assert shown.groups == ((None,),)
    assert arrange(wards(), asked(order=(SortOrder(COUNT, descending=True),))).groups == (
        ("a",),
        (None,),
        ("b",),
    )
    assert arrange(wards(), asked(order=(SortOrder(DAYS),))).groups == ((None,), ("a",), ("b",))
    unknown = ReleasedOperation(">", (DAYS, PublicValue(0)))
    assert arrange(wards(), asked(having=unknown)).groups == (("a",), (None,))
    either = ReleasedOperation("or", (unknown, ReleasedOperation("=", (WARD, PublicValue("b")))))
    assert arrange(wards(), asked(having=either)).groups == (("a",), ("b",), (None,))
    both = ReleasedOperation(
        "and", (few, ReleasedOperation("not", (ReleasedOperation("=", (WARD, PublicValue("a"))),)))
    )
    assert arrange(wards(), asked(having=both)).groups == ()


# --- views --------------------------------------------------------------------------------------------


def test_views_cut_and_round_and_say_so():
    seen = wards().nonnegative().round()
    assert seen.columns["count"].values == (10, 0, 7)
    assert seen.columns["count"].lo == (8, 0, 5)
    assert seen.columns["avg_days"] == wards().columns["avg_days"]
    assert [note[:5] for note in seen.notes] == ["Value", "View:", "View:"]


def test_a_rounded_interval_holds_the_one_that_was_released():
    column = Noisy((1.5,), (0.2,), (2.9,), whole=True)
    seen = Answer.of(keys=[], groups=[()], columns={"count": column}).round().columns["count"]
    assert (seen.values, seen.lo, seen.hi) == ((2,), (0,), (3,))


def test_a_picture_has_a_bar_for_each_interval():
    pytest.importorskip("matplotlib")
    from discreet import plot

    figure = wards().plot()
    assert "a 10 (8 to 12)" in plot.alt_text(figure)
    with pytest.raises(BadParameter) as refused:
        wards().plot("nothing")
    assert refused.value.code == "DP105"
    with pytest.raises(BadParameter):
        plot.groups([], [], [], [])


# --- files that people open --------------------------------------------------------------------------


def test_an_excel_file_holds_the_table_and_no_formulas(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    moment = datetime(2026, 11, 16, 4, 5, 6, tzinfo=UTC)
    answer = Answer.of(
        keys=["ward", "at"],
        groups=[("=1+1", moment), ("a\x00b", None)],
        columns={"count": Noisy((3, None), (-math.inf, None), (4.5, None))},
        notes=["=a note"],
    )
    answer.to_excel(tmp_path / "wards.xlsx")
    book = openpyxl.load_workbook(tmp_path / "wards.xlsx")
    rows = list(book["answer"].iter_rows(values_only=True))
    assert list(rows[0]) == answer.header
    assert rows[1] == ("=1+1", moment.replace(tzinfo=None), 3, None, 4.5)
    assert rows[2][0] == "a\ufffdb"
    assert book["answer"]["A2"].data_type == "s"
    assert dict(book["about"].iter_rows(values_only=True))["discreet.notes"] == "=a note"


def test_an_arrow_file_holds_the_table_and_its_metadata(tmp_path):
    ipc = pytest.importorskip("pyarrow.ipc")
    wards().to_ipc(tmp_path / "wards.arrow")
    table = ipc.open_file(str(tmp_path / "wards.arrow")).read_all()
    assert table.column_names == wards().header
    assert table.schema.metadata[b"discreet.noise.count"] == b"Laplace"


def test_a_csv_file_can_have_its_description_beside_it(tmp_path):
    wards().to_csv(tmp_path / "wards.csv", sidecar=True)
    stored = json.loads((tmp_path / "wards.csv-metadata.json").read_text(encoding="utf-8"))
    assert stored["url"] == "wards.csv"
    assert [column["name"] for column in stored["tableSchema"]["columns"]] == wards().header
    assert stored["discreet.notes"] == "Values were moved between 0 and 60."
    wards().to_csv(tmp_path / "alone.csv")
    assert not (tmp_path / "alone.csv-metadata.json").exists()


def test_an_answer_shows_itself_as_its_table():
    assert repr(wards()) == str(wards())


def test_several_columns_and_long_lists_stand_in_panels():
    pytest.importorskip("matplotlib")
    from discreet import plot

    both = wards().plot()
    assert len(both.get_axes()) == 2
    assert "AVG(days) by group" in plot.alt_text(both)
    assert len(wards().plot(["count"]).get_axes()) == 1
    many = Answer.of(
        keys=["n"], groups=[(n,) for n in range(130)], columns={"count": noisy(list(range(130)))}
    )
    panels = many.plot().get_axes()
    assert [len(ax.get_yticks()) for ax in panels] == [44, 44, 42]
    first = many.plot(sort=True).get_axes()[0]
    assert first.get_yticklabels()[0].get_text() == "129"
