# SPDX-License-Identifier: Apache-2.0
"""A look at the model before it sees its first batch: `guards.check`, on made-up records of the shape that the loop uses.

What the loop calls the model with is known only when it does so. Its first call is held back while the model is tested on
made-up records of that shape, of which nothing but the shape is taken; a model that fails is refused, then and whenever it is
called again. It is tested anew when layers or hooks come or go, or begin or end to train. A model that cannot be run
on made-up records, or that is never called as a whole, is not tested, and `explain` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.utils._pytree import tree_flatten, tree_unflatten

from discreet.errors import RefusedTraining
from discreet.learn.torch import guards
from discreet.learn.torch.calls import Hook, rows_of
from discreet.learn.torch.watched import compiled

__all__ = ["FirstLook", "refuse_statistics"]


class FirstLook:
    """Waits for calls of the model; `tested` is None until the first, and True if all that was called could be tested."""

    def __init__(self, model: Module, test: Callable[[Module, tuple[Tensor, ...]], None]) -> None:
        self._test = test
        self.tested: bool | None = None
        self._passed: set[tuple[Any, ...]] = set()
        self._busy = False
        self._handle: Any = model.register_forward_pre_hook(Hook(self._called), with_kwargs=True)

    def close(self) -> None:
        self._handle.remove()

    def _called(self, model: Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if self._busy or not torch.is_grad_enabled():
            return
        if (
            torch.compiler.is_compiling() or get_eval_frame_callback() is not None
        ):  # or what could not be compiled runs
            raise compiled()
        state = tuple(_state(model))
        if state in self._passed:
            return
        self._busy = True
        try:
            could = self._passes(model, given, named)
        finally:
            self._busy = False
        self._passed.add(state)
        self.tested = could and self.tested is not False

    def _passes(self, model: Module, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether the model could be tested; one that fails is refused."""
        if named or not all(isinstance(each, Tensor) and each.dim() for each in given):
            if not rows_of((*given, *named.values())):
                return False
            leaves, shape = tree_flatten((given, named))
            given = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))
            model = _Packed(model, [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves], shape)
        records = [torch.empty(one.shape[1:], dtype=one.dtype, device=one.device) for one in given]
        try:
            self._test(model, guards.example(*records))
        except RefusedTraining:
            raise
        except Exception:  # noqa: BLE001 - what a model says to records that make no sense to it is no verdict
            return False
        return True


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
