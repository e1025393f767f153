# SPDX-License-Identifier: Apache-2.0
"""What every mechanism owes, as a test suite that anybody can run on their own.

    check_mechanism(MyMechanism(epsilon=1), data, neighbour=almost_the_same_data)

It tests what a program can test: that the guarantee is stated before data are seen, stays what it
is and can be stored; that noise is fresh and comes from the library's source; that nothing leaks
through types, shapes, prints, warnings or error texts. Whether the guarantee is *true* is a matter
of proof, and `discreet.audit` looks for counterexamples.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import math
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import check
from discreet.errors import BadParameter, CannotCertify, DiscreetError, UnsupportedGuarantee
from discreet.mechanisms.mechanism import Mechanism, Refusal, Release
from discreet.noise import source as _source
from discreet.noise.source import SeededSource, Source, Words
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.unit import Unit
from discreet.privacy.wire import from_json

__all__ = ["RULES", "check_mechanism"]

_DISTANCES = (1, 2, 3, 10)
_BAD_DISTANCES = (0, -1, 1.5, math.nan, True, "1", None)
_DELTAS = (1e-9, 1e-6, 1e-3, 0.1)
_CONFIDENCES = (0.5, 0.9, 0.95, 0.999)
_BAD_CONFIDENCES = (0.0, 1.0, -0.5, math.nan, True, "0.95", None)
_DRAWS = 8
_CLOSE = 1e-6  # certified views may differ by this share from one computation to the next


@dataclass(frozen=True)
class MechanismUnderTest:
    """The mechanism under test, and data to try it on."""

    mechanism: Mechanism
    inputs: tuple[Any, ...]


@check.arguments
def check_mechanism(mechanism: Mechanism, *inputs: object, neighbour: object = None) -> None:
    """Run every rule on the mechanism; raise DP205 with all that it breaks, in words, or return
    nothing.

    **Guarantee.** A mechanism that keeps the rules always passes: no rule is left to chance. What
    is reported names rules, never data. `inputs` are data sets that it accepts, all of one public
    size; `neighbour` is one more, which differs from the first in one protected unit.

    What it cannot see: a guarantee that is false. Prove it, and run `discreet.audit` against it.

    >>> from discreet.mechanisms import Laplace
    >>> check_mechanism(Laplace(epsilon=1, sensitivity=1), 41.0, neighbour=42.0)
    """
    if not isinstance(mechanism, Mechanism) or not inputs:
        raise BadParameter(
            "DP104",
            "check_mechanism needs a Mechanism and at least one input that it accepts.",
            why="the rules are about its guarantee and its releases.",
            fix="check_mechanism(Laplace(epsilon=1, sensitivity=1), 41.0, neighbour=42.0)",
        )
    subject = MechanismUnderTest(mechanism, inputs if neighbour is None else (*inputs, neighbour))
    broken = [violation for rule in RULES for violation in _violations(rule, subject)]
    if broken:
        raise UnsupportedGuarantee(
            "DP205",
            f"{type(mechanism).__name__} breaks {len(broken)} rule{'s' if len(broken) > 1 else ''}:\n"
            + "\n".join(f"         {number}. {words}" for number, words in enumerate(broken, start=1)),
            why="each rule keeps something from leaking that the guarantee does not pay for.",
            fix="see docs/how-to/write-a-mechanism.md, and run check_mechanism again",
        )


def _violations(
    rule: Callable[[MechanismUnderTest], Iterator[str]], subject: MechanismUnderTest
) -> list[str]:
    """What a rule finds; an exception is a finding too, and only its kind is told."""
    violations: list[str] = []
    try:
        violations.extend(rule(subject))
    except KeyboardInterrupt:  # whoever runs the suite may stop it
        raise
    except BaseException as error:  # noqa: BLE001 - a stranger's code may raise anything, and the text may hold data
        words = (rule.__doc__ or "").strip()
        violations.append(f"{words} It raised {type(error).__name__} instead.")
    return violations


def states_its_guarantee(subject: MechanismUnderTest) -> Iterator[str]:
    """`guarantee` is known without data, has a unit, and is the same every time."""
    mechanism = subject.mechanism
    first = mechanism.guarantee
    if not isinstance(first, Guarantee) or not isinstance(first.unit, Unit):
        yield "`guarantee` must be a Guarantee, which says who is protected."
        return
    if mechanism.guarantee != first or mechanism.guarantee_at(1) != first or mechanism.unit != first.unit:
        yield "`guarantee`, `guarantee_at(1)` and `unit` must agree, whenever they are asked."
    for data in subject.inputs:
        mechanism(data)
    if mechanism.guarantee != first:
        yield "the guarantee must not change when the mechanism is used."


def grows_with_distance(subject: MechanismUnderTest) -> Iterator[str]:
    """`guarantee_at(distance)` is never smaller for a greater distance."""
    curves = [_curve(subject.mechanism, distance) for distance in _DISTANCES]
    known = [curve for curve in curves if curve]
    for near, far in itertools.pairwise(known):
        if any(more < less * (1 - _CLOSE) for less, more in zip(near, far, strict=True)):
            yield "a greater distance must never have a smaller ε."
            return


def refuses_bad_distances(subject: MechanismUnderTest) -> Iterator[str]:
    """A distance that is no whole number of 1 or more is refused with a coded error."""
    if not all(_refuses(subject.mechanism.guarantee_at, bad) for bad in _BAD_DISTANCES):
        yield "a distance that is no whole number of 1 or more must be refused with a coded error."


def states_its_error(subject: MechanismUnderTest) -> Iterator[str]:
    """error(confidence) is None or not negative, grows with the confidence, and depends on no data."""
    mechanism = subject.mechanism
    before = [_numbers(mechanism.error(confidence)) for confidence in _CONFIDENCES]
    if any(not np.all(numbers >= 0) for numbers in before):
        yield "an error must be None, or a number that is zero or more."
    if any(low.shape != high.shape or np.any(high < low) for low, high in itertools.pairwise(before)):
        yield "a greater confidence must never have a smaller error."
    answers = [mechanism(data) for data in subject.inputs]
    released = [_numbers(answer.error) for answer in answers if not answer.refused]
    after = [_numbers(mechanism.error(confidence)) for confidence in _CONFIDENCES]
    same = all(map(np.array_equal, before, after))
    if not same or any(not np.array_equal(first, second) for first, second in itertools.pairwise(released)):
        yield "the error must not depend on data."


def refuses_bad_confidences(subject: MechanismUnderTest) -> Iterator[str]:
    """A confidence outside (0, 1) is refused with a coded error."""
    if not all(_refuses(subject.mechanism.error, bad) for bad in _BAD_CONFIDENCES):
        yield "a confidence outside (0, 1) must be refused with a coded error."


def releases_with_its_guarantee(subject: MechanismUnderTest) -> Iterator[str]:
    """A call returns a Release with the guarantee that was stated, and leaves its input alone."""
    mechanism = subject.mechanism
    for data in subject.inputs:
        original = _copy_of_input(data)
        release = mechanism(data)
        if not isinstance(release, Release):
            yield "a call must return a Release."
            return
        if release.guarantee != mechanism.guarantee:
            yield "a release must carry the guarantee that was stated."
        if release.private is not True:
            yield "a release from the system's source must be marked private."
        if original is not data and not _same(original, data):
            yield "a call must not change its input."


def draws_fresh_noise(subject: MechanismUnderTest) -> Iterator[str]:
    """Every call takes fresh bits from the library's source."""
    # Bits are counted rather than answers compared: a right answer may repeat by chance, fresh bits
    # never fail to be drawn.
    for data in subject.inputs:
        for _ in range(_DRAWS):
            counting = _Counting(_source.current())
            with _drawing_from(counting):
                subject.mechanism(data)
            if not counting.count:
                yield "every call must take fresh bits from discreet.noise; this one took none."
                return


