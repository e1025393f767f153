# SPDX-License-Identifier: Apache-2.0
"""Questions asked in Python: `data.where(col("age") >= 18).group_by("ward").mean("days", between=(0, 60))`.

**Guarantee.** A question that is asked here is written down as SQL and read by the same code as SQL (`sql`): it is the
same question, with the same proof, the same refusals and a text that anybody can ask again. Nothing is read from
private tables, and nothing is spent.

Why it holds: trees, not texts, are put together; names and values are quoted where the tree is written down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet import check
from discreet.errors import BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.ask.aggregates import Wanted
from discreet.tables.ask.asking import Asking
from discreet.tables.ask.formula import Formula, col, formula, identifier, several, tree, written
from discreet.tables.ask.leaf import near
from discreet.tables.ask.question import Question
from discreet.tables.ask.sql import parse
from discreet.tables.data.rules import closest
from discreet.tables.engines.source import ROW

if TYPE_CHECKING:
    from discreet.tables.data.dataset import Dataset, Table

__all__ = ["Prepared", "Query", "start"]

_FUNCTIONS = {
    "count_of": "COUNT",
    "sum": "SUM",
    "mean": "AVG",
    "variance": "VAR",
    "stddev": "STDDEV",
    "median": "MEDIAN",
    "quantile": "QUANTILE",
    "min": "MIN",
    "max": "MAX",
    "mode": "MODE",
}


def start(data: Dataset, table: str) -> Query:
    """A question about the rows of a private table."""
    if table in data.tables and data.tables[table].private:
        return Query(data, table)
    private = [name for name, other in data.tables.items() if other.private]
    raise RefusedQuestion(
        "DP701",
        f"there is no private table {table!r}.",
        why="a question begins with the rows of a private table; what is public needs no noise.",
        fix=f"use {near(str(table), private)}",
    )


@dataclass(frozen=True, eq=False)
class Query(Asking):
    """Rows, and how they are grouped; every word returns a new one, and an aggregate ends it."""

    data: Dataset
    table: str
    joins: tuple[exp.Join, ...] = ()
    conditions: tuple[Formula, ...] = ()
    keys: tuple[tuple[str, Formula], ...] = ()
    listed: tuple[tuple[Any, ...], ...] | None = None  # the public groups, if the question lists them

    @property
    def _query(self) -> Query:
        return self

    def filtered(self, conditions: Sequence[Formula]) -> Query:
        """With more conditions."""
        return replace(self, conditions=(*self.conditions, *(_condition(one) for one in conditions)))

    def joined(self, table: str, on: Any, keep: bool) -> Query:  # noqa: FBT001 - said with a keyword in `join`
        """With the rows of one more table."""
        other = self.data.tables.get(table) if isinstance(table, str) else None
        if other is None:
            raise RefusedQuestion(
                "DP701",
                f"there is no table {table!r}."
                if isinstance(table, str)
                else "a table is joined by its name.",
                why="only tables of the description can be joined.",
                fix=self._joinable_by(closest(table, self._joinable())),
            )
        join = _join(self.data.tables[self.table], other, on)
        if check.flag(keep=keep):
            join.set("side", "LEFT")
        return replace(self, joins=(*self.joins, join))

    def _joinable(self) -> list[str]:
        """The other tables, public ones first."""
        others = [name for name in self.data.tables if name != self.table]
        return sorted(others, key=lambda name: self.data.tables[name].private) or [self.table]

    def _joinable_by(self, name: str) -> str:
        """How it is joined: private tables meet on the unit, public ones on a column of the same name."""
        ours, other = self.data.tables[self.table], self.data.tables[name]
        return f'.join("{name}")' if other.private else f'.join("{name}", on="{_shared(ours, other)}")'

    def grouped(self, columns: Sequence[Any], named: Mapping[str, Any], keys: Any) -> Query:
        """Grouped by columns or formulas; `keys` lists the groups."""
        told = [(_name(one), formula(one)) for one in columns]
        told += [(name, formula(one)) for name, one in named.items()]
        if not told or self.keys:
            raise BadParameter(
                "DP107",
                "group_by takes all columns at once, and at least one.",
                why="a question has one list of groups.",
                fix=f"data.group_by({_keys_of(self.data.tables[self.table])})",
            )
        listed = None if keys is None else _listed(keys, [name for name, _ in told])
        return replace(self, keys=tuple(told), listed=listed)

    def binned(self, of: Any, edges: Sequence[Any]) -> Prepared:
        """A count for each bucket."""
        query = replace(self, keys=(*self.keys, ("bucket", formula(of).bucket(edges))))
        return query.asked([Wanted("count")], {})

    def asked(self, several: Sequence[Wanted], named: Mapping[str, Wanted]) -> Prepared:
        """The finished question."""
        wanted = [*several, *named.values()]
        if not wanted or not all(isinstance(one, Wanted) for one in wanted):
            raise BadParameter(
                "DP104",
                "aggregate takes what is wanted of each group: count(), mean(…), …",
                why="an answer is made of noisy numbers, and of nothing else.",
                fix=f"data.group_by({_keys_of(self.data.tables[self.table])}).aggregate(n=count())   with  from discreet.tables import count",
            )
        finished = Prepared(self, (*several, *(one.named(name) for name, one in named.items())))
        _ = finished.question  # refused here, where it was asked
        return finished

    def select(self, wanted: Sequence[Wanted]) -> exp.Select:
        """The question as a tree of SQL."""
        columns = [_named(of.node.copy(), name) for name, of in self.keys]
        columns += [_named(_aggregate(one, self.data.tables[self.table]), one.name) for one in wanted]
        select = exp.Select(expressions=columns).from_(identifier(self.table))
        for join in self.joins:
            select = select.join(join.copy())
        for condition in [*self.conditions, *self._among()]:
            select = select.where(condition.node.copy())
        return select.group_by(*(of.node.copy() for _, of in self.keys))

    def _among(self) -> list[Formula]:
        """That the rows are in one of the groups that were listed."""
        found = []
        for at, (_, of) in enumerate(self.keys if self.listed is not None else ()):
            values = list(dict.fromkeys(group[at] for group in self.listed or ()))
            known = [value for value in values if value is not None]
            among = of.is_in(known) if known else of.is_null()
            found.append(among | of.is_null() if known and len(known) < len(values) else among)
        return found


@dataclass(frozen=True, eq=False)
class Prepared:
    """A finished question; what is done to the released numbers may still be said. `question` is what is compiled."""

    query: Query
    wanted: tuple[Wanted, ...]
    kept: Formula | None = None
    orders: tuple[tuple[Formula, bool], ...] = ()
    most: int | None = None

    def having(self, condition: Formula) -> Prepared:
        """The groups whose released numbers fulfil a condition."""
        told = _condition(condition)
        kept = told if self.kept is None else self.kept & told
        return _settled(replace(self, kept=kept))

    def order_by(self, *columns: str | Formula, descending: bool = False) -> Prepared:
        """In the order of released numbers or keys."""
        orders = tuple((formula(one), check.flag(descending=descending)) for one in columns)
        return _settled(replace(self, orders=(*self.orders, *orders)))

    def limit(self, most: int) -> Prepared:
        """So many groups at most, the first ones of the order."""
        return _settled(replace(self, most=check.whole(most=most)))

    @property
    def text(self) -> str:
        """The question in SQL."""
        select = self.query.select(self.wanted)
        if self.kept is not None:
            select = select.having(self.kept.node.copy())
        for of, descending in self.orders:
            select = select.order_by(exp.Ordered(this=of.node.copy(), desc=descending))
        return written(select if self.most is None else select.limit(self.most))

    @cached_property
    def question(self) -> Question:
        """The question as it is compiled to a mechanism."""
        try:
            asked = parse(self.text, _stated(self.query.data, self.query.table, self.wanted))
        except (BadParameter, RefusedQuestion) as error:
            raise _in_python(error) from None
        return _with_groups(asked.question, self.query.listed)

    def __repr__(self) -> str:
        return f"<Prepared {self.text}>"


def _condition(one: Any) -> Formula:
    """A condition, and not the text of one; the name of a column of truth values is one."""
    if isinstance(one, str) and any(sign in one for sign in "<>="):
        raise BadParameter(
            "DP104",
            "a condition is made of columns, and is not a text.",
            why="a text would be taken for the name of a column.",
            fix=_as_formula(one),
        )
    return formula(one)


def _as_formula(text: str) -> str:
    """A simple comparison that was written as a text, in columns; else an example."""
    found = re.fullmatch(
        r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|<>|!=|=|<|>)\s*(-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\")\s*", text
    )
    if found is None:
        return 'dp.col("days") > 3   or, in SQL,   WHERE days > 3'
    sign = {"=": "==", "<>": "!="}.get(found[2], found[2])
    return f'dp.col("{found[1]}") {sign} {found[3]}'


def _settled(asked: Prepared) -> Prepared:
    _ = asked.question
    return asked


def _with_groups(question: Question, listed: tuple[tuple[Any, ...], ...] | None) -> Question:
    """The groups that were listed, in their order; tuples of several columns are known jointly."""
    if listed is None:
        return question
    columns = zip(question.keys, zip(*listed, strict=True), strict=True)
    keys = tuple(replace(key, values=tuple(dict.fromkeys(values))) for key, values in columns)
    return replace(question, keys=keys, combinations=listed if len(keys) > 1 else None)


def _stated(data: Dataset, table: str, wanted: Sequence[Wanted]) -> Dataset:
    """The data set with the candidates of a mode as the values of its column."""
    columns, stated = dict(data.tables[table].columns), dict[str, Any]()
    for one in wanted:
        if one.values is None:
            continue
        name = one.of if isinstance(one.of, str) else ""
        if name not in columns or stated.setdefault(name, one.values) != one.values:
            raise BadParameter(
                "DP107",
                "values of a mode are those of one column, and listed once.",
                why="the most frequent value is chosen among them.",
                fix=f"data.mode({_text_like(name, data.tables[table])}, values={list(one.values)!r})",
            )
        columns[name] = replace(columns[name], values=one.values)
    return replace(data, tables={**data.tables, table: replace(data.tables[table], columns=columns)})


def _text_like(name: str, table: Table) -> str:
    """The column that was probably meant, of those whose values are texts; never the unit."""
    texts = [key for key, one in table.columns.items() if one.kind == "text" and key != table.unit]
    return f'"{closest(name, texts or [name])}"'


def _aggregate(wanted: Wanted, table: Table) -> exp.Expression:
    if wanted.kind == "count" or (wanted.kind == "units" and table.unit == ROW):
        return exp.Count(this=exp.Star())
    if wanted.kind == "units":
        return exp.Count(this=exp.Distinct(expressions=[col(str(table.unit)).node]))
    of = formula(wanted.of)
    if wanted.between is not None:
        if not isinstance(wanted.between, list | tuple) or len(wanted.between) != 2:
            raise BadParameter(
                "DP104",
                "between must be two numbers, the lower one first.",
                why="values are moved between them before anything else is done.",
                fix="between=(0, 60)",
            )
        of = of.clamp(*wanted.between)
    rank = [] if wanted.rank is None else [tree(wanted.rank)]
    return exp.Anonymous(this=_FUNCTIONS[wanted.kind], expressions=[of.node.copy(), *rank])


def _join(ours: Table, other: Table, on: Any) -> exp.Join:
    """USING for names that both have, ON for those that differ; private tables always meet on the unit."""
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in _names(on)}
    if other.private and ours.unit and other.unit:
        pairs = {ours.unit: other.unit, **pairs}
    this = exp.Table(this=identifier(other.name))
    if not pairs:
        raise RefusedQuestion(
            "DP703",
            f"a join with {other.name} needs a column in which both are equal.",
            why="each row is looked up in the public table.",
            fix=f'.join("{other.name}", on="{_shared(ours, other)}")',
        )
    if all(left == right for left, right in pairs.items()):
        return exp.Join(this=this, using=[identifier(name) for name in pairs])
    equal = [formula(left) == col(f"{other.name}.{right}") for left, right in pairs.items()]
    return exp.Join(this=this, on=exp.and_(*(one.node.copy() for one in equal)))


def _shared(ours: Table, other: Table) -> str:
    """A column that both have, or one of ours."""
    return next((name for name in ours.columns if name in other.columns), next(iter(ours.columns)))


def _keys_of(table: Table) -> str:
    """Columns that can be grouped by without a delta, the first two; or any that is not the unit."""
    public = [name for name, column in table.columns.items() if column.values]
    others = [
        name
        for name, one in table.columns.items()
        if name != table.unit and one.kind in {"text", "integer", "boolean"}
    ]
    return ", ".join(f'"{name}"' for name in (public[:2] or others[:1] or list(table.columns)[:1]))


def _names(on: Any) -> list[str]:
    return [] if on is None else [on] if isinstance(on, str) else [str(name) for name in several(on)]


def _name(one: Any) -> str:
    """The name of a key: that of its column; a formula needs one of its own."""
    node = formula(one).node
    if isinstance(node, exp.Column):
        return str(node.name)
    raise BadParameter(
        "DP107",
        "a formula that is grouped by needs a name.",
        why="it becomes a column of the answer.",
        fix="data.group_by(year=…)",
    )


def _named(node: exp.Expression, name: str) -> exp.Expression:
    bare = not name or (isinstance(node, exp.Column) and node.name == name)
    return node if bare else exp.Alias(this=node, alias=identifier(name))


def _listed(keys: Any, names: list[str]) -> tuple[tuple[Any, ...], ...]:
    """Groups as tuples: from values of one column, or from tuples of several."""
    groups = [group if isinstance(group, tuple) else (group,) for group in several(keys)]
    if all(len(group) == len(names) for group in groups) and len(set(groups)) == len(groups):
        return tuple(groups)
    raise RefusedQuestion(
        "DP704",
        "keys must list every group once, with a value for each column.",
        why="they are the rows of the answer, whatever the data hold.",
        fix='keys=["A", "B"]'
        if len(names) == 1
        else 'keys=[("A", "x"), ("B", "x")]   with a value for each column',
    )


#: What is said of a question in SQL, and how a person would write the fix here.
_HERE = {
    "needs bounds": "between=(0, 500)",
    "is a real number, and cannot be grouped by": '.histogram("…", edges=[10, 20, 50])',
    "says whose row it is": ".units()",
    "needs public values": 'values=["A", "B"]',
    "arbitrarily close to 0": ".clamp(1, 1000)",
}


def _in_python(error: DiscreetError) -> DiscreetError:
    """The same refusal, with the line that a person would write here."""
    here = next((line for said, line in _HERE.items() if said in error.what), None)
    if here is not None:
        error.fix = f"{error.fix};  here:  {here}"
    return error
