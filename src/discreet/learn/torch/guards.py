# SPDX-License-Identifier: Apache-2.0
"""Tests of a model on made-up records, before it sees a real one: does it keep records apart, and
is every parameter clipped?

- *Records apart, forward*: the output for a record does not change when the other records are
  replaced, turn into NaN, or leave. NaN spreads through every mean and every norm, however small
  its part in the result.
- *Records apart, backward*: the output for a record has no gradient at another record.
- *Writing*: what a forward pass writes into the model (parameters, buffers, attributes) does not
  depend on the records, nor on their number.
- *Coverage*: for each record the clipped gradient and the norm are those that autograd finds for
  its loss alone, for every parameter and for batches of two sizes.

**Guarantee.** A model that fails is refused by name, with a fix. The model is left as it was
(`snapshot`), whether it fails or passes. These are tests on a few records, not proofs: code that
mixes records only for other inputs is not found (`clip.proof.md`, assumption 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from discreet.errors import BadParameter, RefusedTraining
from discreet.learn.torch import internals
from discreet.learn.torch.clip import Clipper
from discreet.learn.torch.generators import Draws
from discreet.learn.torch.snapshot import Snapshot
from discreet.learn.torch.tape import not_by_record_error

__all__ = ["Writes", "check", "example", "mixing_error", "writing_error"]

Loss = Callable[..., Tensor]
#: Relative differences that are rounding: between passes of the same shape, and of different shapes or kernels.
_SAME, _LIKE = 1e-5, 2e-2
#: A clipping norm that changes nothing.
_HUGE = 2.0**40


def example(*record: Tensor, count: int = 3) -> tuple[Tensor, ...]:
    """Made-up records of the shape and type of one: normal numbers, and ids that are 0 or 1.

    >>> [tuple(t.shape) for t in example(torch.zeros(28, 28), torch.zeros((), dtype=torch.long))]
    [(3, 28, 28), (3,)]
    """
    generator = torch.Generator().manual_seed(1)
    records = []
    for tensor in record:
        shape = (count, *tensor.shape)
        if tensor.is_floating_point():
            records.append(torch.randn(shape, generator=generator).to(tensor))
        else:
            records.append(torch.randint(0, 2, shape, generator=generator).to(tensor))
    return tuple(records)


@dataclass(frozen=True)
class Writes:
    """What a forward pass may write into the model, by name: `once` is the same for all records,
    `always` also when repeated.
    """

    once: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()


def check(clipper: Clipper, inputs: Sequence[Tensor], loss: Loss | None = None) -> Writes:
    """Run all tests.

    `inputs` are what the model is called with, for a few public records. `loss(model, *inputs)`
    has one number for each record. Pass it if the output of the model alone says too little.
    """
    inputs = tuple(inputs)
    if not inputs or any(
        not isinstance(tensor, Tensor) or tensor.dim() == 0 or len(tensor) < 3 for tensor in inputs
    ):
        raise BadParameter(
            "DP104",
            "the example must be tensors of three records or more.",
            why="the tests change one record and compare the output for another.",
            fix="check(clipper, guards.example(record))",
        )
    inputs = tuple(tensor[:3] for tensor in inputs)
    model = clipper.model
    with _without_dropout(model) as (before, draws):
        with clipper.pause():
            writes = _check_writes(model, inputs, before, draws)
            row_losses = _make_repeatable(loss or _make_row_losses(model, inputs), before, draws)
            _check_forward(model, inputs, row_losses, draws)
            _check_backward(model, inputs, row_losses)
        with clipper.learn():
            clipper.learn_shapes(lambda count: row_losses(model, *(tensor[:count] for tensor in inputs)))
            for count in (3, 2):
                _check_coverage(clipper, tuple(tensor[:count] for tensor in inputs), row_losses)
    return writes


def _make_repeatable(loss: Loss, before: Snapshot, draws: Draws) -> Loss:
    """The same loss from the same start in every call, so that chance and earlier passes do not
    look like other records.
    """

    def repeatable_loss(model: nn.Module, *inputs: Tensor) -> Tensor:
        before.undo()
        draws.repeat()
        return loss(model, *inputs)

    return repeatable_loss


def _make_row_losses(model: nn.Module, inputs: tuple[Tensor, ...]) -> Loss:
    """A loss for each record that depends on every number of the output for it."""
    with torch.no_grad():
        three, two = (_outputs(model(*(tensor[:count] for tensor in inputs))) for count in (3, 2))
    with_records = [
        index
        for index, (of_three, of_two) in enumerate(zip(three, two, strict=False))
        if of_three.is_floating_point() and of_three.dim() and (len(of_three), len(of_two)) == (3, 2)
    ]
    if not with_records:
        raise mixing_error("no axis of its output is the record")

    def row_losses(model: nn.Module, *inputs: Tensor) -> Tensor:
        outputs = _outputs(model(*inputs))
        chosen = [outputs[index] for index in with_records]
        rows = torch.cat([out.flatten(1) if out.dim() > 1 else out[:, None] for out in chosen], 1)
        ramp = torch.arange(rows.shape[1], device=rows.device).cos().to(rows.dtype)
        return (rows * ramp).sum(1) + rows.square().mean(1)

    return row_losses


def _outputs(out: Any) -> list[Tensor]:
    leaves = internals.tree_leaves(dict(out) if isinstance(out, Mapping) else out)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _check_writes(model: nn.Module, inputs: tuple[Tensor, ...], before: Snapshot, draws: Draws) -> Writes:
    """Refuse what a pass writes into the model if it depends on the records or on their number."""

    def changes_after(*passes: tuple[Tensor, ...]) -> dict[str, Any]:
        draws.repeat()
        for arguments in passes:
            model(*arguments)
        changes = before.changes()
        before.undo()
        return changes

    once_changes, twice_changes = changes_after(inputs), changes_after(inputs, inputs)
    replaced = tuple(_replace_rows(tensor, slice(None)) for tensor in inputs)
    for other_changes in (changes_after(replaced), changes_after(tuple(tensor[:2] for tensor in inputs))):
        names = once_changes.keys() | other_changes.keys()
        wrong = sorted(name for name in names if once_changes.get(name) != other_changes.get(name))
        if wrong:
            raise writing_error(f"a forward pass writes what it saw into {wrong[0]}")
    once = frozenset(once_changes)
    always = frozenset(name for name in once if once_changes[name] == twice_changes.get(name))
    return Writes(once, always)


def _check_forward(model: nn.Module, inputs: tuple[Tensor, ...], row_losses: Loss, draws: Draws) -> None:
    """Refuse a model whose loss of one record changes with the others."""
    with torch.no_grad():
        first = row_losses(model, *inputs)
        by_chance = _is_random(model, inputs, draws)
        if first.shape != (3,):
            raise RefusedTraining(
                "DP912",
                "the loss is not one number for each record.",
                why="each record is clipped by its own gradient, and a mean over the batch does not show these.",
                fix='torch.nn.functional.cross_entropy(model(x), y, reduction="none")',
            )
        if not bool(first.isfinite().all()):
            raise BadParameter(
                "DP104",
                "the output of the model for the example is not finite.",
                why="NaN differs from everything, so outputs cannot be compared.",
                fix="check(clipper, inputs)   with inputs for which the model has a finite output",
            )
        for record, others in ((0, slice(1, None)), (2, slice(0, 2))):
            changed = row_losses(model, *(_replace_rows(tensor, others) for tensor in inputs))
            _same(first[record], changed[record], _SAME, "it changes when other records change")
            with_nan = row_losses(model, *(_fill_with_nan(tensor, others) for tensor in inputs))
            _same(first[record], with_nan[record], _SAME, "it changes when other records are not numbers")
            alone = _losses_of_one(model, tuple(tensor[record : record + 1] for tensor in inputs), row_losses)
            # In a random model a record that is alone gets the draws of another row.
            if not by_chance:
                _same(first[record], alone[0], _LIKE, "it changes when other records leave")


def _is_random(model: nn.Module, inputs: tuple[Tensor, ...], draws: Draws) -> bool:
    """Whether a second pass, with other draws, has another output."""
    draws.repeat()
    first, second = _outputs(model(*inputs)), _outputs(model(*inputs))
    draws.repeat()
    return any(not torch.equal(a, b) for a, b in zip(first, second, strict=False) if a.shape == b.shape)


def _losses_of_one(model: nn.Module, inputs: tuple[Tensor, ...], row_losses: Loss) -> Tensor:
    try:
        return row_losses(model, *inputs)
    except (ValueError, RuntimeError) as failure:
        raise mixing_error("it fails for a batch of one record") from failure


def _check_backward(model: nn.Module, inputs: tuple[Tensor, ...], row_losses: Loss) -> None:
    """Refuse a model whose loss of one record has a gradient at the others."""
    arguments = tuple(
        tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs
    )
    sources = [argument for argument in arguments if argument.requires_grad]
    if not sources:
        return
    losses = row_losses(model, *arguments)
    for record, others in ((0, slice(1, None)), (2, slice(0, 2))):
        gradients = torch.autograd.grad(losses[record], sources, retain_graph=True, allow_unused=True)
        if any(gradient is not None and bool(gradient[others].any()) for gradient in gradients):
            raise mixing_error("the loss of a record has a gradient at another record")


def _check_coverage(clipper: Clipper, inputs: tuple[Tensor, ...], row_losses: Loss) -> None:
    """Refuse parameters whose gradient, record by record, is not that of autograd."""
    parameters, count = clipper.parameters, len(inputs[0])
    with clipper.pause():
        losses = row_losses(clipper.model, *inputs)
        truth = [
            torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            for loss in losses.unbind()
        ]
    norms = [
        torch.stack([gradient.double().norm() for gradient in gradients if gradient is not None]).norm()
        for gradients in truth
    ]
    largest = max(norms)
    for record in range(count):
        only = torch.zeros(count, device=inputs[0].device)
        only[record] = 1.0
        with clipper.watch():
            clipped = clipper.clipped_sum(row_losses(clipper.model, *inputs), clip=_HUGE, weights=only)
        for parameter, gradient in zip(parameters, truth[record], strict=True):
            measured = clipped.gradients[parameter]
            expected = torch.zeros_like(measured) if gradient is None else gradient
            if (measured - expected).double().norm() > _LIKE * largest:
                raise not_by_record_error(
                    clipper.name(parameter), "a part of the model uses it in a way that the run does not see"
                )
        if clipped.norms[record] < norms[record] * (1 - _LIKE):
            raise mixing_error("the norm of a record is not that of its gradient")


def _replace_rows(tensor: Tensor, rows: slice) -> Tensor:
    """Other numbers in some rows, far from those that were there; other ids, 0 for 1."""
    changed = tensor.clone()
    changed[rows] = (
        tensor[rows] * -50 + 3 if tensor.is_floating_point() else (tensor[rows] == 0).to(tensor.dtype)
    )
    return changed


def _fill_with_nan(tensor: Tensor, rows: slice) -> Tensor:
    changed = tensor.clone()
    if tensor.is_floating_point():
        changed[rows] = torch.nan
    return changed


def _same(first: Tensor, second: Tensor, tolerance: float, because: str) -> None:
    """Refuse if two numbers differ by more than rounding; NaN differs from everything."""
    if not bool((first - second).abs() <= tolerance * (1 + first.abs())):
        raise mixing_error(f"the output for a record is not its own: {because}")


def writing_error(because: str) -> RefusedTraining:
    """The refusal of what a forward pass writes into the model."""
    return RefusedTraining(
        "DP922",
        f"the model keeps what it saw: {because}.",
        why="what it keeps has no noise, is released with the parameters, and reaches later records.",
        fix="return it from forward instead; learn codebooks and centres by gradients; torch.nn.GroupNorm for BatchNorm",
        spent="what the steps before it cost",
    )


def mixing_error(because: str) -> RefusedTraining:
    """The refusal of a model that does not keep records apart."""
    return RefusedTraining(
        "DP922",
        f"the model mixes records: {because}.",
        why="one record then changes the gradients of all others, so clipping each gradient bounds nothing.",
        fix="replace batch statistics by statistics of one record, for example BatchNorm by torch.nn.GroupNorm",
    )


class _NoDropout(TorchFunctionMode):
    """Turns dropout off: chance would hide what the tests look for."""

    _names = frozenset(
        [f"dropout{kind}" for kind in ("", "1d", "2d", "3d", "_")]
        + ["alpha_dropout", "feature_alpha_dropout", "feature_dropout"]
    )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in self._names:
            return args[0] if args else kwargs["input"]
        if func is functional.scaled_dot_product_attention:
            if len(args) > 4:
                args = (*args[:4], 0.0, *args[5:])
            else:
                kwargs["dropout_p"] = 0.0
        elif func is functional.multi_head_attention_forward:
            kwargs["training"] = False
        return func(*args, **kwargs)


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[tuple[Snapshot, Draws]]:
    """No dropout for the length of a block; afterwards the model and the generators are as before."""
    recurrent = [(module, module.dropout) for module in model.modules() if isinstance(module, nn.RNNBase)]
    for module, _ in recurrent:
        module.dropout = 0.0
    draws, before = Draws(), Snapshot.copies(model)
    try:
        with _NoDropout():
            yield before, draws
    finally:
        before.undo()
        draws.repeat()
        for module, rate in recurrent:
            module.dropout = rate
