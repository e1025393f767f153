# SPDX-License-Identifier: Apache-2.0
"""How far a long fit has come: a bar, or whatever a caller wants to do with it.

Progress counts steps that were fixed in advance, so it says nothing of the data.

What all private estimators share: a budget, bounds that are declared, a charge before the data are touched.

**Guarantee.** `fit` computes its guarantee from public parameters, charges the session (if there is one), and only then
reads the data. `guarantee_` is the guarantee of what was run, `receipt_` what the session answered, `explain()` says it
in words. No error and no warning tells anything of a record. A fit forgets what was there before; one that fails leaves
nothing behind, so that `guarantee_` never speaks of another model.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from discreet import check
from discreet.errors import BadParameter, LedgerError
from discreet.learn.arguments import check_call, checked_call
from discreet.learn.budget import FitBudget
from discreet.learn.inputs import as_matrix
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["NotFitted", "PrivateEstimator", "Progress", "check_fitted", "check_session", "progress_callback"]


Progress = Callable[[int, int], None]


def progress_callback(progress: Any, title: str) -> Progress | None:
    """None for no progress, a bar for True, a function of (done, total) as it is."""
    if progress is None or progress is False:
        return None
    return _bar(title) if progress is True else check.function(progress=progress)


def _bar(title: str) -> Progress:
    from rich.progress import Progress as Bar

    bar = Bar(transient=True)
    task = bar.add_task(title)

    def advance(done: int, total: int) -> None:
        if done == 1:
            bar.start()
        bar.update(task, completed=done, total=total)
        if done == total:
            bar.stop()

    return advance


Reals = npt.NDArray[np.float64]
_CHECKED = "_checks_its_arguments"


class PrivateEstimator(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn has no types
    """The base of every estimator here. Parameters are kept as they were given, and checked when fitting."""

    epsilon: Any
    delta: Any
    relation: str
    session: Any
    unit: str
    progress: Any

    guarantee_: Guarantee
    receipt_: Any
    _delta_: float
    _private_: bool
    _search_: tuple[str, ...] = ()
    _may_warn = (
        True  # whether somebody may be warned of a noisy fit; not inside a search, whose runs are secret
    )

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse parameters that the estimator does not have; a copy is made without any, and gets them later."""
        _check_methods(cls)
        if given or named:
            check_call(cls.__init__, cls.__name__, None, *given, **named)
        return super().__new__(cls)  # type: ignore[no-any-return]  # scikit-learn has no types

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "fit" in vars(cls):
            cls.fit = _all_or_nothing(cls.fit)

    def explain(self) -> str:
        """What the fitted model reveals, in numbered sentences."""
        check_fitted(self)
        epsilon = self.guarantee_.epsilon(delta=self._delta_)
        added = self.guarantee_.unit.relation == "add-remove"
        relation = "a record is added or removed" if added else "a record is replaced"
        said = [
            *self._explanation(),
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
    def _explanation(self) -> list[str]:
        """What was released, in sentences."""

    def _budget(self) -> FitBudget:
        return FitBudget.of(epsilon=self.epsilon, delta=self.delta, relation=self.relation, unit=self.unit)

    def _charge(self, guarantee: Guarantee) -> None:
        """Pay first: what is drawn after this is covered, and what was refused here was not drawn."""
        payer, asked = check_session(self.session), f"{type(self).__name__}.fit"
        receipt = None if payer is None else payer.charge(guarantee, question=asked)
        self.guarantee_, self.receipt_ = guarantee, receipt
        self._delta_, self._private_ = self.delta, is_private()

    def _matrix(self, data: Any, *, reset: bool) -> Any:
        """The features as they lie in memory, after checks that look at their shape and type alone."""
        matrix = as_matrix(data)
        try:
            validate_data(
                self, data if hasattr(data, "columns") else matrix, reset=reset, skip_check_array=True
            )
        except ValueError as misfit:  # it speaks of the number and the names of columns, which are public
            raise BadParameter(
                "DP104",
                str(misfit).strip(),
                why="every feature has a coefficient or a bound of its own, by its place.",
                fix="pass the columns that the model was fitted on, in the same order",
            ) from None
        return matrix

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as in scikit-learn; an unknown name changes nothing."""
        known = self.get_params(deep=True)
        for name in params:
            if name not in known:
                check_call(type(self).__init__, type(self).__name__, None, **{name: None})
        return super().set_params(**params)  # type: ignore[no-any-return]  # scikit-learn has no types

    def _progress_callback(self) -> Progress | None:
        return progress_callback(self.progress, type(self).__name__)

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted. It charges the same session: an account is shared, never copied."""
        kept = self.get_params(deep=False)
        return type(self)(
            **{name: value if name == "session" else clone(value, safe=False) for name, value in kept.items()}
        )

    def __getstate__(self) -> dict[str, Any]:
        """What is stored and sent: everything but the session, in whose place stands something that refuses to pay."""
        state: dict[str, Any] = dict(super().__getstate__())
        return state | {"session": None if self.session is None else _AbsentSession()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN is the middle of its bounds; an error would tell of it
        tags.input_tags.sparse = True
        tags.non_deterministic = True  # noise is fresh in every fit
        return tags


@cache
def _check_methods(cls: type[PrivateEstimator]) -> None:
    """Let public methods check their arguments; once for each class, when scikit-learn has wrapped what it wraps."""
    for name in [name for name in dir(cls) if not name.startswith("_")]:
        method = inspect.getattr_static(cls, name)
        # a wrapper copies the mark of what it wraps, but is not the function that the mark names
        if inspect.isfunction(method) and getattr(method, _CHECKED, None) is not method:
            checked = checked_call(method)
            setattr(checked, _CHECKED, checked)
            setattr(cls, name, checked)


def check_session(session: Any) -> Any:
    """A session that can be charged, or None."""
    if session is None or hasattr(session, "charge"):
        return session
    raise BadParameter(
        "DP104",
        "session must be a Session.",
        why="it is charged before the data are read.",
        fix="session=dp.Session(data, limit=…), or leave it out",
    )


class NotFitted(BadParameter, NotFittedError):  # type: ignore[misc]  # scikit-learn has no types
    """An answer was asked of a model that has not learned anything."""


def check_fitted(estimator: PrivateEstimator) -> None:
    """Refuse to answer before there is a fit."""
    if hasattr(estimator, "guarantee_"):
        return
    name = type(estimator).__name__
    raise NotFitted(
        "DP107",
        f"this {name} is not fitted yet.",
        why="it answers by what a fit released, and there was none.",
        fix="call fit with the data first",
    )


class _AbsentSession:
    """The session of an estimator that was copied or stored: an account does not travel."""

    def charge(self, guarantee: Guarantee, *, question: str) -> NoReturn:
        raise LedgerError(
            "DP607",
            "this estimator is a copy, and its session stayed where it was made.",
            why="a copy that fits without paying would be free.",
            fix="estimator.set_params(session=session)",
        )


def _all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
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
