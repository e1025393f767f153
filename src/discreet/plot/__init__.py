# SPDX-License-Identifier: Apache-2.0
"""Charts of guarantees, each with a description in words for screen readers.

    attacker.py  tradeoff, roc, Band  what an attacker can do, several guarantees at once; a curve
                                      between two curves: an audit, or what is certified
    profile.py   epsilon_delta        ε for every δ
    spread.py    loss                 the privacy-loss distribution, its tail, and the Gaussian it tends to
    composition.py  race              composition theorems as the number of runs grows
    densities.py noise                the densities of noise distributions with the same ε
    accuracy.py  error                the margin of error against ε
    budget.py    burn_down            the remaining budget after each spend
    groups.py    groups               released numbers with their intervals
    periods.py   periods              released numbers over time, with bands
    curves.py                         the curves of an additive model, by its own `plot`
    files.py     save, alt_text       a figure in a file, and its description in words
    canvas.py, figure.py              axes, colours and dashes; the figure that renders itself in a notebook

Each function draws into `ax`, or into a new figure, and returns the figure. They need matplotlib,
which is loaded by the first call. `tradeoff_svg` and `roc_svg` need nothing and return SVG as text.
"""

from __future__ import annotations

from discreet.plot.accuracy import error
from discreet.plot.attacker import Band, roc, tradeoff
from discreet.plot.budget import burn_down
from discreet.plot.composition import race
from discreet.plot.densities import noise
from discreet.plot.files import alt_text, save
from discreet.plot.groups import groups
from discreet.plot.periods import periods
from discreet.plot.profile import epsilon_delta
from discreet.plot.spread import loss
from discreet.privacy.svg import roc_svg, tradeoff_svg

__all__ = [
    "Band",
    "alt_text",
    "burn_down",
    "epsilon_delta",
    "error",
    "groups",
    "loss",
    "noise",
    "periods",
    "race",
    "roc",
    "roc_svg",
    "save",
    "tradeoff",
    "tradeoff_svg",
]
