# SPDX-License-Identifier: Apache-2.0
"""A graphical model of measured tables: the distribution of largest entropy among those that fit
them equally well.

p(x) ∝ exp(Σ_r θ_r(x_r), summed over the measured tables r). Its graph joins columns that a table
has together; eliminating columns one by one gives the cliques of a junction tree, whose tables
follow from each other by messages (Lauritzen and Spiegelhalter 1988). The potentials θ are found by
mirror descent on Σ ‖N p_r - y_r‖² / σ_r² (McKenna, Sheldon, Miklau 2019).

**Guarantee.** Post-processing of released numbers: the model depends on them alone.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.tables.synthetic.mixture import NoisyMarginal
from discreet.tables.workloads.residuals import Floats, KeySet

__all__ = ["JunctionTree", "TreeModel", "fit_tree", "tree_cells"]

#: A step must gain this part of what its slope promises.
_GAIN = 0.5
_HALVINGS = 25
#: Stop where a step gains less than this part of the loss.
_LEAST_GAIN = 1e-5
_ABSENT = -1e4


def tree_cells(sizes: Sequence[int], tables: Iterable[KeySet]) -> int:
    """The cells of all cliques of the junction tree of some tables."""
    return sum(math.prod(sizes[key] for key in clique) for clique in _cliques(sizes, tables))


def _cliques(sizes: Sequence[int], tables: Iterable[KeySet]) -> list[KeySet]:
    """Maximal cliques, by eliminating the column that makes the smallest table next."""
    near: dict[int, set[int]] = {key: {key} for key in range(len(sizes))}
    for keys in tables:
        for key in keys:
            near[key].update(keys)
    cells = {key: math.prod(sizes[other] for other in clique) for key, clique in near.items()}
    cliques: list[KeySet] = []
    while near:
        key = min(cells, key=lambda key: (cells[key], key))
        clique = near.pop(key)
        del cells[key]
        if not any(clique <= set(other) for other in cliques):
            cliques.append(tuple(sorted(clique)))
        for other in clique - {key}:
            near[other] = (near[other] | clique) - {key}
            cells[other] = math.prod(sizes[each] for each in near[other])
    return cliques


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each stands after its parent, the clique that it shares most
    columns with.
    """

    sizes: tuple[int, ...]
    cliques: tuple[KeySet, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[KeySet]) -> JunctionTree:
        """The tree of the cliques of some tables: a spanning tree with the most columns in common."""
        left = _cliques(sizes, tables)
        order, parents = [left.pop()], [-1]
        while left:
            shared, place, parent = max(
                (len(set(clique) & set(other)), -at, -above)
                for at, clique in enumerate(left)
                for above, other in enumerate(order)
            )
            del shared
            order.append(left.pop(-place))
            parents.append(-parent)
        return cls(tuple(sizes), tuple(order), tuple(parents))

    def shape(self, keys: KeySet) -> tuple[int, ...]:
        """The number of values of some columns."""
        return tuple(self.sizes[key] for key in keys)

    @cached_property
    def separators(self) -> tuple[KeySet, ...]:
        """The columns that each clique shares with its parent."""
        return tuple(
            () if parent < 0 else tuple(key for key in clique if key in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def clique_of(self, keys: KeySet) -> int | None:
        """The smallest clique that has some columns; None if none has."""
        holding = [place for place, clique in enumerate(self.cliques) if set(keys) <= set(clique)]
        return min(holding, key=lambda place: math.prod(self.shape(self.cliques[place])), default=None)

    def marginals(self, potentials: Sequence[Floats]) -> tuple[list[Floats], float]:
        """The probabilities of each clique, from the logarithms of its factors; and the logarithm
        of the total.
        """
        inward = list(potentials)
        messages: list[Floats] = [np.zeros(())] * len(inward)
        for place in range(len(inward) - 1, 0, -1):
            parent, shared = self.parents[place], self.separators[place]
            messages[place] = _log_sum(inward[place], self.cliques[place], shared)
            inward[parent] = inward[parent] + _spread(messages[place], shared, self.cliques[parent])
        total = float(_log_sum(inward[0], self.cliques[0], ()))
        outward = [inward[0] - total]
        for place in range(1, len(inward)):
            parent, shared = self.parents[place], self.separators[place]
            above = _log_sum(outward[parent], self.cliques[parent], shared)
            outward.append(inward[place] + _spread(above - messages[place], shared, self.cliques[place]))
        return [np.exp(logs) for logs in outward], total


def _log_sum(logs: Floats, keys: KeySet, kept: KeySet) -> Floats:
    """The logarithms of the sums over all other columns."""
    axes = tuple(at for at, key in enumerate(keys) if key not in kept)
    greatest = logs.max(axis=axes, keepdims=True)
    sums: Floats = np.log(np.exp(logs - greatest).sum(axis=axes)) + greatest.squeeze(axis=axes)
    return sums


def _spread(table: Floats, keys: KeySet, into: KeySet) -> Floats:
    """A table in the axes of one with more columns."""
    return np.expand_dims(table, tuple(at for at, key in enumerate(into) if key not in keys))


def sum_to(table: Floats, keys: KeySet, kept: KeySet) -> Floats:
    """The table of some of the columns."""
    sums: Floats = table.sum(axis=tuple(at for at, key in enumerate(keys) if key not in kept))
    return sums


@dataclass(frozen=True, eq=False)
class TreeModel:
    """The potentials of the measured tables, one for each set of columns."""

    sizes: tuple[int, ...]
    potentials: Mapping[KeySet, Floats]
    #: χ² per degree of freedom where the fit ended, and its number of steps.
    misfit: float = math.nan
    steps: int = 0

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree of the measured tables."""
        return JunctionTree.of(self.sizes, self.potentials)

    @cached_property
    def clique_tables(self) -> list[Floats]:
        """The probabilities of each clique."""
        return self.tree.marginals(self._clique_potentials)[0]

    @cached_property
    def log_total(self) -> float:
        """The logarithm of Σ exp(Σ θ)."""
        return self.tree.marginals(self._clique_potentials)[1]

    @property
    def _clique_potentials(self) -> list[Floats]:
        return add_potentials(self.tree, self.potentials)

    def table(self, keys: KeySet) -> Floats | None:
        """The probabilities of a table inside a clique; None if it is in none."""
        place = self.tree.clique_of(keys)
        if place is None:
            return None
        return sum_to(self.clique_tables[place], self.tree.cliques[place], keys)

    def restrict(self, allowed: Mapping[int, Floats]) -> tuple[TreeModel, float]:
        """The model of rows with these values, each with its share that is allowed; and their share
        of all rows.
        """
        potentials = dict(self.potentials)
        for column, shares in allowed.items():
            logs = np.where(shares > 0, np.log(np.maximum(shares, 1e-300)), _ABSENT)
            potentials[column,] = potentials.get((column,), np.zeros(self.sizes[column])) + logs
        model = TreeModel(self.sizes, potentials, self.misfit, self.steps)
        return model, math.exp(min(0.0, model.log_total - self.log_total))

    def to_dict(self) -> dict[str, Any]:
        """The model as plain JSON types: compressed floats of 32 bits, table after table."""
        numbers = np.concatenate([table.ravel() for table in self.potentials.values()])
        packed = zlib.compress(numbers.astype("<f4").tobytes())
        return {
            "tables": [list(keys) for keys in self.potentials],
            "floats": base64.b64encode(packed).decode(),
            "misfit": self.misfit,
            "steps": self.steps,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], sizes: Sequence[int]) -> TreeModel:
        """The model that `to_dict` wrote."""
        numbers = np.frombuffer(zlib.decompress(base64.b64decode(stored["floats"])), "<f4").astype(np.float64)
        potentials, at = {}, 0
        for listed in stored["tables"]:
            shape = tuple(sizes[key] for key in listed)
            potentials[tuple(listed)] = numbers[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
        if at != len(numbers) or not np.isfinite(numbers).all():
            raise ValueError("the model has another size than its columns")
        return cls(tuple(sizes), potentials, float(stored["misfit"]), int(stored["steps"]))

    def to_single(self) -> TreeModel:
        """The model in floats of 32 bits, as it is stored."""
        narrow = {
            keys: table.astype(np.float32).astype(np.float64) for keys, table in self.potentials.items()
        }
        return TreeModel(self.sizes, narrow, self.misfit, self.steps)


def add_potentials(tree: JunctionTree, potentials: Mapping[KeySet, Floats]) -> list[Floats]:
    """The sum of the potentials in each clique; each table belongs to the smallest clique that has
    it.
    """
    sums = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for keys, potential in potentials.items():
        place = tree.clique_of(keys)
        assert place is not None
        sums[place] += _spread(potential, keys, tree.cliques[place])
    return sums


def fit_tree(
    sizes: Sequence[int],
    total: float,
    measured: Sequence[NoisyMarginal],
    *,
    absent: Iterable[tuple[int, int]] = (),
    start: TreeModel | None = None,
    steps: int = 60,
) -> TreeModel:
    """The model after so many steps of mirror descent, or where a step gains next to nothing."""
    return _TreeFit(tuple(sizes), max(total, 1.0), measured, absent, start).run(steps)


class _TreeFit:
    """The potentials of a model, and the tables that it is fitted to."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        total: float,
        measured: Sequence[NoisyMarginal],
        absent: Iterable[tuple[int, int]],
        start: TreeModel | None,
    ) -> None:
        self.sizes, self.measured = sizes, measured
        self.targets = [each.counts / total for each in measured]
        self.weights = [total**2 / each.variance for each in measured]
        before = {} if start is None else start.potentials
        self.potentials = {
            each.keys: before.get(each.keys, np.zeros(each.counts.shape)).copy() for each in measured
        }
        for column, code in absent:
            self.potentials.setdefault((column,), np.zeros(sizes[column]))[code] = _ABSENT
        self.tree = JunctionTree.of(sizes, self.potentials)
        self.places = [self.tree.clique_of(each.keys) or 0 for each in measured]
        self.freedom = sum(each.counts.size for each in measured)

    def run(self, steps: int) -> TreeModel:
        rate = 1.0 / max(self.weights, default=1.0)
        loss, gradients, tables = self._loss(self.potentials)
        done = 0
        while done < steps:
            done += 1
            rate *= 2
            for _ in range(_HALVINGS):
                moved = {
                    keys: potential - rate * gradients[keys] if keys in gradients else potential
                    for keys, potential in self.potentials.items()
                }
                found, slopes, reached = self._loss(moved)
                promised = sum(
                    float(np.vdot(gradients[keys], tables[keys] - reached[keys])) for keys in gradients
                )
                if loss - found >= _GAIN * promised:
                    break
                rate /= 2
            else:
                break
            gain, loss = loss - found, found
            self.potentials, gradients, tables = moved, slopes, reached
            if gain <= _LEAST_GAIN * loss:
                break
        return TreeModel(self.sizes, self.potentials, 2 * loss / max(self.freedom, 1), done)

    def _loss(
        self, potentials: Mapping[KeySet, Floats]
    ) -> tuple[float, dict[KeySet, Floats], dict[KeySet, Floats]]:
        """χ² / 2, its gradient over the probabilities of the measured tables, and these."""
        cliques, _ = self.tree.marginals(add_potentials(self.tree, potentials))
        loss, gradients, tables = 0.0, dict[KeySet, Floats](), dict[KeySet, Floats]()
        for each, target, weight, place in zip(
            self.measured, self.targets, self.weights, self.places, strict=True
        ):
            if each.keys not in tables:
                tables[each.keys] = sum_to(cliques[place], self.tree.cliques[place], each.keys)
            miss = tables[each.keys] - target
            loss += 0.5 * weight * float(np.vdot(miss, miss))
            gradients[each.keys] = gradients.get(each.keys, np.zeros(miss.shape)) + weight * miss
        return loss, gradients, tables
