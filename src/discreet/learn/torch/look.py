# SPDX-License-Identifier: Apache-2.0
"""Tests the model before it sees its first batch, and compares what each pass writes into it.

The arguments of the model are known only when the loop calls it. So the first call waits while the
model is tested on made-up records of that shape, of which only the shape is used (`guards.check`).
A model that fails is refused, then and whenever it is called again. It is tested anew when layers
or hooks come or go, or begin or end to train. A model that cannot be run on made-up records, or
that is never called as a whole, is not tested, and `explain` says so.

Around every call, and from each batch to its backward pass, the state of the model is compared
(`snapshot`). A tested model may write only what the test has seen written, the same for all
records. A model that was not tested may write nothing. Anything else is undone, and the loop is
refused. On a CPU the contents of tensors are compared for every batch. On other devices this would
wait for the device, so they are compared for the first batch, and for one in sixteen of the others,
chosen in secret. Contents also show a write through `.data`, which changes neither the version nor
the address of a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from discreet.errors import RefusedTraining
from discreet.learn.torch import guards, internals
from discreet.learn.torch.calls import Hook, rows_of
from discreet.learn.torch.snapshot import Snapshot
from discreet.learn.torch.watched import compiled_model_error
from discreet.noise.source import current

__all__ = ["FirstLook", "refuse_statistics"]

Test = Callable[[Module, tuple[Tensor, ...]], guards.Writes]
#: On a GPU the contents are compared for the first batch, and for one of so many others.
_SELDOM = 16


class FirstLook:
    """Waits for calls of the model. `tested` is None before the first, and True if every call could
    be tested.
    """

    def __init__(self, model: Module, test: Test, *, parted: bool) -> None:
        self._model, self._test, self._parted = model, test, parted
        self.tested: bool | None = None
        self._writes_by_state: dict[tuple[Any, ...], guards.Writes] = {}
        self._allowed: frozenset[str] = frozenset()
        self._busy = self._begun = False
        self._call: Snapshot | None = None
        self._batch: Snapshot | None = None
        self._handles: list[Any] = [
            model.register_forward_pre_hook(Hook(self._before_call), with_kwargs=True),
            model.register_forward_hook(Hook(self._after_call)),
        ]

    def close(self) -> None:
        self._call = self._batch = None
        for handle in self._handles:
            handle.remove()

    def begin(self) -> None:
        """Note the state of the model before a batch is shown."""
        make, self._begun = Snapshot.prints if self._is_due() else Snapshot.marks, True
        self._batch = make(self._model)

    def _is_due(self) -> bool:
        """Whether contents are compared for this batch."""
        on_cpu = next(self._model.parameters()).device.type == "cpu"
        return on_cpu or not self._begun or int(current().words(1)[0]) % _SELDOM == 0

    def end(self) -> None:
        """Refuse if a tensor was written since the batch was shown."""
        before, self._batch = self._batch, None
        if before is not None:
            self._compare(before, before.changed_tensors(), "between a batch and its backward pass")

    def _before_call(self, model: Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self._busy or not torch.is_grad_enabled():
            return
        # Where a part could not be compiled, the rest runs as usual, under a callback.
        if torch.compiler.is_compiling() or internals.frame_callback() is not None:
            raise compiled_model_error()
        state = tuple(internals.layers_and_hooks(model))
        if state not in self._writes_by_state:
            self._busy = True
            try:
                with internals.disable_modes():
                    writes = self._test_model(model, positional, named)
            finally:
                self._busy = False
            self._writes_by_state[state] = writes or guards.Writes()
            self.tested = writes is not None and self.tested is not False
        writes = self._writes_by_state[state]
        self._allowed = writes.always if self._parted else writes.once
        self._call = Snapshot.marks(model)

    def _after_call(self, *_: Any) -> None:
        before, self._call = self._call, None
        if before is not None and not self._busy:
            self._compare(before, before.changed_names(), "in a forward pass")

    def _compare(self, before: Snapshot, changed: set[str], when: str) -> None:
        forbidden = sorted(changed - self._allowed)
        if not forbidden:
            return
        before.undo()
        name = forbidden[0]
        counts_micro_batches = self._parted and any(
            name in writes.once for writes in self._writes_by_state.values()
        )
        raise guards.writing_error(
            f"{name} is written in every micro-batch, and the number of micro-batches depends on the records"
            if counts_micro_batches
            else f"{name} is written {when}"
        )

    def _test_model(
        self, model: Module, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> guards.Writes | None:
        """What the model may write, or None if it could not be tested. A model that fails is
        refused.
        """
        tensors: tuple[Any, ...] = positional
        is_packed = named or not all(isinstance(tensor, Tensor) and tensor.dim() for tensor in tensors)
        if is_packed:
            if not rows_of((*positional, *named.values())):
                return None
            leaves, shape = internals.tree_flatten((positional, named))
            tensors = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))
            model = _Packed(model, [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves], shape)
        records = [
            torch.empty(tensor.shape[1:], dtype=tensor.dtype, device=tensor.device) for tensor in tensors
        ]
        try:
            writes = self._test(model, guards.example(*records))
        except RefusedTraining as refused:
            if "experts" in refused.what and hasattr(self._model, "set_experts_implementation"):
                raise _experts_error() from None
            raise
        except Exception:  # noqa: BLE001 - an error on made-up records that make no sense to a model is no verdict
            return None
        return _unpack_writes(writes) if is_packed else writes


def _experts_error() -> RefusedTraining:
    """The refusal of experts whose rows are sorted by expert, so that those of a record are not
    together.
    """
    return RefusedTraining(
        "DP921",
        "the model sorts the positions of all records by expert.",
        why="the rows of a record are then not next to each other, and its gradient cannot be separated.",
        fix='model.set_experts_implementation("batched_mm")',
    )


def _unpack_writes(writes: guards.Writes) -> guards.Writes:
    once, always = (
        frozenset(name.removeprefix("model.") for name in names) for names in (writes.once, writes.always)
    )
    return guards.Writes(once, always)


class _Packed(Module):
    """A model that takes tensors in keywords, lists and dictionaries, called with the tensors
    alone.
    """

    def __init__(self, model: Module, others: list[tuple[Any] | None], shape: Any) -> None:
        super().__init__()
        self.model, self._others, self._shape = model, others, shape

    def forward(self, *tensors: Tensor) -> Any:
        remaining = iter(tensors)
        leaves = [next(remaining) if leaf is None else leaf[0] for leaf in self._others]
        positional, named = internals.tree_unflatten(leaves, self._shape)
        return self.model(*positional, **named)


def refuse_statistics(model: Module) -> None:
    """Refuse layers that are known to use statistics of the batch, whether the model could be
    tested or not.
    """
    for name, module in model.named_modules():
        if not isinstance(module, internals.norm_class):
            continue
        uses_batch = isinstance(module, internals.batch_norm_class) and (
            module.training or module.running_mean is None
        )
        if uses_batch or (module.training and module.running_mean is not None):
            raise guards.mixing_error(f"{name or 'the model'} uses statistics of the batch")
