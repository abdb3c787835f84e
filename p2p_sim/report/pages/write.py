"""Reports in their formats, and where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.report import console
from p2p_sim.report.pages.glance import opening
from p2p_sim.report.pages.html import html
from p2p_sim.report.pages.markdown import markdown
from p2p_sim.report.pages.sections import names, sections

FORMATS = ("html", "md", "json")
NAME = "report.html"
_NAMED = 3  # runs, up to which all are in the title


def page(told: Mapping[str, Any], form: str) -> str:
    """Return ``documents`` as a page of one format."""
    if form == "json":
        return console.as_json(told)
    runs = told["runs"]
    shown = names(runs) if len(runs) <= _NAMED else [f"{len(runs)} runs"]
    top = opening(runs, told["cautions"])
    return (html if form == "html" else markdown)(f"p2p-sim: {', '.join(shown)}", top, sections(runs))


def default(paths: Sequence[str]) -> Path:
    """Return where the page of some runs goes: into the directory of one, beside the first of several."""
    first = Path(paths[0]).resolve()
    return (first if len(paths) == 1 else first.parent) / NAME
