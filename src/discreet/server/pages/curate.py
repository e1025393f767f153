# SPDX-License-Identifier: Apache-2.0
"""The pages of a curator: the overview, and people in their seats.

**Guarantee.** A curator sees what was spent, by whom and for what, and no answer of anybody else.
What is changed here is changed by the functions of the API, which check the same roles and write
the same lines into the access log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet.errors import DiscreetError
from discreet.ledger import Statement
from discreet.ledger.costs import State
from discreet.ledger.overview import members
from discreet.server import texts
from discreet.server.charts import Chart, burn_down
from discreet.server.datasets import Hosted
from discreet.server.pages.frame import Pages, anchor_of
from discreet.server.pages.shown import address
from discreet.server.pages.views import BudgetView, ProblemView, layer_views, learning_view
from discreet.server.problems import status_of
from discreet.server.refusals import refuse
from discreet.server.routes import people as api
from discreet.server.store import Caller

__all__ = ["CuratorPages"]

#: Charges that the chart of the budget draws.
_POINTS = 400


class CuratorPages:
    """What a curator looks after."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    # --- overview -----------------------------------------------------------------------------------

    async def overview(self, request: Request) -> Response:
        """What could be learnt, what was spent, and who sits where."""
        _, hosted = self._pages.find_dataset(request, "change people")
        facts: dict[str, Any] = dict(statement_of(hosted).to_dict())
        return self._pages.show(
            request,
            "curate.html",
            hosted,
            "curate",
            learn=learning_view(facts["words"]),
            budget=whole_budget(hosted),
            burn=_burn_down(hosted),
            seats=self._seats(hosted),
            layers=layer_views(facts["layers"]),
            whole_anchor=anchor_of(hosted),
        )

    def _seats(self, hosted: Hosted) -> list[dict[str, Any]]:
        names = {person.id: person.name for person in self._pages.store.people()}
        shares = {
            name: float(share) for group, name, share in members(hosted.ledger.limit) if group == "analyst"
        }
        seats = []
        for seat in api.seat_bodies(self._pages.services, hosted):
            shown = BudgetView.of(hosted.session(seat.name).budget())
            seats.append(
                {
                    "name": seat.name,
                    "person": names.get(seat.person or ""),
                    "allocation": texts.allocation_words(shares.get(seat.name)),
                    "spent": shown.spent,
                    "state": shown.state,
                    "words": shown.words,
                }
            )
        return seats

    # --- seats and people -----------------------------------------------------------------------------

    async def seats(self, request: Request) -> Response:
        """Who sits where."""
        _, hosted = self._pages.find_dataset(request, "change people")
        return self._seats_page(request, hosted)

    async def change_seats(self, request: Request) -> Response:
        """Let somebody in, let them sit down, or end what they may do."""
        caller, hosted, form = await self._pages.form(request, "change people")
        changes: dict[str, Callable[[Caller, Hosted, FormData], dict[str, str] | None]] = {
            "add": self._add,
            "seat": self._seat,
            "empty": self._empty,
            "link": self._link,
            "remove": self._remove,
        }
        change = changes.get(_text(form, "do"))
        if change is None:
            raise refuse("malformed", detail="this button is not known.")
        try:
            link = change(caller, hosted, form)
        except DiscreetError as error:
            return self._seats_page(request, hosted, error=error)
        if link is None:
            return RedirectResponse(f"/d/{quote(hosted.name, safe='')}/curate/seats", 303)
        return self._seats_page(request, hosted, link=link)

    def _seats_page(
        self,
        request: Request,
        hosted: Hosted,
        *,
        error: DiscreetError | None = None,
        link: dict[str, str] | None = None,
    ) -> Response:
        seats = self._seats(hosted)
        empty = sum(seat["person"] is None for seat in seats)
        return self._pages.show(
            request,
            "seats.html",
            hosted,
            "seats",
            status=200 if error is None else status_of(error),
            seats=seats,
            people=self._people(hosted),
            caption=f"{texts.many(len(seats), 'seat')}, {empty} of them empty",
            error=None if error is None else ProblemView.of(error),
            link=None
            if link is None
            else {**link, "address": f"{address(self._pages, request)}/enter?once={link['link']}"},
        )

    def _people(self, hosted: Hosted) -> list[dict[str, Any]]:
        roles = {person.id: self._pages.store.roles(person.id) for person in self._pages.store.people()}
        return [
            {"id": person.id, "name": person.name, "roles": sorted(roles[person.id][hosted.name])}
            for person in self._pages.store.people()
            if roles[person.id].get(hosted.name)
        ]

    def _add(self, caller: Caller, hosted: Hosted, form: FormData) -> dict[str, str]:
        name = _text(form, "name").strip()
        if not 1 <= len(name) <= 100 or not name.isprintable():
            raise refuse("malformed", detail="a name has 1 to 100 letters.")
        body = api.NewPersonBody(
            name=name,
            dataset=hosted.name,
            role=_text(form, "role") or "analyst",
            seat=_text(form, "seat") or None,
        )
        added = api.add_person(body, caller, self._pages.services)
        return {"person": added["name"], "link": added["link"]}

    def _seat(self, caller: Caller, hosted: Hosted, form: FormData) -> None:
        person = self._person_here(hosted, form)
        body = api.SeatingBody(person=person)
        api.put_in_seat(hosted.name, _text(form, "seat"), body, caller, self._pages.services)

    def _empty(self, caller: Caller, hosted: Hosted, form: FormData) -> None:
        body = api.SeatingBody(person=None)
        api.put_in_seat(hosted.name, _text(form, "seat"), body, caller, self._pages.services)

    def _link(self, caller: Caller, hosted: Hosted, form: FormData) -> dict[str, str]:
        """A new link for somebody who has none any more."""
        person = self._person_here(hosted, form)
        found = self._pages.store.person(person)
        assert found is not None
        link = self._pages.services.people.make_link(person, minutes=24 * 60)
        self._pages.store.log("link made", caller.person.id, hosted.name, to=person)
        return {"person": found.name, "link": link}

    def _remove(self, caller: Caller, hosted: Hosted, form: FormData) -> None:
        api.remove_person(self._person_here(hosted, form), caller, self._pages.services)

    def _person_here(self, hosted: Hosted, form: FormData) -> str:
        """Somebody with a role in this very data set."""
        person = _text(form, "person")
        if not self._pages.store.roles(person).get(hosted.name):
            raise refuse("not found")
        return person


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


