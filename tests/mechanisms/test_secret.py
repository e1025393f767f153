# SPDX-License-Identifier: Apache-2.0
"""A secret is shown by nothing but `reveal`, and what one record loses is right and a secret."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import logging
import math
import pickle
import pprint

import mpmath
import numpy as np
import pytest

from discreet import privacy
from discreet.errors import BadParameter, DiscreetError, UnsupportedGuarantee
from discreet.mechanisms import Gaussian, Geometric, Laplace, Release
from discreet.mechanisms.instance import per_instance_loss, per_instance_losses
from discreet.mechanisms.secret import Secret

VALUE = 0.8675309
MARK = "8675309"
REASON = "a test with made-up numbers"


def secret():
    return Secret(VALUE, "what Ann loses")


@dataclasses.dataclass
class Holder:
    inside: Secret


SHOWN = {
    "str": str,
    "repr": repr,
    "format": lambda s: f"{s}",
    "format with a width": lambda s: f"{s:.9f} {s!r:>40}",
    "percent": lambda s: f"{s!s} %s" % s,
    "list": lambda s: str([s, {"a": s}]),
    "print": lambda s: print(s, file=(out := io.StringIO())) or out.getvalue(),
    "pprint": pprint.pformat,
    "dir": lambda s: str(dir(s)),
    "slots": lambda s: str([getattr(s, name) for name in type(s).__slots__ if name != "__weakref__"]),
    "json default=str": lambda s: json.dumps({"x": s}, default=str),
    "dataclass": lambda s: repr(Holder(s)),
    "release": lambda s: str(Release(s, privacy.pure(1))) + Release(s, privacy.pure(1))._repr_html_(),
    "exception": lambda s: repr(ValueError(s)),
    "log": lambda s: logging.LogRecord("n", 20, "p", 1, "%s %r", (s, s), None).getMessage(),
}

REFUSED = {
    "float": float,
    "int": int,
    "bool": bool,
    "complex": complex,
    "round": round,
    "index": lambda s: [1, 2][s],
    "abs": abs,
    "len": len,
    "iter": list,
    "item": lambda s: s[0],
    "contains": lambda s: 1 in s,
    "call": lambda s: s(),
    "equal": lambda s: s == VALUE,
    "not equal": lambda s: s != VALUE,
    "less": lambda s: s < 1,
    "sorted": lambda s: sorted([s, 1.0]),
    "max": lambda s: max(s, 1.0),
    "hash": hash,
    "set": lambda s: {s},
    "plus": lambda s: s + 1,
    "plus from the left": lambda s: 1 + s,
    "sum": lambda s: sum([s]),
    "times": lambda s: 2 * s,
    "divide": lambda s: s / 2,
    "power": lambda s: s**2,
    "minus": lambda s: -s,
    "numpy": np.asarray,
    "numpy float": np.float64,
    "object array": lambda s: np.array([[s]], dtype=object),
    "numpy exp": np.exp,
    "math": math.exp,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "asdict": lambda s: dataclasses.asdict(Holder(s)),
    "json": lambda s: json.dumps({"x": s}),
    "json of its attributes": lambda s: json.dumps(s, default=vars),
    "percent f": "%f".__mod__,
    "if": lambda s: 1 if s else 0,
}


@pytest.mark.parametrize("way", SHOWN)
def test_it_is_shown_as_a_secret(way):
    text = SHOWN[way](secret())
    assert MARK not in text
    assert way in {"dir", "slots"} or "<secret: what Ann loses>" in text or "&lt;secret" in text


@pytest.mark.parametrize("way", REFUSED)
def test_it_is_refused(way):
    with pytest.raises((DiscreetError, TypeError)) as caught:
        REFUSED[way](secret())
    assert MARK not in str(caught.value)
    if isinstance(caught.value, DiscreetError):
        assert caught.value.code == "DP206"


def test_only_json_and_a_format_of_numbers_refuse_in_words_of_their_own():
    others = set()
    for way, use in REFUSED.items():
        try:
            use(secret())
        except DiscreetError:
            continue
        except TypeError:
            others.add(way)
    assert others <= {"json", "json of its attributes", "math", "numpy exp", "percent f"}


def test_it_has_no_attributes_to_look_into():
    assert not hasattr(secret(), "__dict__")
    with pytest.raises(AttributeError):
        secret().note = 1


def test_reveal_wants_a_reason():
    assert secret().reveal(because=REASON) == VALUE
    for bad in ("", "   ", "because", None, 7, True):
        with pytest.raises(BadParameter):
            secret().reveal(because=bad)
    with pytest.raises(TypeError):
        secret().reveal()


def test_a_function_of_a_secret_is_a_secret():
    doubled = secret().apply(lambda x: 2 * x, "twice as much")
    assert repr(doubled) == "<secret: twice as much>"
    assert doubled.reveal(because=REASON) == 2 * VALUE


# --- what one record loses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("moved", [0, 3, 25, 100])
def test_the_loss_of_laplace_noise_is_the_move_over_the_scale(moved):
    mechanism = Laplace(epsilon=1, sensitivity=100)
    loss = per_instance_loss(mechanism, 1_000 + moved, 1_000)
    assert isinstance(loss, Secret)
    assert loss.reveal(because=REASON) == pytest.approx(moved / 100, rel=1e-9)
    assert per_instance_loss(mechanism, 1_000, 1_000 + moved).reveal(because=REASON) == loss.reveal(
        because=REASON
    )


def test_the_loss_of_gaussian_noise_is_that_of_the_analytic_formula():
    mechanism, delta = Gaussian(rho=0.5, sensitivity=10), 1e-5
    epsilon = per_instance_loss(mechanism, 4.0, 0.0, delta=delta).reveal(because=REASON)
    with mpmath.workdps(30):
        mu = mpmath.mpf(4) / mpmath.mpf(mechanism.scale)
        found = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        assert 0.999 * delta < found <= delta
    assert per_instance_loss(mechanism, 4.0, 0.0).reveal(because=REASON) == math.inf
    assert per_instance_loss(mechanism, 4.0, 4.0).reveal(because=REASON) == 0


def test_no_record_loses_more_than_is_guaranteed():
    payments = [0, 10, 99, 100, 37]
    for mechanism, delta in (
        (Laplace(epsilon=1, sensitivity=100), 0.0),
        (Geometric(epsilon=1, sensitivity=100), 0.0),
        (Gaussian(epsilon=1, delta=1e-6, sensitivity=100), 1e-6),
    ):
        losses = per_instance_losses(mechanism, sum, payments, delta=delta)
        assert "<secret" in repr(losses)
        found = losses.reveal(because=REASON)
        assert found.shape == (5,)
        assert found[0] == 0
        assert found.max() == pytest.approx(found[3])
        assert 0.99 < found.max() <= 1 + 1e-9
        assert list(np.argsort(found)) == [0, 1, 4, 2, 3]


def test_other_mechanisms_are_refused():
    for mechanism in (Laplace(epsilon=1, sensitivity=1, dimension=2), "laplace", None):
        with pytest.raises(UnsupportedGuarantee):
            per_instance_loss(mechanism, 1, 2)
    with pytest.raises(BadParameter):
        per_instance_loss(Laplace(epsilon=1, sensitivity=1), 1, 2, delta=-0.1)
