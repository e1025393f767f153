# SPDX-License-Identifier: Apache-2.0
"""What all pages share: who looks, what they may see, and how a refusal is shown.

**Guarantee.** A page of a data set is written for somebody whose roles permit it, and for nobody
else: what one may not see looks like what does not exist. A request that changes something has
passed `Pages.own_form`. The text of an error that nobody expected is not shown, because it
may quote data.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet.errors import DiscreetError, LedgerDamaged
from discreet.server import texts
from discreet.server.datasets import Hosted
from discreet.server.pages.render import render
from discreet.server.pages.views import ProblemView
from discreet.server.people import PERMISSIONS
from discreet.server.problems import note_failure, status_of
from discreet.server.refusals import refuse
from discreet.server.services import Services
from discreet.server.store import LONGEST, Caller

__all__ = ["Handler", "Pages", "Visitor", "is_fragment"]

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page, as its top shows it."""

    id: str
    name: str
    roles: tuple[str, ...]


class Pages:
    """The pages of a server: its data sets, and the sessions of browsers."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.asking, self.store, self.config = services.asking, services.store, services.config

    # --- who looks ----------------------------------------------------------------------------------

    def visitor(self, request: Request) -> Caller | None:
        """Who has signed in; None for everybody else."""
        return self.services.sign_in.caller(self._session(request))

    def caller(self, request: Request) -> Caller:
        """Who has signed in; nobody else comes further."""
        caller = self.visitor(request)
        if caller is None:
            raise refuse("not signed in")
        return caller

    def _session(self, request: Request) -> str | None:
        return request.cookies.get(self.services.sign_in.cookie)

    def begin(self, response: Response, session: str) -> None:
        """Give a browser its session."""
        self._set_cookie(response, self.services.sign_in.cookie, session, int(LONGEST.total_seconds()))

    def end(self, request: Request, response: Response) -> None:
        """Sign out."""
        if session := self._session(request):
            self.services.sign_in.end(session)
        secure, name = self.config.secure, self.services.sign_in.cookie
        response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")

    def _set_cookie(self, response: Response, name: str, text: str, seconds: int | None) -> None:
        response.set_cookie(
            name, text, max_age=seconds, path="/", secure=self.config.secure, httponly=True, samesite="lax"
        )

    # --- forms --------------------------------------------------------------------------------------

    def _form_owner(self, request: Request) -> str | None:
        """The cookie on which the token of a form hangs: the session, or one for forms alone."""
        return self._session(request) or request.cookies.get(self._form_cookie)

    @property
    def _form_cookie(self) -> str:
        return f"{self.services.sign_in.cookie}-form"

    async def own_form(self, request: Request) -> FormData:
        """The fields of a form that a page of this server sent; any other is refused (DP853)."""
        form = await request.form(max_files=0, max_fields=2000, max_part_size=2**18)
        token, owner = form.get("csrf"), self._form_owner(request)
        self.services.sign_in.check_form(
            owner or "",
            token if isinstance(token, str) and owner else "",
            origin=request.headers.get("origin"),
            fetch_site=request.headers.get("sec-fetch-site"),
            host=request.headers.get("host", ""),
        )
        return form

    def find_dataset(self, request: Request, action: str) -> tuple[Caller, Hosted]:
        """Who has signed in, and the data set of the path, if they may do this in it."""
        caller = self.caller(request)
        return caller, self.asking.dataset(caller, request.path_params["dataset"], action)

    async def form(self, request: Request, action: str) -> tuple[Caller, Hosted, FormData]:
        """The same, and the fields of a form that a page of this server sent."""
        caller, hosted = self.find_dataset(request, action)
        return caller, hosted, await self.own_form(request)

    # --- what is shown ------------------------------------------------------------------------------

    def show(
        self,
        request: Request,
        template: str,
        hosted: Hosted | None = None,
        here: str = "",
        *,
        status: int = 200,
        **context: object,
    ) -> Response:
        """A page, with the navigation of a data set around it."""
        caller, name = self.visitor(request), "" if hosted is None else hosted.name
        owner = self._form_owner(request) or secrets.token_urlsafe(32)
        frame = {
            "visitor": None if caller is None else _visitor(caller, name),
            "dataset": name,
            "nav": [] if hosted is None else self._navigation(caller, name),
            "here": here,
            "banners": [] if hosted is None or not is_damaged(hosted) else [texts.LEDGER_DAMAGED],
            "anchor": "" if hosted is None else anchor_of(hosted),
            "form_token": self.services.sign_in.form_token(owner),
        }
        response = render(request, template, {**frame, **context}, status=status)
        if self._form_owner(request) is None:
            self._set_cookie(response, self._form_cookie, owner, None)
        return response

    def _navigation(self, caller: Caller | None, dataset: str) -> list[dict[str, str]]:
        base = f"/d/{quote(dataset, safe='')}"
        return [
            {"key": key, "path": f"{base}{path}", "title": title}
            for key, path, title, action in texts.NAVIGATION
            if caller is not None and caller.may(dataset, *PERMISSIONS[action])
        ]

    def page(self, handler: Handler) -> Handler:
        """A handler whose refusals are shown as pages."""

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except DiscreetError as error:
                return self._refusal(request, error)
            except Exception as failure:  # noqa: BLE001 - its text may quote data, and is not shown
                return self._refusal(request, note_failure(failure))

        return answer

    def _refusal(self, request: Request, error: DiscreetError) -> Response:
        self.services.metrics.count("refusals", code=error.code)
        status = status_of(error)
        if status == 401 and request.method == "GET":
            came_from = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/enter?{urlencode({'next': came_from})}", 303)
        response = self.show(
            request,
            "problem.html",
            status=status,
            error=ProblemView.of(error, "Nothing here" if status == 404 else "Refused"),
        )
        if retry := getattr(error, "retry", None):
            response.headers["Retry-After"] = str(retry)
        return response


def _visitor(caller: Caller, dataset: str) -> Visitor:
    granted = caller.roles.get(dataset, frozenset())
    roles = tuple(role for role in ("analyst", "curator", "auditor") if role in granted)
    return Visitor(caller.person.id, caller.person.name, roles)


def is_fragment(request: Request) -> bool:
    """Whether a script of the page asks for a part of it."""
    return request.headers.get("hx-request") == "true"


def is_damaged(hosted: Hosted) -> bool:
    """Whether what is stored in the ledger is not what was written."""
    try:
        hosted.ledger.anchor()
    except LedgerDamaged:
        return True
    return False


def anchor_of(hosted: Hosted) -> str:
    """The hash of the last row; "" where it cannot be read."""
    try:
        return hosted.ledger.anchor()
    except DiscreetError:
        return ""
