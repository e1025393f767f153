# SPDX-License-Identifier: Apache-2.0
"""`private`: from a model, an optimizer and data to a run. Everything is checked, then it is paid for, then data are touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module, ModuleDict, Parameter
from torch.nn.parameter import UninitializedParameter
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from discreet import check, privacy
from discreet.errors import BadParameter
from discreet.learn.arguments import checked_call
from discreet.learn.torch.adaptive import Adaptive
from discreet.learn.torch.banded import BandedNoise, Cycle
from discreet.learn.torch.batches import Drawn, Loaded
from discreet.learn.torch.canaries import Canaries
from discreet.learn.torch.checkpoint import Past, past_of, rest_of
from discreet.learn.torch.clip import Clipper
from discreet.learn.torch.exact import ExactSums, check_grid
from discreet.learn.torch.noise import Noise, Number
from discreet.learn.torch.plan import Plan, plan_of
from discreet.learn.torch.processes import refuse_copies, refuse_processes
from discreet.learn.torch.records import Records, check_loader, records_of
from discreet.learn.torch.run import Parts, Run
from discreet.learn.torch.steps import optimizers_of, refuse_old_averages
from discreet.learn.torch.sums import Clipping, FloatSums, Sums
from discreet.learn.torch.watched import compiled
from discreet.privacy.guarantee import Guarantee

__all__ = ["private"]

_RECORDWISE = "the loss of a record depends on that record and on the parameters, and on no other record"
_SHAPES = "the shape and the type of a record are public"
_COUNT = "how many records there are is public: a neighbour has one record blanked out, or replaced"
_ONCE = (
    "the loader gives each record at most once in an epoch, and makes its batches without looking at values"
)
_STOP = (
    "the run is as long as was fixed beforehand; if it was stopped because of what it showed, the promise is that of the "
    "whole plan, run.plan.guarantee"
)
_CHANCE = (
    "random numbers in losses and in the loading of records come from the shared generators of torch, numpy and Python, record by "
    "record, and these generators, started from secret bits, cannot be told from ideal ones"
)
_PRECISIONS = (torch.float32, torch.float64, torch.bfloat16)
_NO_RECORDS = records_of(torch.empty(0))
_REAL = "sums of gradients are taken to be those of real arithmetic (level C); exact=True needs no such word"


@checked_call
def private(
    model: Module,
    optimizer: Any,
    data: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    noise: float | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    batch: int | None = None,
    clip: float = 1.0,
    size: int | None = None,
    sampling: str = "poisson",
    relation: str | None = None,
    unit: str = "record",
    bands: int | str = 1,
    physical: int | None = None,
    exact: bool = False,
    adaptive: Adaptive | bool = False,
    canaries: int | None = None,
    session: Any = None,
    resume: Any = None,
    collate: Callable[[list[Any]], Any] | None = None,
    example: Any = None,
    progress: Callable[[Run], None] | None = None,
    clipper: Callable[[Module], Clipping] | None = None,
) -> Run:
    """Make a training loop private: the optimizer's `step` becomes a step of DP-SGD.

    **Guarantee.** That of `Run`; the whole planned run implies (`epsilon`, `delta`), or has noise of `noise` clipping norms. If
    a `session` is given it is charged with the whole plan before a record is looked at.

    `data` are tensors or a data set, of which batches are drawn here; with `size`, the public number of records that the rate is
    computed from, one more or one less record is a neighbour; without it their number is taken for public. A DataLoader makes
    its own batches, and gains nothing from chance. `batch` is the expected size and the divisor; `physical` bounds how
    many records are in memory at once. `bands` correlates the noise of so many steps (`banded`), "auto" as many as make the error of
    running sums least; each costs the memory of one more sum. `exact=True` is level A: whole numbers from end to end, the loop being shown one
    record at a time, for small models.

    Why it holds, and what would break it: see `Run`. `clipper` makes what clips, of a model; by default `clip.Clipper`.

    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> run = private(model, optimizer, torch.zeros(100, 2), epsilon=1, delta=1e-5, epochs=2, batch=10, size=100)
    >>> run.plan.steps, run.plan.guarantee.epsilon(1e-5) <= 1
    (20, True)
    """
    past = past_of(resume)
    parameters, optimizers = _trained(model, optimizer, past)
    loader = data if isinstance(data, DataLoader) else None
    records = _NO_RECORDS if loader is not None else records_of(data, collate, example)
    plan = plan_of(
        **{"batch": batch, "epochs": epochs, "steps": steps, "sampling": sampling, "relation": relation}
        | _of_data(records, loader, size, batch, sampling),
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        unit=unit,
        bands=bands,
    )
    plan = rest_of(plan, past, _target(plan, epsilon, delta))
    adapted = _adapted(plan, adaptive=adaptive, exact=check.flag(exact=exact))
    bound = check.moderate(clip=clip if adapted is None or past.clip is None else past.clip)
    birds = _birds(canaries, bound, parameters, loader)
    most = _shown_at_once(physical, loader, bound, plan, exact=exact)
    _check_callables(session, progress, clipper)
    receipt = None if session is None else session.charge(plan.guarantee, question=_question(plan))
    cycle = Cycle(plan.bands, len(records) + (birds.count if birds else 0)) if plan.bands > 1 else None
    return Run(
        Parts(
            model,
            optimizers,
            parameters,
            plan,
            Drawn(plan, records, most, birds, cycle) if loader is None else Loaded(plan, loader),
            _sums(model, parameters, plan, clipper, birds=birds, cycle=cycle, exact=exact),
            _start(bound, adapted, parameters, exact=exact),
            delta=delta,
            adaptive=adapted,
            canaries=birds,
            receipt=receipt,
            assumes=_assumed(size, loader, plan, exact=exact),
            progress=progress,
            parted=most is not None,
            past=past,
        )
    )


def _check_callables(session: Any, progress: Any, clipper: Any) -> None:
    """Refuse what cannot be charged or called, before anything is paid."""
    if session is not None and not hasattr(session, "charge"):
        raise BadParameter(
            "DP104",
            "session must be a Session.",
            why="it is charged before the data are read.",
            fix="session=dp.Session(data, limit=…), or leave it out",
        )
    if progress is not None:
        check.function(progress=progress)
    if clipper is not None:
        check.function(clipper=clipper)


def _trained(model: Any, optimizer: Any, past: Past) -> tuple[list[Parameter], tuple[Optimizer, ...]]:
    """The parameters that a run trains and the optimizers that move them; those of a run that goes on may have a past."""
    parameters = _trainable(model)
    optimizers = optimizers_of(optimizer, parameters)
    refuse_copies(model, optimizers)
    refuse_processes()
    if past.steps == 0:
        refuse_old_averages(optimizers)
    return parameters, optimizers


def _trainable(model: Any) -> list[Parameter]:
    if not isinstance(model, Module):
        raise BadParameter(
            "DP104",
            "model must be a torch.nn.Module.",
            why="the parameters to be trained are found in it.",
            fix="private(torch.nn.Linear(10, 2), optimizer, data, …)",
        )
    if hasattr(model, "_orig_mod"):  # what torch.compile makes of a model
        raise compiled()
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise BadParameter(
            "DP107",
            "the model has layers that do not know their shape yet.",
            why="they would learn it from the first records, and what is not there yet cannot be watched.",
            fix="model(torch.zeros(1, 10))   once, before the optimizer is made",
        )
    found = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if any(parameter.dtype not in _PRECISIONS for parameter in found):
        raise BadParameter(
            "DP104",
            "a trainable parameter is not float32, float64 or bfloat16.",
            why="float16 overflows at 65504, and how gradients are clipped in it is not proved.",
            fix="model.float()   and  torch.autocast(device, torch.bfloat16)   in the loop",
        )
    if found:
        return found
    raise BadParameter(
        "DP107",
        "the model has no parameter that requires a gradient.",
        why="there is nothing to train; if a run on this model is open, close it first.",
        fix="model.requires_grad_(True)   or  run.close()",
    )


def _of_data(
    records: Records,
    loader: DataLoader[Any] | None,
    size: int | None,
    batch: int | None,
    sampling: str,
) -> dict[str, Any]:
    """What the data say about the plan: how many records the rate is computed from, and what a loader does."""
    if size is not None and (loader is not None or sampling == "fixed"):
        raise _contradiction(
            "batches of this kind show how many records there are, so size cannot differ from it.",
            "leave size out, or use sampling='poisson'",
        )
    if loader is None:
        return {"size": max(1, len(records)) if size is None else check.whole(size=size)}
    check_loader(loader)
    if batch is not None and batch != loader.batch_size:
        raise _contradiction(
            "batch is not the batch size of the loader.", f"batch={loader.batch_size}, or leave it out"
        )
    counted: Any = loader.dataset
    return {"size": max(1, len(counted)), "batch": loader.batch_size, "per_epoch": max(1, len(loader))}


def _contradiction(what: str, fix: str) -> BadParameter:
    return BadParameter(
        "DP107",
        what,
        why="the promise is computed from the numbers that are stated, so they must be those of the data.",
        fix=fix,
    )


def _target(plan: Plan, epsilon: float | None, delta: float | None) -> Guarantee | None:
    if epsilon is None or delta is None:
        return None
    return privacy.approximate(epsilon, delta, relation=plan.relation, unit=plan.unit)


def _adapted(plan: Plan, *, adaptive: Adaptive | bool, exact: bool) -> Adaptive | None:
    found = (Adaptive() if adaptive else None) if isinstance(adaptive, bool) else adaptive
    if not isinstance(found, Adaptive | None):
        raise BadParameter(
            "DP104",
            "adaptive must be True, False or an Adaptive.",
            why="it says how the clipping norm moves, and what that costs.",
            fix="adaptive=True",
        )
    if found is not None:
        found.split(plan.noise, plan.batch)  # refused now, if it is
    _unbanded(plan, found, exact=exact)
    return found


def _unbanded(plan: Plan, adapted: Adaptive | None, *, exact: bool) -> None:
    """Refuse what is proved for independent noise only."""
    if plan.bands > 1 and (adapted is not None or exact):
        raise BadParameter(
            "DP107",
            f"{'exact=True' if exact else 'an adaptive clipping norm'} and bands={plan.bands} do not go together.",
            why="with bands the noise of a step belongs to the grid and the clipping norm of the steps before it.",
            fix="bands=1",
        )


def _shown_at_once(
    physical: int | None, loader: DataLoader[Any] | None, clip: float, plan: Plan, *, exact: bool
) -> int | None:
    """The most records of a micro-batch; on level A there is one, on a grid that must be fit for it."""
    most = None if physical is None else check.whole(physical=physical)
    if not exact:
        return most
    if loader is None:
        check_grid(clip, plan.noise)
        return 1
    raise _contradiction("exact=True shows records one at a time, and a loader shows batches.", "exact=False")


def _birds(
    count: int | None, clip: float, parameters: list[Parameter], loader: DataLoader[Any] | None
) -> Canaries | None:
    if count is None:
        return None
    if loader is None:
        return Canaries(count, clip, parameters[0].device)
    raise BadParameter(
        "DP107",
        "canaries cannot be put into the batches of a loader.",
        why="the loader makes its batches itself.",
        fix="private(model, optimizer, loader.dataset, …, canaries=1000)",
    )


def _sums(
    model: Module,
    parameters: list[Parameter],
    plan: Plan,
    clipper: Callable[[Module], Clipping] | None,
    *,
    birds: Canaries | None,
    cycle: Cycle | None,
    exact: bool,
) -> Sums:
    """The sums of the model's parameters, and of the canaries' if there are some."""
    watched = model if birds is None else ModuleDict({"model": model, "canaries": birds})
    all_of_them = parameters if birds is None else [*parameters, birds.weight]
    if exact:
        return ExactSums(all_of_them, noise=plan.noise)
    noise = Noise() if cycle is None else BandedNoise(cycle)
    return FloatSums((clipper or Clipper)(watched), all_of_them, noise)


def _start(clip: float, adapted: Adaptive | None, parameters: list[Parameter], *, exact: bool) -> Number:
    """A norm that moves lives on the device, so that no step waits for it."""
    if adapted is None or exact:
        return clip
    return torch.tensor(clip, dtype=torch.float32, device=parameters[0].device)


def _assumed(size: int | None, loader: DataLoader[Any] | None, plan: Plan, *, exact: bool) -> tuple[str, ...]:
    words = [_RECORDWISE, _SHAPES, _STOP, _CHANCE]
    words += [_ONCE] if loader is not None else []
    words += [_COUNT] if size is None and plan.relation == "add-remove" else []
    return (*words, *([] if exact else [_REAL]))


def _question(plan: Plan) -> str:
    noise = f"noise {plan.noise:.6g} × the clipping norm" + (
        f" in {plan.bands} bands" if plan.bands > 1 else ""
    )
    return f"DP-SGD: {plan.steps} steps, {plan.sampling} batches of {plan.batch}, {noise}"
