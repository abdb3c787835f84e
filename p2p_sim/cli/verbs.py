"""The verbs of the command line: the files that define each, and what the list of verbs says of it.

A command loads the files of its own verb alone; the list of verbs, ``p2p-sim --help``, loads none.
"""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple


class Verb(NamedTuple):
    """The modules of this package that define a verb, and the first paragraph of its help."""

    modules: tuple[str, ...]
    help: str


VERBS = {
    "account": Verb(
        ("account",),
        "Print what each party learns about one label: the exact ε at δ, and the theorems.  Nothing is run.",
    ),
    "attack": Verb(
        ("attack",),
        "Guess labels with what a view sees, and say how many are guessed right with it and without it.",
    ),
    "audit": Verb(
        ("audit",),
        "Run many small worlds and measure what a view learns about one label.  Exit status 1: a claim is violated.",
    ),
    "bench": Verb(
        ("bench",), "Measure performance as ratios within one call.  Needs a checkout of the repository."
    ),
    "calibrate": Verb(
        ("calibrate",),
        "Find the parameter at which a view is (ε, δ)-private, and print what every other view learns there.",
    ),
    "check": Verb(
        ("check",),
        "Check that a protocol of your own gives the same bits in any number of blocks, again and in other processes.",
    ),
    "data": Verb(
        ("data",),
        "List the data sets that are known by name; or say what is understood of every column of a file, or of one "
        "set.",
    ),
    "diff": Verb(
        ("diff",),
        "Compare two runs: settings, labels, counts, outputs and single messages.  Exit status 1: they differ.",
    ),
    "errata": Verb(
        ("errata",),
        "Show each correction of the papers by numbers: printed, exact, corrected.  Exit status 1: one no longer "
        "shows.",
    ),
    "generator": Verb(
        ("generator",),
        "Fit a generator of features given a label to public examples; write its table, which --generator reads.",
    ),
    "leakage": Verb(
        ("leakage",),
        "Say what features and a flipped label together tell of people's labels: the most, and how many lose how "
        "much.",
    ),
    "ls": Verb(("ls",), "List the runs and sweeps in a folder, and in its folders runs and sweeps."),
    "mechanisms": Verb(
        ("mechanisms",),
        "List the protocols that are known, or describe one: labels, whom to trust, which views have a law.",
    ),
    "replay": Verb(
        ("replay",),
        "Recompute from a run's seed what a user sent, received and drew, whether the run kept messages or not.",
    ),
    "report": Verb(("report",), "Write a report on one run, or on several side by side, as one page."),
    "rm": Verb(
        ("rm",),
        "Remove a run or a sweep, after asking.  No other folder is removed, and none that holds other files, too.",
    ),
    "run": Verb(
        ("run",),
        "Run a protocol among users with real examples, train a model on the released labels, and save the run.",
    ),
    "sweep": Verb(
        ("sweep",),
        "Make every run of a grid once, over all processors, and write one table; given again, it goes on where it "
        "was.",
    ),
    "trace": Verb(("trace_tables", "trace_pictures"), "Look at the messages of a run."),
}


def load(*names: str) -> None:
    """Import the files that define some verbs, by default all, which register themselves."""
    for name in names or VERBS:
        for module in VERBS[name].modules:
            path = f"{__package__}.{module}"
            if path not in sys.modules:
                importlib.import_module(path)
