# SPDX-License-Identifier: Apache-2.0
"""The tape notes, in one backward pass, what each use of each parameter contributes for each
record.

A use of a parameter is tapped: its output passes through an identity whose backward pass notes the
gradient that arrives there, together with the inputs that were saved. The parameters themselves
take no part in autograd, so the backward pass computes gradients of activations only.

**Guarantee.** It holds, for every parameter, one piece for each use whose output the losses depend
on, and no gradient reaches a parameter in any other way. Every piece has exactly `records` records:
a layer whose first axis is not the record is refused.
"""

# ruff: noqa: PLR0917, ARG004 - autograd functions take what they are applied to

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from discreet.errors import RefusedTraining
from discreet.learn.torch import internals
from discreet.learn.torch.calls import Calls
from discreet.learn.torch.pieces.base import Dense, Measure, Piece, Share
from discreet.learn.torch.pieces.outer import Outer, OuterBias, measure_together
from discreet.learn.torch.pieces.rows import join_pieces

__all__ = ["Contributions", "Kind", "Learned", "Make", "Shapes", "Tape"]

#: Pieces of up to this many numbers for each record are measured and added up together.
_SMALL = 2**14

#: The pieces that one use contributes, by parameter.
Contributions = Sequence[tuple[Parameter, Piece]]
#: Makes them from the gradient at the output of the use and the tensors that it saved.
Make = Callable[..., Contributions]


class Kind(NamedTuple):
    """A kind of call: the function, the ids of the parameters, and how many axes each of its other
    tensors has.
    """

    function: Callable[..., Any]
    parameters: tuple[int, ...]
    axes: tuple[int, ...]


#: By kind, the shapes of the other tensors in each call, and the whole numbers that it was given.
Shapes = dict[Kind, list[tuple[int | tuple[int, ...], ...]]]


@dataclass(frozen=True)
class Learned:
    """What the guards have seen the model do with records. It may do nothing else with them.

    `merged` has the ids of parameters whose layer saw records and positions as one axis. `axes`
    has, for tensors that a function without a rule was given, pairs of a number of records and the
    length of the first axis that it had then. `shapes` has, by kind of call (`Use.key`), whether
    the shapes of its tensors were the same for two numbers of records.
    """

    merged: set[int] = field(default_factory=set)
    axes: dict[Hashable, set[tuple[int, int]]] = field(default_factory=dict)
    shapes: dict[Kind, bool] = field(default_factory=dict)

    def __add__(self, other: Learned) -> Learned:
        keys = self.axes.keys() | other.axes.keys()
        shapes = {
            key: self.shapes.get(key, True) and other.shapes.get(key, True)
            for key in self.shapes.keys() | other.shapes.keys()
        }
        return Learned(
            self.merged | other.merged,
            {key: self.axes.get(key, set()) | other.axes.get(key, set()) for key in keys},
            shapes,
        )


