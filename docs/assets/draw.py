# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of the documentation that are kept as files: python docs/assets/draw.py."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet import plot, privacy
from discreet.mechanisms import Gaussian, Laplace, smooth
from discreet.plot.canvas import GREY, axes_for, finish, style, upper_bound_text
from discreet.tables.workloads.objectives import plan_noise
from discreet.tables.workloads.residuals import ResidualSystem, closure_of
from discreet.tables.workloads.strategies import gram_of, optimal_strategy

HERE = Path(__file__).parent
#: The four mechanisms of the notes, each with ε = 1 or δ = 0.1 or both.
FOUR = {
    "randomized response": privacy.randomized_response(epsilon=1.0),
    "leaky": privacy.leaky(delta=0.1),
    "leaky randomized response": privacy.leaky_randomized_response(epsilon=1.0, delta=0.1),
    "Laplace": privacy.laplace(scale=1.0),
}

#: A thousand records like a standard normal, in bounds that are stated to be on the safe side, as on the page.
RECORDS = ndtri(np.linspace(0.0005, 0.9995, 1000))
TRIMMED = smooth.TrimmedMean((-50, 50), trim=0.1)
GLOBAL = 100 / 800  # how far one record moves the mean of the 800 that are left, at most
SAMPLING = 1.96 * math.sqrt(1.0604 / 1000)  # of the trimmed mean of a normal sample, 95 % of the time
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
#: Three kinds of promise at the price of ε: what is spent, noise for the global sensitivity, and the families, each with parameters to try.
KINDS: dict[str, tuple[Callable, Callable, dict]] = {
    "ε alone": (
        lambda epsilon: {"epsilon": epsilon},
        lambda epsilon: Laplace(epsilon=epsilon, sensitivity=GLOBAL),
        {
            "Cauchy": [smooth.SmoothCauchy()],
            "Student's t": [smooth.SmoothStudentT(d) for d in (1.5, 2.0, 3.0, 4.0, 6.0)],
            "Lomax": [smooth.SmoothLomax(a) for a in (4.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0)],
        },
    ),
    "(ε, δ) with δ = 10⁻⁶": (
        lambda epsilon: {"epsilon": epsilon, "delta": DELTA},
        lambda epsilon: Laplace(epsilon=epsilon, sensitivity=GLOBAL),
        {"Laplace": [smooth.SmoothLaplace()], "Gaussian": [smooth.SmoothGaussian()]},
    ),
    "ρ = ε²/2": (
        lambda epsilon: {"rho": epsilon**2 / 2},
        lambda epsilon: Gaussian(rho=epsilon**2 / 2, sensitivity=GLOBAL),
        {
            "Laplace-log-normal": [smooth.SmoothLaplaceLogNormal(s) for s in (0.1, 0.2, 0.3, 0.5)],
            "uniform-log-normal": [smooth.SmoothUniformLogNormal(s) for s in (0.4, 0.6, 0.85)],
            "arsinh-normal": [smooth.SmoothArsinhNormal(s) for s in (0.5, 0.7, 1.0)],
        },
    ),
}


def draw(folder: Path = HERE) -> None:
    """Write every figure into a folder."""
    plot.save(FOUR, folder / "roc-four.svg", kind="roc")
    plot.save(trimmed_mean(), folder / "smooth-trimmed-mean.svg")
    plot.save(sample_size(), folder / "sample-size.svg")
    plot.save(many_tables(), folder / "many-tables.svg")


