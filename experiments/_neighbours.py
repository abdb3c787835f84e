"""Losses of people by their nearest neighbours: of stand-ins, of the papers' own files, and of a known P(y | x).

Pitfalls 2021 and Release 2023 use kag14, kdd12, kdd10 and SUSY, of which none can be shipped.  Stand-ins have about
their prior; a folder with the originals, in svmlight format, takes their place (``--originals FOLDER``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments import _common
from experiments._common import Experiment, Options, Outcome, folder_named
from experiments._rows import Case, Kept, content
from p2p_sim.core import random_words
from p2p_sim.core.errors import InputError
from p2p_sim.leakage import estimated_loss, instance_loss
from p2p_sim.leakage.estimated_loss import EstimatedLoss, Smoothness
from p2p_sim.leakage.nearest_neighbours import label_shares, scaled
from p2p_sim.learning.data import datasets, svmlight
from p2p_sim.rundir import integrity

Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.99
"""1 - delta of the papers' figures."""

PRIORS = {"kag14": 0.256, "kdd12": 0.044, "kdd10": 0.861, "SUSY": 0.457}
"""P(Y = 1) of the papers' data: Pitfalls 2021, Table 1."""

ORIGINAL_ROWS, ORIGINAL_K, HASHED = 200_000, 1000, 128
"""Of an original: rows that are drawn, neighbours, and columns for its features; SUSY's 18 stay as they are."""

_TABLE = "pitfalls_figure1_neighbours"
"""Of the shares of labels, which several experiments use."""

_ROWS = random_words.stream("experiments", "rows", 0)


@dataclass(frozen=True)
class StandIn:
    """A data set ``instead_of`` one that cannot be had, "" for none.  ``rows``: of its training part, None for all."""

    name: str
    instead_of: str
    k: int
    rows: int | None = None


STAND_INS = (
    StandIn("census-income", "kdd12", 1000),
    StandIn("adult", "kag14", 1000),
    StandIn("magic", "SUSY", 500),
    StandIn("mnist", "", 500, 30_000),
)
QUICK = (StandIn("adult", "kag14", 300, 3000), StandIn("magic", "SUSY", 300, 3000))


@dataclass(frozen=True, eq=False)
class People:
    """What is known of the losses of some people; ``data``: the set, ``about``: what it is, in words."""

    data: str
    about: str
    found: EstimatedLoss

    @property
    def prior(self) -> float:
        """P(Y = 1), estimated."""
        return self.found.prior.value

    def described(self) -> dict[str, Any]:
        """Return the columns that every row of a table begins with."""
        return {
            "data": self.data, "about": self.about, "n": self.found.n, "k": self.found.k,
            "p_plus": round(self.prior, 5),
        }  # fmt: skip


def people(options: Options, originals: Path | None) -> list[People]:
    """Return the losses of people in the originals if there is a folder of them, else in the stand-ins.

    Shares of labels among neighbours are kept in ``options.out`` for all experiments that need them; ``--fresh`` of
    any of these drops them.  Raises InputError for a folder without any of the originals.
    """
    kept = options.kept(_TABLE, "data sets")
    if originals is not None:
        return _originals(kept, originals)
    sets = QUICK if options.quick else STAND_INS
    cases: list[Case] = [
        (
            {"data": each.name, "content": content(each.name), "k": each.k, "rows": each.rows},
            partial(_of_stand_in, each.name, each.k, each.rows),
        )
        for each in sets
    ]
    return [_stand_in(each, rows) for each, rows in zip(sets, kept.each(cases), strict=True)]


def _stand_in(of: StandIn, rows: Sequence[Mapping[str, Any]]) -> People:
    about = f"a stand-in for {of.instead_of}" if of.instead_of else "data of another kind"
    return People(of.name, about, _losses(rows, of.k))


def _of_stand_in(name: str, k: int, count: int | None) -> list[dict[str, Any]]:
    data = datasets.load(name)
    training = np.arange(len(data.y)) if data.test is None else np.flatnonzero(~data.test)
    if count is not None:
        training = np.sort(
            training[random_words.order(random_words.words(0, _ROWS, 0, len(training)))][:count]
        )
    return _shares(name, data.x[training], data.y[training], k)


def _originals(kept: Kept, folder: Path) -> list[People]:
    if not folder.is_dir():
        raise InputError(
            f"--originals {str(folder)!r}: is no folder; give one that holds {', '.join(PRIORS)}"
        )
    files = {name: _file(folder, name) for name in PRIORS}
    if not any(files.values()):
        raise InputError(
            f"--originals {str(folder)!r}: none of its files begins with {', '.join(PRIORS)}: put the papers' data "
            "there, in svmlight format, plain or packed by gzip, bzip2 or xz"
        )
    there = {name: file.absolute() for name, file in files.items() if file is not None}
    cases: list[Case] = [
        (
            {"data": name, "content": _content(file), "k": ORIGINAL_K, "rows": ORIGINAL_ROWS},
            partial(_of_original, name, file),
        )
        for name, file in there.items()
    ]
    return [
        People(
            name,
            f"the original, {rows[0]['rows']:,} of {rows[0]['total']:,} rows",
            _losses(rows, rows[0]["k"]),
        )
        for name, rows in zip(there, kept.each(cases), strict=True)
    ]


