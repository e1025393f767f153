# SPDX-License-Identifier: Apache-2.0
"""Learning from private records: scikit-learn estimators, and DP-SGD for PyTorch in `discreet.learn.torch`.

arguments.py     calls that do not fit a signature: a coded error
budget.py        Budget: (ε, δ) as Gaussian noise, and its shares
reading.py, labels.py      X and y as arrays, one record at a time; the class of a record
features.py      Box: rows as whole numbers of bounded norm                             ◄ read this first
ball.py, cube.py       other shapes of rows: in a ball, and feature by feature
moments.py, sums.py, lloyd.py      sums over rows, released once            + moments.proof.md, joint.proof.md
losses.py        losses of linear models by their slopes
descent.py       noisy gradient descent in whole numbers                             + descent.proof.md
minimiser.py, curves.py      a certified minimiser; what objective perturbation reveals
problem.py       Problem, Fit, Solver: what a solver is given, and what it owes
whitened.py, gradient.py, objective.py, output.py, joint.py, adassp.py       the solvers, by name in solvers.py
base.py, glm.py  what all estimators, and all linear ones, share
logistic.py, svc.py, linear.py, huber.py, naive_bayes.py, kmeans.py, pca.py, scaler.py      the estimators
inference.py, intervals.py     confidence intervals of coefficients                 + inference.proof.md
tuning.py        tune: the best of several models, paid for
progress.py      how far a fit has come
torch/           training of networks

Budgets, bounds and classes are declared; nothing of that kind is ever read off the data. Estimators are loaded when
they are first used, because scikit-learn is an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.errors import MissingExtra

if TYPE_CHECKING:
    from discreet.learn.classification import LinearSVC as LinearSVC
    from discreet.learn.classification import LogisticRegression as LogisticRegression
    from discreet.learn.kmeans import KMeans as KMeans
    from discreet.learn.naive_bayes import GaussianNB as GaussianNB
    from discreet.learn.pca import PCA as PCA
    from discreet.learn.regression import HuberRegression as HuberRegression
    from discreet.learn.regression import LinearRegression as LinearRegression
    from discreet.learn.regression import Ridge as Ridge
    from discreet.learn.scaler import StandardScaler as StandardScaler
    from discreet.learn.tuning import tune as tune

_HOMES = {
    "GaussianNB": "naive_bayes",
    "HuberRegression": "regression",
    "KMeans": "kmeans",
    "LinearRegression": "regression",
    "LinearSVC": "classification",
    "LogisticRegression": "classification",
    "PCA": "pca",
    "Ridge": "regression",
    "StandardScaler": "scaler",
    "tune": "tuning",
}

__all__ = [  # noqa: RUF022 # the order of _HOMES
    "GaussianNB",
    "HuberRegression",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "PCA",
    "Ridge",
    "StandardScaler",
    "tune",
]


def __getattr__(name: str) -> Any:
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
            why="it is a scikit-learn estimator.",
            fix="pip install 'discreet[learn]'",
        ) from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
