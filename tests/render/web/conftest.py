"""Runs to look at, a server on a free port, and a headless browser: Debian's chromium, driven by Playwright.

Tests with a browser are skipped, with the reason, where either is absent.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.render.known_run import ViewFunctions
from p2p_sim.render.web.answers import Answers
from p2p_sim.render.web.server import Server, serving
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.rundir.run_directory import LazyRun
from protocols import EncryptedShuffle, PeerToPeer, RandomizedResponse

CLUSTERS = np.arange(60) // 30 + 4
"""Sixty users in clusters 4 and 5: more than have lanes."""

PEOPLE = Population.from_arrays(y=np.arange(60) % 3 == 0, cluster=CLUSTERS)
SEED = 2**63 + 4
"""Large enough to be left out of a page."""

MANY = Population.synthetic(users=2100, positive=0.3, seed=1)


def make(name: str) -> p2p_sim.Run:
    """Run one of the runs that tests look at."""
    if name == "peers":
        return p2p_sim.run(PeerToPeer(0.1, theta=0.7), PEOPLE, seed=SEED, trace="full")
    if name == "shuffle":
        return p2p_sim.run(EncryptedShuffle(1.0, shufflers=2), PEOPLE, seed=SEED, trace="full")
    if name == "faults":
        wrong = ["drop=0.2", "loss=0.1", "lie=flip:0.3"]
        return p2p_sim.run(PeerToPeer(0.1), PEOPLE, seed=SEED, trace="full", faults=wrong)
    assert name == "labels"
    people = Population.from_arrays(y=np.arange(60) % 4)
    return p2p_sim.run(RandomizedResponse(1.0, labels=4), people, seed=SEED, trace="none")


NAMES = ("peers", "shuffle", "faults", "labels")


@pytest.fixture(scope="package")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs; the first is the newest."""
    folder = tmp_path_factory.mktemp("runs")
    for age, name in enumerate(NAMES):
        saved = make(name).save(folder / name)
        os.utime(saved, (10**9 - age, 10**9 - age))
    return folder


@contextmanager
def served(
    root: Path, load: Callable[[Path], Any] = LazyRun, view_functions: ViewFunctions = VIEW_FUNCTIONS
) -> Iterator[Server]:
    """Serve a folder on a free port while the test goes on."""
    with serving(Answers(root, view_functions, load)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="package")
def server(runs: Path) -> Iterator[Server]:
    with served(runs) as server:
        yield server


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """A browser, started once; ended with this package, for while it lives no other event loop can run."""
    sync = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install '.[test]'"
    )
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []  # its sandbox does not work for root
    with sync.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=root)
        yield browser
        browser.close()


SIZE: Any = {"width": 1400, "height": 900}


@pytest.fixture(scope="package")
def browser_page(chromium: Any) -> Any:
    """One page for all tests in turn: a process of its own for each would take as long as most of the tests do."""
    return chromium.new_context(viewport=SIZE).new_page()


class Tab:
    """One page of the browser, with what it asked for and what went wrong in it."""

    def __init__(self, page: Any):
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self._heard = {
            "request": lambda request: self.asked.append(request.url),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "console": lambda said: self.complaints.append(f"{said.type}: {said.text}"),
        }
        for event, hear in self._heard.items():
            page.on(event, hear)

    def leave(self) -> None:
        """Leave the page as it was found: the served page keeps nothing but its address."""
        self.page.set_viewport_size(SIZE)
        self.page.emulate_media(media="null", color_scheme="null")
        for event, hear in self._heard.items():
            self.page.remove_listener(event, hear)
        self.page.goto("about:blank")

    def open(self, url: str) -> Tab:
        """Open a page and wait for its first view."""
        self.page.goto(url)
        return self.drawn()

    def drawn(self) -> Tab:
        """Wait until all that was asked for is there."""
        self.page.wait_for_selector("main[aria-busy='false']")
        return self

    def marks(self) -> list[str]:
        """The ids of the messages that are drawn."""
        found: list[str] = self.page.eval_on_selector_all(".mark", "all => all.map(one => one.dataset.id)")
        return found

    def text(self, selector: str) -> str:
        said: str = self.page.inner_text(selector)
        return said

    def lanes(self) -> list[str]:
        found: list[str] = self.page.eval_on_selector_all(
            "#heads > *", "all => all.map(one => one.dataset.lane)"
        )
        return found


@pytest.fixture
def tab(browser_page: Any) -> Iterator[Tab]:
    """The page, as if it were new; whatever it complains of fails the test."""
    opened = Tab(browser_page)
    yield opened
    opened.leave()
    assert opened.complaints == []
