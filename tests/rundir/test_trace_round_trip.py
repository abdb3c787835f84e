"""Any batches, written and read back, against plain lists of rows."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import Bytes, Message, Party, Protocol, Vector
from p2p_sim.core.ledger import Count
from p2p_sim.rundir import manifest, trace_file, trace_reader, trace_writer
from protocols import PeerToPeer

pytestmark = pytest.mark.slow


class Kinds(Protocol):
    """Kinds with every type of field; nothing of it is run."""

    ask = Message("user", "user", "asks something, without any field")
    tell = Message("user", "user", "tells all sorts of things", y=bool, small=np.uint8, wide=np.int64)
    share = Message("user", "learner", "hands over several at once", words=Vector(np.uint64, 3), key=Bytes(4))
    none = Message("user", "learner", "hands over vectors of no length", words=Vector(np.uint64, 0))

    def user(self, me: Party) -> Any:
        """Do nothing."""

    def learner(self, me: Party) -> Any:
        """Do nothing."""


PROTOCOL = Kinds()
FIELDS = {kind: told["fields"] for kind, told in manifest.kinds_of(PROTOCOL).items()}


def column(rng: np.random.Generator, field: dict[str, Any], size: int) -> Any:
    shape = (size,) if field["length"] is None else (size, field["length"])
    top = 2 if field["dtype"] == "bool" else np.iinfo(field["dtype"]).max
    drawn = rng.integers(0, top, shape, np.uint64 if field["dtype"] == "uint64" else np.int64)
    return drawn.astype(field["dtype"])


@st.composite
def parcels(draw: Any) -> list[tuple[str, int, list[tuple[dict[str, Any], dict[str, Any]]]]]:
    """Parcels of batches: addresses that count up, are the same, are anything, or have come before."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    before: list[Any] = []
    made = []
    for _ in range(draw(st.integers(1, 4))):
        kind, round = draw(st.sampled_from(sorted(FIELDS))), draw(st.integers(1, 3))
        batches, row = [], 0
        for _ in range(draw(st.integers(1, 4))):
            size = draw(st.integers(1, 9))
            addresses = {}
            for name in ("sender", "recipient", "seq"):
                form = draw(st.sampled_from(["counts", "on", "same", "any", "again"]))
                old = [array for array in before if len(array) == size]
                if form == "again" and old:
                    addresses[name] = old[draw(st.integers(0, len(old) - 1))]
                elif form == "same" and not (name == "sender" and kind == "ask"):
                    addresses[name] = draw(st.integers(0, 3))
                elif form in ("counts", "on"):
                    start = row if form == "on" else draw(st.integers(0, 30))
                    addresses[name] = range(start, start + size)
                else:
                    fresh = rng.integers(0, 40, size).astype(np.int32)
                    fresh.flags.writeable = False
                    addresses[name] = fresh
                    before.append(fresh)
            if all(isinstance(one, int) for one in addresses.values()):
                addresses["sender"] = range(size)
            row += size
            batches.append((addresses, {k: column(rng, f, size) for k, f in FIELDS[kind].items()}))
        made.append((kind, round, batches))
    return made


def plain_rows(kind: str, round: int, batch: Any) -> list[tuple[Any, ...]]:
    """A batch as rows, one by one."""
    addresses, fields = batch
    size = next(len(one) for one in addresses.values() if not isinstance(one, int))
    rows = []
    for i in range(size):
        ends = [one if isinstance(one, int) else int(one[i]) for one in addresses.values()]
        told = tuple(str(fields[name][i].tolist()) for name in FIELDS[kind])
        rows.append((round, ends[1], ends[0], ends[2], told))
    return rows


def rows_of(columns: dict[str, Any], kind: str) -> list[tuple[Any, ...]]:
    names = ("round", "recipient", "sender", "seq")
    heads = zip(*(columns[name].tolist() for name in names), strict=True)
    told = [
        tuple(str(columns[name][i].tolist()) for name in FIELDS[kind]) for i in range(len(columns["round"]))
    ]
    return [(*head, one) for head, one in zip(heads, told, strict=True)]


def written(folder: Path, made: Any) -> trace_reader.Stored:
    sink, files = trace_writer.Writer(folder, 0), []
    for kind, round, batches in made:
        for addresses, fields in batches:
            sink.take(kind, round, addresses, fields)
        files += sink.cut()
    counts = {(kind, 0): Count() for kind in FIELDS}
    for kind, round, batches in made:
        count = counts.setdefault((kind, round), Count())
        count.messages += sum(len(plain_rows(kind, round, batch)) for batch in batches)
    manifest.write(folder, manifest.ended(manifest.begun(PROTOCOL, "full", 50, ""), counts, files))
    return trace_reader.Stored(folder)


