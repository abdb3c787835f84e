"""How a person's own table is to be read: what she says of its separators, numbers, columns and missing values."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, fields
from typing import Any

from p2p_sim.core.errors import InputError, near

MISSING = ("refuse", "drop", "impute")
"""What may be done with missing values."""

_ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}


@dataclass(frozen=True)
class Reading:
    """How to read a table; what is left out is found out from the file.

    ``separator``: one character between cells, or tab, comma, semicolon, space.  ``decimal``: "." or ",", the mark of
    decimals in text; the other of them then groups thousands.  ``header``: whether the first line names the columns;
    otherwise they are c1, c2, and so on.  ``encoding``: of text, as Python calls it.  ``drop``: columns to leave out.
    ``numeric``: columns of numbers, in which anything else counts as missing.  ``categorical``: columns of text, also
    if they look like numbers.  ``missing``: "refuse" missing values, "drop" their rows, or "impute" the median of
    numbers and a category of its own in text.  ``sample``: so many rows of an svmlight file at most, each as likely.
    ``hashed``: so many columns into which its features are hashed.  Raises InputError for other values.
    """

    separator: str | None = None
    decimal: str | None = None
    header: bool = True
    encoding: str | None = None
    drop: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    missing: str = "refuse"
    sample: int | None = None
    hashed: int | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None and separator not in _NAMED and not _is_one(separator):
            raise InputError(
                f"separator {separator!r}: give one character of ASCII, or one of {', '.join(_NAMED)}"
                f"{near(separator, _NAMED)}"
            )
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal {self.decimal!r}: the mark of decimals is . or ,")
        if self.decimal is not None and self.decimal == self.mark:
            raise InputError(f"{self.decimal!r} cannot both separate cells and be the mark of decimals")
        if self.missing not in MISSING:
            raise InputError(
                f"missing {self.missing!r}: allowed are {', '.join(MISSING)}{near(self.missing, MISSING)}"
            )
        for name, count in (("sample", self.sample), ("hashed", self.hashed)):
            if count is not None and count < 1:
                raise InputError(f"{name} {count}: needs at least 1")
        if both := sorted({*self.numeric} & {*self.categorical}):
            raise InputError(f"column {both[0]!r} is both numeric and categorical: choose one")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise InputError(
                    f"encoding {self.encoding!r} is not known; such are {', '.join(_ENCODINGS)}"
                    f"{near(self.encoding, _ENCODINGS)}"
                ) from None

    @property
    def mark(self) -> str | None:
        """The character between cells, where it is given."""
        return None if self.separator is None else _NAMED.get(self.separator, self.separator)

    def given(self, *names: str) -> list[str]:
        """Return the fields that differ from their defaults: those among ``names``, or among all if none is given."""
        every: list[Any] = [each for each in fields(self) if not names or each.name in names]
        return [each.name for each in every if getattr(self, each.name) != each.default]


def _is_one(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in '"\r\n\0'


PLAIN = Reading()
TEXT_ALONE = ("separator", "decimal", "header", "encoding")
"""What can be said of text files alone."""
SVMLIGHT_ALONE = ("sample", "hashed")
"""What can be said of svmlight files alone."""


def option(name: str) -> str:
    """Return how a field is called on the command line."""
    return "--no-header" if name == "header" else f"--{name}"
