# SPDX-License-Identifier: Apache-2.0
"""The trade-off curve in a file: the attacker's least miss rate for every false-alarm rate.

**Promise.** The points that are joined are never above the true curve: the picture promises no more than is proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from discreet.errors import BadParameter, MissingExtra
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import COLOURS, svg

_ENDINGS = (".svg", ".png", ".pdf")
#: The margins of the picture suit this size; a vector picture scales to any other.
_SIZE = 300


def save(guarantees: Mapping[str, Guarantee], path: str | Path) -> None:
    """Draw the trade-off curves into a file whose ending says the format; a name "" has no legend.

    .svg needs nothing; .png and .pdf need matplotlib (`pip install 'discreet[plot]'`).
    """
    file = Path(path)
    if file.suffix not in _ENDINGS:
        raise BadParameter(
            "DP105",
            f"a picture must end in one of {', '.join(_ENDINGS)}, not {file.suffix or 'nothing'}.",
            why="the ending chooses the format.",
            fix=f"{file.stem or 'curve'}.svg",
        )
    try:
        if file.suffix == ".svg":
            file.write_text(svg(dict(guarantees), size=_SIZE), encoding="utf-8")
        else:
            _with_matplotlib(guarantees, file)
    except OSError as error:
        raise BadParameter(
            "DP102",
            f"{file} cannot be written: {error.strerror or error}.",
            why="the picture was drawn and has no place to go.",
            fix=f"{file.name}  in a folder that exists and is yours",
        ) from None


def _with_matplotlib(guarantees: Mapping[str, Guarantee], file: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(
            "DP501",
            f"a {file.suffix} picture needs matplotlib, which is not installed.",
            why="the small core draws .svg by itself and leaves other formats to matplotlib.",
            fix="pip install 'discreet[plot]'   or choose a name that ends in .svg",
        ) from None
    figure = Figure(figsize=(4.8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([0, 1], [1, 0], linestyle=":", color="#999999")
    for colour, (name, guarantee) in zip(_cycle(len(guarantees)), guarantees.items(), strict=True):
        curve = guarantee.roc(201)
        axes.plot(curve.false_alarm, 1 - curve.detection, color=colour, label=name or None)
    if any(guarantees):
        axes.legend()
    axes.set(xlabel="false alarms", ylabel="misses", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    figure.savefig(file, dpi=150)


def _cycle(count: int) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(count)]
