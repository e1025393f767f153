# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files.

**Guarantee.** Names and types come from the footers, which are the same in all files. No cell makes
reading fail: texts are read as bytes and moments as numbers, and each cell is converted by itself,
as in `sound`. The names of folders and files have no effect, with one exception: a column that no
file has, and that the description names or that is the unit, is taken from folders such as
`year=2026/`, as text that is cast like a cell of a text file.

What would break it: conversions by the reader, which fail for all rows if they fail for one, and
partitioning by the reader, which could give the rows of one person to others.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.tables.data import rules
from discreet.tables.data.readers.casts import cast, cast_columns, quote_name
from discreet.tables.data.readers.sound import (
    FIRST,
    LAST,
    PER_UNIT,
    is_text,
    kind_of,
    library,
    raw_type,
    sanitize_column,
)

__all__ = ["ENDINGS", "Parquet", "footer"]

ENDINGS = (".parquet", ".pq")
_OTHER = "CAST(NULL AS BLOB)"
#: The key under which Arrow stores its own types in a footer.
_NOTE = b"ARROW:schema"
#: The bytes of the whole numbers in which a file may keep a decimal.
_BYTES = {"INT32": 4, "INT64": 8}
#: The bytes in which DuckDB holds a decimal, by the most digits that they hold.
_DUCKDB_BYTES = {4: 2, 9: 4, 18: 8, 38: 16}


@dataclass(frozen=True)
class Parquet:
    """Files with one schema, and the columns that come from the names of their folders."""

    paths: tuple[Path, ...]
    sources: tuple[Any, ...]  # a path, or the bytes to read instead
    schema: Any
    folders: Mapping[str, str] = field(default_factory=dict)  # with their kinds in the description
    decimals: frozenset[str] = frozenset()  # those that DuckDB holds as the files do

    @classmethod
    def of(cls, paths: Sequence[Path], wanted: Mapping[str, str] | None = None) -> Parquet:
        """The files at `paths`; a `wanted` column that no file has is taken from the names of
        folders.
        """
        sources = [_source(path) for path in paths]
        schemas = [_footer(source, path) for source, path in zip(sources, paths, strict=True)]
        if any(_signature(other) != _signature(schemas[0]) for other in schemas):
            fix = "save all files with the same columns, of the same types"
            raise rules.description_error(paths[0].name, "the files have different columns or types.", fix)
        schema = schemas[0]
        missing = {name: kind for name, kind in (wanted or {}).items() if name not in schema.names}
        folders = {
            name: kind for name, kind in missing.items() if all(_is_below(path, name) for path in paths)
        }
        decimals = [_decimals_of(source) for source in sources]
        return cls(tuple(paths), tuple(sources), schema, folders, frozenset.intersection(*decimals))

    def dataset(self) -> Any:
        """The usable columns, as an Arrow data set of bytes and numbers."""
        pa, datasets = library("pyarrow"), library("pyarrow.dataset")
        known = {name: kind for name, kind in self._types.items() if kind_of(kind) != "other"}
        # Dates stay dates, because every engine has all dates that a file can hold.
        fields = [(name, kind if kind == pa.date32() else raw_type(kind)) for name, kind in known.items()]
        texts = pa.schema([(name, pa.string()) for name in self.folders])
        # A data set needs a column; one that no file has is NULL in all rows.
        fields = fields or [("".join(self.schema.names) + "_", pa.bool_())]
        named, read_as = datasets.partitioning(texts, flavor="hive"), datasets.ParquetFileFormat()
        local = library("pyarrow.fs").LocalFileSystem()
        fragments = [
            read_as.make_fragment(
                source, None if isinstance(source, pa.Buffer) else local, named.parse(f"{path}")
            )
            for source, path in zip(self.sources, self.paths, strict=True)
        ]
        in_files = [column for column in fields if column[0] not in self.folders]
        return datasets.FileSystemDataset(fragments, pa.schema([*in_files, *texts]), read_as)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Any]:
        """The rows as sound Arrow tables, batch by batch; of all columns, or of those in `names`."""
        pa = library("pyarrow")
        types = self._types
        chosen = list(types if names is None else names)
        read = [name for name in chosen if kind_of(types[name]) != "other"]
        for batch in self.dataset().scanner(columns=read).to_batches():
            nothing = pa.nulls(batch.num_rows, pa.binary())
            raw = {name: batch.column(name) if name in read else nothing for name in chosen}
            yield self._sanitized_table(
                chosen, {name: pa.chunked_array([cells]) for name, cells in raw.items()}
            )

    def empty(self) -> Any:
        """An empty table with the types of the rows."""
        pa = library("pyarrow")
        return self._sanitized_table(
            list(self._types), {name: pa.chunked_array([], kind) for name, kind in self._types.items()}
        )

    def table(self) -> Any:
        """All rows in memory."""
        return library("pyarrow").concat_tables([self.empty(), *self.batches()])

    def _sanitized_table(self, names: list[str], raw: Mapping[str, Any]) -> Any:
        columns = [sanitize_column(raw[name], self._types[name]) for name in names]
        return cast_columns(library("pyarrow").table(columns, names=names), self.folders)

    @property
    def _types(self) -> dict[str, Any]:
        """The declared types; a file stores every date as days."""
        pa = library("pyarrow")
        declared = {
            column.name: pa.date32() if kind_of(column.type) == "date" else column.type
            for column in self.schema
        }
        return declared | dict.fromkeys(self.folders, pa.string())

    def plain_terms(self) -> dict[str, str] | None:
        """Every column as a term of DuckDB on its own Parquet reader; None where that reader could
        give other values.

        For these types its reader gives the same values as `dataset` and `terms`, or fails on texts
        that are not UTF-8. For other types it narrows numbers, or reads the ends of a type as
        infinities, without an error.
        """
        pa = library("pyarrow")
        same = {
            pa.bool_(),
            pa.int32(),
            pa.int64(),
            pa.uint32(),
            pa.uint64(),
            pa.float32(),
            pa.float64(),
            pa.date32(),
        }
        terms = {}
        for column in self.schema:
            kind, term = column.type, quote_name(column.name)
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if kind_of(kind) == "other":
                terms[column.name] = _OTHER
            elif kind in same:
                terms[column.name] = term
            elif is_text(kind):
                # Encoded and decoded, so that DuckDB cannot skip rows because of the statistics in a file.
                terms[column.name] = f"DECODE(ENCODE({term}))"
            elif pa.types.is_timestamp(kind) and kind.unit == "us":
                terms[column.name] = _near_moment(term, kind)
            elif column.name in self.decimals:
                terms[column.name] = _decimal(term, kind)
            else:
                return None
        return None if self.folders else terms

    def terms(self) -> dict[str, str]:
        """Every column as a term of DuckDB on `dataset`."""
        casts = {column.name: _term(column.name, column.type) for column in self.schema}
        return casts | {name: cast(name, kind) for name, kind in self.folders.items()}


