# SPDX-License-Identifier: Apache-2.0
"""What other accountants recorded, as guarantees.

    from_dp_accounting(event, relation="add-remove")      # an event of dp-accounting, or its JSON
    from_opacus(accountant)                               # the history of an accountant of opacus

**Guarantee.** The result describes the recorded mechanisms, each by the definition that the library
gives of its record, under the relation that the caller states: records do not name one. Under
"replace" a sum of vectors of bounded norm moves by two norms, as dp-accounting has it. A record
that has no theorem here is refused and never approximated.

What would break it: a record that does not say what was run, for one a shuffled loader that was
recorded as Poisson sampling, as opacus does with `poisson_sampling=False`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import cast

from discreet import check
from discreet.errors import BadDescription, DiscreetError, UnsupportedGuarantee
from discreet.exact import exactly, float_above
from discreet.privacy import constructors, mixtures
from discreet.privacy.guarantee import Guarantee, compose
from discreet.privacy.selection import selected
from discreet.privacy.unit import UNIT_RELATIONS, Unit

__all__ = ["from_dp_accounting", "from_opacus"]

_DEEPEST = 60


class _Record:
    """One event: an object of dp-accounting, its named tuple, or a mapping with `class_name`."""

    def __init__(self, event: object) -> None:
        self._event = event
        named = event.get("class_name") if isinstance(event, Mapping) else getattr(event, "class_name", None)
        named = named.decode() if isinstance(named, bytes) else named
        self.kind = named if isinstance(named, str) else type(event).__name__

    def field(self, name: str) -> object:
        if isinstance(self._event, Mapping):
            if name in self._event:
                return self._event[name]
        elif hasattr(self._event, name):
            return getattr(self._event, name)
        raise _unreadable_error(f"{self.kind} has no {name}")

    def number(self, name: str) -> float:
        return check.real(**{name: self.field(name)})

    def whole(self, name: str) -> int:
        return check.whole(**{name: cast("int", self.field(name))})

    def list(self, name: str) -> list[object]:
        values = self.field(name)
        if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
            raise _unreadable_error(f"{name} of {self.kind} is not a list")
        return list(values)


@check.arguments
def from_dp_accounting(event: object, *, relation: str, unit: str = "record") -> Guarantee:
    """The guarantee of an event of dp-accounting: the object, its named tuple, or JSON of it.

    In JSON an event is an object with its fields and `class_name`, such as `{"class_name":
    "GaussianDpEvent", "noise_multiplier": 1.0}`.

    `relation` is that of the accountant: "add-remove" (ADD_OR_REMOVE_ONE), "replace" (REPLACE_ONE)
    or "zero-out" (REPLACE_SPECIAL).

    **Guarantee.** That of the recorded mechanisms under the stated relation. Events without a
    theorem here are refused: sampling with replacement, tree aggregation of several counts, and
    whatever is unknown.

    >>> step = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
    >>> sampled = {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01, "event": step}
    >>> run = {"class_name": "SelfComposedDpEvent", "event": sampled, "count": 1000}
    >>> from_dp_accounting(run, relation="add-remove")
    1000 * gaussian(noise=1.0).sampled(0.01)
    """
    who = Unit(unit, check.choice(UNIT_RELATIONS, relation=relation))
    if isinstance(event, str | bytes):
        try:
            event = json.loads(event)
        except ValueError as error:
            raise _unreadable_error("it is not JSON") from error
    parts = _parts(event, 1, who, 0)
    if not parts:
        raise _unreadable_error("nothing was run, so that there is nothing to guarantee")
    return compose(parts)


@check.arguments
def from_opacus(accountant: object, *, unit: str = "record") -> Guarantee:
    """The guarantee of the history of an accountant of opacus: the accountant, its `state_dict()`
    or its `history`.

    **Guarantee.** That of Poisson-sampled Gaussian steps under "add-remove", which is what opacus
    accounts. It holds if batches were drawn so (`poisson_sampling=True`); opacus records a shuffled
    loader in the same way.

    >>> from_opacus([(1.0, 0.01, 1000)])
    1000 * gaussian(noise=1.0).sampled(0.01)
    """
    history: object = accountant
    if isinstance(accountant, Mapping):
        history = accountant.get("history")
    elif hasattr(accountant, "history"):
        history = accountant.history
    if not isinstance(history, list | tuple) or not history:
        raise _unreadable_error("a history is a list of (noise multiplier, sample rate, steps)")
    parts: list[tuple[Guarantee, int]] = []
    for entry in history:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise _unreadable_error("an entry of a history is (noise multiplier, sample rate, steps)")
        noise, rate, steps = entry
        step = constructors.gaussian(check.moderate(noise_multiplier=noise), unit=unit)
        parts.append((step.sampled(check.rate(sample_rate=rate)), check.whole(steps=steps)))
    return compose(parts)


def _parts(event: object, count: int, who: Unit, depth: int) -> list[tuple[Guarantee, int]]:
    """What was run, and how often. An event that reveals nothing has no parts."""
    if depth > _DEEPEST:
        raise _unreadable_error(f"it is nested more than {_DEEPEST} deep")
    record = _Record(event)
    if record.kind == "NoOpDpEvent":
        return []
    if record.kind == "ComposedDpEvent":
        return [part for inner in record.list("events") for part in _parts(inner, count, who, depth + 1)]
    if record.kind == "SelfComposedDpEvent":
        times = check.whole(at_least=0, count=record.field("count"))
        return _parts(record.field("event"), count * times, who, depth + 1) if times else []
    if record.kind in _WRAPPERS:
        return _WRAPPERS[record.kind](record, count, who, depth)
    if record.kind not in _MECHANISMS:
        raise UnsupportedGuarantee(
            "DP202",
            f"there is no theorem here for a {record.kind}.",
            why="a guarantee that is only near the recorded one would not be one.",
            fix=f"one of: {', '.join(sorted([*_MECHANISMS, *_WRAPPERS]))}",
        )
    return [(_MECHANISMS[record.kind](record, who), count)]


def _gaussian(record: _Record, who: Unit) -> Guarantee:
    noise = check.moderate(noise_multiplier=record.number("noise_multiplier"))
    return constructors.gaussian(noise / _moves(who), unit=who)


def _laplace(record: _Record, who: Unit) -> Guarantee:
    scale = check.moderate(noise_multiplier=record.number("noise_multiplier"))
    return constructors.laplace(scale / _moves(who), unit=who)


def _discrete_laplace(record: _Record, who: Unit) -> Guarantee:
    shape = check.moderate(noise_parameter=record.number("noise_parameter"))
    scale = 1 / shape * (1 - 4e-16)
    return constructors.discrete_laplace(scale, _moves(who) * record.whole("sensitivity"), unit=who)


def _randomized_response(record: _Record, who: Unit) -> Guarantee:
    """The truth with chance 1 - p + p/k: its odds against another answer are 1 + k(1-p)/p."""
    if who.relation == "add-remove":
        raise UnsupportedGuarantee(
            "DP202",
            "randomized response has no guarantee under add-remove.",
            why="whoever takes part sends a report, and that is not hidden.",
            fix='relation="replace", only if who takes part may be known',
        )
    p = exactly(check.probability(noise_parameter=record.number("noise_parameter")))
    outcomes = check.whole(at_least=2, num_buckets=record.field("num_buckets"))
    if p == 0:
        raise _reveals_all_error(record.kind)
    if p == 1:
        raise _unreadable_error("a report that is always drawn at random depends on nobody")
    odds = 1 + outcomes * (1 - p) / p
    epsilon = math.log1p(float_above(Fraction(odds - 1))) * (1 + 4e-16)
    if who.relation == "zero-out":
        # A blank may be reported in any way that is as private; no more is known of it.
        return constructors.pure(epsilon, unit=who)
    return constructors.randomized_response(epsilon, outcomes, unit=who)


def _mixture(record: _Record, who: Unit) -> Guarantee:
    moves = [check.not_negative(sensitivity=move) for move in record.list("sensitivities")]
    chances = [check.probability(sampling_prob=chance) for chance in record.list("sampling_probs")]
    if who.relation == "replace" or len(moves) != len(chances):
        raise _unreadable_error("a mixture has as many probabilities as moves, and no theorem under replace")
    parts: dict[float, float] = {}
    for move, chance in zip(moves, chances, strict=True):
        parts[move] = parts.get(move, 0.0) + chance
    return mixtures.gaussian_mixture(record.number("standard_deviation"), parts, unit=who)


def _truncated_batches(record: _Record, who: Unit) -> Guarantee:
    return mixtures.truncated_batches(
        record.number("noise_multiplier"),
        record.number("sampling_probability"),
        record.whole("truncated_batch_size"),
        record.whole("dataset_size"),
        unit=who,
    )


def _concentrated(record: _Record, who: Unit) -> Guarantee:
    rho, xi = record.number("rho"), record.number("xi")
    return constructors.concentrated(rho, xi, unit=who)


def _tree(record: _Record, who: Unit) -> Guarantee:
    """A record is in one leaf and in each node above it: so many Gaussian answers."""
    if who.relation != "zero-out":
        raise UnsupportedGuarantee(
            "DP202",
            "tree aggregation has a guarantee under zero-out only.",
            why="a record that is added moves all later records to other leaves.",
            fix='relation="zero-out", only if it was run so that a blank takes the place of a removed record',
        )
    steps = record.field("step_counts")
    counts = [steps] if isinstance(steps, int) else record.list("step_counts")
    deepest = max(check.whole(step_counts=count) for count in counts)
    return _gaussian(record, who) * deepest.bit_length()


def _poisson(record: _Record, count: int, who: Unit, depth: int) -> list[tuple[Guarantee, int]]:
    rate, inner = record.number("sampling_probability"), _sampled_event(record, who, depth)
    if rate == 0 or inner is None:
        return []
    return [(inner.sampled(rate, "poisson", who.relation), count)]


def _fixed_size(record: _Record, count: int, who: Unit, depth: int) -> list[tuple[Guarantee, int]]:
    sample, source = record.whole("sample_size"), record.whole("source_dataset_size")
    if sample > source:
        raise _unreadable_error("a sample without replacement is no larger than its source")
    inner = _sampled_event(record, who, depth)
    rate = min(1.0, float_above(Fraction(sample, source)))
    return [] if inner is None else [(inner.sampled(rate, "without-replacement", who.relation), count)]


def _sampled_event(record: _Record, who: Unit, depth: int) -> Guarantee | None:
    """What is run on the sample, stated for a record that is added: the theorems of sampling turn
    it into the relation.
    """
    inner = _parts(record.field("event"), 1, Unit(who.protects, "add-remove"), depth + 1)
    return compose(inner) if inner else None


def _selected(record: _Record, count: int, who: Unit, depth: int) -> list[tuple[Guarantee, int]]:
    inner = _parts(record.field("event"), 1, who, depth + 1)
    if not inner:
        return []
    shape = check.real(shape=record.field("shape"))
    return [(selected(compose(inner), record.number("mean"), eta=shape), count)]


def _moves(who: Unit) -> int:
    """By how many norms a sum moves."""
    return 2 if who.relation == "replace" else 1


def _reveals_all_error(kind: str) -> DiscreetError:
    return UnsupportedGuarantee(
        "DP202",
        f"a {kind} without noise has no guarantee.",
        why="its answer tells the data.",
        fix="account for what was run with noise",
    )


def _non_private(record: _Record, _who: Unit) -> Guarantee:
    raise _reveals_all_error(record.kind)


def _unreadable_error(what: str) -> BadDescription:
    return BadDescription(
        "DP401",
        f"this record cannot be read: {what}.",
        why="a damaged record must not turn into another guarantee.",
        fix="pass the event or the history as the other library gave it",
    )


_MECHANISMS: dict[str, Callable[[_Record, Unit], Guarantee]] = {
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "MixtureOfGaussiansDpEvent": _mixture,
    "NonPrivateDpEvent": _non_private,
    "RandomizedResponseDpEvent": _randomized_response,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "TruncatedSubsampledGaussianDpEvent": _truncated_batches,
    "ZCDpEvent": _concentrated,
}
_WRAPPERS: dict[str, Callable[[_Record, int, Unit, int], list[tuple[Guarantee, int]]]] = {
    "PoissonSampledDpEvent": _poisson,
    "RepeatAndSelectDpEvent": _selected,
    "SampledWithoutReplacementDpEvent": _fixed_size,
}
