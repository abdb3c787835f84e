"""Nobody asks which law a law is: what composition, reports and audits need are methods of every law."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import p2p_sim.privacy
from p2p_sim.privacy.law import Law

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "p2p_sim").rglob("*.py"), *(ROOT / "protocols").rglob("*.py")])


def concrete() -> dict[str, str]:
    """The names of all laws of the package, each with its file."""
    for module in pkgutil.walk_packages(p2p_sim.privacy.__path__, "p2p_sim.privacy."):
        importlib.import_module(module.name)
    found, left = {}, [*Law.__subclasses__()]
    while left:
        law = left.pop()
        left += law.__subclasses__()
        if law.__module__.startswith("p2p_sim."):
            found[law.__name__] = inspect.getfile(law)
    return found


LAWS = concrete()


def switches(tree: ast.Module) -> set[str]:
    """The laws that a file tells apart by class, and ``getattr`` where something of a law is guessed at."""
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        told: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                told = [node.args[1]]
            if node.func.id in ("getattr", "hasattr") and "law" in ast.unparse(node.args[0]).lower():
                found.add(node.func.id)
        elif isinstance(node, ast.MatchClass):
            told = [node.cls]
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            told = node.comparators
        for part in told:
            names = {inner.id for inner in ast.walk(part) if isinstance(inner, ast.Name)}
            names |= {inner.attr for inner in ast.walk(part) if isinstance(inner, ast.Attribute)}
            for name in names & named.keys():
                names |= {inner.id for inner in ast.walk(named[name]) if isinstance(inner, ast.Name)}
            found |= names & LAWS.keys()
    return found


def test_the_laws_are_found() -> None:
    assert {"Nothing", "Mixture", "Gaussian", "ShuffledBits", "Worst"} <= LAWS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_asks_which_law_a_law_is(path: Path) -> None:
    own = {name for name, file in LAWS.items() if Path(file) == path}
    found = switches(ast.parse(path.read_text())) - own
    assert not found


def test_the_check_finds_switches() -> None:
    for text in (
        "isinstance(law, Worst)",
        "isinstance(law, (int, combine.Worst))",
        "SOME = Worst | Nothing\nisinstance(law, SOME)",
        "match law:\n    case Worst():\n        pass",
        "type(law) is Worst",
    ):
        assert "Worst" in switches(ast.parse(text)), text
    assert switches(ast.parse("getattr(profile.law, 'covered', True)")) == {"getattr"}
    assert not switches(ast.parse("isinstance(size, int)"))
