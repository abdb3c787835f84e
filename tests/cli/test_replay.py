"""``p2p-sim replay``: a life is what the run's messages and draws say of one user, and is compared with its trace."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import p2p_sim
from protocols import PeerToPeer
from tests.cli.test_app import plain
from tests.contract.cases import PROTOCOLS, people_of
from tests.run_json_files import document_in
from tests.tiny import people


@pytest.fixture
def run(tmp_path):
    made = p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="full")
    made.save(tmp_path / "r")
    p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3).save(tmp_path / "none")
    p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="sample=2").save(tmp_path / "sample")
    return made


@pytest.mark.parametrize(
    "name", ["peer-to-peer", "secure aggregation", "network shuffle", "encrypted shuffle"]
)
def test_a_life_is_what_the_run_says_of_her(name, cli, tmp_path):
    protocol = PROTOCOLS[name]
    made = p2p_sim.run(protocol, people_of(protocol, "scattered", 24), seed=3, trace="full")
    made.save(tmp_path / "r")
    for user in (0, 13):
        done = cli("replay", "r", "--user", user, "--limit", 1000, "--json")
        assert (done.status, done.err) == (0, "")
        told, seen = done.json, 0
        for way, end in (("sent", "sender"), ("received", "recipient")):
            for part in told[way]:
                columns = made.messages(part["kind"])
                mine = [i for i, who in enumerate(columns[end].tolist()) if who == user]
                assert [row["round"] for row in part["rows"]] == columns["round"][mine].tolist()
                for field in part["fields"]:
                    assert [row["fields"][field] for row in part["rows"]] == columns[field][mine].tolist()
                seen += part["seen"]
                if way == "received" and part["sender"] == "user":  # what she sent herself counts once
                    seen -= int((columns["sender"][mine] == user).sum())
        view = made.view(f"user:{user}")
        assert [(row["name"], row["step"]) for row in told["drawn"]["rows"]] == [
            (stream.split("/")[1], int(stream.split("/")[2])) for stream in view.draws
        ]
        assert told["y"] == made.population.y[user]
        assert told["compared"] == {
            "trace": "full", "held": seen, "replayed": seen, "different": 0, "first": None
        }  # fmt: skip


def test_without_a_trace_and_with_a_sample(cli, run):
    whole, none, sample = (
        cli("replay", name, "--user", 1, "--json").json for name in ("r", "none", "sample")
    )
    for way in ("sent", "received", "drawn"):
        assert whole[way] == none[way] == sample[way]
    assert none["compared"] is None
    assert sample["compared"]["held"] < sample["compared"]["replayed"]
    assert sample["compared"]["different"] == 0
    assert "Compared with no trace" in cli("replay", "none", "--user", 1).out
    watched = cli("replay", "sample", "--user", 6, "--json").json["compared"]  # of 2 of 12 users: 0 and 6
    assert watched["held"] == watched["replayed"]


def test_a_trace_that_differs(cli, tmp_path):
    made = p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="full")
    made.seed = 4  # as if the file had been altered
    made.save(tmp_path / "r")
    other = p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 4, trace="full")
    user = next(u for u in range(12) if other.messages("ask")["recipient"][other.messages("ask")["sender"] == u]
                != made.messages("ask")["recipient"][made.messages("ask")["sender"] == u])  # fmt: skip
    done = cli("replay", "r", "--user", user, "--json")
    assert done.status == 1
    first = done.json["compared"]["first"]
    assert (first["kind"], first["round"]) == ("ask", 1)
    # one of the two says that there is no such message
    assert {first["first"] is None, first["second"] is None} == {True, False}
    text = cli("replay", "r", "--user", user)
    assert text.status == 1
    assert f"DIFFER.  The first: {first['id']}" in text.out
    assert "DIFFER" in cli("replay", "r", "--user", user, "--format", "csv").err


def test_csv(cli, run):
    popular = int(np.bincount(run.messages("ask")["recipient"]).argmax())
    done = cli("replay", "r", "--user", popular, "--format", "csv", "--limit", 1)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert {row["way"] for row in rows} == {"sent", "received"}
    assert {row["sender"] for row in rows if row["way"] == "sent"} == {str(popular)}
    assert "they are equal" in done.err
    whole = cli("replay", "r", "--user", popular, "--json").json
    cut = [(way, part["kind"]) for way in ("sent", "received") for part in whole[way] if part["seen"] > 1]
    assert cut
    assert all(f"note: {way} {kind}: 1 of " in done.err for way, kind in cut)


def test_several_users(cli, run):
    alone = [cli("replay", "r", "--user", user, "--json").json for user in (4, 1)]
    asked = ("replay", "r", "--user", 4, "--user", 1, "--user", 4)
    assert cli(*asked, "--json").json == alone
    pages = [cli("replay", "r", "--user", user).out for user in (4, 1)]
    assert cli(*asked).out == "\n\n".join(pages)
    done = cli(*asked, "--format", "csv")
    rows = [list(csv.reader(io.StringIO(done.out)))] + [
        list(csv.reader(io.StringIO(cli("replay", "r", "--user", user, "--format", "csv").out)))
        for user in (4, 1)
    ]
    assert rows[0] == rows[1] + rows[2][1:]
    assert [row[0] for row in rows[1][1:]] == ["4"] * (len(rows[1]) - 1)
    assert [line[:13] for line in done.err.splitlines() if "equal" in line] == [
        "note: user 4:",
        "note: user 1:",
    ]
    assert cli("replay", "r", "--user", 4, "--user", 12).status == 2


@pytest.mark.slow
def test_one_of_several_differs(cli, run, tmp_path):
    file = tmp_path / "r/run.json"
    told = document_in(tmp_path / "r")
    file.write_text(json.dumps(told | {"parameters": told["parameters"] | {"alpha": 0.5}}))
    status = [cli("replay", "r", "--user", user, "--json").status for user in range(12)]
    assert set(status) == {0, 1}
    for users in ((status.index(0), status.index(1)), (status.index(1), status.index(0))):
        assert cli("replay", "r", *(word for user in users for word in ("--user", user))).status == 1


def test_other_code_is_a_warning(cli, run, tmp_path):
    told = document_in(tmp_path / "r")
    told["versions"] |= {"numpy": "1.0", "p2p-sim": "0.0.1"}
    (tmp_path / "r" / "run.json").write_text(json.dumps(told))
    done = cli("replay", "r", "--user", 4, "--json")
    assert done.status == 0
    assert done.err.startswith("warning: replayed by other code than the run's: p2p-sim 0.0.1 then, ")
    assert len(done.json["code"]) == 2
    assert "by other code: numpy 1.0 then, " in cli("replay", "r", "--user", 4).out
    assert cli("replay", "r", "--user", 4, "--user", 5).err.count("warning: ") == 1


BAD = {
    "nobody": ((), ["--user is missing", "--user 17"]),
    "no such user": (("--user", 12), ["user 12", "0 to 11"]),
    "format": (("--user", 1, "--format", "parquet"), ["'parquet'", "table, json, csv"]),
    "limit": (("--user", 1, "--limit", 0), ["--limit 0", "at least 1"]),
}


@pytest.mark.parametrize(("words", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input(words, told, cli, run):
    done = cli("replay", "r", *words)
    assert (done.status, done.out) == (2, "")
    assert all(word in done.err for word in told), done.err


def test_what_cannot_be_replayed(cli, run, tmp_path):
    run.save(tmp_path / "bare", population=False)
    told = cli("replay", "bare", "--user", 1).err
    assert "saved without its population" in told
    assert "run it again without --no-population" in told
    assert "'nowhere' is not a run directory" in cli("replay", "nowhere", "--user", 1).err
    assert "Example: p2p-sim replay runs/latest --user 17" in plain(cli("replay", "--help").out)
