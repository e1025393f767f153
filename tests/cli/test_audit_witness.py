# SPDX-License-Identifier: Apache-2.0
"""`discreet audit` shows for every refuted claim the event that refutes it, with its counts."""

from __future__ import annotations

from discreet import privacy
from tests.audit.test_witness import stored_rates


def test_every_claim_on_the_command_line_has_its_witness(discreet, tmp_path, monkeypatch):
    (tmp_path / "witnessed.py").write_text(
        "from discreet.audit import batched\nimport numpy as np\n"
        "leaks = batched(lambda bit, n: np.where(np.random.default_rng().random(n) < 0.95, bit, 1 - bit))\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = "audit witnessed:leaks --inputs '[0, 1]' --trials 4000 --claim eps=1 --claim mu=0.5 --claim eps=30"
    done = discreet(f"{line} --json")
    # 19 times as likely in truth: that 4,000 runs do not refute ε = 1 has a probability far below 1e-100
    assert [claim["refuted"] for claim in done.object["claims"]] == [True, True, False]
    for claim, guarantee in zip(
        done.object["claims"], (privacy.pure(1.0), privacy.gaussian(2.0)), strict=False
    ):
        (low, high), _ = stored_rates(claim["witness"])
        assert low > 1 - guarantee.tradeoff(high * (1 - 1e-9))
    assert done.object["claims"][2]["witness"] is None
    text = " ".join(discreet(line).words.split())
    assert text.count("the claim allows at most") == 2
