"""The benchmark of cryptography runs at a small size and says what it measured against which target."""

from __future__ import annotations

import pytest

from benchmarks import crypto
from p2p_sim import InputError


def test_rows_say_what_was_measured() -> None:
    told: list[tuple[str, int, int]] = []
    result = crypto.main(10_000, crypto.CASES, 1, lambda *step: told.append(step))
    rows = {row["case"]: row for row in result["rows"]}
    assert list(rows) == list(crypto.CASES)
    assert [rows[name]["users"] for name in ("modelled", "chain", "real", "sums")] == [
        10_000,
        10_000,
        1000,
        100,
    ]
    assert min(rows[name]["ratio_cpu"] for name in ("modelled", "digest", "chain")) > 0
    assert rows["modelled"]["reached"] == (rows["modelled"]["ratio_cpu"] >= 0.5)
    assert rows["real"]["digest_equal"] is True
    assert rows["sums"]["exact"] is True
    assert min(rows["real"]["cpu_seconds"], rows["sums"]["cpu_seconds"]) > 0
    assert [done for _, done, _ in told] == list(range(5))


def test_a_floor_with_other_labels_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    crypto.check()
    floor = crypto.floor
    monkeypatch.setattr(crypto, "floor", lambda *given: (floor(*given)[0], floor(*given)[1] ^ 1))
    with pytest.raises(AssertionError, match="floor and engine"):
        crypto.check()


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="no case 'speed'; known are modelled, "):
        crypto.main(10_000, ("speed",), 1, None)
    with pytest.raises(InputError, match="users = 5, repeat = 1"):
        crypto.main(5, ("real",), 1, None)
