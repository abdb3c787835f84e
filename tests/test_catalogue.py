"""Protocols by name: the shipped ones, and those of installed packages, where a broken one breaks no other."""

from __future__ import annotations

import textwrap
import warnings

import pytest

import p2p_sim
from p2p_sim import Population, catalogue
from protocols import ALL, PeerToPeer
from tests.cli.conftest import cli  # noqa: F401

OWN = """
from dataclasses import dataclass
from p2p_sim import privacy
from p2p_sim.core import Message, Protocol

@dataclass(frozen=True)
class {name}(Protocol):
    note = Message("user", "learner", "says a label", y=bool)

    def user(self, me):
        yield self.note(y=me.y)

    def learner(self, me):
        notes = yield self.note.receive()
        return notes.columns()

privacy.register({name}, privacy.Accounting(law=lambda protocol, setting: privacy.PrivacyProfile(
    setting.text, "exact", "all is told", (), "", privacy.LocalResponse(float("inf")))))
"""
BROKEN = "raise RuntimeError('not today')"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install packages as pip leaves them: ``install(name, source, entry points)``; all gone after the test."""
    monkeypatch.syspath_prepend(tmp_path)

    def package(module: str, source: str, *points: str) -> None:
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(source))
        info = tmp_path / f"{module}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{catalogue.GROUP}]", *points]))

    catalogue._installed.cache_clear()
    yield package
    catalogue._installed.cache_clear()


def known() -> tuple[list[str], list[str]]:
    """The names beyond those of shipped protocols, and what is warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = catalogue.everything()
    assert found[: len(ALL)] == ALL
    return [kind.command_name() for kind in found[len(ALL) :]], [str(each.message) for each in told]


def test_a_class_or_a_module_may_be_named(install):
    install("one_shout", OWN.format(name="OneShout"), "any = one_shout:OneShout")
    install("two_shouts", OWN.format(name="TwoShouts") + OWN.format(name="ThreeShouts"), "any = two_shouts")
    assert known() == (["one-shout", "two-shouts", "three-shouts"], [])


def test_nothing_installed_is_nothing_more(install):
    assert known() == ([], [])


@pytest.mark.parametrize(
    ("source", "point", "words"),
    [
        (BROKEN, "odd = oddly:Odd", ["odd = oddly:Odd of oddly", "RuntimeError: not today"]),
        ("Odd = 3", "odd = oddly:Odd", ["odd = oddly:Odd of oddly", "3 is neither a class derived from"]),
        ("x = 3", "odd = oddly:Odd", ["odd = oddly:Odd of oddly", "AttributeError", "Odd"]),
        ("x = 3", "odd = oddly", ["odd = oddly of oddly", "defines no protocol"]),
        ("x = 3", "odd = nowhere:Odd", ["odd = nowhere:Odd of oddly", "ModuleNotFoundError"]),
        (
            OWN.format(name="Odd").replace("@dataclass(frozen=True)\n", ""),
            "odd = oddly:Odd",
            ["ProtocolError", "frozen"],
        ),
        ("from p2p_sim.core import Protocol", "odd = oddly:Protocol", ["of oddly", "Protocol"]),
        (OWN.format(name="PeerToPeer"), "odd = oddly:PeerToPeer", ["of oddly", "peer-to-peer, as a shipped"]),
        (OWN.format(name="Fine"), "odd = oddly:Fine", ["of oddly", "is called fine, as that of finely is"]),
    ],
)  # fmt: skip
def test_one_that_is_broken_or_takes_a_name_is_told_of_and_the_others_work(install, source, point, words):
    install("finely", OWN.format(name="Fine"), "fine = finely:Fine")
    install("oddly", source, point)
    names, told = known()
    assert names == ["fine"]
    (text,) = told
    assert all(word in text for word in [*words, "left out"]), text
    assert known() == (["fine"], [])  # told once
    assert catalogue.of_run("protocols.peer_to_peer:PeerToPeer") is PeerToPeer


def test_runs_of_what_is_installed_are_known_when_loaded(install, tmp_path):
    install("one_shout", OWN.format(name="OneShout"), "any = one_shout:OneShout")
    kind = catalogue.everything()[-1]
    people = Population.from_arrays(y=[True, False, True])
    made = p2p_sim.run(kind(), people, seed=1)
    made.save(tmp_path / "run")
    again = p2p_sim.load(tmp_path / "run")
    assert again.source == kind()
    assert again.replay(1).sent["note"]["y"].tolist() == [False]
    catalogue._installed.cache_clear()
    (tmp_path / "one_shout-1.dist-info" / "entry_points.txt").unlink()
    assert (
        p2p_sim.load(tmp_path / "run").source is None
    )  # not installed any more: a file's word is not enough


def test_every_verb_knows_what_is_installed(install, cli):  # noqa: F811
    install("one_shout", OWN.format(name="OneShout"), "any = one_shout:OneShout")
    told = cli("account", "one-shout", "--json").json
    assert {row["exact"]["source"] for row in told["views"]} == {"all is told"}
    assert "one-shout" in cli("run", "--help").out
    done = cli("run", "one-shout", "--users", 5, "--out", "r", "--trace", "full")
    assert done.status == 0, done.err
    assert cli("replay", "r", "--user", 2).status == 0
    assert "all is told" in cli("report", "r", "--format", "md").out
