"""Tables for generators of features given a label, fitted to public examples: kernel densities, Gaussian mixtures.

What is fitted is a table of fixed numbers, rows with weights and deviations, and nothing else goes into a protocol: as
a .csv file (``FeatureTable.csv``), or as the arguments of ``protocols.generators.Prototypes`` and
``protocols.gaussian_mixtures.GaussianMixtures``.  A network that makes rows: ``conditional_gan``.
"""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError

Floats = npt.NDArray[np.float64]

RULES = ("scott", "silverman")
"""Rules of thumb for a bandwidth, by the number of a class's rows and of features."""

KERNEL_ROWS = 1000
"""Most rows of a label that a kernel density estimate has, unless said otherwise."""

LEAST = 2.0**-16
"""Deviations below are none."""

PARTS = 1 << 20
"""Weights of a label are whole numbers of about this sum."""


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Rows of features, some for each label.

    ``label`` (m,): 0 to k - 1, ascending.  ``weight`` (m,): whole numbers from 1 up, of a row among those of its label.
    ``rows`` (m, d).  ``deviations`` (m, d): of the Gaussian noise on each; all 0: the rows are drawn as they are.
    """

    label: npt.NDArray[np.int64]
    weight: npt.NDArray[np.int64]
    rows: Floats
    deviations: Floats

    def entries(self) -> list[list[tuple[int, list[float]]]]:
        """Return for each label its pairs of weight and row, as ``Prototypes`` takes them."""
        return [
            list(zip(self.weight[mine].tolist(), self.rows[mine].tolist(), strict=True))
            for mine in (self.label == label for label in range(int(self.label.max()) + 1))
        ]

    def csv(self, features: Sequence[str] | None = None) -> str:
        """Return the table as the text of a .csv file; ``features``: names of the columns, None: x0, x1, ...

        Raises InputError for another number of names, and for names that occur twice or mean something else there.
        """
        names = [f"x{i}" for i in range(self.rows.shape[1])] if features is None else list(features)
        if len(names) != self.rows.shape[1]:
            raise InputError(f"features: {len(names)} names, the table has {self.rows.shape[1]} features")
        stripped = [name.strip() for name in names]
        wrong = [
            name
            for name in stripped
            if name in ("label", "weight", "deviation")
            or name.startswith("deviation ")
            or stripped.count(name) > 1
        ]
        if wrong:
            raise InputError(
                f"feature {wrong[0]!r}: occurs twice, or has a meaning of its own in the file (label, weight, "
                "deviation): rename it"
            )
        noisy = np.flatnonzero(self.deviations.any(axis=0))
        out = io.StringIO()
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(["label", "weight", *stripped, *(f"deviation {stripped[i]}" for i in noisy)])
        numbers = np.concatenate([self.rows, self.deviations[:, noisy]], axis=1).tolist()
        for label, weight, row in zip(self.label.tolist(), self.weight.tolist(), numbers, strict=True):
            lines.writerow([label, weight, *row])
        return out.getvalue()


def kernel_density(
    x: Any, y: Any, *, bandwidth: float | str = "scott", rows: int = KERNEL_ROWS, labels: int | None = None
) -> FeatureTable:
    """Return a kernel density estimate for each label: its public examples as rows, with Gaussian noise.

    ``x`` (n, d), ``y`` (n,): public examples, labels 0 to k - 1.  ``bandwidth``: above 0, in standard deviations of
    each feature among all examples; or "scott" or "silverman", of the number of rows and features.  ``rows``: the most
    of a label, evenly spaced ones where it has more; at least 1.  ``labels``: k; None: the largest label plus one.
    Raises InputError for others, and for a label without examples.

    *Source:* scikit-learn's ``KernelDensity``, a Gaussian kernel on standardized features.
    *Assumes:* the examples are public.
    """
    from sklearn.neighbors import KernelDensity

    check_whole("rows", rows)
    if not isinstance(bandwidth, str):
        check_range("bandwidth", bandwidth, 0, 1e6, open_low=True)
    elif bandwidth not in RULES:
        raise InputError(f"bandwidth = {bandwidth!r}: give a number above 0, or {' or '.join(RULES)}")
    classes = by_label(x, y, labels)
    scale = np.concatenate(classes).std(axis=0)
    parts = []
    for own in classes:
        few = own[np.linspace(0, len(own) - 1, min(rows, len(own))).astype(np.intp)]
        fitted = KernelDensity(bandwidth=bandwidth).fit(few / np.where(scale > 0, scale, 1))
        parts.append((np.ones(len(few)), few, np.broadcast_to(fitted.bandwidth_ * scale, few.shape)))
    return table_of(parts)


def gaussian_mixture(
    x: Any, y: Any, *, components: int = 5, seed: int = 0, labels: int | None = None
) -> FeatureTable:
    """Return a mixture of Gaussians for each label, fitted to its public examples by EM.

    ``x``, ``y``, ``labels``: as for ``kernel_density``.  ``components``: of a label, at least 1, and at most its
    examples; features are independent within each.  ``seed``: of the first guess, below 2^32.  Warns (UserWarning)
    where EM did not converge.  Raises InputError for others, and for a label without examples.

    *Source:* scikit-learn's ``GaussianMixture``, diagonal covariances, on standardized features.
    *Assumes:* the examples are public.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    check_whole("components", components)
    check_whole("seed", seed, 0, 2**32 - 1)
    classes = by_label(x, y, labels)
    every = np.concatenate(classes)
    mean, scale = every.mean(axis=0), every.std(axis=0)
    unit = np.where(scale > 0, scale, 1)
    parts = []
    for label, own in enumerate(classes):
        model = GaussianMixture(min(components, len(own)), covariance_type="diag", random_state=seed)
        if len(own) == 1:  # EM asks for two
            parts.append((np.ones(1), own, np.zeros(own.shape)))
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit((own - mean) / unit)
        if not model.converged_:
            warnings.warn(f"label {label}: EM did not converge; give fewer components", stacklevel=2)
        spread = np.sqrt(model.covariances_) * scale
        parts.append((model.weights_, model.means_ * unit + mean, spread))
    return table_of(parts)


