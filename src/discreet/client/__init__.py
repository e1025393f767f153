# SPDX-License-Identifier: Apache-2.0
"""A session on another machine: `dp.connect(url)` asks a server as `dp.Session` asks data.

    session = dp.connect("https://dp.example.org/d/visits")      # token= or DISCREET_TOKEN
    session.preview("SELECT COUNT(*) FROM visits", error="±50")
    session.sql("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.1)

opening.py   where a server is, and the token for it                             ◄ read this first
remote.py    RemoteSession: what can be asked
requests.py  requests with retries, and errors as they were raised over there

**Guarantee.** A question has its key before the first attempt, so that no retry pays twice. Errors
are those of the server, with their classes and codes.
"""

from __future__ import annotations

from discreet.client.opening import connect
from discreet.client.remote import RemoteSession

__all__ = ["RemoteSession", "connect"]
