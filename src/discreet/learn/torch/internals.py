# SPDX-License-Identifier: Apache-2.0
"""The private parts of PyTorch that training needs, in one place, each looked up when it is first
used.

    internals.tree_leaves(batch)            # torch.utils._pytree.tree_leaves, from the first use on
    internals.version_of(tensor)            # tensor._version

Clipping the gradient of each record and testing a model on made-up records see more of a model than
the public interface of PyTorch shows. No other module of this package uses a name of PyTorch that
begins with an underscore, and loading the package uses none at all. So a version of PyTorch that
moved such a name still loads, and what needs the name is refused with the code DP919, which says
what is missing and which versions are known to work.

Why it is safe: a missing name is an error before anything is released. A name that stays and
changes its meaning is not noticed here; the tests of this package, which compare with plain
autograd, are for that.
"""

# ruff: noqa: SLF001 - private parts of PyTorch are the subject of this file

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import reduce
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch.utils.data import DataLoader

from discreet.errors import RefusedTraining

__all__ = [
    "KNOWN_TO_WORK",
    "NAMES",
    "base_of",
    "dispatch_mode",
    "engine",
    "forget_workers",
    "has_gradient_hooks",
    "is_compiled",
    "is_view",
    "layers_and_hooks",
    "memory_of",
    "operator_name",
    "operator_parameters",
    "version_of",
]

#: The versions of PyTorch that the tests have passed with.
KNOWN_TO_WORK = "2.13"

#: What a module or a tree of values looks like to PyTorch: opaque here.
TreeSpec = Any

# Each of these is bound when it is first used. The types are those that this package relies on.
DisableTorchFunctionSubclass: Callable[[], AbstractContextManager[None]]
functorch_is_active: Callable[[], bool]
frame_callback: Callable[[], object]
batch_norm_class: type[Module]
norm_class: type[Module]
disable_modes: Callable[[], AbstractContextManager[object]]
mode_stack: Callable[[], list[Any]]
pop_mode: Callable[[], Any]
push_mode: Callable[[Any], None]
tree_flatten: Callable[[Any], tuple[list[Any], TreeSpec]]
tree_leaves: Callable[[Any], list[Any]]
tree_map: Callable[[Callable[[Any], Any], Any], Any]
tree_unflatten: Callable[[Iterable[Any], TreeSpec], Any]
unsafe_view: Callable[[Tensor, torch.Size], Tensor]
add_each_: Callable[[list[Tensor], list[Tensor]], None]
addcdiv_each_: Callable[[list[Any], list[Any], list[Any], Any], None]
addcmul_each_: Callable[[list[Any], list[Any], list[Any], Any], None]
lerp_each_: Callable[[list[Any], list[Any], Any], None]
multiply_each_: Callable[[list[Any], Any], None]

#: The name in this module, the module of PyTorch that has it, and the path in that module.
NAMES: dict[str, tuple[str, str]] = {
    "DisableTorchFunctionSubclass": ("torch", "_C.DisableTorchFunctionSubclass"),
    "TorchDispatchMode": ("torch.utils._python_dispatch", "TorchDispatchMode"),
    "add_each_": ("torch", "_foreach_add_"),
    "addcdiv_each_": ("torch", "_foreach_addcdiv_"),
    "addcmul_each_": ("torch", "_foreach_addcmul_"),
    "batch_norm_class": ("torch.nn.modules.batchnorm", "_BatchNorm"),
    "disable_modes": ("torch.utils._python_dispatch", "_disable_current_modes"),
    "execution_engine": ("torch.autograd", "Variable._execution_engine"),
    "frame_callback": ("torch._C._dynamo.eval_frame", "get_eval_frame_callback"),
    "functorch_is_active": ("torch", "_C._are_functorch_transforms_active"),
    "lerp_each_": ("torch", "_foreach_lerp_"),
    "mode_stack": ("torch.utils._python_dispatch", "_get_current_dispatch_mode_stack"),
    "multiply_each_": ("torch", "_foreach_mul_"),
    "norm_class": ("torch.nn.modules.batchnorm", "_NormBase"),
    "pop_mode": ("torch.utils._python_dispatch", "_pop_mode"),
    "push_mode": ("torch.utils._python_dispatch", "_push_mode"),
    "tree_flatten": ("torch.utils._pytree", "tree_flatten"),
    "tree_leaves": ("torch.utils._pytree", "tree_leaves"),
    "tree_map": ("torch.utils._pytree", "tree_map"),
    "tree_unflatten": ("torch.utils._pytree", "tree_unflatten"),
    "unsafe_view": ("torch.ops", "aten._unsafe_view"),
}

