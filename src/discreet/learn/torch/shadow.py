# SPDX-License-Identifier: Apache-2.0
"""Checks that the losses of a loop keep records apart: its code runs on its batch, and on another
that shares some records.

    mixing = Mixing()
    mixing.begin(batch, rows)                # from here on, every operation of torch is done twice
    losses = …                               # whatever the loop does
    mixing.end(losses)                       # refuses if the loss of a record that both batches share differs

The second batch, the *shadow*, has some records of the first in their places. All others are
replaced by copies of one that stays, with floats halved. A third batch keeps the records that the
second replaces. So values stay in their range, and class counts, means, medians and ranks change.
Values without gradients (`detach`, `no_grad`, whole numbers, comparisons) are seen like all others,
in the model, in the loss and between them.

**Guarantee.** A refusal means that a loss changes with other records, or with their number. A loop
whose losses depend on one record each is never refused, whatever its records are: the same
operations on the same numbers have the same result.

What is not found: values that leave torch and come back (`item`, `numpy`, `tolist`; also those that
decide a branch), records that are mixed before the run sees them, and mixing that shows in no loss
of this batch. A factor that is the number of records (`/ len(x)`) is found when it was the number
of records in three batches of different sizes above 8.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from discreet.errors import RefusedTraining
from discreet.learn.torch import internals
from discreet.learn.torch.generators import Draws
from discreet.noise.source import current

__all__ = ["Mixing"]

#: After the first batches, one in 64 is tried, chosen in secret.
_SELDOM = 64
#: A factor is refused if it was the size of the batch for this many different sizes.
_SIZES = 3
#: A loop may multiply by sizes up to this for other reasons.
_SMALL = 8
#: Differences that are rounding, of the same shapes and of different ones.
_SAME, _LIKE = 1e-5, 2e-2
_FACTORS = {"mul", "div", "true_divide", "mul_", "div_", "_foreach_mul", "_foreach_div"}


class Mixing:
    """Decides which batches are tried. `tested` is None before the first, and True if the losses of
    one could be compared.

    Secret batch sizes are remembered until there were three of them, and then no longer.
    """

    def __init__(self, *, secret_sizes: bool) -> None:
        self.tested: bool | None = None
        self._shadows: list[_Shadow] = []
        self._by_size: dict[int, set[str]] | None = {} if secret_sizes else None

    def begin(self, batch: Any, rows: int) -> None:
        """Try this batch if it is due: once with some records replaced, and once with all others
        replaced.
        """
        new = self._by_size is not None and rows > _SMALL and rows not in self._by_size
        if rows > 1 and (new or not self.tested or int(current().words(1)[0]) % _SELDOM == 0):
            choice = torch.Generator().manual_seed(int(current().words(1)[0]) >> 1)
            order = torch.randperm(rows, generator=choice)
            is_kept = torch.zeros(rows, dtype=torch.bool).index_fill_(0, order[: rows // 2], value=True)
            self._shadows = [_Shadow(batch, rows, mask) for mask in (is_kept, ~is_kept)]
            for shadow in self._shadows:
                shadow.enter()

    def end(self, losses: Any) -> None:
        """Compare the losses if their batch was tried."""
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
            common_factors = set.intersection(*self._by_size.values())
            self._by_size = None
            if common_factors:
                raise _mixing_error("they are multiplied or divided by the number of records in a batch")

    def cancel(self) -> None:
        """End a trial without comparing."""
        shadows, self._shadows = self._shadows, []
        for shadow in reversed(shadows):
            shadow.leave()


class _Shadow:
    """Repeats every operation on tensors of a batch on their shadows."""

    def __init__(self, batch: Any, rows: int, is_kept: Tensor) -> None:
        self.rows, self.factors = rows, set[str]()
        self._lost = self._reshaped = False
        self._shadows: Any = WeakTensorKeyDictionary()
        self._by_memory: dict[int, Any] = {}
        self._is_kept = is_kept
        self._mode: Any = internals.dispatch_mode(self._answer)
        source = int(is_kept.nonzero()[0])
        for leaf in internals.tree_leaves(batch):
            if isinstance(leaf, Tensor) and leaf.dim() and leaf.shape[0] == rows:
                self._set_shadow(leaf, _change_rows(leaf, is_kept, source))

    def enter(self) -> None:
        """From here on every operation is done twice."""
        self._mode.__enter__()

    def leave(self) -> None:
        """Off the stack of modes, whatever was put on top of it."""
        # The mode refers to this object. Dropped here, both are freed at once, with the records that they hold.
        mode, self._mode = self._mode, None
        stack = internals.mode_stack()
        if mode is None or mode not in stack:
            return
        above = [internals.pop_mode() for _ in stack[stack.index(mode) + 1 :]]
        mode.__exit__(None, None, None)
        for mode in reversed(above):
            internals.push_mode(mode)

    def _answer(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with internals.DisableTorchFunctionSubclass():
            leaves, shape = internals.tree_flatten((args, kwargs))
            if not any(isinstance(leaf, Tensor) and self._shadow_of(leaf) is not None for leaf in leaves):
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
                before.repeat()
                self._pair(out, func, others)
                after.repeat()
            return out

    def _note_factor(self, func: Any, leaves: list[Any]) -> None:
        name = internals.operator_name(func)
        numbers = [leaf for leaf in leaves if type(leaf) in {int, float}]
        numbers += [leaf.item() for leaf in leaves if _is_number(leaf)]
        if name in _FACTORS and any(number in {self.rows, 1 / self.rows} for number in numbers):
            self.factors.add(name.strip("_"))

    def _shadow_of(self, tensor: Tensor) -> Tensor | None:
        """The shadow of a tensor, or of the tensor that it is a view of."""
        direct: Tensor | None = self._shadows.get(tensor)
        if direct is not None:
            return direct
        if not internals.is_view(tensor):
            return self._shadow_of_memory(tensor)
        base = internals.base_of(tensor)
        whole = self._shadows.get(base)
        if whole is None or whole.shape != base.shape or whole.stride() != base.stride():
            return None
        return torch.as_strided(whole, tensor.shape, tensor.stride(), tensor.storage_offset())

    def _shadow_of_memory(self, tensor: Tensor) -> Tensor | None:
        """The shadow of a tensor in the same memory, as `.data` makes it."""
        owner = self._by_memory.get(internals.memory_of(tensor), _nothing)()
        is_alike = owner is not None and (owner.shape, owner.stride()) == (tensor.shape, tensor.stride())
        return self._shadows.get(owner) if is_alike and owner.data_ptr() == tensor.data_ptr() else None

    def _set_shadow(self, tensor: Tensor, shadow: Tensor) -> None:
        self._shadows[tensor] = shadow
        self._by_memory[internals.memory_of(tensor)] = ref(tensor)

    def _twins(self, func: Any, leaves: list[Any], shape: Any) -> tuple[Any, Any]:
        """The same arguments, with shadows for tensors that have one or are about to be written."""
        parameters = internals.operator_parameters(func)
        positional, named = internals.tree_unflatten(leaves, shape)
        for index, (name, is_written) in enumerate(parameters):
            if not is_written:
                continue
            written = positional[index] if index < len(positional) else named.get(name)
            for tensor in internals.tree_leaves(written):
                if isinstance(tensor, Tensor) and self._shadow_of(tensor) is None:
                    whole = internals.base_of(tensor) if internals.is_view(tensor) else tensor
                    self._set_shadow(whole, whole.detach().clone())
        twins = [self._twin(leaf) for leaf in leaves]
        arguments: tuple[Any, Any] = internals.tree_unflatten(twins, shape)
        return arguments

    def _twin(self, leaf: Any) -> Any:
        shadow = self._shadow_of(leaf) if isinstance(leaf, Tensor) else None
        return leaf if shadow is None else shadow

    def _pair(self, out: Any, func: Any, others: tuple[Any, Any]) -> None:
        """Repeat the operation on shadows, and remember which result is the shadow of which."""
        try:
            shadow_out = func(*others[0], **others[1])
        # An operation may fail for other values.
        except Exception:  # noqa: BLE001
            self._lost = True
            return
        pairs = zip(internals.tree_leaves(out), internals.tree_leaves(shadow_out), strict=False)
        for tensor, shadow in pairs:
            if isinstance(tensor, Tensor) and isinstance(shadow, Tensor):
                self._reshaped |= tensor.shape != shadow.shape
                self._set_shadow(tensor, shadow)

    def judge(self, losses: Any) -> bool:
        """Whether the losses could be compared. If those of a record that stayed differ, they are
        refused.
        """
        shadow = self._shadow_of(losses) if isinstance(losses, Tensor) else None
        if shadow is None or shadow.shape != losses.shape or losses.shape != (self.rows,) or self._lost:
            return False
        is_kept = self._is_kept.to(losses.device)
        ours, theirs = losses.detach()[is_kept].double(), shadow.detach()[is_kept].double()
        is_near = (ours - theirs).abs() <= (_LIKE if self._reshaped else _SAME) * (1 + ours.abs())
        if not bool((is_near | (ours == theirs) | (ours.isnan() & theirs.isnan())).all()):
            raise _mixing_error("the loss of one record changes when others are replaced")
        return True


def _change_rows(leaf: Tensor, is_kept: Tensor, source: int) -> Tensor:
    """The rows that are not kept become copies of the row `source`, with floats halved."""
    changed = leaf.detach().clone()
    changed[~is_kept.to(leaf.device)] = (
        changed[source] / 2 if leaf.is_floating_point() else changed[source].clone()
    )
    return changed


def _nothing() -> None:
    """Stands for a weak reference that is missing."""


def _is_number(leaf: Any) -> bool:
    return (
        isinstance(leaf, Tensor) and leaf.dim() == 0 and leaf.device.type == "cpu" and not leaf.is_complex()
    )


def _mixing_error(because: str) -> RefusedTraining:
    return RefusedTraining(
        "DP922",
        f"the losses mix records: {because}.",
        why="one record then changes the gradients of all others, so clipping each gradient bounds nothing.",
        fix="compute the loss of each record from its own row, and weights, means and negatives from public records",
        spent="what the steps before it cost",
    )
