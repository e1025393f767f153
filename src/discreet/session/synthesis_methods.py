# SPDX-License-Identifier: Apache-2.0
"""The methods of a session that preview and make synthetic copies: see
`discreet.session.synthesis`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet import check
from discreet.session.compiler import QuestionCompiler
from discreet.session.response import ResponseTime, at_response_time
from discreet.session.validate import check_key
from discreet.tables.ask.start import Dataset
from discreet.tables.plan.spend import Spend

if TYPE_CHECKING:
    from discreet.tables.ask.query import Query
    from discreet.tables.synthetic.columns import Bins
    from discreet.tables.synthetic.copy import SyntheticCopy
    from discreet.tables.synthetic.preview import SynthesisPreview

__all__ = ["SynthesisMethods"]


class SynthesisMethods:
    """What a session does with synthetic copies.

    **Guarantee.** A copy is charged before it is drawn; a preview reads no row and costs nothing.
    """

    _compiler: QuestionCompiler
    _response: ResponseTime

    @check.arguments
    @at_response_time
    def synthesize(
        self,
        data: Dataset | Query,
        *,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, Bins] | None = None,
        method: str = "mixture",
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        check: float = 0.01,
        key: str | None = None,
    ) -> SyntheticCopy:
        """A synthetic copy of columns of a table: made-up rows that follow noisy tables of all
        pairs of columns.

        By default all columns with public values or bounds are copied. `bins` states the number of
        intervals of a numeric column, or their edges. The `method` "aim" measures tables that it
        chooses round after round; it takes longer and is better for training models. `check` is the
        share of the budget that measures how far the copy is off; 0 leaves that out. The cost needs
        a delta, or is stated as `rho`.

        **Guarantee.** As for `sql`: charged first, then drawn. More rows, other seeds and
        conditions on the copy cost nothing.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
        >>> copy = session.synthesize(adult, columns=["sex", "race", "over_50k"], epsilon=0.5, delta=5e-7)
        >>> len(copy.to_rows(rows=1000)), session.budget().remaining_fraction < 1
        (1000, True)
        """
        from discreet.session.synthesis import make_copy

        request = {"columns": columns, "bins": bins, "check": check, "method": method}
        return make_copy(self._compiler, data, request, Spend(epsilon, delta, rho), check_key(key))

    @check.arguments
    def preview_synthesis(
        self,
        data: Dataset | Query,
        *,
        columns: Sequence[str] | None = None,
        bins: Mapping[str, Bins] | None = None,
        method: str = "mixture",
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        check: float = 0.01,
    ) -> SynthesisPreview:
        """The cost of a synthetic copy, and the margins of error of the tables that it would
        follow.

        The arguments are those of `synthesize`. A margin that is near the number of rows in a cell
        says that fewer columns or larger intervals would make a better copy.

        **Guarantee.** No row is read and nothing is spent. The preview is the same whatever the
        rows are.

        >>> import discreet as dp
        >>> adult = dp.open(dp.data.path("adult.toml"))
        >>> session = dp.Session(adult, limit=dp.Limit.filter(epsilon=1, delta=1e-6))
        >>> preview = session.preview_synthesis(adult, columns=["sex", "race"], epsilon=0.5, delta=5e-7)
        >>> preview.codes["race"], 0 < preview.margins[2] < 100, session.budget().spent_fraction
        (6, True, 0.0)
        """
        from discreet.session.synthesis import preview_copy

        request = {"columns": columns, "bins": bins, "check": check, "method": method}
        return preview_copy(self._compiler, data, request, Spend(epsilon, delta, rho))
