"""Options of the command line, in panels of the help text, and how their values are read."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.number_texts import read_number, read_whole
from p2p_sim.report.delta import DELTA

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol


REQUEST = "What is asked"
REAL_DATA, SYNTHETIC = "Real data", "Synthetic users instead of data"
FILE = "How a file is read"
EXECUTION, OUTPUT, SELECTION = "How it runs", "What it leaves", "What is shown"


def whole(value: str | int) -> int:
    """Read a whole number, also as 1e7; raises ValueError naming it."""
    if isinstance(value, int) and not isinstance(value, bool):  # typer hands defaults over too
        return value
    try:
        return read_whole(str(value))
    except ValueError as error:
        raise ValueError(f"{str(value)!r} {error}") from None


def number(value: str | float) -> float:
    """Read a number; raises ValueError naming it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):  # typer hands defaults over too
        return float(value)
    try:
        return read_number(str(value))
    except ValueError as error:
        raise ValueError(f"{str(value)!r} {error}") from None


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
    """Make an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=panel, show_default=False)


Json = Annotated[bool, flag(OUTPUT, "Short for --format json.", "--json")]
Format = Annotated[str, text(OUTPUT, "What stdout holds: text (default), or one JSON document.", "text|json")]


RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, such as runs/latest.")]
Round = Annotated[int | None, count(SELECTION, "Only messages of one round.")]
Shown = Annotated[str, text(SELECTION, "What the wire reads; default plain.", "plain|encrypted")]


def viewer(help: str) -> Any:
    """Make the option ``--as``: who looks."""
    return typer.Option("--as", help=help, metavar="VIEW", rich_help_panel=SELECTION, show_default=False)


Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="PROTOCOL", help="The protocol; its parameters are options, listed below."),
]
Data = Annotated[str | None, text(REAL_DATA, "A data set that p2p-sim data lists, or a file of your own.")]
Label = Annotated[str | None, text(REAL_DATA, "The column of labels.")]
Positive = Annotated[str | None, text(REAL_DATA, "The classes that count as 1.", "A,B")]
ClusterColumn = Annotated[str | None, text(REAL_DATA, "A column of clusters: numbers, or text.")]
Clusters = Annotated[
    int | None,
    count(
        REAL_DATA, "Number of k-means clusters, instead of a column; default one for 150 users, at most 200."
    ),
]
Test = Annotated[
    float | None,
    ratio(
        REAL_DATA,
        "Share of the rows that are test rows, not users; default the set's own test part, else 0.2.",
    ),
]
Address = Annotated[
    str | None,
    text(
        EXECUTION,
        "An existing Ray cluster; default RAY_ADDRESS, as in a Ray job; without both, one is started here.",
        "HOST:PORT",
    ),
]
Users = Annotated[int | None, count(SYNTHETIC, "Number of users.")]
Channels = Annotated[
    str,
    text(REQUEST, "Whether the wire sees plain or encrypted channels; default plain.", "plain|encrypted"),
]
Fault = Annotated[
    list[str] | None,
    typer.Option(
        help="Inject a fault: drop=P, loss=P, late=P, duplicate=P, tamper=P, misdirect=P, replay=P, stop=SERVER:STEP, "
        "lie=flip|random|constant1:P.  May be repeated.",
        metavar="FAULT", rich_help_panel=EXECUTION, show_default=False,
    ),
]  # fmt: skip
Graph = Annotated[
    str | None,
    text(
        EXECUTION,
        "The graph of neighbours: complete, regular:DEGREE, small-world:DEGREE,P, scale-free:LINKS, grid, ring:DEGREE, "
        "or a .csv or .parquet file of edges.",
        "GRAPH",
    ),
]
Crypto = Annotated[
    str,
    text(
        EXECUTION,
        "Whether cryptography is only modelled, or carried out; default modelled.",
        "modelled|real",
    ),
]
Times = Annotated[
    int | None,
    count(
        REQUEST,
        "Figures of so many runs together, on the same labels and clusters with fresh coins; default 1.",
    ),
]
Delta = Annotated[float, ratio(REQUEST, f"δ, in [0, 1); default {DELTA:g}.")]


def set_options(command: Any, *names: str) -> dict[str, Any]:
    """Return those of a command's options that have a value, by name."""
    return {name: getattr(command, name) for name in names if getattr(command, name) is not None}


