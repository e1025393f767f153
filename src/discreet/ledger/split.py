# SPDX-License-Identifier: Apache-2.0
"""The body of a row taken apart at its commas, for a ledger with a hundred thousand of them.

**Guarantee.** `split_body(body)` is None, or what `json.loads` would give, and then the body is canonical: the one way to write it. Whoever
gets None reads the body as JSON and writes it again, which takes ten times as long.

Why it holds: a body is an object with its keys in order. Where every value, by itself, is canonical JSON of the expected type and
what is between them are exactly the keys, the whole is canonical, and JSON has no second way to read it. Long values that
come again and again (costs and guarantees) are read by `read`, which may remember them for as long as nobody changes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

_TEXT = r'(null|"(?:[ !#-\[\]-~]|\\.)*")'
_HEX = r'"[0-9a-f]{64}"'
_WHOLE = r"0|[1-9][0-9]*"
_AMOUNT = r'"(?:[ !#-\[\]-~]*)":"(?:[0-9a-z/]*)"'
_HEAD = re.compile(
    rf'\{{"about":null,"analyst":{_TEXT},"answer":(null|{_HEX}),(?:"compiled":(true),)?"cost":'
)
_TAIL = re.compile(
    rf',"key":{_TEXT},"kind":"(reserved|committed)","mechanism":{_TEXT},"number":({_WHOLE}),"previous":({_HEX}),'
    rf'"project":{_TEXT},"purpose":{_TEXT},"question":{_TEXT},"settles":(null|{_WHOLE}),'
    rf'"state":\{{((?:{_AMOUNT}(?:,{_AMOUNT})*)?)\}},"time":"([0-9T:.+-]*)","version":"([0-9a-z.+]*)"\}}'
)
_PAIR = re.compile(_AMOUNT.replace("(?:", "("))
_DESCRIBED = re.compile(rf'(.*),"description":({_HEX})', re.DOTALL)


def canonical_value(written: str) -> Any:
    """What a text says that is canonical JSON; ValueError if it is not."""
    found = json.loads(written)
    if _canonical(found) != written:
        raise ValueError
    return found


def split_body(body: str, read: Callable[[str], Any] = canonical_value) -> dict[str, Any] | None:
    """What the body of a charge or of an answer says; None for any other, and for one that is written in another way."""
    head = _HEAD.match(body)
    if head is None:
        return None
    guarantee = body.find(',"guarantee":', head.end())
    key = body.find(',"key":', guarantee)
    tail = _TAIL.fullmatch(body, key) if 0 <= guarantee < key else None
    if tail is None:
        return None
    try:
        return _join_values(head, tail, read, (body[head.end() : guarantee], body[guarantee + 13 : key]))
    except (ValueError, RecursionError):
        return None


def _join_values(
    head: re.Match[str], tail: re.Match[str], read: Callable[[str], Any], between: tuple[str, str]
) -> dict[str, Any]:
    cost, guarantee = between
    analyst, answer, compiled = head.groups()
    key, kind, mechanism, number, previous, project, purpose, question, settles, state, time, version = (
        tail.groups()
    )
    held = guarantee.endswith(',"held":true')
    described = _DESCRIBED.fullmatch(cost) if cost.endswith('"') else None
    found = {
        "about": None,
        "analyst": _text(analyst),
        "answer": _text(answer),
        "cost": read(cost if described is None else described[1]),
        "guarantee": read(guarantee.removesuffix(',"held":true')),
        "key": _text(key),
        "kind": kind,
        "mechanism": _text(mechanism),
        "number": int(number),
        "previous": previous[1:-1],
        "project": _text(project),
        "purpose": _text(purpose),
        "question": _text(question),
        "settles": None if settles == "null" else int(settles),
        "state": _amounts(state),
        "time": time,
        "version": version,
    }
    if compiled:
        found["compiled"] = True
    if described is not None:
        found["description"] = described[2][1:-1]
    if held:
        found["held"] = True
    return found


def _text(written: str) -> str | None:
    if "\\" in written:
        escaped: str = canonical_value(written)
        return escaped
    return None if written == "null" else written[1:-1]


def _amounts(written: str) -> dict[str, str]:
    """The inside of an object of texts with nothing to escape in them, if its names are in order."""
    pairs = _PAIR.findall(written)
    found = dict(pairs)
    if list(found) != sorted(found) or len(found) < len(pairs):
        raise ValueError
    return found


_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode
