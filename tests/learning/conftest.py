"""Named data sets, loaded once for all tests, skipped with a reason where this machine does not have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

import pytest

from p2p_sim.learning.data import sources
from p2p_sim.learning.data.datasets import Dataset, load
from p2p_sim.learning.data.named_datasets import NAMED


@lru_cache(maxsize=1)  # one at a time: some are large
def _load(name: str) -> Dataset:
    return load(name)


@pytest.fixture
def named() -> Callable[[str], Dataset]:
    def get(name: str) -> Dataset:
        need(name)
        return _load(name)

    return get


def need(name: str) -> None:
    """Skip unless the data folder has the named set."""
    if not os.environ.get(sources.VARIABLE):
        pytest.skip(f"{sources.VARIABLE} is not set: no copy of {name} here")
    lacks = sources.missing(NAMED[name].files)
    if lacks:
        pytest.skip(f"the folder of {sources.VARIABLE} lacks {lacks[0]}")
