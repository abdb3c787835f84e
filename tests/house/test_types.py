"""Runs, protocols, populations and laws have types of their own: ``Any`` would hide what is asked of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "p2p_sim"
NAMES = {"run", "protocol", "program", "population", "people", "law"}
SOURCES = sorted(ROOT.rglob("*.py"))


def untyped(tree: ast.Module) -> Iterator[str]:
    """Parameters and attributes of one of the names that are ``Any``; a document may be a ``Mapping[str, Any]``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            name, annotation = node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, (ast.Name, ast.Attribute)):
            target = node.target
            name, annotation = target.id if isinstance(target, ast.Name) else target.attr, node.annotation
        else:
            continue
        if name in NAMES and annotation is not None and "Any" in ast.unparse(annotation).split(" | "):
            yield f"line {node.lineno}: {name}: {ast.unparse(annotation)}"


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_module_is_about_is_not_any(path):
    assert not list(untyped(ast.parse(path.read_text()))), "give it its type, such as RunRecord or Protocol"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(run: Any): ...", 1),
        ("def f(*, protocol: Any | None = None): ...", 1),
        ("class A:\n    population: Any", 1),
        ("def f(self):\n    self.law: Any = None", 1),
        ("def f(run: RunRecord, other: Any): ...", 0),
        ("def f(run: Mapping[str, Any]): ...", 0),
        ("class A:\n    people: Population | None", 0),
    ],
)
def test_the_check_finds_them(text, found):
    assert len(list(untyped(ast.parse(text)))) == found