def footer(path: Path) -> Any:
    """The columns of a file and their types."""
    return _footer(_source(path), path)


def _source(path: Path) -> Any:
    """The path of a file, or its bytes without Arrow's own schema if that names dictionaries.

    Arrow would build such a dictionary again, by a conversion that fails for all rows if one text
    is not UTF-8.
    """
    pa, parquet = library("pyarrow"), library("pyarrow.parquet")
    kinds = parquet.read_metadata(path).schema.to_arrow_schema().types
    if not any(pa.types.is_dictionary(kind) for kind in kinds):
        return str(path)
    with path.open("rb") as file:
        # A private copy: writing to it does not change the file.
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    length = int.from_bytes(content[-8:-4], "little")
    place = content.find(_NOTE, len(content) - 8 - length)
    while place >= 0:
        content[place : place + len(_NOTE)] = _NOTE.lower()
        place = content.find(_NOTE, place)
    return pa.py_buffer(content)


def _stored_schema(source: Any) -> Any:
    """The schema that Parquet itself declares, without the types that Arrow noted."""
    pa, parquet = library("pyarrow"), library("pyarrow.parquet")
    return parquet.read_metadata(pa.BufferReader(source) if isinstance(source, pa.Buffer) else source).schema


def _leaves(declared: Any) -> list[Any]:
    """The columns of a schema, as they are stored."""
    return [declared.column(place) for place in range(len(declared.names))]


