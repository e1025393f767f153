# SPDX-License-Identifier: Apache-2.0
"""What an answer may cost: epsilon, delta, rho, an error; and what does not fit what is left."""

from __future__ import annotations

import pytest

from tests.mistakes.clinic import Here
from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

COUNT = '"SELECT COUNT(*) FROM visits"'
BY_NAME = '"SELECT name, COUNT(*) FROM visits GROUP BY name"'


def slip(wrong: str, code: str, fix: str, right: str) -> Mistake:
    """The same question, paid for in another way."""
    return Mistake(f"session.sql({COUNT}, {wrong})", code, fix, f"session.sql({COUNT}, {right})")


@pytest.fixture
def here(visits, unknown_cap, folder):
    return Here(data=visits, auto=unknown_cap)


@mistakes(
    Mistake(f"session.sql({COUNT})", "DP107", "epsilon=0.2", f"session.sql({COUNT}, epsilon=0.2)"),
    slip("epsilon=0", "DP102", "epsilon=1", "epsilon=1"),
    slip("epsilon=-1", "DP102", "epsilon=1", "epsilon=1"),
    slip('epsilon="1"', "DP104", "epsilon=1.0", "epsilon=1.0"),
    slip("epsilon=True", "DP104", "epsilon=1.0", "epsilon=1.0"),
    slip("epsilon=inf", "DP101", "epsilon=1.0", "epsilon=1.0"),
    slip("epsilon=nan", "DP101", "epsilon=1.0", "epsilon=1.0"),
    slip("epsilon=1, rho=1", "DP107", "epsilon=0.2", "epsilon=0.2"),
    slip("delta=1e-6", "DP107", "epsilon=0.2", "epsilon=0.2, delta=1e-6"),
    slip("eps=1", "DP105", "epsilon=1.0", "epsilon=1.0"),
    slip("epsilon=1, delta=1", "DP102", "delta=1e-6", "epsilon=1, delta=1e-6"),
    slip('epsilon=1, delta="1e-6"', "DP104", "delta=1e-6", "epsilon=1, delta=1e-6"),
    slip("rho=0", "DP102", "rho=1", "rho=1"),
    slip('error="small"', "DP104", 'error="±50"', 'error="±50"'),
    slip("error='±50', epsilon=0.1", "DP707", "epsilon=0.1199", "error='±50', epsilon=0.1199"),
    slip("error='±50', rho=0.1", "DP107", "error='±50', epsilon=0.5", "error='±50', epsilon=0.5"),
    slip("epsilon=1, key='discreet: monday'", "DP102", "key='monday'", "epsilon=1, key='monday'"),
    slip('error="±50", confidence=95', "DP102", "confidence=0.95", 'error="±50", confidence=0.95'),
    slip("epsilon=5000", "DP601", "session.budget()", "epsilon=1); session.budget("),
    slip("epsilon=1, key=7", "DP104", "key='monday'", "epsilon=1, key='monday'"),
    Mistake(
        f"session.sql({BY_NAME}, epsilon=1)",
        "DP704",
        "delta=1e-6",
        f"session.sql({BY_NAME}, epsilon=1, delta=1e-6)",
    ),
    Mistake(
        "session.sql(\"SELECT AVG(days) FROM visits\", epsilon=1, key='monday')",
        "DP604",
        "key='tuesday'",
        "session.sql(\"SELECT AVG(days) FROM visits\", epsilon=1, key='tuesday')",
        first=f"session.sql({COUNT}, epsilon=1, key='monday')",
    ),
    Mistake(
        f"with testing.seeded(1): session.sql({COUNT}, epsilon=1)",
        "DP605",
        "leave out  testing.seeded(",
        left_out="with testing.seeded(1): ",
    ),
    Mistake(
        "pickle.loads(pickle.dumps(session))",
        "DP607",
        "Ledger('visits.ledger')",
        "Ledger('visits.ledger').budget()",
        first="Ledger('visits.ledger', limit=Limit.filter(epsilon=1))",
    ),
    Mistake(
        f"dp.Session(auto, Limit.filter(1), 'auto.ledger').sql({COUNT}, error='small')",
        "DP104",
        'error="±50"',
        f"dp.Session(auto, Limit.filter(1), 'auto.ledger').sql({COUNT}, error=\"±50\")",
        first="dp.Session(auto, Limit.filter(1), 'auto.ledger')",
    ),
    Mistake(
        f"dp.Session(auto, Limit.filter(1, 1e-6), 'auto.ledger').sql({BY_NAME}, epsilon=0.5)",
        "DP704",
        "delta=1e-6",
        f"dp.Session(auto, Limit.filter(1, 1e-5), 'new.ledger').sql({BY_NAME}, epsilon=0.5, delta=1e-6)",
        first="dp.Session(auto, Limit.filter(1, 1e-6), 'auto.ledger')",
    ),
)
def test_spending(mistake, here):
    error = check_mistake(mistake, here)
    assert error.what
