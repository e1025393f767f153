# SPDX-License-Identifier: Apache-2.0
"""`--plot` and `--plot-kind`: a figure of the guarantee in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.cli.terminal import working
from discreet.errors import BadParameter

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee

KINDS = ("tradeoff", "roc", "epsilon-delta", "loss", "race")
#: The δ of a figure that needs one, where none (or zero) was asked for.
_DELTA = 1e-6
#: How many runs a race shows of a guarantee that ran once.
_RUNS = 100


def draw_figure(guarantee: Guarantee, path: str | None, kind: str | None, delta: float | None) -> str | None:
    """Draw the figure into the file, if one is named; return its name."""
    if path is None and kind is None:
        return None
    kind = _check_kind(kind or "tradeoff")
    if path is None:
        raise BadParameter(
            "DP107",
            "--plot-kind is given without --plot, which names the file.",
            why="a figure is written into a file.",
            fix=f"--plot {kind}.svg --plot-kind {kind}",
        )
    with working("drawing"):
        _draw(guarantee, path, kind, delta or _DELTA)
    return path


def _check_kind(kind: str) -> str:
    if kind in KINDS:
        return kind
    raise BadParameter(
        "DP105",
        f"--plot-kind must be one of {', '.join(KINDS)}.",
        why="these are the figures that can be drawn.",
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
