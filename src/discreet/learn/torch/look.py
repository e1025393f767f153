# SPDX-License-Identifier: Apache-2.0
"""A look at the model before it sees its first batch: `guards.check`, on made-up records of the shape that the loop uses.

What the loop calls the model with is known only when it does so. Its first call is held back while the model is tested on
made-up records of that shape, of which nothing but the shape is taken; a model that fails is refused before any step. A
model that is called with named arguments, or that cannot be run on made-up records, is not tested, and `explain` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from discreet.errors import DiscreetError
from discreet.learn.torch import guards

__all__ = ["FirstLook"]


class FirstLook:
    """Waits for the first call of the model; `tested` is None until then."""

    def __init__(self, model: Module, test: Callable[[tuple[Tensor, ...]], None]) -> None:
        self._test = test
        self.tested: bool | None = None
        self._handle: Any = model.register_forward_pre_hook(self._called, with_kwargs=True)

    def close(self) -> None:
        self._handle.remove()

    def _called(self, model: Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if torch.is_grad_enabled():
            self.close()
            plain = given and not named and all(isinstance(one, Tensor) and one.dim() > 0 for one in given)
            self.tested = bool(plain) and self._passes(given)

    def _passes(self, given: tuple[Tensor, ...]) -> bool:
        """Whether the model could be tested; one that fails is refused."""
        records = [torch.empty(one.shape[1:], dtype=one.dtype, device=one.device) for one in given]
        try:
            self._test(guards.example(*records))
        except DiscreetError:
            raise
        except Exception:  # noqa: BLE001 - what a model says to records that make no sense to it is no verdict
            return False
        return True
