# SPDX-License-Identifier: Apache-2.0
"""Questions in SQL, as people write them who have asked databases before."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Asked
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

COUNT = "SELECT COUNT(*) FROM visits"
BY_WARD = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
LOOKED_UP = "FROM visits JOIN wards ON visits.ward = wards.ward"
JOINED = "JOIN wards ON visits.ward = wards.ward"
PEOPLE = "SELECT COUNT(DISTINCT patient_id) FROM visits"


@pytest.fixture
def asked(two_tables):
    return Asked(data=two_tables)


@mistakes(
    Mistake("SELECT * FROM visits", "DP702", COUNT),
    Mistake("SELECT ward FROM visits", "DP706", BY_WARD),
    Mistake("SELECT ward, COUNT(*) FROM visits", "DP706", BY_WARD),
    Mistake(
        "SELECT ward, days, COUNT(*) FROM visits GROUP BY ward",
        "DP706",
        "SELECT ward, days, COUNT(*) FROM visits GROUP BY ward, days",
    ),
    Mistake("SELECT DISTINCT ward FROM visits", "DP702", BY_WARD),
    Mistake("SELECT ward FROM visits GROUP BY ward", "DP706", BY_WARD),
    Mistake("SELECT patient_id FROM visits", "DP706", "COUNT(DISTINCT patient_id)", PEOPLE),
    Mistake(
        "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id",
        "DP706",
        "COUNT(DISTINCT patient_id)",
        PEOPLE,
    ),
    Mistake(
        f"{COUNT} WHERE patient_id = 7", "DP706", "leave patient_id out", left_out=" WHERE patient_id = 7"
    ),
    Mistake(
        "SELECT COUNT(DISTINCT ward, days) FROM visits",
        "DP706",
        "COUNT(DISTINCT ward)",
        "SELECT COUNT(DISTINCT ward) FROM visits",
    ),
    Mistake(
        "SELECT CORR(days) FROM visits",
        "DP706",
        "CORR(cost, days)",
        "SELECT CORR(cost, days) FROM visits",
    ),
    Mistake(
        "SELECT QUANTILE_CONT(days, [0.5, 0.5]) FROM visits",
        "DP706",
        "QUANTILE_CONT(days, [0.25, 0.5, 0.75])",
        "SELECT QUANTILE_CONT(days, [0.25, 0.5, 0.75]) FROM visits",
    ),
    Mistake(
        "SELECT APPROX_TOP_K(ward) FROM visits",
        "DP706",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2 DESC LIMIT 3",
    ),
    Mistake(
        "SELECT COUNT(*), APPROX_TOP_K(ward, 3) FROM visits",
        "DP706",
        "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 2 DESC LIMIT 3",
    ),
    Mistake("SELECT SUM(DISTINCT days) FROM visits", "DP706", "leave DISTINCT out", left_out="DISTINCT "),
    Mistake(
        "SELECT cost, COUNT(*) FROM visits GROUP BY cost",
        "DP704",
        "GROUP BY BUCKET(cost, 0, 10, 20, 50)",
        "SELECT COUNT(*) FROM visits GROUP BY BUCKET(cost, 0, 10, 20, 50)",
    ),
    Mistake(
        "SELECT AVG(name) FROM visits",
        "DP705",
        "CASE WHEN ward = 'A' THEN 1 ELSE 0 END",
        "SELECT AVG(CASE WHEN ward = 'A' THEN 1 ELSE 0 END) FROM visits",
    ),
    Mistake(
        "SELECT AVG(weight) FROM visits",
        "DP104",
        "AVG(CLAMP(weight, 0, 500))",
        "SELECT AVG(CLAMP(weight, 0, 500)) FROM visits",
    ),
    Mistake(
        "SELECT AVG(CLAMP(days, 60, 0)) FROM visits",
        "DP705",
        "CLAMP(days, 0, 60)",
        "SELECT AVG(CLAMP(days, 0, 60)) FROM visits",
    ),
    Mistake(
        "SELECT AVG(CLAMP(days)) FROM visits",
        "DP702",
        "CLAMP(days, 0, 60)",
        "SELECT AVG(CLAMP(days, 0, 60)) FROM visits",
    ),
    Mistake("SELECT AVG(dais) FROM visits", "DP701", "days", "SELECT AVG(days) FROM visits"),
    Mistake("SELECT COUNT(*) FROM visit", "DP701", "visits", COUNT),
    Mistake("SELECT AVG(visit.days) FROM visits", "DP701", "visits", "SELECT AVG(visits.days) FROM visits"),
    Mistake("SELEC COUNT(*) FROM visits", "DP702", COUNT),
    Mistake(
        "SELECT ward, COUNT(* FROM visits WHERE days > 2 GROUP BY ward",
        "DP702",
        "SELECT ward, COUNT(*) AS n FROM visits WHERE days > 2 GROUP BY ward",
    ),
    Mistake("SELECT COUNT(*)", "DP702", "FROM visits", COUNT),
    Mistake("how many visits are there?", "DP702", COUNT),
    Mistake(f"{COUNT}; DROP TABLE visits", "DP702", "one by one", left_out="; DROP TABLE visits"),
    Mistake("DELETE FROM visits", "DP702", COUNT),
    Mistake("DESCRIBE visit", "DP702", "DESCRIBE visits", "DESCRIBE visits"),
    Mistake("SELECT AVERAGE(days) FROM visits", "DP702", "AVG", "SELECT AVG(days) FROM visits"),
    Mistake("SELECT STDEV(days) FROM visits", "DP702", "STDDEV", "SELECT STDDEV(days) FROM visits"),
    Mistake(
        "SELECT QUANTILE(days, 90) FROM visits",
        "DP706",
        "QUANTILE(days, 0.9)",
        "SELECT QUANTILE(days, 0.9) FROM visits",
    ),
    Mistake("SELECT STRING_AGG(name, ',') FROM visits", "DP706", "COUNT(*)", COUNT),
    Mistake(
        "SELECT AVG(SIN(days)) FROM visits",
        "DP705",
        "BUCKET(days, 1, 10, 100, 1000)",
        "SELECT BUCKET(days, 1, 10, 100, 1000), COUNT(*) FROM visits GROUP BY 1",
    ),
    Mistake(
        "SELECT AVG(LN(cost)) FROM visits",
        "DP705",
        "LN(CLAMP(cost, 1, 1000))",
        "SELECT AVG(LN(CLAMP(cost, 1, 1000))) FROM visits",
    ),
    Mistake(
        "SELECT AVG(days * LN(0)) FROM visits",
        "DP705",
        "LN(days + 1)",
        "SELECT AVG(days * LN(days + 1)) FROM visits",
    ),
    Mistake(
        "SELECT AVG(EXP(days)) FROM visits",
        "DP705",
        "EXP(CLAMP(days, 1, 10))",
        "SELECT AVG(EXP(CLAMP(days, 1, 10))) FROM visits",
    ),
    Mistake(
        "SELECT AVG(LN(days * 10000000)) FROM visits",
        "DP705",
        "LN(CLAMP(days * 10000000, 1, 1000000))",
        "SELECT AVG(LN(CLAMP(days * 10000000, 1, 1000000))) FROM visits",
    ),
    Mistake(
        "SELECT AVG(POWER(days, 0)) FROM visits",
        "DP705",
        "POWER(days, 2)",
        "SELECT AVG(POWER(days, 2)) FROM visits",
    ),
    Mistake(
        f"{COUNT} WHERE REGEXP_MATCHES(ward, ward)",
        "DP705",
        "REGEXP_MATCHES(ward, '^A')",
        f"{COUNT} WHERE REGEXP_MATCHES(ward, '^A')",
    ),
    Mistake(
        f"{COUNT} WHERE REGEXP_MATCHES(ward, 'A*')",
        "DP705",
        "REGEXP_MATCHES(ward, '^A[0-9]|^B')",
        f"{COUNT} WHERE REGEXP_MATCHES(ward, '^A[0-9]|^B')",
    ),
    Mistake(
        "SELECT SUM(days / cost) FROM visits",
        "DP705",
        "days / CLAMP(cost, 1, 1000)",
        "SELECT SUM(days / CLAMP(cost, 1, 1000)) FROM visits",
    ),
    Mistake(
        "SELECT BUCKET(days, 20, 10), COUNT(*) FROM visits GROUP BY 1",
        "DP705",
        "BUCKET(days, 10, 20)",
        "SELECT BUCKET(days, 10, 20), COUNT(*) FROM visits GROUP BY 1",
    ),
    Mistake(
        "SELECT ward, COUNT(*) FROM visits WHERE COUNT(*) > 100 GROUP BY ward",
        "DP706",
        "HAVING COUNT(*) > 100",
        f"{BY_WARD} HAVING COUNT(*) > 100",
    ),
    Mistake(f"{BY_WARD} HAVING n > 100", "DP701", "count", f"{BY_WARD} HAVING count > 100"),
    Mistake(
        f"{COUNT} ORDER BY days",
        "DP706",
        "SELECT days, COUNT(*) FROM visits GROUP BY days",
        "SELECT days, COUNT(*) FROM visits GROUP BY days ORDER BY days",
    ),
    Mistake(f"{BY_WARD} LIMIT 1.5", "DP705", "LIMIT 1", f"{BY_WARD} LIMIT 1"),
    Mistake(
        "SELECT ward, COUNT(*) FROM visits GROUP BY 3",
        "DP705",
        "GROUP BY 1",
        "SELECT ward, COUNT(*) FROM visits GROUP BY 1",
    ),
    Mistake(f'{COUNT} WHERE ward = "A"', "DP701", "'A'", f"{COUNT} WHERE ward = 'A'"),
    Mistake(f"{COUNT} WHERE days = NULL", "DP705", "days IS NULL", f"{COUNT} WHERE days IS NULL"),
    Mistake(f"{COUNT} WHERE ward = 3", "DP705", "ward = 'A'", f"{COUNT} WHERE ward = 'A'"),
    Mistake(f"{COUNT} WHERE days", "DP705", "days > 3", f"{COUNT} WHERE days > 3"),
    Mistake(
        f"{COUNT} WHERE INITCAP(ward) = 'A'", "DP705", "UPPER(ward) = 'A'", f"{COUNT} WHERE UPPER(ward) = 'A'"
    ),
    Mistake(
        f"{COUNT} WHERE RIGHT(ward, 1) = 'A'",
        "DP705",
        "SUBSTR(ward, 1, 2)",
        f"{COUNT} WHERE SUBSTR(ward, 1, 2) = 'A'",
    ),
    Mistake(f"{COUNT} WHERE UPPER(days) = 'A'", "DP705", "days > 3", f"{COUNT} WHERE days > 3"),
    Mistake(
        f"{COUNT} WHERE came_on > 2026-01-01",
        "DP705",
        "came_on > DATE '2026-01-01'",
        f"{COUNT} WHERE came_on > DATE '2026-01-01'",
    ),
    Mistake(
        f"{COUNT} WHERE came_on < CURRENT_DATE",
        "DP702",
        ">= DATE '2026-01-01'",
        f"{COUNT} WHERE came_on >= DATE '2026-01-01'",
    ),
    Mistake(
        "SELECT AVG(days) FROM visits WHERE days > (SELECT AVG(days) FROM visits)",
        "DP702",
        "SELECT AVG(days) FROM visits",
        "SELECT AVG(days) FROM visits\nSELECT AVG(days) FROM visits WHERE days > 31",
    ),
    Mistake(
        f"{COUNT} WHERE ward IN (SELECT ward FROM wards)",
        "DP702",
        "ward IN ('A', 'B')",
        f"{COUNT} WHERE ward IN ('A', 'B')",
    ),
    Mistake(
        "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t",
        "DP702",
        "GROUP BY patient_id, ward",
        "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ward) AS t",
    ),
    Mistake(
        "SELECT RANK() OVER (ORDER BY days) FROM visits",
        "DP702",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY days) AS n FROM visits) AS v "
        "WHERE n = 1",
    ),
    Mistake(
        f"{BY_WARD.replace('COUNT(*)', 'COUNT(*), NTILE(4) OVER (ORDER BY COUNT(*))')}",
        "DP702",
        "SUM(COUNT(*)) OVER ()",
        f"{BY_WARD.replace('COUNT(*)', 'COUNT(*), SUM(COUNT(*)) OVER ()')}",
    ),
    Mistake(
        f"{BY_WARD.replace('COUNT(*)', 'COUNT(*), RANK() OVER ()')}",
        "DP705",
        "RANK() OVER (ORDER BY COUNT(*) DESC)",
        f"{BY_WARD.replace('COUNT(*)', 'COUNT(*), RANK() OVER (ORDER BY COUNT(*) DESC)')}",
    ),
    Mistake(
        f"{BY_WARD.replace('COUNT(*)', 'SUM(COUNT(*)) OVER (ORDER BY ward RANGE 1 PRECEDING)')}",
        "DP702",
        "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW",
        BY_WARD.replace(
            "COUNT(*)", "SUM(COUNT(*)) OVER (ORDER BY ward ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)"
        ),
    ),
    Mistake(
        f"{COUNT} UNION SELECT COUNT(*) FROM patients",
        "DP702",
        COUNT,
        f"{COUNT}\nSELECT COUNT(*) FROM patients",
    ),
    Mistake(
        f"{COUNT} JOIN patients ON visits.ward = patients.ward",
        "DP703",
        "JOIN patients USING (patient_id)",
        f"{COUNT} JOIN patients USING (patient_id)",
    ),
    Mistake(f"{COUNT}, wards", "DP703", JOINED, f"{COUNT} {JOINED}"),
    Mistake(f"{COUNT} CROSS JOIN wards", "DP703", JOINED, f"{COUNT} {JOINED}"),
    Mistake(
        "SELECT SUM(nothing) FROM wards", "DP702", "SELECT COUNT(*) FROM wards", "SELECT COUNT(*) FROM wards"
    ),
    Mistake(
        "SELECT COUNT(*) FROM (SELECT * FROM wards) AS w JOIN visits USING (ward)",
        "DP703",
        "FROM visits LEFT JOIN wards ON ",
        f"{COUNT} LEFT JOIN wards ON visits.ward = wards.ward",
    ),
    Mistake(
        "SELECT ward, COUNT(*) FROM visits JOIN patients USING (patient_id) GROUP BY ward",
        "DP701",
        "visits.ward",
        "SELECT visits.ward, COUNT(*) FROM visits JOIN patients USING (patient_id) GROUP BY visits.ward",
    ),
    Mistake("SELECT COUNT(*) FROM 'visits.parquet'", "DP701", "visits", COUNT),
    Mistake("SELECT COUNT(*) FROM read_parquet('visits.parquet')", "DP702", "FROM visits", COUNT),
    Mistake(f"{COUNT} TABLESAMPLE 10 PERCENT", "DP702", "leave it out", left_out=" TABLESAMPLE 10 PERCENT"),
    Mistake(f"{COUNT} WITH (eps = 0.1)", "DP702", f"{COUNT} WITH (epsilon = 0.1)"),
)
def test_asking_in_sql(mistake, asked):
    error = check_mistake(mistake, asked)
    assert error.what


def inside(query: str) -> str:
    """A count of the rows of a query."""
    return f"SELECT COUNT(*) FROM ({query}) AS v"


def of_rows(value: str, tail: str = "") -> str:
    """A query with a value for each row."""
    return inside(f"SELECT {value} AS x FROM visits{tail}")


@mistakes(
    Mistake(
        "SELECT AVG(m) FROM (SELECT patient_id, MIN(weight) AS m FROM visits GROUP BY patient_id) AS v",
        "DP104",
        "AVG(CLAMP(m, 0, 100))",
        "SELECT AVG(CLAMP(m, 0, 100)) FROM (SELECT patient_id, MIN(weight) AS m FROM visits GROUP BY patient_id) AS v",
    ),
    Mistake(
        f"{COUNT} RIGHT JOIN wards ON visits.ward = wards.ward",
        "DP703",
        LOOKED_UP,
        f"SELECT COUNT(*) {LOOKED_UP}",
    ),
    Mistake(
        "SELECT COUNT(*) FROM wards LEFT JOIN visits ON visits.ward = wards.ward",
        "DP703",
        "FROM visits LEFT JOIN wards ON visits.ward = wards.ward",
        f"{COUNT} LEFT JOIN wards ON visits.ward = wards.ward",
    ),
    Mistake(
        f"{COUNT} FULL JOIN patients ON visits.patient_id = patients.patient_id AND days > 3",
        "DP703",
        "FULL JOIN patients USING (patient_id)",
        f"{COUNT} FULL JOIN patients USING (patient_id)",
    ),
    Mistake(
        "SELECT COUNT(DISTINCT p.patient_id) FROM visits AS v LEFT JOIN patients AS p ON v.patient_id = p.patient_id",
        "DP703",
        "v.patient_id",
        "SELECT COUNT(DISTINCT v.patient_id) FROM visits AS v LEFT JOIN patients AS p ON v.patient_id = p.patient_id",
    ),
    Mistake(
        f"{COUNT} WHERE patient_id IN (SELECT patient_id, ward FROM patients)",
        "DP702",
        "patient_id IN (SELECT patient_id FROM patients)",
        f"{COUNT} WHERE patient_id IN (SELECT patient_id FROM patients)",
    ),
    Mistake(
        f"{COUNT} WHERE days > 3 OR ward IN (SELECT ward FROM wards)",
        "DP702",
        "ward IN ('A', 'B')",
        f"{COUNT} WHERE days > 3 OR ward IN ('A', 'B')",
    ),
    Mistake(
        inside("SELECT patient_id FROM visits GROUP BY COUNT(*), patient_id"),
        "DP706",
        "group by a column",
        left_out="COUNT(*), ",
    ),
    Mistake(
        inside("SELECT patient_id FROM visits GROUP BY patient_id, cost"),
        "DP704",
        "FLOOR(cost)",
        inside("SELECT patient_id FROM visits GROUP BY patient_id, FLOOR(cost)"),
    ),
    Mistake(
        inside("SELECT patient_id, days AS x FROM visits GROUP BY patient_id"),
        "DP706",
        "MIN(days)",
        inside("SELECT patient_id, MIN(days) AS x FROM visits GROUP BY patient_id"),
    ),
    Mistake(
        inside("SELECT DISTINCT patient_id FROM visits GROUP BY patient_id"),
        "DP702",
        "leave DISTINCT out",
        left_out="DISTINCT ",
    ),
    Mistake(
        inside("SELECT patient_id, MEDIAN(days) AS x FROM visits GROUP BY patient_id"),
        "DP706",
        "MAX(days)",
        inside("SELECT patient_id, MAX(days) AS x FROM visits GROUP BY patient_id"),
    ),
    Mistake(
        inside("SELECT patient_id, MIN(name) AS x FROM visits GROUP BY patient_id"),
        "DP706",
        "COUNT(DISTINCT name)",
        inside("SELECT patient_id, COUNT(DISTINCT name) AS x FROM visits GROUP BY patient_id"),
    ),
    Mistake(
        inside("SELECT days FROM visits ORDER BY came_on LIMIT 10"),
        "DP702",
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_on) AS n",
        inside("SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_on) AS n FROM visits")
        + " WHERE n <= 10",
    ),
    Mistake(
        inside("SELECT days FROM visits UNION ALL SELECT ward FROM visits"),
        "DP702",
        "leave one part out",
        left_out=" UNION ALL SELECT ward FROM visits",
    ),
    Mistake(
        inside("SELECT days, ward FROM visits UNION ALL SELECT days FROM visits"),
        "DP702",
        "leave out ward",
        left_out=", ward",
    ),
    Mistake(
        of_rows("RANK() OVER (PARTITION BY patient_id ORDER BY name)"),
        "DP702",
        "ORDER BY came_on",
        of_rows("RANK() OVER (PARTITION BY patient_id ORDER BY came_on)"),
    ),
    Mistake(
        of_rows("RANK() OVER (ORDER BY came_on)"),
        "DP702",
        "PARTITION BY patient_id",
        of_rows("RANK() OVER (PARTITION BY patient_id ORDER BY came_on)"),
    ),
    Mistake(
        of_rows("RANK() OVER w"),
        "DP701",
        "WINDOW w AS (PARTITION BY patient_id ORDER BY came_on)",
        of_rows("RANK() OVER w", " WINDOW w AS (PARTITION BY patient_id ORDER BY came_on)"),
    ),
    Mistake(
        of_rows("RANK() OVER (PARTITION BY patient_id, cost ORDER BY came_on)"),
        "DP702",
        "FLOOR(cost)",
        of_rows("RANK() OVER (PARTITION BY patient_id, FLOOR(cost) ORDER BY came_on)"),
    ),
    Mistake(
        of_rows(
            "SUM(days) OVER (PARTITION BY patient_id ORDER BY came_on ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
        ),
        "DP702",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        of_rows(
            "SUM(days) OVER (PARTITION BY patient_id ORDER BY came_on ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        ),
    ),
    Mistake(
        of_rows("LAG(days) OVER (PARTITION BY patient_id)"),
        "DP702",
        "LAG(days) OVER (PARTITION BY patient_id ORDER BY came_on)",
        of_rows("LAG(days) OVER (PARTITION BY patient_id ORDER BY came_on)"),
    ),
    Mistake(
        of_rows("NTILE(4) OVER (PARTITION BY patient_id ORDER BY came_on)"),
        "DP702",
        "ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_on)",
        of_rows("ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY came_on)"),
    ),
)
def test_asking_about_rows_of_one_person(mistake, asked):
    error = check_mistake(mistake, asked)
    assert error.what
