# SPDX-License-Identifier: Apache-2.0
"""discreet: differential privacy from the description of the data to the promise that is kept.

A map of the library, in the order in which a newcomer meets it:

    open        a private table, with what is publicly known of it; `each`, `each_row`, `column` and `col` help
    Session     the one door to it: SQL and expressions, charged first and then answered
    Limit       how much may be spent in all; Ledger, the file that remembers what was
    Laplace     noise on a number or a vector; likewise Gaussian, Geometric, DiscreteGaussian
    noisy_max   a choice among candidates; likewise exponential_mechanism and permute_and_flip
    mechanisms  all mechanisms: queries, choices, thresholds, quantiles, local reports, how to combine them
    privacy     what is promised: Guarantee, its primitives, composition and every view of it
    smooth      noise in proportion to a smooth bound: medians, trimmed means, and functions of yours
    ptr         propose-test-release, and values that need no noise where they are stable
    graphs      triangles, stars and degrees of graphs
    audit       what outputs on two neighbouring inputs prove against a promise
    plot        pictures of all this
    calibrate   the least noise (or the most steps) whose guarantee still implies a target
    errors      the tree of everything that discreet refuses, each with a code and a fix

    import discreet as dp
    from discreet import privacy

    data = dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6), ledger="visits.ledger")
    session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)

    dp.Laplace(epsilon=1, sensitivity=1)(42).value

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
    from discreet import audit as audit
    from discreet import errors as errors
    from discreet import graphs as graphs
    from discreet import mechanisms as mechanisms
    from discreet import plot as plot
    from discreet import privacy as privacy
    from discreet.ledger.ledger import Ledger as Ledger
    from discreet.ledger.limit import Limit as Limit
    from discreet.mechanisms import ptr as ptr
    from discreet.mechanisms import smooth as smooth
    from discreet.mechanisms.additive import DiscreteGaussian as DiscreteGaussian
    from discreet.mechanisms.additive import Gaussian as Gaussian
    from discreet.mechanisms.additive import Geometric as Geometric
    from discreet.mechanisms.additive import Laplace as Laplace
    from discreet.mechanisms.choice import exponential_mechanism as exponential_mechanism
    from discreet.mechanisms.choice import noisy_max as noisy_max
    from discreet.mechanisms.choice import permute_and_flip as permute_and_flip
    from discreet.privacy.calibrate import calibrate as calibrate
    from discreet.privacy.guarantee import Guarantee as Guarantee
    from discreet.privacy.unit import Unit as Unit
    from discreet.session import Session as Session
    from discreet.tables.ask.formula import col as col
    from discreet.tables.open import column as column
    from discreet.tables.open import each as each
    from discreet.tables.open import each_row as each_row
    from discreet.tables.open import open as open  # noqa: A004 - as a person says it: dp.open(…)

__version__ = "0.1.0"

__all__ = [
    "DiscreteGaussian",
    "Gaussian",
    "Geometric",
    "Guarantee",
    "Laplace",
    "Ledger",
    "Limit",
    "Session",
    "Unit",
    "__version__",
    "audit",
    "calibrate",
    "col",
    "column",
    "each",
    "each_row",
    "errors",
    "exponential_mechanism",
    "graphs",
    "mechanisms",
    "noisy_max",
    "open",
    "permute_and_flip",
    "plot",
    "privacy",
    "ptr",
    "smooth",
]

_HOMES = {
    "ptr": "discreet.mechanisms",
    "smooth": "discreet.mechanisms",
    "DiscreteGaussian": "discreet.mechanisms.additive",
    "Gaussian": "discreet.mechanisms.additive",
    "Geometric": "discreet.mechanisms.additive",
    "Laplace": "discreet.mechanisms.additive",
    "exponential_mechanism": "discreet.mechanisms.choice",
    "noisy_max": "discreet.mechanisms.choice",
    "permute_and_flip": "discreet.mechanisms.choice",
    "Guarantee": "discreet.privacy.guarantee",
    "Unit": "discreet.privacy.unit",
    "calibrate": "discreet.privacy.calibrate",
    "Ledger": "discreet.ledger.ledger",
    "Limit": "discreet.ledger.limit",
    "Session": "discreet.session",
    "col": "discreet.tables.ask.formula",
    "column": "discreet.tables.open",
    "each": "discreet.tables.open",
    "each_row": "discreet.tables.open",
    "open": "discreet.tables.open",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from discreet.extras import naming_extras

        with naming_extras():
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in __all__:
        return import_module(f"discreet.{name}")
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
