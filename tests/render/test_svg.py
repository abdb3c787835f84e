"""The SVG diagram as a browser would read it: lanes, arrows, words, colours, and nothing that runs."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from p2p_sim.render.scene import scene
from p2p_sim.render.svg import COLOURS, INK, PAPER, svg
from protocols import EncryptedShuffle, PeerToPeer
from tests.render.material import EVIL, PROTOCOLS, evil, many, sight_of, sliced

SVG = "{http://www.w3.org/2000/svg}"


def read(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    return root


def with_class(root, tag, word):
    return [found for found in root.iter(f"{SVG}{tag}") if word in found.get("class", "").split()]


def words(element) -> str:
    return " ".join("".join(element.itertext()).split())


def heads(root) -> dict[float, str]:
    """Names of lanes by where their lines stand."""
    xs = [float(line.get("x1")) for line in with_class(root, "line", "pd-life")]
    texts = {float(t.get("x")): words(t) for t in reversed(with_class(root, "text", "pd-text"))}
    return {x: texts[x] for x in xs}


def ends(arrow) -> tuple[float, float, bool]:
    """Where an arrow starts and where its tip is, and whether it is a loop."""
    line, tip = (path.get("d") for path in arrow.iter(f"{SVG}path"))
    start, end = (float(re.match(r"M(-?[\d.]+) ", d)[1]) for d in (line, tip))
    if "v" in line:
        return start, end, True
    assert float(line.rpartition("H")[2]) == pytest.approx(end, abs=2)
    return start, end, False


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_every_message_is_an_arrow_between_its_lanes(protocol):
    _, part = sliced(protocol)
    drawn = scene(part, "A title")
    root = read(svg(drawn))
    names = heads(root)
    assert list(names.values()) == [lane.name for lane in drawn.lanes]
    arrows = with_class(root, "g", "arrow")
    events = list(part.events())
    assert len(arrows) == len(events)
    for arrow, event in zip(arrows, events, strict=True):
        start, end, loop = ends(arrow)
        assert (names[start], names[end]) == tuple(name.replace(":", " ") for name in event.ends)
        assert loop == (event.ends[0] == event.ends[1])
        assert words(arrow.find(f"{SVG}text")).startswith(event.kind)
        assert arrow.find(f"{SVG}title").text == f"{event.id}; {event.nbytes:,} bytes"
    rounds = [words(t) for t in with_class(root, "text", "pd-text") if words(t).startswith("round ")]
    assert rounds == [f"round {n}" for n in sorted({event.round for event in events})]
    assert root.find(f"{SVG}title").text == "A title"


@pytest.mark.parametrize("users", [12, 300])
def test_everything_is_inside_and_nothing_overlaps_in_height(users):
    _, part = sliced(PeerToPeer(0.1), many(users))
    root = read(svg(scene(part, "t", clusters=lambda ids: ids // 10 + 5)))
    left, top, wide, high = map(float, root.get("viewBox").split())
    for text in root.iter(f"{SVG}text"):
        x, y, length = float(text.get("x")), float(text.get("y")), 7.2 * len(words(text))
        start = x - length / 2 if text.get("text-anchor") == "middle" else x
        assert left <= start
        assert start + length <= left + wide
        assert top + 10 <= y <= top + high
    rows = [float(a.find(f"{SVG}text").get("y")) for a in with_class(root, "g", "arrow")]
    assert min(b - a for a, b in pairwise(rows)) >= 16


def test_what_a_viewpoint_cannot_read_is_struck_out_and_not_there():
    protocol = EncryptedShuffle(1.0)
    _, part = sliced(protocol)
    for view, sights in (("shuffler", {"struck"}), ("learner", {"unseen", "read"})):
        text = svg(scene(part, "t", viewpoint=view, sight=sight_of(protocol, part, view)))
        arrows = with_class(read(text), "g", "arrow")
        assert {arrow.get("class").split()[1] for arrow in arrows} == sights
        for arrow in arrows:
            struck = [words(span) for span in with_class(arrow, "tspan", "pd-struck")]
            sight = arrow.get("class").split()[1]
            kind = words(arrow).split(":")[0]
            assert struck == {"struck": ["cluster, y"], "unseen": [kind], "read": []}[sight]
            assert ("y=" in words(arrow)) == (sight == "read")
        assert f"as {view} saw it" in text
    assert "y=" not in words(read(svg(scene(part, "t"))))
    assert "dotted: sealed" in svg(scene(part, "t"))


def test_no_name_breaks_out():
    part = evil()
    text = svg(scene(part, f"title {EVIL[0]}", notes=EVIL))
    root = read(text)
    assert {element.tag for element in root.iter()} == {
        SVG + tag for tag in ("svg", "title", "desc", "style", "rect", "line", "g", "path", "text", "tspan")
    }
    assert len(with_class(root, "g", "arrow")) == 2 * len(EVIL)
    assert "<script" not in text
    assert "alert('1')" in "".join(root.itertext())
    assert not re.search("[\x00-\x09\x0b-\x1f\ud800\u202e]", text)
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]


def test_nothing_comes_from_elsewhere():
    text = svg(scene(sliced(PeerToPeer(0.1))[1], "t"))
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|@import|<image|<foreignObject|<!DOCTYPE", text)


def test_the_same_run_gives_the_same_bytes():
    texts = {svg(scene(sliced(PROTOCOLS["secure aggregation"])[1], "t")) for _ in range(2)}
    assert len(texts) == 1


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", [0, 1], ids=["light", "dark"])
def test_colours_stand_out_from_the_paper(page):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(PAPER[page], INK[page]) >= 7
    for colour in COLOURS:
        assert contrast(PAPER[page], colour[page]) >= 4.5


def test_there_is_a_page_for_the_dark():
    text = svg(scene(sliced(PeerToPeer(0.1))[1], "t"))
    light, dark = text.split("@media screen and (prefers-color-scheme:dark)")
    assert PAPER[0] in light
    assert PAPER[1] in dark
