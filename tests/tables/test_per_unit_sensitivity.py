# SPDX-License-Identifier: Apache-2.0
"""No unit moves the sums of a question over groups, windows, joins and links further than its noise is made for.

People are tried in the company of others: whoever comes or goes changes the rows of nobody else.
"""

from __future__ import annotations

import random
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from discreet.exact import exactly
from discreet.tables.algebra import sums as p
from discreet.tables.algebra.engine import LINKED
from discreet.tables.ask.sql import parse
from discreet.tables.ask.start import Dataset
from discreet.tables.data.dataset import Column, Each, Link, Table
from discreet.tables.plan.compile import compile_question
from discreet.tables.plan.spend import Spend
from tests.tables import reference
from tests.tables.reference import Reference, equal, spread, value

DAYS = [date(2024, 1, day) for day in (1, 2, 3)]
UNITS = {"visits": "id", "labs": "id", "orders": "id", "items": LINKED}
WARDS = [{"ward": "a", "beds": 1}, {"ward": "a", "beds": 2}, {"ward": "b", "beds": 1}]


class Engine(Reference):
    """The reference, which knows its public table."""

    def values(self, table, columns):
        return sorted({tuple(row[column] for column in columns) for row in self.tables[table]})


def dataset(tables, at_most, relation, engine=Engine):
    ward, days = Column("ward", "text", values=("a", "b")), Column("x", "integer", (-2, 5))
    key = Column("id", "integer")
    columns = {
        "visits": [key, ward, days, Column("day", "date", (DAYS[0], DAYS[-1]))],
        "labs": [key, ward, Column("y", "integer", (0, 3))],
        "orders": [key, Column("o", "integer")],
        "items": [Column("o", "integer"), Column("p", "integer", (0, 4))],
        "wards": [Column("ward", "text"), Column("beds", "integer", (0, 9))],
    }
    link = Link("o", "orders", "o")
    made = {
        name: Table(
            name,
            {column.name: column for column in listed},
            UNITS.get(name),
            link=link if name == "items" else None,
        )
        for name, listed in columns.items()
    }
    protect = Each("id", at_most, relation=relation)
    return Dataset("small", made, protect, engine({**tables, "wards": WARDS}, UNITS))


def people(count, seed=3):
    """What each of some people has, by table; orders have keys that others have too."""
    draw = random.Random(seed)
    for who in range(count):
        keys = [draw.choice((0, 1, 2, who + 10)) for _ in range(draw.choice((0, 1, 2, 5)))]
        many = draw.choice((0, 1, 2, 3, 7))
        yield {
            "visits": [
                {
                    "id": who,
                    "ward": draw.choice("abc"),
                    "x": draw.choice((-9, 0, 5, None)),
                    "day": draw.choice(DAYS),
                }
                for _ in range(many)
            ],
            "labs": [
                {"id": who, "ward": draw.choice("ab"), "y": draw.choice((0, 3, 9, None))}
                for _ in range(draw.choice((0, 1, 4)))
            ],
            "orders": [{"id": who, "o": key} for key in keys],
            # those that nobody else has come and go with the person; shared ones stay
            "items": [{"o": key, "p": draw.choice((0, 4, 9))} for key in keys if key >= 10 for _ in range(3)],
        }


#: Others whom a newcomer could harm, if rows of one person reached those of another.
OTHERS = [
    {
        "visits": [{"id": 90 + key, "ward": ward, "x": 5, "day": DAYS[1]} for ward in "ab"],
        "labs": [],
        "orders": [{"id": 90 + key, "o": key}],
        "items": [],
    }
    for key in (0, 1, 2)
]
NEWCOMER = {
    "visits": [{"id": 99, "ward": "a", "x": 5, "day": DAYS[0]}] * 3,
    "labs": [{"id": 99, "ward": "a", "y": 0}],
    "orders": [{"id": 99, "o": key} for key in (0, 1, 2)],
    "items": [],
}
SHARED = [{"o": key, "p": 4} for key in (0, 1, 2) for _ in range(2)]
PEOPLE = list(people(22))


def together(those):
    tables = {name: [row for who in those for row in who[name]] for name in UNITS}
    tables["items"] = SHARED + tables["items"]
    return tables


