"""Outputs whose columns have different lengths, as a server may return them, are kept and read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population, ProtocolError
from p2p_sim.core import Message, Party, Protocol, Rounds


@dataclass(frozen=True)
class Summed(Protocol):
    """The learner returns all labels, and how many there are; by name the columns have another order."""

    last: str = "a"

    report = Message("user", "learner", "hands the learner the label as it is", y=np.uint8)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=me.y.view(np.uint8))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        y = reports.columns()["y"]
        return {"y": y, "count": np.array([len(y)]), self.last: np.arange(3)}


def test_they_are_read_back_in_their_order(tmp_path: Path) -> None:
    people = Population.synthetic(users=40, seed=1)
    run = p2p_sim.run(Summed(), people, seed=1, out=tmp_path / "run")
    for read in (p2p_sim.load(tmp_path / "run"), p2p_sim.load(run.save(tmp_path / "again"))):
        assert list(read.output("learner")) == ["y", "count", "a"]
        for name, column in run.output("learner").items():
            np.testing.assert_array_equal(read.output("learner")[name], column)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a\\b", "a\0b"])
def test_a_name_that_is_none_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(ProtocolError, match=r"role .learner., at its end: output .*no slash; rename it"):
        p2p_sim.run(Summed(name), Population.synthetic(users=4, seed=1), seed=1)
