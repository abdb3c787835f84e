"""The benchmark of large runs, among few users: what it finds of a command, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import large
from p2p_sim import InputError


def test_a_command_is_measured_and_blocks_change_no_digest(tmp_path: Path) -> None:
    one, other = (large._taken(3000, tmp_path, "--blocks", str(count)) for count in (1, 3))
    assert one.digest == other.digest
    assert 0.05 < one.peak < 4
    assert one.cpu > 0 < one.wall
    row = large._row("local", 3000, [one, other], {"digests": 1})
    assert row["reached"]
    assert not large._row("local", 3000, [one], {"wall": one.wall / 2})["reached"]


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="--nonsense"):
        large._taken(3000, tmp_path, "--nonsense")


@pytest.mark.parametrize(
    ("users", "cases", "repeat"), [(10, ("local",), 1), (10**6, ("no",), 1), (10**6, (), 0)]
)
def test_bad_arguments_are_refused(users: int, cases: tuple[str, ...], repeat: int) -> None:
    with pytest.raises(InputError):
        large.main(users, cases, repeat)
