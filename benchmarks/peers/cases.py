# SPDX-License-Identifier: Apache-2.0
"""The questions that every accountant is asked, written once.

A case is a bag of parts (a mechanism, its scale, its Poisson sampling rate, how often it runs) and a δ.
The answer is ε, or, for a case with a `target`, the least noise whose ε at δ is at most the target.
This file imports the standard library only: it is read inside the environment of every peer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One mechanism of a case, run `count` times."""

    kind: str  # "gaussian", "laplace" or "response"
    scale: float  # noise / sensitivity; for randomized response the ε of one answer
    rate: float = 1.0
    count: int = 1


@dataclass(frozen=True)
class Case:
    """One question: what is ε of these parts at δ (or, with a target, which noise reaches it)?"""

    key: str
    title: str
    parts: tuple[Part, ...]
    delta: float
    relation: str = "add-remove"
    target: float | None = None
    group: int = 1  # how many people are protected together

    @property
    def known(self) -> tuple[float, float] | None:
        """A bracket certified by an independent computation, where there is one."""
        return _KNOWN.get(self.key)

    @property
    def single(self) -> Part:
        """The only part, for accountants that cannot mix mechanisms."""
        if len(self.parts) != 1:
            raise Unsupported("one mechanism at a time")
        return self.parts[0]

    @property
    def trains(self) -> bool:
        """Is this DP-SGD: one sampled Gaussian, many times?"""
        return len(self.parts) == 1 and self.parts[0].rate < 1


class Unsupported(Exception):
    """The library has no way to ask this question."""


def no_groups(case: Case) -> None:
    """Refuse what protects several people together."""
    if case.group > 1:
        raise Unsupported("one person at a time")


# Certified without discreet; the last digit is widened outwards.
_KNOWN = {
    "gaussian-1-1e-06": (4.886553, 4.886555),
    "gaussian-1-1e-15": (8.16557, 8.16559),
    "gaussian-10-1e-06": (19.42365, 19.42367),
    "gaussian-1000-1e-06": (649.3850, 649.3852),
    "gaussian-1000-1e-12": (721.5471, 721.5473),
    "laplace-1-1e-06": (0.099997, 0.099999),
    "laplace-100-1e-06": (4.692666, 4.692668),
    "laplace-10000-1e-06": (94.23584, 94.23588),
    "response-100-1e-06": (4.774567, 4.774569),
    "response-10000-1e-06": (96.57183, 96.57185),
    "4a-1e-05": (1.828234, 1.828238),
    "4a-1e-12": (3.914296, 3.914299),
    "4a-1e-15": (4.854535, 4.854539),
    "4a-replace-1e-05": (2.84343, 2.84345),
    "4b-1e-05": (6.0807, 6.11285),
    "4b-1e-12": (11.6545, 11.6867),
    "4c-1e-05": (36.00363, 36.00370),
    "4d-1e-05": (4.549570, 4.549842),
    "4d-1e-12": (8.18449, 8.18478),
    "4d-1e-15": (9.603782, 9.604053),
    "7-calibrate": (4.301867, 4.302114),
}


def _simple(key: str, title: str, part: Part, *deltas: float) -> list[Case]:
    return [Case(f"{key}-{delta:.0e}", f"{title}, δ={delta:.0e}", (part,), delta) for delta in deltas]


def _mixture() -> tuple[Part, ...]:
    """1,050 mechanisms, no two alike; ε is about 7 at δ = 1e-6."""
    gaussians = [Part("gaussian", 16 + i / 25) for i in range(500)]
    laplaces = [Part("laplace", 16 + i / 20) for i in range(500)]
    steps = [Part("gaussian", 0.8 + i / 100, 0.005 + i / 10_000, 20 + i) for i in range(50)]
    return (*gaussians, *laplaces, *steps)


def _different(count: int) -> Case:
    """Sampled Gaussians, no two alike."""
    parts = tuple(Part("gaussian", 1 + i / 1000, 0.001 + 1e-6 * i) for i in range(count))
    return Case(f"different-{count}", f"{count} different sampled Gaussians, δ=1e-06", parts, 1e-6)


def _group(steps: int) -> Case:
    """Ten people protected together while DP-SGD runs."""
    title = f"a group of 10, DP-SGD σ=1 q=.01 k={steps}, δ=1e-05"
    return Case(f"group-10-{steps}", title, (Part("gaussian", 1.0, 0.01, steps),), 1e-5, group=10)


