"""An export: the page with the answers to what can be asked of some users, in one file."""

from __future__ import annotations

import secrets
from typing import Any

from p2p_sim.trace.web.answers import Figures
from p2p_sim.trace.web.lanes import Asked, lanes
from p2p_sim.trace.web.overview import overview
from p2p_sim.trace.web.page import page


def export(run: Any, name: str, program: Any, figures: Figures, asked: Asked) -> str:
    """Return the page of some users of a run, as seen from every viewpoint; raises InputError as ``lanes`` does."""
    about = overview(run, name, program)
    if asked.user is None:
        about["viewpoints"] = [at for at in about["viewpoints"] if "*" not in at["view"]]
    seen, told = {}, {}
    for point in about["viewpoints"]:
        view = point["view"].replace("*", str(asked.user))
        eyes = Asked(asked.cluster, asked.user, None, None, view, asked.channels, asked.offset)
        seen[point["view"]] = lanes(run, program, eyes)
        if view:
            told[point["view"]] = figures(run, view)
    data = {"overview": about, "lanes": seen, "figures": told, "user": asked.user, "cluster": asked.cluster}
    return page(secrets.token_urlsafe(16), data)
