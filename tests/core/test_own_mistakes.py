"""What authors of protocols do wrong in Python: each is refused in one line, with place and fix."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import catalogue
from p2p_sim.core import InputError, Message, Population, Protocol, ProtocolError
from p2p_sim.core.draw import Draw
from protocols import PeerToPeer
from tests.core.stage import Stage, asks, perform, refused, reports
from tests.tiny import people


def test_a_column_as_a_condition():
    def program(self, me):
        if me.y:
            yield self.report(y=me.y, v=0)

    refused(
        r"^role 'user', step 0: ValueError: The truth value .*\(test_own_mistakes.py, line \d+\); a column has one "
        "entry a party.*np.where.*when=",
        program,
        blocks=2,
    )


def test_a_column_as_a_number():
    refused(
        r"^role 'user', step 0: TypeError: .*scalar.*compute with the whole column",
        reports(y=lambda me: float(me.id)),
    )


@pytest.mark.parametrize("blocks", [1, 4])
def test_recipients_in_two_dimensions(blocks):
    program = asks(to=lambda me: np.stack([me.id, me.id], axis=1))
    refused(
        r"role 'user', step 0, message 'ask': to= has shape \(\d+, 2\); give one entry a party",
        program,
        blocks=blocks,
    )


def test_ragged_values_of_a_field():
    refused("^role 'user', step 0: ValueError: .*inhomogeneous", reports(v=lambda me: [[1, 2], [3]] * 6))


def test_ragged_outputs():
    def program(self, me):
        yield self.report(y=me.y, v=0)
        return {"z": [[1], [1, 2]]}

    refused("^role 'user', step 1: ValueError: .*inhomogeneous", program)


def test_a_column_that_is_not_there():
    text = "^role 'user', step 0: this population has no secret column 'z'"
    refused(text, reports(y=lambda me: me.secret["z"]), blocks=3)


def test_the_line_is_the_programs_own_where_numpy_raises():
    refused(r"\(test_own_mistakes.py, line \d+\)", reports(y=lambda me: np.linalg.inv(np.zeros((2, 2)))))


@pytest.mark.parametrize("value", [lambda size: np.zeros(size, np.int8 if size > 5 else np.int64)])
def test_output_types_that_differ_by_block(value):
    def program(self, me):
        yield self.report(y=me.y, v=0)
        return {"z": value(me.size + (me.id[0] == 0) * 9)[: me.size]}

    perform(program, blocks=1)
    text = (
        r"output 'z' is int8 of shape \(n, \*\(\)\) in one block, int64 .*must not depend on the data.*astype"
    )
    refused(text, program, blocks=6)


def test_output_widths_that_differ_by_block():
    def program(self, me):
        yield self.report(y=me.y, v=0)
        return {"z": np.zeros((me.size, 2 if me.id[0] else 3))}

    refused(r"shape \(n, \*\(3,\)\) in one block, .*\(n, \*\(2,\)\)", program, blocks=2)


@dataclass(frozen=True)
class Holding(Protocol):
    """A protocol with a parameter of any type."""

    what: Any = None

    report = Message("user", "learner", "reports", y=bool)

    def user(self, me):
        yield self.report(y=me.y)

    def learner(self, me):
        got = yield self.report.receive()
        return got.columns()


@pytest.mark.parametrize("what", [[1], {"a": 1}, {1}, bytearray(b"a"), np.zeros(2), ([1],)], ids=repr)
def test_parameters_that_can_change(what):
    with pytest.raises(InputError, match=r"^what = .*must not change during a run.*give a tuple"):
        p2p_sim.run(Holding(what), people(), seed=1)


@pytest.mark.parametrize("what", [abs, Draw], ids=repr)
def test_parameters_that_no_folder_keeps_are_refused_before_the_run(what, tmp_path, monkeypatch):
    run = p2p_sim.run(Holding(what), people(), seed=1)
    with pytest.raises(InputError, match=r"^what = .*: a run directory keeps parameters that are numbers"):
        run.save(tmp_path / "a")
    monkeypatch.setattr(sys.modules["p2p_sim.run"], "backends", None)
    with pytest.raises(InputError, match=r"^what = .*: a run directory keeps parameters that are numbers"):
        p2p_sim.run(Holding(what), people(), seed=1, out=tmp_path / "b")
    frozen = np.zeros(2)
    frozen.setflags(write=False)
    with pytest.raises(InputError, match="not a ndarray"):
        p2p_sim.run(Holding(frozen), people(), seed=1, out=tmp_path / "b")
    assert not list(tmp_path.iterdir())


def test_tuples_are_kept(tmp_path):
    p2p_sim.run(Holding((1, 2.5, "a")), people(), seed=1, out=tmp_path / "a")
    assert p2p_sim.load(tmp_path / "a").parameters == {"what": (1, 2.5, "a")}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda: p2p_sim.run(PeerToPeer(0.1), people(), seed=1, out=5), "out = 5: give the path"),  # type: ignore[arg-type]
        (lambda: p2p_sim.load(None), "path = None: give the path"),  # type: ignore[arg-type]
        (lambda: Population.from_file(None), "path = None: give the path"),  # type: ignore[arg-type]
        (lambda: p2p_sim.run(PeerToPeer(0.1), people(), seed=1).save(7), "path = 7: give the path"),  # type: ignore[arg-type]
        (lambda: p2p_sim.run(PeerToPeer(0.1), people(), seed=1).replay(None), "user = None: give the id"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_path_and_nobody(wrong, text):
    with pytest.raises(InputError, match=f"^{text}"):
        wrong()


@pytest.mark.parametrize("name", ["check", "roles", "messages", "label_count"])
def test_reserved_names_of_parameters_and_kinds(name):
    text = f"Mine: a parameter cannot be called {name!r}.*rename it; reserved: .*check"
    with pytest.raises(ProtocolError, match=text):
        type("Mine", (Protocol,), {"__annotations__": {name: "float"}, name: None})
    text = f"Mine: a message kind cannot be called {name!r}"
    with pytest.raises(ProtocolError, match=text):
        type("Mine", (Protocol,), {name: Message("user", "learner", "says")})


MODULES = {
    "bare": "class Mine(Protocol):\n    alpha: float = 0.1\n    tell = Message('user', 'learner', 'tells', y=bool)",
    "inherits": "from protocols import PeerToPeer\nclass Mine(PeerToPeer):\n    beta: float = 0.1",
    "thawed": "@dataclass\nclass Mine(Protocol):\n    tell = Message('user', 'learner', 'tells', y=bool)",
    "empty": "@dataclass(frozen=True)\nclass Mine(Protocol):\n    pass",
    "raises": "1 / 0",
    "exits": "import sys\nsys.exit(3)",
    "reserved": "@dataclass(frozen=True)\nclass Mine(Protocol):\n    check: float = None",
}
TOLD = {
    "bare": r"Mine must be a frozen dataclass: put @dataclass\(frozen=True\)",
    "inherits": r"Mine must be a frozen dataclass: put @dataclass\(frozen=True\)",
    "thawed": "Mine must be a frozen dataclass",
    "empty": "Mine declares no message",
    "raises": r"importing it raises ZeroDivisionError: division by zero \(.*raises.py, line 4\)",
    "exits": r"importing it raises SystemExit: 3 \(.*exits.py, line 5\)",
    "reserved": "Mine: a parameter cannot be called 'check'",
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_hold_no_protocol(name, tmp_path, monkeypatch):
    head = "from dataclasses import dataclass\nfrom p2p_sim.core import Message, Protocol\n\n"
    (tmp_path / f"own_{name}.py").write_text(head + textwrap.dedent(MODULES[name]) + "\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^protocol 'own_{name}:Mine': {TOLD[name]}"):
        catalogue.imported(f"own_{name}:Mine")


@pytest.mark.slow
def test_the_base_of_all_protocols_is_none():
    with pytest.raises(InputError, match="is the base of all protocols: name a class derived from it"):
        catalogue.imported("p2p_sim.core:Protocol")


def test_a_subclass_that_adds_no_parameter_needs_no_decorator():
    class Mine(PeerToPeer):
        pass

    Mine(0.1).check()
    Stage(reports()).check()
