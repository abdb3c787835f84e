"""Comparisons of runs against comparing every message of small ones in plain Python."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.rundir import run_directory, trace_reader
from p2p_sim.trace import query, recompute
from p2p_sim.trace.diff import ValueDifference, compare, differing_messages
from protocols import PeerToPeer, RandomizedResponse, SecureAggregation
from tests import run_json_files
from tests.contract.cases import PROTOCOLS, people_of
from tests.tiny import LABELS, people

USERS = 24
NAMES = ["peer-to-peer", "encrypted shuffle", "secure aggregation", "network shuffle", "label proportions"]


def run_of(name: str, seed: int = 3, trace: str = "full", flipped: bool = False) -> Any:
    protocol = PROTOCOLS[name]
    population = people_of(protocol, "scattered", USERS)
    if flipped:
        y = population.y.copy()
        y[5] ^= True
        population = replace(population, y=y)
    return p2p_sim.run(protocol, population, seed=seed, trace=trace)


def rows(run: Any) -> dict[str, Any]:
    """Fields by id of every message, in causal order."""
    return {event.id: (event.kind, event.round, event.fields) for event in query.messages(run).events()}


def by_hand(one: Any, other: Any) -> tuple[dict[Any, list[int]], list[str]]:
    """By (kind, round): messages only in the first, only in the second, changed; and the ids of all of them."""
    first, second = rows(one), rows(other)
    counts: dict[Any, list[int]] = {}
    ids = []
    for name in first | second:
        place = 1 if name not in first else 0 if name not in second else 2
        if first.get(name) != second.get(name):
            counts.setdefault((first | second)[name][:2], [0, 0, 0])[place] += 1
            ids.append(name)
    return counts, ids


def order_of(run: Any) -> Any:
    kinds = list(run.source.messages())

    def key(name: str) -> Any:
        kind, round, sender, recipient, seq = name.split(":")
        return int(round), kinds.index(kind), int(recipient), int(sender), int(seq)

    return key


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", [{"seed": 4}, {"flipped": True}], ids=str)
def test_what_differs_is_what_differs_by_hand(name: str, how: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_reader, "BATCH", 7)
    one, other = run_of(name), run_of(name, **how)
    found = compare(one, other)
    counts, ids = by_hand(one, other)
    assert found.messages is not None
    assert {(a.kind, a.round): [a.only_first, a.only_second, a.changed] for a in found.messages} == counts
    assert not found.equal
    assert [unlike.what for unlike in found.settings] == (["seed"] if "seed" in how else [])
    assert [(u.what, u.differ, u.party) for u in found.population] == (
        [("label", 1, "user:5")] if "flipped" in how else []
    )
    assert found.compared == (len(rows(one)), len(rows(other)))
    if not counts:  # a seed means nothing to exact counts
        assert (name, how) == ("label proportions", {"seed": 4})
        return
    first = found.messages[0].least
    assert first["id"] == min(ids, key=order_of(one))
    for end, run in (("first", one), ("second", other)):
        assert first[end] == (rows(run)[first["id"]][2] if first["id"] in rows(run) else None)


@pytest.mark.parametrize("name", NAMES)
def test_equal_runs_are_equal(name: str, tmp_path: Any) -> None:
    one, other = run_of(name), run_of(name)
    found = compare(one, other.save(tmp_path / "r"))
    assert found.equal
    assert found.messages == ()
    assert found.compared == (len(rows(one)),) * 2


class Shuffled(run_directory.Kept):
    """A trace that holds its rows in another order, in batches of another size."""

    def batches(self, kind: str, round: int | None = None) -> Any:
        chance = np.random.default_rng(3)
        columns, size = self.rows(kind, round=round)
        order = chance.permutation(size)
        for low in range(0, size, 5):
            yield {name: column[order[low : low + 5]] for name, column in columns.items()}


def test_the_order_of_a_trace_is_no_difference() -> None:
    one, other = run_of("secure aggregation"), run_of("secure aggregation", seed=4)
    kinds = one.source.messages()
    assert list(differing_messages(run_directory.source(one), Shuffled.of(one), kinds)) == []
    assert list(differing_messages(Shuffled.of(one), Shuffled.of(other), kinds)) == list(
        differing_messages(run_directory.source(one), run_directory.source(other), kinds)
    )


@pytest.mark.parametrize("field", ["recipient", "sender", "seq", "y"])
def test_one_value_changed_in_a_trace_is_found(field: str) -> None:
    one, other = run_of("encrypted shuffle"), run_of("encrypted shuffle")
    kind = "report" if field != "seq" else "mixed"
    column = other._trace[kind][field].copy()
    column[7] = 1 - column[7] if field == "y" else column[7] + 100
    other = replace(other, _trace={**other._trace, kind: {**other._trace[kind], field: column}})
    found = compare(one, other)
    assert found.messages is not None
    assert [(a.kind, a.only_first, a.only_second, a.changed) for a in found.messages] == [
        (kind, 0, 0, 1) if field == "y" else (kind, 1, 1, 0)
    ]


def test_without_messages(monkeypatch: Any) -> None:
    one, bare, other = (
        run_of("peer-to-peer"),
        run_of("peer-to-peer", trace="none"),
        run_of("peer-to-peer", 4, "none"),
    )
    found = compare(one, bare)
    assert found.equal
    assert found.messages is None
    assert "the digests are equal, so nothing was recomputed" in found.notes[-1]
    found = compare(bare, other)  # recomputed, to find the first
    counts, _ = by_hand(one, run_of("peer-to-peer", 4))
    assert found.messages is not None
    assert {(a.kind, a.round): [a.only_first, a.only_second, a.changed] for a in found.messages} == counts
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    found = compare(bare, other)
    assert found.messages is None
    assert "only counts, outputs and digests: this run kept no messages" in found.notes[-1]
    assert [unlike.what for unlike in found.digest] == ["digest"]
    assert "learner/y" in [unlike.what for unlike in found.outputs]


def test_samples_of_the_same_users(monkeypatch: Any) -> None:
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    one, other = (run_of("peer-to-peer", seed, "sample=3") for seed in (3, 4))
    found = compare(one, other)
    assert found.messages is not None
    assert "sample=3" in found.notes[0]
    assert compare(one, run_of("peer-to-peer", 3, "sample=3")).messages == ()
    assert compare(one, run_of("peer-to-peer", 3, "sample=4")).messages is None


def test_settings_outputs_and_kinds() -> None:
    one = p2p_sim.run(PeerToPeer(0.1), people(), seed=3)
    other = p2p_sim.run(PeerToPeer(0.2), people(), seed=3, faults=["loss=0.2"])
    found = compare(one, other)
    assert found.settings == (
        ValueDifference("parameter alpha", 0.1, 0.2), ValueDifference("faults", [], ["loss=0.2"])
    )  # fmt: skip
    assert {unlike.what for unlike in found.counts} <= {"ask, round 1", "label, round 2", "report, round 3"}
    third = p2p_sim.run(RandomizedResponse(1.0), people(), seed=3)
    found = compare(one, third)
    assert found.settings[0].what == "protocol"
    assert "declare different kinds" in found.notes[-1]
    fewer = compare(one, p2p_sim.run(PeerToPeer(0.1), Population.from_arrays(y=LABELS[:9]), seed=3))
    assert fewer.population == (ValueDifference("users", 12, 9),)
    lone = compare(one, p2p_sim.run(PeerToPeer(0.1), Population.from_arrays(y=LABELS), seed=3))
    assert lone.population == (ValueDifference("cluster", "12 values", "0 values", party="user"),)


def test_clusters_alone_make_a_difference() -> None:
    """Nobody hears of them in randomized response: messages, outputs and digest are equal."""
    pair = [
        p2p_sim.run(RandomizedResponse(1.0), Population.from_arrays(y=LABELS, cluster=cluster), seed=3)
        for cluster in ([0, 1] * 6, [1, 0] * 6)
    ]
    found = compare(*pair)
    assert found.population == (ValueDifference("cluster", 0, 1, 12, "user:0"),)
    assert (found.equal, found.digest, found.outputs) == (False, (), ())


@pytest.mark.parametrize("part", ["settings", "population", "counts", "messages", "outputs", "digest"])
def test_every_part_alone_is_a_difference(part: str) -> None:
    run = run_of("peer-to-peer")
    alike = compare(run, run)
    assert alike.equal
    assert not replace(alike, **{part: (ValueDifference(part, 0, 1),)}).equal


def test_outputs_name_the_first_position_and_user() -> None:
    one, other = run_of("peer-to-peer"), run_of("peer-to-peer")
    for run, values in ((one, [1.0, np.nan, 3.0, 4.0]), (other, [1.0, np.nan, 5.0, 6.0])):
        run.outputs = {"user": {"z": np.array(values)}}
        run.faulty = {"dropped": np.array([0, 3])}
    found = compare(one, other)
    assert found.outputs == (ValueDifference("user/z", 3.0, 5.0, 2, "user:4"),)  # 1, 2, 4, 5 are there
    other.outputs = {"user": {}}
    assert compare(one, other).outputs == (ValueDifference("user/z", True, False, party="user"),)


def test_without_populations(tmp_path: Any) -> None:
    run = run_of("peer-to-peer", seed=2**63 + 3)
    bare = run.save(tmp_path / "bare", population=False)
    found = compare(run, bare)
    assert found.equal
    assert "labels, clusters and seeds were not compared" in found.notes[0]
    with pytest.raises(InputError, match="not a run directory"):
        compare(run, tmp_path)


def test_modes_of_cryptography_differ_in_keys_and_the_note_says_so() -> None:
    few = Population.synthetic(users=6, seed=1)
    runs = [
        p2p_sim.run(SecureAggregation(3), few, trace="full", crypto=mode, seed=0)
        for mode in ("modelled", "real")
    ]
    found = compare(*runs)
    assert not found.equal
    assert "crypto: modelled and real, which only keys, and what is made of keys, depend on" in found.notes


def cut_off(name: str, path: Any, kind: str) -> Any:
    """What a run killed before it had written the files of a kind leaves."""
    run_of(name).save(path)
    for place in ("outputs", f"messages/{kind}"):
        shutil.rmtree(path / place)
    run_json_files.cut_off(path / "messages")
    (path / "population.parquet").unlink()
    (path / "run.json").unlink()
    return path


@pytest.mark.parametrize("last", [False, True], ids=["first", "second"])
def test_of_a_run_that_was_cut_off_nothing_is_compared_but_messages(last: bool, tmp_path: Any) -> None:
    whole, path = run_of("peer-to-peer"), cut_off("peer-to-peer", tmp_path / "cut", "report")
    found = compare(whole, path) if last else compare(path, whole)
    assert (found.settings, found.population, found.counts, found.outputs) == ((), (), (), ())
    assert found.messages is not None
    missing = len(whole.messages("report")["round"])
    only = (missing, 0, 0) if last else (0, missing, 0)
    assert [(a.kind, a.only_first, a.only_second, a.changed) for a in found.messages] == [("report", *only)]
    assert not found.equal
    assert found.notes[0].startswith(f"the {'second' if last else 'first'} run was cut off")
    assert any("report: none" in note for note in found.notes)
    assert compare(path, str(path)).equal
    other = compare(path, run_of("randomized response"))
    assert [unlike.what for unlike in other.settings] == ["protocol"]
