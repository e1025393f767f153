# SPDX-License-Identifier: Apache-2.0
"""A mixture of products fitted to noisy residuals: p(x) = Σ_k π_k Π_i p_ki(x_i).

The residuals of a product are products of centred factors. With p̃_ki = p_ki - 1/n_i, all pairs at
once are the blocks of P̃ᵀ diag(π) P̃, one product of matrices. The loss is the exact log-likelihood
of the Gaussian noise, χ² = Σ ‖N r_S - r̂_S‖² / σ_S² over all residuals of one and two columns, plus
that of the tables that were measured as a whole. Adam steps on logits stop as soon as χ² is at most
the number of degrees of freedom, which is what it is on average at the truth: more steps would fit
the noise (Morozov's discrepancy principle).

**Guarantee.** Post-processing of released numbers: the model depends on them and on a fixed seed
alone. It has no other claim; how well it describes the rows is what a paid quality figure says.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.tables.synthetic.stream import SeededStream
from discreet.tables.workloads.residuals import Floats, KeySet

__all__ = ["Mixture", "NoisyMarginal", "NoisyPairs", "components_for", "fit_mixture"]

_SEED = 20_261
_SPREAD = 0.5
_RATE, _FIRST, _SECOND, _TINY = 0.1, 0.9, 0.99, 1e-12
COMPONENTS, _MOST_STEPS = 400, 1_200
#: With tables of three columns: at most so many components, and so much memory and work for all.
_MOST_COMPONENTS, _FACTORS, _WORK = 4_000, 96_000, 14_000_000
#: A fit that gains less than this in so many steps is done, too: counts that are not negative may not reach the noise.
_PROGRESS, _PATIENCE = 0.995, 50
#: The logit of a code that no row has; steps cannot raise it to where a float of 32 bits is not zero.
_ABSENT = -1e4
#: The least logit from which a fit goes on.
_FLOOR = -20.0


@dataclass(frozen=True, eq=False)
class NoisyPairs:
    """The released residuals of one and two columns, in rows, and the variance σ_S² of the noise on
    each cell before its means are subtracted. `total` is the noisy number of rows.
    """

    sizes: tuple[int, ...]
    total: float
    residuals: Mapping[KeySet, Floats]
    variances: Mapping[KeySet, float]
    #: Codes that no row of the model has, as (column, code).
    absent: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """A table of some columns with independent noise of one variance on each cell."""

    keys: KeySet
    counts: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Mixture:
    """The weights of the components, and for each column the probabilities of its values in each
    component.
    """

    weights: Floats
    factors: tuple[Floats, ...]
    #: χ² per degree of freedom where the fit ended, and its number of steps.
    misfit: float = math.nan
    steps: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return tuple(factor.shape[1] for factor in self.factors)

    def table(self, keys: KeySet) -> Floats:
        """The probabilities of the cells of a table of some columns."""
        if not keys:
            return np.asarray(self.weights.sum())
        joint = self.weights[:, None] * self.factors[keys[0]]
        for key in keys[1:-1]:
            joint = (joint[:, :, None] * self.factors[key][:, None, :]).reshape(len(joint), -1)
        table = joint.sum(axis=0) if len(keys) == 1 else joint.T @ self.factors[keys[-1]]
        return table.reshape(tuple(self.sizes[key] for key in keys))

    def to_single(self) -> Mixture:
        """The mixture in floats of 32 bits, as it is stored."""
        return replace(
            self,
            weights=_single(self.weights),
            factors=tuple(map(_single, self.factors)),
        )

    def to_dict(self) -> dict[str, Any]:
        """The mixture as plain JSON types: compressed floats of 32 bits, column after column."""
        numbers = np.concatenate([self.weights, *(factor.ravel() for factor in self.factors)])
        packed = zlib.compress(numbers.astype("<f4").tobytes())
        return {
            "components": len(self.weights),
            "floats": base64.b64encode(packed).decode(),
            "misfit": self.misfit,
            "steps": self.steps,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], sizes: Sequence[int]) -> Mixture:
        """The mixture that `to_dict` wrote."""
        numbers = np.frombuffer(zlib.decompress(base64.b64decode(stored["floats"])), "<f4").astype(np.float64)
        count = int(stored["components"])
        edges = np.cumsum([count, *(count * size for size in sizes)]).tolist()
        if edges[-1] != len(numbers) or not np.isfinite(numbers).all():
            raise ValueError("the model has another size than its columns")
        parts = [numbers[low:high] for low, high in pairwise(edges)]
        factors = tuple(part.reshape(count, size) for part, size in zip(parts, sizes, strict=True))
        return cls(numbers[:count], factors, float(stored["misfit"]), int(stored["steps"]))


def components_for(sizes: Sequence[int]) -> int:
    """The components of a mixture that tables of three columns are fitted to.

    A component takes a side in each such table: what it says of other columns together is chance,
    of size 1 / √components. So there are as many as time and memory allow.
    """
    width = max(1, sum(sizes))
    return max(COMPONENTS, min(_MOST_COMPONENTS, _FACTORS // width, _WORK // width**2))


def fit_mixture(
    pairs: NoisyPairs,
    tables: Sequence[NoisyMarginal] = (),
    *,
    components: int = COMPONENTS,
    most_steps: int = _MOST_STEPS,
    start: Mixture | None = None,
) -> Mixture:
    """The mixture after the first step at which χ² is at most the degrees of freedom, or after
    `most_steps`.

    Single precision is enough: it is far finer than the noise.
    """
    return _Fit(pairs, tables, components, start, np.float32).run(most_steps)


class _Fit:
    """The parameters of a mixture, and the matrices that it is fitted to."""

    def __init__(
        self,
        pairs: NoisyPairs,
        tables: Sequence[NoisyMarginal],
        components: int,
        start: Mixture | None,
        kind: type[np.floating[Any]],
    ) -> None:
        self.kind = kind
        self.sizes, self.tables = pairs.sizes, tables
        self.total = max(pairs.total, 1.0)
        edges = np.cumsum([0, *self.sizes])
        self.blocks = [slice(*ends) for ends in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
        width = int(edges[-1])
        self.targets, self.precisions = np.zeros((2, width, width), kind)
        self.target, self.precision = np.zeros((2, width), kind)
        self.freedom = sum(table.counts.size for table in tables)
        for keys, residual in pairs.residuals.items():
            if keys:
                self._set(keys, residual / self.total, self.total**2 / pairs.variances[keys])
                self.freedom += math.prod(self.sizes[key] - 1 for key in keys)
        start_logits = self._start(components, pairs.absent) if start is None else _logits_of(start)
        self.logits, self.weight_logits = (logits.astype(kind) for logits in start_logits)

    def _set(self, keys: KeySet, target: Floats, precision: float) -> None:
        places = [self.blocks[key] for key in keys]
        if len(keys) == 1:
            self.target[places[0]], self.precision[places[0]] = target, precision
            return
        one, other = places
        self.targets[one, other], self.targets[other, one] = target, target.T
        self.precisions[one, other] = self.precisions[other, one] = precision

    def _start(self, components: int, absent: frozenset[tuple[int, int]]) -> tuple[Floats, Floats]:
        """The noisy tables of one column, with some variation in each component."""
        shares = np.concatenate(
            [self.target[block] + 1 / size for block, size in zip(self.blocks, self.sizes, strict=True)]
        )
        base = np.log(np.maximum(shares, 0.1 / self.total))
        for column, code in absent:
            base[self.blocks[column].start + code] = _ABSENT
        stream = SeededStream(_SEED, "mixture")
        return base + _SPREAD * stream.normal(components, len(base)), np.zeros(components)

    def run(self, most_steps: int) -> Mixture:
        parameters = [self.logits, self.weight_logits]
        means = [np.zeros_like(each) for each in parameters]
        squares = [np.zeros_like(each) for each in parameters]
        before = math.inf
        for step in range(most_steps + 1):
            mixture = self._mixture(parameters)
            misfit, gradients = self._loss(mixture)
            if misfit <= self.freedom or step == most_steps:
                break
            if step % _PATIENCE == 0:
                if misfit > _PROGRESS * before:
                    break
                before = misfit
            rate = _RATE * (1 - step / most_steps)
            for place, gradient in enumerate(gradients):
                each, mean, square = parameters[place], means[place], squares[place]
                mean += (1 - _FIRST) * (gradient - mean)
                square += (1 - _SECOND) * (gradient**2 - square)
                scale = np.sqrt(square / (1 - _SECOND ** (step + 1))) + _TINY
                each -= rate / (1 - _FIRST ** (step + 1)) * mean / scale
        factors = tuple(factor.astype(np.float64) for factor in mixture.factors)
        weights = mixture.weights.astype(np.float64)
        return Mixture(weights, factors, misfit / max(self.freedom, 1), step)

    def _mixture(self, parameters: Sequence[Floats]) -> Mixture:
        logits, weights = parameters
        factors = tuple(_softmax(logits[:, block]) for block in self.blocks)
        return Mixture(_softmax(weights), factors)

    def _loss(self, mixture: Mixture) -> tuple[float, list[Floats]]:
        """χ², and the gradient of a multiple of it over the logits."""
        weights = mixture.weights
        centred = np.concatenate([factor - 1 / factor.shape[1] for factor in mixture.factors], axis=1)
        weighted = weights[:, None] * centred
        misses, miss = centred.T @ weighted - self.targets, weights @ centred - self.target
        pulls, pull = self.precisions * misses, self.precision * miss
        misfit = float(np.vdot(pulls, misses)) / 2 + float(np.vdot(pull, miss))
        along = centred @ pulls
        of_centred = weights[:, None] * (along + pull)
        of_weights = np.einsum("ks,ks->k", along, centred) / 2 + centred @ pull
        for table in self.tables:
            misfit += self._add_table(table, mixture, of_centred, of_weights)
        of_logits = np.empty_like(of_centred)
        for block, factor in zip(self.blocks, mixture.factors, strict=True):
            slope = of_centred[:, block]
            of_logits[:, block] = factor * (slope - np.einsum("ks,ks->k", slope, factor)[:, None])
        return misfit, [of_logits, weights * (of_weights - weights @ of_weights)]

    def _add_table(
        self, table: NoisyMarginal, mixture: Mixture, of_factors: Floats, of_weights: Floats
    ) -> float:
        """Add the gradient of a whole table; returns its part of χ².

        The key with the most values stands last, because this needs the least memory.
        """
        *first, last = sorted(table.keys, key=lambda key: self.sizes[key])
        order = [table.keys.index(key) for key in (*first, last)]
        counts = np.transpose(table.counts, order).reshape(-1, self.sizes[last])
        factors = [mixture.factors[key] for key in first]
        joint, ending = _outer(factors), mixture.factors[last]
        weights = mixture.weights
        miss = (weights[:, None] * joint).T @ ending - (counts / self.total).astype(self.kind)
        pull = miss * self.kind(self.total**2 / table.variance)
        of_last = joint @ pull
        of_factors[:, self.blocks[last]] += weights[:, None] * of_last
        of_weights += np.einsum("ks,ks->k", of_last, ending)
        along = (ending @ pull.T).reshape(len(weights), *(self.sizes[key] for key in first))
        for place, key in enumerate(first):
            slope = np.moveaxis(along, place + 1, 1)
            for other, factor in enumerate(factors):
                if other != place:
                    slope = np.einsum("ka...b,kb->ka...", slope, factor)
            of_factors[:, self.blocks[key]] += weights[:, None] * slope
        return float(np.vdot(miss, pull))


def _outer(factors: Sequence[Floats]) -> Floats:
    """For each component the product of some factors, flat."""
    joint = factors[0]
    for factor in factors[1:]:
        joint = (joint[:, :, None] * factor[:, None, :]).reshape(len(joint), -1)
    return joint


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def _logits_of(mixture: Mixture) -> tuple[Floats, Floats]:
    factors = np.concatenate(mixture.factors, axis=1)
    return _logs(factors), _logs(mixture.weights)


def _logs(shares: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(shares, 1e-300))
    return np.where(shares > 0, np.maximum(logs, _FLOOR), _ABSENT)


def _single(numbers: Floats) -> Floats:
    return numbers.astype(np.float32).astype(np.float64)