#: The attribute by which a GradScaler knows optimizers that unscale by themselves; it is the first that it looks at.
UNSCALES_ITSELF = "_step_supports_amp_scaling"
#: The tables in which a module keeps parameters, buffers and modules; names in `state_dict` leave them out.
MODULE_TABLES = ("_parameters", "_buffers", "_modules")


def __getattr__(name: str) -> Any:
    """Look a name up when it is first used; afterwards it is an ordinary attribute of this module."""
    if name not in NAMES:
        raise AttributeError(name)
    home, path = NAMES[name]
    try:
        value = reduce(getattr, path.split("."), import_module(home))
    except (ImportError, AttributeError):
        raise missing_internal_error(f"{home}.{path}") from None
    globals()[name] = value
    return value


def missing_internal_error(name: str) -> RefusedTraining:
    """The refusal of a version of PyTorch that lacks something."""
    return RefusedTraining(
        "DP919",
        f"PyTorch {torch.__version__} has no {name}, which private training needs.",
        why="the gradient of each record is seen by private parts of PyTorch, and another version may lack them. "
        f"PyTorch {KNOWN_TO_WORK} is known to work.",
        fix=f"pip install 'torch=={KNOWN_TO_WORK}.*'",
    )


# --- tensors --------------------------------------------------------------------------------------------


def _private(owner: Any, name: str, home: str) -> Any:
    """An attribute of something that PyTorch calls `home`."""
    try:
        return getattr(owner, name)
    except AttributeError:
        raise missing_internal_error(f"{home}.{name}") from None


def version_of(tensor: Tensor) -> int:
    """How often a tensor was written."""
    version: int = _private(tensor, "_version", "torch.Tensor")
    return version


def is_view(tensor: Tensor) -> bool:
    """Whether autograd knows a tensor as a view."""
    return bool(_private(tensor, "_is_view", "torch.Tensor")())


def base_of(view: Tensor) -> Tensor:
    """The tensor that a view is a view of."""
    base: Tensor = _private(view, "_base", "torch.Tensor")
    return base


def memory_of(tensor: Tensor) -> int:
    """Where a tensor lies; the number only counts while the tensor is alive."""
    if tensor.layout is not torch.strided:
        return 0
    return int(_private(tensor.untyped_storage(), "_cdata", "torch.UntypedStorage"))


def has_gradient_hooks(parameter: Parameter) -> bool:
    """Whether something waits for the gradient of a parameter."""
    return bool(_private(parameter, "_post_accumulate_grad_hooks", "torch.Tensor"))


# --- modules, loaders, operators ------------------------------------------------------------------------


def is_compiled(model: Module) -> bool:
    """Whether torch.compile made this model."""
    return hasattr(model, "_orig_mod")


def layers_and_hooks(model: Module) -> Iterator[Hashable]:
    """What changes when layers or hooks come or go, or begin or end to train."""
    hooks, earlier_hooks, layers = (
        _private(model, name, "torch.nn.Module")
        for name in ("_forward_hooks", "_forward_pre_hooks", "_modules")
    )
    yield from (id(model), model.training, *hooks, -1, *earlier_hooks, -1)
    for layer in layers.values():
        if layer is not None:
            yield from layers_and_hooks(layer)


def forget_workers(loader: DataLoader[Any]) -> None:
    """Let a loader start its workers anew: those that outlive an epoch may have been started with
    seeds that are known.
    """
    _private(loader, "_iterator", "torch.utils.data.DataLoader")
    loader._iterator = None


def operator_name(operator: Any) -> str:
    """What an operator is called, without its namespace."""
    return str(_schema(operator).name.split("::")[-1])


def operator_parameters(operator: Any) -> list[tuple[str, bool]]:
    """The parameters of an operator, and whether it writes into each."""
    return [
        (parameter.name, bool(parameter.alias_info and parameter.alias_info.is_write))
        for parameter in _schema(operator).arguments
    ]


def _schema(operator: Any) -> Any:
    return _private(operator, "_schema", "torch.ops.OpOverload")


# --- the engine and its modes ---------------------------------------------------------------------------


def engine() -> Any:
    """The engine that runs backward passes."""
    known = globals().get("execution_engine")
    return __getattr__("execution_engine") if known is None else known


def dispatch_mode(
    answer: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any],
) -> AbstractContextManager[object]:
    """A mode in which every operation on tensors is answered by a function of the operation and its
    arguments.
    """
    kind = globals().get("_AnswerMode") or _answer_mode()
    mode: AbstractContextManager[object] = kind(answer)
    return mode


def _answer_mode() -> type[Any]:
    base: Any = __getattr__("TorchDispatchMode")

    class _AnswerMode(base):  # type: ignore[misc]
        def __init__(self, answer: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
            super().__init__()
            self._answer = answer

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self._answer(func, args, kwargs or {})

    globals()["_AnswerMode"] = _AnswerMode
    return _AnswerMode
