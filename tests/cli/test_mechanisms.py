"""``p2p-sim mechanisms``: what is listed of shipped protocols, of installed ones and of the user's own."""

from __future__ import annotations

import importlib

import pytest

from p2p_sim import privacy
from p2p_sim.privacy import accepted_labels
from p2p_sim.privacy.registered import accounting
from protocols import ALL, BinnedResponse, IntervalResponse, PriorResponse, UnbiasedResponse
from tests.test_catalogue import OWN, install  # noqa: F401

TOLD = '''
from dataclasses import dataclass
from p2p_sim.core import Message, Protocol

@dataclass(frozen=True)
class Told(Protocol):
    """Users tell something.

    ``share``: of users who tell.

    *Source:* nobody, 2024; a paper
    of two lines.
    *Assumes:* the wire is
    not watched.
    """

    share: float

    note = Message("user", "learner", "says it", y=bool)

    def user(self, me):
        yield self.note(y={column} > 0, when=me.draw.bernoulli("tells", self.share))

    def learner(self, me):
        notes = yield self.note.receive()
        return notes.columns()
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a module of the current folder: ``own(name, source)``."""

    def written(name: str, source: str) -> None:
        (tmp_path / f"{name}.py").write_text(source)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    return written


def test_all_shipped_protocols_are_described(cli):
    found = cli("mechanisms", "--json").json
    assert [each["name"] for each in found] == [kind.command_name() for kind in ALL]
    for each, kind in zip(found, ALL, strict=True):
        assert each["shipped"]
        assert each["trust"]
        assert each["source"]
        assert "\n" not in each["trust"] + each["source"]
        if kind in (BinnedResponse, UnbiasedResponse, IntervalResponse):
            assert each["labels"] == ["numeric"]
        else:
            assert each["labels"] == (["binary", "k"] if "label_count" in vars(kind) else ["binary"])
        assert each["statistic"] == (accounting(kind).statistic is not None)


def test_the_bases_are_those_of_the_accountant(cli):
    [found] = cli("mechanisms", "prior-response", "--labels", 3, "--prior", "public", "--json").json
    protocol = PriorResponse(1.0, 3, "public")
    assert found["parameters"] == {"epsilon": 1.0, "labels": 3, "prior": "public"}
    views = {each["view"]: each["basis"] for each in found["views"]}
    assert views == {view: privacy.profile(protocol, view).basis for view in ("learner", "user", "wire")}
    assert views["learner"] == "upper"


def test_text_has_a_paragraph_a_protocol(cli):
    done = cli("mechanisms")
    assert done.status == 0
    heads = [part.partition("\n")[0] for part in done.out.split("\n\n")]
    assert heads == [kind.command_name() for kind in ALL]
    assert "  trust   users follow the protocol; nobody else need be trusted\n" in done.out
    assert "  upper   learner, learner+user, learner+3*user\n" in done.out


def test_an_installed_protocol_is_among_them(cli, install):  # noqa: F811
    install("one_shout_more", OWN.format(name="OneShoutMore"), "any = one_shout_more:OneShoutMore")
    found = {each["name"]: each for each in cli("mechanisms", "--json").json}["one-shout-more"]
    assert not found["shipped"]
    assert found["class"] == "one_shout_more:OneShoutMore"
    assert (found["trust"], found["source"], found["statistic"]) == ("", "", False)
    assert {each["basis"] for each in found["views"]} == {"exact"}
    text = cli("mechanisms", "one-shout-more").out
    assert text.startswith("one-shout-more (one_shout_more:OneShoutMore)\n")
    assert "trust   its docstring does not say" in text
    assert "audits  a classifier is learned" in text


def test_one_of_the_users_own_needs_its_parameters(cli, own):
    own("telling", TOLD.format(column="me.y"))
    done = cli("mechanisms", "telling:Told")
    assert done.status == 2
    assert "told needs --share: of users who tell" in done.err
    [found] = cli("mechanisms", "telling:Told", "--share", 0.5, "--json").json
    assert found["source"] == "nobody, 2024; a paper of two lines"
    assert found["trust"] == "the wire is not watched"
    assert {each["view"]: each["basis"] for each in found["views"]}[
        "learner"
    ] == "exact"  # found on the program


def test_one_that_is_installed_without_defaults_says_so(cli, install):  # noqa: F811
    install("telling_all", TOLD.format(column="me.y"), "any = telling_all:Told")
    found = {each["name"]: each for each in cli("mechanisms", "--json").json}["told"]
    assert found["views"] is None
    assert found["why"] == (
        "told needs --share: of users who tell; name it with its parameters, p2p-sim mechanisms told ..."
    )
    assert "views   not known: told needs --share" in cli("mechanisms").out


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        ("me.y", ["binary"]),
        ("me.secret['age']", ["numeric"]),
        ("(me.secret['age'] + me.y)", ["binary", "numeric"]),
    ],
)
def test_what_users_hold_is_read_off_the_program(own, column, labels):
    own("holding", TOLD.format(column=column))
    assert list(accepted_labels.taken_by(importlib.import_module("holding").Told)) == labels


def test_a_law_that_cannot_be_found_is_refused_with_its_reason(cli, own):
    own("counting", TOLD.format(column="me.secret['age']"))
    [found] = cli("mechanisms", "counting:Told", "--share", 0.5, "--json").json
    learner = next(each for each in found["views"] if each["view"] == "learner")
    assert learner["basis"] == "refused"
    assert learner["why"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nobody"], "unknown protocol 'nobody'"),
        (["alibi", "--lambda", 3], "unknown option '--lambda'; alibi has --epsilon"),
        (["--format", "xml"], "xml"),
    ],
)
def test_bad_words_are_refused(cli, words, told):
    done = cli("mechanisms", *words)
    assert (done.status, done.out) == (2, "")
    assert told in done.err


def test_help_has_an_example(cli):
    text = " ".join(cli("mechanisms", "--help").out.split())
    assert "[PROTOCOL] [OPTIONS]" in text
    assert "Example: p2p-sim mechanisms prior-response" in text
