# SPDX-License-Identifier: Apache-2.0
"""A synthetic copy in a session: compiled, charged, drawn and stored, in that order.
`Session.synthesize` states the guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from discreet.errors import OverBudget, UnsupportedGuarantee
from discreet.extras import naming_extras
from discreet.ledger import Charge
from discreet.session.account import COST_OF_ANSWER, PendingAnswer, SettledAnswer, adding_spent
from discreet.session.compiler import QuestionCompiler
from discreet.session.fitting import propose_admitted_cost, propose_smaller_cost
from discreet.tables.plan.spend import Spend

with naming_extras():
    from discreet.tables.synthetic.copy import SyntheticCopy
    from discreet.tables.synthetic.mechanism import (
        SynthesisMechanism,
        SynthesisRequest,
        compile_synthesis,
        synthesis_request,
    )
    from discreet.tables.synthetic.preview import SynthesisPreview, preview_synthesis

__all__ = ["make_copy", "preview_copy"]


def make_copy(
    compiler: QuestionCompiler, start: object, wanted: Mapping[str, Any], spend: Spend, key: str | None
) -> SyntheticCopy:
    """The copy; one that is stored under the key is shown again and costs nothing."""
    request = synthesis_request(start, **wanted)
    compile_at = partial(_compile, compiler, request)
    # A request that is refused is refused here, before anything is charged.
    mechanism = compile_at(spend)
    before = "what choosing at_most cost" if compiler.bound_mechanism(spend) is not None else ""
    if compiler.is_auto:
        compiler.chosen_bound(spend)
        mechanism = compile_at(spend)
    charge = Charge(mechanism.guarantee, request.text, key, type(mechanism).__name__)
    pending = PendingAnswer(charge, lambda: mechanism.draw(compiler.data), SyntheticCopy.to_json)
    with adding_spent(before):
        try:
            (settled,) = compiler.account.settle(
                [pending], compiler.data.ready, compiled=True, spent=COST_OF_ANSWER
            )
        except UnsupportedGuarantee as refusal:
            raise propose_admitted_cost(refusal, compiler.account, spend, compile_at) from None
        except OverBudget as refusal:
            raise propose_smaller_cost(refusal, compiler.account, spend, compile_at) from None
    return _copy_from(settled)


def preview_copy(
    compiler: QuestionCompiler, start: object, wanted: Mapping[str, Any], spend: Spend
) -> SynthesisPreview:
    """What the copy would cost; nothing is charged, and no row is read."""
    preview = preview_synthesis(_compile(compiler, synthesis_request(start, **wanted), spend))
    _, assumed = compiler.bound_or_assumed()
    return replace(preview, notes=(*preview.notes, assumed)) if assumed else preview


def _compile(compiler: QuestionCompiler, request: SynthesisRequest, spend: Spend) -> SynthesisMechanism:
    bound, _ = compiler.bound_or_assumed()
    return compile_synthesis(request, compiler.data, spend, cap=bound)


def _copy_from(settled: SettledAnswer) -> SyntheticCopy:
    """The copy that was drawn, or the one that the ledger stores."""
    drawn: SyntheticCopy | None = settled.drawn
    copy = SyntheticCopy.from_json(str(settled.text)) if drawn is None else drawn
    closed = () if settled.receipt is None else settled.receipt.closes
    notes = [
        f"This copy has closed the {track} of the budget, for everybody who shares it." for track in closed
    ]
    return copy.with_receipt(settled.receipt, notes=notes)
