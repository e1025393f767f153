# SPDX-License-Identifier: Apache-2.0
"""The state of a model at one moment, to see later what was written into it, and to undo that.

    before = Snapshot.copies(model)          # or marks(model): cheap, but contents cannot be restored
    model(x)
    before.changed_names()                   # {"codebook.weight"}
    before.undo()

**Guarantee.** All parameters and buffers, tensors and numpy arrays in attributes, numbers, lists,
dictionaries, sets and objects that the modules of a model lead to, generators, and
`get_extra_state`, are compared: objects by identity, tensors by version, address and contents (a
write through `.data` changes no version). After `undo` nothing of what was written remains: copies
are restored, and what only has marks is overwritten with NaN, or 0.

What it cannot see: module-level variables, closures, class attributes, files, and what lies deeper
than a few objects.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from operator import is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from discreet.learn.torch import internals
from discreet.learn.torch.watched import without_watching

__all__ = ["Snapshot"]

_PLAIN = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, type, slice)
_QUICK = frozenset([*_PLAIN, bool])
_CLOSED = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, partial, type)
_GENERATORS = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
_LEAVES = (Tensor, np.ndarray, *_GENERATORS)
#: Hooks and modes, which are not state.
_BARE = frozenset(vars(Module())) - set(internals.MODULE_TABLES)
#: How deep objects within objects are followed, below a module.
_DEPTH = 4
#: How many things are compared at most.
_MAX_THINGS = 20_000


class Snapshot:
    """Every mutable thing that a model leads to, with its contents at that moment."""

    def __init__(self, model: Module, mark: Callable[[Tensor], tuple[Any, Any]]) -> None:
        self._mark = mark
        with without_watching():
            self._things: list[tuple[str, Any, Any]] = [
                (name, thing, self._state(thing) if isinstance(thing, _LEAVES) else contents)
                for name, thing, contents in _things(model)
            ]

    @classmethod
    def copies(cls, model: Module) -> Self:
        """With copies of all tensors, in the memory of the CPU."""
        return cls(model, _copy)

    @classmethod
    def marks(cls, model: Module) -> Self:
        """Without their contents."""
        return cls(model, _mark)

    @classmethod
    def prints(cls, model: Module) -> Self:
        """With a sum over the bits of each tensor, which costs one reading."""
        return cls(model, _print)

    def _state(self, thing: Any) -> Any:
        if isinstance(thing, Tensor):
            return self._mark(thing)
        return thing.copy() if isinstance(thing, np.ndarray) else _state_of(thing)

    def changes(self) -> dict[str, Any]:
        """What has changed, by name, in a form in which equal contents are equal."""
        with without_watching():
            return {name: _value(current) for name, _, current in self._differences()}

    def changed_names(self) -> set[str]:
        """The names of what has changed."""
        with without_watching():
            return {name for name, _, _ in self._differences()}

    def changed_tensors(self) -> set[str]:
        """The names of what has changed, without numbers and words, which a loop may set freely."""
        with without_watching():
            return {
                name
                for name, before, current in self._differences()
                if not isinstance(before, _PLAIN) or not isinstance(current, _PLAIN)
            }

    def _differences(self) -> Iterator[tuple[str, Any, Any]]:
        for name, thing, before in self._things:
            if isinstance(thing, _LEAVES):
                if not _is_as_before(thing, before, self._state(thing)):
                    yield name, thing, thing
                continue
            current = _contents(thing)
            if current.keys() == before.keys() and all(map(is_, current.values(), before.values())):
                continue
            for key in before.keys() | current.keys():
                old, new = before.get(key), current.get(key)
                if key not in before or key not in current or not _is_same(old, new):
                    yield _join_name(name, key), old, new

    def undo(self) -> None:
        """Undo what was written since."""
        with without_watching():
            for _, thing, before in self._things:
                if isinstance(thing, Tensor):
                    _undo_tensor(thing, before, self._mark(thing))
                elif isinstance(thing, np.ndarray):
                    thing[...] = before
                elif isinstance(thing, _GENERATORS):
                    _set_state(thing, before)
                else:
                    _undo_contents(thing, before)


# --- what a model holds ------------------------------------------------------------------------------------


def _things(model: Module) -> Iterator[tuple[str, Any, dict[Any, Any]]]:
    """Everything mutable that the model leads to, once each, with a name and its contents."""
    todo: list[tuple[str, Any, int]] = [("", model, 0)]
    seen: set[int] = set()
    while todo and len(seen) < _MAX_THINGS:
        name, thing, depth = todo.pop()
        if id(thing) in seen or isinstance(thing, (*_PLAIN, _Extra)):
            continue
        seen.add(id(thing))
        contents: dict[Any, Any] = {}
        if isinstance(thing, tuple | frozenset):
            contents = dict(enumerate(thing))
        elif isinstance(thing, _LEAVES):
            yield name, thing, contents
        elif _is_open(thing):
            contents = _contents(thing)
            yield name, thing, contents
        depth = 0 if isinstance(thing, Module) else depth + 1
        if depth <= _DEPTH:
            todo += [
                (_join_name(name, key), value, depth)
                for key, value in contents.items()
                if type(value) not in _QUICK
            ]


def _is_open(thing: Any) -> bool:
    """Whether a thing has contents of its own to be looked at."""
    return isinstance(thing, dict | list | set | deque) or (
        hasattr(thing, "__dict__") and not isinstance(thing, _CLOSED)
    )


def _contents(thing: Any) -> dict[Any, Any]:
    """What a container or an object holds, by key."""
    if isinstance(thing, Module):
        contents = {key: value for key, value in vars(thing).items() if key not in _BARE}
        if type(thing).get_extra_state is not Module.get_extra_state:
            contents["get_extra_state()"] = _Extra(_value(thing.get_extra_state()))
        return contents
    if isinstance(thing, dict):
        return dict(thing)
    if isinstance(thing, list | deque):
        return dict(enumerate(thing))
    if isinstance(thing, set):
        return dict.fromkeys(thing)
    return dict(vars(thing))


class _Extra:
    """What `get_extra_state` returned: made anew at every call, so compared by value, and no object
    of the model.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def _join_name(name: str, key: Any) -> str:
    """A name as in `state_dict`, which leaves out the tables of a module."""
    if key in internals.MODULE_TABLES:
        return name
    return f"{name}.{key}" if name else str(key)