def times_of(value: int | None) -> int:
    """Return how many runs ``--times`` means."""
    return 1 if value is None else value


def composition_of(value: str, *names: str) -> str | int:
    """Read a composition: the number of other honest users with label 1, or one of ``names``; raises InputError."""
    if value in names:
        return value
    try:
        return whole(value)
    except ValueError:
        raise InputError(
            f"--composition {value!r}"
            f"{near(value, names)}; must be {', '.join(names)}, or how many other honest users have label 1"
        ) from None


def faults_of(texts: list[str] | None, protocol: Protocol) -> Faults | None:
    """Read the faults of a command; raises InputError for an unknown fault, or one that this protocol cannot have."""
    faults = Faults.of(texts)
    if faults is not None:
        faults.check(protocol)
    return faults


OF_A_POPULATION = ("label", "positive", "classes", "cluster_column", "test", "split_seed", "drop")
"""Options of ``--data`` that say the same of ``--population``."""


def check_data(command: Any, more: tuple[str, ...] = ()) -> None:
    """Check the options that go with ``--data``, and ``more``, of a command with table options; raises InputError."""
    names = ["label", "positive", "cluster_column", "clusters", "test", *more]
    tables = command.given_of_tables()
    if getattr(command, "population", None) is not None:
        names = [name for name in names if name not in OF_A_POPULATION]
        tables = [name for name in tables if name not in OF_A_POPULATION]
    for name in (*set_options(command, *names), *tables) if command.data is None else ():
        raise InputError(f"{option(name)} needs --data, which is missing: leave it out")
    command.reading()
    if command.cluster_column is not None and command.clusters is not None:
        raise InputError("--cluster-column and --clusters are both given: give one of them")


def check_least(name: str, value: int, least: int) -> None:
    """Check that an option is large enough; raises InputError."""
    if value < least:
        raise InputError(f"--{name} {value}: must be at least {least}")


def address_of(command: Any) -> str | None:
    """Return the address of the Ray cluster of a command: ``--address``, or else RAY_ADDRESS, which Ray's jobs have.

    None where Ray is not used, which is said on stderr if there is a RAY_ADDRESS; and where it is started here.
    """
    given: str | None = command.address
    there = os.environ.get("RAY_ADDRESS") or None
    if given is None and there is not None and command.backend == "local":
        ignored = "RAY_ADDRESS is set, but backend local runs here, in one process"
        print(f"{ignored}: for that cluster give --backend shards", file=sys.stderr, flush=True)
    return given if given is not None or command.backend == "local" else there


def check_format(value: str, formats: Collection[str]) -> None:
    """Check what an option ``--format`` says; raises InputError."""
    if value not in formats:
        raise InputError(f"--format {value!r}{near(value, formats)}; allowed are {', '.join(formats)}")


def option(field: str) -> str:
    """Return a field's name on the command line."""
    return "--" + field.replace("_", "-")


def comma_list(value: str) -> list[str]:
    """Read a list such as ``a,b``; a value with a comma must be in double quotes."""
    try:
        return [part.strip() for part in next(csv.reader([value], skipinitialspace=True), []) if part.strip()]
    except csv.Error as error:
        raise InputError(f"{value!r} is not a comma-separated list ({error})") from error


def numbers_of(name: str, value: str) -> list[float]:
    """Read a list of numbers such as ``0.5,0.3,0.2``; raises InputError that names the option."""
    try:
        return [number(part.strip()) for part in value.split(",")]
    except ValueError as error:
        raise InputError(
            f"{name} {value}: {error}; give numbers with commas between, such as 0.5,0.3,0.2"
        ) from None


def wants_json(json: bool, format: str) -> bool:
    """Whether stdout is to hold JSON; raises InputError for another format."""
    check_format(format, ("text", "json"))
    return json or format == "json"
