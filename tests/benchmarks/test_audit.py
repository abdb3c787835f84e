"""The benchmark of audits runs at a small size and says what it measured against which target."""

from __future__ import annotations

import pytest

from benchmarks import audit
from p2p_sim import InputError

pytestmark = pytest.mark.slow


def test_rows_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SIZE", 50)
    monkeypatch.setattr(audit, "RESPONSES", 20_000)
    steps: list[tuple[str, int, int]] = []
    result = audit.main(300, ("learner", "wire", "response"), 1, lambda *step: steps.append(step))
    rows = result["rows"]
    assert [(row["case"], row.get("theta")) for row in rows] == [
        ("learner", 1.0), ("learner", 0.5), ("wire", 1.0), ("wire", 0.5), ("response", None),
    ]  # fmt: skip
    for row in rows[:4]:
        assert (row["trials"], row["cluster_size"]) == (300, 50)
        assert (
            min(row["seconds"], row["engine_seconds"], row["ratio_cpu"], row["ratio_wall"], row["peak_gib"])
            > 0
        )
    assert rows[0]["target"] == {"seconds": 0.09, "ratio_cpu": 0.6, "peak_gib": 1.0}
    assert rows[0]["reached"] in (True, False)
    assert (rows[2]["target"], rows[2]["reached"]) == ({}, None)
    assert rows[4]["reached"] == (rows[4]["lower"] >= 0.99)
    assert steps[-2:] == [("audit of wire", 4, 5), ("audit of randomized response", 5, 5)]
    assert "python" in result["machine"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="no case 'speed'; known are learner, "):
        audit.main(1000, ("speed",), 1, None)
    with pytest.raises(InputError, match="trials = 5, repeat = 1"):
        audit.main(5, ("learner",), 1, None)
