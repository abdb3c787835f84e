"""Messages as JSON in pieces: the same document as in one, without holding its rows."""

from __future__ import annotations

from typing import Any

import pytest

from p2p_sim.report import message_text, terminal
from tests.render.material import PROTOCOLS, large, peak, sliced


def document(part: Any) -> dict[str, Any]:
    return {
        "run": "r", "notes": [], "none": None, "empty": {}, "limit": float("inf"),
        "messages": message_text.tables(part), "draws": message_text.counted(1, [{"value": (1, float("nan"))}]),
    }  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_the_pieces_are_the_whole(protocol):
    _, part = sliced(protocol)
    told = document(part)
    assert "".join(terminal.json_pieces(told)) == terminal.as_json(told)
    for table, (kind, names) in zip(told["messages"], part.ids().items(), strict=True):
        rows = table["rows"]
        assert [row["id"] for row in rows] == names
        assert [rows[i] for i in range(len(rows))] == list(rows) == rows[:]
        assert kind == table["kind"]
        if names:
            assert (rows[-1], rows[1:3]) == (list(rows)[-1], list(rows)[1:3])
        with pytest.raises(IndexError):
            rows[len(rows)]


@pytest.mark.slow
def test_no_row_is_held():
    part = large(10_000)
    characters: list[int] = []
    held = peak(lambda: characters.append(sum(map(len, terminal.json_pieces(document(part))))))
    assert characters[0] > 200 * len(part)
    assert held < 4e6  # they take 12 MB, the text 2.6
