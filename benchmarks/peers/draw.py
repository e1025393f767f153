# SPDX-License-Identifier: Apache-2.0
"""Draw noise with one library in this process, and print its rates as one line of JSON.

    python draw.py opendp

The figure is samples per second of CPU time, of all threads together, the best of a few repeats; importing the
library and building the mechanism are not counted. A library that draws one number at a time is asked that many times,
up to a limit: its rate does not depend on the length.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable

SCALE = 10
SIZES = (1, 1_000, 1_000_000)
SCALES = (1e-3, 1.0, 10.0, 1e3, 1e6)  # of mechanisms on vectors, in sensitivities
CANDIDATES = 1_000_000
LOOP_LIMIT = 20_000  # draws of a library that has no vectors
ENOUGH = 0.3  # seconds of CPU per measurement
REPEATS = 3
STEADY = 2.0  # seconds after which one measurement is enough

Draw = Callable[[int], object]


def discreet() -> tuple[dict[str, Draw], dict[str, Callable[[], object]]]:
    import numpy as np

    from discreet import mechanisms
    from discreet.noise import integer, race

    def sampler(law) -> Draw:
        return lambda size: law(float(SCALE), None if size == 1 else size)

    zeros = {size: np.zeros(size) if size > 1 else 0.0 for size in SIZES}

    def mechanism(kind, scale: float = SCALE) -> Draw:
        made = kind(scale=scale, sensitivity=1)
        return lambda size: made(zeros[size])

    scores = np.linspace(0.0, 100.0, CANDIDATES)
    draws = {
        "discrete Laplace": sampler(integer.discrete_laplace),
        "rounded Gaussian": sampler(integer.rounded_gaussian),
        "discrete Gaussian": sampler(integer.discrete_gaussian),
        "Laplace mechanism": mechanism(mechanisms.Laplace),
        "Gaussian mechanism": mechanism(mechanisms.Gaussian),
    }
    for scale in SCALES:
        draws[f"Laplace, scale {scale:g}"] = mechanism(mechanisms.Laplace, scale)
        draws[f"Gaussian, scale {scale:g}"] = mechanism(mechanisms.Gaussian, scale)
    return draws, {
        f"noisy max, {noise}": lambda noise=noise: race.largest(scores, 2.0, noise=noise)
        for noise in race.NOISES
    }


def numpy() -> tuple[dict[str, Draw], dict[str, Callable[[], object]]]:
    import numpy as np

    generator = np.random.default_rng()
    zeros = {size: np.zeros(size) for size in SIZES}
    scores = np.linspace(0.0, 100.0, CANDIDATES)
    draws = {
        "float Laplace (unsafe)": lambda size: generator.laplace(scale=SCALE, size=size),
        "float Gaussian (unsafe)": lambda size: generator.normal(scale=SCALE, size=size),
        "zeros + float Laplace (unsafe)": lambda size: (
            zeros[size] + generator.laplace(scale=SCALE, size=size)
        ),
        "zeros + float Gaussian (unsafe)": lambda size: (
            zeros[size] + generator.normal(scale=SCALE, size=size)
        ),
    }
    return draws, {
        "noisy max, float Gumbel (unsafe)": lambda: np.argmax(scores + generator.gumbel(0, 2, CANDIDATES))
    }


def opendp() -> tuple[dict[str, Draw], dict[str, Callable[[], object]]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    whole, real = dp.atom_domain(T=int), dp.atom_domain(T=float, nan=False)

    def vector(make, atom, metric) -> Draw:
        mechanism = make(dp.vector_domain(atom), metric, scale=float(SCALE))
        zeros = {size: [0.0 if atom is real else 0] * size for size in SIZES}
        return lambda size: mechanism(zeros[size])

    scores = [i * 1e-4 for i in range(CANDIDATES)]
    choose = dp.m.make_noisy_max(
        dp.vector_domain(real), dp.linf_distance(T=float), dp.max_divergence(), scale=2.0
    )
    draws = {
        "discrete Laplace": vector(dp.m.make_laplace, whole, dp.l1_distance(T=int)),
        "discrete Gaussian": vector(dp.m.make_gaussian, whole, dp.l2_distance(T=float)),
        "Laplace on a fine grid": vector(dp.m.make_laplace, real, dp.l1_distance(T=float)),
        "Gaussian on a fine grid": vector(dp.m.make_gaussian, real, dp.l2_distance(T=float)),
    }
    return draws, {"noisy max": lambda: choose(scores)}


def diffprivlib() -> tuple[dict[str, Draw], dict[str, Callable[[], object]]]:
    from diffprivlib import mechanisms

    geometric = mechanisms.Geometric(epsilon=1 / SCALE, sensitivity=1)
    gaussian = mechanisms.GaussianDiscrete(epsilon=0.34, delta=1e-5, sensitivity=1)  # a scale near 10
    scores = [i * 1e-4 for i in range(CANDIDATES)]
    draws = {
        "geometric (floats inside)": _one_by_one(lambda: geometric.randomise(0)),
        "discrete Gaussian": _one_by_one(lambda: gaussian.randomise(0)),
    }
    choose = lambda: mechanisms.Exponential(epsilon=1.0, sensitivity=1.0, utility=scores).randomise()  # noqa: E731
    return draws, {"exponential mechanism": choose}


def tmlt() -> tuple[dict[str, Draw], dict[str, Callable[[], object]]]:
    import numpy as np
    from tmlt.core.measurements.noise_mechanisms import AddDiscreteGaussianNoise, AddGeometricNoise

    geometric = AddGeometricNoise(SCALE)
    gaussian = AddDiscreteGaussianNoise(SCALE**2)
    zero = np.int64(0)
    draws = {
        "discrete Laplace": _one_by_one(lambda: geometric(zero)),
        "discrete Gaussian": _one_by_one(lambda: gaussian(zero)),
    }
    return draws, {}


def _one_by_one(draw: Callable[[], object]) -> Draw:
    def many(size: int) -> object:
        for _ in range(size):
            draw()
        return size

    many.limit = LOOP_LIMIT
    return many


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call: the least of a few repeats, or the first where that is slow enough to be steady."""
    best = _timed(work, 1)
    if best >= STEADY:
        return best
    calls = max(1, int(ENOUGH / best))
    return min(_timed(work, calls) / calls for _ in range(REPEATS))


def _timed(work: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        work()
    return max(time.process_time() - start, 1e-6)


def main() -> None:
    """Measure the library named on the command line."""
    warnings.simplefilter("ignore")
    draws, choices = globals()[sys.argv[1]]()
    rates = {}
    for name, draw in draws.items():
        limit = getattr(draw, "limit", SIZES[-1])
        rates[name] = [min(n, limit) / seconds(lambda n=n, d=draw: d(min(n, limit))) for n in SIZES]  # noqa: B023
    print(
        json.dumps({"rates": rates, "choices": {name: seconds(choice) for name, choice in choices.items()}})
    )


if __name__ == "__main__":
    main()
