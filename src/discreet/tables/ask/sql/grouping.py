# SPDX-License-Identifier: Apache-2.0
"""CUBE, ROLLUP, GROUPING SETS and MARGINALS: the sets of keys that one question is grouped by.

    GROUP BY CUBE (sex, race)                        every subset of the keys
    GROUP BY ROLLUP (region, district)               (region, district), (region), ()
    GROUP BY GROUPING SETS ((sex), (race, sex), ())  these
    GROUP BY MARGINALS(2, sex, race, education)      every two of the keys
    GROUP BY RANGES(age), CUBE (sex, race)           every range of an ordered key, in each of the tables
    GROUP BY PREFIXES(age)                           running totals of an ordered key

Elements beside each other combine each set of one with each set of the other, as in standard SQL.

**Guarantee.** The sets are a function of the text alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product

from sqlglot import exp

from discreet.tables.ask.question import Key, Workload
from discreet.tables.ask.sql.literals import whole_number
from discreet.tables.ask.sql.refuse import name_of, node_text, question_error, require_only

__all__ = [
    "NodeSet",
    "axis_of",
    "check_workload",
    "has_grouping_sets",
    "node_sets",
    "objective_of",
    "rollup_keys",
]

#: The expressions of one set, as they are written.
NodeSet = tuple[exp.Expression, ...]
#: Sets beyond this many cost more to plan than they can gain.
_MOST_SETS = 4_096
#: Rows of all tables, with those that follow from them.
_MOST_ROWS = 10**6
_MARGINALS = "MARGINALS"
#: Words for the questions about an ordered key.
_ORDERED = {"RANGES": "ranges", "PREFIXES": "prefixes"}
#: Aggregates that tables add up.
_ADDITIVE = {"count", "count_of", "sum", "mean", "variance", "stddev"}
_OBJECTIVES = ("each", "cells", "worst")


def has_grouping_sets(group: exp.Expression) -> bool:
    """Whether GROUP BY asks for more than one table."""
    return any(map(_is_element, group.expressions)) or bool(
        group.args.get("rollup") or group.args.get("cube")
    )


def _is_element(node: exp.Expression) -> bool:
    words = {_MARGINALS, *_ORDERED}
    return isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets) or name_of(node) in words


def axis_of(node: exp.Expression) -> tuple[str, exp.Expression] | None:
    """The kind and the key of RANGES(key) or PREFIXES(key); None of other elements of GROUP BY."""
    if name_of(node) not in _ORDERED:
        return None
    arguments = require_only(node, "this", "expressions").expressions
    if len(arguments) != 1:
        raise question_error(
            "DP704",
            f"{node_text(node)} needs one key.",
            "ranges are those of one ordered key.",
            f"GROUP BY {name_of(node)}({node_text(arguments[0]) if arguments else 'age'})",
        )
    return _ORDERED[name_of(node)], arguments[0]


def rollup_keys(node: exp.Expression) -> NodeSet:
    """The keys of ROLLUP (a, b), one for each level; none of other elements of GROUP BY."""
    if not isinstance(node, exp.Rollup):
        return ()
    parts = [_keys_of(part) for part in _parts(node)]
    return _join(parts) if len(parts) > 1 and all(len(part) == 1 for part in parts) else ()


def node_sets(group: exp.Expression, left_out: Sequence[exp.Expression] = ()) -> list[NodeSet]:
    """The sets of GROUP BY, each a sequence of expressions, without some of its elements."""
    require_only(group, "expressions", "rollup", "cube")
    written = [node for node in group.expressions if not any(node is other for other in left_out)]
    # GROUP BY a, b WITH ROLLUP is the spelling of MySQL and of SQL Server.
    if group.args.get("rollup"):
        written = [exp.Rollup(expressions=written)]
    elif group.args.get("cube"):
        written = [exp.Cube(expressions=written)]
    sets: list[NodeSet] = [()]
    for element in written:
        sets = [(*left, *right) for left, right in _bounded_product(sets, _element_sets(element))]
    return sets


def _bounded_product(left: list[NodeSet], right: list[NodeSet]) -> Iterable[tuple[NodeSet, NodeSet]]:
    if len(left) * len(right) > _MOST_SETS:
        raise _too_many_sets_error()
    return product(left, right)


def _element_sets(node: exp.Expression) -> list[NodeSet]:
    """The sets of one element of GROUP BY."""
    if isinstance(node, exp.GroupingSets):
        inner = [_element_sets(part) for part in _parts(node)]
        return [keys for sets in inner for keys in sets]
    if isinstance(node, exp.Rollup):
        parts = [_keys_of(part) for part in _parts(node)]
        return [_join(parts[:length]) for length in range(len(parts), -1, -1)]
    if isinstance(node, exp.Cube):
        parts = [_keys_of(part) for part in _parts(node)]
        if 2 ** len(parts) > _MOST_SETS:
            raise _too_many_sets_error()
        return [_join(some) for size in range(len(parts), -1, -1) for some in combinations(parts, size)]
    if name_of(node) == _MARGINALS:
        return _marginals(node)
    return [_keys_of(node)]


def _parts(node: exp.Expression) -> Sequence[exp.Expression]:
    parts = require_only(node, "expressions").expressions
    if not parts:
        raise question_error(
            "DP704",
            f"{node_text(node) or 'this grouping'} lists no key.",
            "a grouping set is made of keys.",
            "GROUP BY CUBE (sex, race)",
        )
    return list(parts)


def _keys_of(node: exp.Expression) -> NodeSet:
    """One key, or several in parentheses."""
    if isinstance(node, exp.Tuple):
        return _join(map(_keys_of, require_only(node, "expressions").expressions))
    if isinstance(node, exp.Paren):
        return _keys_of(require_only(node, "this").this)
    if name_of(node) in _ORDERED:
        raise question_error(
            "DP704",
            f"{node_text(node)} stands inside another grouping.",
            "an ordered key is crossed with all tables of the question.",
            f"GROUP BY {node_text(node)}, CUBE (…)",
        )
    return (node,)


def _marginals(node: exp.Expression) -> list[NodeSet]:
    arguments = require_only(node, "this", "expressions").expressions
    if len(arguments) < 2:
        raise question_error(
            "DP704",
            f"{node_text(node)} needs a number and the keys.",
            "MARGINALS(2, …) asks for a table of every two of the keys.",
            "GROUP BY MARGINALS(2, sex, race, education)",
        )
    keys = [_keys_of(part) for part in arguments[1:]]
    order = whole_number(arguments[0], "the first argument of MARGINALS", 0, len(keys), "MARGINALS")
    if math.comb(len(keys), order) > _MOST_SETS:
        raise _too_many_sets_error()
    return [_join(some) for some in combinations(keys, order)]


def _join(parts: Iterable[NodeSet]) -> NodeSet:
    return tuple(node for part in parts for node in part)


def check_workload(workload: Workload, keys: Sequence[Key], kinds: Mapping[str, str]) -> None:
    """Refuse tables that are too many or too large, and aggregates that tables do not add up.

    `kinds` has the kind of each aggregate by its text.
    """
    for text, kind in kinds.items():
        if kind not in _ADDITIVE:
            raise question_error(
                "DP706",
                f"{text} does not add up over tables.",
                "the tables of a cube are computed from sums, and share their noise.",
                f"ask for {text} in a question of its own, with GROUP BY",
            )
    closure: set[tuple[int, ...]] = set()
    for places in workload.sets:
        if 2 ** len(places) > _MOST_SETS:
            raise _too_many_sets_error()
        closure.update(some for size in range(len(places) + 1) for some in combinations(places, size))
    if len(closure) > _MOST_SETS:
        raise _too_many_sets_error()
    levels = [
        sum(len({leaf[:depth] for leaf in axis.leaves}) for depth in range(len(axis.leaves[0]) + 1))
        for axis in workload.axes
    ]
    rows = {
        places: math.prod(
            [*levels, *(len(set(values)) for at in places if (values := keys[at].values) is not None)]
        )
        for places in closure
    }
    if sum(rows.values()) > _MOST_ROWS:
        largest = max(rows, key=lambda places: rows[places])
        names = ", ".join(keys[at].name for at in (*range(workload.first_category), *largest))
        raise question_error(
            "DP704",
            f"the tables have {sum(rows.values())} rows, and the table of ({names}) has {rows[largest]} of them.",
            f"each row gets its own noise, and all tables together have at most {_MOST_ROWS} rows.",
            "leave this table out, or group by coarser buckets",
        )


def objective_of(
    written: object, place_of: Callable[[str], int]
) -> str | tuple[tuple[tuple[int, ...], float], ...]:
    """The objective that WITH ( objective = '…' ) states: a word, or weights such as 'sex: 5; race,
    sex: 1'.
    """
    if written in _OBJECTIVES:
        return str(written)
    weights: dict[tuple[int, ...], float] = {}
    for part in str(written).split(";"):
        names, colon, number = part.rpartition(":")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not colon or not 0 <= weight < math.inf:
            raise _objective_error(written)
        places = {place_of(name.strip()) for name in names.split(",") if name.strip()}
        weights[tuple(sorted(places))] = weight
    if not any(weights.values()):
        raise _objective_error(written)
    return tuple(weights.items())


def _objective_error(written: object) -> Exception:
    return question_error(
        "DP706",
        f"{str(written)[:60]!r} is no objective of a cube.",
        "the objective says which errors are to be small: of each table, of all cells, the worst, or weights.",
        "WITH (objective = 'each')   or   'cells'   or   'worst'   or weights of tables:   'sex: 5; sex, race: 1'",
    )


def _too_many_sets_error() -> Exception:
    return question_error(
        "DP706",
        f"the question asks for more than {_MOST_SETS} tables, with the tables that follow from them.",
        "each table is planned and released, and their number doubles with each key of a cube.",
        "GROUP BY MARGINALS(3, …) with the keys, or GROUPING SETS with the tables that you need",
    )
