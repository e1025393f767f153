# SPDX-License-Identifier: Apache-2.0
"""The first page, the page of a data set, and the files that all pages load."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from discreet.server import texts
from discreet.server.datasets import Hosted
from discreet.server.made_up import made_up_rows
from discreet.server.pages.frame import Pages
from discreet.server.pages.render import static_file
from discreet.server.pages.views import BudgetView, example_questions, table_views
from discreet.server.store import Caller

__all__ = ["HomePages"]

#: Made-up rows on a page.
_ROWS = 12


class HomePages:
    """Where people find the data sets that they may use."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def home(self, request: Request) -> Response:
        """The data sets of whoever looks."""
        caller = self._pages.visitor(request)
        datasets = [] if caller is None else [
            {
                "name": hosted.name,
                "path": f"/d/{quote(hosted.name, safe='')}",
                "words": _words(hosted),
                "roles": sorted(caller.roles[hosted.name]),
            }
            for hosted in self._pages.asking.datasets.values()
            if caller.roles.get(hosted.name)
        ]  # fmt: skip
        return self._pages.show(request, "home.html", datasets=datasets)

    async def dataset(self, request: Request) -> Response:
        """A data set in plain words."""
        caller, hosted = self._pages.find_dataset(request, "read description")
        about = {"words": _words(hosted), "tables": table_views(hosted.data)}
        return self._pages.show(
            request,
            "dataset.html",
            hosted,
            "data",
            about=about,
            budget=budget_of(self._pages, caller, hosted),
            examples=example_questions(hosted.data),
        )

    async def made_up(self, request: Request) -> Response:
        """Rows that were made up from the description."""
        _, hosted = self._pages.find_dataset(request, "read description")
        tables = made_up_rows(hosted.data, _ROWS)
        shown = [{"name": name, "header": header, "rows": rows} for name, (header, rows) in tables.items()]
        return self._pages.show(request, "made_up.html", hosted, "data", tables=shown)

    async def static(self, request: Request) -> Response:
        """A file that pages load."""
        found = static_file(request.path_params["version"], request.path_params["name"])
        return found or PlainTextResponse("Not found", 404)


def budget_of(pages: Pages, caller: Caller, hosted: Hosted) -> BudgetView | None:
    """What remains for a person; None without a seat."""
    seat = pages.asking.seat(caller, hosted)
    return None if seat is None else BudgetView.of(hosted.session(seat).budget())


def _words(hosted: Hosted) -> str:
    data = hosted.data
    return texts.dataset_words(data.name, data.unit.protects, data.protect.at_most, data.version)
