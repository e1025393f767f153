# SPDX-License-Identifier: Apache-2.0
"""Cubes with private keys: key selection finds their values, and all tables are planned for them.

Rows whose value was not found count under "(other)", so that every subtotal is the sum of its
parts and no row is lost.

**Guarantee.** The composition of all key selections and of Gaussian noise, whatever the selections
find: `PrivateCubeStage.guarantee` is known before data are seen.

Why it holds (compile.proof.md, § 13): the found values are released; "(other)" is a function of a
row and of found values, applied before rows are weighed; and the noise of the tables has the same
guarantee for all values.

What would break it: noise whose guarantee depends on the found values; a refusal after selection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from discreet import privacy
from discreet.errors import BadParameter
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee, compose
from discreet.tables.algebra.engine import Engine
from discreet.tables.algebra.expr import Case, Constant, Expr, IsNull, Logic
from discreet.tables.algebra.strings import Joined
from discreet.tables.algebra.sums import GroupKey, sorted_groups
from discreet.tables.algebra.types import TEXT, Type
from discreet.tables.answer.answer import Noisy
from discreet.tables.ask.question import Key, Question, Workload, WorkloadAxis
from discreet.tables.plan.cube import CubeStage, CubeStrategy
from discreet.tables.plan.groups import is_one_of
from discreet.tables.plan.selection import KeySelection, gaussian_selection
from discreet.tables.plan.stage import ColumnDescription, QueryScope
from discreet.tables.workloads.residuals import closure_of

__all__ = ["OTHER", "PrivateCubeStage", "PrivateCubeStrategy"]

#: The value of rows whose own value was not found.
OTHER = "(other)"
#: The share of ρ of each key selection; the tables get the rest.
_SELECTION = 0.1
#: Previews show margins of error for so many values of a private key.
_EXAMPLES = 10
#: It stands between the texts of a path.
_SEPARATOR = "|"
#: Rows of all tables, with those that follow from them.
_MOST_ROWS = 10**6


@dataclass(frozen=True)
class PrivateCubeStrategy:
    """All tables of a question with private keys, at any spend; `leak` is the δ of all selections."""

    scope: QueryScope
    question: Question
    leak: float

    @property
    def weight(self) -> float:
        return 1.0

    @cached_property
    def selected(self) -> tuple[tuple[Expr, ...], ...]:
        """What is selected: each private key, or the paths of a rollup all at once."""
        if _is_tree(self.question):
            return (tuple(key.of for key in self.question.keys),)
        return tuple((key.of,) for key in self.question.keys if key.values is None)

    @property
    def leak_of_each(self) -> float:
        """The δ of each selection; together they leak no more than `leak`."""
        return self.leak / len(self.selected) * (1 - 1e-12)

    @property
    def cube_share(self) -> float:
        """How much more noise the tables have than they would have alone."""
        return math.sqrt(1 / (1 - _SELECTION * min(len(self.selected), 5)))

    @property
    def selection_share(self) -> float:
        """How much more noise each selection has; together they have at most half of ρ."""
        return math.sqrt(len(self.selected) / (_SELECTION * min(len(self.selected), 5)))

    def gaussian_guarantee(self, noise: float) -> Guarantee:
        unit = self.scope.contribution.unit
        each = [
            privacy.leaky(self.leak_of_each, unit=unit),
            privacy.gaussian(noise * self.selection_share, unit=unit),
        ]
        cube = privacy.gaussian(noise * self.cube_share, unit=unit)
        return compose([*((part, len(self.selected)) for part in each), (cube, 1)])

    def pure_stage(self, epsilon: Fraction) -> PrivateCubeStage:
        """There is none: key selection leaks δ, and a question without δ was refused."""
        raise AssertionError(epsilon)

    def gaussian_stage(self, noise: float) -> PrivateCubeStage:
        """The stage that costs no more than `gaussian_guarantee(noise)`."""
        selections = tuple(
            gaussian_selection(
                replace(self.scope, keys=keys), noise * self.selection_share, self.leak_of_each
            )
            for keys in self.selected
        )
        stage = PrivateCubeStage(self, selections, noise * self.cube_share, self.gaussian_guarantee(noise))
        # Noise that cannot be drawn even for few values is refused before anything is charged.
        stage.cube_for([[] for _ in selections])
        return stage


@dataclass(frozen=True)
class PrivateCubeStage:
    """Key selections, and the noise of the tables of what they find."""

    strategy: PrivateCubeStrategy
    selections: tuple[KeySelection, ...]
    noise: float
    guarantee: Guarantee

    @property
    def suppressed(self) -> str:
        """What the answer says about values that are not shown."""
        first = self.selections[0]
        return (
            f"Values that about {first.units_needed()} or more {first.unit}s share are shown, and with more if one {first.unit} "
            f'has several; rows with others, and with NULL where it is not shown, count under "{OTHER}".'
        )

    def select_keys(self, engine: Engine) -> CubeStage:
        """The stage of all tables, for the values that key selection finds now."""
        return self.cube_for([selection.draw(engine).groups for selection in self.selections])

    def cube_for(self, groups: Sequence[Sequence[GroupKey]]) -> CubeStage:
        """The tables for some found values. If they are too many, the first ones of them are taken:
        post-processing.
        """
        groups = list(map(list, groups))
        while True:
            question = self._question(groups)
            if _rows(question) <= _MOST_ROWS or not any(groups):
                with suppress(BadParameter):
                    return self._stage(question)
                if not any(groups):
                    return self._stage(question)
            groups = [each[: len(each) // 2] for each in groups]

    def _stage(self, question: Question) -> CubeStage:
        scope = replace(self.strategy.scope, keys=tuple(key.of for key in question.keys))
        return CubeStrategy(scope, question).gaussian_stage(self.noise)

    def _question(self, groups: Sequence[Sequence[GroupKey]]) -> Question:
        question = self.strategy.question
        if _is_tree(question):
            return _tree_question(question, groups[0])
        found = iter(groups)
        keys = [
            _with_other(key, [value for (value,) in next(found)]) if key.values is None else key
            for key in question.keys
        ]
        return replace(question, keys=tuple(keys))

    # --- describing --------------------------------------------------------------------------------

    @cached_property
    def example(self) -> CubeStage:
        """The tables for ten values of each private key, for previews."""
        names = [f"{number}" for number in range(_EXAMPLES)]
        question = self.strategy.question
        if _is_tree(question):
            parts = [names if key.values is None else list(key.values) for key in question.keys]
            return self.cube_for([[tuple(part[at % len(part)] for part in parts) for at in range(_EXAMPLES)]])
        return self.cube_for([[(name,) for name in names] for _ in self.selections])

    def draw(self, engine: Engine, groups: Sequence[Any]) -> dict[str, Noisy]:
        """The noisy columns of all tables that were asked for, below each other."""
        return self.select_keys(engine).draw(engine, groups)

    def errors(self, confidence: float = CONFIDENCE) -> dict[str, float | None]:
        """None: the margins of error depend on how many values are found."""
        return dict.fromkeys(self.example.errors(confidence))

    def expected_errors(self) -> dict[str, float]:
        """Those of the example."""
        return self.example.expected_errors()

    def describe(self, confidence: float = CONFIDENCE) -> dict[str, ColumnDescription]:
        """The margins of error of the example."""
        return {
            name: replace(each, error=f"with {_EXAMPLES} values of each private key: {each.error}")
            for name, each in self.example.describe(confidence).items()
        }


def _rows(question: Question) -> int:
    """The rows of all tables."""
    workload = question.workload
    assert workload is not None
    along = math.prod(
        sum(len({leaf[:depth] for leaf in axis.leaves}) for depth in range(len(axis.leaves[0]) + 1))
        for axis in workload.axes
    )
    sizes = [len(key.values or ()) for key in question.keys]
    return along * sum(math.prod(sizes[place] for place in places) for places in closure_of(workload.sets))


def _with_other(key: Key, found: Sequence[Any]) -> Key:
    """A private key with the values that were found, and "(other)" for all others."""
    values = [value for value in found if value != OTHER]
    return Key(
        key.name, _kept_or_other(key.of, is_one_of(key.of, values) if values else None), (*values, OTHER)
    )


def _kept_or_other(of: Expr, is_found: Expr | None) -> Expr:
    other = Constant(OTHER, Type(TEXT))
    return other if is_found is None else Case(((is_found, of),), other)


# --- rollups -------------------------------------------------------------------------------------------


def _is_tree(question: Question) -> bool:
    """Whether the tables are those of a rollup whose last keys are private: found paths are a tree."""
    workload, keys = question.workload, question.keys
    assert workload is not None
    private = [key.values is None for key in keys]
    chain = tuple(tuple(range(length)) for length in range(len(keys) + 1))
    return (
        len(keys) > 1
        and not workload.axes
        and isinstance(workload.objective, str)
        and workload.sets == chain
        and private == sorted(private)
    )


def _tree_question(question: Question, paths: Sequence[GroupKey]) -> Question:
    """The question about the tree of some paths; below each place there is one for all others."""
    keys, workload = question.keys, question.workload
    assert workload is not None
    public = sum(key.values is not None for key in keys)
    found = [path for path in paths if OTHER not in path[public:]]
    prefixes = [
        dict.fromkeys(path[:length] for path in found)
        if length > public
        else dict.fromkeys(product(*(key.values or () for key in keys[:length])))
        for length in range(1, len(keys) + 1)
    ]
    leaves = sorted_groups({*prefixes[-1], *_paths_to_others(prefixes, public, len(keys))})
    mapped = tuple(
        key if place < public else replace(key, of=_found_below(keys, prefixes[place], public), values=())
        for place, key in enumerate(keys)
    )
    named = tuple(
        replace(key, values=tuple(dict.fromkeys(leaf[place] for leaf in leaves)))
        for place, key in enumerate(mapped)
    )
    tree = WorkloadAxis("tree", tuple(leaves))
    return replace(
        question,
        keys=named,
        workload=Workload(((),), workload.objective, workload.grouping, (tree,)),
    )


def _paths_to_others(
    prefixes: Sequence[dict[tuple[Any, ...], None]], public: int, depth: int
) -> Iterator[tuple[Any, ...]]:
    """Below each place that is found and has private places below it, the path to all others."""
    if not public:
        yield (OTHER,) * depth
    for length in range(max(public, 1), depth):
        for prefix in prefixes[length - 1]:
            yield (*prefix, *(OTHER,) * (depth - length))


def _found_below(keys: Sequence[Key], prefixes: dict[tuple[Any, ...], None], public: int) -> Expr:
    """The last of some keys, or "(other)" where it is not found below those before."""
    last = len(next(iter(prefixes), ())) - 1
    if last < 0:
        return Constant(OTHER, Type(TEXT))
    alike: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for path in prefixes:
        texts = path[public:]
        # Joined texts tell found paths apart from all others if no found text has the separator.
        is_plain = not any(_SEPARATOR in text for text in texts if text is not None)
        kind = tuple(text is None for text in texts) if is_plain else texts
        alike.setdefault((path[:public], kind), []).append(texts)
    conditions = [_has_path(keys, above, paths) for (above, _), paths in alike.items()]
    return _kept_or_other(keys[last].of, _any(conditions))


def _has_path(keys: Sequence[Key], above: tuple[Any, ...], paths: Sequence[tuple[Any, ...]]) -> Expr:
    """Whether public keys have these values, and private ones one of some paths, which are NULL in
    the same places.

    One look-up of joined texts serves all paths, because a condition for each takes minutes.
    """
    own = keys[len(above) : len(above) + len(paths[0])]
    parts: list[Expr] = [is_one_of(key.of, [value]) for key, value in zip(keys, above, strict=False)]
    parts += [IsNull(key.of) for key, text in zip(own, paths[0], strict=True) if text is None]
    named = [key.of for key, text in zip(own, paths[0], strict=True) if text is not None]
    if len(paths) == 1:
        texts = [text for text in paths[0] if text is not None]
        parts += [is_one_of(of, [text]) for of, text in zip(named, texts, strict=True)]
    elif named:
        between = Constant(_SEPARATOR, Type(TEXT))
        items = [item for of in named for item in (between, of)][1:]
        joined = [_SEPARATOR.join(text for text in path if text is not None) for path in paths]
        parts.append(is_one_of(Joined(tuple(items)) if len(items) > 1 else items[0], joined))
    return _all(parts)


def _any(conditions: Sequence[Expr]) -> Expr:
    """OR of ORs of halves, because engines refuse deep expressions, and chains are deep."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return Logic("or", (_any(conditions[:middle]), _any(conditions[middle:])))


def _all(conditions: Sequence[Expr]) -> Expr:
    return conditions[0] if len(conditions) == 1 else Logic("and", tuple(conditions))
