# SPDX-License-Identifier: Apache-2.0
"""What a synthetic copy would cost, and how far the numbers that it follows would be off.

**Guarantee.** A preview follows from the request, the description and the cost: no row is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from discreet.json_types import JsonObject
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.show import short
from discreet.tables.synthetic.measure import pair_measurement, pair_system
from discreet.tables.synthetic.mechanism import SynthesisMechanism
from discreet.tables.synthetic.released import pair_half_width, tables_of_pairs
from discreet.tables.synthetic.spending import SynthesisSpending

__all__ = ["SynthesisPreview", "preview_synthesis"]


@dataclass(frozen=True, repr=False)
class SynthesisPreview:
    """The cost of a synthetic copy, and the greatest margins of error of the tables that it
    follows.

    `codes` is the number of values and intervals of each column. `margins` maps 1 and 2 to the
    half-width, in rows, of 95 % intervals of cells in released tables of one and two columns; it is
    empty where the method chooses its tables. `question` is what the ledger writes down.

    **Guarantee.** No row is read and nothing is spent. The preview is the same whatever the rows
    are.
    """

    cost: Guarantee
    codes: Mapping[str, int]
    margins: Mapping[int, float]
    question: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> JsonObject:
        """As plain JSON types."""
        return {
            "cost": json.loads(self.cost.to_json()),
            "codes": dict(self.codes),
            "margins": {str(order): margin for order, margin in self.margins.items()},
            "question": self.question,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        words = {1: "one column", 2: "two columns"}
        lines = [
            f"A synthetic copy of {len(self.codes)} columns with {sum(self.codes.values())} values and intervals.",
            f"It would cost {short(self.cost)} for {self.cost.unit}.",
            *(
                f"Each cell of a table of {words[order]} would be off by ±{margin:.0f} rows at most (95 %)."
                for order, margin in self.margins.items()
            ),
            *([] if self.margins else ["Which tables are measured, and how well, is found on the way."]),
            *self.notes,
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<SynthesisPreview of {', '.join(self.codes)}>"


def preview_synthesis(mechanism: SynthesisMechanism) -> SynthesisPreview:
    """The preview of a copy that is compiled."""
    request, spending = mechanism.request, mechanism.spending
    margins: dict[int, float] = {}
    if isinstance(spending, SynthesisSpending):
        system = pair_system(request.sizes)
        measured = pair_measurement(system, spending.pairs, mechanism.reach)
        tables = tables_of_pairs(system, measured, {}, mechanism.reach.fine)
        for keys in system.residuals:
            if keys:
                half = pair_half_width(tables, keys, CONFIDENCE)
                margins[len(keys)] = max(half, margins.get(len(keys), 0.0))
    codes = {column.name: column.size for column in request.columns}
    return SynthesisPreview(
        mechanism.guarantee, codes, dict(sorted(margins.items())), request.text, mechanism.notes
    )
