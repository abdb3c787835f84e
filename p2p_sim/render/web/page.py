"""The web page: one HTML file with style and scripts; an export also holds the messages of some users."""

from __future__ import annotations

import json
import secrets
from importlib import resources
from typing import Any

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.render.known_run import KnownRun, ViewFunctions
from p2p_sim.render.web.messages import Found, Look, Place, gather, lanes
from p2p_sim.render.web.overview import EVERYBODY, FOCUS, in_focus, overview
from p2p_sim.rundir.run_record import RunRecord

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
    """Return the page; ``data``: the answers that an export holds, None for a page that asks a server."""
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
    """Return JSON as an HTML element that is not executed, escaped so that nothing can end the element."""
    text = json.dumps(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="data">{text}</script>'


def _read(name: str) -> str:
    return resources.files("p2p_sim.render.web").joinpath("static", name).read_text("utf-8")


LACKS = (
    "It asks no server. Not in it: all else of the run, its seed, who dropped out or lied, and viewpoints that "
    "are not in the list."
)


def export(run: RunRecord, name: str, view_functions: ViewFunctions, place: Place) -> str:
    """Return the page with the messages of some users of a run, for every view, without the seed.

    Raises InputError as ``gather`` does, and for a run whose seed could be guessed.
    """
    seeds.check_secret(run.seed, run.seed_source, "the page of --export")
    info, found = KnownRun.of(run), gather(run, place)
    about = overview(run, name, info) | {"seed": None}
    if place.user is None:
        about["viewpoints"] = [at for at in about["viewpoints"] if FOCUS not in at["view"]]
    whole = lanes(run, info, found, Look(), view_functions.coalition)
    whole["notes"] = [note for note in found.notes if note != info.cut]  # the file says itself what it cut
    for lane in whole["lanes"]:
        lane["state"] = ""  # who lied would tell of the seed
    data: dict[str, Any] = {
        "overview": about, "lanes": whole, "sights": {}, "figures": {}, "user": place.user,
        "holds": _holds(info, place, found, whole), "lacks": LACKS,
    }  # fmt: skip
    for point in about["viewpoints"]:
        view = in_focus(point["view"], place.user)
        for channels in ("plain", "encrypted") if "wire" in view else ("plain",):
            key = f"{point['view']}|{channels}"
            if view != EVERYBODY:
                seen = lanes(run, info, found, Look(view=view, channels=channels), view_functions.coalition)
                data["sights"][key] = {mask: _bits(seen, mask) for mask in ("seen", "readable")}
            data["figures"][key] = _privacy(run, view or info.main, channels, view_functions)
    return page(secrets.token_urlsafe(16), data)


def _privacy(run: RunRecord, view: str, channels: str, view_functions: ViewFunctions) -> dict[str, Any]:
    try:
        return view_functions.privacy(run, view, channels)
    except InputError as error:  # of a run without its population, say: the page says it
        return {"view": view, "rows": [], "note": str(error)}


def _bits(seen: dict[str, Any], mask: str) -> str:
    return "".join("1" if row[mask] else "0" for row in seen["messages"])


def _holds(info: KnownRun, place: Place, found: Found, whole: dict[str, Any]) -> str:
    """Return which messages an export holds, in words."""
    held, every = len(whole["messages"]), sum(count.messages for count in info.counts.values())
    who = f"user {place.user} and whom she met"
    if place.user is None:
        some = f"{len(found.ids):,} of {found.users:,} users"
        who = some if found.cluster is None else f"{some} of cluster {found.cluster}"
    cut = f", the first {held:,} of {whole['total']:,} of theirs" if held < whole["total"] else ""
    return f"This file holds {held:,} of the run's {every:,} messages: of {who}{cut}."
