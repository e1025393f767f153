# SPDX-License-Identifier: Apache-2.0
"""A line of a text file is a record, whatever it holds: it changes no other row, and nothing else decides its own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.tables.algebra.sums import BoundedSums, OnceScheme, Private
from discreet.tables.ask.columns import bounded_column
from discreet.tables.data.readers import lines, schema, texts
from discreet.tables.open import column, each, open  # noqa: A004 - as it is called

pytest.importorskip("pyarrow")

NAMES = ["id", "n", "s"]
NOTHING = [None, None, None]
#: Pieces that lines are made of: everything that some reader takes for a sign.
PIECES = [
    b'"',
    b'""',
    b",",
    b"\t",
    b"\r",
    b"\\",
    b'\\"',
    b"'",
    b"#",
    b"a",
    b"7",
    b" ",
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
]
CELLS = st.lists(st.sampled_from([b'"', b'""', b"a", b"\xff", b"\r"]), max_size=5).map(b"".join)
LINES = st.one_of(
    st.lists(CELLS, min_size=3, max_size=3).map(b",".join),
    st.lists(CELLS, min_size=3, max_size=3).map(b"\t".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join),
    st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")),
)
#: Lines that once changed how others were read.
NASTY = [
    b'7,"never closed',
    b'7,1,"',
    b'"',
    b'"""',
    b'",,"',
    b"\x00",
    b"7,\x001,a",
    b"\xff\xfe7,1,a",
    b"\xef\xbb\xbf7,1,a",
    b"7\r7,1,a",
    b"\r",
    b"7",
    b"7,1,a,too,much",
    b"7,1," + b"x" * 5_000_000,
    b"7,1," + b'"' * 100_001,
    b'7,1,"ends in\\"',
    b"# no comment",
    b"NULL,NaN,infinity",
    b"7,99999999999999999999,a",
    b'7,1,5" pipe, 6" long',
    b'7,1,5"pi"pe',
    b'7,1,"5"pipe',
    b'7,1,pi"pe"',
    b'7,1,"5""pi"pe"',
    b"",
]


def record(line: bytes, delimiter: bytes, count: int) -> list[str | None] | None:
    """The row of one line, as slowly as the rules are written."""
    line = line.removesuffix(b"\r")
    if not line:
        return None
    cells, rest = [], line
    while True:
        cell, ended, rest = quoted(rest, delimiter) if rest[:1] == b'"' else rest.partition(delimiter)
        if cell is None or (b'"' in cell and not cell.startswith(b'"')):
            return [None] * count
        cells.append(cell.removeprefix(b'"') if cell.startswith(b'"') else cell)
        if not ended:
            break
    return [text(cell) for cell in cells] if len(cells) == count else [None] * count


def quoted(line: bytes, delimiter: bytes) -> tuple[bytes | None, bytes, bytes]:
    """A cell that begins with a quote (which it keeps, as a mark), and what comes after it; None if it is not well formed."""
    cell, place = b'"', 1
    while True:
        end = line.find(b'"', place)
        if end < 0:
            return None, b"", b""
        cell += line[place:end]
        after = line[end + 1 : end + 2]
        if after == b'"':
            cell, place = cell + b'"', end + 2
            continue
        return (cell, after, line[end + 2 :]) if after in {b"", delimiter} else (None, b"", b"")


def text(cell: bytes) -> str | None:
    try:
        return cell.decode() or None
    except UnicodeDecodeError:
        return None


def read(block: bytes, delimiter: str = ",") -> list[list[str | None]]:
    return [list(row.values()) for row in lines.rows(block, delimiter, NAMES).to_pylist()]


@given(
    st.lists(LINES, max_size=6),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([",", "\t"]),
    st.booleans(),
)
def test_every_line_is_read_as_if_it_were_alone(found, end, delimiter, ended):
    block = end.join(found) + (end if ended else b"")
    rows = [record(line, delimiter.encode(), len(NAMES)) for line in block.split(b"\n")]
    assert read(block, delimiter) == [row for row in rows if row is not None]


@pytest.mark.parametrize("line", NASTY, ids=lambda line: repr(line[:20]))
def test_known_lines_are_read_by_the_rules(line):
    row = record(line, b",", len(NAMES))
    assert read(line) == ([] if row is None else [row])


