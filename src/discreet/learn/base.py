# SPDX-License-Identifier: Apache-2.0
"""What all private estimators share: a budget, bounds that are declared, a charge before the data are touched.

**Promise.** `fit` computes its guarantee from public parameters, charges the session (if there is one), and only then
reads the data. `privacy_` is the guarantee of what was run, `receipt_` what the session answered, `explain()` says it
in words. No error and no warning tells anything of a record. A fit forgets what was there before; one that fails leaves
nothing behind, so that `privacy_` never speaks of another model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.errors import BadParameter, LedgerError
from discreet.learn.budget import Budget
from discreet.learn.progress import Progress, shown
from discreet.learn.reading import as_matrix
from discreet.noise.source import is_private
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
    _delta_: float
    _private_: bool
    _search_: tuple[str, ...] = ()
    _is_seen = (
        True  # whether somebody may be warned of a noisy fit; not inside a search, whose runs are secret
    )

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "fit" in vars(cls):
            cls.fit = _whole(cls.fit)

    def explain(self) -> str:
        """What the fitted model reveals, in numbered sentences."""
        check_is_fitted(self, "privacy_")
        epsilon = self.privacy_.epsilon(delta=self._delta_)
        added = self.privacy_.unit.relation == "add-remove"
        relation = "a record is added or removed" if added else "a record is replaced"
        said = [
            *self._story(),
            *self._search_,
            f"Whether {relation} changes no probability by more than a factor e^{epsilon:.4g}, but for δ = {self._delta_:g}.",
            "All sums were taken in whole numbers and the noise is exact; "
            + (
                "its bits come from the operating system."
                if self._private_
                else "it was repeatable: NOT PRIVATE."
            ),
            "Bounds, classes and the number of features were taken as public.",
            "The model may be shown to anybody; what it says of a private row is as private as that row.",
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(said, 1))

    @abstractmethod
    def _story(self) -> list[str]:
        """What was released, in sentences."""

    def _budget(self) -> Budget:
        return Budget.of(epsilon=self.epsilon, delta=self.delta, relation=self.relation, unit=self.unit)

    def _charge(self, guarantee: Guarantee) -> None:
        """Pay first: what is drawn after this is covered, and what was refused here was not drawn."""
        payer, asked = paying(self.session), f"{type(self).__name__}.fit"
        receipt = None if payer is None else payer.charge(guarantee, question=asked)
        self.privacy_, self.receipt_ = guarantee, receipt
        self._delta_, self._private_ = self.delta, is_private()

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

    def __getstate__(self) -> dict[str, Any]:
        """What is stored and sent: everything but the session, in whose place stands something that refuses to pay."""
        state: dict[str, Any] = dict(super().__getstate__())
        return state | {"session": None if self.session is None else _Elsewhere()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN is the middle of its bounds; an error would tell of it
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh in every fit
        return tags


def paying(session: Any) -> Any:
    """A session that can be charged, or None."""
    if session is None or hasattr(session, "charge"):
        return session
    raise BadParameter(
        "DP104",
        "session must be a Session.",
        why="it is charged before the data are read.",
        fix="session=dp.Session(data, limit=…), or leave it out",
    )


class _Elsewhere:
    """The session of an estimator that was copied or stored: an account does not travel."""

    def charge(self, guarantee: Guarantee, *, question: str) -> NoReturn:
        raise LedgerError(
            "DP607",
            "this estimator is a copy, and its session stayed where it was made.",
            why="a copy that fits without paying would be free.",
            fix="estimator.set_params(session=session)",
        )


def _whole(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A fit that begins with nothing and, if it fails, leaves nothing."""

    @wraps(fit)
    def fitting(self: PrivateEstimator, *args: Any, **named: Any) -> Any:
        _forget(self)
        try:
            return fit(self, *args, **named)
        except BaseException:
            _forget(self)
            raise

    return fitting


def _forget(estimator: PrivateEstimator) -> None:
    kept = set(estimator.get_params(deep=False))
    for name in [name for name in vars(estimator) if name.endswith("_") and name not in kept]:
        delattr(estimator, name)
