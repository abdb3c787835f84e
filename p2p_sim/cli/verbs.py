"""The verbs of the command line: each imports its files, which register it, and begins as its help does.

A command loads the files of its own verb alone; the list of verbs, ``p2p-sim --help``, loads none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType


def _account() -> ModuleType:
    """Print what each party learns about one label: the exact ε at δ, and the theorems.  Nothing is run."""
    from p2p_sim.cli import account

    return account


def _attack() -> ModuleType:
    """Guess labels with what a view sees, and say how many are guessed right with it and without it."""
    from p2p_sim.cli import attack

    return attack


def _audit() -> ModuleType:
    """Run many small worlds and measure what a view learns about one label.  Exit status 1: a claim is violated."""
    from p2p_sim.cli import audit

    return audit


def _bench() -> ModuleType:
    """Measure performance as ratios within one call.  Needs a checkout of the repository."""
    from p2p_sim.cli import bench

    return bench


def _calibrate() -> ModuleType:
    """Find the parameter at which a view is (ε, δ)-private, and print what every other view learns there."""
    from p2p_sim.cli import calibrate

    return calibrate


def _check() -> ModuleType:
    """Check that a protocol of your own gives the same bits in any number of blocks, again and in other processes."""
    from p2p_sim.cli import check

    return check


def _compare() -> ModuleType:
    """Calibrate every protocol that takes your labels to one promise, run them, and recommend one, with doubts."""
    from p2p_sim.cli import compare

    return compare


def _completion() -> ModuleType:
    """Print a script by which TAB completes verbs, options, protocols and data sets, for bash, zsh or fish."""
    for name, verb in VERBS.items():
        if name != "completion":
            verb()  # its words are in the script
    from p2p_sim.cli import completion

    return completion


def _data() -> ModuleType:
    """List the data sets that are known by name; or say what is understood of every column of a file, or of one
    set.
    """
    from p2p_sim.cli import data

    return data


def _diff() -> ModuleType:
    """Compare two runs: settings, labels, counts, outputs and single messages.  Exit status 1: they differ."""
    from p2p_sim.cli import diff

    return diff


def _doctor() -> ModuleType:
    """Check this installation: packages, memory, disk, data sets, Ray and a browser.  Exit status 1: a problem."""
    from p2p_sim.cli import doctor

    return doctor


def _errata() -> ModuleType:
    """Show each correction of the papers by numbers: printed, exact, corrected.  Exit status 1: one no longer shows."""
    from p2p_sim.cli import errata

    return errata


def _generator() -> ModuleType:
    """Fit a generator of features given a label to public examples; write its table, which --generator reads."""
    from p2p_sim.cli import generator

    return generator


def _leakage() -> ModuleType:
    """Say what features and a flipped label together tell of people's labels: the most, and how many lose how much."""
    from p2p_sim.cli import leakage

    return leakage


def _ls() -> ModuleType:
    """List the runs, sweeps and comparisons in a folder, and in its folders of these names."""
    from p2p_sim.cli import ls

    return ls


def _mechanisms() -> ModuleType:
    """List the protocols that are known, or describe one: labels, whom to trust, which views have a law."""
    from p2p_sim.cli import mechanisms

    return mechanisms


def _new() -> ModuleType:
    """Write a small protocol that works, with its law and its tests, to be changed into your own."""
    from p2p_sim.cli import new

    return new


def _replay() -> ModuleType:
    """Recompute from a run's seed what a user sent, received and drew, whether the run kept messages or not."""
    from p2p_sim.cli import replay

    return replay


def _report() -> ModuleType:
    """Write a report on one run, or on several side by side, as one page."""
    from p2p_sim.cli import report

    return report


def _rm() -> ModuleType:
    """Remove a run, a sweep or a comparison, after asking.  None is removed in whose folder other files lie, too."""
    from p2p_sim.cli import rm

    return rm


def _run() -> ModuleType:
    """Run a protocol among users with real examples, train a model on the released labels, and save the run."""
    from p2p_sim.cli import run

    return run


def _sweep() -> ModuleType:
    """Make every run of a grid once, over all processors, and write one table; given again, it goes on where it
    was.
    """
    from p2p_sim.cli import sweep

    return sweep


def _trace() -> ModuleType:
    """Look at the messages of a run."""
    from p2p_sim.cli import trace_pictures  # and trace_tables, which it imports

    return trace_pictures


VERBS: dict[str, Callable[[], ModuleType]] = {
    "account": _account,
    "attack": _attack,
    "audit": _audit,
    "bench": _bench,
    "calibrate": _calibrate,
    "check": _check,
    "compare": _compare,
    "completion": _completion,
    "data": _data,
    "diff": _diff,
    "doctor": _doctor,
    "errata": _errata,
    "generator": _generator,
    "leakage": _leakage,
    "ls": _ls,
    "mechanisms": _mechanisms,
    "new": _new,
    "replay": _replay,
    "report": _report,
    "rm": _rm,
    "run": _run,
    "sweep": _sweep,
    "trace": _trace,
}


def first_paragraph(verb: Callable[[], object]) -> str:
    """Return what the list of verbs says of one."""
    return " ".join((inspect.getdoc(verb) or "").split("\n"))
