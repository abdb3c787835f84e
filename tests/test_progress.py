"""Who is shown progress: those who look, unless they say otherwise; it changes no result."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy, progress
from p2p_sim.learning import experiment
from protocols import PeerToPeer, RandomizedResponse

PEOPLE = Population.from_arrays(y=np.arange(40) % 3 == 0)
CALLS = {
    "run": lambda **how: p2p_sim.run(RandomizedResponse(1.0), PEOPLE, seed=1, **how).digest,
    "simulate": lambda **how: experiment.simulate(RandomizedResponse(1.0), 40, seed=1, **how).digest,
    "learn": lambda **how: (
        experiment.learn(RandomizedResponse(1.0), "breast-cancer", seed=1, **how).comparison.accuracy_private  # type: ignore[union-attr]
    ),
    "evaluate": lambda **how: (
        p2p_sim.evaluate(RandomizedResponse(1.0), "breast-cancer", seed=1, **how)["accuracy[released]"][0]
    ),
    "audit": lambda **how: (
        privacy.audit(PeerToPeer(0.1), cluster_size=3, trials=300, delta=0.1, **how).lower
    ),
    "calibrate": lambda **how: (
        privacy.calibrate(PeerToPeer, vary="alpha", cluster_size=9, epsilon=1, delta=1e-3, **how).value
    ),
}  # fmt: skip

calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The bars that were shown, by their threads."""
    made: list[threading.Thread] = []
    start = progress.Progress.__enter__

    def begin(self: progress.Progress) -> progress.Progress:
        made.append(self._thread)
        return start(self)

    monkeypatch.setattr(progress.Progress, "__enter__", begin)
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What makes stderr a terminal: to be called in a test, before which pytest puts its own stream there."""

    def begin() -> None:
        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TERM", "xterm")

    return begin


@calls
def test_where_nobody_looks_nothing_is_shown(call, bars, capfd) -> None:
    call()
    call(progress=False)
    assert bars == []
    assert capfd.readouterr() == ("", "")


@calls
def test_in_a_terminal_one_bar_is_shown_and_changes_nothing(call, bars, terminal) -> None:
    terminal()
    shown = call()
    assert len(bars) == 1
    assert call(progress=False) == shown
    assert len(bars) == 1
    assert call(progress=True) == shown
    assert len(bars) == 2
    said = []
    assert call(progress=lambda *state: said.append(state)) == shown
    assert len(bars) == 2
    assert said
    assert not any(each.is_alive() for each in bars)


def test_a_dumb_terminal_is_none(bars, terminal, monkeypatch) -> None:
    terminal()
    monkeypatch.setenv("TERM", "dumb")
    CALLS["run"]()
    assert bars == []


@calls
def test_while_a_bar_is_shown_there_is_no_second(call, bars, terminal) -> None:
    terminal()
    with progress.Progress(io.StringIO()):
        call()
        call(progress=True)
    assert len(bars) == 1
    call()
    assert len(bars) == 2


def test_an_error_takes_the_bar_away(bars, terminal) -> None:
    terminal()
    with pytest.raises(InputError, match="backend"):
        CALLS["run"](backend="moon")
    assert len(bars) == 1
    assert not bars[0].is_alive()
    CALLS["run"]()
    assert len(bars) == 2


@pytest.mark.parametrize("wrong", [1, 0, "no", 1.0])
@calls
def test_anything_else_is_refused(call, wrong) -> None:
    with pytest.raises(InputError, match=f"progress = {wrong!r}: give True, False, None"):
        call(progress=wrong)


def test_a_calibration_says_what_it_tries() -> None:
    said: list[tuple[str, int, int]] = []
    CALLS["calibrate"](progress=lambda *state: said.append(state))
    labels = [label for label, _, _ in said]
    assert labels[0] == "solving for alpha, value 1"
    assert sum(label.startswith("solving for alpha") for label in labels) > 10
    assert labels[-1] == "accounting for the other views: learner+wire"


@contextlib.contextmanager
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A kernel, as far as it is asked; the HTML that it shows in one place."""
    cells: list[str] = []

    class ZMQInteractiveShell:
        pass

    class Place:
        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            cells.append(data["text/html"])
            assert data["text/plain"] in ("", "<user>, round 1: 30 of 60")

    def show(data: dict[str, str], raw: bool, display_id: bool) -> Place:
        assert display_id
        Place().update(data, raw)
        return Place()

    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    display.display = show  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "IPython", ipython)
        patch.setitem(sys.modules, "IPython.display", display)
        patch.setattr(progress, "_BAR_AFTER", 0.01)
        patch.setattr(progress, "_CELL_STEP", 0.01)
        yield cells


def test_a_notebook_shows_a_bar_below_the_cell(monkeypatch, bars) -> None:
    with notebook(monkeypatch) as cells:
        with progress.reporting(None) as tell:
            assert tell is not None
            tell("<user>, round 1", 30, 60)
            wanted = '<progress max="60" value="30"></progress> &lt;user&gt;, round 1: 30 of 60'
            end = time.monotonic() + 10
            while not any(wanted in cell for cell in cells) and time.monotonic() < end:
                time.sleep(0.01)
        assert any(wanted in cell for cell in cells)
        assert cells[-1] == ""  # taken away
        assert len(bars) == 1


def test_work_of_unknown_length_moves() -> None:
    assert progress.as_html("training", 0, 0) == "<div><progress ></progress> training</div>"
