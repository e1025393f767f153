# SPDX-License-Identifier: Apache-2.0
"""A file is whole or not there, and what goes wrong after paying says so."""

from __future__ import annotations

import pytest

from discreet.cli import files
from discreet.errors import BadParameter
from tests.cli import visits


def test_writing_that_stops_in_the_middle_leaves_the_old_file(tmp_path):
    place = tmp_path / "wards.csv"
    place.write_text("old", encoding="utf-8")

    def half(path):
        path.write_text("ha", encoding="utf-8")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_whole(place, half)
    assert place.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["wards.csv"]


def test_a_finished_file_takes_the_place_of_the_old_one(tmp_path):
    place = tmp_path / "wards.csv"
    place.write_text("old", encoding="utf-8")
    files.write_text(place, "new")
    assert place.read_text(encoding="utf-8") == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["wards.csv"]


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(BadParameter, match="DP102"):
        files.write_text(tmp_path / "nowhere" / "wards.csv", "new")
    with pytest.raises(BadParameter, match="DP102"):
        files.folder(str(tmp_path / "file" / "below") if (tmp_path / "file").write_text("x") else "")


@pytest.mark.parametrize("json", ["", " --json"])
def test_an_answer_that_was_paid_for_is_shown_whatever_happens_to_its_file(
    discreet, tmp_path, monkeypatch, json
):
    monkeypatch.chdir(tmp_path)
    visits.make(tmp_path)

    def full(answer, place):
        raise files.unwritable_error(place, "the disk is full")

    monkeypatch.setattr("discreet.cli.query.write_answer", full)
    done = discreet(f"query {visits.COUNTS} --data visits.toml --epsilon 0.1 --out wards.csv{json}")
    assert done.code == 2
    assert "count_lo" in done.out
    assert "kept in the ledger" in (done.out if json else done.err)
    assert "Spent  nothing" not in done.err


def test_a_release_that_cannot_be_written_says_what_was_spent(discreet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visits.make(tmp_path)

    def full(answer, place):
        def write(path):
            raise OSError(28, "No space left on device")

        return write

    monkeypatch.setattr("discreet.cli.release.writer", full)
    done = discreet("release release.toml --out tables")
    assert (done.code, done.err[:5]) == (2, "DP102")
    assert "running it again costs nothing more" in done.err
    assert list((tmp_path / "tables").iterdir()) == []


def test_files_that_belong_together_appear_together(tmp_path):
    places = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    places[1].write_text("old", encoding="utf-8")

    def stops(path):
        path.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_together(
            {places[0]: files.text_writer("new"), places[1]: files.text_writer("new"), places[2]: stops}
        )
    assert [path.name for path in tmp_path.iterdir()] == ["b.csv"]
    assert places[1].read_text(encoding="utf-8") == "old"
    files.write_together({place: files.text_writer("new") for place in places})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "b.csv", "c.csv"]
    assert {place.read_text(encoding="utf-8") for place in places} == {"new"}