def repeats_under_a_seed(subject: MechanismUnderTest) -> Iterator[str]:
    """Inside testing.seeded() draws repeat and are marked not private."""
    data = subject.inputs[0]
    for seed in range(3):
        runs = []
        for _ in range(2):
            with _drawing_from(SeededSource(seed)):
                runs.append([subject.mechanism(data) for _ in range(_DRAWS)])
        if any(release.private for run in runs for release in run):
            yield "a release that was drawn under a seed must be marked not private."
            return
        if not all(_same(a.value, b.value) for a, b in zip(*runs, strict=True)):
            yield "the same seed must give the same answers; some noise comes from elsewhere."
            return


def keeps_its_shape(subject: MechanismUnderTest) -> Iterator[str]:
    """Type, dtype and shape of the value do not depend on the data."""
    forms = {
        _form(value)
        for data in subject.inputs
        for value in (subject.mechanism(data).value for _ in range(_DRAWS))
        if not isinstance(value, Refusal)
    }
    if len(forms) > 1:
        yield "type, dtype and shape of the value must be public (a list may vary in length, an array may not)."


def can_be_stored(subject: MechanismUnderTest) -> Iterator[str]:
    """The guarantee survives JSON, and the mechanism survives pickling."""
    mechanism = subject.mechanism
    if from_json(mechanism.guarantee.to_json()) != mechanism.guarantee:
        yield "the guarantee must survive to_json and from_json."
    reopened = _pickled_copy(mechanism)
    if reopened.guarantee != mechanism.guarantee or not isinstance(reopened(subject.inputs[0]), Release):
        yield "a pickled mechanism must be the same mechanism."


def works_in_threads(subject: MechanismUnderTest) -> Iterator[str]:
    """It can be called from several threads at once."""
    done: list[Release] = []
    threads = [
        threading.Thread(target=lambda data=data: done.append(subject.mechanism(data)))
        for data in subject.inputs * 4
    ]
    with _quiet_threads():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if len(done) != len(threads):
        yield "calls from several threads must all be answered."


