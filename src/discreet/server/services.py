# SPDX-License-Identifier: Apache-2.0
"""What the routes and the pages of a server share: `request.app.state.services`."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.server.asking import Asking
from discreet.server.config import ServerConfig
from discreet.server.metrics import Metrics
from discreet.server.people import People
from discreet.server.rates import OpenStreams, RateLimiter
from discreet.server.signin import SignIn
from discreet.server.store import ServerStore

__all__ = ["Services"]


@dataclass(frozen=True)
class Services:
    """Everything that a request may need."""

    config: ServerConfig
    store: ServerStore
    people: People
    sign_in: SignIn
    asking: Asking
    metrics: Metrics
    preview_rate: RateLimiter
    question_rate: RateLimiter
    streams: OpenStreams