QUESTIONS = {
    "counts of people": "SELECT AVG(n), COUNT(*), SUM(s) FROM (SELECT id, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY id) AS g",
    "counts by ward": "SELECT ward, SUM(n), COUNT(*) FROM (SELECT id, ward, COUNT(DISTINCT day) AS n FROM visits GROUP BY id, ward) AS g GROUP BY ward",
    "having": "SELECT n, COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id HAVING MIN(x) > 0 OR COUNT(*) > 2) AS g GROUP BY n",
    "first visits": "SELECT ward, SUM(x), COUNT(*) FROM (SELECT ward, x, ROW_NUMBER() OVER (PARTITION BY id ORDER BY day) AS n FROM visits) AS g WHERE n = 1 GROUP BY ward",
    "first two": "SELECT ward, SUM(x), COUNT(*) FROM (SELECT ward, x, ROW_NUMBER() OVER (PARTITION BY id ORDER BY day) AS n FROM visits) AS g WHERE n <= 2 GROUP BY ward",
    "soon again": "SELECT COUNT(*) FROM (SELECT day - LAG(day) OVER (PARTITION BY id ORDER BY day) AS gap FROM visits) AS g WHERE gap < 2",
    "running total": "SELECT ward, SUM(t) FROM (SELECT ward, SUM(x) OVER (PARTITION BY id ORDER BY day) AS t FROM visits) AS g GROUP BY ward",
    "left join": "SELECT visits.ward, COUNT(*), SUM(y) FROM visits LEFT JOIN labs USING (id) GROUP BY visits.ward",
    "full join": "SELECT COUNT(*), SUM(y), SUM(x) FROM visits FULL JOIN labs USING (id)",
    "self-join": "SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (id)",
    "in": "SELECT ward, COUNT(*) FROM visits WHERE id IN (SELECT id FROM labs WHERE y > 1) GROUP BY ward",
    "not exists": "SELECT ward, SUM(x) FROM visits AS v WHERE NOT EXISTS (SELECT * FROM labs AS l WHERE l.id = v.id AND l.y < v.x) GROUP BY ward",
    "stacked": "SELECT COUNT(*), SUM(z) FROM (SELECT id, x AS z FROM visits UNION ALL SELECT id, y FROM labs) AS g",
    "distinct": "SELECT ward, COUNT(*) FROM (SELECT DISTINCT id, ward FROM visits) AS g GROUP BY ward",
    "no match": "SELECT visits.ward, COUNT(*) FROM visits LEFT JOIN labs ON visits.id = labs.id WHERE labs.id IS NULL GROUP BY visits.ward",
    "no match on either side": "SELECT COUNT(*), COUNT(visits.id), SUM(y) FROM visits FULL JOIN labs ON visits.id = labs.id WHERE visits.id IS NULL OR labs.id IS NULL",
    "matches counted": "SELECT AVG(n), COUNT(*) FROM (SELECT v.id, COUNT(l.id) AS n FROM visits AS v LEFT JOIN labs AS l ON l.id = v.id GROUP BY v.id) AS g",
    "literals in a stack": "SELECT kind, COUNT(*), SUM(z) FROM (SELECT id, 'visit' AS kind, x AS z FROM visits UNION ALL SELECT id, 'lab', y FROM labs) AS g GROUP BY kind",
    "texts": "SELECT COUNT(*) FILTER (WHERE ward ILIKE 'A' OR CONTAINS(CONCAT(ward, '-'), 'b-')), SUM(x) FROM visits WHERE STARTS_WITH(ward, 'a') OR x > 0",
    "linked": "SELECT COUNT(*), SUM(p) FROM items",
    "linked and joined": "SELECT COUNT(*), SUM(p) FROM orders JOIN items ON orders.o = items.o",
    "linked and counted": "SELECT AVG(s), COUNT(*) FROM (SELECT o, SUM(p) AS s FROM items GROUP BY o) AS g",
    "public table": "SELECT beds, COUNT(*), SUM(n) FROM (SELECT id, ward, COUNT(*) AS n FROM visits GROUP BY id, ward) AS g JOIN wards ON g.ward = wards.ward GROUP BY beds",
}
SPENDS = {"laplace": Spend(epsilon=1.0), "gaussian": Spend(rho=0.5)}


