# SPDX-License-Identifier: Apache-2.0
"""Where things lie: a data set by its description, a ledger by its file, a limit in words.

**Guarantee.** A ledger is never made by a command that only looks, and never without a limit that somebody stated.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.cli.numbers import number
from discreet.errors import BadParameter, LedgerError
from discreet.paths import check_address, shown, stem_of

if TYPE_CHECKING:
    from discreet.ledger import Ledger, Limit
    from discreet.session import Session
    from discreet.tables.data.dataset import Dataset

#: Data sets that come with the library, by name.
SHIPPED = ("adult",)
_AMOUNTS = {"eps": "epsilon", "epsilon": "epsilon", "delta": "delta", "rho": "rho", "mu": "mu"}
_EXAMPLE = "--limit eps=1,delta=1e-6"


def data_at(word: str) -> Dataset:
    """The data set that a description names; `adult` is the one that comes with the library."""
    from discreet import data
    from discreet.tables.open import open as opened

    if is_shipped(word):
        return opened(data.path(f"{word}.toml"))
    check_address(word)
    if Path(word).suffix.lower() == ".toml":
        return opened(word)
    stem = stem_of(word, "visits")
    raise BadParameter(
        "DP105",
        f"--data names the description of a data set, a .toml file, and not {shown(word)!r}.",
        why="whom the rows belong to, and between which bounds values lie, is not read off the rows.",
        fix=f"discreet describe {shown(word)} --out {stem}.toml   and complete it; or  --data adult",
    )


def is_shipped(word: str) -> bool:
    """Whether a word means a data set that comes with the library, and not a file of that name."""
    return word in SHIPPED and not Path(word).exists()


def ledger_at(word: str) -> Ledger:
    """A ledger that exists."""
    from discreet.ledger import Ledger

    if not exists(word):
        raise LedgerError(
            "DP603",
            f"there is no ledger {shown(word)}.",
            why="a new one would look as if nothing had been spent.",
            fix=f"discreet query 'SELECT …' --data visits.toml --epsilon 0.1 --ledger {shown(word)} {_EXAMPLE}   makes one",
        )
    return Ledger(word)


def exists(word: str) -> bool:
    """Whether a ledger can be there: a file that is, or a server, which will say itself."""
    if "://" in word:
        return True
    try:
        return Path(word).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False


def session_for(
    data: Dataset,
    ledger: str | None,
    limit: str | None,
    who: dict[str, Any],
    *,
    only_looking: bool = False,
) -> Session:
    """A session on the ledger that was named, or that the description names.

    A command that only looks gets one in memory where there is none yet; every other needs a place and a limit.
    """
    from discreet.ledger import Limit
    from discreet.session import Session, limit_of

    place = ledger if ledger is not None else data.budget.get("ledger")
    stated = None if limit is None else read_limit(limit)
    if only_looking and (place is None or not exists(place)):
        chosen = stated or limit_of(data.budget) or Limit.odometer(delta=1e-6)
        return Session(data, limit=chosen, ledger=":memory:", **who)
    if place is None:
        raise BadParameter(
            "DP107",
            "there is no ledger to write the cost into.",
            why="what was spent has to outlive the command, or the next one would spend it again.",
            fix=f'--ledger {data.name}.ledger, or in the description:  [budget]  ledger = "{data.name}.ledger"',
        )
    if stated is None and not exists(place) and limit_of(data.budget) is None:
        raise BadParameter(
            "DP107",
            f"there is no ledger {place} yet, and no limit to make it with.",
            why="a ledger without a limit could not refuse anything.",
            fix=f"{_EXAMPLE}, or in the description:  [budget]  epsilon = 1.0  delta = 1e-6",
        )
    return Session(data, limit=stated, ledger=place, **who)


def has_limit(session: Session) -> bool:
    """Whether there is a limit that a share can be a share of."""
    return session.ledger.limit.kind != "odometer"


def read_limit(text: str) -> Limit:
    """A limit in words: eps=1, eps=1,delta=1e-6, rho=0.5, mu=1."""
    from discreet.ledger import Limit

    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if not parts or set(parts) - set(_AMOUNTS):
        raise BadParameter(
            "DP105",
            f"{text!r} is no limit.",
            why="a limit is eps, eps with delta, rho (zero-concentrated) or mu (Gaussian).",
            fix=f"{_EXAMPLE}   --limit rho=0.5   --limit mu=1",
        )
    checks = {"delta": check.delta}
    given: dict[str, Any] = {
        _AMOUNTS[name]: number(f"--limit {name}", word, checks.get(name, check.positive), _EXAMPLE)
        for name, word in parts.items()
    }
    return Limit.filter(**given)
