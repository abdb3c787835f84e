"""The files of a comparison's folder; what they hold is of ``p2p_sim.comparison``."""

from __future__ import annotations

CALIBRATIONS, RUNS, PICTURE = "calibrations", "runs", "picture"
"""Folders, each with the files of a sweep; the first is there from the beginning."""

AMONG_FEWER = "-among-fewer"
"""How names end of what could not be run among all users."""

TABLE, TABLE_CSV, WHOLE, REPORT = "table.parquet", "table.csv", "comparison.json", "report.html"

_SWEEPS = (RUNS, PICTURE, *(f"{name}{AMONG_FEWER}" for name in (RUNS, PICTURE)))
FOLDERS = (CALIBRATIONS, *_SWEEPS, *(f"{name}.{what}" for name in _SWEEPS for what in ("new", "old")))
"""All of them; a sweep that grows is made anew beside the old one, which a command that was killed leaves."""

FILES = (TABLE, TABLE_CSV, WHOLE, REPORT)
