# SPDX-License-Identifier: Apache-2.0
"""What is refused: each with its code, before anything is read, and with a line that would work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from discreet.errors import CODES, BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.engine import ROW
from discreet.tables.ask.sql import parse
from discreet.tables.data.dataset import Column, Each, Table
from tests.tables.world import world

WORLD = world()

REFUSED = {
    # names
    "SELECT AVG(basket) FROM visits": ("DP701", "no column 'basket'"),
    "SELECT AVG(dasy) FROM visits": ("DP701", "day or days"),
    "SELECT COUNT(*) FROM visit": ("DP701", "use visits"),
    "SELECT AVG(x.days) FROM visits v": ("DP701", "use v"),
    "SELECT AVG(visits.days) FROM visits v": ("DP701", "use v"),
    "SELECT COUNT(region) FROM visits JOIN wards USING (ward) JOIN regions USING (region) GROUP BY days + kind": (
        "DP701",
        "no column 'kind'",
    ),
    "SELECT COUNT(wards.ward), COUNT(ward) FROM visits JOIN wards ON note = wards.ward": (
        "DP701",
        "several tables",
    ),
    "SELECT COUNT(*) FROM visits AS v JOIN wards AS v ON v.ward = v.ward": ("DP701", "two tables"),
    "SELECT COUNT(*) FROM main.visits": ("DP701", "schema"),
    "SELECT COUNT(main.visits.days) FROM visits": ("DP701", "schema"),
    "SELECT COUNT(x) FROM (SELECT days AS x, age AS x FROM visits) AS t": ("DP701", "two columns named"),
    "SELECT COUNT(days) FROM (SELECT days AS x FROM visits) AS t": ("DP701", "no column 'days'"),
    # statements
    "": ("DP702", "empty"),
    "DELETE FROM visits": ("DP702", "not a SELECT"),
    "FROM visits": ("DP702", "not a SELECT"),
    "EXPLAIN SELECT COUNT(*) FROM visits": ("DP702", "not a SELECT"),
    "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM labs": ("DP702", "several statements"),
    "SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM labs": ("DP702", "UNION"),
    "SELECT COUNT(*) FROM visits EXCEPT SELECT COUNT(*) FROM labs": ("DP702", "EXCEPT"),
    "SELECT COUNT(* FROM visits": ("DP702", "cannot be parsed"),
    "SELECT COUNT(*) FROM visits WHERE note = 'a": ("DP702", "never closed"),
    "SELECT 1": ("DP702", "no FROM"),
    "SELECT COUNT(*) FROM visits WHERE days > 1_000": ("DP702", "runs into a name"),
    "SELECT COUNT(*) FROM visits WITH (seed = 1)": ("DP702", "options"),
    "SELECT COUNT(*) FROM visits WITH (epsilon = 0.1, epsilon = 9)": ("DP702", "options"),
    "SELECT COUNT(*) FROM visits WITH (epsilon = days)": ("DP702", "options"),
    "SELECT COUNT(*) FROM visits WITH ()": ("DP702", "options"),
    "SELECT COUNT(*) FROM visits WITH (epsilon = 0.1,)": ("DP702", "options"),
    # parts of a SELECT
    "SELECT * FROM visits": ("DP702", "*"),
    "SELECT visits.* FROM visits": ("DP702", "*"),
    "SELECT COUNT(visits.*) FROM visits": ("DP701", "*"),
    "SELECT DISTINCT ward FROM visits": ("DP702", "DISTINCT"),
    "SELECT COUNT(*) FROM visits TABLESAMPLE (10 PERCENT)": ("DP702", "TABLESAMPLE"),
    "SELECT COUNT(*) FROM visits LIMIT 5 OFFSET 3": ("DP702", "OFFSET"),
    "SELECT COUNT(*) FROM visits FETCH FIRST 3 ROWS ONLY": ("DP702", "FETCH"),
    "SELECT COUNT(*) FROM visits LIMIT 10 PERCENT": ("DP702", "LIMIT"),
    "SELECT COUNT(*) FROM visits LIMIT days": ("DP705", "LIMIT"),
    "SELECT COUNT(*) FROM visits LIMIT -1": ("DP705", "LIMIT"),
    "SELECT COUNT(*) INTO x FROM visits": ("DP702", "INTO"),
    "SELECT COUNT(*) FROM visits FOR UPDATE": ("DP702", "FOR UPDATE"),
    "SELECT /*+ FAST */ COUNT(*) FROM visits": ("DP702", "hint"),
    "SELECT MEDIAN(days) FROM visits GROUP BY ROLLUP (ward)": ("DP706", "does not add up"),
    "SELECT COUNT(*) FROM visits GROUP BY MARGINALS(1)": ("DP704", "needs a number"),
    "SELECT patient_id, COUNT(*) FROM visits GROUP BY ALL": ("DP706", "COUNT(DISTINCT patient_id)"),
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY ward NULLS FIRST": ("DP702", "NULLS FIRST"),
    "SELECT COUNT(*) FROM visits WINDOW w AS (PARTITION BY ward)": ("DP702", "WINDOW"),
    "SELECT COUNT(*) FROM visits PIVOT (SUM(days) FOR ward IN ('A'))": ("DP702", "PIVOT"),
    "SELECT COUNT(*) FROM visits AS v(a, b)": ("DP702", "COLUMNS"),
    # queries inside queries
    "SELECT COUNT(*) FROM visits WHERE days > (SELECT AVG(days) FROM visits)": ("DP702", "inside a query"),
    "SELECT (SELECT MAX(days) FROM visits), COUNT(*) FROM visits": ("DP702", "inside a query"),
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM labs)": ("DP702", "EXISTS"),
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM labs)": ("DP702", "IN with a query"),
    "SELECT COUNT(*) FROM visits WHERE days > ANY (SELECT 1)": ("DP702", "ANY"),
    "SELECT SUM(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t": (
        "DP702",
        "rows of one unit",
    ),
    "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY days LIMIT 5) AS t": ("DP702", "cannot have"),
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits) AS t": ("DP702", "rows of one unit"),
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION SELECT ward FROM labs) AS t": ("DP702", "UNION"),
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT days FROM visits) AS t": (
        "DP702",
        "different types",
    ),
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT patient_id, ward FROM labs) AS t": (
        "DP702",
        "1 and 2 columns",
    ),
    "SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT days FROM visits) AS t": (
        "DP702",
        "the privacy unit in one part",
    ),
    "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM visits) AS t": ("DP702", "rows of one unit"),
    "SELECT SUM(n) FROM (SELECT patient_id, days AS n, COUNT(*) AS m FROM visits GROUP BY patient_id) AS t": (
        "DP706",
        "neither in GROUP BY",
    ),
    "SELECT SUM(n) FROM (SELECT patient_id, MEDIAN(days) AS n FROM visits GROUP BY patient_id) AS t": (
        "DP706",
        "not supported over",
    ),
    "SELECT COUNT(n) FROM (SELECT patient_id, MIN(note) AS n FROM visits GROUP BY patient_id) AS t": (
        "DP706",
        "orders texts",
    ),
    "SELECT COUNT(*) FROM (SELECT patient_id, cost FROM visits GROUP BY patient_id, cost) AS t": (
        "DP704",
        "real number",
    ),
    "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY COUNT(*)) AS t": (
        "DP706",
        "GROUP BY cannot",
    ),
    "SELECT SUM(n) FROM (SELECT DISTINCT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t": (
        "DP702",
        "stand together",
    ),
    "SELECT SUM(n) FROM (SELECT days AS n FROM visits HAVING days > 3) AS t": ("DP702", "not supported"),
    "SELECT SUM(n) FROM (SELECT LAG(days) OVER (PARTITION BY patient_id) AS n FROM visits) AS t": (
        "DP702",
        "needs ORDER BY",
    ),
    "SELECT SUM(n) FROM (SELECT NTILE(4) OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t": (
        "DP702",
        "window function",
    ),
    "SELECT SUM(n) FROM (SELECT RANK() OVER (PARTITION BY patient_id ORDER BY note) AS n FROM visits) AS t": (
        "DP702",
        "ordered by a text",
    ),
    "SELECT SUM(n) FROM (SELECT RANK() OVER (PARTITION BY patient_id, cost ORDER BY day) AS n FROM visits) AS t": (
        "DP702",
        "partitioned by a real",
    ),
    "SELECT SUM(n) FROM (SELECT SUM(days) OVER (PARTITION BY patient_id ORDER BY day ROWS 3 PRECEDING) AS n FROM visits) AS t": (
        "DP702",
        "frame",
    ),
    "SELECT SUM(n) FROM (SELECT SUM(days) OVER w AS n FROM visits) AS t": ("DP701", "no window"),
    "SELECT COUNT(*) FROM visits WHERE ward = 'A' OR EXISTS (SELECT * FROM labs)": ("DP702", "EXISTS inside"),
    "SELECT COUNT(*) FROM visits WHERE urgent OR patient_id IN (SELECT patient_id FROM labs)": (
        "DP702",
        "not supported here",
    ),
    "SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id, ward FROM labs)": (
        "DP702",
        "selects 2 columns",
    ),
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT * FROM labs l WHERE l.ward = v.ward)": (
        "DP702",
        "must compare the privacy unit",
    ),
    "SELECT COUNT(DISTINCT l.patient_id) FROM visits v LEFT JOIN labs l ON v.patient_id = l.patient_id": (
        "DP703",
        "can be missing",
    ),
    "SELECT COUNT(*) FROM visits v FULL JOIN labs l ON v.patient_id = l.patient_id AND l.value > 0": (
        "DP703",
        "only equalities",
    ),
    "SELECT SUM(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY days) AS n FROM visits) AS t": (
        "DP702",
        "window",
    ),
    "WITH RECURSIVE t AS (SELECT * FROM visits) SELECT COUNT(*) FROM t": ("DP702", "RECURSIVE"),
    "WITH t(a) AS (SELECT days FROM visits) SELECT COUNT(*) FROM t": ("DP702", "COLUMNS"),
    "SELECT COUNT(*) FROM visits JOIN (SELECT * FROM wards) AS w ON visits.ward = w.ward": (
        "DP703",
        "public table",
    ),
    "SELECT COUNT(*) FROM (SELECT days + 1 FROM visits) AS t": ("DP702", "needs a name"),
    "SELECT COUNT(*) FROM visits, LATERAL (SELECT 1) AS t": ("DP702", "LATERAL"),
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')": ("DP702", "in FROM"),
    "SELECT COUNT(*) FROM '/etc/passwd'": ("DP701", "no table"),
    "SELECT COUNT(*) FROM (VALUES (1)) AS t": ("DP702", ""),
    # windows, parameters, arrays
    "SELECT COUNT(*) OVER () FROM visits": ("DP702", "window"),
    "SELECT SUM(days) OVER (PARTITION BY patient_id) FROM visits": ("DP702", "window"),
    "SELECT COUNT(*) FROM visits WHERE days = ?": ("DP702", "parameter"),
    "SELECT COUNT(*) FROM visits WHERE days = :x": ("DP702", "parameter"),
    "SELECT COUNT(*) FROM visits WHERE days = @x": ("DP702", "parameter"),
    "SELECT COUNT(*) FROM visits WHERE days = $1": ("DP702", "parameter"),
    "SELECT ARRAY[1], COUNT(*) FROM visits": ("DP702", "array"),
    "SELECT COUNT(*) FROM visits WHERE (days, age) IN ((1, 2))": ("DP702", "tuple"),
    "SELECT COUNT(*) FROM visits WHERE days[1] = 2": ("DP702", ""),
    "SELECT COUNT(*) FROM visits WHERE note -> 'a' = 'b'": ("DP702", ""),
    # time and chance
    "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5": ("DP702", "RANDOM"),
    "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE": ("DP702", "current date"),
    "SELECT COUNT(*) FROM visits WHERE seen_at > CURRENT_TIMESTAMP": ("DP702", "current time"),
    "SELECT COUNT(*) FROM visits WHERE seen_at > NOW()": ("DP702", "NOW"),
    "SELECT COUNT(*) FROM visits WHERE INTERVAL '1' day > 3": ("DP702", "interval"),
    # functions
    "SELECT SUM(myudf(days)) FROM visits": ("DP702", "no function MYUDF"),
    "SELECT SUM(CLAM(days, 0, 1)) FROM visits": ("DP702", "use CLAMP"),
    "SELECT SUM(CLAMP(days, 0)) FROM visits": ("DP702", "2 arguments"),
    "SELECT SUM(pg_catalog.abs(days)) FROM visits": ("DP702", ""),
    "SELECT COUNT(*) FROM visits WHERE INITCAP(ward) = 'A'": ("DP705", "INITCAP"),
    "SELECT SUM(LN(cost)) FROM visits": ("DP705", "LN(CLAMP(cost"),
    "SELECT DATE_TRUNC('decade', day), COUNT(*) FROM visits GROUP BY 1": ("DP705", "DATE_TRUNC('month'"),
    "SELECT EXTRACT(epoch FROM day), COUNT(*) FROM visits GROUP BY 1": ("DP705", "EPOCH"),
    "SELECT TRUNC(day), COUNT(*) FROM visits GROUP BY 1": ("DP705", "DATE_TRUNC"),
    "SELECT DATE_PART(day, day), COUNT(*) FROM visits GROUP BY 1": ("DP702", "in quotes"),
    "SELECT SUM(HOUR(day)) FROM visits": ("DP705", "no hour"),
    "SELECT SUM(YEAR(days)) FROM visits": ("DP705", "a date is needed"),
    "SELECT SIN(COUNT(*)) FROM visits": ("DP702", "around an aggregate"),
    "SELECT CASE WHEN COUNT(*) > 3 THEN 1 END FROM visits": ("DP702", ""),
    "SELECT COUNT(*)::INTEGER FROM visits": ("DP702", "around an aggregate"),
    # joins
    "SELECT COUNT(*) FROM visits v JOIN visits w ON v.ward = w.ward": ("DP703", "joined on the unit"),
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.ward = l.ward": ("DP703", "joined on the unit"),
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.patient_id = l.patient_id OR TRUE": (
        "DP703",
        "joined on the unit",
    ),
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.patient_id + 0 = l.patient_id": (
        "DP703",
        "joined on the unit",
    ),
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.patient_id = v.patient_id": (
        "DP703",
        "joined on the unit",
    ),
    "SELECT COUNT(*) FROM visits v LEFT JOIN labs l ON v.ward = l.ward": ("DP703", "joined on the unit"),
    "SELECT COUNT(*) FROM visits RIGHT JOIN wards USING (ward)": ("DP703", "RIGHT"),
    "SELECT COUNT(*) FROM visits FULL JOIN wards USING (ward)": ("DP703", "FULL"),
    "SELECT COUNT(*) FROM visits CROSS JOIN wards": ("DP703", "CROSS"),
    "SELECT COUNT(*) FROM visits, wards": ("DP703", "join"),
    "SELECT COUNT(*) FROM visits NATURAL JOIN wards": ("DP703", "NATURAL"),
    "SELECT COUNT(*) FROM visits ANTI JOIN wards USING (ward)": ("DP703", "ANTI"),
    "SELECT COUNT(*) FROM visits SEMI JOIN wards USING (ward)": ("DP703", "SEMI"),
    "SELECT COUNT(*) FROM visits LEFT JOIN wards ON visits.ward = wards.ward AND beds > 3": (
        "DP703",
        "nothing else",
    ),
    "SELECT COUNT(*) FROM visits JOIN wards ON beds > days": ("DP703", "equal"),
    "SELECT COUNT(*) FROM visits JOIN wards ON TRUE": ("DP703", "equal"),
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.cost = wards.beds": ("DP703", "real numbers"),
    "SELECT COUNT(*) FROM visits JOIN wards ON visits.days = wards.ward": ("DP703", "different types"),
    "SELECT COUNT(*) FROM wards": ("DP703", "public"),
    "SELECT COUNT(*) FROM wards LEFT JOIN visits USING (ward)": ("DP703", "public"),
    "SELECT COUNT(*) FROM wards JOIN regions USING (region)": ("DP703", "public"),
    # keys
    "SELECT cost, COUNT(*) FROM visits GROUP BY cost": ("DP704", "BUCKET(cost"),
    "SELECT age, COUNT(*) FROM visits GROUP BY age": ("DP704", "BUCKET(age"),
    "SELECT days / 7, COUNT(*) FROM visits GROUP BY 1": ("DP704", "real number"),
    "SELECT COUNT(*) FROM visits GROUP BY 'a'": ("DP704", "same value in every row"),
    "SELECT COUNT(*) FROM visits GROUP BY 2": ("DP705", "position"),
    "SELECT zip, MONTH(day), days, day, COUNT(*) FROM visits WHERE zip IN (1, 2, 3) GROUP BY 1, 2, 3, 4": (
        "DP704",
        "more than 100000 combinations",
    ),
    # expressions
    "SELECT COUNT(*) FROM visits WHERE ward < 'B'": ("DP705", "only with = and <>"),
    "SELECT COUNT(*) FROM visits WHERE ward = 3": ("DP705", "different types"),
    "SELECT COUNT(*) FROM visits WHERE days = '3'": ("DP705", "different types"),
    "SELECT COUNT(*) FROM visits WHERE days = NULL": ("DP705", "IS NULL"),
    "SELECT COUNT(*) FROM visits WHERE days IN (1, NULL)": ("DP705", "list"),
    "SELECT COUNT(*) FROM visits WHERE days IN (1, 'a')": ("DP705", "list"),
    "SELECT COUNT(*) FROM visits WHERE days IN (age)": ("DP104", "bounds"),
    "SELECT COUNT(*) FROM visits WHERE ward IN (note)": ("DP705", "list"),
    "SELECT COUNT(*) FROM visits WHERE days": ("DP705", "condition"),
    "SELECT COUNT(*) FROM visits WHERE NULL": ("DP705", "condition"),
    "SELECT COUNT(*) FROM visits WHERE days AND urgent": ("DP705", "condition"),
    "SELECT COUNT(*) FROM visits WHERE note ILIKE ward": ("DP705", "literal text"),
    "SELECT COUNT(*) FROM visits WHERE days ILIKE 'a'": ("DP705", "text"),
    "SELECT COUNT(*) FROM visits WHERE STARTS_WITH(note, ward)": ("DP705", "literal text"),
    "SELECT COUNT(*) FROM visits WHERE ENDS_WITH(note, '%')": ("DP705", "cannot contain"),
    "SELECT COUNT(*) FROM visits WHERE CONTAINS(note, 'a\\b')": ("DP705", "cannot contain"),
    "SELECT COUNT(*) FROM visits WHERE CONTAINS(days, 'a')": ("DP705", "text"),
    "SELECT COUNT(*) FROM visits WHERE CONCAT(note, days) = 'a'": ("DP705", "text"),
    "SELECT SUM(LENGTH(note) - 1) FROM visits": ("DP104", "any length"),
    "SELECT COUNT(*) FROM visits GROUP BY patient_id IS NULL": ("DP704", "same value"),
    "SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT DISTINCT patient_id FROM labs) l ON v.patient_id = l.patient_id "
    "WHERE l.patient_id IS NULL": ("DP706", "compared with NULL"),
    "SELECT COUNT(*) FROM visits WHERE note LIKE ward": ("DP705", "pattern"),
    "SELECT COUNT(*) FROM visits WHERE note LIKE 'a\\_'": ("DP705", "backslash"),
    "SELECT COUNT(*) FROM visits WHERE days LIKE 'a'": ("DP705", "needs a text"),
    "SELECT COUNT(*) FROM visits WHERE note LIKE 'a' ESCAPE 'b'": ("DP702", ""),
    "SELECT COUNT(*) FROM visits WHERE day > DATE '2026-13-45'": ("DP705", "calendar"),
    "SELECT COUNT(*) FROM visits WHERE day > 'soon'": ("DP705", "calendar"),
    "SELECT COUNT(*) FROM visits WHERE seen_at > 'soon'": ("DP705", "calendar"),
    "SELECT COUNT(*) FROM visits WHERE day > days": ("DP705", "different types"),
    "SELECT COUNT(*) FROM visits WHERE days > 1e99999": ("DP705", "too long"),
    "SELECT COUNT(*) FROM visits WHERE days > 1e30": ("DP705", "2^62"),
    "SELECT SUM(ward) FROM visits": ("DP705", "not a text"),
    "SELECT SUM(day) FROM visits": ("DP705", "not a date"),
    "SELECT SUM(NULL) FROM visits": ("DP705", "not NULL"),
    "SELECT SUM(urgent + 1) FROM visits": ("DP705", "CASE WHEN"),
    "SELECT SUM(CASE WHEN urgent THEN 1 ELSE 'a' END) FROM visits": ("DP705", "different types"),
    "SELECT SUM(CASE WHEN urgent THEN NULL END) FROM visits": ("DP705", "are NULL"),
    "SELECT SUM(COALESCE(days, ward)) FROM visits": ("DP705", "different types"),
    "SELECT SUM(cost / cost) FROM visits": ("DP705", "close to 0"),
    "SELECT SUM(days / 0) FROM visits": ("DP705", "divided by 0"),
    "SELECT SUM(days % age) FROM visits": ("DP104", "bounds"),
    "SELECT SUM(days % -7) FROM visits": ("DP705", "positive whole"),
    "SELECT SUM(cost % 7) FROM visits": ("DP705", "FLOOR"),
    "SELECT SUM(CLAMP(days, 60, 0)) FROM visits": ("DP705", "above the upper"),
    "SELECT SUM(CLAMP(days, 0, age)) FROM visits": ("DP705", "a literal number"),
    "SELECT COUNT(*) FROM visits GROUP BY BUCKET(days, 5, 3)": ("DP705", "must increase"),
    "SELECT COUNT(*) FROM visits GROUP BY BUCKET(days, 1, 1.5, 1.7)": ("DP705", "the grid of the column"),
    "SELECT COUNT(*) FROM visits GROUP BY WIDTH_BUCKET(days, 0, 10, 0)": ("DP705", "buckets"),
    "SELECT SUM(ROUND(cost, 2)) FROM visits": ("DP705", "whole numbers"),
    "SELECT SUM(POWER(days, days)) FROM visits": ("DP705", "exponent"),
    "SELECT SUM(POWER(days, 8) * POWER(days, 8)) FROM visits": ("DP705", "64-bit"),
    "SELECT SUM(CAST(cost AS INTEGER)) FROM visits": ("DP705", "FLOOR"),
    "SELECT SUM(CAST(note AS INTEGER)) FROM visits": ("DP705", "conversion"),
    "SELECT SUM(CAST(cost AS DECIMAL(5, 2))) FROM visits": ("DP702", ""),
    "SELECT CAST(seen_at AS TIME), COUNT(*) FROM visits GROUP BY 1": ("DP705", "conversion"),
    "SELECT SUM(blob) FROM visits": ("DP705", "blob"),
    "SELECT COUNT(*) FROM visits HAVING ward > 3": ("DP706", "neither a key"),
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING ward > 3": ("DP705", "different types"),
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING ward < 'B'": ("DP705", "wrong type"),
    "SELECT ward, ward + COUNT(*) FROM visits GROUP BY ward": ("DP705", "wrong type"),
    "SELECT COUNT(*) * 1e16 FROM visits": ("DP705", "10^15"),
    "SELECT COUNT(*) FROM visits HAVING COUNT(*)": ("DP705", "wrong type"),
    "SELECT COUNT(*), NULL FROM visits": ("DP702", ""),
    # aggregates
    "SELECT ward FROM visits": ("DP706", "GROUP BY ward"),
    "SELECT note FROM visits GROUP BY note": ("DP706", "no aggregate"),
    "SELECT YEAR(day), COUNT(*) FROM visits": ("DP706", "neither a key"),
    "SELECT COUNT(*) FROM visits ORDER BY days": ("DP706", "neither a key"),
    "SELECT 1 FROM visits": ("DP706", "no aggregate"),
    "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id": ("DP706", "the privacy unit"),
    "SELECT patient_id, COUNT(*) FROM visits": ("DP706", "the privacy unit"),
    "SELECT SUM(patient_id) FROM visits": ("DP706", "the privacy unit"),
    "SELECT COUNT(*) FROM visits WHERE patient_id = 7": ("DP706", "the privacy unit"),
    "SELECT COUNT(*) FROM visits GROUP BY BUCKET(patient_id, 1, 2)": ("DP706", "the privacy unit"),
    "SELECT COUNT(*) FROM (SELECT patient_id AS p FROM visits) AS t WHERE p = 3": (
        "DP706",
        "the privacy unit",
    ),
    "SELECT COUNT(*) FROM visits v JOIN labs l ON v.patient_id = l.patient_id AND v.patient_id = l.ward": (
        "DP706",
        "the privacy unit",
    ),
    "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3": ("DP706", "HAVING"),
    "SELECT COUNT(*) FROM visits GROUP BY COUNT(*)": ("DP706", "GROUP BY cannot use"),
    "SELECT COUNT(*) AS n FROM visits GROUP BY n": ("DP706", "GROUP BY cannot use"),
    "SELECT SUM(AVG(days)) FROM visits": ("DP706", "one row"),
    "SELECT COUNT(DISTINCT cost) FROM visits": ("DP704", "BUCKET(cost"),
    "SELECT COUNT(DISTINCT patient_id, ward) FROM visits": ("DP706", "several columns"),
    "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE urgent) FROM visits": ("DP706", "WHERE"),
    "SELECT SUM(DISTINCT days) FROM visits": ("DP706", "DISTINCT"),
    "SELECT SUM(days ORDER BY days) FROM visits": ("DP702", ""),
    "SELECT COUNT() FROM visits": ("DP706", "arguments"),
    "SELECT COUNT(NULL) FROM visits": ("DP706", "COUNT(NULL)"),
    "SELECT SUM(days, age) FROM visits": ("DP706", "arguments"),
    "SELECT SUM(days) WITHIN GROUP (ORDER BY days) FROM visits": ("DP706", "arguments"),
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY days, age) FROM visits": ("DP706", "several"),
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY days DESC) FROM visits": ("DP702", "DESC"),
    "SELECT QUANTILE(days, 0.5, 0.6) FROM visits": ("DP706", "arguments"),
    "SELECT QUANTILE(days, 1) FROM visits": ("DP706", "MAX("),
    "SELECT QUANTILE(days, 0.12345) FROM visits": ("DP706", "digits"),
    "SELECT QUANTILE(days, age) FROM visits": ("DP705", "a literal number"),
    "SELECT VAR_SAMP(weight) FROM visits": ("DP104", "CLAMP(weight"),
    "SELECT MODE(note) FROM visits": ("DP706", "public values"),
    "SELECT HISTOGRAM(days) FROM visits": ("DP706", "BUCKET"),
    "SELECT ARRAY_AGG(days) FROM visits": ("DP706", "values of single rows"),
    "SELECT CORR(days) FROM visits": ("DP706", "two columns"),
    "SELECT PRODUCT(days) FROM visits": ("DP706", "VAR_POP(days)"),
    "SELECT FIRST(days) FROM visits": ("DP706", "values of single rows"),
    "SELECT MIN(ward) FROM visits": ("DP705", "not a text"),
    "SELECT AVG(days) IGNORE NULLS FROM visits": ("DP702", ""),
    # bounds
    "SELECT AVG(weight) FROM visits": ("DP104", "AVG(CLAMP(weight, 0, 500))"),
    "SELECT SUM(age + 1) FROM visits": ("DP104", "SUM(CLAMP(age, 0, 500) + 1)"),
    "SELECT COUNT(*) FROM visits WHERE age * 2 > 3": ("DP104", "CLAMP(age"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_question_that_is_not_proved_is_refused_with_its_code(text):
    code, words = REFUSED[text]
    with pytest.raises((RefusedQuestion, BadParameter)) as caught:
        parse(text, WORLD)
    assert caught.value.code == code, str(caught.value)
    assert words in str(caught.value)
    assert caught.value.spent == "nothing"
    assert all((caught.value.why, caught.value.fix, caught.value.code in CODES))


@pytest.mark.parametrize("text", [None, 3, b"SELECT 1", ["SELECT 1"], True])
def test_only_a_text_is_a_question(text):
    with pytest.raises(BadParameter) as caught:
        parse(text, WORLD)
    assert caught.value.code == "DP104"


WORSE = {
    "zero": "SELECT COUNT(*) FROM visits\0",
    "escape": "SELECT COUNT(*) FROM visits \x1b[31m",
    "right to left": "SELECT COUNT(*) FROM visits WHERE note = '\u202e'",
    "no width": "SELECT COUNT(*) FROM vis\u200bits",
    "surrogate": "SELECT COUNT(*) FROM visits WHERE note = '\ud800'",
    "megabyte": "SELECT COUNT(*) FROM visits WHERE note = '" + "a" * 10**6 + "'",
    "words": "SELECT COUNT(*) FROM visits WHERE days IN (" + ", ".join(["1"] * 6_000) + ")",
    "brackets": "SELECT COUNT(*) FROM visits WHERE " + "(" * 5_000 + "TRUE" + ")" * 5_000,
    "few brackets": "SELECT COUNT(*) FROM visits WHERE " + "(" * 41 + "urgent" + ")" * 41,
    "nots": "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 4_000 + "urgent",
    "minuses": "SELECT SUM(" + "- " * 4_000 + "days) FROM visits",
    "sums": "SELECT SUM(" + "days + " * 3_000 + "days) FROM visits",
    "cases": "SELECT SUM(" + "CASE WHEN urgent THEN " * 60 + "1" + " END" * 60 + ") FROM visits",
    "outer sums": "SELECT " + "COUNT(*) + " * 2_000 + "1 FROM visits",
    "clamps": "SELECT SUM(" + "CLAMP(" * 12 + "days" + ", 0, 1)" * 12 + ") FROM visits",
    "quotients": "SELECT SUM(days / (days + 1) / (days + 1) / (days + 1)) FROM visits",
    "least": "SELECT SUM(LEAST(" + ", ".join(["days"] * 30) + ")) FROM visits",
    "edges": "SELECT COUNT(*) FROM visits GROUP BY BUCKET(zip, "
    + ", ".join(str(i * i) for i in range(999))
    + ") % 2, "
    + ", ".join(f"BUCKET(zip, {', '.join(str(i * i + j) for i in range(900))})" for j in range(4)),
    "queries": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 39 + "visits" + ") AS t" * 39,
}


@pytest.mark.parametrize("name", WORSE)
def test_what_would_wear_out_the_machine_is_refused_at_once(name):
    with pytest.raises(RefusedQuestion) as caught:
        parse(WORSE[name], WORLD)
    assert caught.value.code in {"DP702", "DP704", "DP705"}
    assert len(str(caught.value)) < 1_000


def test_where_every_row_is_protected_for_itself_there_is_no_unit_to_count_or_join():
    tables = {
        name: Table(name, {"x": Column("x", "integer", (0, 9)), "y": Column("y", "text")}, ROW)
        for name in ("a", "b")
    }
    rows = replace(WORLD, tables=tables, protect=Each(None))
    assert parse("SELECT COUNT(*), SUM(x) FROM a", rows).question.aggregates[1].kind == "sum"
    for text, code in [
        ("SELECT COUNT(*) FROM a JOIN b ON a.x = b.x", "DP703"),
        ("SELECT COUNT(*) FROM a JOIN b USING (x)", "DP703"),
    ]:
        with pytest.raises(DiscreetError) as caught:
            parse(text, rows)
        assert caught.value.code == code
        assert "\0" not in str(caught.value)


def test_a_refusal_never_counts_anything():
    """The engine of this world fails when it is asked to count; public values are all that it gives."""
    with pytest.raises(AssertionError):
        WORLD.engine.sums(None)
    with pytest.raises(AssertionError):
        WORLD.engine.values("visits", ("ward",))
    assert parse(
        "SELECT region, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY region", WORLD
    ).question
