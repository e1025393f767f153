# SPDX-License-Identifier: Apache-2.0
"""Which neighbouring inputs to try: the worst pair of a mechanism that is known, a search for one
that is not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from discreet import check
from discreet.audit.draws import Auditable, Progress
from discreet.audit.game import audit
from discreet.audit.report import AuditReport
from discreet.errors import UnsupportedGuarantee
from discreet.mechanisms.additive import Additive, DiscreteGaussian, Geometric
from discreet.mechanisms.choice import Choice
from discreet.mechanisms.local import LocalMechanism
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.partition import PartitionSelection, StabilityHistogram
from discreet.mechanisms.threshold import SparseVector
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import RELATIONS

__all__ = ["neighbours", "register_pair", "search", "worst_pair"]

Pair = tuple[Any, Any]

#: Candidates, where a mechanism does not say how many there are.
_CANDIDATES = 10
_KNOWN: dict[type, Callable[[Any], Pair]] = {}


@check.arguments
def register_pair(kind: type) -> Callable[[Callable[[Any], Pair]], Callable[[Any], Pair]]:
    """Register the function that returns the worst pair of inputs for a class of mechanisms.

    It is a decorator. **Guarantee.** `worst_pair` returns what the function returns: that this pair
    is a worst one, and that its inputs are neighbours, is your statement.

    >>> class Mine(Mechanism): ...
    >>> @register_pair(Mine)
    ... def pair_of_mine(mechanism):
    ...     return [1, 2], [1]
    >>> pair_of_mine(None)
    ([1, 2], [1])
    """

    def register(function: Callable[[Any], Pair]) -> Callable[[Any], Pair]:
        _KNOWN[kind] = function
        return function

    return register


@check.arguments
def worst_pair(mechanism: Mechanism) -> Pair:
    """Two neighbouring inputs that a mechanism tells apart as well as any.

    **Guarantee.** The inputs are neighbours. That they are the worst is proved for additive noise,
    where the greatest shift is the worst; elsewhere it is the best pair known.

    A mechanism of your own says its pair with a method `worst_pair()`, or through `register_pair`.

    >>> from discreet.mechanisms import Laplace
    >>> worst_pair(Laplace(epsilon=1, sensitivity=2))
    (0.0, 2.0)
    """
    if hasattr(mechanism, "worst_pair"):
        first, second = mechanism.worst_pair()
        return first, second
    for kind in type(mechanism).__mro__:
        if kind in _KNOWN:
            return _KNOWN[kind](mechanism)
    raise UnsupportedGuarantee(
        "DP203",
        f"no worst pair is known for {type(mechanism).__name__}.",
        why="which inputs are neighbours depends on what its data are.",
        fix="give two neighbouring inputs, or  search(mechanism, domain)",
    )


@register_pair(Additive)
def _additive(mechanism: Additive) -> Pair:
    whole = isinstance(mechanism, Geometric | DiscreteGaussian)
    step = int(mechanism.sensitivity) if whole else mechanism.sensitivity
    if mechanism.dimension == 1:
        return step * 0, step
    far = np.zeros(mechanism.dimension, np.int64 if whole else np.float64)
    far[0] = step
    return np.zeros_like(far), far


@register_pair(Choice)
def _choice(mechanism: Choice) -> Pair:
    """One score falls and the others rise, which moves their order most; monotone scores move the
    same way.
    """
    step = mechanism.sensitivity
    others = (_CANDIDATES if mechanism.candidates is None else len(mechanism.candidates)) - 1
    if mechanism.monotone:
        return [step] + [0.0] * others, [0.0] * (others + 1)
    return [step] + [0.0] * others, [0.0] + [step] * others


@register_pair(SparseVector)
def _sparse(mechanism: SparseVector) -> Pair:
    """Answers on the line: half of them rise, and half fall unless all must move the same way."""
    line, step = mechanism.threshold, mechanism.sensitivity
    last = line if mechanism.monotone else line - step
    count = 2 * mechanism.positives
    return [line] * (2 * count), [line + step] * count + [last] * count


@register_pair(LocalMechanism)
def _local(_: LocalMechanism) -> Pair:
    return 0, 1


@register_pair(StabilityHistogram)
@register_pair(PartitionSelection)
def _keys(mechanism: StabilityHistogram | PartitionSelection) -> Pair:
    """A key that is named every other time, with one user more and less."""
    users = mechanism.users_needed()
    return {"a": users}, {"a": users - 1}


def neighbours(domain: Sequence[Hashable], size: int, relation: str) -> Iterator[Pair]:
    """All pairs of neighbouring data sets of up to `size` records from a domain, as lists, in no
    order.

    >>> list(neighbours(["a"], 1, "add-remove"))
    [(['a'], [])]
    """
    for count in range(1, size + 1):
        for records in itertools.combinations_with_replacement(domain, count):
            for record in dict.fromkeys(records):
                rest = list(records)
                rest.remove(record)
                if relation == "add-remove":
                    yield list(records), rest
                else:
                    yield from ((list(records), [*rest, other]) for other in domain if other != record)


@check.arguments
def search(
    function: Auditable,
    domain: Sequence[Hashable],
    *,
    size: int = 3,
    relation: str = "add-remove",
    claim: Guarantee | None = None,
    trials: int = 100_000,
    scouting: int = 2_000,
    most: int = 100,
    confidence: float = 0.999,
    look_at: str = "everything",
    workers: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Look through small data sets for the pair on which a function gives most away, and audit that
    one.

    **Guarantee.** The report is that of one audit on fresh runs, so its confidence is not
    diminished by the search. Its `inputs` are the pair.

    `domain` holds the values that a record can have; choose a few that matter: the bounds, zero,
    NaN, an extreme one. Pairs beyond `most` are thinned out evenly. Each is scouted with a few
    runs.

    >>> report = search(lambda data: max(data, default=0), [0, 100], size=2, trials=2_000, scouting=200)
    >>> sorted(report.inputs, key=len)
    [[], [100]]
    """
    check.choice(RELATIONS, relation=relation)
    pairs = list(neighbours(domain, check.whole(size=size), relation))
    thinned = pairs[:: -(-len(pairs) // check.whole(most=most))]
    audit_pair = partial(audit, function, claim=claim, look_at=look_at, workers=workers, progress=progress)
    scouted = [audit_pair(*pair, trials=scouting, confidence=0.9) for pair in thinned]
    best = max(scouted, key=_promising)
    return audit_pair(*best.inputs, trials=trials, confidence=confidence)


def _promising(report: AuditReport) -> tuple[float, float]:
    over = report.excess().amount if report.claim is not None else 0.0
    return over, report.epsilon_at_least()
