"""``p2p_sim.check`` and ``p2p-sim check``: protocols whose results depend on more than the seed are found out."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import p2p_sim
from p2p_sim import catalogue, cli
from p2p_sim.check import quick
from p2p_sim.core import InputError, Message, Protocol, ProtocolError
from protocols import NetworkShuffle, PeerToPeer
from tests.tiny import people

MODULE = '''
import itertools
import random
from dataclasses import dataclass

import numpy as np

from p2p_sim.core import Message, Protocol


@dataclass(frozen=True)
class Sound(Protocol):
    """Users report their labels."""

    tell = Message("user", "learner", "tells", y=bool)

    def user(self, me):
        yield self.tell(y=self.word(me))

    def word(self, me):
        return me.y

    def learner(self, me):
        got = yield self.tell.receive()
        return {"y": got.y}


class Condition(Sound):
    def user(self, me):
        if me.y.any():
            yield self.tell(y=me.y)


class Sums(Sound):
    def word(self, me):
        return me.y ^ (me.y.sum() > 1)


class Chance(Sound):
    def word(self, me):
        return np.array([random.random() < 0.5 for _ in range(me.size)])


class Keeps(Sound):
    runs = itertools.count()

    def learner(self, me):
        got = yield self.tell.receive()
        return {"y": got.y, "run": np.full(1, next(self.runs))}


class Hashes(Sound):
    def word(self, me):
        return me.y ^ np.array([hash(f"salted {user}") & 1 for user in me.id], np.bool_)


class Products(Sound):
    def user(self, me):
        yield self.tell(y=me.y)
        return {"score": self.scores(np.sin(np.outer(1.0 + me.id, np.arange(50))), np.cos(np.arange(50)))}

    def scores(self, rows, column):
        return rows @ column


class Summed(Products):
    def scores(self, rows, column):
        return np.einsum("nd,d->n", rows, column)


class Types(Sound):
    def learner(self, me):
        got = yield self.tell.receive()
        return {"y": got.y}

    def user(self, me):
        yield self.tell(y=me.y)
        return {"z": np.zeros(me.size, np.int8 if me.y.any() else np.int16)}


@dataclass(frozen=True)
class Parameters(Sound):
    strength: float

    def word(self, me):
        return me.draw.bernoulli("word", self.strength)


@dataclass(frozen=True)
class Closed(Sound):
    weights: tuple[int, ...]


class Few(Sound):
    def word(self, me):
        return me.y if me.size > 20 or me.draw.step else me.y[: me.size - 1]


class Wrong(Sound):
    def word(self, me):
        return me.y if me.y else ~me.y


class Reads(Sound):
    def word(self, me):
        return (me.x[:, 0] > 0.5) ^ (me.public["age"] == 1)
'''
BLOCKS = "likely cause: the program looks at its block as a whole"
FOUND = {
    "Condition": ("2 blocks, here: role 'user': one block comes to", BLOCKS),
    "Sums": ("(2 blocks, here) differ first at message tell:1:0:0:0: y = True, and y = False", BLOCKS),
    "Chance": ("(1 block, here) and (1 block, here, again) differ first at message tell:1:", "its code uses random"),
    "Keeps": ("differ first at output 'run' of 'learner': row 0 is 1, and", "keep nothing between runs"),
    "Hashes": ("a process with PYTHONHASHSEED=", "likely cause: the program depends on its process"),
    "Products": ("(1 block, here) and (2 blocks, here) differ first at output 'score' of 'user'", "as numpy.einsum"),
    "Types": ("2 blocks, here: role 'user': output 'z' is int16", BLOCKS),
}  # fmt: skip


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checked_here.py").write_text(MODULE)
    return lambda name: catalogue.imported(f"checked_here:{name}")


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_each_dependence_is_found_and_named(own, name):
    found = p2p_sim.check(own(name)())
    difference, cause = FOUND[name]
    assert not found.passed
    assert difference in found.difference
    assert cause in found.cause


def test_products_by_einsum_do_not_depend_on_blocks(own):
    assert p2p_sim.check(own("Summed")()).passed


def test_sound_protocols_pass_in_every_way(own):
    found = p2p_sim.check(own("Sound")())
    assert (found.passed, found.users, found.runs, found.left_out) == (True, 12, 18, "")
    assert str(found) == f"checked_here:Sound: 18 runs of 12 users: the same bits, digest {found.digest}"


def test_the_small_world_is_the_population_if_one_is_given(own):
    found = p2p_sim.check(own("Sound")(), people(), seed=5)
    assert found.passed
    assert found.digest == p2p_sim.run(own("Sound")(), people(), seed=5).digest


def test_columns_are_made_up_as_the_program_reads_them(own):
    found = p2p_sim.check(own("Reads")())
    assert found.passed
    assert found.columns == ("me.x", "public column 'age'")
    assert "with made-up me.x, public column 'age'" in str(found)


@pytest.mark.parametrize(
    "protocol", [PeerToPeer(0.2, 0.5, retries=1), NetworkShuffle(1.0, steps=3)], ids=repr
)
def test_shipped_protocols_pass(protocol):
    assert quick(protocol) == ""


def test_a_class_that_no_other_process_can_import_is_checked_here_alone():
    @dataclass(frozen=True)
    class Local(Protocol):
        tell = Message("user", "learner", "tells", y=bool)

        def user(self, me):
            yield self.tell(y=me.y)

        def learner(self, me):
            yield self.tell.receive()

    found = p2p_sim.check(Local())
    assert (found.passed, found.runs) == (True, 6)
    assert "put it into a module" in found.left_out


def test_a_protocol_that_does_not_run_is_refused(own):
    @dataclass(frozen=True)
    class Broken(Protocol):
        tell = Message("user", "learner", "tells", y=bool)

        def user(self, me):
            yield self.tell(y=np.zeros(3))

        def learner(self, me):
            yield self.tell.receive()

    with pytest.raises(ProtocolError, match="role 'user', step 0"):
        p2p_sim.check(Broken())
    assert "not checked in a small world, where it does not run: role 'user', step 0" in quick(Broken())
    for wrong, text in (({"users": 1}, "users = 1"), ({"users": 5, "population": people()}, "both given")):
        with pytest.raises(InputError, match=text):
            p2p_sim.check(own("Sound")(), **wrong)
    with pytest.raises(InputError, match=r"protocol = .*give an object"):
        p2p_sim.check(own("Sound"))


def test_the_command_tells_what_differs(own, capsys):
    assert cli.main(["check", "checked_here:Sums"]) == 1
    shown = capsys.readouterr().out
    assert FOUND["Sums"][0] in shown
    assert BLOCKS in shown
    assert cli.main(["check", "checked_here:Parameters", "--strength", "0.5", "--users", "8", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["passed"], told["users"], told["runs"], told["difference"]) == (True, 8, 18, "")
    assert cli.main(["check", "checked_here:Parameters"]) == 2
    assert cli.main(["check", "checked_here:Closed"]) == 2
    assert "closed needs 'weights', which cannot be given here" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "checked_here:Condition", "--users", "50"),
        ("audit", "checked_here:Condition", "--view", "learner", "--cluster-size", "5", "--trials", "1000"),
    ],
)
def test_run_and_audit_refuse_what_the_quick_check_finds(own, words, capsys, tmp_path):
    own("Condition")
    assert cli.main([*words]) == 2
    told = capsys.readouterr()
    assert "error: Condition, in a small world of 12 users: 2 blocks, here: role 'user'" in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_what_could_not_be_checked_is_told_after_the_run(own, capsys):
    own("Few")
    assert cli.main(["run", "checked_here:Few", "--users", "50"]) == 0
    told = capsys.readouterr().err
    assert "Few was not checked in a small world, where it does not run: role 'user', step 0" in told
    assert "see p2p-sim check --users" in told


def test_a_mistake_of_the_program_is_told_in_one_line(own, capsys):
    own("Wrong")
    assert cli.main(["run", "checked_here:Wrong", "--users", "50"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len([line for line in told if "truth value" in line]) == 1
    assert told[-1].startswith("error: role 'user', step 0: ValueError: The truth value of an array")
    assert "(checked_here.py, line " in told[-1]
