# SPDX-License-Identifier: Apache-2.0
"""A ledger belongs to a description: whoever opens it with another one is refused, or leaves a version in the statement.

Every change of a description, in every store, by every way to charge: what changes who is protected is refused, what may
change is listed, and nothing is called enforced that was not checked.
"""

from __future__ import annotations

import functools
import json
import shlex
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import discreet as dp
from discreet import privacy
from discreet.cli import main
from discreet.ledger import Ledger, Limit, Statement, chain
from discreet.ledger.description import Description, list_changes
from discreet.ledger.layers import ASSERTED, ENFORCED
from tests.ledger.workers import writing
from tests.refusals import refusal

WARDS = ("a", "b", "c")
COUNT = "SELECT COUNT(*) FROM visits"
LIMIT = {"epsilon": 1000, "delta": 1e-3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same visits in several files."""
    place = tmp_path_factory.mktemp("visits")
    rows = [(person, visit, WARDS[person % 3]) for person in range(60) for visit in range(4)]
    people, visits, wards = zip(*rows, strict=True)
    table = pa.table(
        {
            "patient_id": people,
            "visit_id": [4 * person + visit for person, visit in zip(people, visits, strict=True)],
            "ward": wards,
            "days": [3] * len(rows),
        }
    )
    parquet.write_table(table, place / "visits.parquet")
    parquet.write_table(table, place / "moved.parquet")
    as_text = table.set_column(0, "patient_id", table["patient_id"].cast(pa.string()))
    parquet.write_table(as_text, place / "text.parquet")
    parquet.write_table(pa.table({"ward": WARDS, "floor": [1, 1, 2]}), place / "wards.parquet")
    return place


PATIENTS = dp.each("patient_id", at_most=4, groups=2, word="patient")
DAYS = dp.column(bounds=(0, 60), source="the rules")


@dataclass(frozen=True)
class Opened:
    """How a data set is opened."""

    file: str = "visits.parquet"
    protect: Any = PATIENTS
    days: Any = DAYS
    version: str = ""
    also: tuple[str, ...] = ()

    def open(self, folder):
        public = {name: folder / f"{name}.parquet" for name in self.also}
        columns = {"visits": {"ward": dp.column(values=WARDS), "days": self.days}}
        return dp.open(
            {"visits": folder / self.file},
            self.protect,
            name="visits",
            columns=columns,
            public=public,
            version=self.version,
        )


FIRST = Opened()
REFUSED = {
    "unit column": Opened(protect=dp.each("visit_id", at_most=4, groups=2, word="patient")),
    "unit column and bound": Opened(protect=dp.each("visit_id", at_most=1, word="patient")),
    "every row": Opened(protect=dp.each_row(word="patient")),
    "greater bound": Opened(protect=dp.each("patient_id", at_most=8, groups=2, word="patient")),
    "smaller bound": Opened(protect=dp.each("patient_id", at_most=1, groups=1, word="patient")),
    "found bound": Opened(protect=dp.each("patient_id", at_most="auto", groups=2, word="patient")),
    "groups": Opened(protect=dp.each("patient_id", at_most=4, word="patient")),
    "type of the unit": Opened(file="text.parquet"),
    "rows made public": Opened(also=("visits.parquet",)),
}
#: What the unit itself says is refused for the unit, where the ledger was opened before.
OTHER_UNIT = {
    "relation": Opened(
        protect=dp.each("patient_id", at_most=4, groups=2, relation="replace", word="patient")
    ),
    "word": Opened(protect=dp.each("patient_id", at_most=4, groups=2, word="visit")),
}
LISTED = {
    "bounds": (Opened(days=dp.column(bounds=(0, 90), source="the rules")), "column visits.days: bounds"),
    "source of a bound": (
        Opened(days=dp.column(bounds=(0, 60), source="a law")),
        "column visits.days: source",
    ),
    "no bounds": (Opened(days=dp.column(source="the rules")), "column visits.days: bounds is none"),
    "version": (Opened(version="2031-06"), "version is 2031-06, not none"),
    "place": (Opened(file="moved.parquet"), "table visits lies elsewhere"),
    "public table": (Opened(also=("wards",)), "table wards is new"),
}


def _exposed(opened, folder):
    """The same rows, said to be public under another name."""
    private = replace(opened, also=()).open(folder)
    public = replace(private.tables["visits"], name="open", unit=None)
    return replace(private, tables={**private.tables, "open": public})


@functools.cache
def data(opened, folder):
    """A data set is opened once: it reads no row by itself, and what it is never changes."""
    return _exposed(opened, folder) if opened.also == ("visits.parquet",) else opened.open(folder)


# --- the ways to charge -------------------------------------------------------------------------------


def by_sql(session, folder):
    session.sql(COUNT, epsilon=0.1)


def by_question(session, folder):
    session.release(session.data["visits"].count(), epsilon=0.1)


def by_many(session, folder):
    session.release_batch({f"k{len(session.ledger)}": (COUNT, {"epsilon": 0.1})})


def by_mechanism(session, folder):
    unit = session.data.unit
    session.release(dp.Laplace(epsilon=0.1, sensitivity=4, unit=unit.protects, relation=unit.relation), 60)


def by_fit(session, folder):
    from discreet.learn import StandardScaler

    unit = session.data.unit
    words = {"unit": unit.protects, "relation": unit.relation}
    StandardScaler(epsilon=1, delta=1e-6, bounds=(0, 1), session=session, **words).fit(np.zeros((20, 2)))


def by_training(session, folder):
    torch = pytest.importorskip("torch")
    from discreet.learn.torch import private

    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    unit = session.data.unit
    words = {"unit": unit.protects, "relation": unit.relation}
    words |= {"size": 50} if unit.relation == "add-remove" else {"sampling": "fixed"}
    steps = {"steps": 2, "batch": 10, "session": session, **words}
    private(model, optimizer, torch.zeros(50, 2), epsilon=1, delta=1e-5, **steps)


def by_hand(session, folder):
    unit = session.data.unit
    charged = privacy.pure(0.1, unit=unit.protects, relation=unit.relation)
    session.charge(charged, question="something drawn elsewhere")


ENTRIES = [by_sql, by_question, by_many, by_mechanism, by_fit, by_training, by_hand]
COMPILED = {by_sql, by_question, by_many}


def session(opened, folder, ledger, **more):
    return dp.Session(data(opened, folder), limit=Limit.filter(**LIMIT), ledger=ledger, **more)


def lines(ledger, mark=None, **more):
    found = [line for layer in Statement.of(ledger, **more).to_dict()["layers"] for line in layer["lines"]]
    return [line for line in found if mark is None or line["mark"] == mark]


# --- the matrix ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_description_that_protects_others_is_refused_when_it_is_opened(where, entry, folder):
    entry(session(FIRST, folder, where), folder)
    before = Ledger(where).anchor()
    for name, other in {**REFUSED, **OTHER_UNIT}.items():
        error = refusal(session, other, folder, where)
        assert error.code == "DP608", name
        assert error.spent == "nothing"
        assert 'dp.each("patient_id", at_most=4, groups=2, word="patient")' in error.fix, name
        assert Ledger(where).anchor() == before
    session(FIRST, folder, where)


@pytest.mark.parametrize("entry", ENTRIES)
def test_of_two_that_are_open_at_once_the_second_to_charge_is_refused(where, entry, folder):
    book = Ledger(where, limit=Limit.filter(**LIMIT), unit="patient", dataset="visits")
    others = {name: dp.Session(data(other, folder), ledger=Ledger(where)) for name, other in REFUSED.items()}
    entry(dp.Session(data(FIRST, folder), ledger=book), folder)
    before = book.anchor()
    for name, other in others.items():
        assert refusal(entry, other, folder).code == "DP608", name
        assert book.anchor() == before
    for other in OTHER_UNIT.values():
        assert refusal(dp.Session, data(other, folder), ledger=book).code == "DP608"
    assert book.verify().intact


@pytest.mark.parametrize("entry", [by_sql, by_many, by_hand])
def test_what_may_change_is_listed_with_its_period(where, entry, folder):
    entry(session(FIRST, folder, where), folder)
    for other, _ in LISTED.values():
        entry(session(other, folder, where), folder)
        entry(session(FIRST, folder, where), folder)
    ledger = Ledger(where)
    found = Statement.of(ledger).to_dict()["described"]
    versions = found["versions"]
    assert len(versions) == 1 + len(LISTED)
    assert [version["charges"] for version in versions] == [1 + len(LISTED), *[1] * len(LISTED)]
    assert all(version["first"] <= version["last"] for version in versions)
    assert found["not_recorded"] == 0
    for words in (words for _, words in LISTED.values()):
        assert any(words in changed for version in versions for changed in version["changed"]), words
    page, text = Statement.of(ledger).to_html(), Statement.of(ledger).to_markdown()
    assert all(version["digest"][:12] in page and version["digest"][:12] in text for version in versions)
    assert ledger.verify().intact


@pytest.mark.parametrize("entry", ENTRIES)
def test_nothing_is_called_enforced_that_was_not_checked(where, entry, folder):
    entry(session(FIRST, folder, where), folder)
    ledger = Ledger(where)
    enforced = {line["what"] for line in lines(ledger, ENFORCED)}
    asserted = {line["what"] for line in lines(ledger, ASSERTED)}
    assert ({"rows of one unit", "clipping"} <= enforced) is (entry in COMPILED)
    assert ({"rows of one unit", "clipping"} <= asserted) is (entry not in COMPILED)
    assert "description" in enforced
    assert ("drawn elsewhere" in asserted) is (entry in {by_fit, by_training, by_hand})
    assert ("on other data" in asserted) is (entry is by_mechanism)


@pytest.mark.parametrize("name", [*REFUSED, *OTHER_UNIT])
def test_the_command_line_refuses_it_too(name, folder, tmp_path, capsys):
    book = tmp_path / "visits.ledger"
    places = {}
    for word, opened in {"first": FIRST, "other": {**REFUSED, **OTHER_UNIT}[name]}.items():
        places[word] = tmp_path / f"{word}.toml"
        places[word].write_text(data(opened, folder).to_toml(), encoding="utf-8")

    def run(word):
        line = f"query '{COUNT}' --data {places[word]} --epsilon 0.1 --ledger {book} --limit eps=1 --json"
        with pytest.raises(SystemExit) as left:
            main(shlex.split(line))
        return left.value.code, json.loads(capsys.readouterr().out)

    assert run("first")[0] in (0, None)
    code, told = run("other")
    assert code
    assert told["error"]["code"] == "DP608"
    assert run("first")[0] in (0, None)


def test_a_statement_says_of_a_description_that_it_is_only_given(folder, tmp_path, capsys):
    book = tmp_path / "visits.ledger"
    by_sql(session(FIRST, folder, book), folder)
    other = data(REFUSED["unit column and bound"], folder)
    found = lines(Ledger(book), description=other.public_description())
    assert [line["mark"] for line in found if line["what"] == "given description"] == [ASSERTED]
    assert {line["words"] for line in found if line["what"] == "who that is"} == {
        "the column patient_id says whose row it is."
    }
    (tmp_path / "other.toml").write_text(other.to_toml(), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["statement", str(book), "--data", str(tmp_path / "other.toml")])
    assert "recorded with no charge" in capsys.readouterr().out
    own = data(FIRST, folder).public_description()
    assert Statement.of(Ledger(book), own).to_dict()["described"]["given"] == "recorded"


def test_the_loss_that_two_units_hid_is_refused(folder, tmp_path):
    """Of one patient with four visits, ε = 1 for each visit is ε = 4: the limit of 1 for one patient must not hold both."""
    book, one = tmp_path / "visits.ledger", Limit.filter(epsilon=1)
    dp.Session(data(FIRST, folder), limit=one, ledger=book).sql(COUNT, epsilon=0.1)
    other = data(REFUSED["unit column and bound"], folder)
    error = refusal(dp.Session, other, ledger=book)
    assert error.code == "DP608"
    assert "visit_id, not patient_id" in error.what
    assert float(Ledger(book).spent["epsilon"]) == 0.1


# --- other ledgers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit",
    [
        Limit.odometer(delta=1e-6),
        Limit.plan(5 * privacy.pure(0.2, unit="patient")),
        Limit.filter(epsilon=5, delta=1e-6, window="month"),
        Limit.filter(epsilon=5, analysts={"ana": 0.5}, reserved=True),
    ],
    ids=lambda limit: limit.kind,
)
def test_every_kind_of_limit_is_bound(limit, folder, tmp_path):
    book = tmp_path / "visits.ledger"
    analyst = {"analyst": "ana"} if limit.kind == "shared" else {}
    first = dp.Session(data(FIRST, folder), limit=limit, ledger=book, **analyst)
    first.sql(COUNT, epsilon=0.1)
    for other in REFUSED.values():
        assert refusal(dp.Session, data(other, folder), ledger=book).code == "DP608"
    assert Ledger(book).verify().intact


def test_a_ledger_of_several_data_sets_says_so_of_each(folder, tmp_path):
    book = Ledger(tmp_path / "all.ledger", limit=Limit.filter(epsilon=10), unit="patient")
    visits = data(FIRST, folder)
    table = pa.table({"pid": list(range(30)), "age": [40] * 30})
    ages = dp.open(table, dp.each("pid", at_most=1, word="patient"), name="ages")
    dp.Session(visits, ledger=book).sql(COUNT, epsilon=0.1, key="all")
    other = dp.Session(ages, ledger=book)
    other.sql("SELECT COUNT(*) FROM ages", epsilon=0.1)
    who = {line["what"]: line["words"] for line in lines(book) if line["what"].startswith(("who", "rows"))}
    assert who["who that is in visits"] == "the column patient_id says whose row it is."
    assert who["who that is in ages"] == "the column pid says whose row it is."
    assert "at most 4 row" in who["rows of one unit in visits"]
    assert "at most 1 row;" in who["rows of one unit in ages"]
    again = dp.open(table, dp.each("age", at_most=1, word="patient"), name="ages")
    assert refusal(dp.Session, again, ledger=book).code == "DP608"
    # the same file under another name is the same data set
    renamed = replace(REFUSED["unit column"].open(folder), name="other")
    assert refusal(dp.Session, renamed, ledger=book).code == "DP608"


def test_an_older_ledger_opens_and_says_what_it_did_not_record(where, folder):
    """A row that says nothing of a description is what releases before this one wrote."""
    charged = privacy.pure(0.1, unit="patient")
    with Ledger(where, limit=Limit.filter(**LIMIT), unit="patient", dataset="visits") as old:
        old.commit(old.charge(charged, question="q", key="k", mechanism="TableMechanism"), "41")
        assert {"description", "describes", "compiled"}.isdisjoint(
            name for line in old.export() for name in json.loads(json.loads(line)["body"])
        )
    by_sql(session(FIRST, folder, where), folder)
    ledger = Ledger(where)
    assert ledger.find("k").answer == "41"
    assert ledger.verify().intact
    told = Statement.of(ledger).to_dict()["described"]
    assert (told["not_recorded"], [one["charges"] for one in told["versions"]]) == (1, [1])
    assert [line["mark"] for line in lines(ledger) if line["what"] == "not recorded"] == [ASSERTED]
    assert "Not recorded" in Statement.of(ledger).to_markdown()
    assert refusal(session, REFUSED["unit column"], folder, where).code == "DP608"


# --- tampering ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ["another digest", "another text"])
def test_a_description_lies_in_the_chain(attack, folder, tmp_path):
    """Rows that were computed anew, hashes and all, after the description was exchanged: they do not add up."""
    by_sql(session(FIRST, folder, tmp_path / "a.ledger"), folder)
    forged = Ledger(tmp_path / "b.ledger", limit=Limit.filter(**LIMIT), unit="patient", dataset="visits")
    store, rows = forged._store, list(Ledger(tmp_path / "a.ledger")._store.rows())
    other = Description.of(data(REFUSED["unit column"], folder).public_description())
    with writing(store):
        last = store.last()
        for row in rows[1:]:
            body = chain.read_row(row)
            said = {name: body.get(name) for name in (*chain.SAID, *chain.SAID_BY_SOME)}
            if attack == "another text" and last.number == 0:
                first = Description.of(data(FIRST, folder).public_description())
                state = forged.limit.start().to_dict()
                for one in (first, other):
                    last = chain.next_row(
                        last, "described", time=body["time"], state=state, describes=one.facts
                    )
                    store.append(last)
            said["description"] = other.digest
            said["settles"] = None if said["settles"] is None else last.number
            answer = chain.answer_of(row)
            last = chain.next_row(
                last, row.kind, time=body["time"], state=body["state"], answer=answer, **said
            )
            store.append(last)
    found = forged.verify()
    assert not found.intact
    words = "describes other people" if attack == "another text" else "names a description that there is not"
    assert any(words in finding.text for finding in found.findings)


# --- kept answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LISTED)
def test_a_key_stands_for_one_meaning_of_its_question(name, folder, tmp_path):
    book = tmp_path / "visits.ledger"
    total = "SELECT COUNT(*) FROM visits"
    first = session(FIRST, folder, book).sql(total, epsilon=0.1, key="k")
    other, words = LISTED[name]
    asked = session(other, folder, book)
    known = Description.of(data(FIRST, folder).public_description())
    now = Description.of(asked.data.public_description())
    altered = any(change.alters for change in list_changes(known, now))
    assert altered is (name in {"bounds", "no bounds", "version"}), words
    if altered:
        assert refusal(asked.sql, total, epsilon=0.1, key="k").code == "DP604"
        assert refusal(asked.release_batch, {"k": (total, {"epsilon": 0.1})}).code == "DP604"
    else:
        assert asked.sql(total, epsilon=0.1, key="k").to_json() == first.to_json()


def test_a_key_of_one_data_set_is_no_key_of_another(folder, tmp_path):
    book = Ledger(tmp_path / "all.ledger", limit=Limit.filter(epsilon=10), unit="patient")
    tables = [pa.table({"pid": list(range(count))}) for count in (300, 20)]
    opened = [
        dp.open({"t": table}, dp.each("pid", at_most=1, word="patient"), name=name)
        for table, name in zip(tables, ("one", "two"), strict=True)
    ]
    sessions = [dp.Session(one, ledger=book) for one in opened]
    sessions[0].sql("SELECT COUNT(*) FROM t", epsilon=0.1, key="k")
    assert refusal(sessions[1].sql, "SELECT COUNT(*) FROM t", epsilon=0.1, key="k").code == "DP604"
    both = {"k": ("SELECT COUNT(*) FROM t", {"epsilon": 0.1})}
    assert refusal(sessions[1].release_batch, both).code == "DP604"


@pytest.mark.parametrize("reserved", [True, False])
@pytest.mark.parametrize("asking", [{}, {"analyst": "bo"}, {"project": "ana"}])
def test_a_kept_answer_belongs_to_the_one_who_asked(reserved, asking, folder, tmp_path):
    """Nobody else is shown it under its key: not without a name, not under another one."""
    limit = Limit.filter(epsilon=10, analysts={"ana": 0.5, "bo": 0.5}, reserved=reserved)
    book = tmp_path / "visits.ledger"
    ana = dp.Session(data(FIRST, folder), limit=limit, ledger=book, analyst="ana")
    mechanism = dp.Laplace(epsilon=0.1, sensitivity=4, unit="patient")
    ana.sql(COUNT, epsilon=0.1, key="k")
    ana.sql(COUNT, error="±90", key="e")
    ana.release(mechanism, 60, key="m")
    other = dp.Session(data(FIRST, folder), ledger=book, **asking)
    asked = {
        "k": lambda: other.sql(COUNT, epsilon=0.1, key="k"),
        "all": lambda: other.release_batch({"k": (COUNT, {"epsilon": 0.1})}),
        "e": lambda: other.sql(COUNT, error="±90", key="e"),
        "m": lambda: other.release(mechanism, 60, key="m"),
        "find": lambda: other.find("k", COUNT),
    }
    for name, ask in asked.items():
        assert refusal(ask).code in {"DP604", "DP105"}, name
    assert ana.sql(COUNT, epsilon=0.1, key="k").receipt.cost is None


def test_an_error_and_how_it_is_searched_are_one_question(folder, tmp_path):
    asked = session(FIRST, folder, tmp_path / "visits.ledger")
    asked.sql(COUNT, error="±90", key="e")
    assert refusal(
        asked.release, asked.data["visits"].count(), error="±90", confidence=0.5, key="e"
    ).code == ("DP604")


def test_what_was_chosen_for_one_analyst_is_not_shown_to_a_project_of_that_name(folder, tmp_path):
    found = Opened(protect=dp.each("patient_id", at_most="auto", word="patient"))
    limit = Limit.filter(epsilon=40, delta=1e-6, analysts={"ana": 0.5, "bo": 0.5}, reserved=True)
    book = tmp_path / "visits.ledger"
    dp.Session(data(found, folder), limit=limit, ledger=book, analyst="ana").sql(COUNT, epsilon=1)
    other = dp.Session(data(found, folder), ledger=book, project="ana")
    assert any("not chosen yet" in note for note in other.preview(COUNT, epsilon=1).notes)


# --- the comparison itself ------------------------------------------------------------------------------


def test_every_field_of_a_description_is_compared(folder):
    """A field that `public_description` has and `changes` does not see would be one that nobody lists."""
    whole = data(replace(FIRST, also=("wards",)), folder).public_description()

    def paths(value, at=()):
        if isinstance(value, dict):
            for name, part in value.items():
                yield from paths(part, (*at, name))
        else:
            yield at

    for path in paths(whole):
        other = json.loads(chain.canonical(Description.of(whole).facts))
        inner = other
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = "something else"
        assert list_changes(Description.of(whole), Description.of(other)), path
        assert list_changes(Description.of(other), Description.of(whole)), path
    assert list_changes(Description.of(whole), Description.of(whole)) == []


def test_a_description_is_told_apart_by_its_text():
    one = Description.of({"name": "visits", "at_most": 4, "bounds": (Fraction(1, 2), float("inf"))})
    assert one.digest == chain.digest(one.text)
    assert Description.of(one) is one
    assert Description.of(dict(reversed(one.facts.items()))).digest == one.digest
    assert refusal(Description.of, "visits.toml").code == "DP104"


def test_before_the_first_charge_a_slip_can_be_corrected(where, folder):
    """A ledger is bound by what was charged, not by what somebody opened it with."""
    session(REFUSED["greater bound"], folder, where)
    corrected = session(FIRST, folder, where)
    session(REFUSED["unit column"], folder, where)
    by_sql(corrected, folder)
    by_sql(corrected, folder)
    for other in REFUSED.values():
        assert refusal(session, other, folder, where).code == "DP608"
    ledger = Ledger(where)
    assert ledger.verify().intact
    told = Statement.of(ledger).to_dict()["described"]["versions"]
    assert [version["charges"] for version in told] == [0, 2]
    assert {line["words"] for line in lines(ledger) if line["what"] == "rows of one unit"} == {
        "each contributes at most 4 rows; extra rows are down-weighted."
    }


def test_the_rows_of_a_ledger_are_not_read_again_for_every_charge(folder, tmp_path):
    """What was looked through once for descriptions is not looked through again."""
    book = session(FIRST, folder, tmp_path / "visits.ledger")
    asked = []
    looked = book.ledger._store.description_rows
    book.ledger._store.description_rows = lambda after: asked.append(after) or looked(after)
    for _ in range(3):
        by_hand(book, folder)
    assert asked == [0, 0, 1]
