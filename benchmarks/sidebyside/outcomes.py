"""What the outcome of the exchange must look like, whichever system carried it out."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.sidebyside.exchange import ALPHA, CLUSTER

DEVIATIONS = 6.0
"""How many standard deviations an outcome may be from what is expected: a false alarm in 1e8 or so."""


@dataclass(frozen=True)
class Outcome:
    """What one run of a program left in its folder; raises ValueError where it is not the exchange."""

    messages: int
    peers: bool
    digest: str
    wall: float
    cpu: float
    start_cpu: float


def read(folder: Path, users: int) -> Outcome:
    """Read and check a program's folder.  Raises ValueError that says what contradicts the exchange."""
    measures = json.loads((folder / "measures.json").read_text())
    width = "u1" if measures["peers"] else "u8"
    got, ones = (np.fromfile(folder / name, width) for name in ("got", "ones"))
    wrong = faults(got, ones) if measures["peers"] else _server_faults(got, ones, users)
    if wrong:
        raise ValueError("; ".join(wrong[:5]))
    digest = hashlib.sha256(got.tobytes() + ones.tobytes()).hexdigest()[:16]
    return Outcome(int(got.sum()), measures.pop("peers"), digest, **measures)


def ones_expected(cluster: int) -> float:
    """Return the expected share of ones among what is sent within a cluster."""
    ones = 0.7 if cluster % 2 else 0.3
    return ones * (1 - ALPHA) + (1 - ones) * ALPHA


def faults(got: npt.NDArray[np.uint8], ones: npt.NDArray[np.uint8]) -> list[str]:
    """Say what contradicts the exchange in what each user received.

    That messages stay in their cluster is checked exactly, as each cluster receives as many as it has members; flips,
    and how many a user receives, by their distribution.
    """
    users = len(got)
    received = got.reshape(-1, CLUSTER).sum(axis=1)
    wrong = [
        f"cluster {cluster} received {received[cluster]} messages instead of {CLUSTER}"
        for cluster in np.flatnonzero(received != CLUSTER)
    ]
    said = ones.reshape(-1, CLUSTER).sum(axis=1)
    for parity in (0, 1):
        of = len(said[parity::2]) * CLUSTER
        what = f"ones in clusters of parity {parity}"
        wrong += _apart(what, int(said[parity::2].sum()), of, ones_expected(parity))
    for count in (0, 1, 2):
        expected = math.comb(CLUSTER, count) * (CLUSTER - 1) ** (CLUSTER - count) / CLUSTER**CLUSTER
        wrong += _apart(f"users who received {count}", int((got == count).sum()), users, expected)
    return wrong


def _server_faults(got: npt.NDArray[np.uint64], ones: npt.NDArray[np.uint64], users: int) -> list[str]:
    if got.tolist() != [users]:
        return [f"the server received {got.tolist()} reports of {users} users"]
    shares = [ones_expected(cluster) for cluster in range(min(2, users // CLUSTER))]
    return _apart("ones", int(ones[0]), users, sum(shares) / len(shares))


def _apart(what: str, found: int, of: int, expected: float) -> list[str]:
    if abs(found - of * expected) <= DEVIATIONS * math.sqrt(of * expected * (1 - expected)):
        return []
    return [f"{what}: {found} of {of}, where {of * expected:.1f} are expected"]
