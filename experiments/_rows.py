"""Rows of an experiment, kept as they are found: one that was ended goes on where it was."""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from experiments import _made_by
from experiments._processors import HERE, Compute, Processors, Row, in_words
from p2p_sim import Population, privacy
from p2p_sim.core.errors import InputError
from p2p_sim.core.protocol import Protocol
from p2p_sim.learning.data import datasets
from p2p_sim.report import output_files

Case = tuple[Mapping[str, Any], Compute]
"""Settings, as JSON values, and what computes their rows; equal settings and equal code give equal rows.

For workers it is a function at the top level of a module, or a ``partial`` of one, with arguments that pickle takes.
"""


class Found(TypedDict):
    """Rows of a case, and the fingerprint of the code that found them."""

    code: str
    rows: list[Row]


SUFFIX = ".rows.json"


class CasesFailedError(RuntimeError):
    """Some cases of ``count`` could not be computed; the others were, and are kept where ``kept``."""

    def __init__(self, failed: Sequence[str], count: int, what: str, *, kept: bool):
        rest = "the others are kept: the same command computes these alone" if kept else "nothing is kept"
        super().__init__(f"{len(failed)} of {count} {what} failed ({rest}).  The first: {failed[0]}")


class Kept:
    """The rows that a file beside a table already has, and those that are found now.

    The file is written whole after every case, so that a program that is killed loses no more than the cases that were
    being computed.  ``place``: the table; None, or no regular file: nothing is kept.  ``what``: the plural of a case.
    ``processors``: what computes cases; ``fresh``: drop what is there.  Raises InputError if the file cannot be read or
    written.
    """

    def __init__(
        self,
        place: Path | None = None,
        what: str = "rows",
        processors: Processors = HERE,
        *,
        fresh: bool = False,
    ):
        self._what, self._processors, self._start = what, processors, time.monotonic()
        self._found, self.file = dict[str, Found](), _beside(place)
        if self.file is None:
            return
        output_files.check(str(self.file))
        if fresh:
            self.file.unlink(missing_ok=True)
        elif self.file.exists():
            self._read(self.file)

    def take(self, cases: Sequence[Case]) -> list[Row]:
        """Return the rows of all cases in order, computing and keeping those that are not there; see ``each``."""
        return [row for rows in self.each(cases) for row in rows]

    def each(self, cases: Sequence[Case]) -> list[list[Row]]:
        """Return the rows of each case, in order; as they are read back, whether or not they were there.

        A case that fails is named, and the others are computed and kept; then raises CasesFailedError.
        """
        there = sum(self._has(_key(settings), compute) for settings, compute in cases)
        other = sum(_key(settings) in self._found for settings, _ in cases) - there
        if there:
            _tell(
                f"{there} of {len(cases)} {self._what} were there already, in {self.file}; --fresh computes them again"
            )
        if other:
            _tell(
                f"{self.file}: {other} of its {self._what} were found by other code or other versions of packages, and "
                "are computed again"
            )
        self._compute(cases, self._processors)
        return [self._found[_key(settings)]["rows"] for settings, _ in cases]

    def get(self, settings: Mapping[str, Any], compute: Compute) -> list[Row]:
        """Return the rows of one case, computed in this process if they are not there."""
        self._compute([(settings, compute)], HERE)
        return self._found[_key(settings)]["rows"]

    def _compute(self, cases: Sequence[Case], processors: Processors) -> None:
        """Compute and keep the cases that are not there; raises CasesFailedError."""
        left = list({_key(each[0]): each for each in cases if not self._has(_key(each[0]), each[1])}.values())
        failed = []
        for number, (index, answer) in enumerate(processors.computed([compute for _, compute in left]), 1):
            settings, compute = left[index]
            if "rows" in answer:
                self._keep(_key(settings), Found(code=_made_by.of(compute), rows=answer["rows"]))
            else:
                failed.append(f"{in_words(settings)}: {answer['error']}")
                _tell(f"failed: {failed[-1]}")
            if len(left) > 1:
                said = f", {len(failed)} failed" if failed else ""
                _tell(f"[{time.monotonic() - self._start:5.0f} s] {number} of {len(left)} {self._what}{said}")
        if failed:
            raise CasesFailedError(failed, len(left), self._what, kept=self.file is not None)

    def _keep(self, key: str, found: Found) -> None:
        self._found[key] = found
        if self.file is not None:
            output_files.write(self.file, json.dumps(self._found, indent=1))

    def _has(self, key: str, compute: Compute) -> bool:
        """Whether the rows of a case are there, and of the code that is here."""
        return key in self._found and self._found[key]["code"] == _made_by.of(compute)

    def _read(self, file: Path) -> None:
        try:
            content = json.loads(file.read_text())
            self._found = {
                key: Found(code=each["code"], rows=list(each["rows"])) for key, each in content.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(
                f"{str(file)!r} are no rows of an experiment ({error}): remove it, or give --fresh"
            ) from error


@cache
def content(name: str, *, multiclass: bool = False) -> str:
    """Return a fingerprint of a data set as it is read here: rows are of these examples.  Raises InputError."""
    return _of_set(name, multiclass)[0]


def described(name: str, y: Any, *, multiclass: bool = False, how: str = "", classes: int = 2) -> Row:
    """Return what every row says of its data: name, fidelity, fingerprint, training rows and the shares of labels.

    ``y`` (n,): labels of the training rows, 0 to ``classes`` - 1.  ``how``: what was done to the examples.
    """
    fingerprint, fidelity = _of_set(name, multiclass)
    counts = np.bincount(np.asarray(y).astype(np.int64), minlength=classes)
    return {
        "data": name,
        "examples": f"{fidelity}, {how}" if how else fidelity,
        "content": fingerprint,
        "n": len(y),
        "class_shares": " ".join(f"{share:.4f}" for share in counts / len(y)),
    }


def synthetic(y: Any, how: str) -> Row:
    """Return what a row says of made-up users; ``how`` they are made; see ``described``."""
    labels = np.asarray(y).astype(np.int64)
    shares = np.bincount(labels, minlength=2) / len(labels)
    return {
        "data": "synthetic",
        "examples": f"made up, {how}",
        "content": hashlib.sha256(labels.tobytes()).hexdigest(),
        "n": len(labels),
        "class_shares": " ".join(f"{share:.4f}" for share in shares),
    }


ONE_LABEL = "one label replaced; features and clusters are public; tuning is not included"


def promised(protocol: Protocol, people: Population, delta: float, views: Sequence[str]) -> Row:
    """Return the epsilon of each view at ``delta``, of these users, in nats, and what it includes."""
    found = {view: privacy.profile(protocol, view, population=people) for view in views}
    return {
        **{
            f"epsilon_{view}": "refused" if each.law is None else f"{each.epsilon(delta):.5g}"
            for view, each in found.items()
        },
        "delta": f"{delta:.4g}",
        "includes": ONE_LABEL,
    }


def standard_error(found: Sequence[float]) -> str:
    """Return the standard error of the mean of several trials; empty for one."""
    return f"{statistics.stdev(found) / len(found) ** 0.5:.4f}" if len(found) > 1 else ""


@cache
def _of_set(name: str, multiclass: bool) -> tuple[str, str]:
    """Return fingerprint and fidelity of a data set."""
    data = datasets.load(name, multiclass=multiclass)
    return data.content(), data.fidelity()


def _beside(place: Path | None) -> Path | None:
    """Return the file of a table's rows; None, said, where there is no place for one."""
    if place is None:
        return None
    if output_files.is_stdout(place) or (place.exists() and not place.is_file()):
        _tell(f"{place} is no file in a folder: rows are not kept, and one that is ended starts again")
        return None
    return place.with_name(place.name + SUFFIX)


def _key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True)


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
