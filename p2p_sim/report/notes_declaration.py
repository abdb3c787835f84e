"""What a report takes from the notes of a run: a declaration of its fields and types.

A run directory may come from anybody, so notes are checked before a report is made of them.  What is not declared is
left alone; what a run made in Python lacks is optional.  Import this when a run is read, for pydantic is slow to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from pydantic import PlainValidator
from typing_extensions import TypedDict  # pydantic takes that of typing from 3.12 on only

from p2p_sim.rundir import json_declarations


def _number(value: Any) -> Any:
    if value in ("inf", "-inf") or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise ValueError("must be a number, or 'inf' or '-inf'")


Number = Annotated[Any, PlainValidator(_number)]
"""A number; JSON has no infinity, which is a text."""


class _Accuracy(TypedDict):
    accuracy_private: float
    accuracy_true: float
    baseline: float
    trained_on: int
    test_rows: int
    model: str
    note: str
    metrics: NotRequired[dict[str, dict[str, float | list[float | None] | None]] | None]


class _Errors(TypedDict):
    rmse: float
    mae: float
    r2: NotRequired[float | None]


class _ErrorsOfModels(TypedDict):
    released: _Errors
    true: _Errors
    constant: _Errors


class _Regression(TypedDict):
    model: str
    trained_on: int
    of: int
    test_rows: int
    note: str
    errors: _ErrorsOfModels


class _Epsilon(TypedDict):
    epsilon: Number
    lower: Number
    upper: Number


class _Exact(_Epsilon):
    basis: str
    source: str
    assumes: list[str]


class _Theorem(TypedDict):
    name: str
    basis: str
    holds: bool
    epsilon: Number
    source: str
    why: str


class _View(TypedDict):
    view: str
    name: str
    users: str
    refused: str
    exact: NotRequired[_Exact | None]
    by_cluster: NotRequired[dict[str, _Epsilon | None] | None]
    theorems: list[_Theorem]


class _Privacy(TypedDict):
    delta: Number
    channels: str
    hidden: str
    local_epsilon: NotRequired[Number | None]
    views: list[_View]


class _Role(TypedDict):
    role: str
    parties: int
    messages_up: int
    messages_down: int
    bytes_up: int
    bytes_down: int
    operations: dict[str, int]
    compute_seconds: Number


class _Costs(TypedDict):
    channel: str
    server_channel: str
    simulated_seconds: Number
    roles: list[_Role]


class _Clusters(TypedDict):
    count: int
    origin: str
    minimum: int
    maximum: int


class _Graph(TypedDict):
    source: str
    over: str
    minimum: Number
    median: Number
    maximum: Number
    complete: bool


class _Released(TypedDict):
    labels: int


class _Canaries(TypedDict):
    users: int
    flipped: int


class _Data(TypedDict):
    name: str
    source: str


class Notes(TypedDict):
    """The notes that a report takes; a run made in Python has none of them."""

    privacy: NotRequired[_Privacy | None]
    costs: NotRequired[_Costs | None]
    accuracy: NotRequired[_Accuracy | None]
    released: NotRequired[_Released | None]
    regression: NotRequired[_Regression | None]
    canaries: NotRequired[_Canaries | None]
    clusters: NotRequired[_Clusters | None]
    graph: NotRequired[_Graph | None]
    data: NotRequired[_Data | None]
    defaults: NotRequired[list[str] | None]
    command: NotRequired[list[str] | None]


class _Run(TypedDict):
    notes: Notes


def mismatch(notes: Mapping[str, Any]) -> str | None:
    """Return the first note, such as ``notes.privacy.delta``, that is not as declared, and what is allowed; or None."""
    return json_declarations.mismatch(_Run, {"notes": notes})
