# SPDX-License-Identifier: Apache-2.0
"""Templates and static files: how a page is written, with everything escaped.

**Guarantee.** Autoescape is on for every template, and a name that a template uses and nobody gave
is an error. Only the SVG of `charts.py` and `privacy/svg.py`, which escape by themselves, is
written as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

__all__ = ["render", "static_file", "static_path"]

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_FILES = ("ask.js", "editor.js", "htmx.js", "site.css")
_YEAR = "public, max-age=31536000, immutable"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("discreet.server", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _contents() -> Mapping[str, bytes]:
    folder = files("discreet.server") / "static"
    return {name: (folder / name).read_bytes() for name in _FILES}


@cache
def _digest() -> str:
    """A short digest of all static files: it is in their paths, so that browsers may keep them."""
    return hashlib.sha256(b"".join(_contents().values())).hexdigest()[:12]


def static_path(name: str) -> str:
    """The path of a static file, which changes with its content."""
    assert name in _FILES
    return f"/static/{_digest()}/{name}"


def static_file(version: str, name: str) -> Response | None:
    """The static file of that name; None if there is none. Browsers keep it for a year."""
    if version != _digest() or name not in _FILES:
        return None
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(_contents()[name], media_type=kind, headers={"Cache-Control": _YEAR})


def render(
    request: Request, template: str, context: Mapping[str, object], *, status: int = 200
) -> HTMLResponse:
    """A page, written with a template."""
    form_token = context["form_token"]
    hidden = Markup('<input type="hidden" name="csrf" value="{}">').format(form_token)
    text = (
        _environment()
        .get_template(template)
        .render(
            **context,
            csrf=lambda: hidden,
            static=static_path,
            nonce=getattr(request.state, "nonce", ""),
            version=metadata.version("discreet"),
        )
    )
    return HTMLResponse(text, status)
