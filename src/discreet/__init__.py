# SPDX-License-Identifier: Apache-2.0
"""discreet: differential privacy from the description of the data to the promise that is kept.

A map of the library, in the order in which a newcomer meets it:

    privacy     what is promised: Guarantee, its primitives, composition and every view of it
    calibrate   the least noise (or the most steps) whose guarantee still implies a target
    errors      the tree of everything that discreet refuses, each with a code and a fix

    import discreet as dp
    from discreet import privacy

    step = privacy.gaussian(noise=1.0).sampled(rate=0.01)
    train = 1_000 * step + privacy.laplace(scale=10)
    train.epsilon(delta=1e-6)

Read `discreet.privacy.guarantee` first: a Guarantee is an immutable tree that says what was run, and
every number is a view of it.

Names are loaded when they are first used, so `import discreet` costs next to nothing and an optional
dependency is asked for only by the part that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import errors as errors
    from discreet import privacy as privacy
    from discreet.privacy.calibrate import calibrate as calibrate
    from discreet.privacy.guarantee import Guarantee as Guarantee
    from discreet.privacy.unit import Unit as Unit

__version__ = "0.1.0"

__all__ = ["Guarantee", "Unit", "__version__", "calibrate", "errors", "privacy"]

_HOMES = {
    "Guarantee": "discreet.privacy.guarantee",
    "Unit": "discreet.privacy.unit",
    "calibrate": "discreet.privacy.calibrate",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in __all__:
        return import_module(f"discreet.{name}")
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
