"""What all tests share: one Ray session for the whole run, and one way of following a program's ways."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a change fails for what it does; others with --hypothesis-profile=default.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")

os.environ.pop("COLUMNS", None)  # texts are as wide as the terminal that it tells of

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background, and so would what tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_modules_are_forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imported from a folder of its own, and the way there, is not found by the tests that follow."""
    modules, finders, folder = set(sys.modules), sys.meta_path[:], tmp_path_factory.getbasetemp()
    yield
    sys.meta_path[:] = [each for each in sys.meta_path if each in finders or type(each).__name__ != "Own"]
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(folder):
            del sys.modules[name]


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """One quiet Ray for every test that needs it; backends use a running Ray and leave it running."""
    from p2p_sim.backends.ray_session import session

    with session(None, 4, 100 << 20):
        yield


@pytest.fixture(scope="module")
def ways_once() -> Iterator[None]:
    """Each world's ways are followed once in this file: what most of an enumeration costs, whoever looks at them."""
    from p2p_sim.privacy.enumeration import enumerate as enumerator
    from tests.ways import remembered

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumerator, "_ways", remembered(enumerator._ways))
        yield


@pytest.hookimpl(tryfirst=True)  # before ``-m`` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by fixture what starts Ray or a browser; both are slow.

    Where tests run in several processes, a file stays in one, and so do all that use Ray.  These come first, as they
    take longest, and then the files with slow tests: what comes last is quick, and no process is idle for long.
    """
    turns: dict[str, int] = {}
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        ray = item.get_closest_marker("ray") or "ray_session" in fixtures
        browser = "chromium" in fixtures
        if ray:
            item.add_marker(pytest.mark.ray)
        if browser:
            item.add_marker(pytest.mark.browser)
        if ray or browser:
            item.add_marker(pytest.mark.slow)
        group = "ray" if ray else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
        turn = 0 if ray else 1 if item.get_closest_marker("slow") else 2
        turns[group] = min(turn, turns.get(group, turn))
    items.sort(key=lambda item: turns[_group(item)])


def pytest_collection_finish() -> None:
    """Thousands of tests were made, and stay: no search for garbage need look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(
        10_000, 20, 20
    )  # figures and enumerations make many objects: the search took a twentieth


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    assert marker is not None
    return str(marker.args[0])
