# SPDX-License-Identifier: Apache-2.0
"""The sum of clipped gradients, one for each record, in one backward pass.

    clipper = Clipper(model)
    with clipper.watch():
        losses = loss_function(model(x), y, reduction="none")       # one loss for each record
        clipped = clipper.clipped_sum(losses, clip=1.0)
    clipped.gradients[parameter]                                      # Σ_i c_i g_i

Layers keep their inputs and the gradients at their outputs. From these the norm of every record's
gradient is computed without that gradient. Once the clipping factors are known, one product with
scaled output gradients gives the sum (book-keeping: Bu, Wang, Zha, Karypis 2023).

**Guarantee.** What record i adds to `gradients`, all parameters together, has norm at most `clip`,
in the arithmetic and under the conditions of clip.proof.md; a record whose gradient is not finite,
or whose weight is 0, adds exactly 0 and changes nothing for the others. Nothing waits for the
device and nothing depends on a value: no branch, no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import Parameter

from discreet import check
from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import internals
from discreet.learn.torch.pieces.base import Measure, Share, column
from discreet.learn.torch.rules.table import dispatch
from discreet.learn.torch.tape import Learned, Shapes, Tape
from discreet.learn.torch.watched import unwatch, watch

__all__ = ["ClippedSum", "Clipper"]

#: The accuracy that sums in float32 (and in float64) are taken to have, relative to the sum of absolute values.
_SUMS = {torch.float32: 2.0**-18, torch.float64: 2.0**-40}
#: A smaller factor is taken for 0 (clip.proof.md, assumption 4).
_LEAST = 2.0**-60


@dataclass(frozen=True)
class ClippedSum:
    """Sums over records, by parameter, in float32 or wider. The other fields are secret: they leave
    only with noise.

    `norms` holds what each record was measured at, `factors` what it was multiplied by.
    """

    gradients: dict[Parameter, Tensor]
    norms: Tensor
    clip: float | Tensor
    factors: Tensor

    @property
    def below(self) -> Tensor:
        """How many records took part with a norm of at most the clip."""
        return ((self.norms <= self.clip) & (self.factors > 0)).sum()


class Clipper:
    """Watches a model and clips the gradient of each record.

    **Guarantee.** As in the head of this file. Why it holds: clip.proof.md. What would break it: a
    model that mixes records, which `guards.check` looks for.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> clipper = Clipper(model)
    >>> with clipper.watch():
    ...     losses = model(torch.tensor([[3.0, 4.0], [0.0, 0.5]])).squeeze(1)
    ...     clipped = clipper.clipped_sum(losses, clip=1.0)
    >>> clipped.gradients[model.weight].round(decimals=3).tolist()
    [[0.6, 1.3]]
    """

    def __init__(self, model: nn.Module) -> None:
        if not isinstance(model, nn.Module):
            raise BadParameter(
                "DP104",
                "model must be a torch.nn.Module.",
                why="the clipper watches the parameters of this module.",
                fix="Clipper(torch.nn.Linear(10, 2))",
            )
        self.model = model
        names = {p: name for name, p in model.named_parameters() if p.requires_grad}
        if not names:
            raise BadParameter(
                "DP107",
                "the model has no parameter that requires a gradient.",
                why="there is nothing to train.",
                fix="model.requires_grad_(True)",
            )
        self._parameters, self._tape = list(names), Tape(names)
        self._open = False

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters that are trained."""
        return self._parameters

    def name(self, parameter: Parameter) -> str:
        """The name of a parameter in the model."""
        return self._tape.names[id(parameter)]

    @contextmanager
    def learn(self) -> Iterator[None]:
        """For the guards: if the block succeeds, the model may later do what it did in the block."""
        tape, before = self._tape, self._tape.learned
        tape.learning = True
        tape.remember(Learned())
        passed = False
        try:
            yield
            passed = True
        finally:
            tape.learning = False
            tape.remember(before + tape.learned if passed else before)

    def learn_shapes(self, forward: Callable[[int], object]) -> None:
        """For the guards: see which calls are made with tensors that have no records, in a forward
        pass of three records and one of two.

        A result of such calls has no records either, so the passes are repeated until nothing new
        is seen.
        """
        tape, before = self._tape, -1
        while before < (before := len(tape.learned.shapes)):
            three, two = self._shapes(forward, 3), self._shapes(forward, 2)
            shapes = {kind: three.get(kind) == two.get(kind) for kind in three.keys() | two.keys()}
            tape.remember(tape.learned + Learned(shapes=shapes))

    def _shapes(self, forward: Callable[[int], object], count: int) -> Shapes:
        tape = self._tape
        shapes: Shapes = {}
        tape.shapes = shapes
        try:
            with self.watch():
                forward(count)
        finally:
            tape.shapes = None
            tape.forget_uses()
        return shapes

    def trust(self, tested: Clipper) -> None:
        """Let the model do what another clipper has seen it do."""
        self._tape.remember(self._tape.learned + tested._tape.learned)

    def open(self) -> Self:
        """Watch the parameters until `close`. Ordinary backward passes then give them no gradient."""
        if not self._open:
            for parameter in self.parameters:
                watch(parameter, self._tape, dispatch)
            self._tape.calls.open(self.model)
            self._open = True
        return self

    def close(self) -> None:
        """Restore the model."""
        self._unwatch()
        self._tape.calls.close()

    def _unwatch(self) -> None:
        if self._open:
            for parameter in self.parameters:
                unwatch(parameter)
            self._open = False

    @contextmanager
    def watch(self) -> Iterator[Self]:
        """`open` for the length of a block."""
        was_open = self._open
        try:
            yield self.open()
        finally:
            if not was_open:
                self.close()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """For the length of a block the parameters are ordinary ones, for work that watching would
        slow down or hide.
        """
        was_open = self._open
        self._unwatch()
        try:
            yield
        finally:
            if was_open:
                self.open()

    def probe(self, losses: Tensor) -> None:
        """Refuse losses that mix records, as far as one backward pass shows."""
        self._tape.probe(losses)

    def clipped_sum(
        self, losses: Tensor, *, clip: float | Tensor, weights: Tensor | None = None
    ) -> ClippedSum:
        """The sum over records of their clipped gradients, from one backward pass.

        `weights` between 0 and 1 multiply what each record adds; a weight of 0 (or NaN) removes it
        exactly.
        """
        _check_losses(losses)
        bound = clip if isinstance(clip, Tensor) else _check_clip(clip)
        with _full_precision(losses.device.type):
            self._tape.listen(losses)
            with torch.no_grad(), internals.DisableTorchFunctionSubclass():
                norms = _norms(self._tape.measures, losses)
                share = _shares(norms, bound, weights)
                totals = self._tape.totals(share)
                gradients = {
                    parameter: totals[id(parameter)]
                    if id(parameter) in totals
                    else torch.zeros_like(parameter)
                    for parameter in self.parameters
                }
        return ClippedSum(gradients, norms, bound, share.factors)


