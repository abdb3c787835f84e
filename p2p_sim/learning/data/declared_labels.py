"""Labels of a column that is read in parts: its values become labels by what was said of them, not by what occurs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import MAX_LABELS
from p2p_sim.learning.data import files, label_columns
from p2p_sim.learning.data.reading_options import PLAIN
from p2p_sim.learning.data.tables import Category

Array = npt.NDArray[Any]

_KEPT = 1000
"""Values that are remembered, to name what occurs."""


@dataclass(frozen=True)
class Seen:
    """The values that some rows hold, all positive ones and the first of the others; ``text``: they are no numbers."""

    values: frozenset[str]
    text: bool


@dataclass(frozen=True)
class DeclaredLabels:
    """What values of the column ``label`` mean, as ``datasets.load`` takes ``positive`` and ``classes``.

    ``positive``: the values that count as 1; ``classes``: every value, in the order of their numbers, the second of two
    is 1.  At least one is given.  Raises InputError for lists that make no sense.
    """

    label: str
    positive: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.classes is not None and len(label_columns.declared_as(self.classes, True)) > MAX_LABELS:
            raise InputError(
                f"classes: {len(self.classes)} are declared, and {MAX_LABELS} are allowed: put several into "
                "one first, or name those that count as 1 (--positive)"
            )
        if self.positive is not None and not self.positive:
            raise InputError("positive names none of the classes: name those that count as 1")
        label_columns.check_once(self.positive or (), True)

    @classmethod
    def of(
        cls, label: str, positive: Sequence[str] | None, classes: Sequence[str] | None
    ) -> DeclaredLabels | None:
        """Return what was said of a column; None if nothing was."""
        if positive is None and classes is None:
            return None
        return cls(label, *(None if each is None else tuple(each) for each in (positive, classes)))

    def check_type(self, kind: Any, where: str) -> None:
        """Raise InputError unless a column of an Arrow type can be read."""
        if not files.usable(kind):
            raise InputError(
                f"label {self.label!r} of {where} has the type {kind}: needed are text, numbers or bool; write it so "
                "first"
            )

    def read(self, column: Any, where: str) -> tuple[Array, Seen]:
        """Return the labels (n,), bool or of several classes uint8, of an Arrow column, and what it holds.

        Raises InputError for values that are missing, or not declared.
        """
        values, gap = files.arrow_column(column, self.label, where, PLAIN)
        if gap is not None:
            which = "nulls" if gap.first == "null" else gap.first
            raise InputError(
                f"column {self.label!r} of {where} has missing values ({which}): fill them in, or leave these rows out"
            )
        text = isinstance(values, Category)
        if not isinstance(values, Category):
            label_columns.check_exact(values, "label", self.label, where)
        codes, named = label_columns.present(values)
        seen = self._seen(named, text)
        if self.classes is not None:
            classes = label_columns.declared_as(self.classes, text)
            codes, named = label_columns.renumbered(codes, named, classes, self.label, where), classes
        if self.positive is None:
            return (codes == 1 if len(named) == 2 else codes.astype(np.uint8)), seen
        ones = self._spelled(text) if self.classes is None else self._ones(named, text, where)
        return np.isin(np.array(named, dtype=str), ones)[codes], seen

    def together(self, seen: Sequence[Seen]) -> Seen:
        """Return what several parts of a column hold together."""
        values = sorted(frozenset[str]().union(*(each.values for each in seen)))
        return self._seen(values, all(each.text for each in seen))

    def check(self, seen: Seen, where: str) -> None:
        """Raise InputError unless the rows of a whole table hold at least two classes, and each positive value."""
        values = sorted(seen.values)
        label_columns.check_several(values, self.label, where)
        if self.positive is not None and self.classes is None:
            self._ones(values, seen.text, where)
            self._warn_of_spellings(values, seen.text)

    @property
    def described(self) -> dict[str, Any]:
        """Return label, classes and positive as a run's notes say them of a data set."""
        found: dict[str, Any] = {"label": self.label}
        if self.classes is not None:
            found["classes_from"] = "declared"
        classes = [each.strip() for each in self.classes or ()]
        if self.positive is None and len(classes) > 2:
            return found | {"classes": classes, "positive": None}
        ones = [classes[1]] if self.positive is None else [each.strip() for each in self.positive]
        others = [each for each in classes if each not in ones]
        meant = label_columns.meanings(self.label, ones, others or None)
        return found | {"classes": list(meant), "positive": meant[1]}

    @property
    def count(self) -> int:
        """How many classes there can be."""
        return 2 if self.positive is not None or self.classes is None else len(self.classes)

    def _seen(self, values: Sequence[str], text: bool) -> Seen:
        ones = frozenset(values) & frozenset(self._spelled(text))
        others = itertools.islice((each for each in values if each not in ones), _KEPT)
        return Seen(ones | frozenset(others), text)

    def _warn_of_spellings(self, values: Sequence[str], text: bool) -> None:
        """Warn where a value does not count as 1 that differs from one that does in case or blanks alone."""
        ones = {*self._spelled(text)}
        for same in label_columns.alike(values) if text else ():
            if 0 < len(ones & {*same}) < len(same):
                what = f"label {self.label!r}: {' and '.join(map(repr, same))} differ in case or blanks alone"
                warnings.warn(
                    f"{what}; if they are one class, name all by --positive", UserWarning, stacklevel=2
                )

    def _spelled(self, text: bool) -> list[str]:
        return [label_columns.spelled(each, text) for each in self.positive or ()]

    def _ones(self, values: Sequence[str], text: bool, where: str) -> list[str]:
        return label_columns.positive_among(self.positive or (), values, text, self.label, where)
