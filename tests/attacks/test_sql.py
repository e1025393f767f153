# SPDX-License-Identifier: Apache-2.0
"""Known attacks on private SQL, by the name that the catalogue of attacks gives them; each must come to nothing.

Where an answer is drawn, ε is so large that noise cannot hide a leak, or δ so small that it cannot show a rare group.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from discreet.errors import BadDescription, BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.expr import Compare, Constant, leaves
from discreet.tables.algebra.sums import Filtered
from discreet.tables.ask.released import PublicValue, ReleasedColumn, ReleasedOperation
from discreet.tables.ask.sql import parse
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column as Described
from discreet.tables.data.dataset import Each, Table
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables.reference import Reference, value
from tests.tables.test_sql_fuzz import tables
from tests.tables.world import TABLES, WARDS, Shelf, world

WORLD = world()
LOUD = Spend(epsilon=100_000)
RARE = Spend(epsilon=1, delta=1e-12)


class _Library(Reference):
    def __init__(self, found):
        super().__init__(found, dict.fromkeys(("visits", "labs"), "patient_id"))

    def values(self, table, columns):
        return Shelf(**self.tables).values(table, columns)


def visit(patient, **cells):
    empty = dict.fromkeys(TABLES["visits"].columns)
    return {**empty, "patient_id": patient, "ward": "A", "urgent": True, "days": 1, **cells}


def hospital(visits, at_most=5, **more):
    found = {"visits": visits, "labs": [], **tables(0)} | {"visits": visits, "labs": []} | more
    return Dataset("hospital", TABLES, Each("patient_id", at_most=at_most), _Library(found))


def answer(text, data, spend=LOUD):
    return compile_question(parse(text, data).question, data, spend).draw(data)


def counts(text, data, spend=LOUD):
    """Each group with its (nearly exact) number."""
    found = answer(text, data, spend)
    (column,) = found.columns.values()
    return {group: round(number) for group, number in zip(found.groups, column.values, strict=True)}


def test_p01_a_rare_key_is_not_shown():
    crowd = [visit(patient, note="usual") for patient in range(400)]
    data = hospital([*crowd, visit(1_000, note="HIV")])
    text = "SELECT note, COUNT(*) FROM visits GROUP BY note"
    assert parse(text, data).question.keys[0].values is None
    assert set(counts(text, data, RARE)) == {("usual",)}
    with pytest.raises(DiscreetError):
        answer(text, data, LOUD)  # no δ, no selection: refused, and not shown without one


def test_p01_public_keys_are_shown_whatever_the_data_hold():
    text = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    for rows in ([], [visit(1, ward="Z")], [visit(1, ward="B")]):
        assert set(counts(text, hospital(rows))) == {("A",), ("B",), ("C",)}


def test_p03_null_and_nan_are_one_group():
    rows = [visit(1, weight=None), visit(2, weight=float("nan")), visit(3, weight=5.0)]
    text = "SELECT BUCKET(weight, 0, 10), COUNT(*) FROM visits GROUP BY 1"
    assert counts(text, hospital(rows)) == {(0,): 0, (1,): 1, (2,): 0, (None,): 2}
    declared = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    assert (None,) not in counts(declared, hospital([visit(1, ward=None)])), (
        "only the values that were declared"
    )


def test_p04_many_rows_of_one_person_count_as_few():
    rows = [visit(1) for _ in range(1_000)] + [visit(patient) for patient in range(2, 12)]
    assert counts("SELECT COUNT(*) FROM visits", hospital(rows)) == {(): 15}
    most = 5 * 60  # what five rows at the bound add up to
    assert counts("SELECT SUM(days) FROM visits", hospital(rows)) == {(): most + 10}


def test_p05_many_groups_of_one_person_are_not_shown():
    rows = [visit(1, note=f"secret {number}") for number in range(300)]
    assert counts("SELECT note, COUNT(*) FROM visits GROUP BY note", hospital(rows), RARE) == {}
    shared = [visit(1, ward=ward) for ward in "ABC" for _ in range(100)]
    found = answer("SELECT ward, COUNT(*) FROM visits GROUP BY ward", hospital(shared))
    assert sum(found.columns["count"].values) == pytest.approx(5, abs=0.1)


def test_p07_units_are_compared_exactly_and_are_of_one_type():
    names = ["Ann", "ann", "Ann ", "Ａnn"]
    columns = {"patient_id": Described("patient_id", "text")}
    table = {"visits": Table("visits", columns, "patient_id")}
    data = Dataset(
        "t", table, Each("patient_id"), _Library({"visits": [{"patient_id": name} for name in names]})
    )
    assert counts("SELECT COUNT(DISTINCT patient_id) FROM visits", data) == {(): 4}
    other = Table("labs", {"patient_id": Described("patient_id", "integer")}, "patient_id")
    with pytest.raises(BadDescription):
        replace(data, tables={**table, "labs": other})


def test_p08_the_order_of_groups_is_that_of_keys_and_not_of_rows():
    rows = [visit(patient, note=f"note {patient % 3}", ward="ABC"[patient % 3]) for patient in range(600)]
    for text, spend in (
        ("SELECT note, COUNT(*) FROM visits GROUP BY note", Spend(epsilon=100, delta=1e-12)),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", LOUD),
    ):
        shown = [list(counts(text, hospital(order), spend)) for order in (rows, rows[::-1])]
        assert shown[0] == shown[1] == sorted(shown[0])


def test_p09_a_join_does_not_multiply_what_one_person_adds():
    wards = [dict(zip(("ward", "region", "beds"), ward, strict=True)) for ward in WARDS] * 50
    rows = [visit(patient) for patient in range(3)]
    joined = "SELECT COUNT(*) FROM visits JOIN wards USING (ward)"
    assert counts(joined, hospital(rows, wards=wards)) == {(): 15}
    labs = [{"patient_id": 1, "ward": "A", "value": 0.0, "kind": "k"} for _ in range(100)]
    paired = "SELECT COUNT(*) FROM visits JOIN labs USING (patient_id)"
    assert counts(paired, hospital([visit(1) for _ in range(100)], labs=labs)) == {(): 5}
    itself = "SELECT COUNT(*) FROM visits v JOIN visits w ON v.patient_id = w.patient_id"
    assert counts(itself, hospital([visit(1) for _ in range(100)])) == {(): 5}
    for text in (
        "SELECT COUNT(*) FROM visits v JOIN labs l ON v.ward = l.ward",
        "SELECT COUNT(*) FROM visits v, labs l",
        "SELECT COUNT(*) FROM visits v JOIN visits w ON v.ward = w.ward",
    ):
        with pytest.raises(RefusedQuestion) as caught:
            parse(text, WORLD)
        assert caught.value.code == "DP703"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("SUM(days)", 60),
        ("SUM(days * 1000)", 60_000),
        ("SUM(CASE WHEN days > 3 THEN days * 1000 ELSE -days END)", 60_000),
        ("SUM(CLAMP(age, 0, 10) * CLAMP(age, 0, 10))", 100),
        ("SUM(POWER(days, 3))", 216_000),
        ("SUM(COALESCE(NULLIF(days, 60), 70))", 70),
    ],
)
def test_p10_an_expression_does_not_escape_its_bounds(text, most):
    data = hospital([visit(1, days=2**62, age=2**62)])
    assert counts(f"SELECT {text} FROM visits", data)[()] == pytest.approx(most, rel=0.01)


def test_p11_no_row_makes_an_expression_fail():
    found = tables(3, rows=60)
    reference = _Library(found)
    for text in (
        "60 / days",
        "cost / (days + 1)",
        "days % 7",
        "CLAMP(weight, 0, 9) / 3",
        "YEAR(day)",
        "FLOOR(cost)",
        "SQRT(days)",
        "SQRT(days - 30)",
        "LN(days)",
    ):
        question = parse(f"SELECT SUM({text}) FROM visits", WORLD).question
        cells = [value(question.aggregates[0].of, row) for _, row in reference.rows(question.rows)]
        kind = question.aggregates[0].of.type
        assert all(cell is None or kind.low <= cell <= kind.high for cell in cells), text
    for text in (
        "LN(days, 2, 3)",
        "SQRT(weight, 2)",
        "CAST(note AS INTEGER)",
        "my_function(days)",
        "cost / cost",
    ):
        with pytest.raises(RefusedQuestion):
            parse(f"SELECT SUM({text}) FROM visits", WORLD)


def test_p13_having_order_and_limit_see_released_numbers_only():
    question = parse(
        "SELECT ward, AVG(days) FROM visits GROUP BY ward HAVING COUNT(*) > 3 ORDER BY MAX(days) LIMIT 1",
        WORLD,
    ).question
    released = {one.name for one in question.aggregates} | {key.name for key in question.keys}

    def names(after):
        if isinstance(after, ReleasedColumn):
            return {after.name}
        return set() if isinstance(after, PublicValue) else set().union(*map(names, after.parts))

    assert isinstance(question.having, ReleasedOperation)
    assert names(question.having) | names(question.order[0].of) <= released
    assert question.rows == parse("SELECT COUNT(*) FROM visits", WORLD).question.rows, (
        "no row is filtered by it"
    )
    for text in (
        "SELECT COUNT(*) FROM visits HAVING days > 3",
        "SELECT COUNT(*) FROM visits ORDER BY days LIMIT 1",
        "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3",
        "SELECT AVG(days) FROM (SELECT days FROM visits ORDER BY days DESC LIMIT 1) AS t",
    ):
        with pytest.raises(RefusedQuestion):
            parse(text, WORLD)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT note FROM visits",
        "SELECT COUNT(DISTINCT note, ward) FROM visits",
        "SELECT SUM(days) OVER () FROM visits",
        "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits WHERE days = 7)",
        "SELECT COUNT(*) FROM visits WHERE days IN (SELECT MAX(days) FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE days = (SELECT MAX(days) FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE days >= ALL (SELECT days FROM visits)",
        "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits INTERSECT SELECT COUNT(*) FROM labs",
        "SELECT note FROM visits",
        "SELECT * FROM visits",
        "SELECT note, COUNT(*) FROM visits",
        "SELECT ANY_VALUE(note) FROM visits",
        "SELECT STRING_AGG(note, ',') FROM visits",
        "SELECT COUNT(*) FROM visits TABLESAMPLE (1 ROWS)",
        "SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER (ORDER BY days) = 1",
        "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.1",
        "SELECT COUNT(*) FROM visits AS v WHERE v.days = (SELECT days FROM visits AS w WHERE w.patient_id = v.patient_id)",
    ],
)
def test_p14_the_grammar_is_closed_and_has_one_class_of_error(text):
    with pytest.raises(RefusedQuestion) as caught:
        parse(text, WORLD)
    assert caught.value.code in {"DP702", "DP706"}
    assert caught.value.spent == "nothing"


def test_p14_min_and_max_are_not_somebodys_value():
    kinds = [one.kind for one in parse("SELECT MIN(days), MAX(days) FROM visits", WORLD).question.aggregates]
    assert kinds == ["min", "max"], "extreme quantiles, and said to be so in the answer"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits; DROP TABLE visits",
        "SELECT COUNT(*) FROM visits WHERE note = ''; DELETE FROM visits --'",
        "SELECT COUNT(*) FROM visits WHERE note = 'a' OR '1' = '1",
        "SELECT COUNT(*) FROM visits) UNION SELECT note FROM visits --",
        'SELECT COUNT(*) FROM "visits; DROP TABLE visits"',
        'SELECT COUNT(*) FROM "visits"" JOIN labs"',
        'SELECT AVG("days) FROM visits; --") FROM visits',
        "SELECT COUNT(*) FROM vіsits",
        "SELECT COUNT(*) FROM visitſ",
        "SELECT SUM(dаys) FROM visits",
        "SELECT SUM(days) FROM visits WHERE ward ＝ 'A'",
        "SELECT SUM(days) FROM visits WHERE ward = ‘A’",
        "ＳELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits /* unclosed",
        "SELECT COUNT(*) FROM visits\u2028; SELECT 1",
        "SELECT COUNT(*) FROM information_schema.tables",
        "SELECT COUNT(*) FROM sqlite_master",
        "SELECT COUNT(*) FROM read_parquet('visits.parquet')",
        "SELECT COUNT(*) FROM 'visits.parquet'",
        "SELECT getvariable('x'), COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE rowid = 1",
        "ATTACH 'x' AS y",
        "COPY visits TO 'out.csv'",
        "SET x = 1",
        "PRAGMA database_list",
        "CALL something()",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
        "EXPLAIN PRIVACY DROP TABLE visits",
        "EXPLAIN PRIVACY EXPLAIN PRIVACY SELECT COUNT(*) FROM visits",
    ],
)
def test_p15_what_is_smuggled_in_is_refused(text):
    with pytest.raises(RefusedQuestion) as caught:
        parse(text, WORLD)
    assert caught.value.code in {"DP701", "DP702", "DP705"}


@pytest.mark.parametrize(
    "written", ["it''s", "''; DROP TABLE visits; --", "/* a */ -- b", "a\\''b", '"', "Ａ", "%s {0} $1"]
)
def test_p15_a_text_in_quotes_stays_a_text(written):
    meant = written.replace("''", "'")
    question = parse(
        f"SELECT COUNT(*) FROM visits WHERE note = '{written}' /* OR TRUE */ -- OR TRUE", WORLD
    ).question
    assert isinstance(question.rows, Filtered)
    assert isinstance(question.rows.condition, Compare)
    assert isinstance(question.rows.condition.right, Constant)
    assert question.rows.condition.right.value == meant
    assert value(question.rows.condition, {("visits", "note"): meant}) is True


def test_p15_names_are_those_of_the_description():
    question = parse("SELECT SUM(V.\"days\") FROM VISITS AS v WHERE WaRd = 'A'", WORLD).question
    read = [*leaves(question.aggregates[0].of), *leaves(question.rows.condition)]
    assert {(one.table, one.column) for one in read} == {("visits", "days"), ("visits", "ward")}


@pytest.mark.parametrize(
    "of", ["SUM(weight)", "AVG(age)", "VAR(weight)", "MEDIAN(weight)", "MAX(age)", "SUM(age * days)"]
)
def test_p18_missing_bounds_are_refused(of):
    with pytest.raises(BadParameter) as caught:
        parse(f"SELECT {of} FROM visits", WORLD)
    assert caught.value.code == "DP104"
    assert "CLAMP" in caught.value.fix


def test_p20_nothing_is_learnt_from_private_rows_while_a_question_is_read():
    """The engine of this world fails when it is asked about private rows; and what is read is the same without them."""
    texts = [
        "SELECT note, COUNT(*) FROM visits GROUP BY note",
        "SELECT ward, days, AVG(cost) FROM visits GROUP BY ward, days",
        "SELECT region, beds, MODE(visits.ward), MEDIAN(cost) FROM visits JOIN wards USING (ward) GROUP BY region, beds",
    ]
    for text in texts:
        asked = [parse(text, hospital(rows)).question for rows in ([], [visit(1, note="x", days=59)])]
        assert asked[0] == asked[1] == parse(text, WORLD).question
    with pytest.raises(RefusedQuestion):
        parse("SELECT MODE(note) FROM visits", WORLD)
    with pytest.raises(RefusedQuestion):
        parse("SELECT age, COUNT(*) FROM visits GROUP BY age", WORLD)


def test_an_error_shows_the_question_and_never_a_row():
    data = hospital([visit(1, note="secret", ward="secret", days=59)])
    for text in ("SELECT secre FROM visits", "SELECT SUM(note) FROM visits", "SELECT note FROM visits"):
        with pytest.raises(DiscreetError) as caught:
            parse(text, data)
        assert "secret" not in str(caught.value)
