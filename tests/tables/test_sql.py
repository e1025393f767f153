# SPDX-License-Identifier: Apache-2.0
"""What is answered, and the question that it becomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction

import pytest

from discreet.errors import BadParameter, RefusedQuestion
from discreet.tables.algebra import expr as e
from discreet.tables.algebra.sums import Filtered, Lookup, Paired, Private
from discreet.tables.algebra.types import WIDEST
from discreet.tables.ask.released import PublicValue, ReleasedColumn, ReleasedOperation
from discreet.tables.ask.sql import ParsedQuestion, parse
from discreet.tables.ask.sql.select import length
from discreet.tables.ask.sql.text import parse_statement
from discreet.tables.data.dataset import Column as Described
from discreet.tables.data.dataset import Table
from tests.tables.world import DAYS, world

WORLD = world()


def ask(text):
    return parse(text, WORLD).question


def only_aggregate(text):
    (aggregate,) = ask(f"SELECT {text} FROM visits").aggregates
    return aggregate


def bounds(text):
    return tuple(float(end) for end in only_aggregate(text).of.type.bounds)


# --- the statement ------------------------------------------------------------------------------------


def test_the_question_of_the_front_page():
    question = ask("SELECT ward, COUNT(*), AVG(days) FROM visits GROUP BY ward")
    assert [(one.kind, one.name, one.text) for one in question.aggregates] == [
        ("count", "count", "COUNT(*)"),
        ("mean", "avg_days", "AVG(days)"),
    ]
    (key,) = question.keys
    assert (key.name, key.values) == ("ward", ("A", "B", "C"))
    assert [output.name for output in question.outputs] == ["ward", "count", "avg_days"]
    assert question.text == "SELECT ward, COUNT(*), AVG(days) FROM visits GROUP BY ward"


def test_explain_privacy_and_options_surround_the_question():
    asked = parse("EXPLAIN PRIVACY SELECT COUNT(*) FROM visits WITH (epsilon = 0.1, error = '±5 %');", WORLD)
    assert asked == ParsedQuestion(asked.question, explain=True, options={"epsilon": 0.1, "error": "±5 %"})
    assert parse("SELECT COUNT(*) FROM visits", WORLD).options == {}
    assert not parse("SELECT COUNT(*) FROM visits;", WORLD).explain


def test_comments_and_case_do_not_matter():
    plain = ask("SELECT COUNT(*) FROM visits WHERE days > 2")
    noisy = ask("select /* how\nmany */ count ( * ) -- rows\nFROM Visits WHERE DAYS>2")
    assert (noisy.rows, noisy.aggregates[0].kind) == (plain.rows, "count")


def test_names_in_quotes_are_exact():
    assert ask('SELECT COUNT("note") AS "N" FROM "visits"').outputs[0].name == "N"
    with pytest.raises(RefusedQuestion):
        ask('SELECT COUNT("Note") FROM visits')


# --- rows ---------------------------------------------------------------------------------------------


def test_rows_that_must_have_a_value_are_filtered_first():
    rows = ask("SELECT COUNT(*) FROM visits WHERE days > 2").rows
    assert isinstance(rows, Filtered)
    assert isinstance(rows.rows, Filtered)
    assert rows.rows.rows == Private("visits")


def test_a_public_table_is_looked_up():
    for text in (
        "FROM visits v JOIN wards w ON v.ward = w.ward",
        "FROM visits v INNER JOIN wards w ON w.ward = v.ward",
        "FROM visits v JOIN wards w USING (ward)",
        "FROM wards w JOIN visits v ON v.ward = w.ward",
    ):
        rows = ask(f"SELECT COUNT(*) {text}").rows
        assert isinstance(rows, Lookup), text
        assert (rows.table, rows.keep) == ("wards", False)
        ((left, right),) = rows.on
        assert (left.table, left.column, right.table, right.column) == ("visits", "ward", "wards", "ward")
    assert ask("SELECT COUNT(*) FROM visits LEFT JOIN wards USING (ward)").rows.keep
    assert ask("SELECT COUNT(*) FROM visits LEFT OUTER JOIN wards USING (ward)").rows.keep


def test_more_conditions_of_a_join_are_a_filter_behind_it():
    rows = ask("SELECT COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward AND w.beds > v.days").rows
    assert isinstance(rows, Filtered)
    assert isinstance(rows.rows, Lookup)


def test_private_tables_meet_on_the_unit():
    rows = ask(
        "SELECT COUNT(*) FROM visits v JOIN labs l ON v.patient_id = l.patient_id AND l.ward = v.ward"
    ).rows
    assert isinstance(rows, Paired)
    assert rows.other == Private("labs")
    ((left, right),) = rows.on
    assert (left.table, right.table) == ("visits", "labs")
    assert ask("SELECT COUNT(*) FROM visits JOIN labs USING (patient_id)").rows.on == ()
    assert (
        ask("SELECT COUNT(DISTINCT patient_id) FROM visits JOIN labs USING (patient_id)").aggregates[0].kind
        == "units"
    )
    both = "FROM visits v JOIN labs l ON v.patient_id = l.patient_id"
    assert ask(f"SELECT COUNT(DISTINCT patient_id) {both}").aggregates[0].kind == "units"
    assert ask(f"SELECT COUNT(DISTINCT l.patient_id) {both}").aggregates[0].name == "count_patient_id"


def test_the_unit_may_be_looked_up_but_nothing_else():
    tables = dict(WORLD.tables)
    tables["staff"] = Table("staff", {"id": Described("id", "integer"), "role": Described("role", "text")})
    staff = replace(WORLD, tables=tables, engine=_Staff())
    rows = parse("SELECT COUNT(*) FROM visits JOIN staff ON patient_id = staff.id", staff).question.rows
    assert rows.on[0][0].column == "patient_id"


class _Staff:
    def values(self, table, columns):
        return [(1,), (2,)]


def test_a_query_that_only_renames_computes_and_filters_is_inlined():
    plain = ask("SELECT AVG(days * 2) AS m FROM visits WHERE days > 3 AND days < 5")
    for text in (
        "SELECT AVG(dd) AS m FROM (SELECT days * 2 AS dd, days FROM visits WHERE days > 3) AS t WHERE days < 5",
        "WITH t AS (SELECT *, days * 2 AS dd FROM visits WHERE days > 3) SELECT AVG(dd) AS m FROM t WHERE days < 5",
        (
            "SELECT AVG(u.dd) AS m FROM (SELECT t.dd, t.days FROM (SELECT days * 2 AS dd, days FROM visits) AS t "
            "WHERE t.days > 3) AS u WHERE u.days < 5"
        ),
    ):
        question = ask(text)
        assert question.aggregates[0].of == plain.aggregates[0].of, text
        assert isinstance(question.rows, Filtered), text
    again = ask("WITH visits AS (SELECT * FROM visits WHERE days > 3) SELECT COUNT(*) FROM visits")
    assert again.rows == ask("SELECT COUNT(*) FROM visits WHERE days > 3").rows


# --- expressions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUM(days)", (0, 60)),
        ("SUM(CLAMP(days, 5, 100))", (5, 60)),
        ("SUM(CLAMP(age, 0, 120))", (0, 120)),
        ("SUM(CLAMP(age, 0.5, 2.5))", (0.5, 2.5)),
        ("SUM(CLAMP(days, 70, 80))", (70, 70)),
        ("SUM(CLAMP(days + 1, 0, 10))", (1, 10)),
        ("SUM(days + 1)", (1, 61)),
        ("SUM(-days)", (-60, 0)),
        ("SUM(days - 30)", (-30, 30)),
        ("SUM((days - 30) * (days - 30))", (0, 900)),
        ("SUM(POWER(days, 2))", (0, 3600)),
        ("SUM(days * 0.5)", (0, 30)),
        ("SUM(days / 4)", (0, 15)),
        ("SUM(60 / (days + 1))", (0.9836, 60)),
        ("SUM(days DIV 7)", (0, 8)),
        ("SUM(days // 7)", (0, 8)),
        ("SUM(days % 7)", (0, 6)),
        ("SUM(MOD(days, 7))", (0, 6)),
        ("SUM(ABS(days - 10))", (0, 50)),
        ("SUM(LEAST(days, 10))", (0, 10)),
        ("SUM(GREATEST(days, 10, 20))", (20, 60)),
        ("SUM(COALESCE(days, -1))", (-1, 60)),
        ("SUM(NULLIF(days, 0))", (0, 60)),
        ("SUM(CASE WHEN urgent THEN days ELSE 100 END)", (0, 100)),
        ("SUM(CASE ward WHEN 'A' THEN 1 WHEN 'B' THEN 2.5 END)", (1, 2.5)),
        ("SUM(IF(urgent, 3, -3))", (-3, 3)),
        ("SUM(IIF(urgent, 3, -3))", (-3, 3)),
        ("SUM(urgent)", (0, 1)),
        ("SUM(CAST(urgent AS INTEGER))", (0, 1)),
        ("SUM(CAST(days AS DOUBLE))", (0, 60)),
        ("SUM(FLOOR(cost))", (0, 500)),
        ("SUM(CEIL(cost))", (0, 500)),
        ("SUM(ROUND(cost))", (0, 500)),
        ("SUM(ROUND(days, 0))", (0, 60)),
        ("SUM(YEAR(day))", (2024, 2025)),
        ("SUM(EXTRACT(month FROM day))", (1, 12)),
        ("SUM(DATE_PART('isodow', day))", (1, 7)),
        ("SUM(HOUR(seen_at))", (0, 23)),
        ("SUM(day - DATE '2024-01-01')", (0, (DAYS[1] - DAYS[0]).days)),
        ("SUM(BUCKET(weight, 0, 10, 20))", (0, 3)),
        ("SUM(WIDTH_BUCKET(days, 0, 60, 6))", (0, 7)),
        ("SUM(2 * 3 + days)", (6, 66)),
    ],
)
def test_bounds_are_derived(text, expected):
    assert bounds(text) == pytest.approx(expected, abs=1e-4)


def test_products_of_real_numbers_keep_a_grid_that_fits():
    kind = only_aggregate("SUM(cost * cost * cost * 0.1)").of.type
    assert kind.reach < 2**62
    assert float(kind.bounds[1]) == pytest.approx(0.1 * 500**3, rel=1e-4)


def test_conditions_see_columns_as_they_are():
    """`days` has the bounds 0 to 60, yet WHERE days > 60 finds those above: bounds are for what is summed."""
    condition = ask("SELECT COUNT(*) FROM visits WHERE days > 60 AND age < 18").rows.condition
    assert [item.left.type.high for item in condition.items] == [WIDEST, WIDEST]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("days < 2.5", "days < 3"),
        ("days <= 2.5", "days <= 2"),
        ("days > 2.5", "days > 2"),
        ("days >= 2.5", "days >= 3"),
        ("2.5 > days", "days < 3"),
        ("days = 2.5", "days <> days"),
        ("days <> 2.5", "days = days"),
        ("days IN (1, 2.5)", "days IN (1)"),
        ("days IN (2.5)", "days <> days"),
        ("days BETWEEN 1 AND 2", "days >= 1 AND days <= 2"),
        ("days NOT BETWEEN 1 AND 2", "NOT (days >= 1 AND days <= 2)"),
        ("days NOT IN (1, 1, 2)", "NOT days IN (1, 2)"),
        ("day >= '2024-02-01'", "day >= DATE '2024-02-01'"),
        ("day = CAST('2024-02-01' AS DATE)", "DATE '2024-02-01' = day"),
        ("seen_at < DATE '2024-02-01'", "seen_at < TIMESTAMP '2024-02-01 00:00:00'"),
        ("seen_at < '2024-02-01T02:00:00+02:00'", "seen_at < TIMESTAMP '2024-02-01'"),
        ("note NOT LIKE 'a%'", "NOT note LIKE 'a%'"),
        ("urgent IS NOT TRUE", "NOT (urgent IS TRUE)"),
        ("((days > 1))", "days > 1"),
        ("days != 1", "days <> 1"),
        ("note IS NOT NULL", "NOT note IS NULL"),
    ],
)
def test_conditions_that_mean_the_same_become_the_same(written, meant):
    first, second = (
        ask(f"SELECT COUNT(*) FROM visits WHERE {text}").rows.condition for text in (written, meant)
    )
    flipped = isinstance(second, e.Compare) and isinstance(second.left, e.Constant)
    assert first == (e.Compare(second.op, second.right, second.left) if flipped else second)


def test_true_and_false_are_told_from_null():
    condition = ask("SELECT COUNT(*) FROM visits WHERE (days > 2) IS FALSE").rows.condition
    assert isinstance(condition, e.Coalesce)
    assert not condition.type.null


def test_many_conditions_are_a_flat_tree():
    condition = ask(
        "SELECT COUNT(*) FROM visits WHERE " + " OR ".join(f"days = {i}" for i in range(600))
    ).rows.condition

    def height(node):
        return 1 + max((height(part) for part in node.parts), default=0)

    assert height(condition) <= 6
    assert sum(isinstance(leaf, e.Read) for leaf in e.leaves(condition)) == 600


# --- keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("ward", ("A", "B", "C")),
        ("note", None),
        ("zip", None),
        ("urgent", (False, True)),
        ("days > 3", (False, True, None)),
        ("days % 3", (0, 1, 2, None)),
        ("BUCKET(weight, 0, 10)", (0, 1, 2, None)),
        ("WIDTH_BUCKET(cost, 0, 100, 2)", (0, 1, 2, 3, None)),
        ("MONTH(day)", (*range(1, 13), None)),
        ("YEAR(day)", (2024, 2025, None)),
        ("YEAR(born)", None),
        ("seen_at", None),
        ("COALESCE(ward, 'none')", ("A", "B", "C", "none")),
        ("COALESCE(note, 'none')", None),
        ("CASE WHEN days > 9 THEN 'long' ELSE 'short' END", ("long", "short")),
        ("CASE WHEN days > 9 THEN 'long' END", ("long", None)),
        ("CASE WHEN days > 9 THEN 10 WHEN days > 5 THEN 5 ELSE 0 END", (10, 5, 0)),
        ("IF(urgent, DATE '2024-01-01', DATE '2025-01-01')", (date(2024, 1, 1), date(2025, 1, 1))),
    ],
)
def test_a_key_has_the_public_values_of_its_expression(key, values):
    (found,) = ask(f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY {key}").keys
    assert (found.name, found.values) == ("k", values)


def test_whole_numbers_and_days_within_bounds_are_listed_if_they_are_few():
    (found,) = ask("SELECT days, COUNT(*) FROM visits GROUP BY days").keys
    assert found.values == (*range(61), None)
    (found,) = ask("SELECT day, COUNT(*) FROM visits GROUP BY day").keys
    assert (len(found.values), found.values[0], found.values[-1]) == (732, DAYS[0], None)


@pytest.mark.parametrize("group", ["YEAR(day)", "1", "y", "(y)", "year(DAY)"])
def test_keys_by_position_alias_or_expression(group):
    (found,) = ask(f"SELECT YEAR(day) AS y, COUNT(*) FROM visits GROUP BY {group}").keys
    assert found.of.part == "year"


def test_a_column_comes_before_an_alias_in_group_by():
    (found,) = ask("SELECT days > 3 AS ward, COUNT(*) FROM visits GROUP BY ward, days > 3").keys[:1]
    assert found.values == ("A", "B", "C")


def test_keys_of_a_public_table_are_its_values():
    joined = "FROM visits v JOIN wards w ON v.ward = w.ward"
    assert ask(f"SELECT region, COUNT(*) {joined} GROUP BY region").keys[0].values == ("north", "south")
    question = ask(f"SELECT region, w.ward, COUNT(*) {joined} GROUP BY region, w.ward")
    assert question.combinations == (("north", "A"), ("north", "B"), ("south", "C"))
    left = ask(
        "SELECT region, beds, urgent, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY 1, 3, 2"
    )
    assert left.keys[0].values == ("north", "south", None)
    assert set(left.combinations) == {
        (region, urgent, beds)
        for region, beds in [("north", 10), ("north", 20), ("south", 30), (None, None)]
        for urgent in (False, True)
    }


def test_one_key_that_nobody_knows_leaves_all_of_them_to_be_found():
    joined = "FROM visits JOIN wards USING (ward)"
    question = ask(f"SELECT region, beds, note, COUNT(*) {joined} GROUP BY region, beds, note")
    assert question.combinations is None
    assert [key.values for key in question.keys] == [("north", "south"), (10, 20, 30), None]


def test_what_is_never_null_is_only_made_so_in_private_tables():
    sure = replace(
        WORLD.tables["wards"],
        columns={name: replace(column, null=False) for name, column in WORLD.tables["wards"].columns.items()},
    )
    data = replace(WORLD, tables={**WORLD.tables, "wards": sure})
    for join in ("JOIN", "LEFT JOIN"):
        text = f"SELECT SUM(beds), SUM(CAST(urgent AS INTEGER)) FROM visits {join} wards USING (ward)"
        beds, urgent = parse(text, data).question.aggregates
        assert beds.of.type.null
        assert not urgent.of.type.null


def test_a_list_in_where_or_a_join_makes_values_public():
    where = "SELECT note, COUNT(*) FROM visits WHERE note IN ('x', 'y') AND days > 2 GROUP BY note"
    assert ask(where).keys[0].values == ("x", "y")
    assert ask("SELECT note, COUNT(*) FROM visits WHERE 'x' = note GROUP BY note").keys[0].values == ("x",)
    assert (
        ask("SELECT note, COUNT(*) FROM visits WHERE note IN ('x') OR days > 2 GROUP BY note").keys[0].values
        is None
    )
    assert ask("SELECT ward, COUNT(*) FROM visits WHERE ward IN ('B', 'Z') GROUP BY ward").keys[0].values == (
        "B",
    )
    (age,) = ask("SELECT age, COUNT(*) FROM visits WHERE age IN (18, 80) GROUP BY age").keys
    assert (age.values, age.of.type.high) == ((18, 80), WIDEST)
    (day,) = ask("SELECT born, COUNT(*) FROM visits WHERE born = '2000-02-29' GROUP BY born").keys
    assert day.values == (date(2000, 2, 29),)
    (note,) = ask("SELECT note, COUNT(*) FROM visits JOIN wards ON note = wards.ward GROUP BY note").keys
    assert note.values == ("A", "B", "C")
    (kept,) = ask("SELECT note, COUNT(*) FROM visits LEFT JOIN wards ON note = wards.ward GROUP BY note").keys
    assert kept.values is None
    inner = "SELECT note, COUNT(*) FROM (SELECT note FROM visits WHERE note IN ('x')) AS t GROUP BY note"
    assert ask(inner).keys[0].values == ("x",)


# --- aggregates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("COUNT(*)", "count", "count"),
        ("COUNT(1)", "count", "count"),
        ("COUNT(note)", "count_of", "count_note"),
        ("COUNT(age)", "count_of", "count_age"),
        ("COUNT(DISTINCT patient_id)", "units", "count_patient_id"),
        ("COUNT(DISTINCT visits.patient_id)", "units", "count_patient_id"),
        ("COUNT_IF(days > 3)", "count_of", "count_days_3"),
        ("SUM(days)", "sum", "sum_days"),
        ("AVG(CLAMP(weight, 0, 99))", "mean", "avg_weight"),
        ("MEAN(days)", "mean", "avg_days"),
        ("VAR(days)", "variance", "var_days"),
        ("VARIANCE(days)", "variance", "var_days"),
        ("VAR_POP(days)", "variance", "var_days"),
        ("STDDEV(days)", "stddev", "stddev_days"),
        ("STDDEV_POP(days)", "stddev", "stddev_days"),
        ("MEDIAN(days)", "quantile", "median_days"),
        ("QUANTILE(days, 0.9)", "quantile", "q90_days"),
        ("QUANTILE_CONT(days, 0.999)", "quantile", "q99_9_days"),
        ("PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY days)", "quantile", "q25_days"),
        ("MIN(days)", "min", "min_days"),
        ("MAX(days)", "max", "max_days"),
        ("MODE(ward)", "mode", "mode_ward"),
        ("MODE() WITHIN GROUP (ORDER BY ward)", "mode", "mode_ward"),
        ("SUM(days * 2)", "sum", "sum_days_2"),
    ],
)
def test_each_aggregate_has_its_kind_and_its_name(text, kind, name):
    found = only_aggregate(text)
    assert (found.kind, found.name) == (kind, name)


def test_quantiles_have_an_exact_rank_and_modes_their_candidates():
    assert only_aggregate("QUANTILE(days, .05)").fraction == (1, 20)
    assert only_aggregate("MEDIAN(days)").fraction == (1, 2)
    assert only_aggregate("MODE(ward)").values == ("A", "B", "C")
    assert only_aggregate("MODE(MONTH(day))").values == tuple(range(1, 13))


def test_a_filter_makes_the_rest_null():
    found = only_aggregate("COUNT(*) FILTER (WHERE days > 3)")
    assert (found.kind, found.of.type.bounds, found.of.type.null) == ("count_of", (1, 1), True)
    found = only_aggregate("SUM(days) FILTER (WHERE ward = 'A')")
    assert (found.kind, found.of.type.bounds, found.of.type.null) == ("sum", (0, 60), True)
    assert only_aggregate("MEDIAN(days) FILTER (WHERE urgent)").fraction == (1, 2)


def test_the_same_aggregate_is_released_once():
    question = ask(
        "SELECT COUNT(*) AS n, SUM(days) / COUNT(*) AS mean, count(*) * 2 AS twice, COUNT(*) AS again "
        "FROM visits HAVING COUNT(*) > 5 ORDER BY SUM(DAYS)"
    )
    assert [one.name for one in question.aggregates] == ["n", "sum_days"]
    assert [output.name for output in question.outputs] == ["n", "mean", "twice", "again"]
    assert question.outputs[3].of == ReleasedColumn("n")


def test_names_of_columns_and_of_their_ends_are_never_given_twice():
    question = ask("SELECT COUNT(*) AS n, SUM(days) AS n_lo, AVG(days) AS n, ward FROM visits GROUP BY ward")
    names = [output.name for output in question.outputs]
    ends = [f"{name}{end}" for name in names for end in ("", "_lo", "_hi")]
    assert names[0] == "n"
    assert len(set(ends)) == len(ends)
    assert (
        len({*names, *(one.name for one in question.aggregates), *(key.name for key in question.keys)}) == 4
    )


# --- released numbers ---------------------------------------------------------------------------------


def test_arithmetic_around_aggregates_is_done_afterwards():
    question = ask("SELECT ward, ROUND(100 * SUM(days) / COUNT(*), 1) AS pct FROM visits GROUP BY ward")
    ratio = ReleasedOperation(
        "/", (ReleasedOperation("*", (PublicValue(100), ReleasedColumn("sum_days"))), ReleasedColumn("count"))
    )
    assert question.outputs[1].of == ReleasedOperation("round", (ratio, PublicValue(1)))
    assert [one.name for one in question.aggregates] == ["sum_days", "count"]


def test_having_order_and_limit_are_about_released_columns():
    question = ask(
        "SELECT ward AS w, COUNT(*) AS n, AVG(days) FROM visits GROUP BY ward "
        "HAVING n > 100 AND NOT w = 'A' AND SUM(days) BETWEEN 1 AND 2 AND ward IN ('B', 'C') "
        "ORDER BY n DESC, 3, w LIMIT 7"
    )
    assert question.limit == 7
    assert [(order.of, order.descending) for order in question.order] == [
        (ReleasedColumn("n"), True),
        (ReleasedColumn("avg_days"), False),
        (ReleasedColumn("w"), False),
    ]
    assert question.having.parts[0] == ReleasedOperation(">", (ReleasedColumn("n"), PublicValue(100)))
    assert question.having.parts[1] == ReleasedOperation(
        "not", (ReleasedOperation("=", (ReleasedColumn("w"), PublicValue("A"))),)
    )
    assert question.having.parts[3].op == "or"
    assert [one.name for one in question.aggregates] == ["n", "avg_days", "sum_days"]


def test_aliases_are_names_in_having_and_order_by():
    question = ask(
        "SELECT days > 3 AS k, COUNT(*) AS n FROM visits GROUP BY days > 3 HAVING N > 5 AND k ORDER BY N"
    )
    assert question.having.parts == (
        ReleasedOperation(">", (ReleasedColumn("n"), PublicValue(5))),
        ReleasedColumn("k"),
    )
    shadow = ask("SELECT ward, COUNT(*) AS days FROM visits GROUP BY ward HAVING days > 5")
    assert shadow.having == ReleasedOperation(">", (ReleasedColumn("days"), PublicValue(5)))
    swapped = ask("SELECT COUNT(*) AS ward, ward FROM visits GROUP BY ward")
    assert [output.name for output in swapped.outputs] == ["ward_2", "ward"]
    assert swapped.outputs[1].of == ReleasedColumn(swapped.keys[0].name)


def test_other_functions_of_released_numbers():
    (output,) = ask(
        "SELECT GREATEST(ABS(-AVG(days)), CAST(COUNT(*) AS DOUBLE), 0.5) AS x FROM visits"
    ).outputs
    assert output.of.op == "greatest"
    assert output.of.parts[0] == ReleasedOperation(
        "abs", (ReleasedOperation("-", (PublicValue(0), ReleasedColumn("avg_days"))),)
    )
    assert output.of.parts[1:] == (ReleasedColumn("count"), PublicValue(0.5))
    dated = ask("SELECT day, COUNT(*) FROM visits GROUP BY day HAVING day > DATE '2024-06-01'")
    assert dated.having == ReleasedOperation(">", (ReleasedColumn("day"), PublicValue(date(2024, 6, 1))))
    keyed = ask("SELECT days + 1 AS next, COUNT(*) FROM visits GROUP BY days")
    assert keyed.outputs[0].of == ReleasedOperation("+", (ReleasedColumn("days"), PublicValue(1)))


def test_a_group_need_not_be_shown():
    question = ask("SELECT COUNT(*) FROM visits GROUP BY ward ORDER BY ward")
    assert [output.name for output in question.outputs] == ["count"]
    assert question.keys[0].name == "ward"


# --- limits -------------------------------------------------------------------------------------------


def test_what_is_long_when_it_is_spelled_out_is_measured():
    read = e.Read("visits", "days", only_aggregate("SUM(days)").of.type)
    assert length(read) == 1
    assert length(e.Clamp(e.Clamp(read, 0, 9), 0, 9)) > 9
    assert length(e.Extreme("least", (read,) * 5)) > 3**4


def test_a_missing_bound_is_named_with_the_line_that_works():
    with pytest.raises(BadParameter) as caught:
        ask("SELECT ward, AVG(weight) FROM visits GROUP BY ward")
    assert caught.value.code == "DP104"
    assert "AVG(CLAMP(weight, 0, 500))" in caught.value.fix
    assert only_aggregate("AVG(CLAMP(weight, 0, 500))").of.type.bounds == (0, 500)


def test_numbers_are_read_exactly():
    assert parse_statement("SELECT 0.1").select.expressions[0].this == "0.1"
    kind = only_aggregate("SUM(days * 0.1)").of.type
    assert 6 - Fraction(1, 10**5) < kind.bounds[1] <= 6
