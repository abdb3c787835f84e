"""Public columns in run directories: equal bits, read in part, replayed from, refused by name where they are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.rundir import integrity, population_file, run_directory
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.trace import query
from p2p_sim.trace.causality import cone
from p2p_sim.trace.diff import compare
from protocols import PeerToPeer, RandomizedResponse
from tests.trace.test_recompute_history import forbid, same

USERS = 40
EVERY_TYPE: dict[str, Any] = {
    "bool": np.arange(USERS) % 3 == 0,
    "int8": np.arange(USERS, dtype=np.int8) - 5,
    "uint64": np.arange(USERS, dtype=np.uint64) + 2**63,
    "big endian": np.arange(USERS, dtype=">i4"),
    "half": np.arange(USERS).astype(np.float16) / 3,
    "nan and minus zero": np.where(np.arange(USERS) % 2 == 0, np.nan, -0.0),
    "big endian pairs": np.arange(2 * USERS).reshape(USERS, 2).astype(">f8"),
    "long": np.arange(USERS, dtype=np.longdouble) / 3,
    "complex": np.arange(2 * USERS).reshape(USERS, 2) + 1j,
    "text": np.array([f"täxt{i}" * (i % 3) for i in range(USERS)]),
    "pairs of text": np.array([[str(i), "b"] for i in range(USERS)]).astype(">U4"),
    "octets": np.array([b"a\0b", b""] * (USERS // 2)),
    "day": np.arange(USERS).astype("M8[D]"),
    "spans": np.arange(2 * USERS).reshape(USERS, 2).astype("m8[ns]"),
    "cube": np.arange(6 * USERS).reshape(USERS, 2, 3),
    "cube of bits": np.arange(4 * USERS).reshape(USERS, 2, 2) % 2 == 0,
    "nothing": np.zeros((USERS, 0)),
    "one": np.arange(USERS).reshape(USERS, 1),
    "": np.arange(USERS),
    "a": np.arange(USERS),
    "a.b": np.arange(USERS) * 2,
    "a.b.list": np.arange(2 * USERS).reshape(USERS, 2),
    "every other": np.arange(2 * USERS)[::2],
    "columns first": np.asfortranarray(np.arange(3.0 * USERS).reshape(USERS, 3)),
}


@dataclass(frozen=True)
class Towns(Protocol):
    """Users ask a peer of their cluster, and report where they and the peer live, with noise that depends on it."""

    ask = Message("user", "user", "asks a peer where she lives", town=np.int64)
    report = Message("user", "learner", "reports the label, and the peers' towns", y=bool, towns=np.int64)

    def user(self, me: Party) -> Rounds:
        town, rates = me.public["town"], me.public["rates"]
        asks = yield self.ask(to=me.draw.member("peer", me.cluster), town=town)
        flip = me.draw.bernoulli("flip", 0.5) & (rates[:, 1] > 0)
        yield self.report(y=me.y ^ flip, towns=town * 100 + asks.town.sum())

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


def people(clusters: Any = None, **more: Any) -> Population:
    public = {"town": np.arange(USERS) * 7 % 10, "rates": np.arange(2.0 * USERS).reshape(USERS, 2) % 5 - 1}
    return Population.from_arrays(y=np.arange(USERS) % 2 == 0, cluster=clusters, public=public | more)


def listed(part: Any) -> list[Any]:
    return [(event.id, event.fields) for event in part.events()]


CLUSTERS = {"side by side": np.arange(USERS) // 5, "scattered": np.arange(USERS) % 8}


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every population be a large one, in small row groups."""
    monkeypatch.setattr(population_file, "_ROWS", 7)
    monkeypatch.setattr(run_directory, "_AT_ONCE", 0)


