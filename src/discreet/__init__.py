# SPDX-License-Identifier: Apache-2.0
"""discreet: differential privacy from the description of the data to the released answer.

A map of the library, in the order in which a newcomer meets it:

    open        a private table and what is publicly known of it; `each`, `each_row`, `column` and `col` help
    Session     asks questions in SQL or expressions: charges the budget first, then answers
    Limit       the budget: a cap on all answers together; Ledger, the file that stores what was spent
    data        data sets that come with the library: dp.open(dp.data.path("adult.toml"))
    tables      data sets, questions, previews and answers
    ledger      limits, ledgers, receipts and privacy statements
    learn       scikit-learn estimators with a budget; discreet.learn.torch, DP-SGD around your training loop

    Laplace     noise on a number or a vector; likewise Gaussian, Geometric, DiscreteGaussian
    noisy_max   a choice among candidates; likewise exponential_mechanism and permute_and_flip
    mechanisms  all mechanisms: queries, choices, thresholds, quantiles, local reports, how to combine them
    smooth      noise in proportion to a smooth bound: medians, trimmed means, and functions of yours
    ptr         propose-test-release, and values that need no noise where they are stable
    streams     numbers that are published every week, under one budget: Session.stream
    graphs      triangles, stars and degrees of graphs
    noise       exact noise from the system's random bits

    privacy     the accountant: Guarantee, its primitives, composition and every view of it; Unit, who is protected
    calibrate   the least noise (or the most steps) whose guarantee still implies a target
    audit       what outputs on two neighbouring inputs prove against a claimed guarantee
    plot        figures of all this
    testing     repeatable draws for tests, which are never private
    errors      every error that discreet raises on purpose, each with a code and a fix

    import discreet as dp

    data = dp.open("visits.parquet", protect=dp.each("patient_id", at_most=20))
    session = dp.Session(data, limit=dp.Limit.filter(epsilon=1, delta=1e-6), ledger="visits.ledger")
    session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)

    dp.Laplace(epsilon=1, sensitivity=1)(42).value

    step = dp.privacy.gaussian(noise=1.0).sampled(rate=0.01)
    train = 1_000 * step + dp.privacy.laplace(scale=10)
    train.epsilon(delta=1e-6)

To read the code, start at `discreet.privacy.guarantee`: a Guarantee is an immutable tree that says
what was run, and every number is a view of it. docs/explain/architecture.md is the map of the code.

Names are loaded when they are first used (PEP 562). So `import discreet` costs next to nothing, and
only the part that needs an optional dependency asks for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet import data as data
    from discreet import errors as errors
    from discreet import graphs as graphs
    from discreet import learn as learn
    from discreet import ledger as ledger
    from discreet import mechanisms as mechanisms
    from discreet import noise as noise
    from discreet import plot as plot
    from discreet import privacy as privacy
    from discreet import streams as streams
    from discreet import tables as tables
    from discreet import testing as testing
    from discreet.audit import CallableAudit
    from discreet.client import connect as connect
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
    from discreet.tables.ask.expressions import col as col
    from discreet.tables.open import column as column
    from discreet.tables.open import each as each
    from discreet.tables.open import each_row as each_row
    from discreet.tables.open import open as open  # noqa: A004 - as a person says it: dp.open(…)

    audit: CallableAudit

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
    "connect",
    "data",
    "each",
    "each_row",
    "errors",
    "exponential_mechanism",
    "graphs",
    "learn",
    "ledger",
    "mechanisms",
    "noise",
    "noisy_max",
    "open",
    "permute_and_flip",
    "plot",
    "privacy",
    "ptr",
    "smooth",
    "streams",
    "tables",
    "testing",
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
    "connect": "discreet.client",
    "col": "discreet.tables.ask.expressions",
    "column": "discreet.tables.open",
    "each": "discreet.tables.open",
    "each_row": "discreet.tables.open",
    "open": "discreet.tables.open",
}


# Type checkers see the imports above only, so that they report a misspelt name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'discreet' has no attribute {name!r}")
        from discreet.extras import naming_extras

        with naming_extras():
            if name not in _HOMES:
                return import_module(f"discreet.{name}")
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return __all__