def farthest(mechanism, engine, relation, *, gaussian):
    """For each stage: how far neighbours are apart, in noises, with different others around."""
    for stage in mechanism.stages:
        noise = np.array([distribution.scale for distribution in stage.distributions])

        def sums(those, stage=stage, noise=noise):
            found = stage.exact(engine({**together(those), "wards": WARDS}, UNITS))
            nothing = (0,) * noise.size
            return np.array(
                [found.get(group, nothing) for group in mechanism.groups], dtype=float
            ).ravel() / np.tile(noise, len(mechanism.groups))

        worst = 0.0
        for others in ([], PEOPLE[:4], OTHERS):
            before = sums(others)
            moved = [sums([*others, who]) - before for who in [*PEOPLE[4:], NEWCOMER]]
            compared = [np.zeros_like(before)] if relation == "add-remove" else moved
            gaps = np.array([one - other for one in moved for other in compared])
            worst = max(worst, float((gaps**2 if gaussian else np.abs(gaps)).sum(axis=1).max()))
        yield worst, guaranteed(stage, gaussian=gaussian)


def guaranteed(stage, *, gaussian):
    if gaussian:
        return float(1 / exactly(stage.guarantee.noise) ** 2)
    parts = stage.guarantee.parts if hasattr(stage.guarantee, "parts") else [(stage.guarantee, 1)]
    return float(sum(count * Fraction(one.sensitivity) / exactly(one.scale) for one, count in parts))


def exceeds(text, engine=Engine, relation="add-remove", spend="laplace", at_most=2):
    """Whether some stage moves further than guaranteed."""
    data = dataset(together([]), at_most, relation, engine)
    mechanism = compile_question(parse(text, data).question, data, SPENDS[spend])
    results = [
        (worst, most) for worst, most in farthest(mechanism, engine, relation, gaussian=spend == "gaussian")
    ]
    assert any(worst > most / 50 for worst, most in results), "nobody moves these sums"
    return any(worst > most * (1 + 1e-12) for worst, most in results)


@pytest.mark.parametrize("text", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("spend", SPENDS)
def test_nobody_moves_the_sums_further_than_guaranteed(text, spend):
    assert not exceeds(text, spend=spend)


@pytest.mark.parametrize("name", ["counts of people", "first visits", "left join", "linked", "not exists"])
def test_neither_does_one_who_is_replaced(name):
    assert not exceeds(QUESTIONS[name], relation="replace")


# --- engines that would break it ---------------------------------------------------------------------


class OfAll(Engine):
    """Groups, windows and matches of all people together."""

    def rows(self, rows):
        if isinstance(rows, p.PerUnit | p.Windowed | p.Paired):
            inner = self.rows(rows.rows)
            own = [row for _, row in inner]
            if isinstance(rows, p.Paired):
                others = [row for _, row in self.rows(rows.other)]
                kept = [row for row in own if reference.paired(rows, [row], others)]
                return [(unit, row) for unit, row in inner if any(row is other for other in kept)]
            made = (
                reference.per_unit(rows, own)
                if isinstance(rows, p.PerUnit)
                else reference.windowed(rows, own)
            )
            units = [unit for unit, _ in inner]
            return list(zip([*units, *units], made, strict=False))
        return super().rows(rows)


class ByUniqueKey(Engine):
    """Rows whose key belongs to two people belong to neither: whoever comes with a key takes rows from others."""

    def rows(self, rows):
        if not isinstance(rows, p.Linked):
            return super().rows(rows)
        owners = {(unit, value(rows.key, row)) for unit, row in self.rows(rows.owners)}
        keys = [key for _, key in owners]
        mine = [spread(rows.label, row) for row in self.tables[rows.table]]
        return [
            (unit, row)
            for row in mine
            for unit, key in owners
            if equal(value(rows.column, row), key) and keys.count(key) == 1
        ]


@pytest.mark.parametrize("name", ["running total", "not exists"])
def test_an_engine_that_mixes_people_is_found_out(name):
    assert exceeds(QUESTIONS[name], OfAll)


def test_keys_of_two_people_that_belong_to_neither_are_found_out():
    assert exceeds(QUESTIONS["linked"], ByUniqueKey)


def test_twice_the_rows_are_found_out():
    class Twice(Engine):
        def rows(self, rows):
            found = super().rows(rows)
            return found * 2 if isinstance(rows, p.PerUnit) else found

    assert not exceeds(QUESTIONS["counts by ward"], Twice), "the weights bound whatever an engine makes of it"
