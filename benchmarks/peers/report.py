# SPDX-License-Identifier: Apache-2.0
"""The Markdown of a benchmark: tables, the machine, and the section of RESULTS.md."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from results import OURS, PLD, Answer, Result, shortcomings

_SLOW = 0.3  # seconds of CPU that a single-mechanism case may take
_FACTOR = 10.0  # how much faster than dp-accounting's loss distributions DP-SGD must be


def answers_table(results: Iterable[Result]) -> Iterator[str]:
    yield "| case | certified [lower, upper] | accountant | answer | cold CPU s | CPU s | wall s | MB | verdict |"
    yield "|---|---|---|--:|--:|--:|--:|--:|---|"
    for result in results:
        first = (result.case.title, _bracket(result.bracket))
        for name, answer in result.answers.items():
            label = f"**{name}**" if name == OURS else name
            cells = (*first, label, *_numbers(answer), result.verdict(answer))
            yield "| " + " | ".join(cells) + " |"
            first = ("", "")


def ratios_table(results: Iterable[Result]) -> Iterator[str]:
    yield f"| case | ours, CPU s | fastest sound peer | × | fastest within 1 % | × | {PLD} | × |"
    yield "|---|--:|---|--:|---|--:|--:|--:|"
    for result in results:
        ours = result.ours()
        if ours is None:
            continue
        cells = [result.case.title, _seconds(ours.cpu)]
        for tight in (False, True):
            cells += _ratio(ours, result.fastest(tight=tight), named=True)
        reference = result.answers.get(PLD)
        known = reference is not None and reference.given
        cells += _ratio(ours, (PLD, reference) if known and reference else None, named=False)
        yield "| " + " | ".join(cells) + " |"


def shortcomings_list(results: Iterable[Result]) -> Iterator[str]:
    found = [line for result in results for line in shortcomings(result, _SLOW, _FACTOR)]
    yield "Where discreet falls short:" if found else "discreet falls short nowhere in what was measured."
    if found:
        yield ""
    yield from (f"- {line}" for line in found)


def scan_tables(results: list[Result], limit: float) -> Iterator[str]:
    """Wide brackets, and how the answers compare with the peer's."""
    yield ""
    yield "The certified bracket of ε where it is wider than 1e-3, or than 1e-3 of ε (CPU s is for both ends of it)."
    yield ""
    yield "| case | lower | upper | width | CPU s |"
    yield "|---|--:|--:|--:|--:|"
    wide = [result for result in results if _width(result) > 1e-3 * min(1.0, result.bracket[1])]
    for result in wide:
        (lower, upper), took = result.bracket, result.answers[OURS].cpu
        yield f"| {result.case.title} | {lower:.6g} | {upper:.6g} | {_width(result):.2g} | {took:.2f} |"
    seconds = sum(result.answers[OURS].cpu for result in results)
    yield ""
    yield f"{len(wide)} of {len(results)} brackets are that wide; all of them took {seconds:.0f} s of CPU."
    compared = [result for result in results if PLD in result.answers]
    if compared:
        yield from _compared_table(compared, limit)


def _compared_table(results: list[Result], limit: float) -> Iterator[str]:
    yield ""
    yield f"Some rows of the same grid by {PLD} too (time-out after {limit:.0f} s of CPU):"
    yield ""
    yield f"| case | discreet [lower, upper] | CPU s | {PLD} | CPU s | verdict |"
    yield "|---|---|--:|--:|--:|---|"
    for result in results:
        ours, peer = result.answers[OURS], result.answers[PLD]
        numbers = (f"{peer.value:.7g}", _seconds(peer.cpu)) if not peer.trouble else ("", "")
        cells = (
            result.case.title,
            _bracket(result.bracket),
            _seconds(ours.cpu),
            *numbers,
            result.verdict(peer),
        )
        yield "| " + " | ".join(cells) + " |"
    looser = [
        r for r in results if r.sound(r.answers[PLD]) and r.bracket[1] > r.answers[PLD].value * (1 + 1e-9)
    ]
    yield ""
    yield f"In {len(looser)} of {len(results)} rows discreet is looser than a sound answer of {PLD}."
    yield from (
        f"- {result.case.title}: by {result.bracket[1] / result.answers[PLD].value - 1:.1e}"
        for result in looser
    )


def _width(result: Result) -> float:
    return result.bracket[1] - result.bracket[0]


def machine() -> str:
    """The processor, without a name or a path that belongs to one computer."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"model name\s*:\s*(.+)", text)
    model = found.group(1).strip() if found else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def heading(command: str) -> Iterator[str]:
    yield f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {machine()}."


def replace_section(path: Path, name: str, lines: Iterable[str]) -> None:
    """Put `lines` under the heading `name`, in place of what an earlier run wrote there."""
    old = path.read_text(encoding="utf-8") if path.exists() else "# Benchmark results\n"
    section = f"## {name}\n\n" + "\n".join(lines) + "\n"
    pattern = re.compile(rf"^## {re.escape(name)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(old):
        new = pattern.sub(lambda _: section + "\n", old)
    else:
        new = old.rstrip() + "\n\n" + section
    path.write_text(new.rstrip() + "\n", encoding="utf-8")


def _numbers(answer: Answer) -> tuple[str, ...]:
    if answer.trouble:
        return ("",) * 5
    megabytes = f"{answer.megabytes:.0f}" if math.isfinite(answer.megabytes) else ""
    times = (_seconds(seconds) for seconds in (answer.cold, answer.cpu, answer.wall))
    return f"{answer.value:.7g}", *times, megabytes


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 1 else f"{seconds:.1f}"


def _bracket(bracket: tuple[float, float] | None) -> str:
    return f"[{bracket[0]:.9g}, {bracket[1]:.9g}]" if bracket else "none"


def _ratio(ours: Answer, peer: tuple[str, Answer] | None, *, named: bool) -> list[str]:
    if peer is None:
        return ["", ""]
    name, answer = peer
    times = answer.cpu / ours.cpu
    return [f"{name} {_seconds(answer.cpu)}" if named else _seconds(answer.cpu), f"{times:.3g}"]
