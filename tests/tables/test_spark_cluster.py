# SPDX-License-Identifier: Apache-2.0
"""Spark beyond one process: two workers, one that dies, and a session that speaks to a server."""

from __future__ import annotations

import shutil

import pytest

from tests.chance import no_chance

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
]
ANY_NOISE = "at this ε the noise is far below a half"


@no_chance(ANY_NOISE)
def test_two_workers_answer_without_handing_a_row_to_python(tmp_path):
    from tests.tables import cluster

    said = cluster.run("rows", tmp_path)
    assert said.pop("workers") == 2
    for came in said.values():
        assert came["right"]
        # twenty groups, and what says whether a value lies in its bounds
        assert 20 <= came["rows"] <= 80


@no_chance(ANY_NOISE)
def test_a_question_in_which_a_worker_dies_is_answered_or_refused_and_paid_once(tmp_path):
    from tests.tables import cluster

    said = cluster.run("killed", tmp_path)
    assert said["while stored"]["killed"] == 1
    for came in said.values():
        assert came["came"] in {"right", "DP801 what this answer costs"}
        assert came["again"] in {"right", "DP801 nothing"}
        assert (came["again"] == "right") == (came["came"] == "right")
        # repeating it is free
        assert came["charges"] == came["rows"]
        assert came["epsilon"] == pytest.approx(1e6)
    assert said["after that"]["came"].startswith("DP801"), (
        "its stored rows are lost, and are never computed again"
    )
    assert said["later"]["came"] == "right"


@no_chance(ANY_NOISE)
def test_a_session_of_spark_connect_is_like_any_other(tmp_path):
    pytest.importorskip("grpc")
    from tests.tables import cluster

    said = cluster.run("connect", tmp_path)
    assert said == {"right": True, "people": 100, "current": True, "left": []}
