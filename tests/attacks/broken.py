# SPDX-License-Identifier: Apache-2.0
"""Mechanisms that claim ε = 1, or the curve that they name, and do not keep it: one for every known family of faults.

Each draws many outputs at once, so that all of them together are audited in seconds. Each has a pair of neighbouring
inputs on which its fault shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet import privacy
from discreet.audit.draws import ExceptionOutcome
from discreet.mechanisms.mechanism import Refusal
from discreet.privacy.guarantee import Guarantee

ONE = privacy.pure(1.0)
REPLACE = privacy.pure(1.0, relation="replace")


@dataclass(frozen=True)
class Broken:
    """A fault: its name, the function (data, count) -> outputs, two neighbouring inputs, and what it claims."""

    name: str
    draw: Callable[[Any, int], Any]
    x: Any
    x_neighbour: Any
    claim: Guarantee = field(default_factory=lambda: ONE)
    look_at: str = "everything"
    trials: int = 100_000


def generator():
    return np.random.default_rng()


def laplace(scale, size):
    return generator().laplace(0, scale, size)


# --- too little noise --------------------------------------------------------------------------------


def laplace_of(scale):
    return lambda data, count: data + laplace(scale, count)


def gaussian_of(deviation):
    return lambda data, count: data + generator().normal(0, deviation, count)


def truncated_laplace(data, count):
    """Noise that is cut off at three scales: beyond them only one input is possible."""
    noise = laplace(1.0, 2 * count)
    return data + noise[np.abs(noise) <= 3][:count]


def scale_of_secret_size(records, count):
    """The mean of values in [0, 1] with noise 1/(nε), where n itself is to be protected."""
    return np.mean(records) + laplace(1 / len(records), count)


def clipped_after_averaging(records, count):
    """The mean is clipped to [0, 1], not the records; the noise is that of a mean of clipped records."""
    return np.clip(np.mean(records), 0, 1) + laplace(1 / len(records), count)


def noise_of_local_sensitivity(records, count):
    """The median, with Laplace noise in proportion to how much it moves here, which reveals just that."""
    ordered = np.sort(records)
    middle = len(ordered) // 2
    scale = max(ordered[middle + 1] - ordered[middle], ordered[middle] - ordered[middle - 1])
    return ordered[middle] + laplace(scale, count)


def smooth_noise_without_its_factor(records, count):
    """Smooth sensitivity, and Laplace noise of one such instead of the heavier noise that a pure guarantee needs."""
    ordered = np.concatenate([[0.0] * 9, np.sort(records), [100.0] * 9])
    middle = len(ordered) // 2
    smooth = max(
        math.exp(-k * 1.0) * max(ordered[middle + t] - ordered[middle + t - k - 1] for t in range(k + 2))
        for k in range(8)
    )
    return ordered[middle] + laplace(smooth, count)


def every_row_of_a_person(rows, count):
    """A count of rows with noise for one row, where a person has many."""
    return rows + laplace(1.0, count)


# --- noise that is not independent --------------------------------------------------------------------


def same_noise_twice(data, count):
    return np.asarray(data) + laplace(2.0, count)[:, None]


def same_noise_at_two_scales(data, count):
    return np.asarray(data) + laplace(2.0, count)[:, None] * np.array([1.0, 3.0])


def seeded(data, count):
    """Every run starts the generator anew."""
    return np.full(count, data + np.random.default_rng(7).laplace(0, 1.0))


# --- choosing -----------------------------------------------------------------------------------------


def exponential_without_two(scores, count):
    return np.argmax(np.asarray(scores) + generator().gumbel(size=(count, len(scores))), axis=1)


def noisy_max_without_two(scores, count):
    return np.argmax(np.asarray(scores) + laplace(1.0, (count, len(scores))), axis=1)


def noisy_max_with_value(scores, count):
    """The right noise for the index, and then the noisy score of the winner too."""
    noisy = np.asarray(scores) + laplace(2.0, (count, len(scores)))
    return np.column_stack([np.argmax(noisy, axis=1), noisy.max(axis=1)])


def choice_by_weights_that_overflow(scores, count):
    """exp of a large score is infinite, the probabilities are NaN, and the first candidate is what NaN gives."""
    with np.errstate(all="ignore"):
        weights = np.exp(np.asarray(scores) / 2)
        shares = weights / weights.sum()
    if np.isnan(shares).any():
        return np.zeros(count)
    return generator().choice(len(scores), size=count, p=shares)


# --- the sparse vector, as in Lyu, Su, Li 2017 --------------------------------------------------------


def _stopped(above, most):
    """Answers after the `most`-th "above" are not given."""
    before = np.cumsum(above, axis=1) - above
    return np.where(before < most, above, -1)


def sparse_vector_3(answers, count):
    """Algorithm 3: when the noisy answer is above, it is released itself. The first above, and its noisy answer."""
    noisy = np.asarray(answers) + laplace(2.0, (count, len(answers)))
    above = noisy >= laplace(2.0, (count, 1))
    first = np.where(above.any(axis=1), above.argmax(axis=1), len(answers))
    value = noisy[np.arange(count), np.minimum(first, len(answers) - 1)]
    return np.column_stack([first, np.where(above.any(axis=1), value, 0.0)])


def sparse_vector_4(answers, count):
    """Algorithm 4: the noise of the answers does not grow with the number that may be above."""
    threshold = laplace(4.0, (count, 1))
    noisy = np.asarray(answers) + laplace(4 / 3, (count, len(answers)))
    return _stopped((noisy >= threshold).astype(int), 5)


def sparse_vector_5(answers, count):
    """Algorithm 5: no noise on the answers, and no stop."""
    return (np.asarray(answers) >= laplace(2.0, (count, 1))).astype(int)


def sparse_vector_6(answers, count):
    """Algorithm 6: noise on the answers, and no stop."""
    noisy = np.asarray(answers) + laplace(2.0, (count, len(answers)))
    return (noisy >= laplace(2.0, (count, 1))).astype(int)


# --- what leaves beside the number --------------------------------------------------------------------


def tested_without_noise(records, count):
    """Propose-test-release whose test is exact: whether there is an answer reveals the distance."""
    stable = sum(record == 1 for record in records) > 3
    return [1.0 if stable else Refusal("not stable")] * count


def nan_goes_through(records, count):
    return np.mean(np.clip(records, 0, 1)) + laplace(1 / len(records), count)


def rare_keys(counts, count):
    """Noisy counts of whatever keys there are."""
    noise = laplace(1.0, (count, len(counts)))
    return [dict(zip(counts, row, strict=True)) for row in (np.array(list(counts.values())) + noise).tolist()]


def order_of_the_data(counts, count):
    """Fixed keys and noisy counts, listed in the order of the exact ones."""
    keys = sorted(counts, key=counts.get)
    noise = laplace(1.0, (count, len(keys)))
    return [
        dict(zip(keys, row, strict=True)) for row in (np.array([counts[k] for k in keys]) + noise).tolist()
    ]


def fails_on_nothing(records, count):
    """An empty data set ends in an exception."""
    return (
        (np.mean(records) + laplace(1.0, count)).tolist()
        if records
        else [ExceptionOutcome("ZeroDivisionError")] * count
    )


def type_of_the_data(value, count):
    """A whole number stays one, a fraction becomes a float: the type tells them apart."""
    noise = np.rint(laplace(1.0, count))
    return (value + noise).astype(int).tolist() if float(value).is_integer() else (value + noise).tolist()


# --- floating point -----------------------------------------------------------------------------------


def box_muller(data, count):
    u, v = generator().random(count), generator().random(count)
    return data + np.sqrt(-2 * np.log(1 - u)) * np.cos(2 * np.pi * v)


def four_gaussians(data, count):
    """Four Gaussians added up, which is no hardening."""
    return data + generator().normal(0, 0.5, (count, 4)).sum(axis=1)


def inverse_laplace(data, count):
    """The textbook's inverse of the distribution function."""
    u = generator().random(count) - 0.5
    return data - np.sign(u) * np.log1p(-2 * np.abs(u))


