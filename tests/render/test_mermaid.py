"""The Mermaid diagram, by a small grammar of sequence diagrams.

Mermaid 11.17 itself drew all of them once, by hand: where boxes, bands and notes are clipped or touch is not seen here.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from p2p_sim.render.mermaid import MAX_LETTERS, fitting, mermaid
from p2p_sim.render.scene import scene
from protocols import EncryptedShuffle, PeerToPeer
from tests.render.material import EVIL, PROTOCOLS, evil, many, sight_of, sliced

TEXT = r"(?:[^\W]|[ ,.:()=_…�]|#\d+;)+"
LINES = {
    "title": rf"title: (?P<text>{TEXT})",
    "name": rf"accTitle: (?P<text>{TEXT})",
    "description": rf"accDescr: (?P<text>{TEXT})",
    "lane": rf"participant (?P<id>p\d+) as (?P<text>{TEXT}(?:<br/>{TEXT})*)",
    "band": r"Note over (?P<over>p\d+(?:,p\d+)?): (?P<text>round \d+)",
    "note": rf"Note over (?P<over>p\d+(?:,p\d+)?): wrap: (?P<text>{TEXT})",
    "open": r"rect rgba\(\d+, \d+, \d+, 0\.\d+\)",
    "message": rf"(?P<from>p\d+)(?P<line>->>|-->>|--x)(?P<to>p\d+): (?P<text>{TEXT})",
    "close": "end",
}


def parsed(text: str) -> list[tuple[str, dict[str, str]]]:
    """Every line by its rule; fails where no rule fits, and where bands do not open and close in turn."""
    lines = text.splitlines()
    init = re.fullmatch("%%{init: (.*)}%%", lines[0])
    assert set(json.loads(init[1])) == {"sequence"}  # Mermaid lets a diagram set no limit of its own
    assert lines[1] == "sequenceDiagram"
    found, depth = [], 0
    for line in lines[2:]:
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
    rounds = [groups["text"] for name, groups in lines if name == "band"]
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
    assert notes[0] == "t"
    assert notes[1].startswith("300 users are drawn together by role")
    assert notes[2:] == [f"{kind}: {text}" for kind, text in part.texts.items()]
    assert sum(name == "message" for name, _ in merged) == 3


def test_no_name_breaks_out():
    text = mermaid(scene(evil(), EVIL[0], notes=EVIL))
    lines = parsed(text)
    assert sum(name == "message" for name, _ in lines) == 2 * len(EVIL)
    _, _, body = text.partition("\n")
    assert not re.search("[<>\"';{}%&]", re.sub(r"#\d+;|--?>>", "", body))
    assert any("<script>alert('1')</script>" in unescaped(g.get("text", "")) for _, g in lines)


def test_no_more_is_written_than_mermaid_reads_and_it_is_said():
    few = scene(sliced(PeerToPeer(0.1))[1], "t")
    assert fitting(few) is few
    many_arrows = replace(few, arrows=few.arrows * 80)
    fits = fitting(many_arrows)
    kept = len(fits.arrows)
    assert 36 < kept < 80 * 36
    assert fits.arrows == many_arrows.arrows[:kept]
    assert fits.notes == (
        f"the first {kept:,} of 2,880 arrows are written, for Mermaid reads 50,000 letters at most; SVG has all",
    )
    text = mermaid(many_arrows)
    assert text == mermaid(fits)
    assert sum(name == "message" for name, _ in parsed(text)) == kept
    longest = max(len(line) for line in text.splitlines() if "->>" in line)
    assert MAX_LETTERS - longest - 60 < len(text) <= MAX_LETTERS  # 60: a band may open


def test_a_lane_of_many_says_what_opens_it():
    _, part = sliced(PeerToPeer(0.1), many())
    drawn = scene(part, "t", clusters=lambda ids: ids // 10 + 5, command="p2p-sim trace diagram r")
    lanes = [unescaped(groups["text"]) for name, groups in parsed(mermaid(drawn)) if name == "lane"]
    assert lanes == [*(f"cluster {c}<br/>10 users<br/>--cluster {c}" for c in range(5, 35)), "learner"]


def test_nothing_at_all_is_still_a_diagram():
    from p2p_sim.trace.slices import Slice

    told = [("name", {"text": "t"}), ("title", {"text": "t"})]
    assert parsed(mermaid(scene(Slice.of({}, {}), "t"))) == told
