# SPDX-License-Identifier: Apache-2.0
"""What all private estimators share: a budget, declared bounds, and a charge before the data are
read.

**Guarantee.** `fit` computes its guarantee from public parameters, charges the session (if there is
one), and only then reads the data. `guarantee_` is the guarantee of what was run, `receipt_` is
what the session returned, and `explain()` describes both in words. No error and no warning reveals
anything about a record. A fit first discards the results of the fit before it. A fit that fails
leaves no results behind, so that `guarantee_` never describes another model.

Progress counts steps whose number is fixed in advance, so it reveals nothing about the data.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Concatenate, Literal, NoReturn, ParamSpec, Self, TypeAlias, TypeVar

from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from discreet import check
from discreet.errors import BadParameter, LedgerError
from discreet.learn.arguments import check_call, checked_call
from discreet.learn.arrays import RowTable
from discreet.learn.budget import FitBudget, Payer, check_session
from discreet.learn.inputs import Bounds, Matrix, NamedBounds, as_matrix, bounds_pair
from discreet.noise.source import is_private
from discreet.privacy.guarantee import Guarantee

__all__ = ["NotFitted", "PrivateEstimator", "Progress", "Relation", "check_fitted"]

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E", bound="PrivateEstimator")

#: A function of (steps done, steps in total).
Progress: TypeAlias = Callable[[int, int], None]
#: How neighbouring data differ: one record more or less, or one record exchanged for another.
Relation: TypeAlias = Literal["add-remove", "replace"]

_CHECKED = "_checks_its_arguments"


@dataclass(kw_only=True, repr=False, eq=False)
class EstimatorParameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What every private estimator takes. It is stored unchanged, which is all that scikit-learn
    allows a constructor.
    """

    epsilon: float | None = None
    delta: float | None = None
    bounds: Bounds | NamedBounds | None = None
    relation: Relation = "add-remove"
    session: Payer | None = None
    unit: str = "record"
    progress: Progress | bool | None = None


class PrivateEstimator(EstimatorParameters, ABC):
    """The base of every private estimator. `fit` validates the parameters."""

    #: The guarantee of the last fit.
    guarantee_: Guarantee
    #: What the session returned when it was charged; None without a session.
    receipt_: object
    _delta_: float
    _private_: bool
    _search_: tuple[str, ...] = ()
    # Whether a fit may warn that it is noisy. Not inside a search, whose number of fits is secret.
    _may_warn = True

    def __new__(cls, *positional: object, **named: object) -> Self:
        """Refuse parameters that the estimator does not have."""
        _check_methods(cls)
        # Unpickling makes the object without any parameters and sets them later.
        if positional or named:
            check_call(cls.__init__, cls.__name__, (None, *positional), named)
        return super().__new__(cls)  # type: ignore[no-any-return]  # scikit-learn has no types

    def __init_subclass__(cls, **named: object) -> None:
        super().__init_subclass__(**named)
        if "fit" in vars(cls):
            cls.fit = _all_or_nothing(cls.fit)

    def explain(self) -> str:
        """What the fitted model reveals, in numbered sentences."""
        check_fitted(self)
        epsilon = self.guarantee_.epsilon(delta=self._delta_)
        adds = self.guarantee_.unit.relation == "add-remove"
        change = "If one record is added or removed" if adds else "If one record is replaced"
        source = (
            "its random bits come from the operating system."
            if self._private_
            else "it was repeatable, so this model is NOT PRIVATE."
        )
        sentences = [
            *self._explanation(),
            *self._search_,
            f"{change}, no probability changes by more than a factor of e^{epsilon:.4g}, except for δ = {self._delta_:g}.",
            f"All sums are computed in whole numbers and the noise is exact; {source}",
            "Bounds, classes and the number of features count as public.",
            "Anybody may see the model. Its prediction for a private row is as private as that row.",
        ]
        return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))

    def set_params(self, **params: object) -> Self:
        """Set parameters by name, as in scikit-learn; an unknown name changes nothing."""
        known = self.get_params(deep=True)
        for name in params:
            if name not in known:
                check_call(type(self).__init__, type(self).__name__, (None,), {name: None})
        return super().set_params(**params)  # type: ignore[no-any-return]  # scikit-learn has no types

    @abstractmethod
    def _explanation(self) -> list[str]:
        """What was released, in sentences."""

    def _bounds_pair(self, features: int) -> Bounds | None:
        """The declared bounds, in the order of the columns of the fit."""
        if self.bounds is None:
            return None
        return bounds_pair(self.bounds, list(getattr(self, "feature_names_in_", range(features))))

    def _budget(self) -> FitBudget:
        return FitBudget.of(epsilon=self.epsilon, delta=self.delta, relation=self.relation, unit=self.unit)

    def _charge(self, guarantee: Guarantee) -> None:
        """Pay first. All that is drawn after this is covered, and a refused fit draws nothing."""
        payer = check_session(self.session)
        receipt = None if payer is None else payer.charge(guarantee, question=f"{type(self).__name__}.fit")
        self.guarantee_, self.receipt_ = guarantee, receipt
        # FitBudget has validated it.
        assert self.delta is not None
        self._delta_, self._private_ = self.delta, is_private()

    def _matrix(self, data: Matrix, *, reset: bool) -> RowTable:
        """The features as they lie in memory. Only their shape and their types are validated."""
        matrix = as_matrix(data)
        self._check_columns(data if hasattr(data, "columns") else matrix, reset=reset)
        return matrix

    def _check_columns(self, named: object, *, reset: bool) -> None:
        """Remember the number and the names of the columns of a fit, or refuse others."""
        try:
            validate_data(self, named, reset=reset, skip_check_array=True)
        # the message speaks of the number and the names of columns, which are public
        except ValueError as misfit:
            fitted = list(getattr(self, "feature_names_in_", ()))
            raise BadParameter(
                "DP104",
                str(misfit).strip(),
                why="every feature has its own coefficient or bound, which is found by its position.",
                fix=f"X[{fitted!r}]"
                if 0 < len(fitted) <= 8
                else "pass the columns that the model was fitted on, in the same order",
            ) from None

    def _progress_callback(self) -> Progress | None:
        """None without progress, a bar for True, and a function unchanged."""
        if self.progress is None or self.progress is False:
            return None
        if self.progress is True:
            return _progress_bar(type(self).__name__)
        return check.function(progress=self.progress)

    def __sklearn_clone__(self) -> Self:
        """A copy that is not fitted. It charges the same session, because a session is never
        copied.
        """
        params = self.get_params(deep=False)
        return type(self)(
            **{
                name: value if name == "session" else clone(value, safe=False)
                for name, value in params.items()
            }
        )

    def __getstate__(self) -> dict[str, object]:
        """What is stored and sent: everything but the session. In its place is one that refuses
        every charge.
        """
        state: dict[str, object] = dict(super().__getstate__())
        return state | {"session": None if self.session is None else _AbsentSession()}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # NaN counts as the middle of its bounds: an error would reveal it.
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        # Noise is fresh in every fit.
        tags.non_deterministic = True
        return tags


