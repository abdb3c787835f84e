"""Run a tiny protocol every way there is here, and check that nothing depends on the way."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

import numpy as np

from p2p_sim.backends import local
from p2p_sim.core import Population
from p2p_sim.core.engine import Finished
from p2p_sim.core.trace_level import TraceLevel
from tests.exact import oracle

SEED = 5
FULL = TraceLevel("full")
LABELS = [True, False, False, True, True, False, True, False, True, True, False, False]
CLUSTERS = [4, 0, 4, 0, 4, 9, 0, 4, 9, 0, 30, 9]
"""Twelve users in scattered clusters with gaps in their numbers; user 10 is alone."""


def people(**columns: Any) -> Population:
    return Population.from_arrays(y=LABELS, cluster=CLUSTERS, **columns)


def group_of(user: int) -> list[int]:
    return [other for other, cluster in enumerate(CLUSTERS) if cluster == CLUSTERS[user]]


def peer(chance: oracle.Chance, name: str, step: int, user: int) -> int:
    """Whom a user draws with ``me.draw.member(name, me.cluster)``."""
    group = group_of(user)
    return group[oracle.below(chance.word(name, step, user), len(group))]


def messages(finished: Finished, kind: str) -> list[tuple[Any, ...]]:
    """The traced messages of one kind, sorted: (round, sender, recipient, seq, fields ...); vectors flattened."""
    rows: list[tuple[Any, ...]] = []
    for part in finished.totals.trace.get(kind, []):
        columns: list[list[int]] = []
        for column in part.values():
            columns += column.reshape(len(column), -1).astype(object).T.tolist()
        rows += zip(*columns, strict=True)
    return sorted(tuple(int(value) for value in row) for row in rows)


def column(finished: Finished, role: str, name: str) -> list[Any]:
    return finished.outputs[role][name].tolist()  # type: ignore[no-any-return]


def everywhere(protocol: Any, population: Population, seed: int = SEED) -> Finished:
    """Run over 1, 3, 7 and n blocks, with numpy and with numba; all must agree with each other and with the
    digest computed by hand from what was delivered."""
    first: Finished | None = None
    for numba in ("0", "1"):
        with mock.patch.dict(os.environ, P2P_SIM_NUMBA=numba):
            for blocks in (1, 3, 7, population.users):
                finished = local.run(protocol, population, seed, blocks=blocks, trace=FULL)
                first = first or finished
                agree(protocol, first, finished, f"{blocks} blocks, P2P_SIM_NUMBA={numba}")
    assert first is not None
    delivered = {kind: messages(first, kind) for kind in protocol.messages()}
    assert first.totals.digest == oracle.digest(
        delivered, {role: as_integers(c) for role, c in first.outputs.items()}
    )
    return first


def agree(protocol: Any, one: Finished, other: Finished, how: str) -> None:
    for kind in protocol.messages():
        assert messages(one, kind) == messages(other, kind), f"{kind}: {how}"
    assert one.totals.counts == other.totals.counts, how
    assert one.outputs.keys() == other.outputs.keys()
    for role, columns in one.outputs.items():
        assert columns.keys() == other.outputs[role].keys()
        for name, values in columns.items():
            np.testing.assert_array_equal(values, other.outputs[role][name], err_msg=f"{role}, {name}: {how}")
    assert one.totals.digest == other.totals.digest, how


def as_integers(columns: dict[str, Any]) -> dict[str, Any]:
    plain = {}
    for name, values in columns.items():
        bits = values.view(f"u{values.dtype.itemsize}") if values.dtype.kind == "f" else values
        plain[name] = bits.astype(object).tolist()
    return plain
