"""The page: one file of HTML, with its style and scripts inside, and in an export its data too."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

SCRIPTS = (
    "source.js",
    "address.js",
    "marks.js",
    "picture.js",
    "list.js",
    "panels.js",
    "page.js",
    "controls.js",
)


def page(nonce: str, data: dict[str, Any] | None = None) -> str:
    """Return the page; ``data``: the answers it holds in itself, None if it asks a server."""
    style, script = _read("page.css"), "\n".join(map(_read, SCRIPTS))
    policy = (
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-{nonce}'; "
        f"style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'none'\">"
    )
    return (
        _read("page.html")
        .replace("<!--policy-->", "" if data is None else policy)
        .replace("<!--style-->", f'<style nonce="{nonce}">\n{style}</style>')
        .replace("<!--data-->", "" if data is None else embedded(data))
        .replace("<!--script-->", f'<script nonce="{nonce}">\n{script}</script>')
    )


def embedded(data: dict[str, Any]) -> str:
    """Return JSON as an element that is no script, with nothing in it that could end the element."""
    text = json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="data">{text}</script>'


def _read(name: str) -> str:
    return resources.files("p2p_sim.trace.web").joinpath("static", name).read_text("utf-8")
