# SPDX-License-Identifier: Apache-2.0
"""Every response has the headers that keep a page to itself."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from discreet.server.headers import SecurityHeaders


async def show(request):
    return PlainTextResponse(request.state.nonce)


async def keep(request):
    return PlainTextResponse("", headers={"Cache-Control": "public, max-age=300"})


def client(**options):
    app = Starlette(routes=[Route("/", show), Route("/kept", keep)])
    return TestClient(SecurityHeaders(app, **options))


def policy(response):
    parts = response.headers["content-security-policy"].split("; ")
    return {name: values for name, *values in (part.split() for part in parts)}


def test_nothing_of_another_origin_and_nothing_inline_is_let_in():
    rules = policy(client().get("/"))
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == ["'self'"]
    assert rules["frame-ancestors"] == ["'none'"]
    assert rules["base-uri"] == ["'none'"]
    assert rules["form-action"] == ["'self'"]
    assert not re.search(r"unsafe|\*|https?:", str(rules))


def test_the_nonce_is_that_of_the_response_and_never_used_twice():
    first, second = client().get("/"), client().get("/")
    assert f"'nonce-{first.text}'" in policy(first)["style-src"]
    assert first.text != second.text
    assert len(first.text) >= 22


@pytest.mark.parametrize("path", ["/", "/nowhere"])
def test_every_response_has_them(path):
    headers = client().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert "strict-transport-security" not in headers


def test_a_response_may_be_kept_if_it_says_so():
    assert client().get("/kept").headers["cache-control"] == "public, max-age=300"


def test_a_provider_may_get_a_form_and_https_stays():
    response = client(form_targets=["https://login.example.org"], https=True).get("/")
    assert policy(response)["form-action"] == ["'self'", "https://login.example.org"]
    assert "max-age=31536000" in response.headers["strict-transport-security"]
