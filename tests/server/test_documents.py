# SPDX-License-Identifier: Apache-2.0
"""The pages about servers: the reference is that of the code, the settings are read, the tutorial runs."""

from __future__ import annotations

import re
import runpy

import pytest

from discreet.server.config import read_config
from tests.chance import no_chance
from tests.docs.blocks import blocks, files
from tests.house.project import DOCS, ROOT, read
from tests.server.running import config_for, serving

pytestmark = no_chance("answers are drawn in the process of an engine, and any will do")


def test_the_reference_is_that_of_the_routes():
    script = runpy.run_path(str(ROOT / "scripts" / "http_reference.py"))
    assert read(DOCS / "reference" / "http.md") == script["page"](), "run  python scripts/http_reference.py"


def test_the_settings_of_the_page_are_read(tmp_path):
    text = files(read(DOCS / "how-to" / "run-a-server.md"))["serve.toml"]
    (tmp_path / "serve.toml").write_text(text, encoding="utf-8")
    config = read_config(tmp_path / "serve.toml")
    assert (config.datasets[0].seats, config.engine.memory, config.showing.tick) == (20, 4 * 2**30, 0.25)
    (tmp_path / "serve.toml").write_text(text.replace("port", "prot"), encoding="utf-8")
    with pytest.raises(Exception, match="DP858"):
        read_config(tmp_path / "serve.toml")


def test_the_tutorial_runs_from_top_to_bottom(tmp_path, capsys):
    from discreet import data

    text = read(DOCS / "tutorials" / "share-a-table.md")
    code = "\n".join(block.text for block in blocks(text, "text") if not block.text.startswith("$"))
    config = config_for(tmp_path, data.path("adult.toml"), seats=1, single=True)
    with serving(config, {}) as running:
        token = running.add("ana", seat="seat 1", dataset="adult")
        code = re.sub(r'"http://[^"]*"', f'"{running.url}/d/adult"', code).replace("dscr_Zx0…", token)
        exec(compile(code, "tutorial", "exec"), {"print": print})
        assert running.services.asking.datasets["adult"].ledger.verify().intact
    assert "Female" in capsys.readouterr().out