def statement_of(hosted: Hosted) -> Statement:
    """The statement of a data set; refused on a damaged ledger (DP602)."""
    return Statement.of(hosted.ledger, hosted.data.public_description())


def whole_budget(hosted: Hosted) -> BudgetView:
    """What all together have spent."""
    return BudgetView.of(hosted.ledger.limit.budget(hosted.ledger.spent))


def _burn_down(hosted: Hosted) -> Chart | None:
    """What remains after each charge, from the ledger alone."""
    times: list[float] = []
    spent: list[float] = []
    limit = hosted.ledger.limit
    for entry in hosted.ledger.entries():
        if entry.kind in {"charged", "reserved"}:
            times.append(datetime.fromisoformat(entry.time).timestamp())
            spent.append(limit.budget(State.from_dict(entry.state)).spent_fraction)
    if not times:
        return None
    step = max(1, len(times) // _POINTS)
    shown = sorted({*range(0, len(times), step), len(times) - 1})
    first = datetime.fromtimestamp(times[0], UTC).strftime("%d %b %Y")
    now = max(datetime.now(UTC).timestamp(), times[-1])
    chart = burn_down(
        [times[at] for at in shown], [spent[at] for at in shown], now=now, labels=(first, "now")
    )
    words = f"{chart.words.rpartition(' after ')[0]} after {texts.many(len(times), 'charge')}."
    return Chart(chart.title, words, chart.svg)
