"""Random walks on a graph: their distribution after t steps and mixing, for the accounting of network shuffling.

A walk at user i goes to a uniform neighbour of hers: P = D^-1 A, reversible with stationary distribution d_i / sum(d).
Functions take connected graphs (``induced`` gives a cluster's own graph).
Source: Liew et al., Network Shuffling, 2022 (P_i(t), spectral gap, sum of squares); Levin and Peres, Markov Chains and
Mixing Times, 2nd edition, 2017, section 12 (reversible chains).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.random_words import stream, uniform, words
from p2p_sim.network.adjacency import matrix

Floats = npt.NDArray[np.float64]

DENSE = 1000
"""Users up to which eigenvalues are computed by dense algebra."""

_POWERS = 40  # steps of power iteration, as many products as one start of the Lanczos iteration

_RESTARTS = 500  # of the Lanczos iteration, up to 40 products each

TOLERANCE = 1e-6
"""Relative error of the sparse eigenvalue solver; the gap is made smaller by it."""


def stationary(graph: Members) -> Floats:
    """Return where a long walk is: degree over the sum of degrees, shape (users,)."""
    degree = graph.size.astype(np.float64)
    out: Floats = degree / degree.sum()
    return out


def distribution(graph: Members, start: int, steps: int) -> Floats:
    """Return the exact law of a walk's place after some steps from one user, shape (users,), up to rounding."""
    users = len(graph.codes)
    if not 0 <= start < users:
        raise InputError(f"start = {start}: users are 0 to {users - 1:,}")
    if steps < 0:
        raise InputError(f"steps = {steps}: must be 0 or more")
    law = np.zeros(users)
    law[start] = 1
    return stepping(graph, steps)[0](law)


def stepping(graph: Members, steps: int) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """Return two maps of columns (users,) or (users, k), each the other's transpose.

    The first takes what starts at each user, in shares or numbers, to where it is after so many steps, on average; the
    second takes values of users to their mean where a walk from each user ends.
    """
    degree, sums = graph.size.astype(np.float64), _sums(graph)

    def ahead(column: Floats) -> Floats:
        for _ in range(steps):
            column = sums((column.T / degree).T)
        return column

    def back(column: Floats) -> Floats:
        for _ in range(steps):
            column = (sums(column).T / degree).T
        return column

    return ahead, back


def collision(law: Floats) -> float:
    """Return the sum of squares: the probability that two independent walks with this law meet."""
    return float(np.square(law).sum())


def spectral_gap(graph: Members) -> float:
    """Return 1 - max(|lambda_2|, |lambda_n|) of P: the absolute gap; 0 exactly if not connected or bipartite.

    By dense algebra up to 1,000 users, by Lanczos iteration (ARPACK, fixed start) above: seconds at 1e5 users of
    degree 20, minutes at 1e6.  A numerical figure, rounded down by the solver's tolerance.  Raises InputError where
    the iteration does not converge.
    """
    if _labels(graph) > 1 or _bipartite(graph):
        return 0.0
    if graph.complete:
        return 1.0
    users, apply = len(graph.codes), _symmetric(graph)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(
        1, user_api="blas"
    ):  # vectors are too short to share: threads made it 40 times slower
        if users <= DENSE:
            dense = np.stack([apply(unit) for unit in np.eye(users)])
            return max(0.0, 1 - float(np.abs(np.linalg.eigvalsh(dense)).max()))
        return max(0.0, 1 - (1 + TOLERANCE) * _largest(apply, users))


def gap_is_below(graph: Members, wanted: float) -> bool:
    """Whether a few steps of power iteration show that ``spectral_gap`` is below a figure; False where they do not.

    The norm |A x| / |x| of a symmetric map is at most its largest absolute eigenvalue, for every x.  So this is
    known at once where the gap is far below, at a cost of one product each, when the gap itself takes hours.
    """
    if graph.complete:
        return wanted > 1
    apply = _symmetric(graph)
    column = _begin(len(graph.codes))
    for _ in range(_POWERS):
        length = float(np.linalg.norm(column))
        if length == 0:
            return False
        column = apply(column / length)
        if 1 - float(np.linalg.norm(column)) < wanted - TOLERANCE:
            return True
    return False


