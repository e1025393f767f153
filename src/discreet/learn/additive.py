# SPDX-License-Identifier: Apache-2.0
"""Additive models: the score is a sum of one curve for each feature, and of a few tables of pairs.

    model = AdditiveClassifier(epsilon=1, delta=1e-5, bounds=…, classes=[0, 1]).fit(X, y)
    model.plot()                  # the curves
    model.terms_[0].values        # … and their numbers

**Guarantee.** `fit` charges the whole (epsilon, delta) and then draws. Curves, tables and
everything computed from them are functions of that release (additive.proof.md).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin

from discreet import check
from discreet.errors import BadParameter
from discreet.learn.additive_fit import AdditiveFit, AdditiveProblem, FittedTerm, fit_additive
from discreet.learn.arrays import Bools, Ints, Reals, Values
from discreet.learn.base import PrivateEstimator, check_fitted
from discreet.learn.bins import Feature
from discreet.learn.classification import second_class_probability
from discreet.learn.inputs import (
    Bounds,
    ColumnKey,
    Matrix,
    NamedBounds,
    Target,
    as_columns,
    as_target,
    class_membership,
    column_position,
    declared_classes,
    numeric_column,
    numeric_ends,
    target_interval,
    value_numbers,
)
from discreet.learn.losses import Logistic, Loss, Softmax, Squared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AdditiveClassifier", "AdditiveRegressor", "AdditiveTerm"]


Interactions: TypeAlias = Literal["auto", 0] | Sequence[tuple[ColumnKey, ColumnKey]]


@dataclass(frozen=True)
class AdditiveTerm:
    """One curve, or one table of two features: released numbers only.

    `values` has one row for each bin, or for each pair of groups, and one column for each score
    (only one, except for three or more classes). A curve of numbers has `edges`: the ends of its
    bins, one more than bins, and its last row is for what is missing. With straight lines, the two
    rows are the ends. A category has `labels`, and its last row is for all other values.
    """

    features: tuple[ColumnKey, ...]
    kind: Literal["numbers", "category", "pair", "line"]
    values: Reals
    #: The share of the records in each bin.
    shares: Reals
    edges: Reals | None = None
    labels: tuple[object, ...] = ()
    #: The standard deviation of each value, with `bands=True`.
    deviations: Reals | None = None

    @property
    def importance(self) -> float:
        """The mean size of what the term adds to a score."""
        if self.kind == "line":
            return float(np.abs(self.values).mean() / 2)
        return float((self.shares @ np.abs(self.values)).mean())


@dataclass(kw_only=True, repr=False, eq=False)
class AdditiveParameters(PrivateEstimator):
    """What both additive models take beside the parameters of all estimators."""

    categories: Mapping[ColumnKey, Sequence[object]] | None = None
    interactions: Interactions = "auto"
    monotone: Mapping[ColumnKey, int] | None = None
    bands: bool = False

    #: The curves and tables, in the order of the features; pairs stand last.
    terms_: tuple[AdditiveTerm, ...] = field(init=False)
    #: What is added to the sum of the terms: one number for each score.
    intercept_: Reals = field(init=False)
    n_features_in_: int = field(init=False)
    _fit_: AdditiveFit = field(init=False)
    _features_: tuple[Feature, ...] = field(init=False)


class AdditiveModel(AdditiveParameters):
    """What both additive models do."""

    _score_name: ClassVar[str]

    def plot(
        self, term: ColumnKey | tuple[ColumnKey, ColumnKey] | None = None, ax: Axes | None = None
    ) -> Figure:
        """Draw the curves: all of them, the most important first, or the one of `term` into `ax`.

        It costs nothing. Bands (with `bands=True`) are 2.6 standard deviations wide on each side:
        about 90 to 95 % of the records lie where the band holds the curve that would be fitted
        without noise.
        """
        check_fitted(self)
        from discreet.plot.curves import curves

        chosen = self.terms_ if term is None else (self._term(term),)
        return curves(chosen, ax, score=self._score_name)

    def _term(self, key: ColumnKey | tuple[ColumnKey, ColumnKey]) -> AdditiveTerm:
        wanted = key if isinstance(key, tuple) else (key,)
        for term in self.terms_:
            if term.features == wanted:
                return term
        known = [term.features if len(term.features) > 1 else term.features[0] for term in self.terms_]
        raise BadParameter(
            "DP105",
            f"there is no term {key!r}.",
            why=f"the terms of this model are {', '.join(map(repr, known))}.",
            fix=f"plot({known[0]!r})",
        )

    def _learn(
        self,
        columns: Sequence[Reals | Ints],
        targets: Reals,
        keep: Bools,
        loss: Loss,
        *,
        middle: float = 0.0,
        half: float = 1.0,
    ) -> None:
        budget = self._budget()
        names = [feature.name for feature in self._features_]
        problem = AdditiveProblem(
            self._features_,
            tuple(columns),
            targets,
            keep,
            loss,
            budget,
            _declared_pairs(self.interactions, names),
            _directions(self.monotone, self._features_),
            check.flag(bands=self.bands),
            calibrates=isinstance(loss, Logistic),
            progress=self._progress_callback(),
        )
        self._charge(budget.gaussian(budget.noise))
        self._fit_ = fit_additive(problem).rescale(middle, half)
        if self._fit_.is_too_noisy and self._may_warn:
            # the count was released and paid for, so the warning may speak of it
            warnings.warn(_TOO_NOISY, stacklevel=4)
        self.intercept_ = self._fit_.level
        self.terms_ = tuple(self._public(term) for term in self._fit_.terms)

    def _public(self, term: FittedTerm) -> AdditiveTerm:
        features = [self._features_[index] for index in term.features]
        names = tuple(feature.name for feature in features)
        values, shares, deviations = term.values, term.shares, term.deviations
        if term.pair is not None:
            shape = (*term.pair.shape, values.shape[1])
            return AdditiveTerm(
                names, "pair", values.reshape(shape), shares.reshape(shape[:2]), deviations=deviations
            )
        (feature,) = features
        if feature.values is not None:
            labels = tuple(feature.values.tolist())
            return AdditiveTerm(names, "category", values, shares, labels=labels, deviations=deviations)
        if term.is_line:
            return AdditiveTerm(names, "line", values, shares, np.array([feature.low, feature.high]))
        edges = self._fit_.bins[term.features[0]].edges
        return AdditiveTerm(names, "numbers", values, shares, edges, deviations=deviations)

    def _read(self, X: Matrix, *, reset: bool) -> list[Reals | Ints]:
        """The columns, each as numbers or as the numbers of declared values."""
        columns = as_columns(X)
        self._check_columns(X if hasattr(X, "columns") else _Shaped(columns), reset=reset)
        if reset:
            self._features_ = _declared_features(self.bounds, self.categories, self._names(X, len(columns)))
        return [
            numeric_column(column, feature.name)
            if feature.values is None
            else value_numbers(column, feature.values, feature.name)
            for feature, column in zip(self._features_, columns, strict=True)
        ]

    def _names(self, X: Matrix, count: int) -> list[ColumnKey]:
        names = getattr(X, "columns", None)
        if names is None:
            return list(range(count))
        named = getattr(X, "column_names", names)
        return [name if isinstance(name, str | int) else str(name) for name in named]

    def _scores(self, X: Matrix) -> Reals:
        check_fitted(self)
        return self._fit_.scores(self._read(X, reset=False))

    def _explanation(self) -> list[str]:
        fit = self._fit_
        ranked = sorted(self.terms_, key=lambda term: -term.importance)[:5]
        strongest = ", ".join(" × ".join(map(str, term.features)) for term in ranked)
        return [
            "Features were clipped to their declared bounds; NaN and undeclared values have a bin of their own.",
            *fit.notes,
            f"About {fit.count:.0f} records were counted. The terms that matter most: {strongest}.",
            *([_TOO_NOISY] if fit.is_too_noisy else []),
        ]


_TOO_NOISY = (
    "The released number of rows is no larger than its noise, so the fit is mostly noise. Check that the labels are among "
    "`classes`, or use more rows or a larger epsilon."
)


class _Shaped:
    """The shape of a table without names, for scikit-learn's check of the number of columns."""

    def __init__(self, columns: Sequence[object]) -> None:
        self.shape = (len(columns[0]) if columns else 0, len(columns))  # type: ignore[arg-type]
        self.dtype = np.dtype(float)

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(kw_only=True, repr=False, eq=False)
class AdditiveClassifier(ClassifierMixin, AdditiveModel):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that adds up one curve for each feature, and tables of the pairs that interact.

    **Guarantee.** `guarantee_` holds for all curves, tables and probabilities, and for everything
    computed from them. If one row is added or removed (`relation="replace"`: exchanged), no
    probability changes by more than a factor of e^ε, except for δ. Bounds, categories and classes
    are declared. A row with an undeclared label is left out; NaN and undeclared values have a bin
    of their own; no data value causes an error.

    Why it holds: every release is a Gaussian mechanism of a share of the budget that follows from
    public numbers and earlier releases (additive.proof.md).

    What would break it: bounds, categories, classes or interactions that were chosen by looking at
    the data; fits that are repeated until one looks good (use `tune`, which pays for that).

    Parameters:

    - `epsilon`, `delta`: how much one fit may reveal. There is no default.
    - `bounds`: the low and the high end of the features, each one number or one number per feature,
      or `{column: (low, high)}`. Values outside are clipped.
    - `categories`: `{column: [values]}` for columns whose values have no order.
    - `classes`: every label that can occur.
    - `interactions`: `"auto"` looks for pairs of features that interact, if there are records
      enough; 0 for none; or a list of pairs.
    - `monotone`: `{column: 1}` for a curve that may only rise, -1 for one that may only fall.
    - `bands`: True for standard deviations of all curves; it clips nothing and so is noisier.
    - `relation`: `"add-remove"`, where the number of rows is secret, or `"replace"`, where it is
      public.
    - `session`: is charged before the data are read. `unit`: what one row stands for, as the
      session protects it.
    - `progress`: True for a progress bar, or a function of (steps done, steps in total).

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> y = np.abs(X[:, 0]) > 0.5
    >>> model = AdditiveClassifier(epsilon=1, delta=1e-5, bounds=(-1, 1), classes=[False, True])
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    """

    classes: npt.ArrayLike | None = None
    classes_: Values = field(init=False)
    _score_name: ClassVar[str] = "log-odds"

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and labels `y`."""
        self.classes_ = declared_classes(self.classes)
        columns = self._read(X, reset=True)
        is_member = class_membership(y, self.classes_, len(columns[0]))
        is_binary = len(self.classes_) == 2
        targets = (is_member[:, 1:] if is_binary else is_member).astype(np.float64)
        keep = np.asarray(is_member.any(axis=1))
        self._learn(columns, targets, keep, Logistic() if is_binary else Softmax())
        return self

    def decision_function(self, X: Matrix) -> Reals:
        """The score of each class; of two classes only the score of the second."""
        scores = self._scores(X)
        if scores.shape[1] > 1:
            return scores
        return self._fit_.calibration.log_odds(scores[:, 0])

    def predict_proba(self, X: Matrix) -> Reals:
        """The probability of each class."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        second = (
            second_class_probability(scores, self._fit_.clip)
            if self._fit_.is_lines
            else np.asarray(expit(scores))
        )
        return np.stack([1 - second, second], axis=1)

    def predict_log_proba(self, X: Matrix) -> Reals:
        """The logarithm of the probability of each class; -∞ where a probability rounds to 0."""
        # A warning would reveal a row.
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Matrix) -> Values:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])


@dataclass(kw_only=True, repr=False, eq=False)
class AdditiveRegressor(RegressorMixin, AdditiveModel):  # type: ignore[misc]  # scikit-learn has no types
    """A number as the sum of one curve for each feature, and of tables of the pairs that interact.

    **Guarantee.** The guarantee of `AdditiveClassifier`. Targets are clipped to `target_bounds`,
    and NaN counts as their middle.

    Why it holds: additive.proof.md.

    What would break it: bounds, categories or interactions that were chosen by looking at the data.

    Parameters: those of `AdditiveClassifier` without `classes`, and `target_bounds`: the low and
    the high end of the targets.

    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 4000).reshape(-1, 1)
    >>> model = AdditiveRegressor(epsilon=1, delta=1e-5, bounds=(-1, 1), target_bounds=(0, 1))
    >>> bool(model.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.9)
    True
    """

    target_bounds: Bounds | None = None
    _score_name: ClassVar[str] = "target"

    def fit(self, X: Matrix, y: Target) -> Self:
        """Charge the cost, then fit the model to rows `X` and targets `y`."""
        low, high = target_interval(self.target_bounds)
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        columns = self._read(X, reset=True)
        # A warning would reveal a value.
        with np.errstate(all="ignore"):
            scaled = (as_target(y, len(columns[0])) - middle) / half
        scaled[np.isnan(scaled)] = 0.0
        targets = np.clip(scaled, -1.0, 1.0)[:, None]
        self._learn(columns, targets, np.ones(len(targets), bool), Squared(), middle=middle, half=half)
        return self

    def predict(self, X: Matrix) -> Reals:
        """The expected target of each row."""
        return np.asarray(self._scores(X)[:, 0])


def _declared_features(
    bounds: Bounds | NamedBounds | None,
    categories: Mapping[ColumnKey, Sequence[object]] | None,
    names: Sequence[ColumnKey],
) -> tuple[Feature, ...]:
    """What is declared of each column: its values, or else its bounds."""
    declared = {
        column_position(key, names, "categories"): _declared_values(values, key)
        for key, values in _mapping(categories, "categories", names, "['no', 'yes']").items()
    }
    numeric = [index for index in range(len(names)) if index not in declared]
    ends = numeric_ends(bounds, names, numeric)
    return tuple(
        Feature(name, values=declared[index]) if index in declared else Feature(name, *ends[index])
        for index, name in enumerate(names)
    )


def _mapping(
    value: object, name: str, columns: Sequence[ColumnKey], example: str
) -> Mapping[ColumnKey, object]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    stated = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    named = [one for one in stated if isinstance(one, str | int) and one in columns]
    column = next(iter([*named, *columns]), "age")
    raise BadParameter(
        "DP104",
        f"{name} must be a dictionary by column.",
        why="each column is declared by its name or its position.",
        fix=f"{name}={{{column!r}: {example}}}",
    )


def _declared_values(values: object, key: ColumnKey) -> Values:
    """The declared values of a category: different from each other, all numbers or all texts."""
    try:
        # sorting fails for numbers among texts, which NumPy would turn into texts
        sorted(values)  # type: ignore[call-overload]
        listed = np.asarray(values)
        different = len(set(listed.tolist())) if listed.ndim == 1 else 0
    except (TypeError, ValueError):
        listed, different = np.empty(0), 0
    if listed.dtype.kind not in "biufUSO" or not 1 <= different == len(listed):
        raise BadParameter(
            "DP104",
            f"the categories of column {key!r} must be a list of different values, all numbers or all texts.",
            why="each value has a bin of its own, and values read off the data would leak it.",
            fix=f"categories={{{key!r}: ['no', 'yes']}}",
        )
    return listed


def _declared_pairs(interactions: object, names: Sequence[ColumnKey]) -> tuple[tuple[int, int], ...] | None:
    """The pairs that the user named; None to look for them."""
    if isinstance(interactions, str) and interactions == "auto":
        return None
    if isinstance(interactions, int) and not isinstance(interactions, bool) and interactions == 0:
        return ()
    try:
        pairs = [(first, second) for first, second in interactions]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        pairs = [(None, None)]
    if isinstance(interactions, str) or any(None in pair or isinstance(pair, str) for pair in pairs):
        raise BadParameter(
            "DP104",
            'interactions must be "auto", 0 or a list of pairs of columns.',
            why="a pair has a table of its own.",
            fix='interactions="auto"' if len(names) < 2 else f"interactions=[({names[0]!r}, {names[1]!r})]",
        )
    found = [
        (column_position(first, names, "interactions"), column_position(second, names, "interactions"))
        for first, second in pairs
    ]
    if len({frozenset(pair) for pair in found}) < len(found) or any(
        first == second for first, second in found
    ):
        raise BadParameter(
            "DP102",
            "each pair of interactions must have two different columns and occur once.",
            why="a second table of the same columns would only add noise.",
            fix='interactions="auto"',
        )
    return tuple(found)


def _directions(monotone: object, features: Sequence[Feature]) -> dict[int, int]:
    """1 or -1 for each column whose curve may only rise or fall."""
    names = [feature.name for feature in features]
    numeric = [feature.name for feature in features if feature.is_numeric]
    out = {}
    for key, direction in _mapping(monotone, "monotone", numeric, "1").items():
        index = column_position(key, names, "monotone")
        if direction not in (1, -1) or isinstance(direction, bool) or not features[index].is_numeric:
            raise BadParameter(
                "DP102",
                "monotone must be 1 or -1 for a column of numbers.",
                why="1 is a curve that may only rise, -1 one that may only fall; values of a category have no order.",
                fix=f"monotone={{{key!r}: 1}}"
                if features[index].is_numeric
                else "leave the column out of monotone",
            )
        out[index] = 1 if direction == 1 else -1
    return out