def by_label(x: Any, y: Any, labels: int | None) -> list[Floats]:
    """Return the rows of each label, (n_y, d) of float64; raises InputError for what are no examples of labels."""
    rows, codes = np.asarray(x), np.asarray(y)
    if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "buif":
        raise InputError(f"x: has {rows.dtype} of shape {rows.shape}; give numbers of shape (n, d)")
    if not np.isfinite(rows).all():
        raise InputError("x: has entries that are not finite; fill or drop them first")
    if codes.shape != rows.shape[:1] or codes.dtype.kind not in "bui" or int(codes.min()) < 0:
        raise InputError(
            f"y: has {codes.dtype} of shape {codes.shape}; give a label from 0 up for each of the {len(rows):,} rows "
            "of x"
        )
    count = max(2, int(codes.max()) + 1) if labels is None else labels
    check_whole("labels", count, 2, 256)
    if int(codes.max()) >= count:
        raise InputError(f"y: has label {int(codes.max())}, labels = {count}: labels are 0 to {count - 1}")
    found = [rows[codes == label].astype(np.float64) for label in range(count)]
    for label, own in enumerate(found):
        if not len(own):
            raise InputError(f"label {label} has no public example: a generator needs some of every label")
    return found


def table_of(parts: Sequence[tuple[Floats, Floats, Floats]]) -> FeatureTable:
    """Return the table of weights (m,), rows (m, d) and deviations (m, d) of each label."""
    label = np.repeat(np.arange(len(parts)), [len(weights) for weights, _, _ in parts])
    weight, rows, spread = (
        np.concatenate(side)
        for side in zip(*((_whole(weights), *rest) for weights, *rest in parts), strict=True)
    )
    return FeatureTable(label, weight, rows, np.where(spread < LEAST, 0.0, spread))


def _whole(weights: Floats) -> npt.NDArray[np.int64]:
    """Return weights as whole numbers: as they are where they are, else in parts of about 2^20."""
    if (weights == np.rint(weights)).all():
        common = math.gcd(*weights.astype(np.int64).tolist())
        return np.asarray(weights.astype(np.int64) // common)
    return np.asarray(np.maximum(np.rint(weights / weights.sum() * PARTS), 1).astype(np.int64))
