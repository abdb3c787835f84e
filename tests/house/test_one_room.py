"""What is known of one protocol stands in its room: no other file names its class, asks its type or guesses hooks."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import protocols
from p2p_sim import privacy

ROOT = Path(__file__).parents[2]
ROOMS = ROOT / "p2p_sim" / "privacy" / "mechanisms"
OUTSIDE = [path for path in sorted((ROOT / "p2p_sim").rglob("*.py")) if ROOMS not in path.parents]

NAMES = {"protocol", "program", "against"}
"""What protocols are called in this package."""
PARTS = {"protocol", "source"}
"""And as a part of something else: ``run.source``, ``world.protocol``."""
ENGINE = {"core/protocol.py", "core/columns_read.py", "core/block.py", "privacy/enumeration/label_flow.py"}
"""Where a role's program is looked up by the role's name, and parameters by theirs, also to watch what it reads."""
GENERAL = {"Protocol", "Run", "PrivacyProfile", "type"}
"""What a caller's argument may be instead of a protocol, and is asked for."""


def of_protocol(node: ast.expr) -> bool:
    """Whether an expression is a protocol or its class, by its name: ``protocol``, ``run.source``, ``type(kind)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type":
        return bool(node.args) and of_protocol(node.args[0])
    if isinstance(node, ast.Attribute):
        return of_protocol(node.value) if node.attr == "__class__" else node.attr in PARTS
    return isinstance(node, ast.Name) and node.id in NAMES


def kinds(node: ast.expr) -> set[str]:
    """The names of the classes that ``isinstance`` is asked for."""
    each = node.elts if isinstance(node, ast.Tuple) else [node]
    return {ast.unparse(one) for one in each}


def switches(tree: ast.AST) -> Iterator[str]:
    """Every place where a file guesses hooks of a protocol, or asks which one it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            asked, what = node.func.id, node.args[0]
            mine = of_protocol(what) or (asked != "isinstance" and ast.unparse(what) == "kind")
            general = asked in ("isinstance", "issubclass") and kinds(node.args[1]) <= GENERAL
            if mine and not general and asked in ("hasattr", "getattr", "isinstance", "issubclass"):
                yield ast.unparse(node)
        of_class = isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type(")
        of_class |= isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".__class__")
        if of_class and of_protocol(node.left):
            yield ast.unparse(node)
        if isinstance(node, ast.Match) and of_protocol(node.subject):
            yield f"match {ast.unparse(node.subject)}"


def classes_named(tree: ast.AST) -> set[str]:
    """Every class of a shipped protocol that the program of a file names; its texts may."""
    shipped = {kind.__name__ for kind in protocols.ALL}
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    named |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {n.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for n in node.names}
    return named & shipped


@pytest.mark.slow
@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_file_knows_protocols_apart(path):
    tree = ast.parse(path.read_text())
    assert not classes_named(tree)
    if path.relative_to(ROOT / "p2p_sim").as_posix() not in ENGINE:
        assert not list(switches(tree))


@pytest.mark.parametrize(
    "line",
    [
        "hasattr(protocol, 'bag_size')",
        "getattr(run.source, 'grid', 1)",
        "getattr(self.protocol, 'noisy', True)",
        "isinstance(program, EncryptedShuffle)",
        "isinstance(protocol, (Protocol, PeerToPeer))",
        "issubclass(kind, PeerToPeer)",
        "type(protocol) is PeerToPeer",
        "type(protocol) in (A, B)",
        "run.source.__class__ == A",
        "hasattr(kind, 'mixes_everybody')",
        "match protocol:\n    case A(): pass",
    ],
)
def test_the_check_finds_each_way_to_tell_them_apart(line):
    assert list(switches(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(protocol, Protocol)",
        "isinstance(protocol, type) or not isinstance(protocol, Protocol)",
        "getattr(message, 'sender')",
        "type(protocol).__name__",
        "known(protocol).law",
    ],
)
def test_the_check_lets_pass_what_tells_nothing_apart(line):
    assert not list(switches(ast.parse(line)))


def test_the_check_finds_classes():
    assert classes_named(ast.parse("from protocols import PeerToPeer as P")) == {"PeerToPeer"}
    assert classes_named(ast.parse("protocols.PeerToPeer(0.1)")) == {"PeerToPeer"}
    assert not classes_named(ast.parse("'give an object, such as PeerToPeer(alpha=0.1)'"))


@pytest.mark.parametrize("kind", protocols.ALL, ids=lambda kind: kind.__name__)
def test_every_shipped_protocol_has_its_room(kind):
    """A room goes by the name of the protocol's file, and registers that one alone."""
    known = privacy.accounting(kind)
    assert known is not None
    assert known.law is not None
    assert known.under_faults is not None
    room = importlib.import_module(f"{privacy.mechanisms.__name__}.{kind.__module__.rpartition('.')[2]}")
    named = {other for other in protocols.ALL if other in vars(room).values()}
    assert named == {kind}
