"""A run that begins with numpy's loops and goes on with numba's has the bits of either."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim.core import kernels, kernels_numpy
from p2p_sim.core.kernels import NumpyThenNumba, choose_or_switch
from protocols import NetworkShuffle, PeerToPeer
from tests.contract.cases import people_of, scattered

LOADED = "p2p_sim.core.kernels_numba"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not loaded the compiled loops, or so it seems."""
    monkeypatch.delenv("P2P_SIM_NUMBA", raising=False)
    monkeypatch.delitem(sys.modules, LOADED, raising=False)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    "protocol", [PeerToPeer(0.2, 0.6), PeerToPeer(0.2, 0.6, 1), NetworkShuffle(1.0, steps=3)]
)
def test_the_bits_are_those_of_either(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    people, switched = people_of(protocol, "scattered", 600), []
    monkeypatch.setattr(kernels, "WORTH_CALLING", 100)
    monkeypatch.setattr(kernels, "WORTH_SECONDS", 0.0)
    switch = NumpyThenNumba.switch
    monkeypatch.setattr(NumpyThenNumba, "switch", lambda self: switched.append(self) or switch(self))
    how: dict[str, Any] = {"seed": 3, "blocks": 5, "threads": 2, "costs": True}
    labels: list[str] = []
    run = p2p_sim.run(protocol, people, **how, progress=lambda label, *_: labels.append(label))
    assert len(switched) == 1, "once, after the first step"
    assert any("compiled" in label for label in labels)
    for value in "01":
        monkeypatch.setenv("P2P_SIM_NUMBA", value)
        other = p2p_sim.run(protocol, people, **how)
        assert (other.digest, other.most, other.counts) == (run.digest, run.most, run.counts)


@pytest.mark.usefixtures("fresh")
def test_when_they_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = choose_or_switch(kernels.WORTH_COMPILING)
    assert isinstance(loops, NumpyThenNumba)
    assert loops.words is kernels_numpy.words
    assert not loops.due(kernels.WORTH_SECONDS / 2)
    assert loops.due(kernels.WORTH_SECONDS)
    loops.switch()
    assert loops.words is kernels.load(kernels.NUMBA).words
    assert not loops.due(kernels.WORTH_SECONDS), "no more"
    assert choose_or_switch(kernels.WORTH_CALLING - 1) is kernels_numpy
    assert not isinstance(choose_or_switch(kernels.WORTH_AT_ONCE), NumpyThenNumba)
    for value in "01":
        monkeypatch.setenv("P2P_SIM_NUMBA", value)
        assert not isinstance(choose_or_switch(kernels.WORTH_COMPILING), NumpyThenNumba)


@pytest.mark.usefixtures("fresh")
def test_where_numba_cannot_compile_they_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    load = kernels.load

    def refused(name: str) -> Any:
        if name == kernels.NUMBA:
            raise OSError("no folder")
        return load(name)

    loops = choose_or_switch(kernels.WORTH_COMPILING)
    monkeypatch.setattr(kernels, "load", refused)
    assert isinstance(loops, NumpyThenNumba)
    with pytest.warns(UserWarning, match="running without it"):
        loops.switch()
    assert loops.words is kernels_numpy.words
    assert len(loops.words(1, 2, 0, 5)) == len(np.arange(5))


def test_a_wrong_variable_of_numba_is_named() -> None:
    """In a process of its own: numba reads it when it is imported."""
    program = "from p2p_sim.core import kernels; kernels.choose(10 ** 6)"
    environment = {**os.environ, "P2P_SIM_NUMBA": "1", "NUMBA_NUM_THREADS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert "InputError: P2P_SIM_NUMBA=1, but numba cannot compile here" in last
    assert "correct or unset" in last
    assert "NUMBA_NUM_THREADS=0" in last


def test_scattered_people_are_many_enough() -> None:
    """Twin: the users above are fewer than would switch by themselves."""
    assert not isinstance(choose_or_switch(scattered(600).users), NumpyThenNumba)
