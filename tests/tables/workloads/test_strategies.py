# SPDX-License-Identifier: Apache-2.0
"""Optimal strategies for ordered keys: certified by a bound, exact in whole numbers, kept on disk without risk."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.tables.workloads import strategy_cache
from discreet.tables.workloads.axes import StrategyAxis, interval_axis
from discreet.tables.workloads.strategies import gram_of, optimal_strategy, queries_of, worst_case_strategy

#: Errors per question of the optimum, in sensitivities, from a longer run of the same fixed point to a gap of 1e-9.
OPTIMA = {
    ("prefixes", 4): 1.310929,
    ("ranges", 4): 1.282220,
    ("prefixes", 8): 1.494414,
    ("ranges", 8): 1.495031,
    ("prefixes", 74): 2.143846,
    ("ranges", 74): 2.363746,
}


@pytest.mark.parametrize(("kind", "leaves"), list(OPTIMA))
def test_the_optimum_lies_between_its_bound_and_its_value(kind, leaves):
    strategy = optimal_strategy(gram_of({kind: 1.0}, leaves))
    assert strategy.lower_bound**0.5 <= OPTIMA[kind, leaves] + 1e-6
    assert OPTIMA[kind, leaves] <= strategy.value**0.5 + 1e-6
    assert strategy.value <= strategy.lower_bound * 1.001


@pytest.mark.parametrize("kind", ["prefixes", "ranges", "cells", "total"])
@pytest.mark.parametrize("leaves", [1, 2, 5])
def test_a_gram_matrix_is_that_of_its_questions(kind, leaves):
    queries = queries_of(kind, leaves)
    assert np.allclose(gram_of({kind: 1.0}, leaves), queries.T @ queries / len(queries))


def test_the_bound_is_one_for_every_strategy():
    """Random strategies with columns of length one at most, none of which is better."""
    lower = optimal_strategy(gram_of({"ranges": 1.0}, 6)).lower_bound
    gram = gram_of({"ranges": 1.0}, 6)
    for seed in range(200):
        root = np.cos(np.arange(36) ** 2 * (seed + 1.3)).reshape(6, 6) + np.eye(6) * (seed % 5)
        product = root.T @ root
        assert np.trace(gram @ np.linalg.inv(product / product.diagonal().max())) >= lower


@pytest.mark.parametrize(("kind", "leaves", "tree"), [("ranges", 256, 3.436), ("prefixes", 256, 2.977)])
def test_it_beats_the_best_binary_tree(kind, leaves, tree):
    assert optimal_strategy(gram_of({kind: 1.0}, leaves)).value ** 0.5 < 0.86 * tree


@pytest.mark.parametrize(("kind", "leaves"), [("prefixes", 16), ("prefixes", 64), ("ranges", 16)])
def test_the_worst_case_has_a_certificate_too(kind, leaves):
    queries = queries_of(kind, leaves)
    worst, mean = worst_case_strategy(queries), optimal_strategy(queries.T @ queries)
    variances = np.einsum("qi,ij,qj->q", queries, np.linalg.inv(worst.gram), queries)
    assert variances.max() == pytest.approx(worst.value, rel=1e-6)
    assert worst.value <= worst.lower_bound * 1.001
    of_mean = np.einsum("qi,ij,qj->q", queries, np.linalg.inv(mean.gram), queries)
    assert worst.value < of_mean.max()
    assert of_mean.mean() < variances.mean()


@pytest.mark.parametrize(
    ("kind", "leaves"), [("ranges", 74), ("prefixes", 74), ("ranges", 16), ("ranges", 2), ("ranges", 1)]
)
def test_whole_numbers_are_as_good_and_their_sensitivity_is_exact(kind, leaves):
    axis, gram = interval_axis(leaves, [(kind, 1.0)]), gram_of({kind: 1.0}, leaves)
    assert isinstance(axis, StrategyAxis)
    columns = [[int(number) for number in column] for column in axis.matrix.T]
    products = [[sum(a * b for a, b in zip(one, other, strict=True)) for one in columns] for other in columns]
    assert axis.squared_length == max(products[at][at] for at in range(leaves))
    assert axis.least_product == min(map(min, products))
    found = np.trace(gram @ np.linalg.inv(np.array(products, float))) * axis.squared_length
    assert found <= optimal_strategy(gram).lower_bound * 1.002


def test_an_axis_reads_what_it_measures():
    axis = interval_axis(9, [("ranges", 1.0), ("total", 0.5)])
    values = np.arange(9) ** 2 % 5
    assert np.allclose(axis.estimate(axis.measure(values).astype(float)), values)
    questions = queries_of("ranges", 9).T
    direct = (
        questions.T
        @ np.linalg.inv(
            (axis.measure(np.eye(9, dtype=np.int64)).T @ axis.measure(np.eye(9, dtype=np.int64))).astype(
                float
            )
        )
        @ questions
    )
    coefficients = axis.coefficients(questions)
    assert np.allclose(coefficients.T @ coefficients, direct)


def test_the_worst_case_of_an_axis_is_asked_for():
    even, worst = interval_axis(32, [("ranges", 1.0)]), interval_axis(32, [("ranges", 1.0)], worst=True)
    greatest = [
        (np.square(axis.coefficients(queries_of("ranges", 32).T)).sum(axis=0) * axis.squared_length).max()
        for axis in (even, worst)
    ]
    assert greatest[1] < greatest[0]


class TestCache:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DISCREET_CACHE", str(tmp_path / "kept"))
        return tmp_path / "kept"

    @staticmethod
    def matrix(size=200):
        return np.triu(np.full((size, size), 3, np.int64)) + np.eye(size, dtype=np.int64)

    def test_a_large_matrix_is_computed_once(self, folder):
        key = strategy_cache.key_of("ranges", 200)
        first = strategy_cache.recall(key, self.matrix, 200)
        again = strategy_cache.recall(key, lambda: pytest.fail("it is known"), 200)
        assert (first == again).all()
        assert [path.name for path in folder.iterdir()] == [f"{key}.npy"]

    def test_a_small_one_is_never_written(self, folder):
        strategy_cache.recall(strategy_cache.key_of("ranges", 8), lambda: self.matrix(8), 8)
        assert not folder.exists()

    def test_an_empty_variable_turns_it_off(self, folder, monkeypatch):
        monkeypatch.setenv("DISCREET_CACHE", "")
        strategy_cache.recall(strategy_cache.key_of("ranges", 200), self.matrix, 200)
        assert not folder.exists()

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_bytes(b"nothing"),
            lambda path: path.write_bytes(b""),
            lambda path: np.save(path, np.zeros((200, 200), np.int32)),
            lambda path: np.save(path, np.full((200, 200), 1, np.int32)),
            lambda path: np.save(path, np.eye(199, dtype=np.int32)),
            lambda path: np.save(path, np.eye(200)),
            lambda path: np.save(path, np.eye(200, dtype=np.int32) * 2**30),
            lambda path: np.save(path, np.array([{}], dtype=object)),
        ],
    )
    def test_a_damaged_file_is_computed_again(self, folder, damage):
        key = strategy_cache.key_of("ranges", 200)
        strategy_cache.recall(key, self.matrix, 200)
        damage(folder / f"{key}.npy")
        assert (strategy_cache.recall(key, self.matrix, 200) == self.matrix()).all()

    def test_a_place_that_cannot_be_written_is_left_alone(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("DISCREET_CACHE", str(tmp_path / "file" / "below"))
        assert (strategy_cache.recall(strategy_cache.key_of("x", 1), self.matrix, 200) == self.matrix()).all()

    def test_a_name_depends_on_every_parameter(self):
        assert (
            len(
                {
                    strategy_cache.key_of("a", 1),
                    strategy_cache.key_of("a", 2),
                    strategy_cache.key_of("b", 1),
                    strategy_cache.key_of("a", 1, True),
                }
            )
            == 4
        )
