# SPDX-License-Identifier: Apache-2.0
"""One server for the tests of a file."""

from __future__ import annotations

import pytest

from tests.server.running import config_for, serving, write_visits


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with serving(config_for(folder, write_visits(folder))) as server:
        server.folder = folder
        yield server
