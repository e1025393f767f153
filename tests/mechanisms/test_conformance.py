# SPDX-License-Identifier: Apache-2.0
"""Every shipped mechanism keeps every rule, and each rule catches a mechanism that breaks it."""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings

import numpy as np
import pytest

from discreet import errors, noise, privacy, testing
from discreet.mechanisms import Laplace, Mechanism, Refusal, Release, check_mechanism
from discreet.mechanisms import conformance as rules
from tests.mechanisms.examples import EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_shipped_mechanism_keeps_every_rule(name):
    mechanism, data, neighbour = EXAMPLES[name]
    assert check_mechanism(mechanism, data, neighbour=neighbour) is None


class Honest(Mechanism):
    """A count with noise, and nothing wrong with it. The mechanisms below each break one rule."""

    @property
    def guarantee(self):
        return privacy.discrete_laplace(scale=2.0)

    def draw(self, data):
        return int(sum(data)) + noise.discrete_laplace(2.0)

    def error(self, confidence=0.95):
        return Laplace(scale=2.0, sensitivity=1).error(confidence)


class NoGuarantee(Honest):
    guarantee = 1.0


class Moody(Honest):
    calls = 0

    @property
    def guarantee(self):
        return privacy.discrete_laplace(scale=2.0 + self.calls)

    def draw(self, data):
        self.calls += 1
        return super().draw(data)


class Disagrees(Honest):
    def guarantee_at(self, distance):
        return privacy.pure(0.1).group(distance)


class Shrinks(Honest):
    def guarantee_at(self, distance):
        self.guarantee.group(distance)
        return privacy.discrete_laplace(scale=2.0 * distance)


class AnyDistance(Honest):
    def guarantee_at(self, distance):
        return self.guarantee


class RefusesInOwnWords(Honest):
    def guarantee_at(self, distance):
        if distance is None or isinstance(distance, str | float | bool) or distance < 1:
            raise ValueError(distance)
        return super().guarantee_at(distance)


class NegativeError(Honest):
    def error(self, confidence=0.95):
        return -super().error(confidence)


class ShrinkingError(Honest):
    def error(self, confidence=0.95):
        return 100 - super().error(confidence)


class TellingError(Honest):
    seen = 0.0

    def draw(self, data):
        self.seen = float(sum(data))
        return super().draw(data)

    def error(self, confidence=0.95):
        return super().error(confidence) + self.seen


class AnyConfidence(Honest):
    def error(self, confidence=0.95):
        return None


class BareNumber(Honest):
    def __call__(self, data):
        return self.draw(data)


class OtherGuarantee(Honest):
    def __call__(self, data):
        return Release(self.draw(data), privacy.discrete_laplace(scale=3.0), self.error())


class NeverPrivate(Honest):
    def __call__(self, data):
        return Release(self.draw(data), self.guarantee, self.error(), private=False)


class AlwaysPrivate(Honest):
    def __call__(self, data):
        return Release(self.draw(data), self.guarantee, self.error(), private=True)


class Greedy(Honest):
    def draw(self, data):
        value = super().draw(data)
        data.append(0)
        return value


class OneNoiseForAll(Honest):
    def __init__(self):
        self.noise = noise.discrete_laplace(2.0)

    def draw(self, data):
        return int(sum(data)) + self.noise


class OwnGenerator(Honest):
    def draw(self, data):
        noise.discrete_laplace(2.0)
        return int(sum(data)) + int.from_bytes(os.urandom(8), "big")


class TellingType(Honest):
    def draw(self, data):
        value = super().draw(data)
        return float(value) if sum(data) > 2 else value


class TellingShape(Honest):
    def draw(self, data):
        return np.array([super().draw(data)] * (1 + sum(data)))


class TellingDtype(Honest):
    def draw(self, data):
        return np.array([super().draw(data)], np.int32 if sum(data) > 2 else np.int64)


class Nameless(privacy.Guarantee):
    """A guarantee that cannot be stored."""

    unit = privacy.Unit()

    def bags(self):
        return privacy.pure(1.0).bags()

    def _group_of(self, size):
        return self


class NotStored(Honest):
    guarantee = Nameless()


class NotPickled(Honest):
    def __init__(self):
        self.lock = threading.Lock()


class OneThread(Honest):
    def draw(self, data):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only here")
        return super().draw(data)


