# SPDX-License-Identifier: Apache-2.0
"""A figure in a file, and in words.

**Guarantee.** Every file carries its title and its description: as `<title>` and `<desc>` in .svg,
as metadata in .png, .pdf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from discreet import check
from discreet.errors import BadParameter
from discreet.paths import as_path, place_for, stem_of, unwritable_error
from discreet.plot.attacker import roc, tradeoff
from discreet.plot.canvas import Several, guarantees_by_name, words_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.svg import roc_svg, tradeoff_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ENDINGS = (".svg", ".png", ".pdf")
#: The margins suit this size; a vector graphic scales to any other.
_SIZE = 400
_WITHOUT: dict[str, Callable[..., str]] = {"tradeoff": tradeoff_svg, "roc": roc_svg}
_WITH: dict[str, Callable[..., Figure]] = {"tradeoff": tradeoff, "roc": roc}


@check.arguments
def save(what: Figure | Several, path: str | Path, kind: str = "tradeoff") -> None:
    """Write a figure into a file whose ending says the format.

    `what` is a figure, or guarantees to be drawn as `kind` ("tradeoff" or "roc"); a name "" has no
    legend. Guarantees in a .svg need nothing installed; figures, .png and .pdf need matplotlib
    (`pip install 'discreet[plot]'`).

    **Guarantee.** The file carries a title and a description for readers who do not see the curve,
    and nothing that depends on when or where it was written.

    >>> import tempfile, pathlib
    >>> from discreet import plot, privacy
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "curve.svg"
    >>> plot.save(privacy.laplace(scale=1), path, kind="roc")
    >>> path.read_text(encoding="utf-8").startswith("<svg")
    True
    """
    file = as_path(path, "curve.svg")
    if file.suffix not in _ENDINGS:
        raise BadParameter(
            "DP105",
            f"the name of a figure's file must end in one of {', '.join(_ENDINGS)}.",
            why="the ending chooses the format.",
            fix=f"{stem_of(file, 'curve')}.svg",
        )
    kind = check.choice(_WITH, kind=kind)
    file = place_for(file)
    try:
        if not isinstance(what, Guarantee | Mapping):
            _write(_figure(what), file)
        elif file.suffix == ".svg":
            file.write_text(
                _WITHOUT[kind](guarantees_by_name(what), size=_SIZE, paper="white"), encoding="utf-8"
            )
        else:
            _write(_WITH[kind](what), file)
    except OSError as error:
        raise unwritable_error(file, error.strerror or "the system refuses") from None


@check.arguments
def alt_text(figure: Figure) -> str:
    """The title and the description of all charts in a figure, in words.

    >>> from discreet import plot, privacy
    >>> plot.alt_text(plot.epsilon_delta(privacy.pure(1.0), deltas=[1e-6]))
    'The least proved ε for each δ: ε is at most 1 at δ = 1e-06.'
    """
    title, words = words_of(_figure(figure))
    return f"{title}: {words}"


def _write(figure: Figure, file: Path) -> None:
    from discreet.plot.figure import metadata, svg_of

    if file.suffix == ".svg":
        file.write_text(svg_of(figure), encoding="utf-8")
    else:
        figure.savefig(file, dpi=150, metadata=metadata(figure, file.suffix))


def _figure(what: Any) -> Figure:
    if hasattr(what, "savefig") and hasattr(what, "get_axes"):
        return cast("Figure", what)
    raise BadParameter(
        "DP104",
        "only a figure, a guarantee or several guarantees by name can be saved.",
        why="nothing else can be drawn.",
        fix="plot.save(plot.roc(guarantee), 'curve.svg')",
    )