def many_tables() -> Any:
    """The error of many tables at one cost: each by itself, and together; and of ranges of an ordered key."""
    first = axes_for(None, (9.0, 4.0))
    figure = first.figure
    first.remove()
    left, right = figure.subplots(1, 2)
    keys = range(1, 9)
    sizes = [(2, 5, 16, 2, 3, 4, 2, 6)[:many] for many in keys]
    plans = [plan_noise(ResidualSystem(each, closure_of([tuple(range(len(each)))]))) for each in sizes]
    together = [(plan.value / 2 ** len(each)) ** 0.5 for plan, each in zip(plans, sizes, strict=True)]
    curves = {"each by itself": [2 ** (many / 2) for many in keys], "together": together}
    for number, (name, errors) in enumerate(curves.items()):
        left.plot(list(keys), errors, label=name, **style(number))
    left.set(
        yscale="log", xlabel="keys of the cube", ylabel="deviation of a cell, for 2ρ = 1", title="A cube"
    )
    told = f"With eight keys, 256 tables: {curves['each by itself'][-1]:.1f} and {together[-1]:.1f}."
    finish(left, "The error of a cube against the number of its keys", told)
    left.legend(frameon=False, fontsize="small")
    values = (4, 8, 16, 32, 64, 128)
    best = {
        kind: [optimal_strategy(gram_of({kind: 1.0}, n)).value ** 0.5 for n in values]
        for kind in ("ranges", "prefixes")
    }
    lengths = [(n + 2) / 3 for n in values]
    lines = {
        "ranges, from single values": [length**0.5 for length in lengths],
        "ranges, together": best["ranges"],
    }
    lines["running totals, together"] = best["prefixes"]
    for number, (name, errors) in enumerate(lines.items()):
        right.plot(values, errors, label=name, **style(number))
    right.set(xscale="log", xlabel="values of the key", title="An ordered key")
    right.xaxis.set_major_formatter("{x:g}")
    told = f"With 128 values: {lines['ranges, from single values'][-1]:.1f} and {best['ranges'][-1]:.1f}."
    finish(right, "The error of ranges against the number of values", told)
    right.legend(frameon=False, fontsize="small")
    return figure


def trimmed_mean() -> Any:
    """The error of a private trimmed mean against ε, for each kind of promise: quantiles of the noise, no luck."""
    first = axes_for(None, (10.5, 4.4))
    figure = first.figure
    first.remove()
    panels = figure.subplots(1, len(KINDS), sharey=True)
    for ax, (kind, (budget, noise, families)) in zip(panels, KINDS.items(), strict=True):
        ax.axhline(SAMPLING, color=GREY, linewidth=1.2, label="no privacy: sampling alone")
        curves = {"global sensitivity": [noise(epsilon).error() for epsilon in EPSILONS]}
        curves |= {name: [least(tried, budget(e)) for e in EPSILONS] for name, tried in families.items()}
        for number, (name, errors) in enumerate(curves.items()):
            ax.plot(EPSILONS, errors, label=name, **style(number))
        one = EPSILONS.index(1.0)
        words = [f"{name} ±{upper_bound_text(errors[one])}" for name, errors in curves.items()]
        ax.set(xscale="log", yscale="log", ylim=(0.002, 100), title=kind, xlabel="ε")
        ax.xaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_major_formatter("{x:g}")
        finish(ax, f"Error of a private trimmed mean, {kind}", f"At ε = 1: {'; '.join(words)}.")
        ax.legend(frameon=False, fontsize="small", loc="upper right")
    panels[0].set_ylabel("error, 95 % of the time at most")
    return figure


def least(families: list[smooth.Family], budget: dict[str, float]) -> float:
    """The error at 95 % with the best smoothing and the best of these families."""
    planned = (
        smooth.SmoothMechanism(TRIMMED, smooth.SmoothBudget(**budget), family=family, public=RECORDS)
        for family in families
    )
    return min(mechanism.error_on(RECORDS) for mechanism in planned)


def sample_size() -> Any:
    """The excess risk of noisy descent along n, d and ε: every run that benchmarks/sample_size.py has kept."""
    kept = json.loads((HERE / "sample-size.json").read_text(encoding="utf-8"))
    first = axes_for(None, (10.5, 4.4))
    figure = first.figure
    first.remove()
    panels = figure.subplots(1, 3, sharey=True)
    for ax, (along, label) in zip(panels, {"n": "n", "d": "d", "epsilon": "ε"}.items(), strict=True):
        found = [one for one in kept if one["along"] == along]
        values = [one[along] for one in found]
        ax.plot(values, [math.sqrt(2 / one["steps"]) for one in found], color=GREY, label="bound")
        for number, task in enumerate(("hard", "usual")):
            look = style(number)
            for value, one in zip(values, found, strict=True):
                ax.plot([value] * len(one[task]), one[task], ".", color=look["color"], markersize=2)
            ax.plot(values, [sum(one[task]) / len(one[task]) for one in found], label=f"{task} task", **look)
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.minorticks_off()
        ends = [f"{one[along]:g}: {np.mean(one['hard']):.3g}" for one in (found[0], found[-1])]
        finish(
            ax, f"Excess risk against {label}", f"Mean on the hard task at {label} = {ends[0]}, at {ends[1]}."
        )
        ax.legend(frameon=False, fontsize="small")
    panels[0].set_ylabel("excess risk on the records")
    return figure


if __name__ == "__main__":
    draw()
