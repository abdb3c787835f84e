"""What all tests share: one Ray session for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """One quiet Ray for every test that needs it; backends use a running Ray and leave it running."""
    from p2p_sim.backends.session import session

    with session(None, 4, 100 << 20):
        yield
