# SPDX-License-Identifier: Apache-2.0
"""Signing in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet.server import texts
from discreet.server.pages.frame import Pages
from discreet.server.refusals import ServerRefusal

__all__ = ["EnterPages"]


class EnterPages:
    """The pages on which sessions begin and end."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    async def show(self, request: Request) -> Response:
        """The form for a token; or, with a one-time link, the button that uses it up.

        The link is not used up by being opened, because programs that look at links open them, too.
        """
        if once := request.query_params.get("once"):
            return self._pages.show(request, "once.html", once=once)
        return self._form(request, "", request.query_params.get("next", "/"))

    async def use_token(self, request: Request) -> Response:
        """Sign in with a token."""
        form = await self._pages.own_form(request)
        return self._enter(request, str(form.get("token", "")).strip(), str(form.get("next", "/")))

    async def use_link(self, request: Request) -> Response:
        """Sign in with a one-time link."""
        form = await self._pages.own_form(request)
        return self._enter(request, str(form.get("once", "")), "/")

    def _enter(self, request: Request, secret: str, goal: str) -> Response:
        try:
            session = self._pages.services.sign_in.enter(secret, request.state.address)
        except ServerRefusal as refusal:
            if refusal.status != 401:
                raise
            return self._form(request, texts.NOT_LET_IN, goal, status=403)
        response = RedirectResponse(_own_path(goal), 303)
        # The id of a session that the browser had ends with it: nobody else can have planted the new one.
        self._pages.end(request, response)
        self._pages.begin(response, session)
        return response

    async def leave(self, request: Request) -> Response:
        """Sign out."""
        await self._pages.own_form(request)
        response = RedirectResponse("/enter", 303)
        self._pages.end(request, response)
        return response

    def _form(self, request: Request, refused: str, goal: str, status: int = 200) -> Response:
        return self._pages.show(
            request, "enter.html", status=status, refused=refused, next=_own_path(goal), provider=""
        )


def _own_path(goal: str) -> str:
    r"""A path of this server; whatever could lead elsewhere is the first page.

    >>> _own_path("/d/adult/ask?sql=1"), _own_path("//evil.example"), _own_path("/\\\\evil.example")
    ('/d/adult/ask?sql=1', '/', '/')
    """
    is_own = goal.startswith("/") and goal[1:2] not in {"/", "\\"} and goal.isprintable() and len(goal) < 2000
    return goal if is_own else "/"
