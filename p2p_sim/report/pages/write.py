"""Reports in their formats, and where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.report import console
from p2p_sim.report.pages.document import WITHHELD
from p2p_sim.report.pages.glance import opening
from p2p_sim.report.pages.html import html
from p2p_sim.report.pages.markdown import markdown
from p2p_sim.report.pages.sections import names, sections

FORMATS = ("html", "md", "json")
NAME = "report.html"
_NAMED = 3  # runs and protocols, up to which all are in the title


def page(told: Mapping[str, Any], form: str) -> str:
    """Return ``documents`` as a page of one format."""
    if form == "json":
        return console.as_json(told)
    runs = told["runs"]
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    title = f"{_some(protocols, 'protocols')}: {_some(names(runs), 'runs')} – p2p-sim"
    return (html if form == "html" else markdown)(title, opening(runs, told["cautions"]), sections(runs))


def tells_seed(told: Mapping[str, Any]) -> bool:
    """Whether a page of ``documents`` tells a seed, with which the noise could be undone."""
    return any(run["seed"] not in (None, WITHHELD) for run in told["runs"])


def _some(found: Sequence[str], what: str) -> str:
    return ", ".join(found) if len(found) <= _NAMED else f"{len(found)} {what}"


def default(paths: Sequence[str]) -> Path:
    """Return where the page of some runs goes: into the directory of one, beside the first of several."""
    first = Path(paths[0]).resolve()
    return (first if len(paths) == 1 else first.parent) / NAME