def works_after_a_fork(subject: MechanismUnderTest) -> Iterator[str]:
    """It can be called in a forked process."""
    if not hasattr(os, "fork"):
        return
    with warnings.catch_warnings():
        # other threads may run, the child needs none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _exit_after(lambda: subject.mechanism(subject.inputs[0]))
    _, status = os.waitpid(child, 0)
    if status != 0:
        yield "a call in a forked process must be answered."


def is_silent(subject: MechanismUnderTest) -> Iterator[str]:
    """It prints nothing and warns of nothing."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        for data in subject.inputs:
            subject.mechanism(data)
    if warned or out.getvalue() or err.getvalue():
        yield "a call must print nothing and warn of nothing: both would show data for free."


#: The rules, in the order in which they are reported.
RULES: tuple[Callable[[MechanismUnderTest], Iterator[str]], ...] = (
    states_its_guarantee,
    grows_with_distance,
    refuses_bad_distances,
    states_its_error,
    refuses_bad_confidences,
    releases_with_its_guarantee,
    draws_fresh_noise,
    repeats_under_a_seed,
    keeps_its_shape,
    can_be_stored,
    works_in_threads,
    works_after_a_fork,
    is_silent,
)


@contextlib.contextmanager
def _drawing_from(source: Source) -> Iterator[None]:
    """As `testing.using`, which stands on no part that stands on it."""
    token = _source._current.set(source)  # noqa: SLF001 - rules about the source must be able to swap it
    try:
        yield
    finally:
        _source._current.reset(token)  # noqa: SLF001


class _Counting:
    """A source that counts what is taken from it."""

    def __init__(self, source: Source) -> None:
        self._source, self.count = source, 0

    @property
    def private(self) -> bool:
        return self._source.private

    def words(self, count: int) -> Words:
        self.count += count
        return self._source.words(count)

    def bits(self, count: int) -> int:
        self.count += count
        return self._source.bits(count)


def _curve(mechanism: Mechanism, distance: int) -> list[float]:
    """ε at a few δ, ∞ where nothing is certified; empty where no theorem covers the distance."""
    try:
        guarantee = mechanism.guarantee_at(distance)
    except UnsupportedGuarantee:
        return []
    return [_epsilon(guarantee, delta) for delta in _DELTAS]


def _epsilon(guarantee: Guarantee, delta: float) -> float:
    try:
        return guarantee.epsilon(delta)
    except CannotCertify:
        return math.inf


def _refuses(function: Callable[[Any], Any], bad: Any) -> bool:
    try:
        function(bad)
    except DiscreetError:
        return True
    except Exception:  # noqa: BLE001 - refused, but not in the library's words
        return False
    return False


def _numbers(error: Any) -> np.ndarray[Any, Any]:
    """An error as numbers: None counts as none, a tuple as all of its parts."""
    parts = error if isinstance(error, tuple | list) else [error]
    known = [np.ravel(np.asarray(part, float)) for part in parts if part is not None]
    return np.concatenate(known) if known else np.zeros(0)


def _form(value: Any) -> Any:
    """What can be seen of a value before its contents are."""
    if isinstance(value, np.ndarray):
        return type(value), value.dtype.str, value.shape
    if isinstance(value, tuple):
        return type(value), tuple("refusal" if isinstance(part, Refusal) else _form(part) for part in value)
    return type(value)


def _copy_of_input(data: Any) -> Any:
    """A copy to compare with later, or the input itself: a handle to private rows is not to be
    copied.
    """
    try:
        return copy.deepcopy(data)
    except Exception:  # noqa: BLE001 - data of any kind may refuse, in any way
        return data


def _same(a: Any, b: Any) -> bool:
    """Equality that looks into arrays and containers and takes NaN for equal to itself."""
    return pickle.dumps(a) == pickle.dumps(b) or bool(
        np.array_equal(np.asarray(a, object), np.asarray(b, object))
    )


def _pickled_copy(mechanism: Mechanism) -> Mechanism:
    """Through a pickle; a class that is in no module yet, as in a notebook's function, is copied
    without one.
    """
    kind = type(mechanism)
    if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
        return copy.deepcopy(mechanism)
    reopened: Mechanism = pickle.loads(pickle.dumps(mechanism))  # noqa: S301 - it was written a moment ago, here
    return reopened


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
    """What a failing thread would print holds whatever its error says."""
    before, threading.excepthook = threading.excepthook, lambda _: None
    try:
        yield
    finally:
        threading.excepthook = before


def _exit_after(work: Callable[[], Any]) -> None:
    """Do the work in a forked child and leave at once, without the parent's clean-up."""
    status = 1
    try:
        status = 0 if isinstance(work(), Release) else 1
    finally:
        os._exit(status)
