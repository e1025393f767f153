# SPDX-License-Identifier: Apache-2.0
"""`--plot` and `--plot-kind`: a picture of the guarantee in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.cli.terminal import working
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

KINDS = ("tradeoff", "roc", "epsilon-delta", "loss", "race")
#: A picture that needs a δ takes this one where none (or zero) was asked about.
_DELTA = 1e-6
#: A guarantee that was not repeated races up to so many runs of itself.
_RUNS = 100


def plotted(guarantee: Guarantee, path: str | None, kind: str | None, delta: float | None) -> str | None:
    """Draw the picture into the file, if one is named; its name."""
    if path is None and kind is None:
        return None
    kind = _known(kind or "tradeoff")
    if path is None:
        raise BadParameter(
            "DP107",
            "--plot-kind says what to draw, and --plot, which says where, is missing.",
            why="a picture goes into a file.",
            fix=f"--plot {kind}.svg --plot-kind {kind}",
        )
    with working("drawing"):
        _draw(guarantee, path, kind, delta or _DELTA)
    return path


def _known(kind: str) -> str:
    if kind in KINDS:
        return kind
    raise BadParameter(
        "DP105",
        f"--plot-kind must be one of {', '.join(KINDS)}.",
        why="each of them is a picture of its own.",
        fix=f"--plot-kind {KINDS[0]}",
    )


def _draw(guarantee: Guarantee, path: str, kind: str, delta: float) -> None:
    from discreet import plot
    from discreet.privacy.guarantee import ComposedGuarantee

    if kind in {"tradeoff", "roc"}:
        plot.save(guarantee, path, kind)
    elif kind == "epsilon-delta":
        plot.save(plot.epsilon_delta(guarantee), path)
    elif kind == "loss":
        plot.save(plot.loss(guarantee, delta=delta), path)
    elif isinstance(guarantee, ComposedGuarantee) and len(guarantee.parts) == 1:
        ((mechanism, count),) = guarantee.parts
        plot.save(plot.race(mechanism, delta=delta, most=count), path)
    else:
        plot.save(plot.race(guarantee, delta=delta, most=_RUNS), path)
