# SPDX-License-Identifier: Apache-2.0
"""What all private estimators share: a budget, bounds that are declared, a charge before the data are touched.

**Promise.** `fit` computes its guarantee from public parameters, charges the session (if there is one), and only then
reads the data. `privacy_` is the guarantee of what was run, `receipt_` what the session answered, `explain()` says it
in words. No error and no warning tells anything of a record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import BadParameter
from discreet.learn.budget import Budget
from discreet.learn.features import as_column, as_matrix
from discreet.learn.progress import Progress, shown
from discreet.privacy.guarantee import Guarantee

__all__ = ["PrivateEstimator"]

Reals = npt.NDArray[np.float64]


class PrivateEstimator(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn has no types
    """The base of every estimator here. Parameters are kept as they were given, and checked when fitting."""

    epsilon: Any
    delta: Any
    relation: str
    session: Any
    unit: str
    progress: Any

    privacy_: Guarantee
    receipt_: Any

    def explain(self) -> str:
        """What the fitted model reveals, in numbered sentences."""
        check_is_fitted(self, "privacy_")
        epsilon = self.privacy_.epsilon(delta=self.delta)
        relation = "a record is added or removed" if self.relation == "add-remove" else "a record is replaced"
        said = [
            *self._story(),
            f"Whether {relation} changes no probability by more than a factor e^{epsilon:.4g}, but for δ = {self.delta:g}.",
            "All sums were taken in whole numbers and the noise is exact; its bits come from the operating system.",
            "Bounds, classes and the number of features were taken as public; predictions may be shown freely.",
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(said, 1))

    @abstractmethod
    def _story(self) -> list[str]:
        """What was released, in sentences."""

    def _budget(self) -> Budget:
        return Budget.of(epsilon=self.epsilon, delta=self.delta, relation=self.relation, unit=self.unit)

    def _charge(self, guarantee: Guarantee) -> None:
        """Pay first: what is drawn after this is covered, and what was refused here was not drawn."""
        if self.session is not None and not hasattr(self.session, "charge"):
            raise BadParameter(
                "DP104",
                "session must be a Session.",
                why="it is charged before the data are read.",
                fix="session=dp.Session(data, limit=…), or leave it out",
            )
        asked = f"{type(self).__name__}.fit"
        receipt = None if self.session is None else self.session.charge(guarantee, question=asked)
        self.privacy_, self.receipt_ = guarantee, receipt

    def _matrix(self, data: Any, *, reset: bool) -> Any:
        """The features as they lie in memory, after checks that look at their shape and type alone."""
        matrix = as_matrix(data)
        validate_data(self, data if hasattr(data, "columns") else matrix, reset=reset, skip_check_array=True)
        return matrix

    def _shown(self) -> Progress | None:
        return shown(self.progress, type(self).__name__)

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted. It charges the same session: an account is shared, never copied."""
        kept = self.get_params(deep=False)
        return type(self)(
            **{name: value if name == "session" else clone(value, safe=False) for name, value in kept.items()}
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN is the middle of its bounds; an error would tell of it
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh in every fit
        return tags


def declared_classes(classes: Any) -> npt.NDArray[Any]:
    """The labels that a user declared: two or more, all different."""
    if classes is None:
        raise BadParameter(
            "DP107",
            "classes are missing.",
            why="which labels occur in the data is itself private.",
            fix="classes=[0, 1], every label that there can be",
        )
    labels = np.asarray(classes)
    if (
        labels.ndim != 1
        or labels.dtype.kind not in "biufUSO"
        or len(labels) < 2
        or len(set(labels.tolist())) < len(labels)
    ):
        raise BadParameter(
            "DP104",
            "classes must be a list of two or more different labels.",
            why="a classifier has to choose between them.",
            fix="classes=[0, 1]",
        )
    return np.sort(labels)


def members(y: Any, classes: npt.NDArray[Any], rows: int) -> npt.NDArray[np.bool_]:
    """One column for each class; a row whose label was not declared belongs to none, and is left out."""
    labels = as_column(y, rows)
    return np.stack([np.asarray(labels == label, bool) for label in classes], axis=1)
