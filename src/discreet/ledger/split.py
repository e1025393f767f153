# SPDX-License-Identifier: Apache-2.0
"""The body of a row split at its commas: fast enough for a ledger with a hundred thousand rows.

**Guarantee.** `split_body(body)` is None, or what `json.loads` gives; then the body is canonical. A
caller that gets None reads the body as JSON and writes it again, which takes ten times as long.
`BodySplitter().split(body)` gives the same, and remembers costs and guarantees.

Why it holds: a body is an object with its keys in order. If every value, by itself, is canonical
JSON of the expected type, and exactly the keys are between them, the whole is canonical, and JSON
has no second way to read it. Cost and guarantee are long and the same in many rows. They end
at the first key after them, so a body that has the same text there, with the key that follows, has
the same cost and the same guarantee.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from discreet.json_types import JsonObject, JsonValue

_TEXT = r'(?:null|"([ !#-\[\]-~]*(?:\\.[ !#-\[\]-~]*)*)")'
_HEX = r'"([0-9a-f]{64})"'
_WHOLE = r"0|[1-9][0-9]*"
_AMOUNTS = r'((?:"[ !#-\[\]-z|~"]*")?)'
_HEAD = re.compile(
    rf'\{{"about":null,"analyst":{_TEXT},"answer":(?:null|{_HEX}),(?:"compiled":(true),)?"cost":'
)
_TAIL = re.compile(
    rf',"key":{_TEXT},"kind":"(reserved|committed)","mechanism":{_TEXT},"number":({_WHOLE}),"previous":{_HEX},'
    rf'"project":{_TEXT},"purpose":{_TEXT},"question":{_TEXT},"settles":(?:null|({_WHOLE})),'
    rf'"state":\{{{_AMOUNTS}\}},"time":"([0-9T:.+-]*)","version":"([0-9a-z.+]*)"\}}'
)
_KEY = ',"key":'
_DESCRIBED = re.compile(rf'(.*),"description":{_HEX}', re.DOTALL)
#: Prices that a splitter remembers, and the most recent ones, which it recognises without
#: searching.
_REMEMBERED, _RECENT = 1000, 8


class Price(NamedTuple):
    """What a body says from its cost up to its key; `text` ends with the name of the key."""

    text: str
    cost: JsonValue
    guarantee: JsonValue
    optional: JsonObject


def canonical_value(text: str) -> Any:
    """The value of a text that is canonical JSON; ValueError if it is not."""
    value = json.loads(text)
    if _canonical(value) != text:
        raise ValueError
    return value


class BodySplitter:
    """Splits the bodies of one ledger. Equal prices are the same objects, which nobody may change.

    **Guarantee.** `split` gives what `split_body` gives.
    """

    def __init__(self) -> None:
        self._read_price = lru_cache(maxsize=_REMEMBERED)(_read_price)
        self._recent: list[Price] = []

    def split(self, body: str) -> dict[str, Any] | None:
        """What the body of a charge or of an answer says; see `split_body`."""
        return _split(body, self._price_at)

    def _price_at(self, body: str, start: int) -> Price:
        for price in self._recent:
            if body.startswith(price.text, start):
                return price
        price = self._read_price(_price_text(body, start))
        self._recent = [price, *self._recent[: _RECENT - 1]]
        return price


def split_body(body: str) -> dict[str, Any] | None:
    """What the body of a charge or of an answer says; None for others and for unusual spellings."""
    return _split(body, lambda body, start: _read_price(_price_text(body, start)))


def _split(body: str, price_at: Callable[[str, int], Price]) -> dict[str, Any] | None:
    head = _HEAD.match(body)
    if head is None:
        return None
    try:
        price = price_at(body, head.end())
        tail = _TAIL.fullmatch(body, head.end() + len(price.text) - len(_KEY))
        return None if tail is None else _join_values(head, tail, price)
    except (ValueError, RecursionError):
        return None


def _price_text(body: str, start: int) -> str:
    """The text from the cost up to and with the name of the key; ValueError if there is none."""
    guarantee = body.index(',"guarantee":', start)
    return body[start : body.index(_KEY, guarantee) + len(_KEY)]


def _read_price(text: str) -> Price:
    cost, _, guarantee = text.removesuffix(_KEY).partition(',"guarantee":')
    optional: JsonObject = {}
    for name in ("in_session", "held"):
        if guarantee.endswith(f',"{name}":true'):
            guarantee = guarantee.removesuffix(f',"{name}":true')
            optional[name] = True
    described = _DESCRIBED.fullmatch(cost) if cost.endswith('"') else None
    if described is not None:
        cost, optional["description"] = described[1], described[2]
    return Price(text, canonical_value(cost), canonical_value(guarantee), optional)


def _join_values(head: re.Match[str], tail: re.Match[str], price: Price) -> JsonObject:
    analyst, answer, compiled = head.groups()
    key, kind, mechanism, number, previous, project, purpose, question, settles, state, time, version = (
        tail.groups()
    )
    if "\\" in head[0] or "\\" in tail[0]:
        texts = (analyst, key, mechanism, project, purpose, question)
        analyst, key, mechanism, project, purpose, question = map(_text, texts)
    values = {
        "about": None,
        "analyst": analyst,
        "answer": answer,
        "cost": price.cost,
        "guarantee": price.guarantee,
        "key": key,
        "kind": kind,
        "mechanism": mechanism,
        "number": int(number),
        "previous": previous,
        "project": project,
        "purpose": purpose,
        "question": question,
        "settles": None if settles is None else int(settles),
        "state": _amounts(state),
        "time": time,
        "version": version,
        **price.optional,
    }
    if compiled:
        values["compiled"] = True
    return values


def _text(inside: str | None) -> str | None:
    """The text between two quotation marks, after its escapes were read."""
    text: str | None = None if inside is None else canonical_value(f'"{inside}"')
    return text


def _amounts(text: str) -> dict[str, str]:
    """The inside of an object of texts with nothing to escape in them; its names must be in order."""
    quoted = text.split('"')
    names = quoted[1::4]
    amounts = dict(zip(names, quoted[3::4], strict=True))
    if quoted[::2] != _between_quotes(len(names)) or len(amounts) < len(names) or names != sorted(names):
        raise ValueError
    return amounts


@lru_cache(maxsize=100)
def _between_quotes(count: int) -> list[str]:
    """What stands before, between and behind the quoted texts of an object with so many names."""
    return ["", *([":", ","] * count)[:-1], ""] if count else [""]


_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode
