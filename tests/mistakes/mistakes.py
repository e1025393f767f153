# SPDX-License-Identifier: Apache-2.0
"""A mistake, what it must be answered with, and what it must not cost.

A `Mistake` is what a beginner writes, the code of the error, the words of its Fix line that are to be pasted, and the
corrected text, which holds those words. `check_mistake` runs both in a `Place` and claims five things: the code; that the
fix, applied, works; that nothing was spent and no row was read; that no value of the data is in the error; and that the
fix does not change who is protected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from discreet.errors import CODES, DiscreetError

_WORD = re.compile(r"[\w.@-]+")


@dataclass(frozen=True)
class Mistake:
    """`right` holds `fix`, which is all of it if none is given; or the fix is to leave out `left_out`."""

    wrong: str
    code: str
    fix: str
    right: str = ""
    left_out: str = ""
    first: str = ""  # what was done before, rightly

    def __post_init__(self) -> None:
        assert self.code in CODES
        assert self.fix
        if self.left_out:
            assert not self.right
            assert self.left_out in self.wrong
        else:
            assert self.fix in self.corrected, (self.fix, self.right)
            assert self.corrected != self.wrong

    @property
    def corrected(self) -> str:
        """What the beginner writes after having read the error."""
        return self.wrong.replace(self.left_out, "", 1) if self.left_out else self.right or self.fix

    def __str__(self) -> str:
        return f"{self.code} {' '.join(self.wrong.split())[:70]}"


class Place(Protocol):
    """Where a text is run."""

    secrets: frozenset[str]

    def run(self, text: str) -> Any:
        """Run it; a refusal is raised."""

    def spent(self) -> Any:
        """The rows in the ledger, and how often rows of the data were read."""


def mistakes(*several: Mistake) -> pytest.MarkDecorator:
    """A test for each; no two of them are the same."""
    assert len({one.wrong for one in several}) == len(several)
    return pytest.mark.parametrize("mistake", several, ids=str)


def check_mistake(mistake: Mistake, place: Place) -> DiscreetError:
    """The four claims; gives back the error, for whoever claims more."""
    if mistake.first:
        place.run(mistake.first)
    before = place.spent()
    with pytest.raises(DiscreetError) as refused:
        place.run(mistake.wrong)
    error = refused.value
    assert error.code == mistake.code, str(error)
    assert mistake.fix in error.fix, str(error)
    assert error.spent == "nothing", str(error)
    assert place.spent() == before, "a mistake was paid for, or read rows"
    assert not place.secrets & shown(error, mistake.wrong), str(error)
    assert weakened(error.fix, f"{mistake.first}\n{mistake.wrong}") == [], str(error)
    place.run(mistake.corrected)
    return error


#: Whom a text protects: by which column, under which relation, with how many rows.
_UNITS = re.compile(r"""(?:each\(|\bunit ?= ?)["']([^"']+)["']""")
_RELATIONS = re.compile(r"""relation ?= ?["']([^"']+)["']""")
_BOUNDS = re.compile(r"(?:at_most|rows_per_unit) ?= ?([1-9]\d*)\b")
_FORGETTING = re.compile(
    r"another\.ledger|(new|fresh|other|second) ledger|(delete|remove) (the|this|your)|(small|great|larg)er at_most"
)


def weakened(fix: str, stated: str) -> list[str]:
    """What in a fix would protect somebody else than was stated, or forget what was spent.

    A fix keeps the column, the relation and the bound that somebody stated; a column is the same if only its spelling differs.
    Where nothing was stated, or what was stated does not exist, it may give an example or all choices.
    """
    found = [word[0] if isinstance(word, tuple) else word for word in _FORGETTING.findall(fix)]
    units = {_plain(unit) for unit in _UNITS.findall(stated)}
    offered = set(map(_plain, _UNITS.findall(fix)))
    # several are all the choices there are, and none of them is proposed
    found += sorted(offered - units) if units and len(offered) == 1 else []
    relations = set(_RELATIONS.findall(stated)) & {"add-remove", "replace"}
    proposed = set(_RELATIONS.findall(fix))
    # without a word the relation is add-remove
    # a relation that a theorem needs is told with what it does not hide
    proposed = set() if "only if" in fix else proposed
    found += [
        one for one in proposed if one not in (relations | {"add-remove"}) and not proposed >= set(_BOTH)
    ]
    found += ["add-remove"] if relations == {"replace"} and proposed == {"add-remove"} else []
    bounds = set(_BOUNDS.findall(stated))
    found += [bound for bound in _BOUNDS.findall(fix) if bounds and bound not in bounds]
    if "each_row" in fix and "each_row" not in stated and "only if nobody" not in fix:
        found.append("each_row")
    return found


_BOTH = ("add-remove", "replace")


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def shown(error: DiscreetError, wrong: str) -> set[str]:
    """The words of an error, without those that the beginner wrote."""
    return {word.strip(".") for word in _WORD.findall(str(error))} - set(_WORD.findall(wrong))