# Small rates and many steps: the noise, the rate, the steps.
_SMALL = ((2.0, 1e-6, 10**6), (1.0, 1e-6, 10**6), (1.0, 1e-5, 10**6), (0.6, 1e-4, 10**6))

CASES: tuple[Case, ...] = (
    *_simple("gaussian-1", "Gaussian σ=1, k=1", Part("gaussian", 1.0), 1e-6, 1e-15),
    *_simple("gaussian-10", "Gaussian σ=1, k=10", Part("gaussian", 1.0, count=10), 1e-6),
    *_simple("gaussian-1000", "Gaussian σ=1, k=1000", Part("gaussian", 1.0, count=1000), 1e-6, 1e-12),
    *_simple("laplace-1", "Laplace ε₀=0.1, k=1", Part("laplace", 10.0), 1e-6),
    *_simple("laplace-100", "Laplace ε₀=0.1, k=100", Part("laplace", 10.0, count=100), 1e-6),
    *_simple("laplace-10000", "Laplace ε₀=0.1, k=10 000", Part("laplace", 10.0, count=10_000), 1e-6),
    *_simple("response-100", "randomized response ε₀=0.1, k=100", Part("response", 0.1, count=100), 1e-6),
    *_simple(
        "response-10000", "randomized response ε₀=0.1, k=10 000", Part("response", 0.1, count=10_000), 1e-6
    ),
    *_simple("4a", "4a DP-SGD σ=1 q=.01 k=1000", Part("gaussian", 1.0, 0.01, 1000), 1e-5, 1e-12, 1e-15),
    Case(
        "4a-replace-1e-05",
        "4a replace-one, δ=1e-05",
        (Part("gaussian", 1.0, 0.01, 1000),),
        1e-5,
        relation="replace",
    ),
    *_simple("4b", "4b DP-SGD σ=.6 q=.001 k=1e5", Part("gaussian", 0.6, 0.001, 100_000), 1e-5, 1e-12, 1e-15),
    *_simple("4c", "4c DP-SGD σ=2 q=.1 k=1e4", Part("gaussian", 2.0, 0.1, 10_000), 1e-5, 1e-12, 1e-15),
    *_simple(
        "4d",
        "4d DP-SGD σ=.8 q=256/60000 k=14062",
        Part("gaussian", 0.8, 256 / 60_000, 14_062),
        1e-5,
        1e-12,
        1e-15,
    ),
    *(
        case
        for noise, rate, steps in _SMALL
        for case in _simple(
            f"small-{noise:g}-{rate:g}",
            f"small rate σ={noise:g} q={rate:g} k={steps:.0e}",
            Part("gaussian", noise, rate, steps),
            1e-5,
            1e-12,
        )
    ),
    _different(100),
    _different(1050),
    _group(1),
    _group(100),
    Case("5-mixture", "5: 500 Gaussians + 500 Laplace + 50 DP-SGD, all different, δ=1e-06", _mixture(), 1e-6),
    Case(
        "7-calibrate",
        "7: least σ for ε=1, δ=1e-06, q=.01, k=1e4",
        (Part("gaussian", 1.0, 0.01, 10_000),),
        1e-6,
        target=1.0,
    ),
)

# What a scan asks: noises, (rate, steps) and δ.
_NOISES = (0.3, 0.5, 0.6, 1.0, 2.0, 10.0, 100.0)
_RUNS = (
    (1e-2, 10**3),
    (1e-3, 10**5),
    (1e-4, 10**6),
    (1e-5, 10**6),
    (1e-6, 10**6),
    (1e-6, 10**8),
    (1e-9, 10**9),
    (0.1, 10**4),
)
_DELTAS = (1e-5, 1e-12, 1e-50)

SCAN: tuple[Case, ...] = tuple(
    case
    for noise in _NOISES
    for rate, steps in _RUNS
    for case in _simple(
        f"scan-{noise:g}-{rate:g}-{steps:.0e}",
        f"σ={noise:g} q={rate:g} k={steps:.0e}",
        Part("gaussian", noise, rate, steps),
        *_DELTAS,
    )
)

BY_KEY = {case.key: case for case in (*CASES, *SCAN)}
