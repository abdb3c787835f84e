"""What is kept of a run: digest, counts, hashes of outputs and messages, faults, the bill without its times."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import p2p_sim
from p2p_sim import Run
from tests.golden.cases import Case


def hashed(columns: dict[str, Any]) -> str:
    """Return SHA-256 over columns in their order: name, type, shape and bytes of each."""
    found = hashlib.sha256()
    for name, column in columns.items():
        array = np.ascontiguousarray(column)
        found.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def entry(case: Case) -> dict[str, Any]:
    """Run a case and return what is kept of it, as JSON values."""
    if case.change is not None:
        return paired(case)
    return kept(p2p_sim.run(case.protocol, case.people(), seed=case.seed, **case.how))


def paired(case: Case) -> dict[str, Any]:
    """Run a pair and return both digests, and what differs for whom."""
    assert case.change is not None
    people = case.people()
    pair = p2p_sim.paired(case.protocol, people, change=case.change, seed=case.seed, **case.how)
    differing = {
        view: {kind: hashed(columns) for kind, columns in kinds.items()}
        for view, kinds in pair.diffs().items()
    }
    return {"digests": [run.digest for run in pair.runs], "differing": differing}


def kept(run: Run) -> dict[str, Any]:
    """Return what is kept of a run; what times and places would change is left out."""
    found: dict[str, Any] = {
        "digest": run.digest,
        "counts": {
            f"{kind} {number}": [count.messages, count.travelled, count.nbytes]
            for (kind, number), count in sorted(run.counts.items())
        },
        "outputs": {role: hashed(columns) for role, columns in run.outputs.items() if columns},
    }
    if run.faults is not None:
        seen = sorted(run.faults_seen.items())
        found["faults seen"] = {f"{what} {kind} {number}": n for (what, kind, number), n in seen}
        found["faulty"] = {name: hashed({"ids": ids}) for name, ids in run.faulty.items()}
    if run.work:
        found["work"] = {f"{role} {number} {name}": n for (role, number, name), n in run.work.items()}
    if run.most is not None:
        found["bill"] = billed(run)
    if run.kept() is not None:
        found["trace"] = {kind: hashed(run.messages(kind)) for kind in run.by_kind()}
    return found


def billed(run: Run) -> dict[str, Any]:
    """Return messages, bytes and operations by role; no seconds, which are measured."""
    bill = run.costs()
    return {
        role: {
            "parties": bill.parties[role],
            "messages": [cost.messages_up, cost.messages_down],
            "bytes": [cost.bytes_up, cost.bytes_down],
            "operations": dict(sorted(cost.operations.items())),
        }
        for role, cost in bill.roles.items()
    }