@pytest.mark.parametrize("clusters", [*CLUSTERS.values(), None], ids=[*CLUSTERS, "none"])
@pytest.mark.parametrize("protocol", [PeerToPeer(0.1), RandomizedResponse(1.0)])
def test_every_type_and_shape_comes_back_whole_and_in_part(protocol, clusters, tmp_path):
    whole = people(clusters, **EVERY_TYPE)
    p2p_sim.run(protocol, whole, seed=3).save(tmp_path / "run")
    loaded = p2p_sim.load(tmp_path / "run").population
    assert loaded is not None
    assert loaded.hash == whole.hash
    for name, column in whole.public.items():
        assert (loaded.public[name].dtype.str, loaded.public[name].shape) == (column.dtype.str, column.shape)
        assert loaded.public[name].tobytes() == column.tobytes()
    part = population_file.near(tmp_path / "run", protocol, np.array([3, 30]))
    if clusters is None and isinstance(protocol, PeerToPeer):
        assert part is None, "everybody may be needed"
        return
    assert part is not None
    assert part.hash == whole.part(part.ids).hash
    assert part.users < USERS


@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_programs_that_read_them_are_replayed_and_looked_at_from_a_folder(clusters, tmp_path, monkeypatch):
    program = Towns()
    run = p2p_sim.run(program, people(clusters), seed=3)
    run.save(tmp_path / "run")
    loaded = p2p_sim.load(tmp_path / "run")
    expected = listed(query.messages(run, user=17, protocol=program))
    monkeypatch.setattr(population_file, "read", forbid)  # no more is read than her cluster
    same(loaded.replay(17, protocol=program), run.replay(17))
    assert listed(query.messages(LazyRun(tmp_path / "run"), user=17, protocol=program)) == expected
    monkeypatch.undo()
    view, seen = (each.view("learner", protocol=program) for each in (loaded, run))
    assert view.messages["report"]["towns"].tolist() == seen.messages["report"]["towns"].tolist()
    assert view.public["public/town"].tolist() == seen.public["public/town"].tolist()
    one = next(iter(query.messages(run, kind="ask", protocol=program).events())).id
    asked = {"protocol": program}
    cones = cone(loaded, one, **asked), cone(run, one, **asked)
    first, second = (listed(found.message) + listed(found.after.nearest) for found in cones)
    assert first == second
    assert len(first) > 1


def test_what_was_kept_without_them_is_named(tmp_path):
    """As an earlier version wrote it: of the population only labels and clusters."""
    program, whole = Towns(), people(CLUSTERS["scattered"])
    run = p2p_sim.run(program, whole, seed=3)
    run.population = Population.from_arrays(y=whole.y, cluster=CLUSTERS["scattered"])
    run.save(tmp_path / "run")
    loaded = p2p_sim.load(tmp_path / "run")
    assert loaded.population.public == {}
    for ask in (
        lambda: loaded.replay(17, protocol=program),
        lambda: loaded.view("learner", protocol=program).draws,
    ):
        with pytest.raises(
            InputError, match=r"cannot be repeated .* reads public column 'town', and a run directory keeps"
        ):
            ask()


