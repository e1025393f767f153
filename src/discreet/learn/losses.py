# SPDX-License-Identifier: Apache-2.0
"""Losses of linear models by their slope: how a record pushes the score that the model gives it.

A slope is a function of one record's score and target, so it may be anything at all: privacy rests
on clipping it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from discreet.learn.arrays import Reals

__all__ = [
    "Gamma",
    "Hinge",
    "Huber",
    "Likelihood",
    "LogLinear",
    "Logistic",
    "Loss",
    "Poisson",
    "Softmax",
    "Squared",
]


class Loss(ABC):
    """d loss / d score, for one score or one per class; targets have the shape of the scores."""

    #: The greatest second derivative, which sets the length of a step …
    curvature: float
    #: … and how long a step is relative to it. It is less where the curvature is constant: longer
    #: steps only add noise.
    pace: float = 0.5
    #: Whether slopes stay clipped however many rows there are. It is steadier where no linear model
    #: fits, but biased.
    is_robust: bool = False
    #: The slope of a typical record, in which the clip is stated, and the score of the mean target,
    #: where a descent starts.
    unit: float = 1.0
    level: float = 0.0

    @abstractmethod
    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        """One slope for each score."""


class Likelihood(Loss):
    """A negative log-likelihood of one score, up to a factor. Its curvature then gives the sampling
    error.
    """

    #: The fraction by which coefficients grow if noise moves scores with a variance of 1: the
    #: averaged curve is flatter.
    flattening: float = 0.0

    @abstractmethod
    def second(self, scores: Reals) -> Reals:
        """The second derivative at each score, from 0 to `curvature`."""


@dataclass(frozen=True)
class Logistic(Likelihood):
    """log(1 + exp(-score)) of a target 1, log(1 + exp(score)) of a target 0."""

    is_robust: bool = False
    curvature = 0.25
    # 0.173 near scores of 0, by the normal integral of the logistic curve; more where scores are
    # large
    flattening = 0.3

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        return np.asarray(expit(scores)) - targets

    def second(self, scores: Reals) -> Reals:
        return np.asarray(expit(scores) * expit(-scores))


@dataclass(frozen=True)
class Softmax(Loss):
    """The negative log-likelihood of the class, by one score for each."""

    is_robust: bool = False
    curvature = 0.5
    pace = 0.8

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        return np.asarray(softmax(scores, axis=1)) - targets


class Squared(Likelihood):
    """Half the square of the error: the likelihood of normal errors, over their variance."""

    curvature = 1.0
    pace = 0.15

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        return scores - targets

    def second(self, scores: Reals) -> Reals:
        return np.ones_like(scores)


@dataclass(frozen=True)
class Huber(Loss):
    """Half the square of a small error, linear beyond `width`."""

    width: float
    curvature = 1.0
    pace = 0.15

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        return np.clip(scores - targets, -self.width, self.width)


class Hinge(Loss):
    """The hinge with its corner rounded over a width of 1: 0 from score 1.5 on, slope -1 below 0.5;
    targets are ±1.
    """

    curvature = 1.0

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        return -targets * np.clip(1.5 - targets * scores, 0.0, 1.0)


class LogLinear(Loss):
    """Losses of a positive number by the logarithm of its mean."""

    @abstractmethod
    def about(self, cap: float, mean: float) -> Loss:
        """The same loss for targets with this mean, hardly any of which exceeds `cap`."""


@dataclass(frozen=True)
class Poisson(LogLinear):
    """exp(score) - target · score, for predictions up to four times the largest usual target."""

    cap: float = 1.0
    mean: float = 1.0
    pace = 0.5

    def about(self, cap: float, mean: float) -> Poisson:
        return Poisson(cap, mean)

    @property
    def curvature(self) -> float:  # type: ignore[override]  # it depends on the mean
        return 2 * self.mean

    @property
    def unit(self) -> float:  # type: ignore[override]  # it depends on the mean
        return 2 * max(math.sqrt(self.mean), self.mean)

    @property
    def level(self) -> float:  # type: ignore[override]  # it depends on the mean
        return math.log(self.mean)

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        with np.errstate(over="ignore"):
            return np.minimum(np.exp(scores), 4 * self.cap) - targets


@dataclass(frozen=True)
class Gamma(LogLinear):
    """target · exp(-score) + score, for errors up to a factor of four."""

    mean: float = 1.0
    curvature = 2.0
    pace = 0.5

    def about(self, cap: float, mean: float) -> Gamma:
        return Gamma(mean)

    @property
    def level(self) -> float:  # type: ignore[override]  # it depends on the mean
        return math.log(self.mean)

    def slopes(self, scores: Reals, targets: Reals) -> Reals:
        with np.errstate(over="ignore"):
            return 1 - np.minimum(targets * np.exp(-scores), 4.0)
