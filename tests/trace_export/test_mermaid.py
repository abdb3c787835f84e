"""The Mermaid diagram, by a small grammar of sequence diagrams; the real parser read the same texts once, by hand."""

from __future__ import annotations

import re

import pytest

from p2p_sim.trace.diagram.mermaid import mermaid
from p2p_sim.trace.diagram.scene import scene
from protocols import EncryptedShuffle, PeerToPeer
from tests.trace_export.material import EVIL, PROTOCOLS, evil, many, sight_of, sliced

TEXT = r"(?:[^\W]|[ ,.:()=_…�]|#\d+;)+"
LINES = {
    "title": rf"title: (?P<text>{TEXT})",
    "lane": rf"(?:participant|actor) (?P<id>p\d+) as (?P<text>{TEXT})",
    "note": rf"Note over (?P<over>p\d+(?:,p\d+)?): (?P<text>{TEXT})",
    "open": r"rect rgba\(\d+, \d+, \d+, 0\.\d+\)",
    "message": rf"(?P<from>p\d+)(?P<line>->>|-->>|--x)(?P<to>p\d+): (?P<text>{TEXT})",
    "close": "end",
}


def parsed(text: str) -> list[tuple[str, dict[str, str]]]:
    """Every line by its rule; fails where no rule fits, and where bands do not open and close in turn."""
    lines = text.splitlines()
    if lines[0].startswith("%%{init: "):
        lines = lines[1:]
    assert lines[0] == "sequenceDiagram"
    found, depth = [], 0
    for line in lines[1:]:
        rules = [(name, hit) for name, rule in LINES.items() if (hit := re.fullmatch(rule, line.strip()))]
        assert len(rules) == 1, line
        name, hit = rules[0]
        depth += {"open": 1, "close": -1}.get(name, 0)
        assert depth in (0, 1)
        found.append((name, hit.groupdict()))
    assert depth == 0
    return found


def unescaped(text: str) -> str:
    return re.sub(r"#(\d+);", lambda hit: chr(int(hit[1])), text)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_every_message_is_an_arrow_between_its_lanes(protocol):
    _, part = sliced(protocol)
    lines = parsed(mermaid(scene(part, "A title")))
    lanes = {groups["id"]: unescaped(groups["text"]) for name, groups in lines if name == "lane"}
    messages = [groups for name, groups in lines if name == "message"]
    assert [(lanes[m["from"]], lanes[m["to"]]) for m in messages] == [
        tuple(end.replace(":", " ") for end in event.ends) for event in part.events()
    ]
    for message, event in zip(messages, part.events(), strict=True):
        assert unescaped(message["text"]).startswith(event.kind)
        assert message["line"] == ("-->>" if part.sealed[event.kind] else "->>")
    rounds = [groups["text"] for name, groups in lines if name == "note"]
    assert rounds == [f"round {n}" for n in sorted({event.round for event in part.events()})]


def test_a_viewpoint_and_what_was_put_together_are_told():
    protocol = EncryptedShuffle(1.0)
    _, part = sliced(protocol)
    text = mermaid(scene(part, "t", viewpoint="learner", sight=sight_of(protocol, part, "learner")))
    lines = [groups for name, groups in parsed(text) if name == "message"]
    assert {line["line"] for line in lines} == {"--x", "->>"}
    assert all(line["text"] == "report (not seen)" for line in lines if line["line"] == "--x")
    assert "as learner saw it" in text
    _, part = sliced(PeerToPeer(0.1), many())
    merged = parsed(mermaid(scene(part, "t")))
    notes = [unescaped(groups["text"]) for name, groups in merged if name == "note"]
    assert notes[0].startswith("300 users are drawn together by role")
    assert sum(name == "message" for name, _ in merged) == 3


def test_no_name_breaks_out():
    text = mermaid(scene(evil(), EVIL[0], notes=EVIL))
    lines = parsed(text)
    assert sum(name == "message" for name, _ in lines) == 2 * len(EVIL)
    assert not re.search("[<>\"';{}%&]", re.sub(r"#\d+;|--?>>", "", text))
    assert any("<script>alert('1')</script>" in unescaped(g.get("text", "")) for _, g in lines)


def test_a_long_one_asks_for_room():
    long = mermaid(scene(sliced(PeerToPeer(0.1), many(39))[1], "t" * 100, notes=["n" * 400] * 200))
    head, _, rest = long.partition("\n")
    assert int(re.search(r'"maxTextSize": (\d+)', head)[1]) >= len(rest) > 50_000
    assert parsed(long)
    assert not mermaid(scene(sliced(PeerToPeer(0.1))[1], "t")).startswith("%%")


def test_nothing_at_all_is_still_a_diagram():
    from p2p_sim.trace.slices import Slice

    assert parsed(mermaid(scene(Slice.of({}, {}), "t"))) == [("title", {"text": "t"})]
