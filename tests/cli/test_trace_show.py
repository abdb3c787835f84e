"""``p2p-sim trace show``: of one user, without a trace, page by page, as Parquet, with nasty names."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from pyarrow import parquet

import p2p_sim
import protocols
from p2p_sim.core import Bytes, Message, Protocol, Vector
from p2p_sim.core.errors import InputError
from p2p_sim.report import message_text, terminal
from p2p_sim.trace import query
from protocols import EncryptedShuffle, PeerToPeer
from tests.cli.conftest import PROGRESS
from tests.tiny import people


@pytest.fixture
def run(tmp_path):
    made = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full")
    made.save(tmp_path / "r")
    p2p_sim.run(PeerToPeer(0.1), people(), seed=3).save(tmp_path / "none")
    return made


def test_all_messages(cli, run):
    told = cli("trace", "show", "r", "--json").json
    assert (told["view"], told["coalition"], told["notes"]) == (None, None, [])
    assert "inputs" not in told
    for part in told["messages"]:
        columns = run.messages(part["kind"])
        for name in ("round", "sender", "recipient", "seq", "nbytes"):
            assert [row[name] for row in part["rows"]] == columns[name].tolist()
        for name in part["fields"]:
            assert [row["fields"][name] for row in part["rows"]] == columns[name].tolist()
        for row in part["rows"]:
            assert (
                row["id"] == f"{part['kind']}:{row['round']}:{row['sender']}:{row['recipient']}:{row['seq']}"
            )
    text = cli("trace", "show", "r").out
    assert text.startswith("r (PeerToPeer), every field shown\n")


def test_a_user_of_a_run_that_kept_nothing(cli, run):
    whole, none = (cli("trace", "show", name, "--user", 4, "--json").json for name in ("r", "none"))
    assert whole["messages"] == none["messages"]
    assert {4} == {4} & {row["sender"] for row in none["messages"][0]["rows"]}
    text = cli("trace", "show", "none", "--user", 4).out
    assert (
        "note: recomputed from the seed, by running 4 users again: the trace (none) does not hold all of it"
        in text
    )


def test_pages(cli, run):
    def page(*words):
        return cli("trace", "show", "r", "--kind", "ask", *words, "--json").json["messages"][0]

    whole = page()["rows"]
    pages = [page("--limit", 5, "--offset", low) for low in (0, 5, 10)]
    assert [row for part in pages for row in part["rows"]] == whole
    assert [(part["shown"], part["left_out"]) for part in pages] == [(5, 7), (5, 7), (2, 10)]
    text = cli("trace", "show", "r", "--kind", "ask", "--limit", 5, "--offset", 5).out
    assert "6 to 10 of 12 shown; --limit and --offset show the others" in text
    assert "none of 12 shown" in cli("trace", "show", "r", "--kind", "ask", "--offset", 12).out
    draws = [
        cli("trace", "show", "r", "--as", "2*user", "--limit", 1, "--offset", low, "--json").json["draws"]
        for low in range(4)
    ]
    both = cli("trace", "show", "r", "--as", "2*user", "--json").json["draws"]
    assert [row for part in draws for row in part["rows"]] == both["rows"][:4]
    assert {part["seen"] for part in draws} == {both["seen"]}


def test_parquet_holds_what_can_be_read(tmp_path):
    made = p2p_sim.run(EncryptedShuffle(1.0, shufflers=2), people(), seed=3, trace="full")
    part = query.messages(made, as_="learner")
    table = parquet.read_table(io.BytesIO(message_text.parquet(part)))
    assert table.num_rows == len(part) == 12
    assert table["y"].to_pylist() == made.messages("mixed")["y"].tolist()
    assert set(table["kind"].to_pylist()) == {"mixed"}
    sealed = parquet.read_table(io.BytesIO(message_text.parquet(query.messages(made, as_="shuffler"))))
    assert sealed["y"].null_count == sealed.num_rows == 24
    assert set(sealed["sender_role"].to_pylist()) == {"shuffler2", "shuffler"}


@pytest.mark.slow
def test_parquet_on_stdout(run, tmp_path):
    words = ["trace", "show", "r", "--format", "parquet", "--limit", "5"]
    done = subprocess.run(
        [sys.executable, "-m", "p2p_sim.cli", *words], capture_output=True, cwd=tmp_path, check=True
    )
    table = parquet.read_table(io.BytesIO(done.stdout))
    assert table.num_rows == 15
    assert PROGRESS.sub("", done.stderr.decode()).splitlines() == [
        f"note: {kind}: 5 of 12 shown; --limit shows the other 7" for kind in ("ask", "label", "report")
    ]


def test_parquet_is_not_for_a_terminal(cli, run, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    done = cli("trace", "show", "r", "--format", "parquet")
    assert (done.status, "redirect it" in done.err) == (2, True)


@dataclass(frozen=True)
class Nasty(Protocol):
    """Names that steer a terminal."""

    note = Message(
        "user", "learner", "says \x1b[2J\u202eolleh\n", **{"f\x1b[31m": bool, "v": Vector(np.uint8, 2)}
    )
    word = Message("user", "learner", "the same field, of another type", v=Bytes(3))

    def user(self, me):
        yield self.note(**{"f\x1b[31m": me.y, "v": np.zeros((me.size, 2), np.uint8)})
        yield self.word(v=np.zeros((me.size, 3), np.uint8))

    def learner(self, me):
        yield self.note.receive()
        yield self.word.receive()


def test_control_characters_are_spelt_out(cli, tmp_path, monkeypatch):
    monkeypatch.setattr(Nasty, "__module__", "protocols.nasty")
    monkeypatch.setattr(protocols, "ALL", (*protocols.ALL, Nasty))
    folder = "r\x1b]0;title\x07"
    made = p2p_sim.run(Nasty(), people(), seed=3, trace="full")
    made.save(tmp_path / folder)
    done = cli("trace", "show", folder)
    assert done.status == 0, done.err
    out = done.out
    assert all(c.isprintable() for line in out.split("\n") for c in line)
    assert "says \\x1b[2J\\u202eolleh\\n" in out
    assert "f\\x1b[31m" in out
    assert out.startswith("r\\x1b]0;title\\x07 (Nasty)")
    refused = cli("trace", "show", folder, "--kind", "\x1b[31m")
    assert refused.status == 2
    assert "\x1b" not in refused.err
    rows = list(csv.DictReader(io.StringIO(cli("trace", "show", folder, "--format", "csv").out)))
    assert len(rows) == 24
    table = parquet.read_table(io.BytesIO(message_text.parquet(query.messages(made))))
    assert {"note.v", "word.v"} < set(table.column_names)  # of different types
    assert json.loads(cli("trace", "show", folder, "--json").out)["run"] == folder


def test_what_is_visible():
    assert terminal.visible("ε ≤ 1, “x”") == "ε ≤ 1, “x”"
    assert terminal.visible("a\tb\x9bc\u2066") == "a\\tb\\x9bc\\u2066"


def test_a_path_that_is_no_run(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    done = cli("trace", "show", "empty", "--user", 3)
    assert (done.status, "'empty' is not a run directory" in done.err) == (2, True)
    with pytest.raises(InputError, match="not a run directory"):
        p2p_sim.load(tmp_path / "empty")
