# SPDX-License-Identifier: Apache-2.0
"""GROUP BY: keys and their public values.

**Guarantee.** The values of a key come from the description, the question or a public table. If
none of them declares the values, `values` is None and key selection finds the groups privately.
Real numbers cannot be keys.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from sqlglot import exp

from discreet.tables.algebra.expr import Constant, Expr, Read
from discreet.tables.algebra.types import NUMBER
from discreet.tables.ask.build import on_grid
from discreet.tables.ask.columns import public_values
from discreet.tables.ask.domain import Facts, domain, joint_domain, shared_parts
from discreet.tables.ask.question import Key
from discreet.tables.ask.sql.refuse import node_text, question_error, whole_text
from discreet.tables.ask.sql.scalar import Scalar
from discreet.tables.ask.sql.selected import SelectedRows

__all__ = ["combinations", "key", "key_expression"]

#: Every group gets noise and a row of the answer.
_MOST_GROUPS = 100_000


def key(node: exp.Expression, name: str, rows: SelectedRows) -> Key:
    """A key of GROUP BY with its public values."""
    of = key_expression(node, rows)
    values = domain(of, rows.facts())
    if values == ():
        raise question_error(
            "DP704",
            f"{node_text(node)} has no value that the conditions allow.",
            "the answer would have no group.",
            "leave out one of the conditions",
        )
    return Key(name, of, values, whole_text(node))


def key_expression(node: exp.Expression, rows: SelectedRows) -> Expr:
    """The expression of a key: a text, a truth value, a date or a whole number."""
    ref = rows.scope.column(node)
    scalar = Scalar(rows.scope, node_text(node))
    if ref is None:
        return _keylike(node, on_grid(scalar.term(node)))
    column = ref.table.columns[ref.column]
    if ref.is_unit:
        # This call refuses it.
        return scalar.read_unclamped(ref)
    if ref.owner_keys(rows.tables):
        raise _not_a_key_error(
            node, "a key that leads to one unit", f"leave {node_text(node)} out of GROUP BY"
        )
    if column.kind in {"real", "decimal"}:
        raise _not_a_key_error(node, "a real number")
    if column.kind != "integer":
        return scalar.read_clamped(ref)
    is_listed = (ref.table.name, ref.column) in rows.known or column.values is not None
    if is_listed or not ref.table.private:
        return scalar.read_unclamped(ref)
    if column.bounds is not None:
        return scalar.read_clamped(ref)
    of = scalar.read_unclamped(ref)
    if domain(of, rows.facts()) is None:
        raise _not_a_key_error(node, "a number without bounds")
    return of


def combinations(keys: tuple[Key, ...], rows: SelectedRows) -> tuple[tuple[Any, ...], ...] | None:
    """The public groups of several keys of one public table; None if the product of all values is
    meant.
    """
    if any(key.values is None for key in keys):
        return None
    tables = [_public_table(key, rows) for key in keys]
    groups_of_keys: list[tuple[tuple[int, ...], list[tuple[Any, ...]]]] = []
    for table in dict.fromkeys(tables):
        places = tuple(place for place, other in enumerate(tables) if other == table)
        if table is None:
            groups_of_keys += _private_parts(places, keys, rows.facts())
        else:
            groups_of_keys.append((places, _joint(table, [keys[place] for place in places], rows)))
    if prod(len(groups) for _, groups in groups_of_keys) > _MOST_GROUPS:
        raise question_error(
            "DP704",
            f"the keys have more than {_MOST_GROUPS} combinations.",
            "each combination gets its own noise, and most of them would be empty.",
            "group by fewer columns, or by coarser buckets",
        )
    if all(len(places) == 1 for places, _ in groups_of_keys):
        return None
    return tuple(
        _in_order(groups_of_keys, chosen) for chosen in product(*(groups for _, groups in groups_of_keys))
    )


def _private_parts(
    places: tuple[int, ...], keys: tuple[Key, ...], facts: Facts
) -> list[tuple[tuple[int, ...], list[tuple[Any, ...]]]]:
    """The groups of each key, or those of several keys of one column together: no 30 February."""
    groups_of_keys: list[tuple[tuple[int, ...], list[tuple[Any, ...]]]] = []
    for dependent in shared_parts([keys[place].of for place in places], facts):
        joint_places = tuple(places[place] for place in dependent)
        joint = (
            joint_domain([keys[place].of for place in joint_places], facts) if len(joint_places) > 1 else None
        )
        if joint is None or len(joint) == prod(len(keys[place].values or ()) for place in joint_places):
            groups_of_keys += [
                ((place,), [(value,) for value in keys[place].values or ()]) for place in joint_places
            ]
        else:
            groups_of_keys.append((joint_places, joint))
    return groups_of_keys


def _in_order(
    parts: list[tuple[tuple[int, ...], Any]], chosen: tuple[tuple[Any, ...], ...]
) -> tuple[Any, ...]:
    pairs = [
        pair
        for (places, _), values in zip(parts, chosen, strict=True)
        for pair in zip(places, values, strict=True)
    ]
    return tuple(value for _, value in sorted(pairs, key=lambda pair: pair[0]))


def _joint(table: str, keys: list[Key], rows: SelectedRows) -> list[tuple[Any, ...]]:
    """The groups of several keys that occur together in their public table."""
    columns = [key.of.column for key in keys if isinstance(key.of, Read)]
    rows_of_table = public_values(rows.scope.dataset, table, tuple(columns))
    allowed = [set(key.values or ()) for key in keys]
    groups = [
        row for row in rows_of_table if all(value in fits for value, fits in zip(row, allowed, strict=True))
    ]
    # A left join keeps rows without a match, so all keys may be NULL.
    missing = (None,) * len(columns)
    return [*groups, missing] if table in rows.scope.optional() and missing not in groups else groups


def _public_table(key: Key, rows: SelectedRows) -> str | None:
    """The public table that has this key, if there is one."""
    if not isinstance(key.of, Read) or rows.scope.dataset.tables[key.of.table].private:
        return None
    return key.of.table


def _keylike(node: exp.Expression, of: Expr) -> Expr:
    if isinstance(of, Constant):
        raise question_error(
            "DP704",
            f"{node_text(node)} has the same value in every row.",
            "it makes a single group.",
            "leave it out",
        )
    if of.type.kind == NUMBER and of.type.places:
        raise _not_a_key_error(node, "a real number")
    return of


def _not_a_key_error(node: exp.Expression, what: str, instead: str = "") -> Exception:
    return question_error(
        "DP704",
        f"{node_text(node)} is {what}, and cannot be grouped by.",
        "nearly every row would be its own group, and no such group can be shown.",
        instead or f"GROUP BY BUCKET({node_text(node)}, 0, 10, 20, 50)   or declare bounds or values for it",
    )
