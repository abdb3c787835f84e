"""Makes the folder of a sweep that of other grids, as what is asked for has grown; runs that both have are kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.sweep import folder, grids
from p2p_sim.sweep.grids import Grids
from p2p_sim.sweep.one_run import OneRun


def keep_common(place: Path, given: Mapping[str, Any]) -> None:
    """Make a folder that of the sweep ``given``, as ``p2p_sim.sweep`` takes it; nothing happens where it is, or is new.

    Code and examples stay noted as they were, so that a sweep still compares them.  Whatever ends it, each run is of
    the grids beside it: at worst all have to be made again.  Raises InputError for a folder that is written to.
    """
    if not folder.is_sweep(place):
        return
    asked = grids.read(given)
    fresh, old = (place.with_name(f"{place.name}.{what}") for what in ("new", "old"))
    with folder.locked(place), folder.opened(place) as kept:
        about = kept.about or {}
        then = Grids(about["grids"], about.get("source", ""))
        if not asked.changes(then.grids):
            return
        before = {_text(run): number for number, run in enumerate(then.runs())}
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)
        with folder.held(fresh) as new:
            new.begin({**about, "runs": asked.count, "grids": json.loads(json.dumps(asked.grids))})
            for index, run in enumerate(asked.runs()):
                number = before.get(_text(run))
                if number in kept.done:
                    assert number is not None
                    new.add(index, {**kept.answer(number), "run": index})
        place.rename(old)
        fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _text(run: OneRun) -> str:
    return json.dumps(run, sort_keys=True)
