# SPDX-License-Identifier: Apache-2.0
"""Noise and privacy together: every mechanism states its guarantee before it sees any data.

mechanism.py      Mechanism, Release, Refusal                            ◄ read this first
amount.py         the amount of noise, stated in one way
digits.py         a released number and its interval as people read them
distributions.py  whole-number noise: its draw, its tail bound, its guarantee
additive.py       Laplace, Gaussian, Geometric, DiscreteGaussian on numbers and vectors
queries.py        count, counts, histogram, sum, mean, variance, statistical: queries about records
                  query.py (base), counting.py, moments.py, exact.py (what a record counts as)
local.py          randomized response and unary encodings: local privacy
choice.py         exponential mechanism, permute-and-flip, noisy max, top-k
threshold.py      sparse vector: which answers lie above a line
conversation.py   answers to adaptive questions: charged once, and never copied
partition.py      private keys and their counts
combine.py        then, both, select_best: mechanisms from mechanisms
analysis.py       AdaptiveQueries, Thresholdout, and what they say of the population
quantile.py       Quantile, Median, and several quantiles at once
bounds.py         bounds of numbers of unknown range; UnboundedMean, UnboundedSum
sensitivity.py    global, local and smooth sensitivity; check_callback
smooth/           noise in proportion to smooth sensitivity
gram.py           exact Gram matrices, for the variance of predictions here and in smooth/
conformance.py    check_mechanism: what every mechanism owes, as a test suite
propose.py        ProposeTestRelease, ProposeSearchRelease; the test itself is in stability.py
                  proposals.py (medians, spreads, reciprocals), distance.py (check_distance)
guided.py         a private bound on the sensitivity, then noise for it
                  prediction.py (variance of a regression's prediction)
stable.py         exact values that no single record can change: votes, modes, winners
ptr.py            propose, guided and stable under one name
secret.py         Secret: a value without noise, never shown by accident
                  instance.py (the loss of one record)

A proof stands beside its file: `choice.proof.md` proves what `choice.py` promises.
"""

from __future__ import annotations

from discreet.mechanisms import local, ptr, queries, smooth
from discreet.mechanisms.additive import (
    Additive,
    DiscreteGaussian,
    Gaussian,
    Geometric,
    Laplace,
    classic_gaussian_scale,
)
from discreet.mechanisms.analysis import (
    AdaptiveQueries,
    Conversation,
    Thresholdout,
    expected_gap,
    population_error,
)
from discreet.mechanisms.bounds import Bounds, UnboundedMean, UnboundedSum
from discreet.mechanisms.choice import (
    Choice,
    ExponentialMechanism,
    NoisyMax,
    PermuteAndFlip,
    TopK,
    choose,
    exponential_mechanism,
    noisy_max,
    permute_and_flip,
)
from discreet.mechanisms.combine import Best, Both, Chosen, Then, both, select_best, then
from discreet.mechanisms.conformance import check_mechanism
from discreet.mechanisms.distance import check_distance
from discreet.mechanisms.guided import HighProbabilityBound
from discreet.mechanisms.local import (
    LocalEstimate,
    LocalMechanism,
    OptimisedUnary,
    RandomizedResponse,
    SymmetricUnary,
)
from discreet.mechanisms.mechanism import Mechanism, Refusal, Release
from discreet.mechanisms.partition import PartitionSelection, StabilityHistogram
from discreet.mechanisms.propose import ProposeSearchRelease, ProposeTestRelease
from discreet.mechanisms.quantile import (
    Median,
    Quantile,
    Quantiles,
    private_median,
    private_quantile,
    private_quantiles,
)
from discreet.mechanisms.secret import Secret
from discreet.mechanisms.sensitivity import (
    GlobalSensitivity,
    LocalAtDistance,
    SmoothBound,
    Universe,
    check_callback,
    check_smooth_bound,
)
from discreet.mechanisms.stable import StableArgmax, StableMode, StableTopK, StableValue, StableVote
from discreet.mechanisms.threshold import AboveThreshold, Questions, SparseVector

__all__ = [
    "AboveThreshold",
    "AdaptiveQueries",
    "Additive",
    "Best",
    "Both",
    "Bounds",
    "Choice",
    "Chosen",
    "Conversation",
    "DiscreteGaussian",
    "ExponentialMechanism",
    "Gaussian",
    "Geometric",
    "GlobalSensitivity",
    "HighProbabilityBound",
    "Laplace",
    "LocalAtDistance",
    "LocalEstimate",
    "LocalMechanism",
    "Mechanism",
    "Median",
    "NoisyMax",
    "OptimisedUnary",
    "PartitionSelection",
    "PermuteAndFlip",
    "ProposeSearchRelease",
    "ProposeTestRelease",
    "Quantile",
    "Quantiles",
    "Questions",
    "RandomizedResponse",
    "Refusal",
    "Release",
    "Secret",
    "SmoothBound",
    "SparseVector",
    "StabilityHistogram",
    "StableArgmax",
    "StableMode",
    "StableTopK",
    "StableValue",
    "StableVote",
    "SymmetricUnary",
    "Then",
    "Thresholdout",
    "TopK",
    "UnboundedMean",
    "UnboundedSum",
    "Universe",
    "both",
    "check_callback",
    "check_distance",
    "check_mechanism",
    "check_smooth_bound",
    "choose",
    "classic_gaussian_scale",
    "expected_gap",
    "exponential_mechanism",
    "local",
    "noisy_max",
    "permute_and_flip",
    "population_error",
    "private_median",
    "private_quantile",
    "private_quantiles",
    "ptr",
    "queries",
    "select_best",
    "smooth",
    "then",
]
