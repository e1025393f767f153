# SPDX-License-Identifier: Apache-2.0
"""The pages of the server, in HTML.

**Guarantee.** A page shows what its twin of the API would show to the same person: both call the
same functions, which check the same roles. No file here opens data or charges a ledger.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from discreet.server.pages.answers import AnswerPages
from discreet.server.pages.ask import AskPages
from discreet.server.pages.audit import AuditPages
from discreet.server.pages.curate import CuratorPages
from discreet.server.pages.enter import EnterPages
from discreet.server.pages.frame import Handler, Pages
from discreet.server.pages.home import HomePages
from discreet.server.services import Services

__all__ = ["page_routes"]


def page_routes(services: Services) -> list[BaseRoute]:
    """The routes of all pages."""
    pages = Pages(services)
    enter, home, ask, answers = EnterPages(pages), HomePages(pages), AskPages(pages), AnswerPages(pages)
    curate, audit = CuratorPages(pages), AuditPages(pages)
    table: list[tuple[str, str, Handler]] = [
        ("GET", "/static/{version}/{name}", home.static),
        ("GET", "/", home.home),
        ("GET", "/enter", enter.show),
        ("POST", "/enter", enter.use_token),
        ("POST", "/enter/once", enter.use_link),
        ("POST", "/leave", enter.leave),
        ("GET", "/d/{dataset}", home.dataset),
        ("GET", "/d/{dataset}/made-up", home.made_up),
        ("GET", "/d/{dataset}/ask", ask.show),
        ("POST", "/d/{dataset}/ask", ask.ask),
        ("POST", "/d/{dataset}/plan", ask.plan),
        ("GET", "/d/{dataset}/answers", answers.overview),
        ("POST", "/d/{dataset}/answers", answers.download_selected),
        ("GET", "/d/{dataset}/answers/{key}/file.{kind}", answers.download),
        ("GET", "/d/{dataset}/answers/{key}", answers.show),
        ("GET", "/d/{dataset}/curate", curate.overview),
        ("GET", "/d/{dataset}/curate/seats", curate.seats),
        ("POST", "/d/{dataset}/curate/seats", curate.change_seats),
        ("GET", "/d/{dataset}/ledger", audit.ledger),
        ("POST", "/d/{dataset}/ledger", audit.verify),
        ("GET", "/d/{dataset}/ledger/export", audit.export),
        ("GET", "/d/{dataset}/statement", audit.statement),
        ("GET", "/d/{dataset}/statement.{kind}", audit.statement_file),
        ("GET", "/d/{dataset}/log", audit.log),
    ]
    return [Route(path, pages.page(handler), methods=[method]) for method, path, handler in table]
