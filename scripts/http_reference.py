# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/http.md from the routes of the server; a test holds the page to it.

python scripts/http_reference.py
"""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path
from typing import Any

from discreet.server.app import make_app
from discreet.server.config import ServerConfig

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "http.md"
HEAD = """\
# HTTP

For whoever writes a client of a server. Every route is here, with what it takes and gives. Python has
[`dp.connect`](session.md#a-session-with-a-server), which does all of it.

All routes under `/v1` need `Authorization: Bearer dscr_…`, but for `/v1` itself and `/v1/sign-in`. Bodies are
`application/json`; unknown fields are refused. The schema is at `/openapi.json` of every server.

A question needs an `Idempotency-Key` of 1 to 128 letters, digits, dots, dashes and underscores: a
[charge](glossary.md#charge) is made once for each key, however often the question arrives. The answer is shown on a
tick; `Prefer: wait=5` waits five seconds for it at most. Before a charge, statuses are those of the table below. After
it, the status is always 200, 201 or 202, and `state` in the body says how the question ended.

| status | meaning |
|---|---|
| 200 | the answer was there already; this request paid nothing |
| 201 | this request paid |
| 202 | not shown yet: ask again with the same key, or look at `Location` |
| 400, 413, 415, 406 | the request cannot be read, is too large, or of the wrong type: DP851, DP854 |
| 401, 403, 404 | nobody is signed in, or this is not permitted: DP852, DP853 |
| 409 | over the budget: DP601, with `fits` where a smaller cost fits |
| 422 | the question is refused: DP1xx to DP7xx |
| 429, 503 | busy: DP855, with `Retry-After` |
| 500 | a fault of the server: DP859, with a number for its log |

Refusals are `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `code`, `why`, `fix` and `spent`.
Answers are JSON, or `text/csv`, `application/vnd.apache.parquet` or `application/vnd.apache.arrow.stream` by `Accept`.
In CSV, a text that a spreadsheet would take for a formula gets a leading `'`.
"""
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def page() -> str:
    """The text of the page."""
    with tempfile.TemporaryDirectory() as folder:
        app = make_app(ServerConfig(Path(folder), ()))
        schema = app.openapi()
        app.state.services.store.close()
    models = schema["components"]["schemas"]
    parts, bodies = [HEAD], dict[str, None]()
    tags: dict[str, list[str]] = {}
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            if not path.startswith(("/v1", "/healthz", "/readyz", "/metrics")):
                continue
            body = _name(_content(route.get("requestBody", {})))
            shown = _name(_content(route["responses"].get("200") or route["responses"].get("201", {})))
            bodies |= dict.fromkeys(name for name in (body, shown) if name)
            words = " ".join(route["description"].split())
            links = [f"takes {_link(body)}" if body else "", f"gives {_link(shown)}" if shown else ""]
            facts = "; ".join(link for link in links if link)
            text = f"**`{method.upper()} {path}`**{f' ({facts})' if facts else ''}: {words}"
            tags.setdefault(route["tags"][0], []).append(
                "\n".join(textwrap.wrap(text, 118, break_on_hyphens=False))
            )
    for tag, routes in tags.items():
        parts.append(f"## {tag[0].upper()}{tag[1:]}\n\n" + "\n\n".join(routes) + "\n")
    parts.append("## Bodies\n\nFields with a question mark may be left out, or null.\n")
    parts += [_body(name, models[name]) for name in bodies]
    return "\n".join(parts)


def _content(part: dict[str, Any]) -> dict[str, Any]:
    return part.get("content", {}).get("application/json", {}).get("schema", {})


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _body(name: str, model: dict[str, Any]) -> str:
    about = "\n".join(
        textwrap.wrap(" ".join(model.get("description", "").split()), 118, break_on_hyphens=False)
    )
    rows = ["| field | type |", "|---|---|"]
    for field, schema in model.get("properties", {}).items():
        optional = "" if field in model.get("required", []) else "?"
        rows.append(f"| `{field}`{optional} | {_kind(schema)} |")
    return f"### {name}\n\n{about}\n\n" + "\n".join(rows) + "\n"


def _kind(schema: dict[str, Any]) -> str:
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    return " or ".join(_one_kind(one) for one in options)


def _one_kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _name(schema)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return "object"
    return KINDS.get(str(schema.get("type")), "any value")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