class OneProcess(Honest):
    def __init__(self):
        self.process = os.getpid()

    def draw(self, data):
        if os.getpid() != self.process:
            raise RuntimeError("only here")
        return super().draw(data)


class Prints(Honest):
    def draw(self, data):
        print("data:", data)
        return super().draw(data)


class Complains(Honest):
    def draw(self, data):
        print("data:", data, file=sys.stderr)
        return super().draw(data)


class Warns(Honest):
    def draw(self, data):
        if sum(data) > 2:
            warnings.warn("a large sum", UserWarning, stacklevel=2)
        return super().draw(data)


BROKEN = {
    NoGuarantee: "must be a Guarantee",
    Moody: "must not change when the mechanism is used",
    Disagrees: "must agree, whenever",
    Shrinks: "greater distance",
    AnyDistance: "whole number of 1 or more must be refused",
    RefusesInOwnWords: "whole number of 1 or more must be refused",
    NegativeError: "zero or more",
    ShrinkingError: "greater confidence",
    TellingError: "error must not depend on data",
    AnyConfidence: "confidence outside",
    BareNumber: "must return a Release",
    OtherGuarantee: "carry the guarantee",
    NeverPrivate: "marked private",
    AlwaysPrivate: "marked not private",
    Greedy: "not change its input",
    OneNoiseForAll: "fresh bits",
    OwnGenerator: "same seed",
    TellingType: "must be public",
    TellingShape: "must be public",
    TellingDtype: "must be public",
    NotStored: "survives JSON",
    NotPickled: "survives pickling",
    OneThread: "several threads",
    OneProcess: "forked process",
    Prints: "print nothing",
    Complains: "print nothing",
    Warns: "print nothing",
}


def test_the_honest_one_passes():
    assert check_mechanism(Honest(), [1, 1, 0], [0, 0, 0], neighbour=[1, 1, 1]) is None


@pytest.mark.filterwarnings("ignore:a large sum")
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_mechanism_is_caught(kind, capsys):
    with pytest.raises(errors.UnsupportedGuarantee, match=BROKEN[kind]) as caught:
        check_mechanism(kind(), [1, 1, 0], neighbour=[1, 1, 1])
    assert caught.value.code == "DP205"
    capsys.readouterr()


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_rule_is_broken_by_somebody_and_kept_by_the_honest(rule, capsys):
    honest = rules.MechanismUnderTest(Honest(), ([1, 1, 0], [1, 1, 1]))
    assert rules._violations(rule, honest) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        caught = [
            kind
            for kind in BROKEN
            if rules._violations(rule, rules.MechanismUnderTest(kind(), ([1, 1, 0], [1, 1, 1])))
        ]
    assert caught
    capsys.readouterr()


def test_every_broken_rule_is_named():
    class Hopeless(Prints):
        def guarantee_at(self, distance):
            return self.guarantee

        def error(self, confidence=0.95):
            return -1.0

    with pytest.raises(errors.UnsupportedGuarantee) as caught:
        check_mechanism(Hopeless(), [1, 1, 0])
    text = str(caught.value)
    assert "distance" in text
    assert "zero or more" in text
    assert "print nothing" in text


def test_no_data_are_in_the_report():
    class Blabs(Honest):
        def draw(self, data):
            raise RuntimeError(f"secret {data}")

    with pytest.raises(errors.UnsupportedGuarantee) as caught:
        check_mechanism(Blabs(), [1234567])
    assert "1234567" not in str(caught.value)
    assert "RuntimeError" in str(caught.value)


def test_a_refusal_is_an_outcome_and_may_come_and_go():
    class Declines(Honest):
        def draw(self, data):
            value = super().draw(data)
            return value if value > 1 else Refusal("too few")

        def error(self, confidence=0.95):
            return Mechanism.error(self, confidence)

    problem = rules._violations(
        rules.keeps_its_shape, rules.MechanismUnderTest(Declines(), ([1, 1, 0], [1, 1, 1]))
    )
    assert problem == []


@pytest.mark.parametrize("call", [lambda: check_mechanism(1.0, [1]), lambda: check_mechanism(Honest())])
def test_it_needs_a_mechanism_and_data(call):
    with pytest.raises(errors.BadParameter) as caught:
        call()
    assert caught.value.code == "DP104"


def test_the_source_is_put_back():
    before = testing._source.current()
    check_mechanism(Honest(), [1])
    assert testing._source.current() is before
    assert math.isfinite(Honest()([1]).value)