class NotFitted(BadParameter, NotFittedError):  # type: ignore[misc]  # scikit-learn has no types
    """A model was asked for an answer before it was fitted."""


def check_fitted(estimator: PrivateEstimator) -> None:
    """Refuse to answer before there is a fit."""
    if hasattr(estimator, "guarantee_"):
        return
    name = type(estimator).__name__
    raise NotFitted(
        "DP107",
        f"this {name} is not fitted yet.",
        why="its answers follow from what a fit releases, and there was no fit.",
        fix="call fit with the data first",
    )


class _AbsentSession:
    """Stands for the session of an estimator that was copied or stored. Sessions do not travel."""

    def charge(self, guarantee: Guarantee, *, question: str) -> NoReturn:
        raise LedgerError(
            "DP607",
            "this estimator is a copy without its session.",
            why="a stored or sent copy cannot charge the session, and a fit that is not charged would be free.",
            fix="estimator.set_params(session=session)",
        )


@cache
def _check_methods(cls: type[PrivateEstimator]) -> None:
    """Let public methods check their arguments. It runs once for each class, after scikit-learn has
    wrapped its methods.
    """
    for name in [name for name in dir(cls) if not name.startswith("_")]:
        method = inspect.getattr_static(cls, name)
        # functools.wraps copies the mark, so a wrapper has a mark that names another function.
        if inspect.isfunction(method) and getattr(method, _CHECKED, None) is not method:
            checked = checked_call(method)
            setattr(checked, _CHECKED, checked)
            setattr(cls, name, checked)


def _all_or_nothing(fit: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """The same fit, which discards earlier results first, and leaves none behind if it fails."""

    @wraps(fit)
    def fit_or_forget(self: E, /, *positional: P.args, **named: P.kwargs) -> T:
        _forget(self)
        try:
            return fit(self, *positional, **named)
        except BaseException:
            _forget(self)
            raise

    return fit_or_forget


def _forget(estimator: PrivateEstimator) -> None:
    params = set(estimator.get_params(deep=False))
    for name in [name for name in vars(estimator) if name.endswith("_") and name not in params]:
        delattr(estimator, name)


def _progress_bar(title: str) -> Progress:
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