def float32_laplace(data, count):
    return (np.float32(data) + laplace(1.0, count).astype(np.float32)).astype(np.float32)


def lattice_noise_on_any_value(data, count):
    """Whole-number noise on a value that was not rounded first."""
    return (
        data
        + generator().geometric(1 - math.exp(-1.0), count)
        - generator().geometric(1 - math.exp(-1.0), count)
    )


def fine_lattice_noise_on_any_value(data, count):
    step = 2.0**-20
    return data + step * np.rint(laplace(1.0, count) / step)


_SCORES = [1.0] + [0.0] * 9, [0.0] + [1.0] * 9
_UP, _DOWN = [0.0] * 10, [1.0] * 5 + [-1.0] * 5
MAGNITUDES = [2.0**power for power in (-60, -20, 0, 20, 60)]

FAULTS = [
    Broken("half the noise", laplace_of(0.5), 0.0, 1.0, look_at="values"),
    Broken("20 % too little Laplace noise", laplace_of(0.8), 0.0, 1.0, look_at="values"),
    Broken("20 % too little, Laplace curve", laplace_of(0.8), 0.0, 1.0, privacy.laplace(1.0), "values"),
    Broken(
        "variance taken for deviation", gaussian_of(math.sqrt(2)), 0.0, 1.0, privacy.gaussian(2.0), "values"
    ),
    Broken(
        "25 % too little Gaussian noise",
        gaussian_of(0.75),
        0.0,
        1.0,
        privacy.gaussian(1.0),
        "values",
        200_000,
    ),
    Broken("truncated noise", truncated_laplace, 0.0, 1.0, look_at="values"),
    Broken("noise scale from the secret n", scale_of_secret_size, [0.5], [0.5, 0.5], look_at="values"),
    Broken(
        "clipping after averaging", clipped_after_averaging, [0.0] * 4, [0.0] * 3 + [1e3], REPLACE, "values"
    ),
    Broken(
        "noise from local sensitivity",
        noise_of_local_sensitivity,
        [0, 0.4, 0.5, 0.6, 1],
        [0, 0.4, 0.5, 1, 1],
        REPLACE,
        "values",
    ),
    Broken(
        "smooth sensitivity, wrong noise",
        smooth_noise_without_its_factor,
        [0.0] * 9,
        [0.0] * 8 + [100.0],
        REPLACE,
        "values",
    ),
    Broken("many rows of one person", every_row_of_a_person, 100, 150, look_at="values"),
    Broken("the same noise twice", same_noise_twice, [0.0, 0.0], [1.0, 0.0], look_at="values"),
    Broken(
        "the same noise at two scales", same_noise_at_two_scales, [0.0, 0.0], [1.0, 0.0], look_at="values"
    ),
    Broken("a seed in every run", seeded, 0.0, 1.0),
    Broken("exponential mechanism without factor 2", exponential_without_two, *_SCORES),
    Broken("noisy max without factor 2", noisy_max_without_two, *_SCORES),
    Broken("noisy max with its value", noisy_max_with_value, [0.0] * 4, [1.0] * 4, look_at="values"),
    Broken("weights that overflow", choice_by_weights_that_overflow, [0.0, 1419.0], [0.0, 1420.0]),
    Broken(
        "sparse vector, algorithm 3", sparse_vector_3, [0.0] * 30 + [4], [1.0] * 30 + [3], look_at="values"
    ),
    Broken("sparse vector, algorithm 4", sparse_vector_4, _UP, _DOWN),
    Broken("sparse vector, algorithm 5", sparse_vector_5, [0.0, 1.0], [1.0, 0.0]),
    Broken("sparse vector, algorithm 6", sparse_vector_6, [0.0] * 16, [1.0] * 8 + [-1.0] * 8),
    Broken("propose-test-release without noise in the test", tested_without_noise, [1] * 4, [1] * 3),
    Broken("NaN goes through", nan_goes_through, [0.5, 0.5], [0.5, math.nan], REPLACE, "values"),
    Broken("rare keys", rare_keys, {"a": 50, "b": 1}, {"a": 50}, look_at="values", trials=20_000),
    Broken(
        "order of the data",
        order_of_the_data,
        {"a": 5, "b": 5},
        {"a": 6, "b": 5},
        look_at="values",
        trials=20_000,
    ),
    Broken("fails on nothing", fails_on_nothing, [], [0.5], trials=20_000),
    Broken("type of the data", type_of_the_data, 1.0, 1.5, trials=20_000),
    Broken("lattice noise on a value between", lattice_noise_on_any_value, 0.25, 1.0),
    Broken("fine lattice noise on any value", fine_lattice_noise_on_any_value, 0.0, 0.1, look_at="bits"),
    Broken("Box-Muller", box_muller, 0.0, 1.0, privacy.gaussian(1.0), "bits"),
    Broken("four Gaussians", four_gaussians, 0.0, 1.0, privacy.gaussian(1.0), "bits"),
    Broken("inverse Laplace", inverse_laplace, 0.0, 1.0, look_at="bits"),
    Broken("float32 Laplace", float32_laplace, 0.0, 1.0, look_at="bits"),
    *(
        Broken(f"numpy Laplace at {size:g}", laplace_of(size), 0.0, size, look_at="bits")
        for size in MAGNITUDES
    ),
    *(
        Broken(f"numpy Gaussian at {size:g}", gaussian_of(size), 0.0, size, privacy.gaussian(1.0), "bits")
        for size in MAGNITUDES
    ),
    Broken("numpy Laplace, neither input zero", laplace_of(1.0), 3.3, 4.3, look_at="bits"),
]
