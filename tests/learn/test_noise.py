# SPDX-License-Identifier: Apache-2.0
"""Every draw of noise of a fit has the scale that the theory says, in cells, written here once more by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.learn import PCA, GaussianNB, KMeans, LinearRegression, LogisticRegression, StandardScaler
from discreet.learn.budget import FitBudget

GIVEN: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "bounds": (-1, 1)}
X = np.sin(np.arange(800)[:, None] * np.sqrt([2.0, 3.0]))
Y = (X[:, 0] > 0).astype(int)
Z = {
    relation: FitBudget.of(epsilon=1.0, delta=1e-5, relation=relation).noise
    for relation in ("add-remove", "replace")
}
SWAP = {"add-remove": 1.0, "replace": math.sqrt(2)}  # of a second-moment matrix
relations = pytest.mark.parametrize("relation", ["add-remove", "replace"])


@pytest.fixture
def scales(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scales of all draws, in their order."""
    seen: list[float] = []
    real = noise.rounded_gaussian

    def watched(scale: Any, size: Any = None) -> Any:
        seen.append(float(scale))
        return real(scale, size)

    monkeypatch.setattr(noise, "rounded_gaussian", watched)
    return seen


@relations
@pytest.mark.parametrize("model", [StandardScaler(**GIVEN), GaussianNB(**GIVEN, classes=[0, 1])])
def test_sums_and_squares_have_the_stated_noise(scales: list[float], model: Any, relation: str) -> None:
    model.set_params(relation=relation).fit(X, Y)
    moved = math.sqrt(1 + 1.25 * 2) if relation == "add-remove" else 2 * math.sqrt(2)
    assert scales == pytest.approx([Z[relation] * moved * cells for cells in (1, 2**24, 2**12)], rel=1e-9)


@relations
def test_components_have_the_stated_noise(scales: list[float], relation: str) -> None:
    PCA(**GIVEN, relation=relation).fit(X)
    spread = Z[relation] * SWAP[relation] * 4**14
    assert scales == pytest.approx([spread / math.sqrt(2), spread], rel=1e-9)


@relations
def test_products_with_the_target_have_the_stated_noise(scales: list[float], relation: str) -> None:
    LinearRegression(**GIVEN, target_bounds=(0, 1), solver="joint", relation=relation).fit(X, Y)
    spread = 2 * Z[relation] * SWAP[relation] * 4**14
    assert scales == pytest.approx([spread / math.sqrt(2), spread], rel=1e-9)


@relations
def test_plain_gradients_have_the_stated_noise(scales: list[float], relation: str) -> None:
    LogisticRegression(**GIVEN, classes=[0, 1], solver="gradient", relation=relation).fit(X, Y)
    fact = Z[relation] / math.sqrt(0.02)
    most = (4**14 - math.floor(0.7 / math.hypot(1, 0.7) * 2**14) ** 2) // 2**10  # without the constant
    first = [fact * 2**10, fact * most] if relation == "add-remove" else [fact * most]
    each = Z[relation] * math.sqrt(100 / (1 - 0.02 * len(first))) * (2 if relation == "replace" else 1)
    assert scales == pytest.approx([*first, *[each * 2**24] * 100], rel=1e-9)


@relations
def test_perturbed_statistics_have_the_stated_noise(scales: list[float], relation: str) -> None:
    LinearRegression(**GIVEN, target_bounds=(0, 1), solver="adassp", relation=relation).fit(X, Y)
    squares = Z[relation] / math.sqrt(0.5) * SWAP[relation] * 4**14
    products = Z[relation] / math.sqrt(0.45) * (2 if relation == "replace" else 1) * 4**14
    least = Z[relation] / math.sqrt(0.05) * (1 + 3 / 32) * 32
    assert scales == pytest.approx([squares / math.sqrt(2), squares, products, least], rel=1e-9)


@relations
def test_steps_of_clusters_have_the_stated_noise(scales: list[float], relation: str) -> None:
    KMeans(2, **GIVEN, relation=relation, init=[[0.5, 0.0], [-0.5, 0.0]], max_iter=4).fit(X)
    moved, weight = (math.sqrt(1.25), 0.5) if relation == "add-remove" else (2.0, 1.0)
    each = Z[relation] * math.sqrt(4) * moved
    assert scales == pytest.approx([each / weight, each * 2**18] * 4, rel=1e-9)


@relations
def test_seeds_and_steps_of_clusters_have_the_stated_noise(scales: list[float], relation: str) -> None:
    KMeans(2, **GIVEN, relation=relation).fit(X)
    moments = Z[relation] / math.sqrt(0.2) * SWAP[relation] * 4**14
    moved, weight = (math.sqrt(1.25), 0.5) if relation == "add-remove" else (2.0, 1.0)
    each = Z[relation] * math.sqrt(5 / 0.8) * moved
    assert scales[:2] == pytest.approx([moments / math.sqrt(2), moments], rel=1e-9)
    assert scales[2::2] == pytest.approx([each / weight] * 5, rel=1e-9)
    (radius,) = {round(scale / each, 3) for scale in scales[3::2]}
    assert radius == round(radius) <= 2**19
