# SPDX-License-Identifier: Apache-2.0
"""What the words of a command name: a data set by its description, a ledger by its file, a limit.

**Guarantee.** A command that only reads never makes a ledger, and no ledger is made without a
stated limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import check
from discreet.cli.numbers import number
from discreet.errors import BadParameter, LedgerError
from discreet.paths import check_address, short_path, stem_of

if TYPE_CHECKING:
    from discreet.ledger import Ledger, Limit
    from discreet.session import Session
    from discreet.tables.ask.start import Dataset

#: Data sets that come with the library, by name.
SHIPPED = ("adult",)
_AMOUNTS = {"eps": "epsilon", "epsilon": "epsilon", "delta": "delta", "rho": "rho", "mu": "mu"}
_EXAMPLE = "--limit eps=1,delta=1e-6"


def data_at(word: str) -> Dataset:
    """The data set that a description names; `adult` is the one that comes with the library."""
    from discreet import data
    from discreet.tables.open import open as open_data

    if is_shipped(word):
        return open_data(data.path(f"{word}.toml"))
    check_address(word)
    if Path(word).suffix.lower() == ".toml":
        return open_data(word)
    stem = stem_of(word, "visits")
    raise BadParameter(
        "DP105",
        f"--data must name the description of a data set, a .toml file, not {short_path(word)!r}.",
        why="the privacy unit and the bounds of values must not be read off the rows.",
        fix=f"discreet describe {short_path(word)} --out {stem}.toml   and complete it; or  --data adult",
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
            f"there is no ledger {short_path(word)}.",
            why="a new ledger would show that nothing was spent.",
            fix=f"discreet query 'SELECT …' --data visits.toml --epsilon 0.1 --ledger {short_path(word)} {_EXAMPLE}   makes one",
        )
    return Ledger(word)


def exists(word: str) -> bool:
    """Whether the ledger may exist: a file that does, or a server, which is asked later."""
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
    who: Mapping[str, str | None],
    *,
    read_only: bool = False,
) -> Session:
    """A session on the ledger that was named, or that the description names.

    A command that only reads gets one in memory where none exists yet; every other command needs a
    ledger and a limit.
    """
    from discreet.ledger import Limit
    from discreet.session import Session, limit_of

    address = ledger if ledger is not None else data.budget.get("ledger")
    stated_limit = None if limit is None else read_limit(limit)
    if read_only and (address is None or not exists(address)):
        chosen = stated_limit or limit_of(data.budget) or Limit.odometer(delta=1e-6)
        return Session(data, limit=chosen, ledger=":memory:", **who)
    if address is None:
        raise BadParameter(
            "DP107",
            "no ledger is named.",
            why="the cost must outlive the command, or the next one would spend it again.",
            fix=f'--ledger {data.name}.ledger, or in the description:  [budget]  ledger = "{data.name}.ledger"',
        )
    if stated_limit is None and not exists(address) and limit_of(data.budget) is None:
        raise BadParameter(
            "DP107",
            f"the ledger {address} does not exist yet, and no limit is stated.",
            why="a ledger without a limit would refuse nothing.",
            fix=f"{_EXAMPLE}, or in the description:  [budget]  epsilon = 1.0  delta = 1e-6",
        )
    return Session(data, limit=stated_limit, ledger=address, **who)


def has_limit(session: Session) -> bool:
    """Whether the ledger has a limit, of which a fraction can be spent."""
    return session.ledger.limit.kind != "odometer"


def read_limit(text: str) -> Limit:
    """A limit in words: eps=1, eps=1,delta=1e-6, rho=0.5, mu=1."""
    from discreet.ledger import Limit

    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    if not parts or set(parts) - set(_AMOUNTS):
        raise BadParameter(
            "DP105",
            f"{text!r} is not a limit.",
            why="a limit is eps, eps with delta, rho (zero-concentrated) or mu (Gaussian).",
            fix=f"{_EXAMPLE}   --limit rho=0.5   --limit mu=1",
        )
    checks = {"delta": check.delta}
    amounts: dict[str, Any] = {
        _AMOUNTS[name]: number(f"--limit {name}", word, checks.get(name, check.positive), _EXAMPLE)
        for name, word in parts.items()
    }
    return Limit.filter(**amounts)
