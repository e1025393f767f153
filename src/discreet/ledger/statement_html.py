# SPDX-License-Identifier: Apache-2.0
"""A statement as one HTML page that needs nothing else: no script, no font, no picture from
elsewhere.

**Guarantee.** Whatever stands in the ledger is shown as text and never becomes markup. Marks are
words and shapes, not only colours; tables have captions, pictures have words; it prints, and
follows a dark screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from html import escape

from discreet.json_types import JsonFacts
from discreet.ledger.layers import ASSERTED, ENFORCED, NOT_COVERED
from discreet.ledger.registry import missing_words
from discreet.ledger.registry import rows as registry_rows
from discreet.ledger.stated_guarantee import StatedGuarantee
from discreet.ledger.statement_markdown import (
    LISTED,
    RELEASED_HEADS,
    VERSION_HEADS,
    bounds,
    charges,
    percent,
    track_words,
    unit_words,
    version_words,
    who_words,
)
from discreet.privacy.svg import hundred_squares_svg, tradeoff_svg

__all__ = ["body", "page"]

_MARKS = {ENFORCED: ("●", "enforced"), ASSERTED: ("◐", "asserted"), NOT_COVERED: ("○", "open")}
_RIGHT = " class='number'"
_STYLE = """
:root{--ink:#1b1f24;--paper:#fff;--soft:#586069;--line:#d0d7de;--wash:#f6f8fa;--good:#116329;--fair:#7d4e00;--bad:#a40e26}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--soft:#9da7b3;--line:#30363d;--wash:#161b22;
--good:#56d364;--fair:#e3b341;--bad:#ff7b72}}
:root{color-scheme:light dark}
@media print{:root{color-scheme:light}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
.statement{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 4rem}
.statement h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}
.statement h2{font-size:1.15rem;margin:2.5rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
.statement .guarantee{font-size:1.35rem;line-height:1.35;margin:.75rem 0;font-weight:600}
.statement h2.plain{border:0;padding:0;margin-top:0}
.statement .caution{border-left:.3rem solid var(--bad);background:var(--wash);padding:.5rem .75rem;margin:.75rem 0}
.statement .soft{color:var(--soft)}
.statement .side{display:flex;gap:2rem;flex-wrap:wrap;align-items:flex-start}
.statement .side>div{flex:1 1 22rem}
.statement .scroll{overflow-x:auto}
.statement table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.5rem 0}
.statement caption{text-align:left;color:var(--soft);padding:.25rem 0}
.statement th,.statement td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;border-bottom:1px solid var(--line)}
.statement thead th{color:var(--soft);font-weight:600}
.statement tbody th{font-weight:600}
.statement .number{white-space:nowrap;text-align:right;font-variant-numeric:tabular-nums}
.statement code{font:.85em/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.statement .enforced{color:var(--good)}.statement .asserted{color:var(--fair)}.statement .open{color:var(--bad)}
.statement .mark{white-space:nowrap;font-weight:600}
.statement .bar{background:var(--wash);border:1px solid var(--line);height:.75rem;border-radius:.4rem;overflow:hidden;max-width:30rem}
.statement .bar span{display:block;height:100%;background:#0072b2}
.statement .layer{background:var(--wash);border:1px solid var(--line);border-radius:.5rem;padding:.25rem 1rem .5rem;margin:.5rem auto}
.statement .layer h3{font-size:1rem;margin:.5rem 0 .25rem}
.statement th[scope=row]{width:11rem}.statement td.mark{width:13.5rem}
@media (max-width:40rem){.statement .layer{width:100%!important}.statement .layer th,.statement .layer td{display:block;width:auto;border:0;
padding:.1rem 0}.statement .layer tr{display:block;border-bottom:1px solid var(--line);padding:.35rem 0}.statement th[scope=row]{width:auto}}
.statement li,.statement p{overflow-wrap:anywhere}
@media print{@page{margin:15mm}body{font-size:10pt}.statement{max-width:none;padding:0}.statement h2,.statement h3{break-after:avoid}
.statement tr,.statement li,.statement figure{break-inside:avoid}.statement .layer{width:100%!important;padding:0 .5rem}
.statement h2{margin-top:1.25rem}.statement table{font-size:.85rem}.statement .scroll{overflow:visible}
.statement .bar span{print-color-adjust:exact}}
"""


def page(facts: JsonFacts, claim: StatedGuarantee, block: str = "") -> str:
    """A whole document; `block` is what it was made with, for whoever verifies it."""
    name = escape(f"Privacy statement: {facts['dataset']}" if facts["dataset"] else "Privacy statement")
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{name}</title>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"</head><body>{body(facts, claim)}{block}</body></html>\n"
    )


def body(facts: JsonFacts, claim: StatedGuarantee) -> str:
    """The statement without the document around it, for a notebook or another page."""
    parts = [
        _top(facts, claim),
        _section("What is guaranteed", _claim(facts, claim)),
        _section("The budget and what remains", _budget(facts)),
        _section("On what it rests", _layers(facts)),
        _section("What was released", _release_table(facts)),
        _section("What is known of the data", _description(facts)),
        *(_section(part["title"], _list(part["sentences"])) for part in facts["reading"]),
        _section("For the registry of deployments", _registry(facts)),
        _section("The ledger", _ledger(facts)),
    ]
    return f"<style>{_STYLE}</style><main class='statement'>{''.join(parts)}</main>"


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def _top(facts: JsonFacts, claim: StatedGuarantee) -> str:
    name = escape(f": {facts['dataset']}" if facts["dataset"] else "")
    made = f"<p class='soft'>Made {escape(facts['made'][:16].replace('T', ' '))} UTC by discreet {escape(facts['making']['version'])}.</p>"
    warned = "".join(
        f"<p class='caution'><strong>Caution.</strong> {escape(text)}</p>" for text in facts["cautions"]
    )
    head = f"<header><h1>Privacy statement{name}</h1><p class='guarantee'>{escape(facts['headline'])}</p>{warned}{made}</header>"
    explanation = facts["words"]
    if explanation is None or claim.guarantee is None:
        return head + "<p>There is no limit, so there is no guarantee for the whole to put into words.</p>"
    counted = math.ceil(100 * Fraction(explanation["guess"]["right"]))
    words = f"At most {counted} of 100 guesses are right. A coin toss gets 50 right, above the line."
    squares = f"<figure style='margin:0'>{hundred_squares_svg(counted, words)}<figcaption class='soft'>{escape(words)}</figcaption></figure>"
    sentences = f"<h2 class='plain'>In plain words</h2>{_list(explanation['sentences'])}"
    limits = f"<h2 class='plain'>What is not protected</h2>{_list(explanation['not_protected'])}"
    return f"{head}<section class='side'><div style='flex:0 1 12rem'>{squares}</div><div>{sentences}{limits}</div></section>"


def _claim(facts: JsonFacts, claim: StatedGuarantee) -> str:
    rows = [
        ("guarantee", facts["claim"]["what"] or "–"),
        ("flavour", facts["claim"]["flavour"]),
        ("protects", unit_words(facts["unit"])),
        ("theorem", facts["limit"]["theorem"]),
    ]
    claimed = f"<p>{escape(facts['claim']['why'])}</p>{_pairs(rows)}"
    if claim.guarantee is None:
        return claimed
    points = [
        (percent(at["false_alarm"]), f"{math.floor(at['misses_at_least'] * 10_000) / 100:.2f} %")
        for at in facts["curve"]
    ]
    table = _table(
        "The attacker's least miss rate", ("false alarms", "misses at least"), points, numbers={0, 1}
    )
    curve = tradeoff_svg({"": claim.guarantee}, size=320)
    return f"{claimed}<div class='side'><div style='flex:0 1 20rem'>{curve}</div><div>{table}</div></div>"


def _budget(facts: JsonFacts) -> str:
    spent = facts["budget"]["spent_fraction"]
    words = f"{percent(spent)} of the budget is spent"
    bar = f"<p>{words}.</p><div class='bar' role='img' aria-label='{words}'><span style='width:{100 * spent:.1f}%'></span></div>"
    tracks = [track_words(track) for track in facts["budget"]["lanes"]]
    table = _table("Running totals", ("account", "total", "spent", "remaining"), tracks, numbers={1, 2, 3})
    people = facts["budget"]["shares"]
    if people:
        rows = [
            (who["name"], who["group"], percent(who["share"]), percent(who["spent_fraction"]))
            for who in people
        ]
        table += _table("Allocations", ("who", "", "allocation", "spent (all, or own)"), rows, numbers={2, 3})
    notes = _list([f"{note}." for note in facts["budget"]["notes"]]) if facts["budget"]["notes"] else ""
    return f"{_list(facts['limit']['says'])}{bar}{table}{notes}"


def _layers(facts: JsonFacts) -> str:
    """The pyramid: each layer a little wider than the one above, because it carries it."""
    legend = " · ".join(
        f"<span class='mark {kind}'>{sign} {escape(mark)}</span>" for mark, (sign, kind) in _MARKS.items()
    )
    blocks = []
    for at, layer in enumerate(facts["layers"]):
        rows = "".join(_layer_row(line) for line in layer["lines"])
        width = 84 + 4 * at
        blocks.append(
            f"<div class='layer' style='width:min(100%,{width}%);box-sizing:border-box'><h3>{escape(layer['layer'])}</h3>"
            f"<table><tbody>{rows}</tbody></table></div>"
        )
    return f"<p class='soft'>{legend}</p>{''.join(blocks)}"


def _layer_row(line: Mapping[str, str]) -> str:
    sign, kind = _MARKS[line["mark"]]
    return (
        f"<tr><th scope='row'>{escape(line['what'])}</th>"
        f"<td class='mark {kind}'>{sign} {escape(line['mark'])}</td><td>{escape(line['words'])}</td></tr>"
    )


def _release_table(facts: JsonFacts) -> str:
    lines = facts["released"]
    if not lines:
        return "<p>Nothing yet.</p>"
    with_answers = "answer" in lines[0]
    head = list(RELEASED_HEADS)
    rows = [_released_row(line, with_answers=with_answers) for line in lines[:LISTED]]
    more = (
        f"<p>{len(lines) - LISTED} more are in the JSON form of this statement.</p>"
        if len(lines) > LISTED
        else ""
    )
    caption = f"{charges(len(lines))}, in order"
    return _table(caption, head + ["answer"] * with_answers, rows, numbers={6}, code={2, 4, 9}) + more


def _released_row(line: JsonFacts, *, with_answers: bool) -> list[str]:
    shown = [f"#{line['number']}", line["time"][:16].replace("T", " "), line["question"] or "–"]
    shown += [line["epsilon"], line["guarantee"], line["noise"], percent(line["spent_fraction_after"])]
    shown += [who_words(line), line["status"]]
    return [*shown, *([line["answer"] or "–"] if with_answers else [])]


def _description(facts: JsonFacts) -> str:
    described, parts = facts["description"], list(_versions(facts["described"]))
    if described is None:
        return "".join(parts) + "<p>No description was recorded, and none was given with this statement.</p>"
    parts += [f"<p>{escape(' '.join(str(described.get(key) or '') for key in ('name', 'version')))}</p>"]
    for name, table in described.get("tables", {}).items():
        kind = "private" if table.get("private", True) else "public"
        columns = table.get("columns", {}).items()
        rows = [(key, column["kind"], bounds(column), column.get("source") or "–") for key, column in columns]
        parts.append(_table(f"Table {name} ({kind})", ("column", "type", "known", "from"), rows))
    return "".join(parts)


def _versions(described: JsonFacts) -> Iterator[str]:
    if described["versions"]:
        rows = map(version_words, described["versions"])
        yield _table("Recorded in the ledger, with the charges made under it", VERSION_HEADS, rows, code={0})
    if described["not_recorded"]:
        yield f"<p>Not recorded: the description of {charges(described['not_recorded'])}.</p>"
    if described["given"] == "not recorded":
        yield "<p>Given with this statement, and recorded with no charge:</p>"


def _registry(facts: JsonFacts) -> str:
    caption = "In the fields of the registry; what the ledger cannot know is for a person to say"
    table = _table(caption, ("field", "entry", "who says so"), registry_rows(facts["registry"]))
    return f"{table}<p>{escape(missing_words(facts['registry']))}</p>"


def _ledger(facts: JsonFacts) -> str:
    ledger = facts["ledger"]
    rows = [
        ("rows", f"{ledger['rows']}, hash chain intact"),
        ("opened", ledger["opened"]),
        ("anchor", ledger["anchor"]),
        ("id", ledger["id"]),
    ]
    words = "Whoever keeps the anchor can tell later whether the ledger was put back, cut off or changed."
    findings = [f"{finding['code']}: {finding['text']}" for finding in ledger["findings"]]
    return (
        f"{_pairs(rows)}<p class='soft'>{words}</p>{_list(findings) if findings else '<p>No findings.</p>'}"
    )


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td style='overflow-wrap:anywhere'>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><tbody>{cells}</tbody></table>"


def _table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: set[int] | None = None,
    code: set[int] | None = None,
) -> str:
    """A table with a caption; `numbers` are set to the right, `code` as it was written."""
    right = numbers or set()
    named = "".join(
        f"<th scope='col'{_RIGHT if at in right else ''}>{escape(name)}</th>" for at, name in enumerate(head)
    )
    filled = "".join(f"<tr>{_cells(row, right, code or set())}</tr>" for row in rows)
    return (
        f"<div class='scroll'><table><caption>{escape(caption)}</caption><thead><tr>{named}</tr></thead>"
        f"<tbody>{filled}</tbody></table></div>"
    )


def _cells(row: Sequence[str], numbers: set[int], code: set[int]) -> str:
    cells = []
    for at, cell in enumerate(row):
        text = f"<code>{escape(cell)}</code>" if at in code else escape(cell)
        cells.append(f"<td{_RIGHT if at in numbers else ''}>{text}</td>")
    return "".join(cells)
