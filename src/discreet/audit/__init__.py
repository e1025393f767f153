# SPDX-License-Identifier: Apache-2.0
"""Test whether a mechanism keeps its guarantee: tell its outputs on two neighbouring inputs apart,
with certified bounds.

    import discreet as dp

    report = dp.audit(mechanism, x, x_neighbour)
    report.refutes(); report.epsilon_at_least(delta=0); report.witness

game.py      the two-sample game                                           ◄ read this first
report.py    the findings
witness.py   the event that proves a bound, with its counts
bounds.py    from counts to certainty: binomial intervals, a band for a curve, corners against a claim
draws.py     running anything many times
outputs.py   outputs of any kind as cells
cells.py     the cells that are looked at, and the scores that are tried
scores.py    histograms, bare numbers, logistic regression
exact.py     small mechanisms by enumeration, without sampling
pairs.py     which inputs to try: the worst pair of a known mechanism, a search for an unknown one
canary.py    one training run with many canaries

The package itself is callable, and is the function `audit`: `dp.audit(…)` means the same whether or
not `discreet.audit` was imported before.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from discreet.audit.bounds import clopper_pearson, dkw
from discreet.audit.canary import OneRun, one_run
from discreet.audit.draws import batched
from discreet.audit.exact import ExactReport, exact
from discreet.audit.game import audit, audit_bits
from discreet.audit.pairs import register_pair, search, worst_pair
from discreet.audit.report import AuditReport, AuditRoc
from discreet.audit.witness import Event, Rate

__all__ = [
    "AuditReport",
    "AuditRoc",
    "Event",
    "ExactReport",
    "OneRun",
    "Rate",
    "audit",
    "audit_bits",
    "batched",
    "clopper_pearson",
    "dkw",
    "exact",
    "one_run",
    "register_pair",
    "search",
    "worst_pair",
]


class CallableAudit:
    """The package as type checkers see `dp.audit`: a function that has all the names of the
    package.
    """

    # Python 3.11 and 3.12 would leave the first parameter out.
    __signature__ = inspect.signature(audit)
    __call__ = staticmethod(audit)

    AuditReport = AuditReport
    AuditRoc = AuditRoc
    Event = Event
    ExactReport = ExactReport
    OneRun = OneRun
    Rate = Rate
    audit = staticmethod(audit)
    audit_bits = staticmethod(audit_bits)
    batched = staticmethod(batched)
    clopper_pearson = staticmethod(clopper_pearson)
    dkw = staticmethod(dkw)
    exact = staticmethod(exact)
    one_run = staticmethod(one_run)
    register_pair = staticmethod(register_pair)
    search = staticmethod(search)
    worst_pair = staticmethod(worst_pair)


class _Package(CallableAudit, ModuleType):
    """A module that can be called; what it has itself comes before the names of the class."""


sys.modules[__name__].__class__ = _Package
