# SPDX-License-Identifier: Apache-2.0
"""Rows taken apart at their commas say what JSON says, or are left to JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from discreet import privacy
from discreet.errors import LedgerDamaged
from discreet.ledger import Asker, Ledger, Limit, chain
from discreet.ledger.split import BodySplitter, split_body

many_examples = settings(max_examples=400, deadline=None)
HASH = "0123456789abcdef" * 4

STRANGE = [
    "",
    "null",
    "true",
    '"',
    "\\",
    '\\"',
    '"}',
    "{}",
    "{{}}",
    "\n\t\x00\x7f\x80",
    "ü 𝔊 \u2028",
    "\ud800",
    "\udc00\ud800",
    "\\u0041",
    ',"guarantee":"x"',
    '","guarantee":"x","key":"y',
    ',"key":null,"kind":"committed"',
    '","held":true',
    ',"description":"' + HASH + '"',
    '"cost":null,"description":',
    ',"state":{"epsilon":"0"}',
]
texts = st.one_of(
    st.sampled_from(STRANGE),
    st.text(max_size=8),
    st.lists(st.sampled_from([*STRANGE, "a", ",", ":", "{", "}", '"']), max_size=4).map("".join),
)
maybe = st.none() | texts
numbers = st.integers(0, 3) | st.integers(-1, 10**20)
amounts = st.sampled_from(["0", "1/10", "inf", "17", "1/0", "", "-1", "1e3"])
names = st.sampled_from(
    ["delta", "epsilon", "renyi@1.5", "analyst/ana/epsilon", "", "a b", "{", '"', "ü", "\\"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["guarantee", "key", "held", "description", "ways"]) | texts, inner, max_size=3
        )
    ),
    max_leaves=6,
)
states = st.dictionaries(names, amounts | texts | st.integers(0, 1), max_size=3)
costs = values | st.builds(lambda of: {"ways": [[{"row": "plain", "amounts": of}]]}, states)
hashes = st.just(HASH) | texts
bodies = st.fixed_dictionaries(
    {
        "about": st.none() | st.none() | values,
        "analyst": maybe,
        "answer": st.none() | hashes,
        "cost": costs,
        "guarantee": st.just(privacy.pure(0.1).to_json()) | values,
        "key": maybe,
        "kind": st.sampled_from(["reserved", "committed", "reserved", "committed", "open", "described", ""]),
        "mechanism": maybe,
        "number": numbers,
        "previous": hashes,
        "project": maybe,
        "purpose": maybe,
        "question": maybe,
        "settles": st.none() | numbers,
        "state": states,
        "time": st.just("2030-01-31T10:00:00.000000+00:00") | texts,
        "version": st.just("1.0.0") | texts,
    },
    optional={
        "compiled": st.just(True) | values,
        "description": hashes,
        "describes": values,
        "held": st.just(True) | values,
        "in_session": st.just(True),
        "one more": values,
    },
)


def check_against_json(text):
    """Whether the fast way was taken; and if so, that it found what the slow way finds."""
    found = split_body(text)
    if found is None:
        return False
    slow = json.loads(text)
    assert found == slow
    assert repr(sorted(found.items())) == repr(sorted(slow.items()))  # and of the same types: True is no 1
    assert chain.canonical(slow) == text
    return True


@many_examples
@given(bodies)
def test_a_row_check_against_json(body):
    check_against_json(chain.canonical(body))


PLAIN = {
    "about": None,
    "analyst": "ana",
    "answer": None,
    "cost": Limit.filter(epsilon=1).cost(privacy.pure(0.1)).to_dict(),
    "guarantee": privacy.pure(0.1).to_json(),
    "key": None,
    "kind": "reserved",
    "mechanism": "laplace",
    "number": 3,
    "previous": HASH,
    "project": None,
    "purpose": "",
    "question": "how many?",
    "settles": None,
    "state": {"delta": "0", "epsilon": "1/10"},
    "time": "2030-01-31T10:00:00.000000+00:00",
    "version": "1.0.0",
}
TEXTS = ("analyst", "key", "mechanism", "project", "purpose", "question")
SOME = [
    {},
    {"held": True},
    {"compiled": True},
    {"description": HASH},
    {"in_session": True},
    {"held": True, "compiled": True, "description": HASH, "in_session": True},
]


@many_examples
@given(st.fixed_dictionaries(dict.fromkeys(TEXTS, maybe)), st.sampled_from(SOME))
def test_whatever_is_asked_takes_the_fast_way(said, some):
    assert check_against_json(chain.canonical(PLAIN | said | some))


@settings(max_examples=800, deadline=None)
@given(st.data(), st.fixed_dictionaries(dict.fromkeys(TEXTS, maybe)), st.sampled_from(SOME))
def test_a_row_that_was_changed_says_what_json_says_or_goes_the_slow_way(data, said, some):
    text = chain.canonical(PLAIN | said | some)
    at = data.draw(st.integers(0, len(text)))
    piece = data.draw(
        st.sampled_from(
            [
                *'"\\{}[],: 0-e\n\x7fü',
                "null",
                "true",
                "NaN",
                "00",
                "\\u0041",
                "\\/",
                ',"key":1',
                ',"held":true',
            ]
        )
    )
    changed = text[:at] + piece + text[at + data.draw(st.integers(0, 3)) :]
    check_against_json(changed)


@many_examples
@given(st.data())
def test_a_splitter_says_of_many_rows_what_a_row_says_alone(data):
    splitter = BodySplitter()
    prices = [{"cost": data.draw(costs), "guarantee": data.draw(texts)} for _ in range(3)]
    for number in range(12):
        body = PLAIN | data.draw(st.sampled_from(prices)) | data.draw(st.sampled_from(SOME))
        text = chain.canonical(body | {"number": number})
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(st.sampled_from(["", "0", '"', ',"key":'])) + text[at + 1 :]
        alone, together = split_body(text), splitter.split(text)
        assert repr(together) == repr(alone)


def test_a_splitter_gives_equal_prices_as_the_same_objects():
    split = BodySplitter().split
    first, second = (split(chain.canonical(PLAIN | {"number": number})) for number in (3, 4))
    assert first["cost"] is second["cost"]
    assert split_body(chain.canonical(PLAIN))["cost"] is not first["cost"]


@many_examples
@given(st.data())
def test_a_key_that_comes_twice_goes_the_slow_way(data):
    parts = [f'"{name}":{chain.canonical(value)}' for name, value in (PLAIN | SOME[-1]).items()]
    parts.sort()
    again = data.draw(st.sampled_from(parts))
    parts.insert(data.draw(st.integers(0, len(parts))), again)
    assert split_body("{" + ",".join(parts) + "}") is None


@pytest.mark.parametrize(
    "changed",
    [
        '"number":03',
        '"number":3.0',
        '"number":-0',
        '"number": 3',
        '"number":٣',
        '"question":"how\\u0020many?"',
        '"question":"how many\\/"',
        '"question":"\x7f"',
        '"question":"ü"',
        '"question":"\\uD800"',
        '"settles":00',
        '"state":{"epsilon":"1/10","delta":"0"}',
        '"state":{"delta":"0","delta":"0","epsilon":"1/10"}',
        '"state":{"delta":"0","epsilon":"1\\/10"}',
        '"state":{"delta":"0",,"epsilon":"1/10"}',
        '"guarantee":NaN',
        '"guarantee":1e5',
        '"guarantee":{"b":1,"a":2}',
    ],
)
def test_another_way_to_write_it_goes_the_slow_way(changed):
    text = chain.canonical(PLAIN)
    name = changed.split(":")[0]
    old = f"{name}:{chain.canonical(PLAIN[name.strip(chr(34))])}"
    assert old in text
    assert split_body(text.replace(old, changed)) is None


def rows_of(ledger):
    return list(ledger._store.rows())


@pytest.fixture
def rows():
    with Ledger(":memory:", limit=Limit.filter(epsilon=1)) as ledger:
        for number, text in enumerate(STRANGE[:8]):
            ledger.commit(
                ledger.charge(
                    privacy.pure(0.01), question=text, asker=Asker(purpose=text), key=f"{number}{text}"
                ),
                "[1]",
            )
        yield rows_of(ledger)


def test_every_charge_and_answer_takes_the_fast_way(rows):
    fast = [check_against_json(row.body) for row in rows]
    assert fast == [row.kind in {"reserved", "committed"} for row in rows]


def test_a_letter_that_was_changed_is_found(rows):
    for row in rows:
        for at in range(0, len(row.body), 7):
            letter = "x" if row.body[at] != "x" else "y"
            with pytest.raises(LedgerDamaged):
                chain.read_row(row._replace(body=row.body[:at] + letter + row.body[at + 1 :]))


@many_examples
@given(bodies)
@example(PLAIN)
def test_a_row_with_a_right_hash_is_read_or_refused_as_by_json_alone(body):
    text = chain.canonical(body)
    row = chain.LedgerRow(
        body["number"], body["kind"], body["key"], body["settles"], text, chain.digest(text), None
    )
    # half a character beside the other half is read back as one: no key is made of such
    assume(body["answer"] is None and json.loads(text) == body)
    assert chain.read_row(row) == json.loads(text)


def test_an_entry_that_is_handed_out_may_be_changed():
    with Ledger(":memory:", limit=Limit.filter(epsilon=1)) as ledger:
        for _ in range(3):
            ledger.charge(privacy.pure(0.1))
        first, *_ = (entry for entry in ledger.entries() if entry.kind == "reserved")
        first.cost["ways"].clear()
        assert all(entry.cost["ways"] for entry in ledger.entries() if entry.kind == "reserved")
        assert ledger.verify().intact
