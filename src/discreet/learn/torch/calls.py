# SPDX-License-Identifier: Apache-2.0
"""How many rows the model is called with, while it runs.

Inside one call of a tested model an axis may have several positions for each record, as the test
has seen. Then its length is a multiple of the number of rows. Outside of a call such an axis may
mean anything: for example several views of every record, one after the other, which is another
order of the same length. So the tape notes the rows of the call for every use of a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.nn import Module, ModuleDict

from discreet.learn.torch import internals

__all__ = ["Calls", "Hook", "rows_of"]


class Hook:
    """A hook of a model. In a copy of the model, also a stored one, it does nothing, and holds
    nothing.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> None:
        self._function(*arguments)

    def __reduce_ex__(self, protocol: object) -> tuple[type[Hook], tuple[Callable[..., None]]]:
        return Hook, (_nothing,)


def _nothing(*arguments: Any) -> None:
    """What a hook does in a copy of the model."""


class Calls:
    """Notes the rows of the calls under way; 0 outside of a call, or if its tensors have not all
    the same rows.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._outer: list[int] = []
        self._handles: list[Any] = []

    def open(self, model: Module) -> None:
        """Listen at the model, or at those that a dictionary of them holds."""
        if self._handles:
            return
        for part in model.values() if type(model) is ModuleDict else (model,):
            self._handles += [
                part.register_forward_pre_hook(Hook(self._enter), with_kwargs=True),
                part.register_forward_hook(Hook(self._leave), always_call=True),
            ]

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles, self._outer, self.rows = [], [], 0

    def _enter(self, model: Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._outer.append(self.rows)
        self.rows = rows_of((*positional, *named.values()))

    def _leave(self, *_: Any) -> None:
        self.rows = self._outer.pop() if self._outer else 0


def rows_of(arguments: Iterable[Any]) -> int:
    """The length of the first axis of all tensors in what a model is called with, if it is the
    same.
    """
    leaves = list(arguments)
    if not all(type(leaf) is Tensor for leaf in leaves):
        leaves = [leaf for leaf in internals.tree_leaves(leaves) if isinstance(leaf, Tensor)]
    lengths = {int(tensor.shape[0]) if tensor.dim() else 0 for tensor in leaves}
    return lengths.pop() if len(lengths) == 1 else 0
