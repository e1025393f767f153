# SPDX-License-Identifier: Apache-2.0
"""A statement as Markdown; every figure is one of `Statement.to_dict`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from discreet.json_types import JsonFacts
from discreet.ledger.registry import missing_words
from discreet.ledger.registry import rows as registry_rows

__all__ = [
    "LISTED",
    "RELEASED_HEADS",
    "VERSION_HEADS",
    "bounds",
    "charges",
    "page",
    "percent",
    "track_words",
    "unit_words",
    "version_words",
    "who_words",
]  # fmt: skip

#: Releases that are listed; all of them are in the JSON.
LISTED = 500


def page(facts: JsonFacts, block: str = "") -> str:
    """The whole statement; `block` is what it was made with, for whoever verifies it."""
    sections: dict[str, Iterable[str]] = {
        "In plain words": _words(facts),
        "What is guaranteed": _claim(facts),
        "The budget and what remains": _budget(facts),
        "On what it rests": _layers(facts),
        "What was released": _release_lines(facts),
        "What is known of the data": _description(facts),
    }
    sections |= {
        part["title"]: [f"- {_safe(text)}" for text in part["sentences"]] for part in facts["reading"]
    }
    sections |= {"For the registry of deployments": _registry(facts), "The ledger": _ledger(facts)}
    name = f": {_safe(facts['dataset'])}" if facts["dataset"] else ""
    lines = [f"# Privacy statement{name}", "", f"**{_safe(facts['headline'])}**"]
    lines += [line for text in facts["cautions"] for line in ("", f"**Caution.** {_safe(text)}")]
    for title, body in sections.items():
        lines += ["", f"## {title}", "", *body]
    return "\n".join([*lines, *(["", block] if block else [])]) + "\n"


def percent(share: float) -> str:
    """A fraction of a limit, as text."""
    return f"{share:.1%}".replace("%", " %")


def charges(count: int) -> str:
    """So many charges."""
    return "1 charge" if count == 1 else f"{count} charges"


def unit_words(unit: JsonFacts) -> str:
    """Who is protected, and how many of them somebody says there are."""
    many = unit["number"]
    return str(unit["words"]) + (f" (number of {unit['protects']}s, asserted: {many})" if many else "")


def track_words(track: JsonFacts) -> tuple[str, str, str, str]:
    """Name, total, spent and left of one running total."""
    total = "no limit" if track["total"] is None else f"{track['total']:.6g}"
    spent = "∞" if track["spent"] is None else f"{track['spent']:.6g}"
    left = "closed" if track["closed"] else ("–" if track["left"] is None else f"{track['left']:.6g}")
    return track["name"], total, spent, left


def bounds(column: JsonFacts) -> str:
    """What is known of a column, in a few words."""
    facts = []
    if column.get("bounds"):
        low, high = column["bounds"]
        facts.append(f"{low} … {high}")
    if column.get("values"):
        facts.append(f"{column['values']} categories")
    return "; ".join(facts) or "–"


def _words(facts: JsonFacts) -> Iterator[str]:
    explanation = facts["words"]
    if explanation is None:
        yield "There is no limit, so there is no guarantee for the whole to put into words."
        return
    yield from (f"- {_safe(sentence)}" for sentence in explanation["sentences"])
    yield from ("", "What is not protected:", "")
    yield from (f"- {_safe(sentence)}" for sentence in explanation["not_protected"])


def _claim(facts: JsonFacts) -> Iterator[str]:
    yield from (facts["claim"]["why"], "")
    rows = [("guarantee", facts["claim"]["what"] or "–"), ("protects", unit_words(facts["unit"]))]
    yield from _table(("", ""), [*rows, ("theorem", facts["limit"]["theorem"])])
    if facts["curve"]:
        yield from ("", "The best attacker, at every false-alarm rate:", "")
        points = [(percent(at["false_alarm"]), _miss_rate(at)) for at in facts["curve"]]
        yield from _table(("false alarms", "misses at least"), points)


def _miss_rate(at: Mapping[str, float]) -> str:
    return f"{int(at['misses_at_least'] * 10_000) / 100:.2f} %"


def _budget(facts: JsonFacts) -> Iterator[str]:
    yield from (f"- {_safe(sentence)}" for sentence in facts["limit"]["says"])
    yield from ("", f"{percent(facts['budget']['spent_fraction'])} of the budget is spent.", "")
    yield from _table(("account", "total", "spent", "remaining"), map(track_words, facts["budget"]["lanes"]))
    people = facts["budget"]["shares"]
    if people:
        rows = [
            (who["name"], who["group"], percent(who["share"]), percent(who["spent_fraction"]))
            for who in people
        ]
        yield from ("", *_table(("who", "", "allocation", "spent (all, or own)"), rows))
    yield from (f"\n{_safe(note)}." for note in facts["budget"]["notes"])


def _layers(facts: JsonFacts) -> Iterator[str]:
    rows = [
        (layer["layer"] if at == 0 else "", line["what"], line["mark"], line["words"])
        for layer in facts["layers"]
        for at, line in enumerate(layer["lines"])
    ]
    yield from _table(("layer", "", "", ""), rows)


def _release_lines(facts: JsonFacts) -> Iterator[str]:
    lines = facts["released"]
    if not lines:
        yield "Nothing yet."
        return
    rows = [_charge(line) for line in lines[:LISTED]]
    yield from _table(RELEASED_HEADS, rows)
    if len(lines) > LISTED:
        yield f"\n{len(lines) - LISTED} more are in the JSON form of this statement."
    if "answer" in lines[0]:
        yield from ("", "Answers:", "")
        yield from (f"- #{line['number']}: {_cell(_Code(line['answer'] or ''))}" for line in lines[:LISTED])


def _charge(line: JsonFacts) -> tuple[str, ...]:
    when, used = line["time"][:16].replace("T", " "), percent(line["spent_fraction_after"])
    asked, run = _Code(line["question"]), _Code(line["guarantee"])
    who = (who_words(line), line["status"])
    return (f"#{line['number']}", when, asked, line["epsilon"], run, line["noise"], used, *who)


RELEASED_HEADS = (
    "", "time (UTC)", "question", "cost", "mechanism", "noise", "budget used", "who, why", "status",
)  # fmt: skip


def who_words(line: JsonFacts) -> str:
    """Who asked, and why."""
    return ", ".join(line[name] for name in ("analyst", "project", "purpose") if line[name]) or "–"


def _description(facts: JsonFacts) -> Iterator[str]:
    yield from _versions(facts["described"])
    described = facts["description"]
    if described is None:
        yield "No description was recorded, and none was given with this statement."
        return
    yield _safe(f"{described.get('name', '')} {described.get('version', '')}".strip()) or "–"
    for name, table in described.get("tables", {}).items():
        kind = "private" if table.get("private", True) else "public"
        columns = table.get("columns", {}).items()
        rows = [(key, column["kind"], bounds(column), column.get("source") or "–") for key, column in columns]
        yield from ("", _safe(f"Table {name} ({kind}):"), "")
        yield from _table(("column", "type", "known", "from"), rows)


def _versions(described: JsonFacts) -> Iterator[str]:
    if described["versions"]:
        yield from ("Recorded in the ledger, with the charges that were made under it:", "")
        yield from _table(VERSION_HEADS, map(version_words, described["versions"]))
        yield ""
    if described["not_recorded"]:
        yield from (f"Not recorded: the description of {charges(described['not_recorded'])}.", "")
    if described["given"] == "not recorded":
        yield from ("Given with this statement, and recorded with no charge:", "")


def version_words(version: JsonFacts) -> tuple[str, ...]:
    """One version of the description: which one, of what, whom it protects, how much, when, and
    what is new.
    """
    column = version["column"] or "each row"
    rows = "–" if version["at_most"] is None else str(version["at_most"])
    when = [str(version[end])[:16].replace("T", " ") for end in ("first", "last") if version[end]]
    return (
        version["digest"][:12],
        " ".join(str(version[name] or "") for name in ("dataset", "version")).strip() or "–",
        column,
        rows,
        str(version["charges"]),
        " to ".join(dict.fromkeys(when)) or "–",
        "; ".join(version["changed"]) or "–",
    )


VERSION_HEADS = ("description", "data set", "unit column", "at most", "charges", "from, to (UTC)", "changed")


def _registry(facts: JsonFacts) -> Iterator[str]:
    yield from _table(("field", "entry", "who says so"), registry_rows(facts["registry"]))
    yield from ("", _safe(missing_words(facts["registry"])))


def _ledger(facts: JsonFacts) -> Iterator[str]:
    ledger = facts["ledger"]
    rows = [
        ("rows", f"{ledger['rows']}, hash chain intact"),
        ("opened", ledger["opened"]),
        ("anchor", _Code(ledger["anchor"])),
        ("id", ledger["id"]),
        ("checked", f"{facts['made']}, by discreet {facts['making']['version']}"),
    ]
    yield from _table(("", ""), rows)
    if ledger["findings"]:
        yield from ("", "Findings:", "")
        yield from (f"- {finding['code']}: {_safe(finding['text'])}" for finding in ledger["findings"])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"


class _Code(str):
    """Shown as it was written."""

    __slots__ = ()


def _cell(words: str | None) -> str:
    """One cell: a question may hold line breaks, bars and anything else."""
    line = " ".join((words or "").split()).replace("|", "\\|")
    return f"`{line.replace('`', chr(39))}`" if isinstance(words, _Code) and line else _safe(line)


def _safe(words: str) -> str:
    """What somebody wrote into the ledger, in one line, so that it cannot become markup."""
    return (
        " ".join(words.split())
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace("[", "\\[")
        .replace("`", "\\`")
    )
