# SPDX-License-Identifier: Apache-2.0
"""The accountant against its peers: ε, time, memory, and who reports less than the truth.

    python benchmarks/accounting.py                     # everything, measured in one run (half an hour)
    python benchmarks/accounting.py --only 4a           # the cases whose key matches a pattern
    python benchmarks/accounting.py --no-peers          # discreet alone
    python benchmarks/accounting.py --write             # and keep the tables in benchmarks/RESULTS.md

Each (accountant, case) is asked in a process of its own, in the environment of that library, which is
made on first use. discreet is measured cold: a fresh process for every repeat. The peers repeat inside
one process, which is kinder to them. What fails or takes too long is printed as such.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import environments  # noqa: E402
import report  # noqa: E402
from cases import CASES, SCAN, Case  # noqa: E402
from results import OURS, PLD, Answer, Result  # noqa: E402

LIMIT = 60.0  # seconds of CPU for one computation
PATIENCE = 5 * LIMIT  # for the certified bracket, which takes no part in the race
REPEATS = 3
SCAN_EVERY = 5  # of so many rows of the scan one is asked of the peer too
SCAN_LIMIT = 20.0  # seconds of CPU
CACHE = environments.HOME / "accounting.json"

# accountant: (environment, module that asks it)
PEERS = {
    "dp-accounting PLD": ("dp-accounting", "ask_dp_accounting"),
    "dp-accounting PLD (event)": ("dp-accounting", "ask_dp_accounting"),
    "dp-accounting RDP": ("dp-accounting", "ask_dp_accounting"),
    "prv-accountant": ("prv-accountant", "ask_prv_accountant"),
    "opacus RDP": ("opacus", "ask_opacus"),
    "opacus PRV": ("opacus", "ask_opacus"),
    "opacus GDP": ("opacus", "ask_opacus"),
    "autodp": ("autodp", "ask_autodp"),
}


def main() -> None:
    """Ask, print the tables, and keep them if told to."""
    options = _options()
    cache = _read_cache() if options.cached else {}
    if options.scan:
        lines = list(_scan(cache, peers=not options.no_peers))
        print("\n".join(lines))
        if options.write:
            report.replace_section(HERE / "RESULTS.md", "Accounting: the scan", lines)
        return
    cases = [case for case in CASES if re.search(options.only, case.key)]
    peers = {name: peer for name, peer in PEERS.items() if re.search(options.peers, name)}
    peers = {} if options.no_peers else peers
    results: list[Result] = []
    # An interrupted run still prints what it has.
    with suppress(KeyboardInterrupt), _progress(len(cases) * (len(peers) + 2)) as step:
        for case in cases:
            results.append(_ask_all(case, peers, cache, step))
            if options.cached:
                CACHE.write_text(json.dumps(cache, indent=1), encoding="utf-8")
    lines = list(_tables(results, cached=options.cached))
    print("\n".join(lines))
    if options.write:
        section = "Accounting: some cases" if options.only else "Accounting"
        report.replace_section(HERE / "RESULTS.md", section, lines)


def _ask_all(
    case: Case, peers: dict[str, tuple[str, str]], cache: dict, step: Callable[[str], None]
) -> Result:
    result = Result(case)
    step(f"{case.key}: certificate")
    certificate = _run("discreet", "ask_discreet", "discreet certificate", case, 1, limit=PATIENCE)
    if "value" in certificate:
        result.bracket = tuple(certificate["value"])
    step(f"{case.key}: {OURS}")
    result.answers[OURS] = _cold(case)
    for name, (environment, module) in peers.items():
        step(f"{case.key}: {name}")
        key = f"{name} | {case.key} | {hashlib.sha256(repr(case).encode()).hexdigest()[:12]}"
        if key not in cache:
            cache[key] = _run(environment, module, name, case, REPEATS)
        if "unsupported" not in cache[key]:
            result.answers[name] = _answer(cache[key])
    return result


def _cold(case: Case) -> Answer:
    """The best of a few fresh processes, so that nothing is remembered from one to the next."""
    answers = [_answer(_run("discreet", "ask_discreet", OURS, case, 1))]
    while len(answers) < REPEATS and answers[0].given and answers[0].cpu < 1:
        answers.append(_answer(_run("discreet", "ask_discreet", OURS, case, 1)))
    return min(answers, key=lambda answer: answer.cpu if answer.given else math.inf)


def _run(
    environment: str, module: str, accountant: str, case: Case, repeats: int, *, limit: float = LIMIT
) -> dict:
    """One process, one question; what goes wrong comes back as {"error": …}."""
    try:
        python = environments.python_of(environment)
    except (environments.CannotInstall, OSError) as error:
        return {"error": str(error)}
    command = [str(python), str(HERE / "peers" / "measure.py"), module, accountant, case.key]
    command += ["--limit", str(limit), "--repeats", str(repeats)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=5 * limit)
    except subprocess.TimeoutExpired:
        return {"error": f"time-out, {5 * limit:.0f} s of wall time"}  # stuck inside compiled code
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"error": reason[:160]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def _answer(report_of_one: dict) -> Answer:
    if "error" in report_of_one:
        return Answer(trouble=report_of_one["error"].replace("|", "/"))
    return Answer(**report_of_one)


def _tables(results: list[Result], *, cached: bool) -> Iterator[str]:
    arguments = shlex.join(sys.argv[1:])
    yield from report.heading(f"python benchmarks/accounting.py {arguments}".strip())
    yield ""
    peers = (environments.REQUIREMENTS[name][-1][0] for name in dict.fromkeys(e for e, _ in PEERS.values()))
    versions = ", ".join([*peers, *environments.NUMBERS])
    yield f"Peers: {versions}{'; answers of an earlier run were reused' if cached else ''}."
    yield f"CPU seconds after import, best of {REPEATS} or more (once if above 1 s); cold is the first call of a"
    yield "process, and discreet is never measured warm; MB is the growth of the peak;"
    yield f"time-out after {LIMIT:.0f} s of CPU. **UNDER** is below the certified lower bound: not private."
    yield ""
    yield from report.answers_table(results)
    yield ""
    if any(len(result.answers) > 1 for result in results):
        yield "How many times faster discreet is, cold, than its peers:"
        yield ""
        yield from report.ratios_table(results)
        yield ""
    yield from report.shortcomings_list(results)


def _scan(cache: dict, *, peers: bool) -> Iterator[str]:
    """The certified bracket of DP-SGD over a grid of noises, rates, steps and δ; some rows also by the peer."""
    yield from report.heading(f"python benchmarks/accounting.py {shlex.join(sys.argv[1:])}")
    results = [_scanned(case, cache, peer=peers and at % SCAN_EVERY == 0) for at, case in enumerate(SCAN)]
    yield from report.scan_tables(results, SCAN_LIMIT)


def _scanned(case: Case, cache: dict, *, peer: bool) -> Result:
    from discreet import privacy

    start, part = time.process_time(), case.single
    bound = (part.count * privacy.gaussian(part.scale).sampled(part.rate)).bound(delta=case.delta)
    result = Result(case, bracket=(bound.lower, bound.upper))
    result.answers[OURS] = Answer(value=bound.upper, cpu=time.process_time() - start)
    if peer:
        key = f"{PLD} | {case.key} | {SCAN_LIMIT}"
        if key not in cache:
            cache[key] = _run("dp-accounting", "ask_dp_accounting", PLD, case, 1, limit=SCAN_LIMIT)
            CACHE.write_text(json.dumps(cache, indent=1), encoding="utf-8")
        result.answers[PLD] = _answer(cache[key])
    return result


def _read_cache() -> dict:
    return json.loads(CACHE.read_text(encoding="utf-8")) if CACHE.exists() else {}


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar where rich is installed, a line per question where it is not."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        done = iter(range(total))
        yield lambda text: bar.update(task, description=text, completed=next(done))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose key matches this pattern")
    parser.add_argument(
        "--peers", default="", metavar="PATTERN", help="peers whose name matches this pattern"
    )
    parser.add_argument("--scan", action="store_true", help="brackets of DP-SGD over a whole grid, instead")
    parser.add_argument("--no-peers", action="store_true", help="measure discreet alone")
    parser.add_argument("--cached", action="store_true", help="reuse the peers' answers of an earlier run")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
