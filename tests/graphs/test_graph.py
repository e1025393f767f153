# SPDX-License-Identifier: Apache-2.0
"""Edge lists of every kind become the same graph, and no row of any of them raises."""

from __future__ import annotations

import copy
import math
import pickle
import sys
import warnings
from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse

from discreet import graphs
from discreet.errors import BadParameter, MissingExtra
from discreet.graphs import Graph
from discreet.graphs.graph import graph_of
from discreet.mechanisms.mechanism import Mechanism
from tests.mechanisms.odd import ODD

EDGES = [[0, 1], [0, 3], [1, 2]]
MESSY = [(1, 0), (0, 1), (3, 0), (2, 1), (2, 2), (0, 9), (-1, 2), (1, 2)]


def edges(*arguments, **words):
    return Graph(*arguments, **words).edges.tolist()


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.float32, np.float64, object])
def test_arrays_of_any_numbers_are_read(kind):
    assert edges(np.array(MESSY, kind), nodes=4) == EDGES


def test_unsigned_numbers_do_not_wrap():
    huge = np.array([[0, 1], [2**63, 1], [2**64 - 1, 2], [0, 3], [2, 1]], np.uint64)
    assert edges(huge, nodes=4) == EDGES


@pytest.mark.parametrize("collection", [list, tuple, set])
def test_collections_of_pairs_are_read(collection):
    assert edges(collection(MESSY), nodes=4) == EDGES


@pytest.mark.parametrize(
    "bad",
    [
        (math.nan, 1), (math.inf, 1), (-math.inf, 1), (0.5, 1), (None, 1), ("0", 1), (True, 3), ([], 1), ({}, 1), (10**30, 1),
        (0, 1, 2), (3,), 7, "ab", None,
    ],
)  # fmt: skip
def test_a_row_that_names_no_two_nodes_is_dropped(bad):
    assert edges([*EDGES, bad], nodes=4) == EDGES
    assert edges([*EDGES, bad], nodes=[0, 1, 2, 3]) == EDGES


def test_floats_that_are_no_whole_numbers_are_dropped_from_arrays():
    rows = np.array([*EDGES, [math.nan, 1], [math.inf, 2], [0.5, 2], [-0.0, 1], [1e300, 2]])
    assert edges(rows, nodes=4) == EDGES


def test_nodes_may_have_labels():
    rows = [("ann", "bob"), ("bob", "eve"), ("eve", "nobody"), ("ann", "ann"), ("ANN", "eve")]
    graph = Graph(rows, nodes=["ann", "bob", "eve"])
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert Graph(np.array(rows), nodes=("ann", "bob", "eve")).edges.tolist() == [[0, 1], [1, 2]]
    assert edges([(5, 7)], nodes=np.array([7, 5])) == [[0, 1]]


def test_the_order_of_rows_and_repeats_change_nothing():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 30, (200, 2))
    shuffled = np.concatenate([rows, rows])[rng.permutation(400)][:, ::-1]
    assert np.array_equal(Graph(rows, nodes=30).edges, Graph(shuffled, nodes=30).edges)


def test_degrees_and_matrix_agree():
    graph = Graph(MESSY, nodes=5)
    assert graph.degrees.tolist() == [2, 2, 1, 1, 0]
    assert graph.adjacency.sum(axis=0).tolist() == graph.degrees.tolist()
    assert (graph.adjacency != graph.adjacency.T).nnz == 0


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix, sparse.csc_matrix])
def test_sparse_matrices_know_their_nodes(form):
    dense = np.zeros((4, 4))
    dense[1, 0] = dense[0, 3] = 1
    dense[2, 1], dense[2, 2] = -5, 1
    assert edges(form(dense)) == EDGES
    assert Graph(form(dense)).nodes == 4
    with_zero = sparse.coo_array((np.array([1, 0, 2, 1]), ([0, 2, 1, 0], [1, 3, 2, 3])), shape=(4, 4))
    assert edges(with_zero) == EDGES


class Network:
    """What networkx looks like from outside; nodes come in the order of their first edge."""

    def __init__(self, nodes, pairs):
        self._nodes, self._pairs = nodes, pairs

    def nodes(self):
        return self._nodes

    def edges(self):
        return self._pairs

    def adjacency(self):
        raise AssertionError


