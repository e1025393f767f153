# SPDX-License-Identifier: Apache-2.0
"""The generators of torch, numpy and Python: secret while the loop has a batch, and restored
afterwards.

    generators = Generators()
    for batch in generators.wrap(micro_batches):         # loading and the body of the loop draw from secret states
        ...
        generators.settle()                              # in run.backward: the masks have been drawn
    # here the generators are in the states that they had before

Dropout, augmentation and the workers of a loader draw from generators that a program shares, and
that a seed makes known. With known masks, a record that joins a batch shifts the masks of all later
records, so it moves every gradient and not only its own.

**Guarantee.** While records are loaded and while the loop computes losses, the generators have
states that were drawn from the library's source: 19,968 bits for torch on a CPU, 256 bits for numpy
and for Python, 63 bits for an accelerator. After the batch they have the earlier states, whatever
was drawn: they reveal neither masks nor how many records there were. A loop that seeds the
generator of torch between a batch and its backward pass is refused.

Why it holds, and what it rests on: random.proof.md. `torch.manual_seed` is not enough, because on a
CPU it keeps 32 bits of a seed, and all of them can be tried.

What would break it: a generator of one's own (`torch.Generator`, `numpy.random.default_rng`) with a
seed that is known.
"""

# ruff: noqa: NPY002 - generators that others use are the subject of this file

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch.utils.data import DataLoader

from discreet.errors import RefusedTraining
from discreet.learn.torch import internals
from discreet.noise.source import current

__all__ = ["Draws", "Generators", "secret_workers"]


class _Part(Protocol):
    """One of the micro-batches of a batch."""

    @property
    def last(self) -> bool: ...


P = TypeVar("P", bound=_Part)

#: Words of 32 bits in the state of a Mersenne Twister.
_TWISTER = 624
#: Accelerators whose generators torch shares.
_KINDS = ("cuda", "xpu", "mps")


class Generators:
    """The shared generators, as they were before a batch, and secret ones until it is over."""

    def __init__(self) -> None:
        self._public: tuple[Any, ...] | None = None
        self._seed = 0
        self._settled = self._looping = False

    def wrap(self, batches: Iterator[P]) -> Iterator[P]:
        """The same batches. Each is loaded with secret generators, and used with others that are
        secret too.
        """
        self._looping = True
        if self._public is None:
            self._public = _states()
        _renew()
        try:
            for batch in batches:
                # A data set may have seeded the generators while it was read.
                self._seed, self._settled = _renew(), False
                yield batch
                # So may the loop, behind its backward pass.
                if not batch.last:
                    _renew()
        finally:
            self._looping = False
            # A loop that was left before its backward pass may still run it: next(iter(run)).
            if self._settled:
                self.end()

    def settle(self) -> None:
        """Refuse if the loop seeded torch before it made its losses. Then go on from fresh secret
        states.
        """
        if torch.initial_seed() != self._seed and self._public is not None:
            raise RefusedTraining(
                "DP918",
                "a generator was seeded between a batch and run.backward.",
                why="with a known seed one more record shifts the dropout masks of all others, and clipping does not bound that.",
                fix="torch.manual_seed(0)   before the loop; inside it the run seeds from the operating system",
                spent="what the steps before it cost",
            )
        self._seed, self._settled = _renew(), True

    def finish_batch(self) -> None:
        """Restore the states after a release, unless a loop that still runs will do so."""
        if not self._looping:
            self.end()

    def end(self) -> None:
        """Restore the states from before the batch."""
        if self._public is not None:
            _put_back(self._public)
            self._public = None


class Draws:
    """The states of the shared generators at one moment, so that the draws after it can be
    repeated.
    """

    def __init__(self) -> None:
        self._states = _states()

    def repeat(self) -> None:
        """Draw the same again from here on."""
        _put_back(self._states)


def secret_workers(loader: DataLoader[Any]) -> Iterator[Any]:
    """An epoch of a loader whose workers, if it has some, draw from secret states of their own."""
    if not loader.num_workers:
        return iter(loader)
    before = loader.worker_init_fn
    # Workers that outlive an epoch may have been started before, with seeds that are known.
    internals.forget_workers(loader)
    loader.worker_init_fn = _Worker(before)
    try:
        return iter(loader)
    finally:
        loader.worker_init_fn = before


class _Worker:
    """The start of a worker: first the function of its owner, then secret states."""

    def __init__(self, before: Callable[[int], None] | None) -> None:
        self._before = before

    def __call__(self, worker: int) -> None:
        if self._before is not None:
            self._before(worker)
        _renew()


def _renew() -> int:
    """Give every shared generator a secret state. The result marks the state of torch."""
    words = current().words(1 + 4 + 4 + _TWISTER // 2)
    torch.set_rng_state(_torch_state(words[0], words[9:].view(np.uint32)))
    if type(np.random.get_bit_generator()) is not np.random.MT19937:  # type: ignore[attr-defined]
        np.random.set_bit_generator(np.random.MT19937())  # type: ignore[attr-defined]
    np.random.seed(words[1:5].view(np.uint32))
    random.seed(words[5:9].tobytes())
    for module, count in _accelerators():
        generators = getattr(module, "default_generators", (module,))
        for generator, seed in zip(generators, current().words(count).tolist(), strict=False):
            generator.manual_seed(seed >> 1)
    return torch.initial_seed()


def _torch_state(mark: Any, words: Any) -> torch.Tensor:
    """The state of torch's generator on a CPU: that of a new one, with a mark and words of its own."""
    state = torch.Generator().get_state()
    numbers = state.view(torch.int64)
    numbers[0] = int(mark) >> 1
    numbers[3 : 3 + _TWISTER] = torch.from_numpy(words.astype(np.int64))
    return state


def _states() -> tuple[Any, ...]:
    device_states = [
        (module, [module.get_rng_state(*_device_argument(module, i)) for i in range(count)])
        for module, count in _accelerators()
    ]
    return (
        torch.get_rng_state(),
        (np.random.get_bit_generator(), np.random.get_state(legacy=False)),  # type: ignore[attr-defined]
        random.getstate(),
        device_states,
    )


def _put_back(states: tuple[Any, ...]) -> None:
    cpu_state, (bits, numpy_state), python_state, device_states = states
    torch.set_rng_state(cpu_state)
    np.random.set_bit_generator(bits)  # type: ignore[attr-defined]
    np.random.set_state(numpy_state)
    random.setstate(python_state)
    for module, module_states in device_states:
        for device, state in enumerate(module_states):
            module.set_rng_state(state, *_device_argument(module, device))


def _device_argument(module: Any, device: int) -> tuple[int, ...]:
    """The number of a device, where there can be several."""
    return () if module is torch.mps else (device,)


def _accelerators() -> Iterator[tuple[Any, int]]:
    """Modules of accelerators that are in use, and how many devices each has."""
    for kind in _KINDS:
        module: Any = getattr(torch, kind)
        if module.is_available() and getattr(module, "is_initialized", lambda: True)():
            yield module, module.device_count()
