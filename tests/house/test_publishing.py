# SPDX-License-Identifier: Apache-2.0
"""What a public forge shows agrees with the project: dependencies, versions, and the targets that its workflows call."""

from __future__ import annotations

import re
import tomllib

import pytest
import yaml

import discreet
from tests.house.project import DOCS, ROOT, read, relative

PROJECT = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
INSTALL = DOCS / "how-to" / "install.md"
FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
EXTRAS = PROJECT["optional-dependencies"]


def package_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~ ]", requirement, maxsplit=1)[0]


def places_of_dependencies() -> dict[str, set[str]]:
    """For each package that pyproject.toml names, the extras that it is in; the core is one of them."""
    lists = {"core": PROJECT["dependencies"], **{name: EXTRAS[name] for name in EXTRAS if name != "all"}}
    places: dict[str, set[str]] = {}
    for place, requirements in lists.items():
        for requirement in requirements:
            places.setdefault(package_of(requirement), set()).add(place)
    return places


def rows_of_dependencies(text: str) -> dict[str, tuple[set[str], str, str]]:
    """For each package of the table: where it is, why, and its licence."""
    rows = re.findall(r"^\| `([\w-]+)` \| ([\w, ]+) \| ([^|]*) \| ([^|]*) \|$", text, flags=re.MULTILINE)
    return {name: (set(places.split(", ")), why, licence) for name, places, why, licence in rows}


def test_every_dependency_has_its_reason():
    rows = rows_of_dependencies(read(INSTALL))
    assert {name: places for name, (places, _, _) in rows.items()} == places_of_dependencies()
    assert [name for name, (_, why, licence) in rows.items() if not why.strip() or not licence.strip()] == []


def test_a_dependency_without_a_row_is_found():
    assert rows_of_dependencies("| `numpy` | core | sums | BSD |") == {"numpy": ({"core"}, "sums", "BSD")}
    assert package_of("psycopg[binary]>=3.1") == "psycopg"
    assert places_of_dependencies()["httpx"] == {"client", "dev"}


def test_every_extra_is_on_the_page():
    table = read(INSTALL).partition("## Without extras")[0]
    named = {extra for cell in re.findall(r"\| `([\w,]+)` \|", table) for extra in cell.split(",")}
    assert named == set(EXTRAS) - {"dev"}


def test_all_means_every_extra_but_those_for_development():
    (requirement,) = EXTRAS["all"]
    assert set(re.findall(r"\[(.+)\]", requirement)[0].split(",")) == set(EXTRAS) - {"all", "dev"}


def test_a_wheel_on_the_page_has_the_version():
    assert set(re.findall(r"discreet-([\d.]+)-py3", read(INSTALL))) == {discreet.__version__}


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load(read(ROOT / "CITATION.cff"))
    assert citation["version"] == discreet.__version__
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [
        author["name"] for author in PROJECT["authors"]
    ]


def steps(workflow: str) -> list[dict[str, object]]:
    return [step for job in yaml.safe_load(workflow)["jobs"].values() for step in job["steps"]]


def commands() -> dict[str, set[str]]:
    """What each workflow runs."""
    return {
        path.name: {str(step["run"]) for step in steps(read(path)) if "run" in step} for path in WORKFLOWS
    }


def test_workflows_run_nothing_but_make_targets_that_exist():
    targets = set(re.findall(r"^(\w+):", read(ROOT / "Makefile"), flags=re.MULTILINE))
    called = {command for run in commands().values() for command in run}
    assert called
    assert [command for command in called if not re.fullmatch(r"make (PYTHON=python )?\w+", command)] == []
    assert {command.split()[-1] for command in called} <= targets


def test_a_forge_runs_what_has_to_pass_before_a_change_lands():
    required = set(re.findall(r"^make (\w+)", read(ROOT / ".ci" / "run"), flags=re.MULTILINE))
    assert {"test", "installs"} <= required
    assert required | {"check", "docs"} == {command.split()[-1] for command in commands()["checks.yml"]}


def test_the_tests_run_on_every_python_that_is_guaranteed():
    guaranteed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    jobs = yaml.safe_load(read(FORGE / "workflows" / "checks.yml"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == guaranteed
    assert f"tested with {', '.join(guaranteed[:-1])} and {guaranteed[-1]}" in read(INSTALL)
    for path in WORKFLOWS:
        installs = yaml.safe_load(read(path))["jobs"]["installs"]["steps"]
        versions = [
            step["with"]["python-version"] for step in installs if "setup-python" in step.get("uses", "")
        ]
        assert [version.split() for version in versions] == [guaranteed]


@pytest.mark.parametrize("path", WORKFLOWS, ids=relative)
def test_a_workflow_may_only_read(path):
    assert yaml.safe_load(read(path))["permissions"] == {"contents": "read"}


@pytest.mark.parametrize(
    "path",
    [path for path in sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"],
    ids=relative,
)
def test_a_form_asks_for_something_and_each_field_once(path):
    form = yaml.safe_load(read(path))
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert form["name"]
    assert form["description"]
    assert any(field.get("validations", {}).get("required") for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)


def test_every_file_of_the_project_is_in_the_sdist():
    text = tomllib.loads(read(ROOT / "pyproject.toml"))
    included = text["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in included if not (ROOT / name.removeprefix("/")).exists()] == []
    pages = {f"/{path.name}" for pattern in ("*.md", "*.cff") for path in ROOT.glob(pattern)}
    assert pages - set(included) <= {"/README.md"}


def test_every_proof_is_on_the_page_of_the_threat_model():
    page = read(DOCS / "explain" / "threat-model.md")
    proofs = [path.name for path in (ROOT / "src").rglob("*.proof.md")]
    assert len(proofs) > 20
    assert [name for name in proofs if not re.search(rf"\b{re.escape(name)}`", page)] == []


def test_every_sharp_edge_is_in_its_list():
    from tests.house.test_documents import headings, slugify

    page = read(DOCS / "explain" / "threat-model.md")
    linked = set(re.findall(r"sharp-edges/(\w+)\.md#([\w-]+)", page))
    edges = {
        (path.stem, slugify(heading, "-"))
        for path in (DOCS / "sharp-edges").glob("*.md")
        for heading in headings(read(path))[1:]
    }
    assert (
        edges - linked
        == {
            ("timing", "a-fixed-response-time"),
            ("timing", "what-helps"),
            ("timing", "what-does-not-help"),
        }
        - linked
    )
    assert linked <= edges
