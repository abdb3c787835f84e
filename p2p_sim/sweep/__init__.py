"""Sweeps: a grid of runs over the processes of this machine, or of a Ray cluster, each made once, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.progress import Asked, reporter_of, showing


@showing
def sweep(
    grid: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    address: str | None = None,
    progress: Asked = None,
) -> Any:
    """Make every run of a grid once, and return one table of all, a pandas DataFrame with a row for each run.

    ``grid``: a TOML file, or a mapping with the same keys; docs/sweeps.md has them.  ``out``: the sweep's folder;
    None: ``sweeps/NAME`` for a file ``NAME.toml``, and a new ``sweeps/sweep-1``, ``-2``, ... for a mapping.  Where it
    has runs of the same sweep, these are not made again.  ``workers``: how many processes make runs at the same time;
    None: one for each processor.  ``address``: host:port of a Ray cluster, whose processors make them instead; None:
    that of RAY_ADDRESS, where there is one and no workers are given.
    ``progress``: as in ``p2p_sim.run``.  No figure depends on workers, address or order.

    Columns: ``run`` (its number), ``setting`` (the same for runs that differ in seeds alone), ``status`` ("made" or
    "failed"), those of ``p2p_sim.evaluate``, settings that are given, ``promise[...]``, ``rounds``, ``digest``, and
    ``error``, why a run failed.  The table is in the folder too, as table.parquet and table.csv.

    Raises InputError for a grid that is wrong, and for a folder of another sweep, or of other code or examples;
    RunLostError where no worker begins.
    """
    from p2p_sim.sweep import sweeping

    tell = reporter_of(progress)
    return sweeping.made(grid, out=out, workers=workers, address=address, tell=tell).table
