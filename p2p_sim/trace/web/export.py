"""An export: the page with the answers to what can be asked of some users, in one file."""

from __future__ import annotations

import secrets
from typing import Any

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.trace.web.gather import Found, Place, gather
from p2p_sim.trace.web.known import Known, Viewers, known
from p2p_sim.trace.web.lanes import Look, lanes
from p2p_sim.trace.web.overview import EVERYBODY, FOCUS, in_focus, overview
from p2p_sim.trace.web.page import page

LACKS = (
    "It asks no server. Not in it: all else of the run, its seed, who dropped out or lied, and viewpoints that "
    "are not in the list."
)


def export(run: Any, name: str, viewers: Viewers, place: Place) -> str:
    """Return the page of some users of a run, as seen from every viewpoint, without the seed.

    Raises InputError as ``gather`` does, and for a run whose seed could be guessed.
    """
    seeds.check_secret(run.seed, run.seed_source, "the page of --export")
    told, found = known(run), gather(run, place)
    about = overview(run, name, told) | {"seed": None}
    if place.user is None:
        about["viewpoints"] = [at for at in about["viewpoints"] if FOCUS not in at["view"]]
    whole = lanes(run, told, found, Look(), viewers.eyes)
    whole["notes"] = [note for note in found.notes if note != told.cut]  # the file says itself what it cut
    for lane in whole["lanes"]:
        lane["state"] = ""  # who lied would tell of the seed
    data: dict[str, Any] = {
        "overview": about, "lanes": whole, "sights": {}, "figures": {}, "user": place.user,
        "holds": _holds(told, place, found, whole), "lacks": LACKS,
    }  # fmt: skip
    for point in about["viewpoints"]:
        view = in_focus(point["view"], place.user)
        for channels in ("plain", "encrypted") if "wire" in view else ("plain",):
            key = f"{point['view']}|{channels}"
            if view != EVERYBODY:
                seen = lanes(run, told, found, Look(view=view, channels=channels), viewers.eyes)
                data["sights"][key] = {sight: _bits(seen, sight) for sight in ("seen", "readable")}
            data["figures"][key] = _learnt(run, view or told.main, channels, viewers)
    return page(secrets.token_urlsafe(16), data)


def _learnt(run: Any, view: str, channels: str, viewers: Viewers) -> dict[str, Any]:
    try:
        return viewers.learnt(run, view, channels)
    except InputError as error:  # of a run without its population, say: the page says it
        return {"view": view, "rows": [], "note": str(error)}


def _bits(seen: dict[str, Any], sight: str) -> str:
    return "".join("1" if row[sight] else "0" for row in seen["messages"])


def _holds(told: Known, place: Place, found: Found, whole: dict[str, Any]) -> str:
    """Say what a file holds, and what not."""
    held, every = len(whole["messages"]), sum(count.messages for count in told.counts.values())
    who = f"user {place.user} and whom she met"
    if place.user is None:
        some = f"{len(found.ids):,} of {found.users:,} users"
        who = some if found.cluster is None else f"{some} of cluster {found.cluster}"
    cut = f", the first {held:,} of {whole['total']:,} of theirs" if held < whole["total"] else ""
    return f"This file holds {held:,} of the run's {every:,} messages: of {who}{cut}."
