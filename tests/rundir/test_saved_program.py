"""A run that another version of its protocol made is refused by name: run, protocol, parameter, and what to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, catalogue
from p2p_sim.core import Message, Protocol, check_flip
from protocols import RandomizedResponse
from tests.cli.conftest import cli  # noqa: F401
from tests.run_json_files import document_in

PEOPLE = Population.synthetic(users=20, seed=2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return p2p_sim.run(RandomizedResponse(1.0), PEOPLE, seed=1).save(tmp_path / "run")


CHANGES = {
    "there is no epsilom (= 1.0), it has epsilon": ({"epsilom": 1.0}, "did you mean 'epsilon'?"),
    "epsilon is missing": ({"labels": 2}, ""),
    "epsilon = -1.0": ({"epsilon": -1.0}, "must be"),
    "epsilon = 'x': must be a number": ({"epsilon": "x"}, ""),
}


@pytest.mark.parametrize("says", CHANGES)
def test_a_shipped_protocol_of_another_version(says, path, cli):  # noqa: F811
    parameters, more = CHANGES[says]
    told = document_in(path)
    (path / "run.json").write_text(json.dumps({**told, "parameters": parameters}))
    with pytest.raises(InputError) as caught:
        p2p_sim.load(path)
    for text in (str(caught.value), cli("report", str(path)).err, cli("trace", "stats", str(path)).err):
        for word in (
            f"'{path}/run.json'",
            catalogue.class_name(RandomizedResponse),
            says,
            more,
            "another version",
        ):
            assert word in text, (word, text)
    assert f"p2p-sim {told['versions']['p2p-sim']}" in str(caught.value)


@dataclass(frozen=True)
class Old(Protocol):
    flip: float = 0.4
    answer = Message("user", "learner", "says a noisy label", y=bool)

    def user(self, me):
        yield self.answer(y=me.y ^ me.draw.bernoulli("flip", self.flip))

    def learner(self, me):
        return (yield self.answer.receive()).columns()


@dataclass(frozen=True)
class New(Old):
    flip: float = 0.1

    def __post_init__(self) -> None:
        check_flip("flip", self.flip)
        if self.flip > 0.25:
            raise InputError(f"flip = {self.flip}: must be at most 0.25")


New.__name__ = "Old"


def test_one_of_ones_own_is_named_with_its_option(tmp_path, cli, monkeypatch):  # noqa: F811
    path = p2p_sim.run(Old(), PEOPLE, seed=1).save(tmp_path / "run")
    monkeypatch.setattr("tests.rundir.test_saved_program.Old", New)
    name = "tests.rundir.test_saved_program:Old"
    for words in (("report", path, "--protocol", name), ("audit", name, "--run", path)):
        done = cli(*words)
        assert done.status == 2
        assert "flip = 0.4: must be at most 0.25; another version of the protocol made the run" in done.err, (
            done.err
        )


@dataclass(frozen=True)
class Renamed(Protocol):
    flip: float = 0.4
    reply = Message("user", "learner", "says a noisy label", y=bool)


@dataclass(frozen=True)
class Retyped(Old):
    answer = Message("user", "learner", "says a noisy label", y=np.int32)


@dataclass(frozen=True)
class Reworded(Old):
    answer = Message("user", "learner", "says a label with noise", y=bool)


Renamed.__name__ = Retyped.__name__ = Reworded.__name__ = "Old"


@pytest.mark.parametrize(
    ("kind", "says"),
    [(Renamed, "answer is not here"), (Retyped, "answer is declared otherwise here"), (Reworded, "")],
)
def test_a_trace_of_other_messages(kind, says, tmp_path, cli):  # noqa: F811
    """Counting and replaying such a run ended in a KeyError."""
    path = p2p_sim.run(Old(), PEOPLE, seed=1, trace="full").save(tmp_path / "run")
    with catalogue.naming(kind):
        for verb in (("trace", "stats"), ("trace", "show"), ("report",)):
            done = cli(*verb, path)
            assert done.status == (2 if says else 0), done.err
            assert says in done.err
            assert not says or f"'{path}/messages' has the message kinds answer" in done.err