def test_without_the_population_there_are_none(tmp_path):
    p2p_sim.run(Towns(), people(CLUSTERS["scattered"])).save(tmp_path / "run", population=False)
    assert not list((tmp_path / "run").rglob("population.parquet"))
    assert p2p_sim.load(tmp_path / "run").population is None


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"things": np.array([{}, 1] * 20)}, "'things' holds objects: give numbers or fixed-width text"),
        ({"pair": np.zeros(USERS, "i4,f8")}, "'pair' has type .* of records one column a field"),
        ({"odd": np.array(["\ud800"] * USERS)}, "'odd' holds text that cannot be written in UTF-8"),
        ({"\ud800": np.zeros(USERS)}, "its name cannot be written in UTF-8"),
        ({3: np.zeros(USERS)}, "public = .* give columns by name"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_run(columns, why, tmp_path):
    said = why if why.startswith("public") else f"public column .*{why}"

    def attempt() -> None:
        whole = Population.from_arrays(y=np.zeros(USERS, bool), public=columns)
        p2p_sim.run(RandomizedResponse(1.0), whole, seed=1, out=tmp_path / "run")

    with pytest.raises(InputError, match=f"(?s){said}"):
        attempt()
    assert not (tmp_path / "run").exists()


Change = Callable[[pa.Table], pa.Table]


def told(table: pa.Table, text: bytes) -> pa.Table:
    return table.replace_schema_metadata({b"p2p-sim.public": text})


def retold(table: pa.Table, name: str, **change: Any) -> pa.Table:
    types = json.loads(table.schema.metadata[b"p2p-sim.public"])
    return told(table, json.dumps(types | {name: types.get(name, {}) | change}).encode())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.drop_columns(["public/town"]), "public column 'town' is missing"),
        (
            lambda table: table.append_column("public/more", pa.array(range(USERS))),
            "'more' is there, and nothing",
        ),
        (lambda table: table.replace_schema_metadata(None), "public column 'name' is there, and nothing"),
        (lambda table: told(table, b"{"), "what it tells of its public columns cannot be read"),
        (lambda table: told(table, b"[]"), "what it tells of its public columns cannot be read"),
        (lambda table: retold(table, "town", dtype="<x9"), "the type of public column 'town' is none"),
        (lambda table: retold(table, "town", dtype="|O"), "the type of public column 'town' is none"),
        (lambda table: retold(table, "town", shape=[-1]), "the type of public column 'town' is none"),
        (lambda table: retold(table, "town", shape=7), "the type of public column 'town' is none"),
        (
            lambda table: retold(table, "town", dtype="<f8"),
            "'public/town' has the type 'int64': must be double",
        ),
        (
            lambda table: retold(table, "rates", shape=[3]),
            "'public/rates' has the type '.*double.*2.*': must be lists of 3 double",
        ),
        (
            lambda table: retold(table, "name", dtype="<U2"),
            "'name' should hold <U2 .*, and holds a longer text",
        ),
    ],
)
def test_foreign_columns_are_named_whole_and_in_part(change, why, tmp_path):
    """Even where all checksums were made again."""
    path = tmp_path / "run"
    whole = people(CLUSTERS["scattered"], name=np.array(["long enough"] * USERS))
    p2p_sim.run(PeerToPeer(0.1), whole, seed=3).save(path)
    file = path / "population.parquet"
    parquet.write_table(change(parquet.read_table(file)), file)
    text = json.loads((path / "run.json").read_text())
    text["sha256"]["population.parquet"] = integrity.sha256(file)
    (path / "run.json").write_text(json.dumps(integrity.with_checksum(text)))
    with pytest.raises(InputError, match=why):
        _ = p2p_sim.load(path).population
    with pytest.raises(InputError, match=why):
        p2p_sim.load(path).replay(17)


def test_an_altered_byte_of_a_column_is_found(tmp_path):
    p2p_sim.run(Towns(), people(CLUSTERS["scattered"]), seed=3).save(tmp_path / "run")
    file = tmp_path / "run/population.parquet"
    octets = bytearray(file.read_bytes())
    start = parquet.read_metadata(file).row_group(2).column(3).data_page_offset
    octets[start + 5] ^= 1
    file.write_bytes(octets)
    with pytest.raises(InputError, match=r"population.parquet' is damaged: its SHA-256"):
        p2p_sim.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (
            {"day": np.arange(USERS).astype("M8[D]")},
            {"day": (np.arange(USERS) + 1).astype("M8[D]")},
            ("1970-01-01", "1970-01-02", USERS),
        ),
        ({"a": np.arange(USERS)}, {"a": np.arange(USERS) % 39}, (39, 0, 1)),
        (
            {"a": np.ones((USERS, 2))},
            {"a": np.ones((USERS, 3))},
            ("float64 of shape (40, 2)", "float64 of shape (40, 3)", None),
        ),
        ({"a": np.ones(USERS)}, {}, ("there", "none", None)),
    ],
)
def test_two_runs_are_compared_by_them(one, other, told):
    runs = [
        p2p_sim.run(
            RandomizedResponse(1.0),
            Population.from_arrays(y=np.zeros(USERS, bool), public=public),
            seed=1,
            trace="full",
        )
        for public in (one, other)
    ]
    (unlike,) = compare(*runs).population
    assert (unlike.what, unlike.first, unlike.second) == (f"public column {next(iter(one))!r}", *told[:2])
    assert told[2] in (None, unlike.differ)
    assert compare(runs[0], runs[0]).population == ()
