# SPDX-License-Identifier: Apache-2.0
"""Learning from private records: scikit-learn estimators, and DP-SGD for PyTorch in
`discreet.learn.torch`.

    LogisticRegression, LinearSVC                        classification.py   } linear models: glm.py, and the solvers below
    LinearRegression, Ridge, HuberRegression             regression.py       }
    PoissonRegressor, GammaRegressor                     log_linear.py            } + log_linear.proof.md
    AdditiveClassifier, AdditiveRegressor                additive.py: one curve for each feature
    GaussianNB, KMeans, PCA, StandardScaler              naive_bayes.py, kmeans.py, pca.py, scaler.py
    tune                                                 tuning.py: the best of several models, paid for

arrays.py        the kinds of arrays
base.py          what all estimators share: charge first, then read the data
inputs.py        X, y, bounds and classes, read as arrays, one record at a time
budget.py        FitBudget: (ε, δ) as Gaussian noise, split among releases
features.py      Box: rows as whole numbers of bounded norm                                    ◄ read this first
ball.py, cube.py other shapes of rows: in a ball, and feature by feature
moments.py       NoisyMoments: the sum of x xᵀ, released once               + moments.proof.md, joint.proof.md
losses.py        losses of linear models by their slopes
descent.py       noisy gradient descent in whole numbers                     + descent.proof.md
ranges.py        where rows and targets lie inside bounds that are too wide
minimiser.py     a certified minimiser                                       + output.proof.md
solvers.py       Problem, FittedWeights, Solver, and the solvers by name: whitened.py, gradient.py,
                 objective.py (+ objective.proof.md), output.py, joint.py, adassp.py
additive_fit.py  one fit of an additive model                                + additive.proof.md
bins.py, shapes.py, interactions.py, calibration.py                          its parts
inference.py     confidence intervals of coefficients                        + inference.proof.md
arguments.py     calls that do not fit a signature: a coded error
torch/           training of networks

Budgets, bounds and classes are declared. They are never read off the data. Estimators are loaded
when they are first used, because scikit-learn is an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.errors import MissingExtra

if TYPE_CHECKING:
    from discreet.learn.additive import AdditiveClassifier as AdditiveClassifier
    from discreet.learn.additive import AdditiveRegressor as AdditiveRegressor
    from discreet.learn.classification import LinearSVC as LinearSVC
    from discreet.learn.classification import LogisticRegression as LogisticRegression
    from discreet.learn.kmeans import KMeans as KMeans
    from discreet.learn.log_linear import GammaRegressor as GammaRegressor
    from discreet.learn.log_linear import PoissonRegressor as PoissonRegressor
    from discreet.learn.naive_bayes import GaussianNB as GaussianNB
    from discreet.learn.pca import PCA as PCA
    from discreet.learn.regression import HuberRegression as HuberRegression
    from discreet.learn.regression import LinearRegression as LinearRegression
    from discreet.learn.regression import Ridge as Ridge
    from discreet.learn.scaler import StandardScaler as StandardScaler
    from discreet.learn.tuning import tune as tune

_HOMES = {
    "AdditiveClassifier": "additive",
    "AdditiveRegressor": "additive",
    "GammaRegressor": "log_linear",
    "GaussianNB": "naive_bayes",
    "HuberRegression": "regression",
    "KMeans": "kmeans",
    "LinearRegression": "regression",
    "LinearSVC": "classification",
    "LogisticRegression": "classification",
    "PCA": "pca",
    "PoissonRegressor": "log_linear",
    "Ridge": "regression",
    "StandardScaler": "scaler",
    "tune": "tuning",
}

__all__ = [  # noqa: RUF022 # the order of _HOMES
    "AdditiveClassifier",
    "AdditiveRegressor",
    "GammaRegressor",
    "GaussianNB",
    "HuberRegression",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PCA",
    "PoissonRegressor",
    "Ridge",
    "StandardScaler",
    "tune",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet.learn' has no attribute {name!r}")
    try:
        module = import_module(f"discreet.learn.{_HOMES[name]}")
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("sklearn"):
            raise
        raise MissingExtra(
            "DP501",
            f"{name} needs scikit-learn, which is not installed.",
            why="every estimator here is a scikit-learn estimator.",
            fix="pip install 'discreet[learn]'",
        ) from None
    resolved: object = getattr(module, name)
    return resolved


def __dir__() -> list[str]:
    return __all__
