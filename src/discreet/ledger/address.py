# SPDX-License-Identifier: Apache-2.0
"""The address of a ledger on a server: it says which database and which schema, whoever opens it
and from wherever.

    postgresql://user@host/database?schema=visits

**Guarantee.** An address that means one ledger today means the same one tomorrow, or is refused.
Nothing that decides which ledger it is comes from an environment variable, from the name of the
user, or from what else there is on the server.

Why that is needed: where a part of an address is left to a default, a schema that appears in front
of the others, a role with another search path or a variable in the environment lead to a place
where there is no ledger yet. A limit makes one there, and all that was spent is forgotten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from discreet.errors import LedgerError

__all__ = ["Address", "ambiguous_address_error"]

#: The one schema of a search path that was set in the address.
_ONE_PATH = re.compile(r"""(?:-c\s*|--)search_path=(?:"(?P<exact>[^"]+)"|(?P<folded>\w+))(?=\s|$)""")
_ANY_PATH = re.compile(r"(?:-c\s*|--)search_path\s*=")
#: Variables that libpq takes a server from.
_SERVERS = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE")


@dataclass(frozen=True)
class Address:
    """What the driver is given, and the schema that the address names; None if it names none."""

    dsn: str
    schema: str | None

    @classmethod
    def of(cls, text: str, conninfo: Any) -> Address:
        """From what somebody wrote; `conninfo` is the driver's reader, for which an unreadable one
        says nothing.
        """
        parts = urlsplit(text)
        options = [part for part in parts.query.split("&") if part]
        own = [part for part in options if part.startswith("schema=")]
        rest = "&".join(part for part in options if part not in own)
        dsn = f"{parts.scheme}://{parts.netloc}{parts.path}" + (f"?{rest}" if rest else "")
        settings = conninfo(dsn)
        _check_says_it_all(text, settings)
        named = (
            unquote(own[-1].removeprefix("schema="))
            if own
            else _schema_in_path(str(settings.get("options", "")))
        )
        return cls(dsn, named)


def _schema_in_path(options: str) -> str | None:
    """The schema that a search path in the address names, if it names one and no other."""
    paths = list(_ONE_PATH.finditer(options))
    if len(paths) != 1 or len(_ANY_PATH.findall(options)) != 1:
        return None
    return paths[0]["exact"] or paths[0]["folded"].lower()


def _check_says_it_all(text: str, settings: Mapping[str, Any]) -> None:
    if not {"dbname", "service"} & set(settings):
        raise ambiguous_address_error(
            "the address names no database, so the name of the user or PGDATABASE decides which one it is.",
            address_with_schema(text, None, database=os.environ.get("PGDATABASE") or "visits"),
        )
    outside = [name for name in _SERVERS if os.environ.get(name)]
    if outside and not {"host", "hostaddr", "service"} & set(settings):
        raise ambiguous_address_error(
            f"the address names no host, so the environment ({outside[0]}) decides which server it is.",
            address_with_schema(text, None, host=os.environ.get("PGHOST") or "localhost"),
        )


def address_with_schema(text: str, schema: str | None, *, database: str = "", host: str = "") -> str:
    """The address to write instead, without a password."""
    parts = urlsplit(text)
    user, at, place = parts.netloc.rpartition("@")
    options = [part for part in parts.query.split("&") if part]
    arguments = [part for part in options if not part.startswith(("password=", "schema="))]
    arguments += [f"host={quote(host, safe='')}"] if host else []
    arguments += [f"schema={quote(schema)}"] if schema else []
    path = f"/{quote(database)}" if database else parts.path
    return f"postgresql://{user.partition(':')[0]}{at}{place}{path}" + (
        f"?{'&'.join(arguments)}" if arguments else ""
    )


def several_ledgers_error(text: str, schemas: Sequence[str], here: str | None) -> LedgerError:
    """The error for an address without a schema, in a database that holds a ledger elsewhere than
    it would look now.
    """
    where = " and ".join(schemas[:3])
    return ambiguous_address_error(
        f"its database holds a ledger in the schema {where}, and the search path leads to {here or 'none'}.",
        address_with_schema(text, schemas[0]),
    )


def ambiguous_address_error(what: str, address: str) -> LedgerError:
    """The error for an address that could mean several ledgers."""
    return LedgerError(
        "DP609",
        f"this address could mean several ledgers: {what}",
        why="a ledger that is begun anew in another place would forget what was spent.",
        fix=f"say it in the address:  ledger='{address}'",
    )
