# SPDX-License-Identifier: Apache-2.0
"""One language: a class name is used once, functions are called by verbs or nouns, what is public is typed and explained.

Texts use the words of the field, too: a few phrases that only insiders would understand occur nowhere.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict

import pytest

from tests.house.project import DOCS, PACKAGE, ROOT, read, relative, source_files, tree_of

#: What users import from.
PUBLIC = [
    "discreet",
    "discreet.audit",
    "discreet.client",
    "discreet.data",
    "discreet.graphs",
    "discreet.learn",
    "discreet.learn.torch",
    "discreet.ledger",
    "discreet.mechanisms",
    "discreet.mechanisms.ptr",
    "discreet.mechanisms.smooth",
    "discreet.noise",
    "discreet.plot",
    "discreet.privacy",
    "discreet.session",
    "discreet.streams",
    "discreet.tables",
    "discreet.testing",
]

#: Parameters and results of public functions that may be `Any`, each with its reason.
ANYTHING: dict[str, str] = {
    "discreet.mechanisms.Release.__init__(value)": "each mechanism has its own type of value",
    "discreet.mechanisms.Release.__init__(error)": "a number, or numbers in the shape of the value",
}
#: Methods whose signature is scikit-learn's.
PROTOCOL = {".set_params(**params)", ".fit_transform(**fit_params)"}
#: Public names that owe neither an example nor a guarantee, each with its reason.
WITHOUT_EXAMPLE: dict[str, str] = {
    "discreet.testing.ScriptEnded": "an exception, with no arguments",
    "discreet.testing.ScriptedSource": "for tests; `walk` shows it",
    "discreet.testing.SeededSource": "for tests; `using` shows it",
}
#: Methods and constructors that people know by these adjectives, and a word that is a noun or a verb here.
KNOWN = {"allocated", "batched", "bound", "concentrated", "cut", "sampled", "seeded", "selected", "shuffled"}

IRREGULAR = {
    *(
        "again",
        "begun",
        "bound",
        "built",
        "chosen",
        "cut",
        "done",
        "drawn",
        "found",
        "given",
        "held",
        "hidden",
        "kept",
    ),
    *(
        "known",
        "left",
        "lost",
        "made",
        "met",
        "outside",
        "paid",
        "said",
        "seen",
        "sent",
        "shown",
        "spelt",
        "spent",
    ),
    *("split_up", "taken", "told", "together", "understood", "worn", "written"),
}
_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
NO_PARTICIPLE = {"embed", "feed", "need", "seed", "shed", "speed", "exceed", "proceed", "succeed"}

#: Phrases without a meaning in the field, as regular expressions, each with the words to use in its place.
DIALECT = {
    r"weigh(ed|s)? down": "down-weighted",
    r"counts? in full": "is not down-weighted",
    r"leav(es?|ing) with (status )?[0-9]": "exits with status 3",
    r"whom the data protect": "the privacy unit",
    r"names? (itself|themselves)": "private keys, found by key selection",
    r"(were|was|are|is) withheld": "suppressed",
    r"(were|was|are|is) (it )?not said|is said in the notes": "the answer does not state it; a note states it",
    r"(pure|rényi|gaussian) lanes?": "accounting track",
    r"how wrong": "margin of error",
    r"misses (upwards|downwards)": "is too high, is too low",
    r"in (another|other) dress": "name what it is",
    r"for the eye": "rendered, or as text",
    r"data set in words": "describes a data set",
    r"another door": "another source",
    r"\bportrait": "figure, or chart",
}
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(
        path for folder in (PACKAGE, DOCS) for path in folder.rglob("*") if path.suffix in {".py", ".md"}
    ),
]


def dialect_in(text: str) -> list[str]:
    """Phrases of the dialect, however the lines of a text are broken."""
    flat = re.sub(r"\s+#?\s*", " ", text).lower()
    return [match[0] for phrase in DIALECT for match in re.finditer(phrase, flat)]


def public_objects() -> dict[str, object]:
    """Everything that a public package offers, once, by its full name."""
    objects: dict[str, object] = {}
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and thing not in objects.values():
                objects[f"{package}.{name}"] = thing
    return objects


def members(thing: object) -> list[tuple[str, object]]:
    """A function itself; of a class what it defines for its users, and how it is made."""
    if not inspect.isclass(thing):
        return [("", thing)]
    own = [
        (name, value) for name, value in vars(thing).items() if not name.startswith("_") or name == "__init__"
    ]
    unwrapped = [(name, getattr(value, "__func__", getattr(value, "fget", value))) for name, value in own]
    # scikit-learn hangs methods of its own on the classes of estimators
    return [
        (f".{name}", value)
        for name, value in unwrapped
        if inspect.isfunction(value) and value.__qualname__.startswith(f"{thing.__qualname__}.")
    ]


def is_bare_participle(name: str) -> bool:
    word = name.strip("_")
    if word in KNOWN:
        return False
    return word in IRREGULAR or (word.endswith("ed") and "_" not in word and word not in NO_PARTICIPLE)


def functions_by_participle(tree: ast.AST) -> list[str]:
    """Functions whose name says only how their result came about; properties may be adjectives."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and is_bare_participle(node.name)
        and not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def test_a_class_name_is_used_once():
    homes = defaultdict(list)
    for path in source_files():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(relative(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_a_function_is_a_verb_or_a_noun(path):
    assert functions_by_participle(tree_of(path)) == []


def untyped(thing: object) -> list[str]:
    """What a function takes or returns as bare `Any`, or as names that nobody has written down."""
    signature = inspect.signature(thing)
    types = {f"{_STARS.get(p.kind, '')}{name}": p.annotation for name, p in signature.parameters.items()}
    types["return"] = signature.return_annotation
    return [name for name, kind in types.items() if kind in {"Any", "Any | None"} or name.startswith("**")]


def test_what_is_public_is_typed_and_spelt_out():
    found = {
        f"{name}{member}({what})"
        for name, thing in public_objects().items()
        for member, function in members(thing)
        for what in untyped(function)
        if f"{member}({what})" not in PROTOCOL
    }
    assert found == set(ANYTHING)


def test_every_public_name_says_what_it_is_and_shows_it():
    silent = {
        name
        for name, thing in public_objects().items()
        if not (thing.__doc__ or "").strip()
        or (">>>" not in thing.__doc__ and "**Guarantee" not in thing.__doc__)
    }
    assert silent == set(WITHOUT_EXAMPLE)


def test_every_public_member_says_what_it_does():
    silent = [
        f"{name}{member}"
        for name, thing in public_objects().items()
        for member, function in members(thing)
        if member != ".__init__"
        and not inspect.getdoc(getattr(thing, member[1:], function) if member else function)
    ]
    assert silent == []


@pytest.mark.parametrize("path", TEXTS, ids=relative)
def test_a_text_uses_the_words_of_the_field(path):
    assert dialect_in(read(path)) == []


def test_the_dialect_is_found_across_lines_and_cases():
    text = "How\n    # wrong it is. The rows are weighed\n    down. It leaves with 3."
    assert dialect_in(text) == ["weighed down", "leaves with 3", "how wrong"]
    assert dialect_in("The margin of error. The noise has two tails.") == []


def test_the_rules_find_what_they_look_for():
    tree = ast.parse("def _divided(): ...\ndef divide(): ...\n@property\ndef refused(self): ...")
    assert functions_by_participle(tree) == ["_divided"]

    def careless(data: Any, *, scale: float, **words: Any) -> Any: ...  # noqa: F821

    assert untyped(careless) == ["data", "**words", "return"]


def wide_prose(text):
    """Lines of docstrings beyond column 100, but for tables, examples and what is indented."""
    lines = text.splitlines()
    wide = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or not ast.get_docstring(node):
            continue
        docstring = node.body[0]
        prose = [line.removesuffix('"""') for line in lines[docstring.lineno - 1 : docstring.end_lineno]]
        for paragraph in "\n".join(prose).split("\n\n"):
            is_example = any(part in paragraph for part in (">>> ", "| ")) or re.search(
                r"\S {2,}\S", paragraph
            )
            indented = " " * (docstring.col_offset + 2)
            wide += [
                line
                for line in paragraph.split("\n")
                if len(line) > 100
                and not is_example
                and not line.strip().startswith("discreet ")
                and not line.startswith(indented)
            ]
    return wide


@pytest.mark.parametrize("path", source_files(), ids=relative)
def test_prose_ends_at_column_100(path):
    assert wide_prose(read(path)) == []


def test_a_wide_line_of_prose_is_found():
    words = "word " * 21
    assert wide_prose(f'def f():\n    """{words}end."""\n') != []
    assert (
        wide_prose(f'def f():\n    """Short.\n\n    name      {words}\n    >>> f({words})\n    """\n') == []
    )
