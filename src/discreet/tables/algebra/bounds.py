# SPDX-License-Identifier: Apache-2.0
"""Which contribution bound holds for the rows of a relation, if each table has one of its own.

**Guarantee.** Public: computed from the description and from the question. The engine enforces the
number, whatever it is, so a bound that does not suit a question biases its answer and breaks no
guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.tables.algebra.sums import Linked, Paired, Private, Relation, Stacked, inner_relations

__all__ = ["private_tables", "relation_bound", "stated_bound"]


def stated_bound(stated: int | str | Mapping[str, int] | None, rows: Relation) -> int | None:
    """The bound for the rows of a relation, from one number or from that of each table; None if it
    is not stated, or "auto".
    """
    if isinstance(stated, Mapping):
        return relation_bound(stated, rows)
    return stated if isinstance(stated, int) else None


def relation_bound(bounds: Mapping[str, int], rows: Relation) -> int | None:
    """The bound for the rows of a relation; None if no table that it reads has one.

    A join has the greatest bound of its tables, a union the sum of those of its parts. EXISTS and
    IN do not add rows.
    """
    match rows:
        case Private() | Linked():
            return bounds.get(rows.table)
        case Paired() if rows.kind in {"semi", "anti"}:
            return relation_bound(bounds, rows.rows)
        case Stacked():
            parts = [relation_bound(bounds, part) for part, _ in rows.parts]
            return None if None in parts else sum(part for part in parts if part is not None)
    inner = [relation_bound(bounds, part) for part in inner_relations(rows)]
    return max((bound for bound in inner if bound is not None), default=None)


def private_tables(rows: Relation) -> tuple[str, ...]:
    """The private tables whose rows a relation has, each once; those of EXISTS and IN are not."""
    match rows:
        case Private() | Linked():
            return (rows.table,)
        case Paired() if rows.kind in {"semi", "anti"}:
            return private_tables(rows.rows)
    return tuple(dict.fromkeys(name for part in inner_relations(rows) for name in private_tables(part)))
