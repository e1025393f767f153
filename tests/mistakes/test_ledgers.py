# SPDX-License-Identifier: Apache-2.0
"""Limits and ledgers: what may be spent in all, and the book that remembers it."""

from __future__ import annotations

from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

FILTER = "Limit.filter(epsilon=1, delta=1e-6)"
BOOK = f"Ledger('visits.ledger', limit={FILTER}, unit='patient_id', dataset='visits')"
OWN = f"dp.Session(data, limit={FILTER}, ledger='visits.ledger')"

#: A ledger that is charged for two visits of a patient, and the same rows opened otherwise.
BOUND = (
    "first = dp.open(table, name='visits', protect=dp.each('patient_id', at_most=2))\n"
    f"dp.Session(first, limit={FILTER}, ledger='bound.ledger').sql('SELECT COUNT(*) FROM visits', epsilon=0.1)"
)
MORE = "dp.open(table, name='visits', protect=dp.each('patient_id', at_most=9))"
OTHERS = "dp.open(table, name='visits', protect=dp.each('name', at_most=2, word='patient_id'))"


@mistakes(
    Mistake("Limit(epsilon=1, delta=1e-6)", "DP107", FILTER),
    Mistake("Limit.filter()", "DP107", FILTER),
    Mistake("Limit.filter(epsilon=1, rho=1)", "DP107", "Limit.filter(rho=0.5)"),
    Mistake("Limit.filter(epsilon='1')", "DP104", "epsilon=1.0", "Limit.filter(epsilon=1.0)"),
    Mistake("Limit.filter(epsilon=1, delta=1)", "DP102", "delta=1e-6", FILTER),
    Mistake(
        "Limit.filter(1, 1e-6, kind='renyi')",
        "DP105",
        "kind='tracks'",
        "Limit.filter(1, 1e-6, kind='tracks')",
    ),
    Mistake(
        "Limit.filter(1, 1e-6, window=30)",
        "DP107",
        "window='30 days'",
        "Limit.filter(1, 1e-6, window='30 days')",
    ),
    Mistake(
        "Limit.filter(1, 1e-6, analysts=['ana', 'bo'])",
        "DP107",
        "analysts={'ana': 0.5, 'bo': 0.5}",
        "Limit.filter(1, 1e-6, analysts={'ana': 0.5, 'bo': 0.5})",
    ),
    Mistake("Limit.plan(1)", "DP104", "privacy.laplace(scale=10)", "Limit.plan(privacy.laplace(scale=10))"),
    Mistake("Ledger('visits.ledger')", "DP603", f"dp.Ledger('visits.ledger', limit=dp.{FILTER})"),
    Mistake(
        "Ledger('visits.ledger', limit=1)",
        "DP104",
        f"limit={FILTER}",
        f"Ledger('visits.ledger', limit={FILTER})",
    ),
    Mistake(
        "Ledger('visits.ledger', limit=Limit.filter(epsilon=2))",
        "DP603",
        "leave out limit=",
        left_out=", limit=Limit.filter(epsilon=2)",
        first=BOOK,
    ),
    Mistake(
        "dp.Session(data, limit=Limit.filter(epsilon=5), ledger='visits.ledger')",
        "DP603",
        "leave out limit=",
        left_out=" limit=Limit.filter(epsilon=5),",
        first=BOOK,
    ),
    Mistake(
        "dp.Session(data, limit=Limit.filter(epsilon=5), ledger=book)",
        "DP603",
        "leave out limit=",
        left_out=" limit=Limit.filter(epsilon=5),",
        first=f"book = {BOOK}",
    ),
    Mistake(
        "dp.Session(data, ledger='other.ledger')",
        "DP603",
        "ledger='visits.ledger'",
        OWN,
        first=f"Ledger('other.ledger', limit={FILTER}, unit='patient_id', dataset='other')",
    ),
    Mistake(
        "dp.Session(data, ledger=book)",
        "DP603",
        "ledger='visits.ledger'",
        OWN,
        first=f"book = Ledger('other.ledger', limit={FILTER}, unit='patient_id', dataset='other')",
    ),
    Mistake(
        "dp.Session(data, ledger='records.ledger')",
        "DP603",
        "ledger='visits.ledger'",
        OWN,
        first=f"Ledger('records.ledger', limit={FILTER})",
    ),
    Mistake(
        f"dp.Session({MORE}, ledger='bound.ledger')",
        "DP608",
        'protect=dp.each("patient_id", at_most=2)',
        "dp.Session(dp.open(table, name='visits', protect=dp.each(\"patient_id\", at_most=2)), ledger='bound.ledger')",
        first=BOUND,
    ),
    Mistake(
        f"dp.Session({OTHERS}, ledger='bound.ledger')",
        "DP608",
        'protect=dp.each("patient_id", at_most=2)',
        "dp.Session(dp.open(table, name='visits', protect=dp.each(\"patient_id\", at_most=2)), ledger='bound.ledger')",
        first=BOUND,
    ),
    Mistake(
        f"dp.Session(data, limit={FILTER}, ledger='no/such/folder.ledger')",
        "DP606",
        "ledger='visits.ledger'",
        f"dp.Session(data, limit={FILTER}, ledger='visits.ledger')",
    ),
    Mistake(
        f"dp.Session(data, limit={FILTER}, ledger=7)",
        "DP104",
        "'visits.ledger'",
        f"dp.Session(data, limit={FILTER}, ledger='visits.ledger')",
    ),
    Mistake(
        "book.charge(0.1)",
        "DP104",
        "privacy.pure(0.1)",
        "book.charge(privacy.pure(0.1))",
        first=f"book = Ledger('records.ledger', limit={FILTER})",
    ),
    Mistake(
        "book.charge(privacy.pure(0.1))",
        "DP201",
        "unit='patient_id', relation='add-remove'",
        "book.charge(privacy.pure(0.1, unit='patient_id', relation='add-remove'))",
        first=f"book = {BOOK}",
    ),
    Mistake(
        "book.charge(privacy.gaussian(noise=100))",
        "DP203",
        FILTER,
        f"Ledger('new.ledger', limit={FILTER}).charge(privacy.gaussian(noise=100))",
        first="book = Ledger('records.ledger', limit=Limit.filter(epsilon=1))",
    ),
    Mistake(
        "book.charge(privacy.pure(0.1))  # by whom?",
        "DP105",
        "asker=Asker(analyst='ana')",
        "book.charge(privacy.pure(0.1), asker=Asker(analyst='ana'))",
        first="from discreet.ledger import Asker\nbook = Ledger('shared.ledger', limit=Limit.filter(epsilon=1, analysts={'ana': 0.5}))",
    ),
    Mistake(
        "book.verify(anchor=book.anchor()[:8])",
        "DP102",
        "ledger.anchor()",
        "ledger = book; ledger.verify(anchor=ledger.anchor())",
        first=f"book = {BOOK}",
    ),
    Mistake(
        "copy.deepcopy(book)",
        "DP607",
        "Ledger('visits.ledger')",
        first=f"book = {BOOK}",
    ),
    Mistake(
        "session.charge(privacy.pure(0.1), question='a model')",
        "DP201",
        "unit='patient_id'",
        "session.charge(privacy.pure(0.1, unit='patient_id'), question='a model')",
    ),
)
def test_ledgers(mistake, here):
    error = check_mistake(mistake, here)
    assert error.what
