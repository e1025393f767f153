# SPDX-License-Identifier: Apache-2.0
"""A look at the model before it sees its first batch, and at what each pass writes into it.

What the loop calls the model with is known only when it does so. Its first call is held back while the model is tested on
made-up records of that shape, of which nothing but the shape is taken (`guards.check`); a model that fails is refused, then and
whenever it is called again. It is tested anew when layers or hooks come or go, or begin or end to train. A model that cannot be
run on made-up records, or that is never called as a whole, is not tested, and `explain` says so.

Around every call, and from each batch to its backward pass, what the model holds is compared (`snapshot`). Only what the test has seen
written, the same for all records, may be written; of a model that was not tested, nothing. Anything else is taken out, and the
loop is refused. Contents of tensors are compared on a CPU for every batch, on other devices, which would have to wait, for the
first and for one in sixteen of the others, chosen in secret: what they find beyond versions and addresses is a write through `.data`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from discreet.errors import RefusedTraining
from discreet.learn.torch import guards
from discreet.learn.torch.calls import Hook, rows_of
from discreet.learn.torch.snapshot import Snapshot
from discreet.learn.torch.watched import compiled
from discreet.noise.source import current

__all__ = ["FirstLook", "refuse_statistics"]

Test = Callable[[Module, tuple[Tensor, ...]], guards.Writes]
_SELDOM = 16


class FirstLook:
    """Waits for calls of the model; `tested` is None until the first, and True if all that was called could be tested."""

    def __init__(self, model: Module, test: Test, *, parted: bool) -> None:
        self._model, self._test, self._parted = model, test, parted
        self.tested: bool | None = None
        self._passed: dict[tuple[Any, ...], guards.Writes] = {}
        self._allowed: frozenset[str] = frozenset()
        self._busy = self._begun = False
        self._call: Snapshot | None = None
        self._batch: Snapshot | None = None
        self._handles: list[Any] = [
            model.register_forward_pre_hook(Hook(self._called), with_kwargs=True),
            model.register_forward_hook(Hook(self._returned)),
        ]

    def close(self) -> None:
        self._call = self._batch = None
        for handle in self._handles:
            handle.remove()

    def begin(self) -> None:
        """A batch is about to be shown."""
        make, self._begun = Snapshot.prints if self._is_due() else Snapshot.marks, True
        self._batch = make(self._model)

    def _is_due(self) -> bool:
        """Whether contents are compared for this batch."""
        here = next(self._model.parameters()).device.type == "cpu"
        return here or not self._begun or int(current().words(1)[0]) % _SELDOM == 0

    def end(self) -> None:
        """Its losses are made: refuse if a tensor was written meanwhile."""
        before, self._batch = self._batch, None
        if before is not None:
            self._compare(before, before.changed_tensors(), "between a batch and its backward pass")

    def _called(self, model: Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self._busy or not torch.is_grad_enabled():
            return
        # Where a part could not be compiled, the rest runs as usual, under a callback.
        if torch.compiler.is_compiling() or get_eval_frame_callback() is not None:
            raise compiled()
        state = tuple(_state(model))
        if state not in self._passed:
            self._busy = True
            try:
                with _disable_current_modes():
                    writes = self._passes(model, given, named)
            finally:
                self._busy = False
            self._passed[state] = writes or guards.Writes()
            self.tested = writes is not None and self.tested is not False
        writes = self._passed[state]
        self._allowed = writes.always if self._parted else writes.once
        self._call = Snapshot.marks(model)

    def _returned(self, *_: Any) -> None:
        before, self._call = self._call, None
        if before is not None and not self._busy:
            self._compare(before, before.changed(), "in a forward pass")

    def _compare(self, before: Snapshot, changed: set[str], when: str) -> None:
        wrong = sorted(changed - self._allowed)
        if not wrong:
            return
        before.undo()
        counted = self._parted and any(wrong[0] in writes.once for writes in self._passed.values())
        raise guards.writing(
            f"{wrong[0]} is written in every micro-batch, and how many there are depends on the records"
            if counted
            else f"{wrong[0]} is written {when}"
        )

    def _passes(self, model: Module, given: tuple[Any, ...], named: dict[str, Any]) -> guards.Writes | None:
        """What the model may write, if it could be tested; one that fails is refused."""
        packed = named or not all(isinstance(each, Tensor) and each.dim() for each in given)
        if packed:
            if not rows_of((*given, *named.values())):
                return None
            leaves, shape = tree_flatten((given, named))
            given = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))
            model = _Packed(model, [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves], shape)
        records = [torch.empty(one.shape[1:], dtype=one.dtype, device=one.device) for one in given]
        try:
            writes = self._test(model, guards.example(*records))
        except RefusedTraining:
            raise
        except Exception:  # noqa: BLE001 - what a model says to records that make no sense to it is no verdict
            return None
        return _unpacked(writes) if packed else writes


def _unpacked(writes: guards.Writes) -> guards.Writes:
    once, always = (
        frozenset(name.removeprefix("model.") for name in names) for names in (writes.once, writes.always)
    )
    return guards.Writes(once, always)


def _state(model: Module) -> Iterator[Hashable]:
    """What changes when layers or hooks come or go, or begin or end to train."""
    yield from (id(model), model.training, *model._forward_hooks, -1, *model._forward_pre_hooks, -1)  # noqa: SLF001
    for part in model._modules.values():  # noqa: SLF001
        if part is not None:
            yield from _state(part)


class _Packed(Module):
    """A model whose tensors are handed over in names, lists and dictionaries, called with the tensors alone."""

    def __init__(self, model: Module, others: list[tuple[Any] | None], shape: Any) -> None:
        super().__init__()
        self.model, self._others, self._shape = model, others, shape

    def forward(self, *tensors: Tensor) -> Any:
        rest = iter(tensors)
        leaves = [next(rest) if other is None else other[0] for other in self._others]
        given, named = tree_unflatten(leaves, self._shape)
        return self.model(*given, **named)


def refuse_statistics(model: Module) -> None:
    """Refuse layers that are known to take statistics of a batch, whether the model could be tested or not."""
    for name, module in model.named_modules():
        if not isinstance(module, _NormBase):
            continue
        batch = isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)
        if batch or (module.training and module.running_mean is not None):
            raise guards.mixed(f"{name or 'the model'} takes statistics of the batch")