@given(st.lists(LINES, min_size=1, max_size=5), LINES, st.data())
def test_a_line_changes_its_own_row_alone(found, other, data):
    place = data.draw(st.integers(0, len(found) - 1))
    parts = [b"\n".join(part) for part in (found[:place], found[place + 1 :])]
    for line in (found[place], other):
        whole = read(b"\n".join([*found[:place], line, *found[place + 1 :]]))
        assert whole == read(parts[0]) + read(line) + read(parts[1])
        assert len(read(line)) <= 1


@pytest.mark.parametrize("line", NASTY, ids=lambda line: repr(line[:20]))
@pytest.mark.parametrize("size", [1, 7, 1 << 22])
def test_a_file_is_read_alike_however_it_is_cut_into_blocks(line, size, tmp_path, monkeypatch):
    if size == 1 and len(line) > 10**6:
        size = 1000
    monkeypatch.setattr(lines, "_BLOCK", size)
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,n,s\n1,2,a\n" + line + b"\n3,4,b")
    rows = [list(row.values()) for row in lines.read(path, ",", NAMES).to_pylist()]
    assert rows == [["1", "2", "a"], *read(line), ["3", "4", "b"]]


def test_ordinary_files_are_read_as_everybody_expects():
    told = b'1,2,plain\r\n2,"1,000","say ""x"", twice"\r\n3,,""\r\n4,"",caf\xc3\xa9\r\n\r\n'
    assert read(told) == [
        ["1", "2", "plain"],
        ["2", "1,000", 'say "x", twice'],
        ["3", None, None],
        ["4", None, "café"],
    ]


def test_a_record_over_several_lines_is_no_record_of_anybody():
    told = b'1,2,a\n7,1,"first\n8,1,second\nthird"\n9,1,b\n'
    assert read(told) == [["1", "2", "a"], NOTHING, ["8", "1", "second"], NOTHING, ["9", "1", "b"]]


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_no_line_changes_what_is_counted_of_others(engine, ending, tmp_path):
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    told = {"n": column("integer", bounds=(0, 9)), "id": column("integer")}
    sign = {"csv": b",", "tsv": b"\t"}[ending]

    def counted(*found: bytes):
        path = tmp_path / f"t.{ending}"
        path.write_bytes(b"\n".join([b"id,n,s", *found]).replace(b",", sign))
        with open(path, each("id", at_most=1), columns=told, name="t", engine=engine) as data:
            assert [one.kind for one in data.tables["t"].columns.values()] == ["integer", "integer", "text"]
            keys = tuple(bounded_column(data.tables["t"], name) for name in ("n", "s"))
            return data.engine.sums(BoundedSums(Private("t"), keys, (), OnceScheme()))

    others = [b"1,2,a", b"2,3,b", b'3,4,"c"']
    alone = counted(*others)
    assert alone == {(2, "a"): (1,), (3, "b"): (1,), (4, "c"): (1,)}
    for line in NASTY:
        found = counted(others[0], line, *others[1:])
        more = {key: number for key, number in found.items() if key not in alone}
        assert {key: found[key] for key in alone} == alone
        assert sum(number for (number,) in more.values()) <= 1


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\n",
        b"id,id,s\n",
        b"id,,s\n",
        b"id,n,s\r1,2,Ann\r",
        b"\xff\xfei\x00d\x00\n",
        b"id\x00,n\n",
        b"x" * 1_000_001,
    ],
)
def test_a_first_line_that_is_no_list_of_names_is_refused_without_a_word_of_it(first, tmp_path):
    (tmp_path / "t.csv").write_bytes(first)
    with pytest.raises(DiscreetError) as refused:
        open(tmp_path / "t.csv", each("id", at_most=1))
    assert refused.value.code in {"DP403", "DP802"}
    assert "Ann" not in str(refused.value)


def test_a_mark_before_the_first_line_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbf"id",n\n1,2\n')
    assert schema.header(path) == ["id", "n"]
    assert texts.from_text_files([path], {}).to_pylist() == [{"id": "1", "n": "2"}]
