# SPDX-License-Identifier: Apache-2.0
"""Do the losses of a loop keep records apart? Its own code is run on its own batch, and at once on another that shares some records.

    mixing = Mixing()
    mixing.begin(shown, rows)                # from here on, every operation of torch is done twice
    losses = …                               # whatever the loop does
    mixing.end(losses)                       # refuses, if the loss of a record that both batches share is not the same in both

The second batch, the *shadow*, has some records of the first in their places; all others are replaced by copies of one that
stays, with floats halved. There is a third, in which it is the other way round. So values stay in their range, and class counts, means, medians and ranks change. What is cut off from
gradients (`detach`, `no_grad`, whole numbers, comparisons) is seen like everything else, in the model, in the loss and between them.

**Guarantee.** A refusal means that a loss changes with other records, or with how many there are. A loop whose losses are of one
record each is never refused, whatever its records are: the same operations are done with the same numbers, so that the result is the same.

What is not found: values that leave torch and come back (`item`, `numpy`, `tolist`; also those that decide which way a program goes),
records that are mixed before the run sees them, and mixing that shows in no loss of this batch. A factor that is the number of records
(`/ len(x)`) is found when it was the number of records in three batches of different sizes above 8.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from torch.utils.weak import WeakTensorKeyDictionary

from discreet.errors import RefusedTraining
from discreet.learn.torch.generators import Draws
from discreet.noise.source import current

__all__ = ["Mixing"]

_SELDOM = 64  # after the first batches, one in so many is tried, chosen in secret
_SIZES = 3  # different sizes in which a factor must have been the size
_SMALL = 8  # sizes up to this are numbers that a loop may multiply by for other reasons
_SAME, _LIKE = 1e-5, 2e-2  # differences that are rounding, of the same shapes and of different ones
_FACTORS = {"mul", "div", "true_divide", "mul_", "div_", "_foreach_mul", "_foreach_div"}


class Mixing:
    """When batches are tried, and what was found; `tested` is None before the first, and True if one could be judged.

    Where sizes of batches are secret they are remembered until there were three of them, and then no longer.
    """

    def __init__(self, *, secret_sizes: bool) -> None:
        self.tested: bool | None = None
        self._shadows: list[_Shadow] = []
        self._by_size: dict[int, set[str]] | None = {} if secret_sizes else None

    def begin(self, shown: Any, rows: int) -> None:
        """Try this batch, if it is due: with some records replaced, and with all others."""
        new = self._by_size is not None and rows > _SMALL and rows not in self._by_size
        if rows > 1 and (new or not self.tested or int(current().words(1)[0]) % _SELDOM == 0):
            choice = torch.Generator().manual_seed(int(current().words(1)[0]) >> 1)
            order = torch.randperm(rows, generator=choice)
            kept = torch.zeros(rows, dtype=torch.bool).index_fill_(0, order[: rows // 2], value=True)
            self._shadows = [_Shadow(shown, rows, each) for each in (kept, ~kept)]
            for shadow in self._shadows:
                shadow.__enter__()  # type: ignore[no-untyped-call]

    def end(self, losses: Any) -> None:
        """Judge the losses, if their batch was tried."""
        shadows = self._shadows
        if not shadows:
            return
        self.cancel()
        judged = [shadow.judge(losses) for shadow in shadows]
        self.tested = all(judged) or bool(self.tested)
        rows, factors = shadows[0].rows, shadows[0].factors
        if self._by_size is None or rows <= _SMALL:
            return
        self._by_size[rows] = factors
        if len(self._by_size) == _SIZES:
            always = set.intersection(*self._by_size.values())
            self._by_size = None
            if always:
                raise _mixed("they are multiplied or divided by the number of records in a batch")

    def cancel(self) -> None:
        """End a trial without a verdict."""
        shadows, self._shadows = self._shadows, []
        for shadow in reversed(shadows):
            shadow.leave()


class _Shadow(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Does every operation on tensors of a batch a second time, on their shadows."""

    def __init__(self, shown: Any, rows: int, kept: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rows, self.factors = rows, set[str]()
        self._lost = self._reshaped = False
        self._shadows: Any = WeakTensorKeyDictionary()
        self._by_memory: dict[int, Any] = {}
        self._kept = kept
        stays = int(kept.nonzero()[0])
        for leaf in tree_leaves(shown):
            if isinstance(leaf, Tensor) and leaf.dim() and leaf.shape[0] == rows:
                self._put(leaf, _changed(leaf, kept, stays))

    def leave(self) -> None:
        """Off the stack of modes, whatever was put on top of it."""
        stack = _get_current_dispatch_mode_stack()
        if self not in stack:
            return
        above = [_pop_mode() for _ in stack[stack.index(self) + 1 :]]
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        for mode in reversed(above):
            _push_mode(mode)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001
            leaves, shape = tree_flatten((args, kwargs))
            if not any(isinstance(leaf, Tensor) and self._of(leaf) is not None for leaf in leaves):
                return func(*args, **kwargs)
            self._note_factor(func, leaves)
            # Before the operation, which may write into what it is given.
            others = self._twins(func, leaves, shape)
            by_chance = torch.Tag.nondeterministic_seeded in func.tags
            before = Draws() if by_chance else None
            out = func(*args, **kwargs)
            if before is None:
                self._pair(out, func, others)
            else:
                after = Draws()
                before.again()
                self._pair(out, func, others)
                after.again()
            return out

    def _note_factor(self, func: Any, leaves: list[Any]) -> None:
        name = func._schema.name.split("::")[-1]  # noqa: SLF001
        numbers = [leaf for leaf in leaves if type(leaf) in {int, float}]
        numbers += [leaf.item() for leaf in leaves if _is_number(leaf)]
        if name in _FACTORS and any(number in {self.rows, 1 / self.rows} for number in numbers):
            self.factors.add(name.strip("_"))

    def _of(self, tensor: Tensor) -> Tensor | None:
        """The shadow of a tensor, or of that which it is a view of."""
        direct: Tensor | None = self._shadows.get(tensor)
        if direct is not None:
            return direct
        if not tensor._is_view():  # noqa: SLF001
            return self._of_same_memory(tensor)
        base: Any = tensor._base  # noqa: SLF001
        whole = self._shadows.get(base)
        if whole is None or whole.shape != base.shape or whole.stride() != base.stride():
            return None
        return torch.as_strided(whole, tensor.shape, tensor.stride(), tensor.storage_offset())

    def _of_same_memory(self, tensor: Tensor) -> Tensor | None:
        """The shadow of a tensor that is another name for one that has some, as `.data` makes it."""
        one = self._by_memory.get(_memory(tensor), _nothing)()
        same = one is not None and (one.shape, one.stride()) == (tensor.shape, tensor.stride())
        return self._shadows.get(one) if same and one.data_ptr() == tensor.data_ptr() else None

    def _put(self, tensor: Tensor, shadow: Tensor) -> None:
        self._shadows[tensor] = shadow
        self._by_memory[_memory(tensor)] = ref(tensor)

    def _twins(self, func: Any, leaves: list[Any], shape: Any) -> tuple[Any, Any]:
        """The same arguments, with shadows for what has some, and for what is about to be written."""
        names = [each.name for each in func._schema.arguments if each.alias_info and each.alias_info.is_write]  # noqa: SLF001
        given, named = tree_unflatten(leaves, shape)
        places = {each.name: place for place, each in enumerate(func._schema.arguments)}  # noqa: SLF001
        for name in names:
            written = given[places[name]] if places[name] < len(given) else named.get(name)
            for tensor in tree_leaves(written):
                if isinstance(tensor, Tensor) and self._of(tensor) is None:
                    whole: Any = tensor._base if tensor._is_view() else tensor  # noqa: SLF001
                    self._put(whole, whole.detach().clone())
        twins = [self._twin(leaf) for leaf in leaves]
        found: tuple[Any, Any] = tree_unflatten(twins, shape)
        return found

    def _twin(self, leaf: Any) -> Any:
        shadow = self._of(leaf) if isinstance(leaf, Tensor) else None
        return leaf if shadow is None else shadow

    def _pair(self, out: Any, func: Any, others: tuple[Any, Any]) -> None:
        """Do it again on shadows, and remember which result is the shadow of which."""
        try:
            again = func(*others[0], **others[1])
        except Exception:  # noqa: BLE001 - other values may have no answer where these have one
            self._lost = True
            return
        for one, other in zip(tree_leaves(out), tree_leaves(again), strict=False):
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                self._reshaped |= one.shape != other.shape
                self._put(one, other)

    def judge(self, losses: Any) -> bool:
        """Whether the losses could be compared; if those of a record that stayed differ, they are refused."""
        shadow = self._of(losses) if isinstance(losses, Tensor) else None
        if shadow is None or shadow.shape != losses.shape or losses.shape != (self.rows,) or self._lost:
            return False
        kept = self._kept.to(losses.device)
        one, other = losses.detach()[kept].double(), shadow.detach()[kept].double()
        near = (one - other).abs() <= (_LIKE if self._reshaped else _SAME) * (1 + one.abs())
        if not bool((near | (one == other) | (one.isnan() & other.isnan())).all()):
            raise _mixed("that of one changes when others are replaced")
        return True


def _changed(leaf: Tensor, kept: Tensor, stays: int) -> Tensor:
    """Rows that are not kept become one that stays, at half its size."""
    changed = leaf.detach().clone()
    changed[~kept.to(leaf.device)] = (
        changed[stays] / 2 if leaf.is_floating_point() else changed[stays].clone()
    )
    return changed


def _memory(tensor: Tensor) -> int:
    """Where a tensor lies; a number that only counts while it is alive."""
    return int(tensor.untyped_storage()._cdata) if tensor.layout is torch.strided else 0  # noqa: SLF001


def _nothing() -> None:
    """What a reference to nothing gives."""


def _is_number(leaf: Any) -> bool:
    return (
        isinstance(leaf, Tensor) and leaf.dim() == 0 and leaf.device.type == "cpu" and not leaf.is_complex()
    )


def _mixed(because: str) -> RefusedTraining:
    return RefusedTraining(
        "DP922",
        f"the losses mix records: {because}.",
        why="one record then changes the gradients of all others, so clipping each of them bounds nothing.",
        fix="compute the loss of each record from its own row; weights, means and negatives from public records",
        spent="what the steps before it cost",
    )