def _full_precision(kind: str) -> AbstractContextManager[Any]:
    """Automatic mixed precision must not narrow norms and sums."""
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _norms(measures: list[Measure], losses: Tensor) -> Tensor:
    """A number not below the norm of what each record adds at factor 1 (clip.proof.md, Theorem 1)."""
    if not measures:
        return torch.zeros_like(losses, dtype=torch.float32)
    # The accuracy of the narrowest type.
    accuracy = max(_SUMS[measure.norms.dtype] for measure in measures)
    if all(measure.masses is measure.norms for measure in measures):
        norm: Tensor = _combined_norm([measure.norms for measure in measures])
        return norm.mul(1 + 2 * accuracy + max(measure.unit for measure in measures))
    measures = sorted(measures, key=lambda measure: measure.squared)
    norms = torch.stack([measure.norms for measure in measures])
    norms[sum(not measure.squared for measure in measures) :].clamp_(min=0).sqrt_()
    norm = torch.linalg.vector_norm(norms, dim=0)
    units = column(tuple(measure.unit + accuracy for measure in measures), norms.dtype, norms.device)
    masses = torch.stack([measure.masses for measure in measures])
    mass = torch.linalg.vector_norm(masses, dim=0)
    squares = norm.square_().mul_(1 + accuracy).addcmul_(mass, mass, value=accuracy)
    return squares.sqrt_().add_(torch.linalg.vector_norm(masses.mul_(units), dim=0))


def _combined_norm(norms: list[Tensor]) -> Tensor:
    """The norm of several parts, by record."""
    norm: Tensor = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms), dim=0)
    return norm


@lru_cache(maxsize=64)
def _number(number: float) -> Tensor:
    """A number as a tensor without axes, which works on any device. Dividing it takes one pass;
    dividing a float takes two.
    """
    return torch.tensor(number, dtype=torch.float64)


def _shares(norms: Tensor, clip: float | Tensor, weights: Tensor | None) -> Share:
    """min(1, clip/norm), and 0 where the norm is not finite: clip/NaN is NaN, and clip/inf is 0
    already.

    Also 0 where it is so small that the products with it would have lost their digits.
    """
    bound = clip if isinstance(clip, Tensor) else _number(clip)
    factors = torch.threshold_(torch.div(bound, norms), _LEAST, 0.0).clamp_(max=1.0).nan_to_num_(0.0)
    if weights is not None:
        factors = factors * weights.to(norms).nan_to_num(0.0).clamp_(0.0, 1.0)
    return Share(factors)


def _check_clip(clip: float) -> float:
    """A clip at which squares of norms are far from the ends of float32."""
    if 2.0**-40 <= check.positive(clip=clip) <= 2.0**40:
        return float(clip)
    raise BadParameter(
        "DP102",
        f"clip must lie between 2^-40 and 2^40, not {clip!r}.",
        why="outside this range the square of a norm is rounded to zero or to infinity.",
        fix="clip=1.0",
    )


def _check_losses(losses: Tensor) -> None:
    if isinstance(losses, Tensor) and losses.dim() == 1 and losses.requires_grad:
        return
    raise RefusedTraining(
        "DP912",
        "losses must be one number for each record, made by the watched model.",
        why="each record is clipped by its own gradient, and a mean over the batch does not show these.",
        fix='torch.nn.functional.cross_entropy(model(x), y, reduction="none")',
    )
