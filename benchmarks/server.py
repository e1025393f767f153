# SPDX-License-Identifier: Apache-2.0
"""A server under load: questions per second, waiting times, and processor time per request.

    python benchmarks/server.py                  # 20 analysts, 10 questions each, ticks of 1 ms
    python benchmarks/server.py 5 4              # 5 analysts, 4 questions each

Runs a server on loopback in a process of its own. The ticks are short, so that what is measured is work and not waiting.
Waiting times depend on what else the machine does; processor time per request depends on it less. Prints the load.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from discreet.server.config import ShowingSettings
from tests.server.running import config_for, serving, write_visits

SQL = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    people, questions = (int(word) for word in (sys.argv[1:] or ("20", "10")))
    with tempfile.TemporaryDirectory() as folder:
        description = write_visits(Path(folder), 5000, epsilon=1000.0)
        config = config_for(Path(folder), description, seats=people, showing=ShowingSettings(tick=0.001))
        with serving(config, {f"person {n}": f"seat {n + 1}" for n in range(people)}) as running:
            ((watcher, _),) = running.services.asking.datasets["visits"].engines
            running.ask("person 0", "warm", SQL, epsilon=0.01)
            times: list[float] = []
            before, mine, begun = cpu_of(watcher.pid), time.process_time(), time.perf_counter()

            def ask(name: str) -> None:
                with running.client(name) as client:
                    for number in range(questions):
                        started = time.perf_counter()
                        headers = {"Idempotency-Key": f"k{number}", "Prefer": "wait=60"}
                        body = {"sql": SQL, "epsilon": 0.01}
                        response = client.post("/v1/datasets/visits/questions", json=body, headers=headers)
                        assert response.status_code == 201, response.text
                        times.append(time.perf_counter() - started)

            threads = [threading.Thread(target=ask, args=(f"person {n}",)) for n in range(people)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wall = time.perf_counter() - begun
            engine, web = cpu_of(watcher.pid) - before, time.process_time() - mine
            count = len(times)
            assert running.charges == count + 1
            assert running.ledger.verify().intact
            facts = {
                "questions": count,
                "per second": round(count / wall, 1),
                "p50 ms": round(1000 * statistics.median(times)),
                "p99 ms": round(1000 * sorted(times)[int(0.99 * (count - 1))]),
                "engine CPU ms each": round(1000 * engine / count, 1),
                "web and clients CPU ms each": round(1000 * web / count, 1),
                "load": [round(each, 1) for each in os.getloadavg()],
            }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
