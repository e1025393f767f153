# SPDX-License-Identifier: Apache-2.0
"""Five made-up data sets of the shapes that analysts have: a census, flights, a hospital, a survey and a shop (seed 18).

No value lies outside the bounds of its description, and no unit has more rows than `at_most`. So at a huge ε a question must have the
answer that plain DuckDB gives.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import discreet as dp
from discreet.tables.data.dataset import Column, Each

SEED = 18
SEXES, RACES = ("Female", "Male"), ("Asian", "Black", "Other", "White")
EDUCATION = ("Bachelors", "College", "Doctorate", "School")
MARITAL = ("Divorced", "Married", "Never-married", "Widowed")
CARRIERS = {"AA": "American", "B6": "JetBlue", "DL": "Delta", "UA": "United"}
AIRPORTS = {
    "ATL": ("Atlanta", "GA", 33.6),
    "BOS": ("Boston", "MA", 42.4),
    "JFK": ("New York", "NY", 40.6),
    "LGA": ("New York", "NY", 40.8),
    "ORD": ("Chicago", "IL", 42.0),
    "SFO": ("San Francisco", "CA", 37.6),
}
WARDS = {
    "cardiology": ("north", 24),
    "emergency": ("north", 40),
    "maternity": ("south", 18),
    "surgery": ("south", 30),
}
DIAGNOSES = ("Asthma", "Burn", "Diabetes", "Fracture", "Sepsis")
COUNTRIES = ("AT", "CH", "DE", "FR")
CATEGORIES = ("book", "game", "toy")
STATUS = ("cancelled", "paid", "sent")
LIKERT = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Shape:
    """Tables, and what is public about them."""

    tables: dict[str, pa.Table]
    protect: Each
    columns: dict[str, dict[str, Column]]
    public: dict[str, pa.Table] = field(default_factory=dict)

    def owned(self) -> dict[str, pa.Table]:
        """All tables, without the rows that belong to nobody."""
        unit = self.protect.column
        return {
            name: table.filter(pc.is_valid(table[unit])) if unit in table.column_names else table
            for name, table in {**self.tables, **self.public}.items()
        }


def _table(rows: list[dict[str, Any]], **types: pa.DataType) -> pa.Table:
    """The rows as an Arrow table."""
    return pa.table(
        {name: pa.array([row[name] for row in rows], types.get(name)) for name in rows[0]},
    )


def _or_null(draw: random.Random, value: Any, share: float = 0.05) -> Any:
    return None if draw.random() < share else value


def census() -> Shape:
    """One row for each person."""
    draw = random.Random(SEED)
    rows = []
    for person in range(900):
        age = draw.randrange(17, 91)
        rows.append(
            {
                "person": person,
                "age": age,
                "sex": draw.choice(SEXES),
                "race": draw.choice(RACES),
                "education": draw.choice(EDUCATION),
                "marital": draw.choice(MARITAL),
                "hours": draw.randrange(1, 100),
                "income": draw.randrange(0, 200_000, 50),
                "gain": _or_null(draw, draw.randrange(0, 10_000), 0.3),
                "wage": round(draw.uniform(5, 95), 2),
                "weight": draw.randrange(1, 9) / 4,
                "citizen": draw.random() < 0.9,
                "occupation": draw.choice(("clerk", "farmer", "nurse", "teacher")),
                "born": date(2026, 1, 1) - timedelta(days=365 * age),
            }
        )
    columns = {
        "age": dp.column(bounds=(17, 90), null=False),
        "sex": dp.column(values=SEXES, null=False),
        "race": dp.column(values=RACES, null=False),
        "education": dp.column(values=EDUCATION),
        "marital": dp.column(values=MARITAL, null=False),
        "hours": dp.column(bounds=(1, 99)),
        "income": dp.column(bounds=(0, 200_000)),
        "gain": dp.column(bounds=(0, 10_000)),
        "wage": dp.column(bounds=(0, 100)),
        "weight": dp.column(bounds=(0, 2)),
        "born": dp.column(bounds=(date(1930, 1, 1), date(2010, 12, 31))),
    }
    return Shape({"census": _table(rows)}, dp.each("person", at_most=1), {"census": columns})


def flights() -> Shape:
    """Planes fly; a plane is protected with all its flights."""
    draw = random.Random(SEED + 1)
    planes = [
        {
            "tailnum": f"N{number:03d}",
            "maker": draw.choice(("AIRBUS", "BOEING", "EMBRAER")),
            "year": _or_null(draw, draw.randrange(1985, 2014)),
            "seats": draw.randrange(20, 400),
        }
        for number in range(130)
    ]
    rows = []
    for number in range(1500):
        off = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(minutes=draw.randrange(365 * 24 * 60))
        cancelled = draw.random() < 0.05
        late = draw.randrange(-20, 300) if draw.random() < 0.3 else draw.randrange(-20, 20)
        origin, dest = draw.sample(sorted(AIRPORTS), 2)
        rows.append(
            {
                "tailnum": f"N{draw.randrange(130):03d}" if number % 90 else None,
                "carrier": draw.choice(sorted(CARRIERS)),
                "origin": origin,
                "dest": dest,
                "day": off.date(),
                "off": off.replace(tzinfo=None),
                "dep_delay": None if cancelled else late,
                "arr_delay": None if cancelled else late + draw.randrange(-40, 60),
                "distance": draw.randrange(100, 3000),
                "air_time": None if cancelled else draw.randrange(20, 500),
                "cancelled": cancelled,
            }
        )
    columns = {
        "flights": {
            "carrier": dp.column(values=sorted(CARRIERS), null=False),
            "origin": dp.column(values=sorted(AIRPORTS), null=False),
            "day": dp.column(bounds=(date(2013, 1, 1), date(2013, 12, 31)), null=False),
            "off": dp.column(
                bounds=(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 12, 31, 23, 59, tzinfo=UTC)),
                null=False,
            ),
            "dep_delay": dp.column(bounds=(-60, 400)),
            "arr_delay": dp.column(bounds=(-100, 500)),
            "distance": dp.column(bounds=(0, 3000)),
            "air_time": dp.column(bounds=(0, 600)),
            "cancelled": dp.column(null=False),
        },
        "planes": {
            "maker": dp.column(values=["AIRBUS", "BOEING", "EMBRAER"], null=False),
            "year": dp.column(bounds=(1980, 2013)),
            "seats": dp.column(bounds=(0, 500)),
        },
    }
    public = {
        "airlines": _table([{"carrier": code, "name": name} for code, name in CARRIERS.items()]),
        "airports": _table(
            [
                {"code": code, "city": city, "state": state, "lat": lat}
                for code, (city, state, lat) in AIRPORTS.items()
            ]
        ),
    }
    tables = {"flights": _table(rows, off=pa.timestamp("us")), "planes": _table(planes)}
    return Shape(tables, dp.each("tailnum", at_most=40, word="plane"), columns, public)


def hospital() -> Shape:
    """Patients, their visits and their tests."""
    draw = random.Random(SEED + 2)
    patients = [
        {
            "patient_id": number,
            "sex": draw.choice(SEXES),
            "born": date(1930, 1, 1) + timedelta(days=draw.randrange(90 * 365)),
            "insurance": draw.choice(("none", "private", "public")),
            "region": draw.choice(("east", "west")),
        }
        for number in range(260)
    ]
    visits, tests = [], []
    for number in range(900):
        came = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=draw.randrange(365 * 24 * 60))
        stay = draw.randrange(0, 14)
        patient = draw.randrange(240)
        ward = draw.choice(sorted(WARDS))
        visits.append(
            {
                "visit_id": number,
                "patient_id": patient,
                "ward": ward,
                "came_on": came.date(),
                "left_on": _or_null(draw, came.date() + timedelta(days=stay)),
                "came_at": came,
                "days": stay,
                "cost": round(draw.uniform(20, 4000), 2),
                "urgent": _or_null(draw, draw.random() < 0.4),
                "diagnosis": draw.choice(DIAGNOSES) + draw.choice(("", " ", ", acute")),
                "doctor": f"Dr. {draw.choice(('Abel', 'Berg', 'Cruz', 'Diaz'))}",
            }
        )
        for _ in range(draw.randrange(0, 3)):
            tests.append(  # noqa: PERF401 - one draw after the other
                {
                    "visit": number,
                    "kind": draw.choice(("CRP", "Hb", "Na")),
                    "result": _or_null(draw, round(draw.uniform(0, 150), 1)),
                }
            )
    columns = {
        "patients": {
            "sex": dp.column(values=SEXES, null=False),
            "born": dp.column(bounds=(date(1930, 1, 1), date(2020, 12, 31)), null=False),
            "insurance": dp.column(values=["none", "private", "public"], null=False),
            "region": dp.column(values=["east", "west"], null=False),
        },
        "visits": {
            "ward": dp.column(values=sorted(WARDS), null=False),
            "came_on": dp.column(bounds=(date(2025, 1, 1), date(2025, 12, 31)), null=False),
            "left_on": dp.column(bounds=(date(2025, 1, 1), date(2026, 1, 31))),
            "came_at": dp.column(
                bounds=(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, 23, 59, tzinfo=UTC)),
                null=False,
            ),
            "days": dp.column(bounds=(0, 30), null=False),
            "cost": dp.column(bounds=(0, 4000)),
        },
        "tests": {
            "kind": dp.column(values=["CRP", "Hb", "Na"], null=False),
            "result": dp.column(bounds=(0, 200)),
        },
    }
    public = {
        "wards": _table([{"ward": ward, "site": site, "beds": beds} for ward, (site, beds) in WARDS.items()])
    }
    tables = {
        "patients": _table(patients),
        "visits": _table(visits, came_at=pa.timestamp("us", "UTC")),
        "tests": _table(tests),
    }
    protect = dp.each("patient_id", at_most=40, word="patient", links={"tests": "visit -> visits.visit_id"})
    return Shape(tables, protect, columns, public)


def survey() -> Shape:
    """One row for each answered questionnaire, in two waves."""
    draw = random.Random(SEED + 3)

    def wave(name: str, size: int) -> pa.Table:
        rows = [
            {
                "respondent": f"{name}{number:04d}",
                "age_group": draw.choice(("18-29", "30-49", "50-64", "65+")),
                "gender": draw.choice(("f", "m", "x")),
                "party": _or_null(draw, draw.choice(("Blue", "Green", "Red", "none")), 0.1),
                "trust": _or_null(draw, draw.choice(LIKERT)),
                "satisfaction": draw.choice(LIKERT),
                "income": _or_null(draw, draw.randrange(0, 12_000), 0.15),
                "weight": draw.randrange(4, 17) / 8,
                "votes": draw.random() < 0.7,
                "comment": _or_null(draw, draw.choice(("Good ", " good", "bad", "so-so", "")), 0.2),
            }
            for number in range(size)
        ]
        return _table(rows)

    columns = {
        "age_group": dp.column(values=["18-29", "30-49", "50-64", "65+"], null=False),
        "gender": dp.column(values=["f", "m", "x"], null=False),
        "party": dp.column(values=["Blue", "Green", "Red", "none"]),
        "trust": dp.column(bounds=(1, 5)),
        "satisfaction": dp.column(bounds=(1, 5), null=False),
        "income": dp.column(bounds=(0, 12_000)),
        "weight": dp.column(bounds=(0, 2), places=3),
        "votes": dp.column(null=False),
    }
    tables = {"wave1": wave("a", 500), "wave2": wave("a", 420)}
    return Shape(tables, dp.each("respondent", at_most=2), {name: dict(columns) for name in tables})


def shop() -> Shape:
    """Customers, orders and items; items reach their customer through their order."""
    draw = random.Random(SEED + 4)
    customers = [
        {
            "customer_id": number,
            "country": draw.choice(COUNTRIES),
            "joined": date(2022, 1, 1) + timedelta(days=draw.randrange(900)),
            "newsletter": draw.random() < 0.5,
            "name": f"{draw.choice(('Ann', 'bob', 'Cy'))} Moe",
        }
        for number in range(220)
    ]
    products = [
        {"product_id": number, "category": draw.choice(CATEGORIES), "list_price": draw.randrange(5, 80)}
        for number in range(25)
    ]
    orders, items = [], []
    for number in range(650):
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(366 * 86_400))
        orders.append(
            {
                "order_id": number,
                "customer_id": draw.randrange(200),
                "ordered_at": at,
                "status": draw.choice(STATUS),
                "total": draw.randrange(1, 500),
                "coupon": _or_null(draw, draw.choice(("SPRING", "VIP")), 0.7),
            }
        )
        for _ in range(draw.randrange(0, 4)):
            items.append(  # noqa: PERF401 - one draw after the other
                {
                    "order_id": number,
                    "product_id": draw.randrange(25),
                    "quantity": draw.randrange(1, 6),
                    "price": draw.randrange(4, 320) / 4,
                }
            )
    columns = {
        "customers": {
            "country": dp.column(values=COUNTRIES, null=False),
            "joined": dp.column(bounds=(date(2022, 1, 1), date(2024, 12, 31)), null=False),
            "newsletter": dp.column(null=False),
        },
        "orders": {
            "ordered_at": dp.column(
                bounds=(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC)),
                null=False,
            ),
            "status": dp.column(values=STATUS, null=False),
            "total": dp.column(bounds=(0, 500)),
            "coupon": dp.column(values=["SPRING", "VIP"]),
        },
        "items": {
            "quantity": dp.column(bounds=(1, 5), null=False),
            "price": dp.column(bounds=(0, 80), places=2),
        },
        "products": {"list_price": dp.column(bounds=(0, 100))},
    }
    tables = {
        "customers": _table(customers),
        "orders": _table(orders, ordered_at=pa.timestamp("us", "UTC")),
        "items": _table(items),
    }
    protect = dp.each(
        "customer_id", at_most=40, word="customer", links={"items": "order_id -> orders.order_id"}
    )
    return Shape(tables, protect, columns, {"products": _table(products)})


SHAPES = {shape.__name__: shape for shape in (census, flights, hospital, survey, shop)}
