# SPDX-License-Identifier: Apache-2.0
"""A server holds data and their ledger; people who may not see rows ask it questions.

    discreet serve adult.toml           # for one person on this machine
    discreet serve serve.toml           # for an organisation

app.py make_app: everything put together ◄ read this first config.py the settings asking.py a
question, from the request to the tick engine.py the process that alone opens data, and its watcher
datasets.py descriptions, ledgers and engines by name line.py who is next · ticks.py when something
is shown · rates.py how often people.py permissions · store.py, database.py what is remembered ·
tokens.py, signin.py problems.py errors as responses · refusals.py the refusals of a server ·
formats.py files headers.py what is checked and set for every request · metrics.py what may be
counted routes/ the API · pages/, templates/, static/ the pages · charts.py, texts.py what they show

**Guarantee.** Every answer was charged to the ledger before it was drawn. The process that talks to
people holds no rows. Before a charge, statuses and texts depend on the request, the description and
the ledger; after it, the status is always a success, and outcomes are shown on ticks.

What is not covered: the operator of the machine, who can read the data; and how long questions
take, beyond the tick on which they are shown.
"""

from __future__ import annotations

from discreet.server.config import ServerConfig, config_of, read_config

__all__ = ["ServerConfig", "config_of", "read_config"]
