"""The manifest agrees with the list of promises and with the tests, in both directions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from holdfast.model.contract import CONTRACT, PromiseState, on_host
from holdfast.model.state import Level
from requirements.manifest import BY_ID, REQUIREMENTS, Requirement

ROOT = Path(__file__).resolve().parents[2]

_COUNTS = {"S": 8, "A": 11, "M": 9, "F": 5, "N": 9, "R": 6, "G": 5}
PROMISED = [f"{letter}{number + 1}" for letter in _COUNTS for number in range(_COUNTS[letter])]


@cache
def collected() -> dict[str, frozenset[str]]:
    """Every test by its pytest id without parameters, with the promises it cites. Read from the
    source, so that a test which is skipped or cannot be imported here counts as well."""
    found: dict[str, frozenset[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shared = _cited_by_all(tree)
        for name, node in _tests(tree):
            cited = {promise for mark in node.decorator_list for promise in _cited(mark)}
            found[f"{path.relative_to(ROOT)}::{name}"] = frozenset(cited | shared)
    return found


def _tests(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test_"):
                yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}::{inner.name}", inner


def _cited(mark: ast.expr) -> Iterator[str]:
    """`@pytest.mark.requirement("S1", "S3")` cites S1 and S3."""
    if (
        isinstance(mark, ast.Call)
        and isinstance(mark.func, ast.Attribute)
        and mark.func.attr == "requirement"
    ):
        for argument in mark.args:
            assert isinstance(argument, ast.Constant), "cite promises by their literal ids"
            yield str(argument.value)


def _cited_by_all(tree: ast.Module) -> set[str]:
    """A module's `pytestmark = pytest.mark.requirement(...)`, alone or in a list."""
    cited: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [
            "pytestmark"
        ]:
            marks = (
                node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            )
            cited.update(promise for mark in marks for promise in _cited(mark))
    return cited


def test_every_promise_is_in_the_manifest_once_and_in_order() -> None:
    assert [requirement.id for requirement in REQUIREMENTS] == PROMISED


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_a_promise_has_a_sentence_and_is_shown_or_open(requirement: Requirement) -> None:
    assert requirement.promise.endswith(".")
    assert requirement.tests or requirement.open
    assert len(set(requirement.tests)) == len(requirement.tests)
    assert all((ROOT / "src/holdfast" / name).is_file() for name in requirement.files)
    assert requirement.files or not requirement.tests, "say where what is tested is to be read"


def test_every_test_the_manifest_names_exists() -> None:
    named = {test for requirement in REQUIREMENTS for test in requirement.tests}
    assert not named - set(collected())


def test_every_test_that_cites_a_promise_is_in_the_manifest() -> None:
    unknown, unlisted = [], []
    for test, cited in collected().items():
        for promise in cited:
            if promise not in BY_ID:
                unknown.append(f"{test} cites {promise}")
            elif test not in BY_ID[promise].tests:
                unlisted.append(f"{promise}: {test}")
    assert not unknown
    assert not unlisted, "\n".join(["add to tests/requirements/manifest.py:", *unlisted])


def test_citations_are_read_from_marks() -> None:
    tree = ast.parse(
        "pytestmark = [pytest.mark.requirement('S2')]\n"
        "@pytest.mark.requirement('S1', 'S3')\n"
        "def test_one(): ...\n"
    )
    ((name, node),) = _tests(tree)
    assert name == "test_one"
    assert [p for mark in node.decorator_list for p in _cited(mark)] == ["S1", "S3"]
    assert _cited_by_all(tree) == {"S2"}


def test_the_product_knows_its_promises_and_which_of_them_no_test_shows() -> None:
    table = {promise.id: promise for promise in CONTRACT}
    assert len(table) == len(CONTRACT)
    for requirement in REQUIREMENTS:
        known = table.pop(requirement.id)
        assert known.text == requirement.promise, requirement.id
        said = f"{requirement.id}: change `absent` in src/holdfast/model/contract.py"
        assert known.absent is not bool(requirement.tests), said
    # What is not in the manifest yet has no tests either.
    assert all(promise.absent for promise in table.values())


@pytest.mark.parametrize("level", Level)
def test_what_a_host_promises_depends_on_its_level(level: Level) -> None:
    here = {promise.id: on_host(promise, level) for promise in CONTRACT}
    assert here["S1"].state is PromiseState.HELD
    assert here["N4"].state is PromiseState.UNAVAILABLE and here["N4"].note
    movable = level is Level.MOVABLE
    assert here["M3"].state is (PromiseState.HELD if movable else PromiseState.HANDED)
    assert bool(here["M2"].note) is not movable
    assert all(each.note for each in here.values() if each.state is not PromiseState.HELD)
