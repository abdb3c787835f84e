"""What a program or a damaged folder must not be able to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.core import Message, Party, Protocol, Rounds, kernels
from protocols import PeerToPeer, RandomizedResponse
from tests.contract.test_engine_details import people


@dataclass(frozen=True)
class Stray(Protocol):
    """Everybody writes to user 0, whatever her cluster."""

    note = Message("user", "user", "writes to user 0", y=bool)
    report = Message("user", "learner", "says how many notes came", n=np.int64)

    def user(self, me: Party) -> Rounds:
        notes = yield self.note(to=0 * me.id, y=me.y)
        yield self.report(n=notes.count)

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


def test_replay_of_a_user_whom_strangers_write_to() -> None:
    run = p2p_sim.run(Stray(), people(), trace="full", seed=0)
    life = run.replay(0)
    assert life.world == 20
    assert len(life.received["note"]["y"]) == 20
    assert life.sent["report"]["n"].tolist() == [20]


@dataclass(frozen=True)
class Meddler(Protocol):
    """Tries to change what it was given, or to read what others hold."""

    how: str

    note = Message("user", "user", "says a bit to oneself", y=bool)
    report = Message("user", "learner", "hands it on", y=bool)

    def user(self, me: Party) -> Rounds:
        notes = yield self.note(to=me.draw.member("peer", me.cluster), y=me.y)
        if self.how == "change":
            notes.y.data[:] = False
        if self.how == "take":
            yield self.report(y=notes.y.take(notes.rank - 1))
        if self.how == "list":
            yield [self.report(y=notes.y)]
        me.draw.below("secret", me.y)
        yield self.report(y=notes.y)

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


@pytest.mark.parametrize(
    ("how", "words"), [("change", "read-only"), ("take", "order must hold ranks"), ("list", "a list")]
)
def test_meddling_is_refused(how: str, words: str) -> None:
    for blocks in (1, 4):
        with pytest.raises((ProtocolError, ValueError), match=words):
            p2p_sim.run(Meddler(how), people(), blocks=blocks, seed=0)


def test_no_error_shows_a_label() -> None:
    for how in ("list", "draw"):
        with pytest.raises(ProtocolError) as caught:
            p2p_sim.run(Meddler(how), people(), seed=0)
        assert "True" not in str(caught.value)
        assert "False" not in str(caught.value)
    assert "True" not in repr(people())


def test_kinds_that_nobody_sent_are_there_and_empty() -> None:
    run = p2p_sim.run(PeerToPeer(0.1, 1e-12), people(), trace="full", seed=0)
    assert run.by_kind()["report"].messages == 0
    assert len(run.messages("report")["y"]) == 0


def test_numba_that_cannot_compile_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(name: str) -> Any:
        if name == kernels.NUMBA:
            raise RuntimeError("cannot cache function: no locator available")
        return real(name)

    real = kernels.load
    monkeypatch.setattr(kernels, "load", cannot)
    monkeypatch.delenv("P2P_SIM_NUMBA", raising=False)
    with pytest.warns(UserWarning, match="running without it, slower; set NUMBA_CACHE_DIR"):
        assert kernels.choose(10**6).__name__ == "p2p_sim.core.kernels_numpy"
    monkeypatch.setenv("P2P_SIM_NUMBA", "1")
    with pytest.raises(InputError, match="P2P_SIM_NUMBA=1, but numba cannot compile here"):
        kernels.choose(5)


@pytest.mark.parametrize(
    "file",
    [
        "run.json",
        "population.parquet",
        "outputs/learner.parquet",
        "messages/ask/round=1/part-00000-00000.parquet",
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"[]"])
def test_damaged_run_directories_are_refused(file: str, content: bytes, tmp_path: Path) -> None:
    path = p2p_sim.run(PeerToPeer(0.1), people(), trace="full", seed=0).save(tmp_path / "run")
    (path / file).write_bytes(content)
    with pytest.raises(InputError, match="is damaged"):
        p2p_sim.load(path)


def test_parameters_of_numpy_types_are_saved(tmp_path: Path) -> None:
    run = p2p_sim.run(
        RandomizedResponse(np.float64(1.0), np.int64(3)), Population.from_arrays(y=np.arange(9) % 3), seed=0
    )  # type: ignore[arg-type]
    assert p2p_sim.load(run.save(tmp_path / "run")).parameters["labels"] == 3