@settings(max_examples=150, deadline=None)
@given(made=parcels(), most=st.sampled_from([5, 1 << 24]), group=st.sampled_from([1, 6, 1 << 17]))
def test_what_is_written_is_read(made, most, group):
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_writer, "MOST_ROWS", most)
        patch.setattr(trace_writer, "_GROUP", group)
        patch.setattr(trace_writer, "_MAX_GROUP", 2 * group)
        patch.setattr(trace_reader, "BATCH", 4)
        found = written(Path(name), made)
        for kind in FIELDS:
            rows = [
                row for k, round, parts in made if k == kind for b in parts for row in plain_rows(k, round, b)
            ]
            assert found.rows(kind)[1] == len(rows)
            address = [row[:4] for row in rows_of(found.rows(kind)[0], kind)]
            assert address == sorted(row[:4] for row in rows)
            assert sorted(rows_of(found.rows(kind)[0], kind)) == sorted(rows)
            batches = list(found.batches(kind))
            assert all(len(batch["round"]) <= 4 for batch in batches)
            assert sorted(row for batch in batches for row in rows_of(batch, kind)) == sorted(rows)
            for user in (0, 3, 17):
                mine = [row for row in rows if user == row[2] or (user == row[1] and kind in ("ask", "tell"))]
                assert sorted(rows_of(found.rows(kind, user=user)[0], kind)) == sorted(mine)


ODD = {
    "one user": {"y": [True]},
    "two users, alone": {"y": [True, False], "cluster": [7, 3]},
    "scattered": {"y": np.arange(97) % 3 == 0, "cluster": (np.arange(97) * 31) % 5 * 9},
    "one cluster": {"y": np.arange(64) % 2 == 0},
    "a large and many small": {
        "y": np.ones(80, np.bool_),
        "cluster": np.where(np.arange(80) < 40, 5, np.arange(80)),
    },
}


@pytest.mark.parametrize("people", ODD)
@pytest.mark.parametrize("faults", [None, ["loss=0.2", "duplicate=0.2", "late=0.2", "drop=0.1"]])
def test_odd_populations(people, faults, tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "_FEW", 20)  # pages are looked for, not sorted for, from here on
    monkeypatch.setattr(trace_file, "_CHUNK", 7)
    monkeypatch.setattr(trace_file, "_SHIFT", 3)
    monkeypatch.setattr(trace_file, "_BINS", 4)
    population = Population.from_arrays(**ODD[people])
    protocol = PeerToPeer(0.2, 0.6, retries=2)
    whole = p2p_sim.run(protocol, population, seed=4, trace="full", faults=faults)
    for blocks in sorted({1, min(3, population.users), population.users}):
        out = tmp_path / f"{blocks}"
        run = p2p_sim.run(protocol, population, seed=4, trace="full", faults=faults, blocks=blocks, out=out)
        assert run.digest == whole.digest
        found = trace_reader.Stored(out / "messages")
        for kind in protocol.messages():
            wanted = whole.messages(kind)
            for low, high in ((0, None), (0, 3), (2, 9), (11, 12), (30, 60), (500, 501)):
                rows, matched = found.rows(kind, offset=low, limit=None if high is None else high - low)
                assert matched == len(wanted["round"])
                for name, column in wanted.items():
                    np.testing.assert_array_equal(rows[name], column[low:high])


def test_a_part_of_a_population_keeps_its_ids(tmp_path):
    whole = Population.synthetic(users=60, cluster_size=20, seed=2**63 + 1)
    part = whole.part(np.arange(20, 40))
    run = p2p_sim.run(PeerToPeer(0.2), part, trace="full", seed=2**63 + 0)
    saved = p2p_sim.load(run.save(tmp_path / "run", population=False))
    with pytest.raises(InputError, match="a part of a population"):
        p2p_sim.run(PeerToPeer(0.2), part, trace="full", out=tmp_path / "other", seed=2**63 + 0)
    for kind in ("ask", "label", "report"):
        assert set(saved.messages(kind)["sender"]) <= set(range(20, 40))
        for name, column in run.messages(kind).items():
            np.testing.assert_array_equal(saved.messages(kind)[name], column)


@dataclass(frozen=True)
class Nods(Protocol):
    """One server nods to another: no field, and nothing in the addresses that differs."""

    tell = Message("user", "guard", "tells")
    nod = Message("guard", "learner", "nods")

    def user(self, me: Party) -> Any:
        yield self.tell()

    def guard(self, me: Party) -> Any:
        yield self.tell.receive()
        yield self.nod()

    def learner(self, me: Party) -> Any:
        nods = yield self.nod.receive()
        return nods.columns()


@pytest.mark.parametrize("protocol", [Nods(), PeerToPeer(alpha=0.1)])
def test_a_message_without_any_column_is_kept(protocol: Any, tmp_path: Path) -> None:
    """One user: sender, recipient and number are 0, and a question has no field."""
    people = Population.from_arrays(y=[True])
    kept = p2p_sim.run(protocol, people, trace="full", seed=0)
    saved = p2p_sim.load(kept.save(tmp_path / "saved"))
    p2p_sim.run(protocol, people, trace="full", out=tmp_path / "streamed", seed=0)
    for run in (saved, p2p_sim.load(tmp_path / "streamed")):
        for kind in protocol.messages():
            told = run.messages(kind)
            assert {name: c.tolist() for name, c in told.items()} == {
                name: c.tolist() for name, c in kept.messages(kind).items()
            }
            assert len(told["sender"]) == 1
