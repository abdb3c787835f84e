"""``p2p-sim trace show``: what is printed is what the view holds, what is cut is said, bad input is refused."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import p2p_sim
import protocols
from p2p_sim.core import Message, Protocol
from tests.cli.test_app import plain
from tests.tiny import people


@dataclass(frozen=True)
class Sealed(Protocol):
    """A sealed label through a shuffler."""

    sealed = Message("user", "shuffler", "seals a label", sealed_for="learner", y=bool)
    mixed = Message("shuffler", "learner", "forwards it", sealed_for="learner", y=bool)

    def user(self, me):
        yield self.sealed(y=me.y)

    def shuffler(self, me):
        got = yield self.sealed.receive()
        yield self.mixed(y=got.y.take(me.draw.permutation("order", each=got)))

    def learner(self, me):
        got = yield self.mixed.receive()
        return got.columns()


@pytest.fixture
def run(tmp_path):
    made = p2p_sim.run(protocols.PeerToPeer(0.1), people(), seed=3, trace="full")
    made.save(tmp_path / "r")
    return made


SHOW = ("trace", "show", "r", "--as")


def test_json_holds_the_view(cli, run):
    done = cli(*SHOW, "learner+user:4", "--json")
    assert (done.status, done.err) == (0, "")
    told, view = done.json, run.view("learner+user:4")
    assert (told["coalition"], told["notes"]) == ("learner+user:4", [])
    for part in told["messages"]:
        columns = view.messages[part["kind"]]
        assert (part["seen"], part["left_out"]) == (len(columns["round"]), 0)
        for name in ("round", "sender", "recipient", "seq", "nbytes", "readable"):
            assert [row[name] for row in part["rows"]] == columns[name].tolist()
        for name in part["fields"]:
            assert [row["fields"][name] for row in part["rows"]] == columns[name].tolist()
    assert told["inputs"]["rows"] == [{"user": 4, "y": True}]
    assert [row["stream"] for row in told["draws"]["rows"]] == list(view.draws)
    assert cli(*SHOW, "learner+user:4", "--format", "json").out == done.out


def test_what_is_cut_is_said(cli, run):
    text = cli(*SHOW, "learner", "--limit", 5).out
    assert "report, user to learner: hands the learner a resampled label" in text
    assert "5 of 12 shown; --limit shows the other 7" in text
    told = cli(*SHOW, "learner", "--limit", 5, "--json").json
    report = told["messages"][2]
    assert (report["seen"], report["shown"], report["left_out"], len(report["rows"])) == (12, 5, 7, 5)
    table = cli(*SHOW, "learner", "--limit", 5, "--format", "csv")
    assert len(list(csv.reader(io.StringIO(table.out)))) == 6
    assert table.err == "note: report: 5 of 12 shown; --limit shows the other 7\n"
    assert "note" not in cli(*SHOW, "learner", "--format", "csv").err


def test_kind_user_and_round_choose(cli, run):
    asks = run.messages("ask")
    mine = ((asks["sender"] == 4) | (asks["recipient"] == 4)).sum()
    told = cli(*SHOW, "wire+12*user", "--kind", "ask", "--user", 4, "--json").json
    assert [part["kind"] for part in told["messages"]] == ["ask"]
    assert told["messages"][0]["seen"] == mine
    assert "inputs" not in told
    told = cli(*SHOW, "12*user", "--round", 2, "--json").json
    assert [part["seen"] for part in told["messages"]] == [0, 12, 0]
    told = cli(*SHOW, "12*user", "--user", 4, "--json").json
    assert told["inputs"]["rows"] == [{"user": 4, "y": True}]
    assert {row["party"] for row in told["draws"]["rows"]} == {4}


def test_csv_leaves_out_what_cannot_be_read(cli, run):
    def rows(channels):
        words = (*SHOW, "wire", "--channels", channels, "--kind", "label", "--format", "csv")
        return list(csv.DictReader(io.StringIO(cli(*words).out)))

    assert {row["y_hat"] for row in rows("encrypted")} == {""}
    assert {row["readable"] for row in rows("encrypted")} == {"False"}
    assert {row["y_hat"] for row in rows("plain")} == {"True", "False"}
    assert "not readable" in cli(*SHOW, "wire", "--channels", "encrypted").out
    assert "not readable" not in cli(*SHOW, "wire").out


def test_sealed_fields_are_struck_out(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(Sealed, "__module__", "protocols.sealed")
    monkeypatch.setattr(protocols, "ALL", (*protocols.ALL, Sealed))
    p2p_sim.run(Sealed(), people(), seed=3, trace="full").save(tmp_path / "r")
    text = cli(*SHOW, "shuffler").out
    assert text.count("sealed, 49 bytes") == 24
    assert "shuffler/order/1" in text
    assert "true" not in text
    told = cli(*SHOW, "shuffler", "--json").json
    assert {row["fields"] for part in told["messages"] for row in part["rows"]} == {None}
    assert "sealed, 49" not in cli(*SHOW, "shuffler+learner").out


def test_a_run_that_kept_nothing_and_one_that_cannot_be_repeated(cli, run, tmp_path):
    p2p_sim.run(run.source, people(), seed=3).save(tmp_path / "none")
    sampled = p2p_sim.run(run.source, people(), seed=2**63 + 3, trace="sample=3")
    sampled.save(tmp_path / "sample", population=False)
    words = ("--as", "learner", "--json")
    first, other = (cli("trace", "show", name, *words).json for name in ("r", "none"))
    assert first["messages"] == other["messages"]
    told = cli("trace", "show", "sample", *words).json
    assert "sample=3" in told["notes"][0]
    assert "without its population" in told["unknown"]
    text = cli("trace", "show", "sample", "--as", "learner")
    assert text.status == 0
    assert "note: the trace (sample=3) holds" in text.out


BAD = {
    "negative offset": (("--offset", "-1"), ["--offset -1", "at least 0"]),
    "unknown part": (("--as", "boss"), ["'boss'", "learner, user, user:17"]),
    "no such user": (("--as", "user:12"), ["user 12", "0 to 11"]),
    "too many": (("--as", "13*user"), ["13 users", "12"]),
    "kind": (("--as", "learner", "--kind", "vote"), ["kind 'vote'", "ask, label, report"]),
    "user": (("--as", "learner", "--user", "12"), ["user 12", "0 to 11"]),
    "round": (("--as", "learner", "--round", "9"), ["round 9", "[1, 2, 3]"]),
    "limit": (("--as", "learner", "--limit", "0"), ["--limit 0", "at least 1"]),
    "channels": (("--as", "wire", "--channels", "open"), ["--channels 'open'", "plain, encrypted"]),
    "format": (("--as", "wire", "--format", "text"), ["--format 'text'", "table, json, csv, parquet"]),
}


@pytest.mark.parametrize(("words", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input(words, told, cli, run):
    done = cli("trace", "show", "r", *words)
    assert (done.status, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert all(word in done.err for word in told), done.err


def test_the_commands_of_the_document(cli):
    page = (Path(p2p_sim.__file__).parents[1] / "docs" / "views.md").read_text()
    commands = [
        line[10:].partition(">")[0].split() for line in page.splitlines() if line[:10] == "$ p2p-sim "
    ]
    assert len(commands) > 3
    for words in commands:
        assert cli(*words).status == 0, words


def test_other_usage(cli, run):
    assert cli("trace", "show").status == cli("trace", "shown").status == 2
    missing = cli("trace", "show", "nowhere", "--as", "learner")
    assert (missing.status, "'nowhere'" in missing.err) == (2, True)
    assert cli("trace").out == cli("trace", "--help").out
    assert cli("trace").status == 0
    assert "Example: p2p-sim trace show " in plain(cli("trace", "show", "--help").out)
    assert json.loads(cli(*SHOW, "wire", "--json").out)["view"] == "wire"
