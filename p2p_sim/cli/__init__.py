"""The command line, ``p2p-sim``: every verb is a frozen dataclass of its options with a method ``work``.

typer reads the words and makes the dataclass; ``main`` does the work and owns the errors.
"""

# each adds its verb, or its verbs
from p2p_sim.cli import (
    account,
    attack,
    audit,
    bench,
    calibrate,
    check,
    data,
    diff,
    generator,
    leakage,
    ls,
    mechanisms,
    replay,
    report,
    rm,
    run,
    sweep,
    trace_pictures,
    trace_tables,
)
from p2p_sim.cli.app import app, main

__all__ = [
    "account", "app", "attack", "audit", "bench", "calibrate", "check", "data", "diff", "generator", "leakage", "ls",
    "main", "mechanisms", "replay", "report", "rm", "run", "sweep", "trace_pictures", "trace_tables",
]  # fmt: skip