def _decimals_of(source: Any) -> frozenset[str]:
    """The decimals that take no more bytes in a file than in DuckDB, so that none is narrowed."""
    fits, fits_not = set[str](), set[str]()
    for leaf in _leaves(_stored_schema(source)):
        size = _BYTES.get(leaf.physical_type, leaf.length)
        most = next((held for digits, held in _DUCKDB_BYTES.items() if leaf.precision <= digits), 0)
        is_fitting = leaf.logical_type.type == "DECIMAL" and 0 < size <= most
        (fits if is_fitting else fits_not).add(leaf.path)
    return frozenset(fits - fits_not)


def _footer(source: Any, path: Path) -> Any:
    """The columns of a file and their types; a decimal of variable length has no supported type."""
    pa, parquet = library("pyarrow"), library("pyarrow.parquet")
    noted = parquet.read_metadata(path).schema.to_arrow_schema()
    declared = _stored_schema(source)
    long = {leaf.path for leaf in _leaves(declared) if leaf.physical_type == "BYTE_ARRAY"}
    fields = []
    for column, note in zip(declared.to_arrow_schema(), noted, strict=True):
        is_odd = kind_of(note.type) == "other" or (column.name in long and pa.types.is_decimal(column.type))
        fields.append(pa.field(column.name, pa.binary() if is_odd else column.type))
    if len({column.name for column in fields}) < len(fields):
        raise rules.description_error(path.name, "two columns have the same name.", "rename one of them")
    return pa.schema(fields)


def _signature(schema: Any) -> dict[str, tuple[str, str]]:
    """What must be the same in all files; the order of columns and the encoding of texts may
    differ.
    """
    pa = library("pyarrow")
    plain = {
        column.name: column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        for column in schema
    }
    kinds = {name: kind_of(kind) for name, kind in plain.items()}
    alike = {"text", "date", "other"}
    return {name: (kinds[name], "" if kinds[name] in alike else str(kind)) for name, kind in plain.items()}


def _is_below(path: Path, name: str) -> bool:
    return any(part.startswith(f"{name}=") for part in path.resolve().parent.parts)


def _term(name: str, kind: Any) -> str:
    pa = library("pyarrow")
    if pa.types.is_dictionary(kind):
        return _term(name, kind.value_type)
    column, kind_word = quote_name(name), kind_of(kind)
    if kind_word == "text":
        return f"TRY(DECODE({column}))" if is_text(kind) else _uuid(column)
    if kind_word == "timestamp":
        return f"CASE WHEN {column} IS NOT NULL THEN MAKE_TIMESTAMP({_micros(column, kind.unit)}) END"
    if kind_word == "decimal":
        return _decimal(column, kind)
    return _OTHER if kind_word == "other" else column


def _near_moment(column: str, kind: Any) -> str:
    """A moment of DuckDB clamped to the years 1 to 9999; infinities are clamped too."""
    native = "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    zone = "+00" if kind.tz else ""
    first, last = (f"{native} '{end}{zone}'" for end in ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"))
    clamped = f"GREATEST(LEAST({column}, {last}), {first})"
    # GREATEST ignores NULL arguments.
    return f"CASE WHEN {column} IS NOT NULL THEN MAKE_TIMESTAMP(EPOCH_US({clamped})) END"


def _micros(column: str, unit: str) -> str:
    """Microseconds, computed as in `sound`."""
    first, last = FIRST[1], LAST[1]
    if unit == "ns":
        near = f"DIVIDE({column}, 1000)"
        return f"{near} - CASE WHEN {near} * 1000 > {column} THEN 1 ELSE 0 END"
    per = PER_UNIT[unit]
    near = f"GREATEST(LEAST({column}, {last // per + 1}), {first // per - 1})"
    return f"GREATEST(LEAST({near} * {per}, {last}), {first})"


def _decimal(column: str, kind: Any) -> str:
    digits, scale = kind.precision, kind.scale
    largest = "9" * (digits - scale) + ("." + "9" * scale if scale else "")
    ends = [f"CAST('{sign}{largest}' AS DECIMAL({digits},{scale}))" for sign in ("-", "")]
    return f"CASE WHEN {column} BETWEEN {ends[0]} AND {ends[1]} THEN {column} END"


def _uuid(column: str) -> str:
    cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    parts = ", ".join(f"SUBSTR(LOWER(HEX({column})), {start}, {size})" for start, size in cuts)
    return f"CASE WHEN {column} IS NOT NULL THEN CONCAT_WS('-', {parts}) END"
