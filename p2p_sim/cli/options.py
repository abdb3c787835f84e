"""Options of the command line, in groups, and how their values are read."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol


ASKED = "What is asked"
REAL, SYNTHETIC = "Real data", "Synthetic users instead of data"
FILE = "How a file is read"
HOW, KEPT = "How it runs", "What it leaves"


def whole(value: str | int) -> int:
    """Read a whole number, also as 1e7; raises ValueError naming it."""
    if isinstance(value, int):  # typer hands defaults over too
        return value
    size = number(value)
    if not math.isfinite(size) or size != int(size):
        raise ValueError(f"{value!r} must be a whole number")
    if size >= 2**53 and ("e" in value.lower() or "." in value):
        raise ValueError(f"{value!r} is not exact as a decimal: write the whole number out")
    return int(size) if "e" in value.lower() or "." in value else int(value)


def number(value: str | float) -> float:
    """Read a number; raises ValueError naming it."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{value!r} must be a number") from None


def text(panel: str, help: str, metavar: str | None = None) -> Any:
    """Make an option that holds text."""
    return typer.Option(help=help, metavar=metavar, rich_help_panel=panel, show_default=False)


def texts(panel: str, help: str) -> Any:
    """Make an option that holds text and may be repeated."""
    return typer.Option(help=help, metavar="TEXT", rich_help_panel=panel, show_default=False)


def count(panel: str, help: str) -> Any:
    """Make an option that holds a whole number."""
    return typer.Option(help=help, metavar="N", parser=whole, rich_help_panel=panel, show_default=False)


def ratio(panel: str, help: str) -> Any:
    """Make an option that holds a number."""
    return typer.Option(help=help, metavar="P", parser=number, rich_help_panel=panel, show_default=False)


def flag(panel: str, help: str, name: str) -> Any:
    """Make an option that is there or not."""
    return typer.Option(name, help=help, rich_help_panel=panel, show_default=False)


Json = Annotated[bool, flag(KEPT, "Short for --format json.", "--json")]
Format = Annotated[str, text(KEPT, "What stdout holds: text (default), or one JSON document.", "text|json")]


Words = Annotated[
    list[str] | None, typer.Argument(metavar="PROTOCOL", help="Its parameters are options: see below.")
]
Data = Annotated[str | None, text(REAL, "A set that p2p-sim data lists, or a file of your own.")]
Label = Annotated[str | None, text(REAL, "The column of labels.")]
Positive = Annotated[str | None, text(REAL, "The classes that count as 1.", "A,B")]
ClusterColumn = Annotated[str | None, text(REAL, "A column of clusters: numbers, or text.")]
Clusters = Annotated[
    int | None, count(REAL, "Instead: clusters by k-means; default one for 150 users, at most 200.")
]
Test = Annotated[
    float | None,
    ratio(REAL, "Share of rows that tests, and is in no cluster; default the set's own part, else 0.2."),
]
Users = Annotated[int | None, count(SYNTHETIC, "How many.")]
Channels = Annotated[str, text(ASKED, "What the wire reads; default plain.", "plain|encrypted")]
Fault = Annotated[
    list[str] | None,
    typer.Option(
        help="What goes wrong: drop=P, loss=P, late=P, duplicate=P, tamper=P, misdirect=P, replay=P, stop=SERVER:STEP, "
        "lie=flip|random|constant1:P.  May be repeated.",
        metavar="FAULT", rich_help_panel=HOW, show_default=False,
    ),
]  # fmt: skip
Graph = Annotated[
    str | None,
    text(
        HOW,
        "Who are neighbours: complete, regular:DEGREE, small-world:DEGREE,P, scale-free:LINKS, grid, ring:DEGREE, or a "
        ".csv or .parquet file of edges.",
        "GRAPH",
    ),
]
Crypto = Annotated[
    str, text(HOW, "Whether what is sealed is really sealed; default modelled.", "modelled|real")
]
Delta = Annotated[float, ratio(ASKED, "In [0, 1); default 1e-6.")]


def given(command: Any, *names: str) -> dict[str, Any]:
    """Return the options of a command that were given, by name."""
    return {name: getattr(command, name) for name in names if getattr(command, name) is not None}


def composition_of(value: str, *names: str) -> str | int:
    """Read how many other honest users have label 1, or one of the names; raises InputError."""
    if value in names:
        return value
    try:
        return whole(value)
    except ValueError:
        raise InputError(
            f"--composition {value!r}: must be {', '.join(names)}, or how many other honest users have label 1"
        ) from None


def faults_of(texts: list[str] | None, protocol: Protocol) -> Faults | None:
    """Read the faults of a command; raises InputError for one that is not known, or not of this protocol."""
    faults = Faults.of(texts)
    if faults is not None:
        faults.check(protocol)
    return faults


def check_data(command: Any, more: tuple[str, ...] = ()) -> None:
    """Check the options that go with ``--data``, and ``more``, of a command with table options; raises InputError."""
    names = ("label", "positive", "cluster_column", "clusters", "test", *more)
    for name in (*given(command, *names), *command.given_of_tables()) if command.data is None else ():
        raise InputError(f"{option(name)} goes with --data, which is not there: leave it out")
    command.reading()
    if command.cluster_column is not None and command.clusters is not None:
        raise InputError("--cluster-column and --clusters are both there: clusters come from one of them")


def option(field: str) -> str:
    """Return how a field is called on the command line."""
    return "--" + field.replace("_", "-")


def comma_list(value: str) -> list[str]:
    """Read ``a,b``; a value that holds a comma stands in double quotes."""
    try:
        return [part.strip() for part in next(csv.reader([value], skipinitialspace=True), []) if part.strip()]
    except csv.Error as error:
        raise InputError(f"{value!r} is no comma-separated list ({error})") from error


def wants_json(json: bool, format: str) -> bool:
    """Whether stdout is to hold JSON; raises InputError for another format."""
    if format not in ("text", "json"):
        raise InputError(f"--format {format!r}: allowed are text, json")
    return json or format == "json"
