# SPDX-License-Identifier: Apache-2.0
"""Pictures of guarantees, with words for those who do not see them.

    attacker.py  tradeoff, roc        what an attacker can do, several guarantees at once
    band.py      Band                 a curve between two curves: an audit, or what is certified
    profile.py   epsilon_delta        ε for every δ
    spread.py    loss                 the privacy-loss distribution, its tail, and the Gaussian it tends to
    contest.py   race                 composition theorems as the number of runs grows
    laws.py      noise                the densities of noise that buys the same ε
    accuracy.py  error                how wrong an answer is, against ε
    budget.py    burn_down            what is left of a limit
    groups.py    groups               released numbers with their intervals
    files.py     save, alt_text       a picture in a file, and what it shows in words
    canvas.py, picture.py             axes, colours and dashes; the figure that shows itself in a notebook

Each function draws into `ax`, or into a new figure, and returns the figure. They need matplotlib, which is loaded by
the first call. `tradeoff_svg` and `roc_svg` need nothing and return SVG as text.
"""

from __future__ import annotations

from discreet.plot.accuracy import error
from discreet.plot.attacker import roc, tradeoff
from discreet.plot.band import Band
from discreet.plot.budget import burn_down
from discreet.plot.contest import race
from discreet.plot.files import alt_text, save
from discreet.plot.groups import groups
from discreet.plot.laws import noise
from discreet.plot.profile import epsilon_delta
from discreet.plot.spread import loss
from discreet.privacy.picture import roc_svg, tradeoff_svg

__all__ = [
    "Band",
    "alt_text",
    "burn_down",
    "epsilon_delta",
    "error",
    "groups",
    "loss",
    "noise",
    "race",
    "roc",
    "roc_svg",
    "save",
    "tradeoff",
    "tradeoff_svg",
]
