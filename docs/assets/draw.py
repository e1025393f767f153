# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the documentation that are kept as files: python docs/assets/draw.py."""

from __future__ import annotations

from pathlib import Path

from discreet import plot, privacy

HERE = Path(__file__).parent
#: The four mechanisms of the notes, each with ε = 1 or δ = 0.1 or both.
FOUR = {
    "randomized response": privacy.randomized_response(epsilon=1.0),
    "leaky": privacy.leaky(delta=0.1),
    "leaky randomized response": privacy.leaky_randomized_response(epsilon=1.0, delta=0.1),
    "Laplace": privacy.laplace(scale=1.0),
}


def draw(folder: Path = HERE) -> None:
    """Write every picture into a folder."""
    plot.save(FOUR, folder / "roc-four.svg", kind="roc")


if __name__ == "__main__":
    draw()
