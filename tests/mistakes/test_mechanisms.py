# SPDX-License-Identifier: Apache-2.0
"""Mechanisms and guarantees: what is forgotten, doubled, negative, or about somebody else."""

from __future__ import annotations

from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

NOISE = "dp.Laplace(epsilon=1, sensitivity=1"
CALIBRATED = "calibrate(lambda z: 1_000 * privacy.gaussian(z), to=privacy.approximate(2, 1e-6))"


@mistakes(
    Mistake("dp.Laplace(epsilon=1)", "DP107", "sensitivity=1", f"{NOISE})"),
    Mistake("dp.Gaussian(rho=0.1)", "DP107", "sensitivity=1", "dp.Gaussian(rho=0.1, sensitivity=1)"),
    Mistake("dp.Laplace(sensitivity=1)", "DP107", "epsilon=1.0", "dp.Laplace(epsilon=1.0, sensitivity=1)"),
    Mistake(
        "dp.Laplace(epsilon=1, scale=2, sensitivity=1)",
        "DP107",
        "epsilon=1.0",
        "dp.Laplace(epsilon=1.0, sensitivity=1)",
    ),
    Mistake("dp.Laplace(scale=-2, sensitivity=1)", "DP102", "scale=1", "dp.Laplace(scale=1, sensitivity=1)"),
    Mistake("dp.Laplace(epsilon=1, sensitivity=0)", "DP102", "sensitivity=1", f"{NOISE})"),
    Mistake(
        "dp.Laplace(epsilon='1', sensitivity=1)",
        "DP104",
        "epsilon=1.0",
        "dp.Laplace(epsilon=1.0, sensitivity=1)",
    ),
    Mistake(
        f"{NOISE}, relation='substitute')",
        "DP105",
        "relation='add-remove'",
        f"{NOISE}, relation='add-remove')",
    ),
    Mistake(
        "dp.Gaussian(epsilon=1, sensitivity=1)",
        "DP107",
        "epsilon=1.0, delta=1e-6",
        "dp.Gaussian(epsilon=1.0, delta=1e-6, sensitivity=1)",
    ),
    Mistake(
        "dp.Gaussian(epsilon=1, delta=0, sensitivity=1)",
        "DP102",
        "delta=1e-6",
        "dp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1)",
    ),
    Mistake(f"{NOISE}).error(confidence=95)", "DP102", "confidence=0.95", f"{NOISE}).error(confidence=0.95)"),
    Mistake(
        "dp.noisy_max([3, 5], epsilon=1, sensitivity=1, noise='normal')",
        "DP105",
        "noise='gumbel'",
        "dp.noisy_max([3, 5], epsilon=1, sensitivity=1, noise='gumbel')",
    ),
    Mistake(
        "dp.smooth.median([3, 5], epsilon=1)",
        "DP104",
        "bounds=(0, 100)",
        "dp.smooth.median([3, 5], bounds=(0, 100), epsilon=1)",
    ),
    Mistake(
        "dp.smooth.median([3, 5], bounds=(100, 0), epsilon=1)",
        "DP107",
        "bounds=(0, 100)",
        "dp.smooth.median([3, 5], bounds=(0, 100), epsilon=1)",
    ),
    Mistake(
        f"session.release({NOISE}), 42)",
        "DP201",
        "unit='patient_id', relation='add-remove'",
        f"session.release({NOISE}, unit='patient_id', relation='add-remove'), 42)",
    ),
    Mistake(
        "session.release(mechanism)",
        "DP107",
        "session.release(mechanism, value)",
        first=f"value, mechanism = 42, {NOISE}, unit='patient_id')",
    ),
    Mistake(
        "session.release(mechanism, value, epsilon=1)",
        "DP107",
        "session.release(mechanism, value)",
        first=f"value, mechanism = 42, {NOISE}, unit='patient_id')",
    ),
    Mistake(
        "privacy.pure(1, relation='add-remove') + privacy.pure(1, relation='replace')",
        "DP201",
        "unit='record', relation='add-remove'",
        "privacy.pure(1) + privacy.pure(1, unit='record', relation='add-remove')",
    ),
    Mistake(
        "privacy.gaussian(noise=1).epsilon(delta=1)",
        "DP102",
        "delta=1e-6",
        "privacy.gaussian(noise=1).epsilon(delta=1e-6)",
    ),
    Mistake(
        "privacy.gaussian(noise=1).epsilon(delta='1e-6')",
        "DP104",
        "delta=1e-6",
        "privacy.gaussian(noise=1).epsilon(delta=1e-6)",
    ),
    Mistake("privacy.gaussian(noise=0)", "DP102", "noise=1", "privacy.gaussian(noise=1)"),
    Mistake(
        "privacy.gaussian(noise=1).sampled(rate=512)",
        "DP102",
        "rate=0.01",
        "privacy.gaussian(noise=1).sampled(rate=0.01)",
    ),
    Mistake(
        "privacy.gaussian(noise=1).sampled(rate=0.01, scheme='shuffle')",
        "DP105",
        "scheme='poisson'",
        "privacy.gaussian(noise=1).sampled(rate=0.01, scheme='poisson')",
    ),
    Mistake("dp.calibrate(1.0, to=privacy.approximate(2, 1e-6))", "DP104", CALIBRATED, f"dp.{CALIBRATED}"),
)
def test_mechanisms(mistake, here):
    error = check_mistake(mistake, here)
    assert error.what
