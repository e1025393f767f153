# SPDX-License-Identifier: Apache-2.0
"""Noise and privacy together: every mechanism states its guarantee before it sees any data.

mechanism.py     Mechanism, Release, Refusal                               ◄ read this first
digits.py        a released number and its interval as people read them
distributions.py whole-number noise: its draw, its tail bound, its guarantee
additive.py      Laplace, Gaussian, Geometric, DiscreteGaussian on numbers and vectors
queries.py       count, counts, histogram, sum, mean, variance, statistical: questions about records
                 query.py (base), counting.py, moments.py, shares.py, exact.py (what a record counts as)
local.py         randomized response and unary encodings: local privacy
choice.py        exponential mechanism, permute-and-flip, noisy max, top-k                 + choice.proof.md
threshold.py     sparse vector: which answers lie above a line                          + threshold.proof.md
partition.py     which keys may be named (with truncated.py, a distribution of noise)            + partition.proof.md
combine.py       then, both, select_best: mechanisms from mechanisms
analysis.py      AdaptiveQueries, Thresholdout (with generalisation.py)                  + analysis.proof.md
quantile.py      Quantile, Median; several at once in quantiles.py                        + quantile.proof.md
bounds.py        Bounds of numbers of unknown range; their mean and sum in unknown.py
sensitivity.py   global, local and smooth sensitivity; check_callback
smooth/          answers with noise in proportion to their smooth sensitivity              + smooth.proof.md
conformance.py   check_mechanism: what every mechanism owes, as a test suite
propose.py       ProposeTestRelease; the test itself in stability.py, check_distance in distance.py  + propose.proof.md
                 proposals.py (medians, spreads, reciprocals), search.py (which bound?), guided.py (a released bound)
stable.py        values without noise where nobody could have changed them: votes, modes, winners
                 prediction.py (variance of a regression), ptr.py (all of these under one name)
secret.py        Secret: read from data, and never shown by accident; instance.py, what one record loses
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
from discreet.mechanisms.analysis import AdaptiveQueries, Conversation, Thresholdout
from discreet.mechanisms.bounds import Bounds
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
from discreet.mechanisms.generalisation import expected_gap, population_error
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
from discreet.mechanisms.propose import ProposeTestRelease
from discreet.mechanisms.quantile import Median, Quantile, private_median, private_quantile
from discreet.mechanisms.quantiles import Quantiles, private_quantiles
from discreet.mechanisms.search import ProposeSearchRelease
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
from discreet.mechanisms.unknown import UnboundedMean, UnboundedSum

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