def _symmetric(graph: Members) -> Callable[[Floats], Floats]:
    """Return the map D^-1/2 A D^-1/2, its first eigenvector taken out."""
    root = np.sqrt(graph.size.astype(np.float64))
    top, sums = root / np.linalg.norm(root), _sums(graph)

    def apply(x: Floats) -> Floats:
        column = x.ravel()
        out: Floats = sums(column / root) / root - top * np.dot(top, column)
        return out

    return apply


def _begin(users: int) -> Floats:
    """Return where iterations start, the same each time."""
    return uniform(words(0, stream("graph", "lanczos", 0), 0, users)) - 0.5


def _largest(apply: Callable[[Floats], Floats], users: int) -> float:
    """Return the largest absolute eigenvalue of a symmetric map."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    operator, solver = LinearOperator((users, users), matvec=apply, dtype=np.float64), {"k": 1, "ncv": 40}
    try:
        found = eigsh(
            operator, **solver, v0=_begin(users), tol=TOLERANCE, maxiter=_RESTARTS, return_eigenvectors=False
        )
    except ArpackNoConvergence as error:
        raise InputError(
            f"the spectral gap of this graph of {users:,} users was not found: it mixes too slowly for the solver; "
            "use the exact law of the walk (distribution)"
        ) from error
    return float(np.abs(found).max())


def collision_bound(shares: Floats, gap: float, steps: int) -> float:
    """Return an upper bound of ``collision`` after some steps from any user; ``shares``: the stationary law.

    With r = P_t(i, .) - pi, lambda = 1 - gap and rho^2 = sum r^2 / pi <= (1/pi_i - 1) lambda^2t (reversibility):
    sum P_t^2 = sum pi^2 + 2 sum (pi - c) r + sum r^2 <= sum pi^2 + 2 s rho + max(pi) rho^2, for c the mean and s the
    standard deviation of pi under pi.  On a regular graph: 1/n + (1 - 1/n) lambda^2t.
    """
    _check_gap(gap)
    rho = math.sqrt(1 / float(shares.min()) - 1) * (1 - gap) ** steps
    mean = collision(shares)
    spread = math.sqrt(float((shares * (shares - mean) ** 2).sum()))
    return min(1.0, mean + 2 * spread * rho + float(shares.max()) * rho * rho)


def mixing_steps(shares: Floats, gap: float, distance: float) -> int:
    """Return steps after which, from any user, the walk is within a total variation distance of stationary.

    The least t with sqrt(1/min(pi) - 1) (1 - gap)^t / 2 <= distance: an upper bound of the mixing time.
    Raises InputError for a gap of 0: on a bipartite graph a walk never mixes.
    """
    _check_gap(gap)
    if not 0 < distance < 1:
        raise InputError(f"distance = {distance}: must lie between 0 and 1")
    if gap == 0:
        raise InputError(
            "the spectral gap is 0: the graph is bipartite or not connected, and a walk never mixes, or too slowly"
        )
    excess = math.sqrt(1 / float(shares.min()) - 1) / (2 * distance)
    if excess <= 1:
        return 0
    return 1 if gap == 1 else max(1, math.ceil(math.log(excess) / -math.log1p(-gap)))


def _sums(graph: Members) -> Callable[[Floats], Floats]:
    """Return the map A: each user's sum over her neighbours."""
    ones, codes = matrix(graph), graph.codes
    if not graph.complete:
        return lambda column: ones @ column
    return lambda column: (ones @ column)[codes]


def _labels(graph: Members) -> int:
    return int(graph.components.max()) + 1


def _bipartite(graph: Members) -> bool:
    """Whether a connected graph has no odd cycle: its double cover falls in two."""
    if graph.complete:
        return False  # loops
    from scipy.sparse import block_array
    from scipy.sparse.csgraph import connected_components

    one: Any = matrix(graph)
    cover = block_array([[None, one], [one, None]], format="csr")
    return bool(connected_components(cover, directed=True, connection="strong", return_labels=False) > 1)


def _check_gap(gap: float) -> None:
    if not 0 <= gap <= 1:
        raise InputError(f"gap = {gap}: a spectral gap lies from 0 to 1")