# --- what is the same -------------------------------------------------------------------------------------


def _is_same(old: Any, new: Any) -> bool:
    if isinstance(old, _Extra) and isinstance(new, _Extra):
        return bool(old.value == new.value)
    return old is new or (isinstance(old, _PLAIN) and _value(old) == _value(new))


def _mark(tensor: Tensor) -> tuple[Any, Any]:
    """What changes when a tensor is written in a way that torch counts, or gets other memory."""
    version = 0 if tensor.is_inference() else internals.version_of(tensor)
    return (version, _address(tensor), tensor.dtype, tensor.shape), None


def _address(tensor: Tensor) -> int:
    return tensor.data_ptr() if _is_dense(tensor) else 0


def _is_dense(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.device.type != "meta" and not tensor.is_quantized


def _print(tensor: Tensor) -> tuple[Any, Any]:
    return _mark(tensor)[0], _bits(tensor)


def _copy(tensor: Tensor) -> tuple[Any, Any]:
    return _mark(tensor)[0], tensor.detach().cpu().clone()


def _bytes(tensor: Tensor) -> Tensor:
    """The bytes of a tensor, in one row; none, where they do not lie in order."""
    if not _is_dense(tensor):
        return torch.empty(0, dtype=torch.uint8)
    return tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)


def _bits(tensor: Tensor) -> int:
    """The sum of all bytes, eight at a time: any one number that is written changes it."""
    if (
        _is_dense(tensor)
        and not tensor.is_complex()
        and tensor.is_contiguous()
        and tensor.nbytes % 8 == tensor.data_ptr() % 8 == 0
        and tensor.numel() > 0
    ):
        return int(tensor.detach().view(-1).view(torch.int64).sum())
    flat = _bytes(tensor)
    whole = flat.numel() - flat.numel() % 8
    head = flat[:whole].view(torch.int64) if flat.data_ptr() % 8 == 0 else flat[:whole]
    return int(head.sum(dtype=torch.int64)) + int(flat[whole:].sum(dtype=torch.int64))


def _is_as_before(thing: Any, before: Any, current: Any) -> bool:
    if not isinstance(thing, Tensor):
        return bool(_value(before) == _value(current))
    if isinstance(current[1], Tensor):
        return before[0] == current[0] and torch.equal(_bytes(before[1]), _bytes(current[1]))
    return bool(before == current)


def _value(thing: Any, depth: int = 0) -> Any:
    """A form in which equal contents are equal, and that keeps no object alive."""
    kind = type(thing).__name__
    if isinstance(thing, _PLAIN):
        return kind, repr(thing)
    if isinstance(thing, Tensor):
        return kind, str(thing.dtype), tuple(thing.shape), _bytes(thing).cpu().numpy().tobytes()
    if isinstance(thing, np.ndarray):
        return kind, str(thing.dtype), thing.shape, thing.tobytes()
    if isinstance(thing, _GENERATORS):
        return kind, _value(_state_of(thing))
    if isinstance(thing, _Extra):
        return thing.value
    if depth > _DEPTH:
        return kind
    if isinstance(thing, tuple | frozenset):
        return kind, tuple(_value(member, depth + 1) for member in thing)
    if _is_open(thing):
        return kind, tuple((str(key), _value(member, depth + 1)) for key, member in _contents(thing).items())
    return kind


# --- putting back -------------------------------------------------------------------------------------------


def _undo_tensor(tensor: Tensor, before: tuple[Any, Any], current: tuple[Any, Any]) -> None:
    if _is_as_before(tensor, before, current):
        return
    copy = before[1]
    if not isinstance(copy, Tensor):
        tensor.data.fill_(torch.nan if tensor.is_floating_point() or tensor.is_complex() else 0)
        return
    if tensor.shape != copy.shape or tensor.dtype != copy.dtype:
        tensor.data = torch.empty_like(copy, device=tensor.device)
    tensor.data.copy_(copy)


def _undo_contents(thing: Any, before: dict[Any, Any]) -> None:
    if isinstance(thing, list | deque | set):
        if _is_moved(_contents(thing), before):
            thing.clear()
            (thing.update if isinstance(thing, set) else thing.extend)(
                before if isinstance(thing, set) else before.values()
            )
        return
    table = thing if isinstance(thing, dict) else vars(thing)
    hidden = _BARE if isinstance(thing, Module) else ()
    for key in [key for key in table if key not in before and key not in hidden]:
        del table[key]
    table.update({key: value for key, value in before.items() if not isinstance(value, _Extra)})


def _is_moved(current: dict[Any, Any], before: dict[Any, Any]) -> bool:
    return current.keys() != before.keys() or any(current[key] is not before[key] for key in current)


def _state_of(generator: Any) -> Any:
    """The state of a generator that somebody made."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.bit_generator.state


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator | np.random.RandomState):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.bit_generator.state = state
