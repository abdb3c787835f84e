"""A scene as a Mermaid sequence diagram: text that GitHub, GitLab and many editors draw."""

from __future__ import annotations

from itertools import groupby

from p2p_sim.trace.diagram import labels
from p2p_sim.trace.diagram.scene import READ, STRUCK, UNSEEN, Arrow, Scene

_MOST_TEXT = 50_000
"""Letters above which Mermaid refuses a diagram unless its ``maxTextSize`` is raised."""

_BANDS = ("rgba(128, 128, 128, 0.15)", "rgba(128, 128, 128, 0.04)")


def mermaid(scene: Scene) -> str:
    """Return the scene as the text of a ``sequenceDiagram``."""
    last = len(scene.lanes) - 1
    lines = [f"title: {_safe(scene.title)}"]
    for i, lane in enumerate(scene.lanes):
        many = "" if lane.parties == 1 else f", {labels.counted(lane.parties, 'user')}"
        lines.append(f"{'participant' if lane.server else 'actor'} p{i} as {_safe(lane.name + many)}")
    told = [] if scene.viewpoint is None else [f"as {scene.viewpoint} saw it"]
    over = "p0" if last <= 0 else f"p0,p{last}"
    lines += [f"Note over {over}: {_safe(note)}" for note in (*told, *scene.notes) if scene.lanes]
    for band, (round, arrows) in enumerate(groupby(scene.arrows, key=lambda drawn: drawn.round)):
        lines += [f"rect {_BANDS[band % 2]}", f"  Note over {over}: round {round}"]
        lines += [f"  p{drawn.sender}{_line(drawn)}p{drawn.recipient}: {_words(drawn)}" for drawn in arrows]
        lines.append("end")
    text = "sequenceDiagram\n" + "".join(f"  {line}\n" for line in lines)
    if len(text) <= _MOST_TEXT:
        return text
    return f'%%{{init: {{"maxTextSize": {len(text) + 100}}}}}%%\n{text}'


def _line(drawn: Arrow) -> str:
    """Return the arrow: solid if its fields are read, dashed if not, with a cross if nothing is seen."""
    return {READ: "->>", UNSEEN: "--x"}.get(drawn.sight, "-->>")


def _words(drawn: Arrow) -> str:
    """Return the words of an arrow."""
    if drawn.sight == UNSEEN:
        return " ".join(word for word in (_safe(drawn.kind), _safe(drawn.detail), "(not seen)") if word)
    hidden = f"({drawn.hidden}{' not read' if drawn.sight == STRUCK else ''})" if drawn.hidden else ""
    return " ".join(_safe(word) for word in (drawn.kind, hidden, drawn.detail) if word)


def _safe(text: str) -> str:
    """Return text in which everything that Mermaid or HTML gives a meaning is written by its code point."""
    return "".join(
        letter if letter.isalnum() or letter in " ,.:()=_…�" else f"#{ord(letter)};" for letter in text
    )
