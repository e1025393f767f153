# SPDX-License-Identifier: Apache-2.0
"""What may be counted: requests, previews, charges and refusals, in the text format of Prometheus.

**Guarantee.** Nothing here depends on rows: no running times, memory or row counts of draws, and no
counts of what was not drawn. What is counted follows from requests, descriptions and the ledger.
"""

from __future__ import annotations

import threading
from collections import Counter

__all__ = ["Metrics"]

_HELP = {
    "requests": "Requests by route and status.",
    "previews": "Questions that were compiled to show their cost.",
    "charges": "Questions that were charged.",
    "refusals": "Refusals by code.",
    "sign_ins": "Sign-ins by outcome.",
}


class Metrics:
    """Counters and gauges by name and labels."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def count(self, name: str, **labels: str) -> None:
        """One more."""
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += 1

    def text(self, gauges: dict[str, dict[str, float]]) -> str:
        """All counters, and the gauges that are given: by name, the value for each data set.

        >>> metrics = Metrics()
        >>> metrics.count("refusals", code="DP601")
        >>> print(metrics.text({}).splitlines()[-1])
        discreet_refusals_total{code="DP601"} 1
        """
        lines: list[str] = []
        with self._lock:
            counts = sorted(self._counts.items())
        for name, about in _HELP.items():
            lines += [f"# HELP discreet_{name}_total {about}", f"# TYPE discreet_{name}_total counter"]
            lines += [
                f"discreet_{name}_total{_labels(dict(labels))} {count}"
                for (counter, labels), count in counts
                if counter == name
            ]
        for name, values in sorted(gauges.items()):
            lines.append(f"# TYPE discreet_{name} gauge")
            lines += [
                f"discreet_{name}{_labels({'dataset': dataset})} {value:g}"
                for dataset, value in sorted(values.items())
            ]
        return "\n".join(line for line in lines if not _is_bare(line, lines)) + "\n"


def _is_bare(line: str, lines: list[str]) -> bool:
    """Whether a heading is that of a counter without counts."""
    words = line.split()
    return words[0] == "#" and not any(each.startswith(words[2]) for each in lines)


def _labels(labels: dict[str, str]) -> str:
    inner = ",".join(f'{name}="{_escape(value)}"' for name, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
