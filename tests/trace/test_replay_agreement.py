"""A replayed life against a trace that is the run's, lacks a message, has one too many, or another value."""

from __future__ import annotations

import numpy as np
import pytest

import p2p_sim
from p2p_sim.rundir.trace_reader import Kept
from p2p_sim.trace import diff
from protocols import PeerToPeer
from tests.tiny import people

USER = 4


def missing_note(columns, row):
    return {name: np.delete(column, row, axis=0) for name, column in columns.items()}


def doubled(columns, row):
    more = {name: np.insert(column, row + 1, column[row], axis=0) for name, column in columns.items()}
    more["seq"][row + 1] += 1
    return more


def lying(columns, row):
    flipped = columns["y_hat"].copy()
    flipped[row] = ~flipped[row]
    return columns | {"y_hat": flipped}


@pytest.mark.parametrize(
    ("change", "whole", "held", "different"),
    [
        (None, True, 0, 0),
        (missing_note, True, -1, 1),
        (missing_note, False, -1, 0),  # of a sample that need not have it
        (doubled, True, 1, 1),
        (doubled, False, 1, 1),
        (lying, True, 0, 1),
        (lying, False, 0, 1),
    ],
)
def test_what_differs_is_counted_and_named(change, whole, held, different):
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full")
    life, trace = run.replay(USER), Kept.of(run)
    labels = dict(run._trace["label"])
    row = int(np.flatnonzero(labels["recipient"] == USER)[0])
    if change is not None:
        trace = Kept(run.source, "full", run.counts, {**run._trace, "label": change(labels, row)})
    found = diff.compared(life, trace, run.source.messages(), whole)
    assert (found.held - found.replayed, found.different) == (held, different)
    assert (found.first is None) == (different == 0)
    if found.first is not None:
        assert found.first["kind"] == "label"


def test_what_she_sent_herself_counts_once():
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full")
    life = run.replay(10)  # alone in her cluster: she asks and answers herself
    assert life.sent["label"]["recipient"].tolist() == life.received["label"]["sender"].tolist() == [10]
    found = diff.compared(life, Kept.of(run), run.source.messages(), whole=True)
    assert (found.held, found.replayed, found.different) == (3, 3, 0)