def test_networks_bring_their_nodes_in_an_order_that_does_not_depend_on_edges():
    one = Graph(Network(["c", "a", "d", "b"], [("c", "b"), ("a", "b"), ("d", "a")]))
    other = Graph(Network(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("d", "a")]))
    assert one.labels == other.labels == ("a", "b", "c", "d")
    assert one.edges.tolist() == other.edges.tolist() == EDGES
    assert Graph(Network([2, "x", (1, 2)], [(2, "x")])).nodes == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.csv", 'id_1,id_2\n1,0\n"0", 1\n3,0,extra\n2,1\n2,2\n,\nx\n0,9\n-1,2\n0,1e0\n'),
        ("g.tsv", "a\tb\n1\t0\n3\t0\n2\t1\n"),
        ("g.txt", "# a comment\n1 0\n3   0\n2 1\n\n" + "9" * 5000 + " 1\n²  1\n"),
        ("g.edges", "1 0\r\n3 0\r\n2 1\r\n"),
    ],
)
def test_text_files_are_read(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert edges(path, nodes=4) == EDGES
    assert edges(str(path), nodes=4) == EDGES
    assert edges(path, nodes=["0", "1", "2", "3"]) == EDGES
    assert edges(path, nodes=[0, 1, 2, 3]) == EDGES


def test_bytes_that_are_no_text_do_not_raise(tmp_path):
    path = tmp_path / "g.csv"
    path.write_bytes(b"\xff\xfe,1\n0,1\n\x000,2\n0,3\n1,2\n")
    assert edges(path, nodes=4) == EDGES


def test_tables_of_duckdb_and_pyarrow():
    pa, duckdb = pytest.importorskip("pyarrow"), pytest.importorskip("duckdb")
    table = pa.table({"a": [1, 3, 2, None], "b": [0, 0, 1, 1], "c": [9, 9, 9, 9]})
    assert edges(table, nodes=4) == EDGES
    assert edges(duckdb.from_arrow(table), nodes=4) == EDGES
    labels = table.set_column(0, "a", pa.array(["b", "d", "c", None]).dictionary_encode())
    labels = labels.set_column(1, "b", pa.array(["a", "a", "b", "b"]))
    assert edges(labels, nodes=["a", "b", "c", "d"]) == EDGES
    with pytest.raises(BadParameter):
        Graph(table.select(["a"]), nodes=4)


def invalid_text(pa, kind):
    """A column of "0" and of bytes that are no UTF-8."""
    ends = np.array([0, 1, 3], np.int64 if kind == pa.large_utf8() else np.int32)
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"0\xff\xfe")])


def far_columns(pa):
    """Columns whose second value has no counterpart in Python."""
    wide, narrow = pa.array([0, 2**62]), pa.array([0, 2**30], pa.int32())
    return {
        "text": invalid_text(pa, pa.utf8()),
        "large text": invalid_text(pa, pa.large_utf8()),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1]), invalid_text(pa, pa.utf8())),
        "bytes": pa.array([b"0", b"\xff"]),
        "date": narrow.view(pa.date32()),
        "date in milliseconds": wide.view(pa.date64()),
        "span": wide.view(pa.duration("s")),
        "time": wide.view(pa.time64("us")),
        "moment": wide.view(pa.timestamp("us")),
        "moment of a zone": wide.view(pa.timestamp("us", "Europe/Paris")),
        "unsigned": pa.array([0, 2**64 - 1], pa.uint64()),
        "decimal": pa.array([Decimal(0), Decimal(10) ** 30], pa.decimal128(38, 2)),
        "nothing": pa.nulls(2),
        "list": pa.array([[0], None]),
        "struct": pa.array([{"a": 0}, None]),
        "truth": pa.array([False, None]),
        "half": pa.array(np.array([0, np.nan], np.float16)),
    }


