"""The options that every verb with ``--data`` shares: how a file of one's own is to be read.

Annotations are objects here, not text: typer reads those of a base class in the module of the class that inherits them.
"""

from dataclasses import dataclass, fields
from typing import Annotated

from p2p_sim.cli.options import FILE, REAL_DATA, comma_list, count, flag, text, texts
from p2p_sim.learning.data.reading_options import Reading


@dataclass(frozen=True)
class TableOptions:
    """Options that say how a file of one's own is to be read; a column that is named may stand for several, A,B."""

    classes: Annotated[
        str | None, text(REAL_DATA, "Every value that a label can have; default those that occur.", "A,B")
    ] = None
    drop: Annotated[list[str] | None, texts(FILE, "A column to leave out.  May be repeated.")] = None
    numeric: Annotated[
        list[str] | None, texts(FILE, "A column of numbers: other cells are missing.  May be repeated.")
    ] = None
    categorical: Annotated[
        list[str] | None, texts(FILE, "A column of text, numbers too.  May be repeated.")
    ] = None
    missing: Annotated[str, text(FILE, "Missing values; default refuse.", "refuse|drop|impute")] = "refuse"
    decimal: Annotated[
        str | None, text(FILE, "The mark of decimals; the other one groups thousands.", ".|,")
    ] = None
    separator: Annotated[str | None, text(FILE, "What stands between cells; default found out.", "CHAR")] = (
        None
    )
    encoding: Annotated[str | None, text(FILE, "Of text; default utf-8, or what it begins with.")] = None
    no_header: Annotated[
        bool, flag(FILE, "The first line is a row: columns are c1, c2, ...", "--no-header")
    ] = False

    sample: Annotated[int | None, count(FILE, "Rows of an svmlight file, at random; default all.")] = None
    hashed: Annotated[int | None, count(FILE, "Columns that svmlight features are hashed into.")] = None

    def reading(self) -> Reading:
        """Return how a file is to be read; raises InputError."""
        return Reading(
            self.separator, self.decimal, not self.no_header, self.encoding, columns(self.drop),
            columns(self.numeric), columns(self.categorical), self.missing, self.sample, self.hashed,
        )  # fmt: skip

    def given_of_tables(self) -> list[str]:
        """Return which of these options are given."""
        return [each.name for each in fields(TableOptions) if getattr(self, each.name) != each.default]

    def declared(self) -> list[str] | None:
        """Return the values that a label can have, where they are given."""
        return None if self.classes is None else comma_list(self.classes)


def columns(given: list[str] | None) -> tuple[str, ...]:
    """Return the columns that an option names, each time one or several, A,B."""
    return tuple(name for one in given or [] for name in comma_list(one))
