# SPDX-License-Identifier: Apache-2.0
"""Questions asked in Python: `data.where(col("age") >= 18).group_by("ward").mean("days",
between=(0, 60))`.

**Guarantee.** A question built here is written as SQL and parsed by the same code as SQL (`sql`).
So it is the same question, with the same proof, the same refusals, and a text that anybody can ask
again. Nothing is read from private tables, and nothing is spent.

Why it holds: the code combines trees, not texts, and quotes names and values when it writes a tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet import check
from discreet.errors import BadParameter, DiscreetError, RefusedQuestion
from discreet.tables.algebra.engine import ROW
from discreet.tables.algebra.types import Value
from discreet.tables.ask.aggregates import AggregateSpec
from discreet.tables.ask.expressions import (
    Expression,
    Number,
    as_expression,
    col,
    identifier,
    sql_text,
    syntax_tree,
    value_list,
)
from discreet.tables.ask.methods import QueryMethods
from discreet.tables.ask.question import Question
from discreet.tables.ask.round_edges import round_edges
from discreet.tables.ask.sql import parse
from discreet.tables.data.rules import closest

if TYPE_CHECKING:
    from discreet.tables.ask.start import Dataset
    from discreet.tables.data.dataset import Table

__all__ = ["AggregateQuery", "Query"]

_FUNCTIONS = {
    "count_of": "COUNT",
    "sum": "SUM",
    "mean": "AVG",
    "variance": "VAR",
    "stddev": "STDDEV",
    "sample_variance": "VAR_SAMP",
    "sample_stddev": "STDDEV_SAMP",
    "covariance": "COVAR_POP",
    "correlation": "CORR",
    "median": "MEDIAN",
    "quantile": "QUANTILE",
    "min": "MIN",
    "max": "MAX",
    "mode": "MODE",
}


@dataclass(frozen=True, eq=False)
class Query(QueryMethods):
    """An unfinished question: rows and keys. Each method returns a new question, and an aggregate
    finishes it.

    **Guarantee.** A query holds names and public values only. It reads no row and costs nothing.
    """

    data: Dataset
    table: str
    joins: tuple[exp.Join, ...] = ()
    conditions: tuple[Expression, ...] = ()
    keys: tuple[tuple[str, Expression], ...] = ()
    listed: tuple[tuple[Any, ...], ...] | None = None  # the public groups that `keys` lists
    # How several tables are asked for: CUBE, ROLLUP, … of the keys, and which errors are to be small.
    grouping: tuple[exp.Expression, ...] = ()
    objective: str = ""

    @property
    def _query(self) -> Query:
        return self

    def with_conditions(self, conditions: Sequence[Expression]) -> Query:
        """The question with more conditions."""
        return replace(self, conditions=(*self.conditions, *map(_condition, conditions)))

    def with_table(
        self, table: str, on: str | Sequence[str] | Mapping[str, str] | None, *, keep: bool
    ) -> Query:
        """The question with another table joined."""
        other = self.data.tables.get(table) if isinstance(table, str) else None
        if other is None:
            raise RefusedQuestion(
                "DP701",
                f"there is no table {table!r}."
                if isinstance(table, str)
                else "a join needs the name of a table.",
                why="only tables of the description can be joined.",
                fix=self._joinable_by(closest(table, self._joinable())),
            )
        join = _join(self.data.tables[self.table], other, on)
        if check.flag(keep=keep):
            join.set("side", "LEFT")
        return replace(self, joins=(*self.joins, join))

    def _joinable(self) -> list[str]:
        """The names of the other tables, public ones first."""
        others = [name for name in self.data.tables if name != self.table]
        return sorted(others, key=lambda name: self.data.tables[name].private) or [self.table]

    def _joinable_by(self, name: str) -> str:
        """A fix that joins a table: private tables on the unit, public ones on a column of the same
        name.
        """
        ours, other = self.data.tables[self.table], self.data.tables[name]
        return f'.join("{name}")' if other.private else f'.join("{name}", on="{_common_column(ours, other)}")'

    def with_keys(
        self,
        columns: Sequence[str | Expression],
        named: Mapping[str, str | Expression],
        keys: Iterable[Value | tuple[Value, ...]] | None,
    ) -> Query:
        """The question grouped by columns or expressions; `keys` lists the groups."""
        key_columns = [(_name(column), as_expression(column)) for column in columns]
        key_columns += [(name, as_expression(column)) for name, column in named.items()]
        if not key_columns or self.keys:
            raise BadParameter(
                "DP107",
                "group_by needs at least one column, and can be called only once.",
                why="a question has a single list of groups.",
                fix=f"data.group_by({_keys_of(self.data.tables[self.table])})",
            )
        listed = None if keys is None else _group_tuples(keys, [name for name, _ in key_columns])
        return replace(self, keys=tuple(key_columns), listed=listed)

    def with_grouping(
        self, kind: str, sets: Sequence[Sequence[str | Expression]], objective: object
    ) -> Query:
        """The question with a table for each of several sets of keys.

        `kind` is "CUBE" or "ROLLUP" of the keys of the first set, or "GROUPING SETS".
        """
        keys = {key: (_name(key), as_expression(key)) for some in sets for key in some}
        if not keys or self.keys:
            raise BadParameter(
                "DP107",
                "a question has one grouping, with at least one column.",
                why="its tables are planned together, and share their noise.",
                fix=f"data.cube({_keys_of(self.data.tables[self.table])}).count()",
            )
        parts = [[keys[key][1].node.copy() for key in some] for some in sets]
        node: exp.Expression
        if kind == "GROUPING SETS":
            node = exp.GroupingSets(expressions=[exp.Tuple(expressions=some) for some in parts])
        else:
            node = {"CUBE": exp.Cube, "ROLLUP": exp.Rollup}[kind](expressions=parts[0])
        return replace(
            self, keys=tuple(keys.values()), grouping=(node,), objective=_objective_text(objective)
        )

    def with_ordered(self, kind: str, column: str | Expression, by: Sequence[str | Expression]) -> Query:
        """The question with the ranges or the prefixes of a column, for every subset of other
        columns.
        """
        first = (_name(column), as_expression(column))
        ordered = exp.Anonymous(this=kind, expressions=[first[1].node.copy()])
        if not by and not self.keys:
            return replace(self, keys=(first,), grouping=(ordered,))
        cube = self.with_grouping("CUBE", [by], "each")
        return replace(cube, keys=(first, *cube.keys), grouping=(ordered, *cube.grouping))

    def with_marginals(
        self, order: int | Sequence[int], columns: Sequence[str | Expression] | None, objective: object
    ) -> Query:
        """The question with a table for every so many of some columns."""
        table = self.data.tables[self.table]
        chosen = _listed_columns(table) if columns is None else value_list(columns)
        orders = [order] if isinstance(order, int) else value_list(order)
        several = [check.whole(at_least=0, order=each) for each in orders]
        if not several or max(several) > len(chosen):
            raise BadParameter(
                "DP102",
                f"order must be a number of columns, at most {len(chosen)}, or several.",
                why="there is a table for every so many of the columns.",
                fix=f"data.marginals(order={min(2, len(chosen))}, columns=[{_keys_of(table)}]).count()",
            )
        query = self.with_grouping("CUBE", [chosen], objective)
        nodes = [of.node for _, of in query.keys]
        marginals: list[exp.Expression] = [
            exp.Anonymous(this="MARGINALS", expressions=[syntax_tree(each), *(node.copy() for node in nodes)])
            for each in sorted(set(several))
        ]
        grouping = marginals[0] if len(marginals) == 1 else exp.GroupingSets(expressions=marginals)
        return replace(query, grouping=(grouping,))

    def with_buckets(self, of: str | Expression, edges: Sequence[Number] | None) -> AggregateQuery:
        """The question that counts the rows in each bucket."""
        if edges is None:
            edges = self._round_edges(of)
        query = replace(self, keys=(*self.keys, ("bucket", as_expression(of).bucket(edges))))
        return query.finish([AggregateSpec("count")], {})

    def _round_edges(self, of: str | Expression) -> list[int | Decimal]:
        """Round edges between the public bounds of a number; no row is read."""
        finished = replace(self, keys=(), listed=None).finish([AggregateSpec("mean", of)], {})
        operand = finished.question.aggregates[0].of
        assert operand is not None
        return round_edges(operand.type)

    def finish(self, specs: Sequence[AggregateSpec], named: Mapping[str, AggregateSpec]) -> AggregateQuery:
        """The finished question."""
        wanted = [*specs, *named.values()]
        if not wanted or not all(isinstance(spec, AggregateSpec) for spec in wanted):
            raise BadParameter(
                "DP104",
                "aggregate takes aggregates such as count() and mean(…).",
                why="an answer consists of noisy numbers.",
                fix=f"data.group_by({_keys_of(self.data.tables[self.table])}).aggregate(n=count())   with  from discreet.tables import count",
            )
        query = self._with_units() if any(spec.kind == "units" for spec in wanted) else self
        finished = AggregateQuery(query, (*specs, *(spec.with_name(name) for name, spec in named.items())))
        # Refuse it here, in the line that asked.
        _ = finished.question
        return finished

    def _with_units(self) -> Query:
        """The question on rows that show their unit: the tables that lead to it are joined."""
        query, table = self, self.data.tables[self.table]
        while table.link is not None:
            if table.link.table not in {join.this.name for join in query.joins}:
                query = query.with_table(table.link.table, None, keep=False)
            table = self.data.tables[table.link.table]
        return query

    def select(self, wanted: Sequence[AggregateSpec]) -> exp.Select:
        """The question as a tree of SQL."""
        columns = [_aliased_node(of.node.copy(), name) for name, of in self.keys]
        owner = self.data.tables[self.table]
        while owner.link is not None:
            owner = self.data.tables[owner.link.table]
        columns += [_aliased_node(_aggregate(spec, owner), spec.name) for spec in wanted]
        select = exp.Select(expressions=columns).from_(identifier(self.table))
        for join in self.joins:
            select = select.join(join.copy())
        for condition in [*self.conditions, *self._among()]:
            select = select.where(condition.node.copy())
        if self.grouping:
            select.set("group", exp.Group(expressions=[node.copy() for node in self.grouping]))
            return select
        return select.group_by(*(of.node.copy() for _, of in self.keys))

    def _among(self) -> list[Expression]:
        """The conditions that rows are in one of the listed groups."""
        conditions = []
        for place, (_, of) in enumerate(self.keys if self.listed is not None else ()):
            values = list(dict.fromkeys(group[place] for group in self.listed or ()))
            not_null = [value for value in values if value is not None]
            is_listed = of.is_in(not_null) if not_null else of.is_null()
            conditions.append(
                is_listed | of.is_null() if not_null and len(not_null) < len(values) else is_listed
            )
        return conditions


@dataclass(frozen=True, eq=False)
class AggregateQuery:
    """A finished question, to which post-processing may be added; a session releases or previews
    it.

    **Guarantee.** It holds names and public values only. It reads no row and costs nothing.
    """

    query: Query
    wanted: tuple[AggregateSpec, ...]
    kept: Expression | None = None
    orders: tuple[tuple[Expression, bool], ...] = ()
    most: int | None = None

    def having(self, condition: Expression) -> AggregateQuery:
        """Keep the groups whose released numbers fulfil a condition."""
        added = _condition(condition)
        kept = added if self.kept is None else self.kept & added
        return _validated_query(replace(self, kept=kept))

    def order_by(self, *columns: str | Expression, descending: bool = False) -> AggregateQuery:
        """Sort the groups by released numbers or keys."""
        orders = tuple((as_expression(column), check.flag(descending=descending)) for column in columns)
        return _validated_query(replace(self, orders=(*self.orders, *orders)))

    def limit(self, most: int) -> AggregateQuery:
        """Keep the first `most` groups."""
        return _validated_query(replace(self, most=check.whole(most=most)))

    @property
    def text(self) -> str:
        """The question in SQL."""
        select = self.query.select(self.wanted)
        if self.kept is not None:
            select = select.having(self.kept.node.copy())
        for of, descending in self.orders:
            select = select.order_by(exp.Ordered(this=of.node.copy(), desc=descending))
        text = sql_text(select if self.most is None else select.limit(self.most))
        objective = self.query.objective
        return f"{text} WITH (objective = {sql_text(syntax_tree(objective))})" if objective else text

    @cached_property
    def question(self) -> Question:
        """The question that is compiled to a mechanism."""
        try:
            parsed = parse(self.text, _with_mode_values(self.query.data, self.query.table, self.wanted))
        except (BadParameter, RefusedQuestion) as error:
            raise _in_python(error) from None
        return _with_groups(parsed.question, self.query.listed)

    def __repr__(self) -> str:
        return f"<AggregateQuery {self.text}>"


def _condition(condition: object) -> Expression:
    """A condition as an expression; the name of a column of truth values is one, the text of a
    comparison is not.
    """
    if isinstance(condition, str) and any(sign in condition for sign in "<>="):
        raise BadParameter(
            "DP104",
            "a condition must be an expression of columns, not a text.",
            why="a text means the name of a column.",
            fix=_as_formula(condition),
        )
    return as_expression(condition)


def _as_formula(text: str) -> str:
    """A fix: the comparison in a text as an expression, or an example."""
    match = re.fullmatch(
        r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|<>|!=|=|<|>)\s*(-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\")\s*", text
    )
    if match is None:
        return 'dp.col("days") > 3   or, in SQL,   WHERE days > 3'
    sign = {"=": "==", "<>": "!="}.get(match[2], match[2])
    return f'dp.col("{match[1]}") {sign} {match[3]}'


def _validated_query(query: AggregateQuery) -> AggregateQuery:
    """The query, if its question is accepted."""
    _ = query.question
    return query


def _with_groups(question: Question, listed: tuple[tuple[Any, ...], ...] | None) -> Question:
    """The question with the listed groups, in their order; tuples of several columns are known
    jointly.
    """
    if listed is None:
        return question
    columns = zip(question.keys, zip(*listed, strict=True), strict=True)
    keys = tuple(replace(key, values=tuple(dict.fromkeys(values))) for key, values in columns)
    return replace(question, keys=keys, combinations=listed if len(keys) > 1 else None)


def _with_mode_values(data: Dataset, table: str, wanted: Sequence[AggregateSpec]) -> Dataset:
    """The data set with the values of each mode as the values of its column."""
    columns, values_by_column = dict(data.tables[table].columns), dict[str, Any]()
    for spec in wanted:
        if spec.values is None:
            continue
        name = spec.of if isinstance(spec.of, str) else ""
        if name not in columns or values_by_column.setdefault(name, spec.values) != spec.values:
            raise BadParameter(
                "DP107",
                "values of a mode must belong to one column, and have one list.",
                why="the most frequent value is chosen from this list.",
                fix=f"data.mode({_text_like(name, data.tables[table])}, values={list(spec.values)!r})",
            )
        columns[name] = replace(columns[name], values=spec.values)
    return replace(data, tables={**data.tables, table: replace(data.tables[table], columns=columns)})


def _text_like(name: str, table: Table) -> str:
    """The most similar text column that is not the unit, for a fix."""
    texts = [key for key, column in table.columns.items() if column.kind == "text" and key != table.unit]
    return f'"{closest(name, texts or [name])}"'


def _aggregate(wanted: AggregateSpec, table: Table) -> exp.Expression:
    """An aggregate of rows whose unit is in this table."""
    if wanted.kind == "count" or (wanted.kind == "units" and table.unit == ROW):
        return exp.Count(this=exp.Star())
    if wanted.kind == "units":
        return exp.Count(this=exp.Distinct(expressions=[col(str(table.unit)).node]))
    of = as_expression(wanted.of)
    if wanted.between is not None:
        if not isinstance(wanted.between, list | tuple) or len(wanted.between) != 2:
            raise BadParameter(
                "DP104",
                "between must be two numbers, the lower one first.",
                why="values are clipped to them before anything is computed.",
                fix="between=(0, 60)",
            )
        of = of.clamp(*wanted.between)
    if wanted.kind == "distinct":
        return exp.Count(this=exp.Distinct(expressions=[of.node.copy()]))
    if wanted.kind == "weighted_mean":
        weights = as_expression(wanted.beside)
        return exp.Div(this=_call("SUM", of * weights), expression=_call("SUM", weights))
    rank = [] if wanted.rank is None else [syntax_tree(wanted.rank)]
    beside = [] if wanted.beside is None else [as_expression(wanted.beside)]
    return _call(_FUNCTIONS[wanted.kind], of, *beside, *rank)


def _call(function: str, *operands: Expression | exp.Expression) -> exp.Expression:
    nodes = [part.node if isinstance(part, Expression) else part for part in operands]
    return exp.Anonymous(this=function, expressions=[node.copy() for node in nodes])


def _join(ours: Table, other: Table, on: str | Sequence[str] | Mapping[str, str] | None) -> exp.Join:
    """A JOIN with USING for equal names and ON for different ones; private tables are always joined
    on the unit.
    """
    pairs = dict(on) if isinstance(on, Mapping) else {name: name for name in _names(on)}
    if other.private:
        pairs = {**_unit_pair(ours, other), **pairs}
    this = exp.Table(this=identifier(other.name))
    if not pairs:
        raise RefusedQuestion(
            "DP703",
            f"a join with {other.name} needs a column in which both are equal.",
            why="each row is looked up in the public table by equal columns.",
            fix=f'.join("{other.name}", on="{_common_column(ours, other)}")',
        )
    if all(left == right for left, right in pairs.items()):
        return exp.Join(this=this, using=[identifier(name) for name in pairs])
    equal = [as_expression(left) == col(f"{other.name}.{right}") for left, right in pairs.items()]
    return exp.Join(this=this, on=exp.and_(*(equality.node.copy() for equality in equal)))


def _unit_pair(ours: Table, other: Table) -> dict[str, str]:
    """The columns by which rows of two private tables belong to the same unit: the unit, or a link."""
    if ours.unit in ours.columns and other.unit in other.columns:
        return {str(ours.unit): str(other.unit)}
    our_link, their_link = ours.link, other.link
    if our_link is not None and our_link.table == other.name:
        return {our_link.column: our_link.key}
    if their_link is not None and their_link.table == ours.name:
        return {their_link.key: their_link.column}
    if (
        our_link is not None
        and their_link is not None
        and (our_link.table, our_link.key) == (their_link.table, their_link.key)
    ):
        return {our_link.column: their_link.column}
    return {}


def _common_column(ours: Table, other: Table) -> str:
    """A column of both tables, or one of ours."""
    return next((name for name in ours.columns if name in other.columns), next(iter(ours.columns)))


def _listed_columns(table: Table) -> list[str]:
    """The columns of a table whose values are public, and are listed."""
    return [
        name
        for name, column in table.columns.items()
        if name != table.unit and (column.values is not None or column.kind == "boolean")
    ]


def _objective_text(objective: object) -> str:
    """An objective as SQL writes it: a word, or weights such as 'sex: 5; sex, race: 1'; empty for
    the default.
    """
    if isinstance(objective, Mapping):
        pairs = ((name if isinstance(name, tuple) else (name,), weight) for name, weight in objective.items())
        return "; ".join(
            f"{', '.join(map(str, names))}: {check.real(weight=weight)!r}" for names, weight in pairs
        )
    if isinstance(objective, str):
        return "" if objective == "each" else objective
    raise BadParameter(
        "DP104",
        "objective must be 'each', 'cells' or 'worst', or the weights of tables.",
        why="it says which errors are to be small.",
        fix='objective="worst"   or   objective={("sex",): 5, ("sex", "race"): 1}',
    )


def _keys_of(table: Table) -> str:
    """Two keys with public values, or any column but the unit, for a fix."""
    public = [name for name, column in table.columns.items() if column.values]
    others = [
        name
        for name, column in table.columns.items()
        if name != table.unit and column.kind in {"text", "integer", "boolean"}
    ]
    return ", ".join(f'"{name}"' for name in (public[:2] or others[:1] or list(table.columns)[:1]))


def _names(on: str | Sequence[str] | None) -> list[str]:
    return [] if on is None else [on] if isinstance(on, str) else [str(name) for name in value_list(on)]


def _name(key: str | Expression) -> str:
    """The name of a key: that of its column; another expression needs a name."""
    node = as_expression(key).node
    if isinstance(node, exp.Column):
        return str(node.name)
    raise BadParameter(
        "DP107",
        "an expression in group_by needs a name.",
        why="it becomes a column of the answer.",
        fix="data.group_by(year=…)",
    )


def _aliased_node(node: exp.Expression, name: str) -> exp.Expression:
    bare = not name or (isinstance(node, exp.Column) and node.name == name)
    return node if bare else exp.Alias(this=node, alias=identifier(name))


def _group_tuples(keys: object, names: list[str]) -> tuple[tuple[Any, ...], ...]:
    """Groups as tuples, from values of one column or tuples of several."""
    groups = [group if isinstance(group, tuple) else (group,) for group in value_list(keys)]
    if all(len(group) == len(names) for group in groups) and len(set(groups)) == len(groups):
        return tuple(groups)
    raise RefusedQuestion(
        "DP704",
        "keys must list each group once, with a value for each column.",
        why="they are the rows of the answer for all data.",
        fix='keys=["A", "B"]'
        if len(names) == 1
        else 'keys=[("A", "x"), ("B", "x")]   with a value for each column',
    )


#: Parts of errors about SQL, and the fix in Python.
_PYTHON_FIXES = {
    "needs bounds": "between=(0, 500)",
    "is a real number, and cannot be grouped by": '.histogram("…", edges=[10, 20, 50])',
    "is the privacy unit": ".units()",
    "needs public values": 'values=["A", "B"]',
    "arbitrarily close to 0": ".clamp(1, 1000)",
}


def _in_python(error: DiscreetError) -> DiscreetError:
    """The same error, with a fix in Python."""
    fix = next((fix for part, fix in _PYTHON_FIXES.items() if part in error.what), None)
    if fix is not None:
        error.fix = f"{error.fix};  in Python:  {fix}"
    return error