@pytest.mark.parametrize("name", list(far_columns(pytest.importorskip("pyarrow"))))
@pytest.mark.parametrize("nodes", [3, ["0", "1"]])
def test_no_value_of_a_table_makes_it_unreadable(tmp_path, name, nodes):
    """The attack: one text that is no UTF-8, or one far date, raised what pyarrow raises, with the bytes in it."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": far_columns(pa)[name], "b": pa.array([1, 1])})
    path = tmp_path / "g.parquet"
    parquet.write_table(table, path)
    for source in (table, path):
        assert edges(source, nodes=nodes) in ([], [[0, 1]])


FAR_SQL = ["DATE 'infinity'", "DATE '5000000-01-01'", "TIMESTAMP '-infinity'", "INTERVAL '1000000 years'"]
FAR_SQL += ["TIMETZ '10:00:00+15:59'", "340282366920938463463374607431768211455::UHUGEINT", "'NaN'::FLOAT"]


@pytest.mark.parametrize("value", FAR_SQL)
def test_no_value_of_a_relation_makes_it_unreadable(value):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"SELECT {value} AS a, 1 AS b")
    assert edges(relation, nodes=3) == []


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("nodes", [3, ["a", "b", 0, 1]])
def test_no_row_and_no_label_raises(name, nodes):
    odd, known = ODD[name], (0, 1)
    place = [0, 1] if nodes == 3 else [2, 3]
    found = [edges([known, row], nodes=nodes) for row in (odd, (odd, odd), (odd, object()))]
    cells = np.empty((2, 2), object)
    cells[0], cells[1, 0], cells[1, 1] = known, odd, object()
    assert all(place in one for one in [*found, edges(cells, nodes=nodes)])


def test_a_matrix_does_not_warn():
    for data in ([1e308, 1e308], [math.nan, 1.0], [2**62, 2**62]):
        matrix = sparse.coo_array((np.array(data), ([0, 0], [1, 1])), shape=(3, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert edges(matrix) == [[0, 1]]


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra) as error:
        Graph(tmp_path / "g.parquet", nodes=4)
    assert error.value.code == "DP501"


@pytest.mark.parametrize("name", ["nope.csv", "nope.txt", ".", "nope.parquet", "broken.parquet"])
def test_a_file_that_cannot_be_read_is_refused_with_a_code(tmp_path, name):
    (tmp_path / "broken.parquet").write_text("a secret row")
    with pytest.raises(BadParameter) as error:
        Graph(tmp_path / name, nodes=4)
    assert error.value.code == "DP104"
    assert "no edge list can be read" in str(error.value)
    assert "secret" not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_what_is_exported_is_a_graph_or_releases_with_noise():
    for name in graphs.__all__:
        exported = getattr(graphs, name)
        assert exported is Graph or (isinstance(exported, type) and issubclass(exported, Mechanism))


def test_no_edges_and_no_nodes():
    for empty in ([], np.zeros((0, 2), int), np.array([]), set()):
        assert Graph(empty, nodes=3).degrees.tolist() == [0, 0, 0]
    assert Graph([(0, 1)], nodes=0).nodes == 0
    assert Graph([(0, 1)], nodes=[]).degrees.tolist() == []


@pytest.mark.parametrize(
    "bad",
    [
        7, None, np.zeros((3, 3)), np.zeros(4), np.ones((2, 2), bool), np.zeros((2, 2), complex), {0: 1},
        sparse.csr_array((3, 4)), (pair for pair in EDGES),
    ],
)  # fmt: skip
def test_what_is_no_edge_list_is_refused_by_its_type(bad):
    with pytest.raises(BadParameter) as error:
        Graph(bad, nodes=4)
    assert error.value.code == "DP104"


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        (None, "DP104"), (True, "DP104"), (3.0, "DP104"), ("abc", "DP104"), (-1, "DP102"), (2**31, "DP102"),
        ([1, 1], "DP107"), ([[1], [2]], "DP104"), (math.nan, "DP104"),
    ],
)  # fmt: skip
def test_nodes_must_be_stated(nodes, code):
    with pytest.raises(BadParameter) as error:
        Graph(EDGES, nodes=nodes)
    assert error.value.code == code


def test_labels_that_are_the_same_text_are_refused_for_files(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("1,2\n", encoding="utf-8")
    with pytest.raises(BadParameter) as error:
        Graph(path, nodes=[1, "1", 2])
    assert error.value.code == "DP107"
    assert edges([(1, 2)], nodes=[1, "1", 2]) == [[0, 2]]


def test_a_graph_shows_nothing_and_does_not_change():
    graph = Graph(EDGES, nodes=4)
    assert repr(graph) == str(graph) == "Graph(…)"
    for array in (graph.edges, graph.degrees):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for again in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert again.edges.tolist() == EDGES


def test_a_mechanism_for_so_many_nodes_takes_no_others():
    assert graph_of(EDGES, 4).edges.tolist() == EDGES
    with pytest.raises(BadParameter) as error:
        graph_of(Graph(EDGES, nodes=5), 4)
    assert error.value.code == "DP107"
    assert "5" not in str(error.value)