def _file(folder: Path, name: str) -> Path | None:
    return next(
        (each for each in sorted(folder.iterdir()) if each.name.lower().startswith(name.lower())), None
    )


def _content(file: Path) -> str:
    """Return the SHA-256 of a file; raises InputError for what is none, such as a FIFO, which is not waited for."""
    if not file.is_file():
        raise InputError(
            f"--originals: {str(file)!r} is no regular file: put the data set there, or remove it"
        )
    try:
        return integrity.sha256(file)
    except OSError as error:
        raise InputError(
            f"--originals: {str(file)!r} cannot be read ({error.strerror}): check its permissions"
        ) from error


def _of_original(name: str, file: Path) -> list[dict[str, Any]]:
    def tell(rows: int) -> None:
        print(f"{file}: {rows:,} rows read", file=sys.stderr, flush=True)

    found = svmlight.gather(
        file, sample=ORIGINAL_ROWS, hashed=None if name == "SUSY" else HASHED, progress=tell
    )
    x = found.x if isinstance(found.x, np.ndarray) else found.x.toarray()
    if len(x) < 2:
        raise InputError(f"{file} has a single row: give at least two, as people have neighbours")
    if not np.isfinite(x).all():
        raise InputError(f"{file} has values that are no finite numbers (nan, inf): correct these lines")
    k = min(ORIGINAL_K, len(x) // 2)
    rows = _shares(name, x, found.y > 0, k)
    return [row | {"k": k, "rows": len(x), "total": found.total} for row in rows]


def _shares(name: str, x: Any, y: Any, k: int) -> list[dict[str, Any]]:
    """Return how many people have which share of label 1 among their neighbours."""
    print(f"{name}: {k:,} nearest neighbours of {len(x):,} people", file=sys.stderr, flush=True)
    labels = np.asarray(y, np.int64)
    shares, counts = np.unique(label_shares(scaled(x), labels, k, labels=2)[:, 1], return_counts=True)
    ones = int(labels.sum())
    return [
        {"share": s, "people": c, "ones": ones} for s, c in zip(shares.tolist(), counts.tolist(), strict=True)
    ]


def _losses(rows: Sequence[Mapping[str, Any]], k: int) -> EstimatedLoss:
    shares = np.repeat([row["share"] for row in rows], [row["people"] for row in rows])
    return estimated_loss.of_shares(shares, rows[0]["ones"], k, confidence=CONFIDENCE)


KNOWN = Smoothness(1.0, 0.9)
"""Of ``known``: eta rises by 0.9 over [0, 1], and a ball holds at least the share of people that its radius is long."""


def known(n: int = 8000, k: int = 400) -> tuple[People, Floats]:
    """Return people whose P(y = 1 | x) is 0.05 + 0.9 x, x uniform on [0, 1], and that of a fine grid of x."""
    drawn = [
        random_words.uniform(random_words.words(1, random_words.stream("experiments", what, 0), 0, n))
        for what in ("features", "labels")
    ]
    x, y = drawn[0][:, None], drawn[1] < 0.05 + 0.9 * drawn[0]
    found = estimated_loss.of_rows(
        x, y.astype(np.int64), k, smoothness=KNOWN, confidence=CONFIDENCE, progress=False
    )
    return People("known", "made up, P(y | x) is known", found), 0.05 + 0.9 * (
        np.arange(200_000) + 0.5
    ) / 200_000


def truly_above(eta: Floats, tau: float, flip: float) -> float:
    """Return J(tau) of people with these eta, whose mean is the prior."""
    return float((instance_loss.nu_bar(eta, float(eta.mean()), flip) > tau).mean())


def main(experiment: Experiment, run: Callable[[Options, Path | None], Outcome]) -> int:
    """Do what ``_common.main`` does, with ``--originals FOLDER`` beside its options."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--originals", type=folder_named, help="folder with kag14, kdd12, kdd10, SUSY in svmlight format"
    )
    parser.add_argument(
        "--fresh", action="store_true", help=argparse.SUPPRESS
    )  # of _common.main, which says it
    given, rest = parser.parse_known_args()
    if {"-h", "--help"} & {*rest}:
        print(parser.format_help().removeprefix("usage: ").replace("options:", "beside what follows:"))

    def asked_run(options: Options) -> Outcome:
        if given.fresh:  # also where another experiment's --fresh would drop them
            Kept(options.out / f"{_TABLE}.csv", fresh=True)
        return run(options, given.originals)

    asked = replace(experiment, run=asked_run)
    if given.originals is not None:  # stand-ins, and earlier values, which are theirs, are of no use
        asked = replace(asked, needs=(), values={}, parts={})
    return _common.main(asked, [*rest, *(["--fresh"] if given.fresh else [])])
