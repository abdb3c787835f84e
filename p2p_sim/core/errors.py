"""Errors: bad input of the caller, a run that was lost, and mistakes of a protocol program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class InputError(ValueError):
    """Something passed in cannot be used; the text names it, its value, what is allowed and what to do."""


class StorageError(InputError):
    """Something could not be written, as on a full disk, or is gone; the same work can be done once that is mended."""


_ALIKE = 0.65
"""How alike two names are, of 1, before one is suggested for the other; alpha and graph are 0.6."""


def near(value: str, known: Iterable[str]) -> str:
    """Return a question for whoever mistyped one of some names; empty if none is near, or it is one of them.

    Of very many names the first 1,000 are looked at.
    """
    import difflib
    from itertools import islice

    names = {name.lstrip("-"): name for name in islice(known, 1000)}  # options are not alike for their dashes
    found = difflib.get_close_matches(value.lstrip("-"), names, n=1, cutoff=_ALIKE)
    return f"; did you mean {names[found[0]]!r}?" if found and names[found[0]] != value else ""


def near_path(path: str, beside: Iterable[str]) -> str:
    """Return the same question for the path of something missing; ``beside``: what is in its folder, as paths.

    Names are compared without folder and ending, which are alike for files of one folder and one kind.
    """
    import difflib

    stems: dict[str, list[str]] = {}
    for each in beside:
        stems.setdefault(Path(each).stem, []).append(each)
    for stem in difflib.get_close_matches(Path(path).stem, list(stems)[:1000], n=1, cutoff=_ALIKE):
        found = difflib.get_close_matches(path, stems[stem], n=1, cutoff=0)[0]
        return f"; did you mean {found!r}?" if found != path else ""
    return ""


class UnknownOptionError(InputError):
    """An option that nothing has; ``known``: those that a protocol has, to which a verb's own come."""

    def __init__(self, text: str, option: str, known: Iterable[str]):
        super().__init__(text)
        self.option, self.known = option, tuple(known)


class RunLostError(RuntimeError):
    """A process of a run was lost; the text says what to do.  Running again gives the same bits."""


class ProtocolError(RuntimeError):
    """A protocol program broke a rule of the engine; the text names role, step, message and fix."""


class MissingColumnError(ProtocolError):
    """A user's program reads a column that the population does not have.

    ``part``: "x", "neighbours", "public" or "secret"; ``name``: of a further column, otherwise as ``part``.
    """

    def __init__(self, text: str, part: str, name: str):
        super().__init__(text)
        self.part, self.name = part, name

    def __reduce__(self) -> tuple[type[MissingColumnError], tuple[str, str, str]]:
        """Keep all parts on the way from another process."""
        return type(self), (str(self), self.part, self.name)

    @property
    def what(self) -> str:
        """The column in words."""
        return f"{self.part} column {self.name!r}" if self.part in ("public", "secret") else f"me.{self.part}"


class TooFewMembersError(ProtocolError):
    """A program draws from groups too small for it; ``needed``: users in the smallest that would do."""

    def __init__(self, text: str, needed: int):
        super().__init__(text)
        self.needed = needed

    def __reduce__(self) -> tuple[type[TooFewMembersError], tuple[str, int]]:
        """Keep all parts on the way from another process."""
        return type(self), (str(self), self.needed)
