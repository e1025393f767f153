# SPDX-License-Identifier: Apache-2.0
"""Propose-test-release and stability, under one name.

    from discreet.mechanisms import ptr

    ptr.release(query, distance, bound=…, test_epsilon=…, release_epsilon=…, delta=…)(data)  # your own distance
    ptr.check_distance(query, distance, domain=…, bound=…)  # is it right?
    ptr.median(bounds=(0, 100)).release(bound=1, …)(ages);  ptr.reciprocal.search(bounds=…, …)(count)
    ptr.vote(["yes", "no"], epsilon=1, delta=1e-6)(ballots);  ptr.mode(…);  ptr.argmax(…);  ptr.top_k(…)
    ptr.bounded(query, measure, bound_epsilon=…, release_epsilon=…, delta=…)(data)  # no proposal at all

Each name is the class or function of the file that it comes from; see
docs/reference/mechanisms/propose-test-release.md.
"""

from __future__ import annotations

from functools import partial

from discreet.mechanisms.distance import check_distance
from discreet.mechanisms.guided import HighProbabilityBound, WithBound
from discreet.mechanisms.instance import per_instance_loss, per_instance_losses
from discreet.mechanisms.prediction import prediction_variance
from discreet.mechanisms.proposals import (
    Proposal,
    ProposedLogSpread,
    ProposedOrderStatistic,
    ProposedReciprocal,
)
from discreet.mechanisms.propose import ProposeSearchRelease, ProposeTestRelease
from discreet.mechanisms.secret import Secret
from discreet.mechanisms.stability import StabilityTest
from discreet.mechanisms.stable import StableArgmax, StableMode, StableTopK, StableValue, StableVote

__all__ = [
    "Proposal",
    "Secret",
    "StabilityTest",
    "WithBound",
    "argmax",
    "bounded",
    "check_distance",
    "log_spread",
    "median",
    "mode",
    "order_statistic",
    "per_instance_loss",
    "per_instance_losses",
    "prediction_variance",
    "reciprocal",
    "release",
    "search",
    "top_k",
    "value",
    "vote",
]

release, search, bounded = ProposeTestRelease, ProposeSearchRelease, HighProbabilityBound
value, vote, mode, argmax, top_k = StableValue, StableVote, StableMode, StableArgmax, StableTopK
order_statistic, log_spread = ProposedOrderStatistic, ProposedLogSpread
median = partial(ProposedOrderStatistic, 0.5)
reciprocal = ProposedReciprocal()
