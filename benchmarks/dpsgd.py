# SPDX-License-Identifier: Apache-2.0
"""Private training steps against steps without privacy and those of opacus: time and peak memory.

    python benchmarks/dpsgd.py                       # on the GPU if there is one (minutes), else on one CPU thread
    python benchmarks/dpsgd.py --device cpu          # smaller models, one thread
    python benchmarks/dpsgd.py --only GPT            # tasks whose name matches
    python benchmarks/dpsgd.py --no-peers            # discreet and training without privacy
    python benchmarks/dpsgd.py --write               # and keep the table in benchmarks/RESULTS.md
    python benchmarks/training/carry.py              # fetches opacus, once; without it there are no peers

All in one process, one model for all, by turns; the least of all readings, for other work on the machine only adds.
Noise is part of the step: discreet's comes from a cryptographic generator, that of opacus from torch's ordinary one, its
default. How accurate private training gets is the business of benchmarks/training/mnist.py and cifar.py.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "training"), str(HERE / "peers")]
sys.path.append(str(HERE / ".carry"))  # last: what is installed goes first

import report  # noqa: E402
import stopwatch  # noqa: E402
import torch  # noqa: E402
from tasks import LARGE, SMALL, Task  # noqa: E402
from ways import OURS, PLAIN, WAYS  # noqa: E402

# How many times as long, and as much memory, as without privacy a step may take, by the start of the task's name.
SLOWER = {"cuda": {"MLP": 1.6, "ResNet": 2.5, "ViT": 1.4, "GPT": 1.3}, "cpu": {"": 1.6}}
LARGER, FASTER_THAN_PEERS = 1.3, 1.5


@dataclass
class Result:
    """Of one task: milliseconds of a step and of a GPU in it, megabytes by way, and what went wrong."""

    task: Task
    precision: str
    times: dict[str, float] = field(default_factory=dict)
    busy: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    python: list[float] = field(default_factory=list)  # milliseconds of a loop, before and after
    troubles: dict[str, str] = field(default_factory=dict)


def main() -> None:
    """Measure, print the table, and keep it if told to."""
    options = _options()
    _prepare(options.device)
    tasks = [
        task for task in (LARGE if options.device == "cuda" else SMALL) if re.search(options.only, task.name)
    ]
    results = [Result(task, precision) for precision in options.precision for task in tasks]
    for result in results:  # all memory first: see stopwatch
        _weigh(result, options)
    for result in results:
        _time(result, options)
        print("\n".join(_rows(result)), file=sys.stderr, flush=True)
    command = f"python benchmarks/dpsgd.py {shlex.join(sys.argv[1:])}".strip()
    lines = [
        *report.heading(command),
        "",
        _place(results, options.device),
        "",
        *_page(results, options.device),
    ]
    print("\n".join(lines))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", f"Private training steps ({options.device})", lines)


def _weigh(result: Result, options: argparse.Namespace) -> None:
    for name in _names(options):
        found = stopwatch.megabytes(result.task, name, options.device, result.precision)
        if isinstance(found, str):
            result.troubles[name] = found
        else:
            result.sizes[name] = found


def _time(result: Result, options: argparse.Namespace) -> None:
    names = list(result.sizes)
    result.python.append(stopwatch.python_milliseconds())
    result.times = stopwatch.milliseconds(
        result.task, names, options.device, result.precision, options.rounds
    )
    result.python.append(stopwatch.python_milliseconds())
    if options.device == "cuda":
        result.busy = {
            name: stopwatch.busy_milliseconds(result.task, name, result.precision) for name in names
        }


def _page(results: list[Result], device: str) -> Iterator[str]:
    yield "| task | precision | way | ms a step | × | of them the GPU is busy | × | MB | × |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for result in results:
        yield from _rows(result)
    yield ""
    for result in results:
        yield from _verdicts(result, device)


def _rows(result: Result) -> Iterator[str]:
    first = f"{result.task.name} | {result.precision}"
    for name in WAYS:
        label = f"**{name}**" if name == OURS else name
        if name in result.times:
            time, size = result.times[name], result.sizes[name]
            times = f"{time:.3g} | {time / result.times[PLAIN]:.2f}"
            busy = " | "
            if result.busy:
                busy = f"{result.busy[name]:.3g} | {result.busy[name] / result.busy[PLAIN]:.2f}"
            yield f"| {first} | {label} | {times} | {busy} | {size:.0f} | {size / result.sizes[PLAIN]:.2f} |"
        elif name in result.troubles:
            yield f"| {first} | {label} | {result.troubles[name].replace('|', '/')} | | | | | |"
        else:
            continue
        first = " | "


def _verdicts(result: Result, device: str) -> Iterator[str]:
    """Each target, and whether this run met it."""
    if OURS not in result.times:
        return
    where = f"{result.task.name}, {result.precision}"
    slower, larger = (found[OURS] / found[PLAIN] for found in (result.times, result.sizes))
    for start, most in SLOWER[device].items():
        if result.task.name.startswith(start):
            yield _verdict(f"{where}: ×{slower:.2f} in time", f"×{most}", met=slower <= most)
    yield _verdict(f"{where}: ×{larger:.2f} in memory", f"×{LARGER}", met=larger <= LARGER)
    peers = [time for name, time in result.times.items() if name.startswith("opacus")]
    if peers:
        faster = min(peers) / result.times[OURS]
        what = f"{where}: {faster:.2f} times as fast as the fastest mode of opacus"
        yield _verdict(what, f"{FASTER_THAN_PEERS} times", met=faster >= FASTER_THAN_PEERS)


def _verdict(what: str, target: str, *, met: bool) -> str:
    return f"- {'met' if met else '**missed**'}: {what} (target {target})"


def _names(options: argparse.Namespace) -> list[str]:
    peers = not options.no_peers and _has("opacus")
    return [name for name in WAYS if peers or not name.startswith("opacus")]


def _prepare(device: str) -> None:
    torch.set_float32_matmul_precision("high")  # tf32 in matrix products …
    torch.backends.cudnn.allow_tf32 = True  # … and in convolutions
    if device == "cpu":
        torch.set_num_threads(1)
    for name in ("discreet.learn.torch", "opacus"):  # once, rather than in every process
        if _has(name):
            importlib.import_module(name)


def _has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _place(results: list[Result], device: str) -> str:
    where = torch.cuda.get_device_name() if device == "cuda" else "one thread, CPU time"
    peer = "opacus 1.6.0" if _has("opacus") else "no peer"
    loops = [loop for result in results for loop in result.python]
    return (
        f"{where}, torch {torch.__version__}, {peer}; × is over training without privacy. "
        f"An empty Python loop of a million turns took {min(loops):.0f} to {max(loops):.0f} ms meanwhile."
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    devices = ("cuda", "cpu")
    parser.add_argument("--device", choices=devices, default=devices[not torch.cuda.is_available()])
    parser.add_argument("--precision", nargs="+", choices=("fp32", "tf32", "bf16"))
    parser.add_argument("--only", default="", metavar="PATTERN", help="tasks whose name matches this")
    parser.add_argument("--no-peers", action="store_true", help="discreet, and training without privacy")
    parser.add_argument("--rounds", type=int, default=9, help="readings of each way")
    parser.add_argument("--write", action="store_true", help="keep the table in benchmarks/RESULTS.md")
    options = parser.parse_args()
    options.precision = options.precision or (["tf32", "bf16"] if options.device == "cuda" else ["fp32"])
    return options


if __name__ == "__main__":
    main()
