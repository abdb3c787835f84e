"""One interface over traces in memory, saved, and written while the run went on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core.errors import InputError
from p2p_sim.rundir import run_directory
from tests.contract.cases import IN_TURN, PROTOCOLS, people_of

USERS = 40


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    same = [np.array_equal(one[name], other[name]) and one[name].dtype == other[name].dtype for name in one]
    return list(one) == list(other) and all(same)


def sources(name: str, people: str, tmp_path: Any, trace: str = "full") -> Any:
    """A traced run, and its trace in memory, saved, and written as it came."""
    given = PROTOCOLS[name], people_of(PROTOCOLS[name], people, USERS)
    run = p2p_sim.run(*given, seed=3, trace=trace)
    saved = run.save(tmp_path / "run")
    p2p_sim.run(*given, seed=3, trace=trace, out=tmp_path / "streamed", blocks=3)
    return run, [
        run_directory.source(run),
        run_directory.source(saved),
        run_directory.source(tmp_path / "streamed"),
    ]


def in_order(batches: Any, like: dict[str, Any]) -> dict[str, Any]:
    """All batches, sorted; ``like`` without rows if there are none."""
    parts = [*batches] or [{name: column[:0] for name, column in like.items()}]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in like}
    order = np.lexsort([whole[name] for name in ("seq", "sender", "recipient", "round")])
    return {name: column[order] for name, column in whole.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "people"), IN_TURN)
def test_rows_are_the_messages_of_the_run(name, people, tmp_path):
    run, both = sources(name, people, tmp_path)
    for found in both:
        assert found.complete
        assert found.missing is None
        assert found.kinds == tuple(run.source.messages())
        assert dict(found.counts) == run.counts
        for kind in found.kinds:
            whole = run.messages(kind)
            assert equal(found.rows(kind)[0], whole)
            assert found.rows(kind)[1] == len(whole["round"])
            assert equal(in_order(found.batches(kind), whole), whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_rows_of_a_round_and_a_user(name, tmp_path):
    run, both = sources(name, "scattered", tmp_path)
    for found in both:
        for kind, message in run.source.messages().items():
            whole = run.messages(kind)
            for round in (None, 1, 2, 3):
                for user in (None, 0, USERS // 2, USERS - 1, USERS):
                    mask = np.ones(len(whole["round"]), np.bool_)
                    mask &= True if round is None else whole["round"] == round
                    if user is not None:
                        mine = (message.sender == "user") & (whole["sender"] == user)
                        mask &= mine | ((message.recipient == "user") & (whole["recipient"] == user))
                    rows, matched = found.rows(kind, round=round, user=user, limit=2, offset=1)
                    assert matched == np.count_nonzero(mask)
                    assert equal(rows, {name: column[mask][1:3] for name, column in whole.items()})


def test_a_sample_says_what_it_lacks(tmp_path):
    run, both = sources("peer-to-peer", "contiguous", tmp_path, trace="sample=3")
    whole = sum(count.messages for count in run.counts.values())
    for found in both:
        assert found.missing == f"the trace (sample=3) holds {run.kept()} of the {whole} messages of the run"


@pytest.mark.parametrize("level", ["none", "counts"])
def test_a_run_without_messages(level, tmp_path):
    run, both = sources("peer-to-peer", "contiguous", tmp_path, trace=level)
    for found in both:
        assert dict(found.counts) == run.counts
        with pytest.raises(InputError, match="kept no messages"):
            found.rows("ask")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"kind": "tell"}, "no message kind 'tell' in this run; it has"),
        ({"kind": "ask", "limit": -1}, "limit = -1: must be at least 0"),
        ({"kind": "ask", "offset": -2}, "offset = -2: must be at least 0"),
    ],
)
def test_bad_questions(asked, said, tmp_path):
    _, both = sources("peer-to-peer", "contiguous", tmp_path)
    for found in both:
        with pytest.raises(InputError, match=said):
            found.rows(**asked)


def test_a_single_message_without_fields_is_kept(tmp_path):
    """Every column of its address is then one number."""
    run = p2p_sim.run(PROTOCOLS["peer-to-peer"], Population.from_arrays(y=[True]), trace="full", seed=0)
    assert equal(run_directory.source(run.save(tmp_path / "run")).rows("ask")[0], run.messages("ask"))


def test_rows_are_copies_and_batches_of_a_run_in_memory_are_not(tmp_path):
    _, (memory, saved, _) = sources("peer-to-peer", "contiguous", tmp_path)
    for source in (memory, saved):
        before = source.rows("ask", round=1)[0]
        for rows in (before, source.rows("ask", round=1, limit=3)[0], source.rows("ask", user=2)[0]):
            kept = rows["sender"].copy()
            rows["sender"][:] = 99
            rows["sender"] = kept
        assert not (source.rows("ask")[0]["sender"] == 99).any()
    one, other = (next(iter(memory.batches("ask"))) for _ in range(2))
    assert np.shares_memory(one["sender"], other["sender"])
