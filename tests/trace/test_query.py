"""Queries against every message of small runs, looked at one by one in plain Python."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.core.message import USER
from p2p_sim.rundir import run_directory, trace_reader
from p2p_sim.rundir.trace_writer import Draft
from p2p_sim.trace import query, recompute
from protocols import PeerToPeer
from tests.contract.cases import PROTOCOLS, people_of
from tests.run_json_files import document_in
from tests.tiny import people

USERS = 24
NAMES = [
    "peer-to-peer",
    "encrypted shuffle by three",
    "secure aggregation",
    "network shuffle",
    "peer permutation",
]


def run_of(name: str, trace: str = "full") -> Any:
    protocol = PROTOCOLS[name]
    return p2p_sim.run(protocol, people_of(protocol, "scattered", USERS), seed=2**63 + 3, trace=trace)


def rows(columns: Any) -> list[dict[str, Any]]:
    names = list(columns)
    lists = [columns[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def wanted(
    run: Any, kind: str, user: int | None, round: int | None, view: str | None
) -> list[dict[str, Any]]:
    """Which messages are asked for, from every message of the run or of the view, one by one."""
    message = run.source.messages()[kind]
    ends = [end for end in ("sender", "recipient") if getattr(message, end) == USER]
    return [
        row
        for row in rows(run.messages(kind) if view is None else run.view(view).messages[kind])
        if (round is None or row["round"] == round) and (user is None or user in [row[end] for end in ends])
    ]


@pytest.mark.parametrize(
    "view", [None, "learner", "user:5", "2*user+user:9", "wire", "learner+user:5", "wire+user:5"]
)
@pytest.mark.parametrize("name", NAMES)
def test_messages_are_those_asked_for(name: str, view: str | None, monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_reader, "BATCH", 7)  # several batches
    run = run_of(name)
    for user in (None, 0, 5):
        for round in (None, 1, 3):
            part = query.messages(run, user=user, round=round, as_=view)
            assert list(part.kinds) == list(run.source.messages())
            assert part.notes == ()
            assert part.cut == {}
            for kind, columns in part.kinds.items():
                assert rows(columns) == wanted(run, kind, user, round, view)
                assert part.total[kind] == len(columns["round"])


@pytest.mark.parametrize("view", [None, "learner", "user:5", "wire", "3*user"])
def test_limit_and_offset_cut_and_say_so(view: str | None, monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_reader, "BATCH", 5)
    run = run_of("peer-to-peer")
    for kind in run.source.messages():
        whole = wanted(run, kind, None, None, view)
        for limit, offset in ((1, 0), (4, 0), (7, 3), (3, 22), (2, 100)):
            part = query.messages(run, kind=kind, as_=view, limit=limit, offset=offset)
            got = rows(part.kinds[kind])
            assert len(got) == len(whole[offset : offset + limit])
            assert got == whole[offset : offset + limit]
            assert part.total == {kind: len(whole)}
            assert part.cut == ({kind: len(whole) - len(got)} if len(got) < len(whole) else {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trace", ["none", "counts", "sample=2"])
def test_what_was_not_kept_is_recomputed_and_said(name: str, trace: str) -> None:
    whole, bare = run_of(name), run_of(name, trace)
    for how in ({}, {"user": 7}, {"as_": "user:7"}, {"as_": "learner+user:3", "kind": "report"}):
        one, other = (query.messages(run, **how) for run in (whole, bare))
        assert [rows(columns) for columns in one.kinds.values()] == [rows(c) for c in other.kinds.values()]
        assert "recomputed from the seed" in other.notes[0]


def test_one_user_is_recomputed_in_a_run_too_large_to_repeat(monkeypatch: Any) -> None:
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    whole, bare = run_of("peer-to-peer"), run_of("peer-to-peer", "none")
    for how in ({"user": 7}, {"as_": "user:7"}, {"as_": "learner", "user": 7}):
        one, other = (query.messages(run, **how) for run in (whole, bare))
        assert [rows(columns) for columns in one.kinds.values()] == [rows(c) for c in other.kinds.values()]
        size = int(whole.population.clusters.size[7])
        assert f"running {size} users again" in other.notes[0]
    for how in ({}, {"as_": "learner"}, {"as_": "wire"}):
        with pytest.raises(InputError, match=r"kept no messages .*up to 5 users"):
            query.messages(bare, **how)
    sampled = query.messages(run_of("peer-to-peer", "sample=2"))
    assert "holds" in sampled.notes[0]
    assert "not recomputed: only runs of up to 5 users" in sampled.notes[0]
    assert 0 < len(sampled) < len(query.messages(whole))


def test_a_path_is_as_good_as_a_run(tmp_path: Any) -> None:
    for trace in ("full", "none"):
        run = run_of("peer-to-peer", trace)
        path = run.save(tmp_path / trace)
        for how in ({}, {"user": 7, "round": 2}, {"as_": run.coalition("learner+user:7")}):
            one, other = query.messages(path, **how), query.messages(str(path), **how)
            for part in (one, other):
                assert [rows(c) for c in part.kinds.values()] == [
                    rows(c) for c in query.messages(run, **how).kinds.values()
                ]
    with pytest.raises(InputError, match=r"as_ = 'learner'.*p2p_sim.load"):
        query.messages(path, as_="learner")


def test_without_its_population(tmp_path: Any) -> None:
    run = run_of("peer-to-peer")
    bare = p2p_sim.load(run.save(tmp_path / "bare", population=False))
    assert rows(query.messages(bare, user=7).kinds["ask"]) == wanted(run, "ask", 7, None, None)
    assert "whether she exists" in query.messages(bare, user=700).notes[0]
    none = p2p_sim.load(run_of("peer-to-peer", "none").save(tmp_path / "none", population=False))
    with pytest.raises(InputError, match=r"kept no messages.*without its population"):
        query.messages(none, user=7)


@pytest.mark.parametrize("value", [True, 3.0, np.float64(3), "3", [3], np.array([3])], ids=str)
def test_numbers_that_are_none(value: Any) -> None:
    run = run_of("peer-to-peer")
    for name in ("user", "round", "limit", "offset"):
        with pytest.raises(InputError, match=rf"{name} = .*: must be a whole number"):
            query.messages(run, **{name: value})
    with pytest.raises(InputError, match=r"as_ = .*: must be a coalition"):
        query.messages(run, as_=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="run = None: must be a Run"):
        query.messages(None)
    assert rows(query.messages(run, user=np.int64(3)).kinds["ask"]) == wanted(run, "ask", 3, None, None)


def test_other_code_is_noted(tmp_path: Any) -> None:
    path = run_of("peer-to-peer", "none").save(tmp_path / "r")
    told = document_in(path)
    told["versions"]["numpy"] = "1.0"
    (path / "run.json").write_text(json.dumps(told))
    assert query.messages(path, user=7).notes[1] == (
        f"recomputed by other code: numpy 1.0 then, {np.__version__} now"
    )


BAD = {
    "user": ({"user": USERS}, f"user {USERS}: not in this run; its users are 0 to {USERS - 1}"),
    "negative": ({"user": -1}, "user -1"),
    "kind": ({"kind": "vote"}, "kind 'vote': this protocol's kinds are ask, label, report"),
    "round": ({"round": 9}, r"round 9: .* \[1, 2, 3\]"),
    "who": ({"as_": "boss"}, "unknown part 'boss'"),
    "limit": ({"limit": -1}, "limit = -1"),
    "offset": ({"offset": -1}, "offset = -1"),
    "channels": ({"as_": "wire", "channels": "open"}, "channels = 'open'"),
}


@pytest.mark.parametrize(("how", "words"), BAD.values(), ids=BAD.keys())
def test_bad_input(how: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        query.messages(run_of("peer-to-peer"), **how)


def test_no_run(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="not a run directory"):
        query.messages(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 4, 50, None])
@pytest.mark.parametrize("view", ["3*user", "wire", "wire+user:4"])
def test_pages_of_a_view_do_not_depend_on_how_the_run_was_cut(tmp_path, monkeypatch, view, limit):
    monkeypatch.setattr(trace_reader, "BATCH", 3)
    monkeypatch.setattr(query, "_SPARE", 1)
    pages = []
    for blocks in (1, 4, 12):
        path = tmp_path / str(blocks)
        run = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full", blocks=blocks, out=Draft(path))
        run.save(path)
        eyes = p2p_sim.load(path).coalition(view)
        for offset in (0, 2, 5):
            part = query.messages(path, as_=eyes, limit=limit, offset=offset)
            pages.append((offset, part.total, part.ids()))
    assert pages[:3] == pages[3:6] == pages[6:]
    whole = query.messages(path, as_=eyes).ids()
    for offset, _, shown in pages[:3]:
        end = None if limit is None else offset + limit
        assert shown == {kind: ids[offset:end] for kind, ids in whole.items()}
        address = [[int(part) for part in name.split(":")[1:]] for name in whole["ask"]]
        assert address == sorted(address, key=lambda key: (key[0], key[2], key[1], key[3]))


class Backwards:
    """A trace that holds its messages in the order opposite to that in which they are shown."""

    def __init__(self, kept):
        self._kept, self.rows = kept, kept.rows

    def batches(self, kind, round=None):
        for columns in reversed(list(self._kept.batches(kind, round))):
            yield {name: column[::-1] for name, column in columns.items()}


@pytest.mark.parametrize("limit", [1, 4, 11])
def test_whatever_the_order_of_a_trace_the_first_are_shown(monkeypatch, limit):
    monkeypatch.setattr(trace_reader, "BATCH", 3)
    monkeypatch.setattr(query, "_SPARE", 1)
    run = run_of("peer-to-peer")
    kept, eyes = run_directory.source(run), run.coalition("wire+user:4")
    for kind, message in run.source.messages().items():
        whole, total = query.Query(None, None, eyes, "plain", None, 0).of(kept, message)
        found = query.Query(None, None, eyes, "plain", limit, 2)._streamed(Backwards(kept), message, eyes)
        assert found[1] == total == len(whole["round"])
        for name, column in whole.items():
            np.testing.assert_array_equal(found[0][name], column[2 : 2 + limit], err_msg=kind)
