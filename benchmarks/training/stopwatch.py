# SPDX-License-Identifier: Apache-2.0
"""How long a step takes, and how much memory."""

from __future__ import annotations

import ctypes
import gc
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path

import torch
from tasks import SMALL, Task
from ways import PLAIN, WAYS, Step

_MEGABYTE = 2.0**20
_WARM_UP = 3  # steps: the first compile kernels, choose algorithms and make the state of the optimizer
_AT_LEAST = 0.1  # seconds that one reading should take


def milliseconds(task: Task, names: list[str], device: str, precision: str, rounds: int) -> dict[str, float]:
    """The least time of a step, for other work on the machine only adds to it; all by turns, in the same minutes."""
    steps = {name: WAYS[name](task, device, precision) for name in names}
    counts = {name: _count(step, device) for name, step in steps.items()}
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, step in steps.items():
            times[name].append(_seconds(step, counts[name], device))
    return {name: min(found) * 1e3 for name, found in times.items()}


def busy_milliseconds(task: Task, name: str, precision: str) -> float:
    """How long a GPU works for a step. It says what a step takes where Python keeps up: its speed varies with the machine."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    step = WAYS[name](task, "cuda", precision)
    _seconds(step, _WARM_UP, "cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        _seconds(step, _WARM_UP, "cuda")
    kernels = (event.device_time for event in seen.events() if event.device_type == DeviceType.CUDA)
    return sum(kernels) / 1e3 / _WARM_UP


def python_milliseconds() -> float:
    """How long a loop of a million turns takes here and now: steps that wait for Python take as many times as long."""
    start = time.perf_counter()
    for _ in range(1_000_000):
        pass
    return (time.perf_counter() - start) * 1e3


def megabytes(task: Task, name: str, device: str, precision: str) -> float | str:
    """What building and stepping take at the most, or why it cannot be done."""
    if device == "cuda":
        return _of_device(task, name, precision)
    # Freed memory does not always go back to the system, hence a process for each; it must not be forked from one
    # whose backward passes have started threads.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        return pool.submit(_of_process, task.name, name, precision).result()


def _count(step: Step, device: str) -> int:
    """How many steps one reading needs, after warm-up."""
    _seconds(step, _WARM_UP, device)
    return max(1, math.ceil(_AT_LEAST / _seconds(step, 1, device)))


def _seconds(step: Step, count: int, device: str) -> float:
    """Seconds per step: by the events of a device; of a processor, its own time, which other programs do not add to."""
    if device != "cuda":
        start = time.process_time()
        for _ in range(count):
            step()
        return (time.process_time() - start) / count
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    before.record()
    for _ in range(count):
        step()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after) / 1e3 / count


def _of_device(task: Task, name: str, precision: str) -> float | str:
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    trouble = _take_steps(task, name, "cuda", precision)
    return trouble or (torch.cuda.max_memory_allocated() - before) / _MEGABYTE


def _of_process(task_name: str, name: str, precision: str) -> float | str:
    (task,) = [
        task for task in SMALL if task.name == task_name
    ]  # a task holds functions, which do not travel
    _take_steps(SMALL[0], PLAIN, "cpu", precision)  # what any first step loads
    gc.collect()
    with suppress(OSError, AttributeError):  # else what is free, but not given back, is used unseen
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):  # then the peak of that step is the floor
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _high_water()
    trouble = _take_steps(task, name, "cpu", precision)
    return trouble or _high_water() - before


def _take_steps(task: Task, name: str, device: str, precision: str) -> str:
    """Take the steps of the warm-up; what a library raises is its answer, and is reported as such."""
    try:
        step = WAYS[name](task, device, precision)
        for _ in range(_WARM_UP):
            step()
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0][:110]}"
    return ""


def _high_water() -> float:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return math.nan