class Tape:
    """What is known of the current pass. One thread uses it, for one backward pass at a time."""

    def __init__(self, names: dict[Parameter, str]) -> None:
        self.names = {id(parameter): name for parameter, name in names.items()}
        #: The records of the current backward pass; 0 outside of one.
        self.records = 0
        self.calls = Calls()
        self.remember(Learned())
        #: Whether the guards are testing the model.
        self.learning = False
        #: Where the guards collect the shapes in one forward pass.
        self.shapes: Shapes | None = None
        self.measures: list[Measure] = []
        # All by the id of the parameter, because a tensor is slow to hash.
        self._pieces: dict[int, Piece] = {}
        self._small: dict[int, Dense] = {}
        self._lone: list[Outer | OuterBias] = []
        # The versions of the tensors that were measured.
        self._versions: dict[int, list[int]] = {}
        self._heard: defaultdict[int, list[Piece]] = defaultdict(list)
        self._awaited: defaultdict[int, int] = defaultdict(int)
        self._bundle: Dense | None = None
        self._anchor = torch.zeros((), requires_grad=True)
        self._probe: _Probe | None = None

    def remember(self, learned: Learned) -> None:
        """Let the model do what the guards have seen it do, and nothing else with records."""
        self.learned = learned
        self._constant = {kind for kind, same in learned.shapes.items() if same}
        #: Functions that are called with parameters and with tensors that have no records.
        self.constant_functions = {kind.function for kind in self._constant}

    def is_constant(self, kind: Kind) -> bool:
        """Whether no tensor in such a call has records, as the guards have seen it: their shapes
        were the same for two numbers of records.
        """
        return kind in self._constant

    def tap(self, out: Tensor, parameters: Sequence[Parameter], make: Make, *saved: Tensor) -> Tensor:
        """The same output. When its gradient comes, `make(gradient, *saved)` says what it
        contributes.
        """
        self._expect(parameters)
        # Autograd copies the gradients of views that are marked as changed.
        if internals.is_view(out):
            out = internals.unsafe_view(out, out.shape)
        apply = _Tap.apply if internals.functorch_is_active() else _tap
        tapped: Tensor = apply(out, self._anchor, self, make, saved)  # type: ignore[no-untyped-call]
        return tapped

    def expand(
        self, value: Tensor, shape: Sequence[int], parameters: Sequence[Parameter], make: Make
    ) -> Tensor:
        """A value without records, shown to every record: expanded to `shape`, whose first axis is
        the record.
        """
        self._expect(parameters)
        expanded: Tensor = _Spread.apply(value, self._anchor, self, make, tuple(shape))  # type: ignore[no-untyped-call]
        return expanded

    def hear(self, make: Make, gradient: Tensor, saved: Sequence[Tensor]) -> None:
        """Note one use. A parameter is measured when all its uses were noted, so that memory is
        freed.
        """
        if self._probe is not None:
            self._probe.hear(gradient)
        if not self.records:
            return
        for parameter, piece in make(gradient, *saved):
            key = id(parameter)
            self._awaited[key] = awaited = self._awaited[key] - 1
            if awaited == 0 and key not in self._heard:
                self._settle(key, piece)
                continue
            self._heard[key].append(piece)
            if awaited == 0:
                self._settle(key, join_pieces(self._heard.pop(key)))

    def _expect(self, parameters: Sequence[Parameter]) -> None:
        for parameter in parameters:
            self._awaited[id(parameter)] += 1

    def listen(self, losses: Tensor) -> None:
        """One backward pass from losses, one for each record; afterwards all pieces are settled."""
        self.forget()
        self.records = losses.shape[0]
        try:
            _backward(losses, torch.ones_like(losses), self._anchor)
            with torch.no_grad():
                self._settle_rest()
        finally:
            self.records = 0
            self.forget_uses()

    def forget_uses(self) -> None:
        """Forget uses in a forward pass that no backward pass followed."""
        self._heard.clear()
        self._awaited.clear()

    def _settle_rest(self) -> None:
        """Settle parameters that were not used as often as expected, and those that are measured
        together.
        """
        for key in list(self._heard):
            self._settle(key, join_pieces(self._heard.pop(key)))
        if self._lone:
            self.measures.append(measure_together(self._lone))
        if self._small:
            self._bundle = Dense.bundle(list(self._small.values()))
            self.measures.append(self._bundle.measure())

    def probe(self, losses: Tensor) -> None:
        """Refuse losses that mix records, or that depend on trainable parameters that are not
        watched.
        """
        _refuse_unwatched_parameters(losses, self._anchor)
        awaited = self._awaited.copy()
        self._probe = _Probe(losses)
        try:
            torch.autograd.backward([losses], [self._probe.signal], inputs=[self._anchor], retain_graph=True)
            self._probe.judge()
        finally:
            self._probe, self._awaited = None, awaited

    def totals(self, share: Share) -> dict[int, Tensor]:
        """The sums over records, by the id of the parameter. The pieces are dropped, so that their
        memory is free.
        """
        small, bundle, large, versions = self._small, self._bundle, self._pieces, self._versions
        self.forget()
        totals = {}
        if bundle is not None:
            sums = bundle.total(share).split_with_sizes([piece.width for piece in small.values()])
            totals = {key: total.view(small[key].shape) for key, total in zip(small, sums, strict=True)}
        while large:
            key, piece = large.popitem()
            if key in versions and versions[key] != [
                internals.version_of(tensor) for tensor in piece.operands
            ]:
                raise not_by_record_error(
                    self.names[key], "a gradient was changed in place after it was measured"
                )
            totals[key] = piece.total(share)
        return totals

    def forget(self) -> None:
        """Drop everything that was noted."""
        self._pieces, self._lone, self._small, self._bundle, self.measures = {}, [], {}, None, []
        self._versions = {}

    def fits(self, tensor: Tensor, parameter: Parameter, *, rows: int) -> int:
        """The length of the first axis of the tensor, if this is the record.

        It may also be records times positions, as a reshape makes it, in a call of the model with
        as many `rows` as there are records, if the guards have seen that this is what the layer
        does. `Piece.merge` then adds up the positions of each record.
        """
        length = tensor.shape[0] if tensor.dim() else 0
        if length == self.records:
            return length
        if length and length % self.records == 0 and rows == self.records:
            if self.learning:
                self.learned.merged.add(id(parameter))
            if id(parameter) in self.learned.merged:
                return length
        raise not_by_record_error(self.names[id(parameter)], "the first axis of its layer is not the record")

    def _settle(self, key: int, piece: Piece) -> None:
        """Measure what a parameter gets, all uses together."""
        if key in self._pieces or key in self._small:
            raise not_by_record_error(self.names[key], "it is used again in a later part of the pass")
        # Small pieces are measured together at the end.
        if isinstance(piece, Dense) and piece.width <= _SMALL:
            self._small[key] = piece
            return
        self._pieces[key] = piece
        if isinstance(piece, Outer | OuterBias) and piece.lone:
            self._lone.append(piece)
        else:
            self.measures.append(piece.measure())
            self._versions[key] = [internals.version_of(tensor) for tensor in piece.operands]


