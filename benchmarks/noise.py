# SPDX-License-Identifier: Apache-2.0
"""Exact noise against the noise of other libraries: samples per second, and the time of a choice among a million.

    python benchmarks/noise.py                # discreet and its peers, measured in one run (a few minutes)
    python benchmarks/noise.py --no-peers     # discreet and numpy alone
    python benchmarks/noise.py --write        # and keep the tables in benchmarks/RESULTS.md

Each library runs in a process and an environment of its own, which is made on first use. numpy's generators are
here as the floor of what arithmetic costs: their noise is neither exact nor private.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import environments  # noqa: E402
import report  # noqa: E402

PEERS = ("opendp", "diffprivlib", "tmlt")
LAWS = {  # ours: theirs, by (library, name); the first is the one with a target
    "discrete Laplace": [
        ("opendp", "discrete Laplace"),
        ("diffprivlib", "geometric (floats inside)"),
        ("tmlt", "discrete Laplace"),
        ("numpy", "float Laplace (unsafe)"),
    ],
    "rounded Gaussian": [("opendp", "Gaussian on a fine grid"), ("numpy", "float Gaussian (unsafe)")],
    "discrete Gaussian": [
        ("opendp", "discrete Gaussian"),
        ("diffprivlib", "discrete Gaussian"),
        ("tmlt", "discrete Gaussian"),
        ("numpy", "float Gaussian (unsafe)"),
    ],
    "Laplace mechanism": [
        ("opendp", "Laplace on a fine grid"),
        ("numpy", "zeros + float Laplace (unsafe)"),
    ],
    "Gaussian mechanism": [
        ("opendp", "Gaussian on a fine grid"),
        ("numpy", "zeros + float Gaussian (unsafe)"),
    ],
}
LEAST_RATE = {"discrete Laplace": 10e6, "rounded Gaussian": 10e6, "discrete Gaussian": 4e6}
LEAST_BY_SCALE = {
    "Laplace": 30e6,
    "Gaussian": 20e6,
}  # of a mechanism on a vector of 1e6 floats, at every scale
TIMES_OPENDP, TIMES_NUMPY, ONE_SAMPLE, CHOICE = 20.0, 0.25, 30e-6, 0.3


def main() -> None:
    """Measure, print the tables, and keep them if told to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-peers", action="store_true", help="discreet and numpy alone")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    options = parser.parse_args()
    libraries = ("discreet", "numpy", *(() if options.no_peers else PEERS))
    found = {library: found for library in libraries if (found := measured(library))}
    command = "python benchmarks/noise.py" + (" --no-peers" if options.no_peers else "")
    lines = [*report.heading(command), "", *tables(found), "", *verdicts(found)]
    print("\n".join(lines))
    if options.write:
        report.replace_section(HERE / "RESULTS.md", "Noise", lines)


def measured(library: str) -> dict | None:
    """What `draw.py` prints for a library, or None where it cannot be installed or does not run."""
    print(f"measuring {library} …", file=sys.stderr, flush=True)
    home = "discreet" if library == "numpy" else library
    try:
        python = environments.python_of(home)
    except environments.CannotInstall as reason:
        print(f"{library} is left out: {reason}", file=sys.stderr)
        return None
    script = [str(python), str(HERE / "peers" / "draw.py"), library]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{library} failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def tables(found: dict[str, dict]) -> Iterator[str]:
    yield "Samples per second of CPU time, scale 10; in brackets how many times faster discreet is."
    yield ""
    yield "| law | library | one | 1e3 | 1e6 |"
    yield "|---|---|--:|--:|--:|"
    for law, rivals in LAWS.items():
        ours = found["discreet"]["rates"][law]
        yield f"| **{law}** | **discreet** | " + " | ".join(f"**{rate:.3g}**" for rate in ours) + " |"
        for library, name in rivals:
            if library in found:
                theirs = found[library]["rates"][name]
                cells = [f"{rate:.3g} (×{own / rate:.3g})" for own, rate in zip(ours, theirs, strict=True)]
                yield f"| | {library}: {name} | " + " | ".join(cells) + " |"
    yield ""
    yield "`dp.Laplace` and `dp.Gaussian` with `sensitivity=1` on a vector of 1,000,000 floats, numbers per second of CPU time."
    yield ""
    yield "| mechanism | scale | numbers per second |"
    yield "|---|--:|--:|"
    for name, rate in _by_scale(found):
        mechanism, scale = name.split(", scale ")
        yield f"| {mechanism} | {scale} | {rate:.3g} |"
    yield ""
    yield "A choice among 1,000,000 candidates, seconds of CPU time."
    yield ""
    yield "| library | choice | seconds |"
    yield "|---|---|--:|"
    for library, results in found.items():
        for name, spent in results["choices"].items():
            yield f"| {library} | {name} | {spent:.3g} |"


def verdicts(found: dict[str, dict]) -> Iterator[str]:
    """Each target, and whether this run met it."""
    ours = found["discreet"]["rates"]
    for law, least in LEAST_RATE.items():
        yield _verdict(f"{law}, 1e6: {ours[law][2]:.3g}/s", f"{least:.0e}/s", met=ours[law][2] >= least)
        one = 1 / ours[law][0]
        yield _verdict(f"{law}, one: {one * 1e6:.3g} µs", "30 µs", met=one <= ONE_SAMPLE)
        if "opendp" in found:
            times = ours[law][2] / found["opendp"]["rates"][LAWS[law][0][1]][2]
            yield _verdict(f"{law}, 1e6: {times:.3g} times opendp", "20 times", met=times >= TIMES_OPENDP)
    share = ours["discrete Laplace"][2] / found["numpy"]["rates"]["float Laplace (unsafe)"][2]
    yield _verdict(
        f"discrete Laplace: {share:.3g} of numpy's float rate", "a quarter", met=share >= TIMES_NUMPY
    )
    for mechanism, least in LEAST_BY_SCALE.items():
        rate = min(rate for name, rate in _by_scale(found) if name.startswith(mechanism))
        yield _verdict(
            f"{mechanism} mechanism, slowest scale: {rate:.3g}/s", f"{least:.0e}/s", met=rate >= least
        )
    slowest = max(found["discreet"]["choices"].values())
    yield _verdict(f"slowest choice among 1e6: {slowest:.3g} s", "0.3 s", met=slowest <= CHOICE)


def _by_scale(found: dict[str, dict]) -> list[tuple[str, float]]:
    return [(name, rates[2]) for name, rates in found["discreet"]["rates"].items() if ", scale " in name]


def _verdict(what: str, target: str, *, met: bool) -> str:
    return f"- {'met' if met else '**missed**'}: {what} (target {target})"


if __name__ == "__main__":
    main()
