# SPDX-License-Identifier: Apache-2.0
"""The settings of a server, and requests to it."""

from __future__ import annotations

from tests.mistakes.mistakes import Mistake, check_mistake, mistakes

SETTINGS = "from pathlib import Path\nfrom discreet.server.config import read_config\n"
WRITE = "Path('serve.toml').write_text('''[server]\n{}\n[[dataset]]\ndescription = \"visits.toml\"''')\n"
READ = "read_config('serve.toml').check_binding()"


def settings(*lines: str) -> str:
    """A program that reads these settings."""
    return SETTINGS + WRITE.format("\n".join(lines)) + READ


@mistakes(
    Mistake(
        settings('host = "0.0.0.0"'),
        "DP858",
        'behind_proxy = ["10.0.0.0/8"]',
        settings('host = "0.0.0.0"', 'behind_proxy = ["10.0.0.0/8"]'),
    ),
    Mistake(settings("prot = 80"), "DP858", "port = ", settings("port = 80")),
    Mistake(
        "from discreet.server.formats import choose_format\nchoose_format('image/png')",
        "DP854",
        "text/csv",
        "from discreet.server.formats import choose_format\nchoose_format('text/csv')",
    ),
    Mistake(
        "from discreet.client.opening import parse_url\nparse_url('dp.example.org/d/visits')",
        "DP857",
        "https://dp.example.org/d/visits",
        "from discreet.client.opening import parse_url\nparse_url('https://dp.example.org/d/visits')",
    ),
)
def test_a_slip_with_a_server_is_answered_and_its_fix_works(mistake, here):
    check_mistake(mistake, here)
