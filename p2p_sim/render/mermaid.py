"""A scene as a Mermaid sequence diagram: text that GitHub, GitLab and many editors draw."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from p2p_sim.render import text_labels
from p2p_sim.render.lanes import Lane
from p2p_sim.render.scene import READ, STRUCK, UNSEEN, Arrow, Scene

MAX_LETTERS = 50_000
"""Mermaid refuses longer diagrams; only the page around a diagram can raise this limit, not the diagram itself."""

_CLOSE = (
    '%%{init: {"sequence": {"width": 90, "actorMargin": 30, "messageMargin": 22, "noteMargin": 6, "boxMargin": 6, '
    '"wrapPadding": 8}}}%%'
)  # lanes and arrows as close together as their words allow
_BANDS = ("rgba(128, 128, 128, 0.15)", "rgba(128, 128, 128, 0.04)")


def mermaid(scene: Scene) -> str:
    """Return the scene, shortened if it is too large for Mermaid, as the text of a ``sequenceDiagram``."""
    return _text(fitting(scene))


def fitting(scene: Scene) -> Scene:
    """Return the scene with as many of its first arrows as Mermaid accepts; if any are left out, a note says so."""
    low, high = 0, len(scene.arrows)
    if len(_text(scene)) <= MAX_LETTERS or not high:
        return scene
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if len(_text(_first(scene, middle))) <= MAX_LETTERS else (low, middle)
    return _first(scene, low)


def _first(scene: Scene, most: int) -> Scene:
    """Return the first arrows of a scene."""
    whole = text_labels.counted(len(scene.arrows), "arrow")
    note = f"the first {most:,} of {whole} are written, for Mermaid reads {MAX_LETTERS:,} letters at most; SVG has all"
    return replace(scene, arrows=scene.arrows[:most], notes=(*scene.notes, note))


def _text(scene: Scene) -> str:
    last = len(scene.lanes) - 1
    over = "p0" if last <= 0 else f"p0,p{last}"
    view_note = [] if scene.viewpoint is None else [f"as {scene.viewpoint} saw it"]
    sentences = [f"{kind}: {sentence}" for kind, sentence in scene.kinds.items()]
    lines = [f"accTitle: {_safe(scene.title)}"]
    if scene.notes or sentences:
        lines.append(f"accDescr: {_safe('; '.join([*view_note, *scene.notes, *sentences]))}")
    lines += [f"participant p{i} as {_head(lane)}" for i, lane in enumerate(scene.lanes)]
    if not scene.lanes:
        lines.append(f"title: {_safe(scene.title)}")
    lines += [_note(over, words) for words in (scene.title, *view_note, *scene.notes) if scene.lanes]
    for band, (round, arrows) in enumerate(groupby(scene.arrows, key=lambda drawn: drawn.round)):
        lines += [f"rect {_BANDS[band % 2]}", f"  Note over {over}: round {round}"]
        lines += [f"  p{drawn.sender}{_line(drawn)}p{drawn.recipient}: {_words(drawn)}" for drawn in arrows]
        lines.append("end")
    lines += [_note(over, words) for words in sentences]
    return f"{_CLOSE}\nsequenceDiagram\n" + "".join(f"  {line}\n" for line in lines)


def _head(lane: Lane) -> str:
    """Return the lines in a lane's box."""
    many = "" if lane.parties == 1 else text_labels.counted(lane.parties, "user")
    return "<br/>".join(_safe(words) for words in (lane.name, many, lane.opens) if words)


def _note(over: str, words: str) -> str:
    """Return a note over all lanes, wrapped."""
    return f"Note over {over}: wrap: {_safe(words)}"


def _line(drawn: Arrow) -> str:
    """Return the arrow: solid if its fields are read, dashed if not, with a cross if the message is not seen."""
    return {READ: "->>", UNSEEN: "--x"}.get(drawn.sight, "-->>")


def _words(drawn: Arrow) -> str:
    """Return the words of an arrow."""
    if drawn.sight == UNSEEN:
        return " ".join(word for word in (_safe(drawn.kind), _safe(drawn.detail), "(not seen)") if word)
    hidden = f"({drawn.hidden}{' not read' if drawn.sight == STRUCK else ''})" if drawn.hidden else ""
    return " ".join(_safe(word) for word in (drawn.kind, hidden, drawn.detail) if word)


def _safe(text: str) -> str:
    """Return text with everything escaped that means something to Mermaid or HTML."""
    return "".join(
        letter if letter.isalnum() or letter in " ,.:()=_…�" else f"#{ord(letter)};" for letter in text
    )
