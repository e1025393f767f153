# SPDX-License-Identifier: Apache-2.0
"""Questions at random: mostly of the language that is answered, now and then beside it."""

from __future__ import annotations

import random

NUMBERS = [
    "days",
    "cost",
    "zip",
    "CLAMP(weight, 0, 200)",
    "CLAMP(age, -5, 120)",
    "YEAR(day)",
    "HOUR(seen_at)",
]
RAW = ["weight", "age", "born", "blob", "patient_id", "nothing"]
TEXTS = ["ward", "note"]
LITERALS = ["0", "1", "2.5", "-3", "0.1", "1000", "7"]


class Grammar:
    """One question after another, the same for the same seed."""

    def __init__(self, seed: int, slips: float = 0.03) -> None:
        self.chance = random.Random(seed)
        self.slips = slips

    def one(self, *options):
        return self.chance.choice(options)

    def number(self, depth=3):
        if self.chance.random() < self.slips:
            return self.one(*RAW, *TEXTS, "NULL", "urgent", "RANDOM()", "(SELECT 1)")
        if depth == 0 or self.chance.random() < 0.3:
            return self.one(*NUMBERS, *LITERALS)
        a, b = (lambda: self.number(depth - 1)), (lambda: self.number(depth - 1))
        return self.one(
            lambda: f"({a()} {self.one('+', '-', '*')} {b()})",
            lambda: f"{a()} / ({self.one('days', 'zip')} + 1)",
            lambda: f"({a()}) / 4",
            lambda: f"{self.one('days', 'zip', 'FLOOR(cost)')} {self.one('%', 'DIV', '//')} 7",
            lambda: f"{self.one('LEAST', 'GREATEST')}({a()}, {b()})",
            lambda: f"ABS({a()})",
            lambda: f"CLAMP({a()}, -10, {self.one('10', '2.5')})",
            lambda: f"COALESCE({a()}, {b()})",
            lambda: f"NULLIF({a()}, {b()})",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {a()} ELSE {b()} END",
            lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {a()} END",
            lambda: f"{self.one('FLOOR', 'CEIL', 'ROUND')}({a()})",
            lambda: f"POWER({a()}, {self.one('2', '0.5')})",
            lambda: f"LN(CLAMP({a()}, 1, 9))",
            lambda: f"EXP(CLAMP({a()}, -1, {self.one('2', '3.5')}))",
            lambda: f"BUCKET({a()}, 0, 5, 9.5)",
            lambda: f"-({a()})",
            lambda: "(day - DATE '2024-03-01')",
        )()

    def condition(self, depth=2):
        if depth == 0 or self.chance.random() < 0.2:
            return self.one(
                "urgent",
                "age > 17",
                "weight <= 70.1",
                "ward = 'A'",
                "ward <> 'B'",
                "note IS NULL",
                "note LIKE 'a%'",
                "note ILIKE '%A'",
                "STARTS_WITH(note, 'a')",
                "CONTAINS(CONCAT(note, ward), 'A')",
                "ENDS_WITH(LOWER(note), 'b')",
                "patient_id IS NOT NULL",
                "REGEXP_MATCHES(note, '^a[b-x]?|%$')",
                "ward IN ('A', 'C')",
                "days NOT IN (1, 2)",
                "day >= '2024-06-01'",
                "born < DATE '2000-01-01'",
                "seen_at < TIMESTAMP '2025-01-01'",
                "TRUE",
            )
        return self.one(
            lambda: (
                f"{self.number(depth - 1)} {self.one('<', '<=', '=', '<>', '>', '>=')} {self.number(depth - 1)}"
            ),
            lambda: f"({self.condition(depth - 1)} {self.one('AND', 'OR')} {self.condition(depth - 1)})",
            lambda: f"NOT {self.condition(depth - 1)}",
            lambda: f"({self.condition(depth - 1)}) IS {self.one('TRUE', 'FALSE', 'NULL', 'NOT NULL')}",
            lambda: f"{self.number(depth - 1)} BETWEEN {self.one(*LITERALS)} AND {self.one(*LITERALS)}",
            lambda: f"{self.number(depth - 1)} IN (1, 2.5, 3)",
        )()

    def key(self):
        return self.one(
            "ward",
            "note",
            "urgent",
            "days",
            "zip",
            "MONTH(day)",
            "days % 3",
            "BUCKET(cost, 0, 100, 250)",
            "COALESCE(ward, 'none')",
            f"CASE WHEN {self.condition(1)} THEN 'yes' ELSE 'no' END",
            "region",
            "beds",
        )

    def aggregate(self):
        inner = self.number()
        plain = self.one(
            "COUNT(*)",
            "COUNT(note)",
            "COUNT(patient_id)",
            "COUNT(DISTINCT patient_id)",
            f"SUM({inner})",
            f"AVG({inner})",
            f"VAR({inner})",
            f"STDDEV({inner})",
            f"MEDIAN({inner})",
            f"QUANTILE({inner}, 0.9)",
            f"MIN({inner})",
            f"MAX({inner})",
            "MODE(ward)",
            f"COUNT(DISTINCT {self.one(*TEXTS, 'days', 'zip % 7')})",
            f"{self.one('CORR', 'COVAR_POP', 'COVAR_SAMP', 'REGR_SLOPE', 'REGR_R2')}({inner}, days)",
            f"{self.one('VAR_SAMP', 'STDDEV_SAMP')}({inner})",
            f"{self.one('BOOL_OR', 'BOOL_AND')}({self.condition(1)})"
            if self.chance.random() < self.slips
            else "COUNT(*)",
        )
        if self.chance.random() < 0.2 and "DISTINCT" not in plain:
            plain = f"{plain} FILTER (WHERE {self.condition(1)})"
        return self.one(plain, plain, f"{plain} * 2", f"ROUND({plain}, 1)", f"{plain} / COUNT(*)")

    def rows(self):
        return self.one(
            "visits",
            "visits AS v",
            "visits JOIN wards USING (ward)",
            "visits LEFT JOIN wards ON visits.ward = wards.ward",
            "wards JOIN visits ON note = wards.ward AND beds > 10",
            "visits JOIN labs USING (patient_id)",
            "visits LEFT JOIN labs ON visits.patient_id = labs.patient_id AND value > 0",
            "visits FULL JOIN labs USING (patient_id)",
            "visits ANTI JOIN labs USING (patient_id)",
            "visits LEFT JOIN (SELECT patient_id, COUNT(*) AS n, MAX(value) AS top FROM labs GROUP BY patient_id) AS g"
            " ON visits.patient_id = g.patient_id",
            "(SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY days) AS place,"
            " LAG(days) OVER (PARTITION BY patient_id ORDER BY day) AS before FROM visits) AS t",
            f"(SELECT * FROM visits UNION ALL SELECT * FROM visits WHERE {self.condition(1)}) AS t",
            "visits JOIN labs ON visits.patient_id = labs.patient_id AND labs.ward = visits.ward AND value > days",
            f"(SELECT *, days + 1 AS later FROM visits WHERE {self.condition(1)}) AS t",
            "visits CROSS JOIN labs" if self.chance.random() < self.slips else "visits",
        )

    def match(self):
        return self.one(
            "visits.patient_id IN (SELECT patient_id FROM labs WHERE value > 0)",
            "visits.patient_id NOT IN (SELECT patient_id FROM labs)",
            "EXISTS (SELECT * FROM labs AS l WHERE l.patient_id = visits.patient_id AND l.value < visits.cost)",
            "labs.patient_id IS NULL",
        )

    def question(self):
        keys = [self.key() for _ in range(self.one(0, 0, 1, 1, 2))]
        shown = [*keys, *(self.aggregate() for _ in range(self.one(1, 1, 2, 3)))]
        text = f"SELECT {', '.join(shown)} FROM {self.rows()}"
        if self.chance.random() < 0.6:
            text += f" WHERE {self.condition()}"
            text += self.one("", "", "", f" AND {self.match()}")
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        if self.chance.random() < 0.2:
            text += " HAVING COUNT(*) > 10"
        if self.chance.random() < 0.2:
            text += " ORDER BY 1 DESC LIMIT 3"
        return text