def _backward(losses: Tensor, gradient: Tensor, leaf: Tensor) -> None:
    """`torch.autograd.backward(losses, gradient, inputs=[leaf])`, without its checks, whose results
    are known here.

    It runs in this thread: most of it is Python, which gains nothing from the threads that torch
    has for every device.
    """
    with torch.autograd.set_multithreading_enabled(False):
        internals.engine().run_backward(
            (losses,), (gradient,), False, False, (leaf,), allow_unreachable=True, accumulate_grad=True
        )


def not_by_record_error(name: str, because: str) -> RefusedTraining:
    """The refusal of a parameter whose gradient cannot be separated by record."""
    return RefusedTraining(
        "DP921",
        f"the gradient of {name} cannot be clipped record by record: {because}.",
        why="a record whose part is not known cannot be clipped, and without clipping no noise is enough.",
        fix="keep the record as the first axis of every tensor (batch_first=True), or freeze the parameter: "
        f"model.get_parameter({name!r}).requires_grad_(False)",
    )


def _hear(ctx: Any, gradient: Tensor | None) -> Tensor | None:
    """Tell the tape which gradient arrives. With `create_graph=True` it is refused.

    The tape notes gradients, and not what depends on them.
    """
    if torch.is_grad_enabled():
        raise RefusedTraining(
            "DP921",
            "a gradient was computed with create_graph=True.",
            why="for such a gradient, as in a gradient penalty, the run cannot see what each record contributes.",
            fix="leave the penalty out   or  private(…, exact=True), which takes records one at a time",
        )
    if gradient is not None:
        ctx.tape.hear(ctx.make, gradient, ctx.saved_tensors)
    return gradient


class _Probe:
    """Checks the first losses before they are differentiated: does each depend on one record only?

    About half of the losses are differentiated alone. Where layers use parameters, the rows of the
    other records must then get no gradient. A gradient that is not zero comes from a loss that
    looks at several records, such as a contrastive loss, or from mixed inputs. NaN and infinity say
    nothing, because they spread by themselves. If every loss depends on one record, every such
    number is 0, so nothing is refused, whatever the records are.

    **Guarantee.** A refusal means that the losses mix records. The reverse is not guaranteed:
    `shadow` looks for values of other records that have no gradient (`detach`).
    """

    def __init__(self, losses: Tensor) -> None:
        chosen = torch.rand(losses.shape[0], generator=torch.Generator().manual_seed(1)) < 0.5
        chosen[0], chosen[-1] = True, False
        self.signal, self._others = chosen.to(losses), (~chosen).nonzero().squeeze(1).to(losses.device)
        self._records, self._mixed = losses.shape[0], torch.zeros((), dtype=torch.bool, device=losses.device)

    def hear(self, gradient: Tensor) -> None:
        """A gradient at the output of a layer."""
        if gradient.dim() and gradient.shape[0] and gradient.shape[0] % self._records == 0:
            rows = (
                gradient.detach().reshape(self._records, -1).index_select(0, self._others.to(gradient.device))
            )
            self._mixed |= ((rows != 0) & rows.isfinite()).any().to(self._mixed.device)

    def judge(self) -> None:
        """Refuse, if a record got a gradient of the loss of another."""
        if bool(self._mixed):
            raise RefusedTraining(
                "DP922",
                "the losses mix records: the loss of one record has a gradient at another.",
                why="one record then changes the gradients of all others, so clipping each gradient bounds nothing.",
                fix="compute the loss of each record from its own row; put several views of a record on a second axis",
            )


def _refuse_unwatched_parameters(losses: Tensor, known: Tensor) -> None:
    """Refuse losses that have a trainable parameter in their graph that is not watched."""
    todo, seen = [losses.grad_fn], {losses.grad_fn}
    while todo:
        node = todo.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not known and isinstance(leaf, Parameter):
            raise RefusedTraining(
                "DP921",
                "the losses depend on a trainable parameter that is not part of the run.",
                why="its gradient would be neither clipped nor noisy.",
                fix="put it into the model before private(model, …), or freeze it: parameter.requires_grad_(False)",
            )
        following = (
            {function for function, _ in node.next_functions if function is not None} - seen
            if node
            else set()
        )
        seen |= following
        todo += following


class _Tap(torch.autograd.Function):
    """The identity, which tells the tape which gradient arrives."""

    @staticmethod
    def forward(
        ctx: Any, out: Tensor, anchor: Tensor, tape: Tape, make: Make, saved: tuple[Tensor, ...]
    ) -> Tensor:
        ctx.tape, ctx.make = tape, make
        ctx.save_for_backward(*saved)
        ctx.mark_dirty(out)
        ctx.set_materialize_grads(False)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return _hear(ctx, *gradients), None, None, None, None


#: `_Tap.apply` without what only transforms of functions need.
_tap = super(torch.autograd.Function, _Tap).apply


class _Spread(torch.autograd.Function):
    """Expansion of a value to every record."""

    @staticmethod
    def forward(
        ctx: Any, value: Tensor, anchor: Tensor, tape: Tape, make: Make, shape: tuple[int, ...]
    ) -> Tensor:
        ctx.tape, ctx.make = tape, make
        ctx.set_materialize_grads(False)
        return value.expand(shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[None, ...]:
        _hear(ctx, *gradients)
        return None, None, None, None, None
