"""The benchmark of walks runs at a small size and says what it measured against which target."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import walks
from p2p_sim import InputError

pytestmark = pytest.mark.slow


def test_rows_say_what_was_measured() -> None:
    told: list[tuple[str, int, int]] = []
    result = walks.main(1_000, ("hops", "numpy", "graph"), 1, lambda *step: told.append(step))
    assert [(row["case"], row["users"]) for row in result["rows"]] == [
        ("hops", 1_000), ("numpy", 1_000), ("graph", 1_000),
    ]  # fmt: skip
    hops, slow, graph = result["rows"]
    for row in (hops, slow):
        assert (row["degree"], row["steps"]) == (20, 10)
        assert (
            min(row["hops_per_second"], row["hops_per_cpu_second"], row["ratio_cpu"], row["ratio_wall"]) > 0
        )
    assert hops["reached"] == (hops["hops_per_second"] >= hops["target"]["hops_per_second"])
    assert (hops["numba"], slow["numba"], slow["reached"]) == (True, False, None)
    assert graph["seconds"] > 0
    assert told == [("hops", 1, 3), ("numpy", 2, 3), ("graph", 3, 3)]
    assert "python" in result["machine"]


def test_the_floor_does_not_depend_on_its_chunks_and_ends_at_neighbours_of_neighbours() -> None:
    people = walks.population(2_000)
    one, other = (walks.floor(people, chunk=c) for c in (400, 32_768))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert np.array_equal(one[0], np.sort(one[0]))


def test_a_floor_with_other_labels_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    walks.check()
    floor = walks.floor
    monkeypatch.setattr(walks, "floor", lambda people: (floor(people)[0], floor(people)[1] ^ 1))
    with pytest.raises(AssertionError, match="floor and engine"):
        walks.check()


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="no case 'speed'; known are hops, "):
        walks.main(1000, ("speed",), 1, None)
    with pytest.raises(InputError, match="users = 5, repeat = 1"):
        walks.main(5, ("hops",), 1, None)
