"""What the JSON files of a run directory hold: one declaration each of their fields, types and ranges.

A run directory may come from anybody, so each file is checked against its declaration before any of it is used.  What
is not declared is left alone.  Import this when a file is read: pydantic takes a tenth of a second.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Discriminator, Field, Tag, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # pydantic takes that of typing from 3.12 on only

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import RESERVED
from p2p_sim.core.sealing import CRYPTO
from p2p_sim.core.seeds import SOURCES
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.rundir.address_columns import STORED
from p2p_sim.rundir.regular_files import RESTORE, place_of, short

MOST_USERS = (1 << 31) - 1
"""Users have ids of 31 bits."""


def _below(name: str) -> str:
    """Check the path of a file below the folder."""
    path = PurePosixPath(name)
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts or str(path) != name:
        raise ValueError("must be the path of a file below the folder, without '..'")
    return name


def _one_of(names: Collection[str]) -> Callable[[str], str]:
    def check(name: str) -> str:
        if name not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return name

    return check


def _level(text: str) -> str:
    TraceLevel.parse(text)
    return text


def _field_name(name: str) -> str:
    if not name or name.startswith("_") or name in RESERVED:  # anything else can be declared in Python
        raise ValueError("must be the name of a message field")
    return name


def _kind_name(name: str) -> str:
    if not name.isidentifier():
        raise ValueError("must be the name of a message kind")
    return name


Number = Annotated[int, Field(ge=0, lt=1 << 63)]
Id = Annotated[int, Field(ge=0, le=MOST_USERS)]
Users = Annotated[int, Field(ge=0, le=MOST_USERS)]
Seconds = Annotated[float, Field(ge=0)]
Below = Annotated[str, AfterValidator(_below)]
Level = Annotated[str, AfterValidator(_level)]
KindName = Annotated[str, AfterValidator(_kind_name)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Origin = Annotated[str, AfterValidator(_one_of(SOURCES))]
Crypto = Annotated[str, AfterValidator(_one_of(CRYPTO))]


class CountRow(TypedDict):
    """How many messages of a kind a round had."""

    kind: str
    round: Number
    messages: Number
    travelled: Number
    nbytes: Number


class _Compute(TypedDict):
    role: str
    round: Number
    seconds: Seconds


class _Work(TypedDict):
    role: str
    round: Number
    operation: str
    count: Number


class _Seen(TypedDict):
    fault: str
    kind: str
    round: Number
    messages: Number


class _Most(TypedDict):
    kind: str
    round: Number
    sent: Number
    received: Number


class RunFile(TypedDict):
    """``run.json``."""

    format: Number
    protocol: str
    parameters: dict[str, Any]
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] | None
    backend: Literal["local", "shards", "actors"]
    trace: Level
    digest: Digest | None
    timings: dict[str, float]
    notes: dict[str, Any]
    costs: list[CountRow]
    outputs: dict[str, list[str]]
    users: Users | None
    seed_source: Origin | None
    population_hash: str | None
    stored_hash: str | None
    compute: list[_Compute]
    work: list[_Work]
    faults_seen: list[_Seen]
    most: list[_Most] | None
    crypto: Crypto
    faults: list[str]
    versions: dict[str, str]
    sha256: dict[Below, Sha256]
    checksum: NotRequired[str]


class AskedFile(TypedDict):
    """``asked.json``; see ``under_way``."""

    format: Number
    protocol: str
    options: dict[str, Any]
    seed_source: Origin
    folder: str
    versions: dict[str, str]
    code: dict[str, Sha256]
    files: dict[str, Sha256]
    environment: dict[str, str]
    checksum: str


class _FixedPoint(TypedDict):
    """What multiples are multiples of; ``core.fixed_point.FixedPoint`` checks that these agree."""

    resolution: Annotated[float, Field(gt=0)]
    low: float
    high: float


class MessageField(TypedDict):
    """A field of a message kind; ``length``: of a vector."""

    dtype: Literal["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    length: Annotated[int, Field(ge=0, le=1 << 24)] | None
    fixed_point: NotRequired[_FixedPoint]


class Kind(TypedDict):
    """A message kind."""

    sender: str
    recipient: str
    text: str
    sealed_for: str | None
    layers: NotRequired[list[str]]
    nbytes: Number
    fields: dict[Annotated[str, AfterValidator(_field_name)], MessageField]


class _All(TypedDict):
    all: Id


_From = TypedDict("_From", {"from": Id})
_As = TypedDict("_As", {"as": Annotated[list[str], Field(min_length=2, max_length=2)]})


def _rule_of(value: Any) -> str | None:
    """Return which rule for an address column a value is; see ``address_columns.narrowest_rule``."""
    if type(value) is dict and len(value) == 1:
        return str(next(iter(value)))
    return STORED if value == STORED else None


Rule = Annotated[
    Annotated[Literal["stored"], Tag("stored")]
    | Annotated[_All, Tag("all")]
    | Annotated[_From, Tag("from")]
    | Annotated[_As, Tag("as")],
    Discriminator(
        _rule_of,
        custom_error_type="rule",
        custom_error_message="must be 'stored', {'all': N}, {'from': N} or {'as': [FILE, COLUMN]}",
    ),
]
_Address = Annotated[list[Id], Field(min_length=3, max_length=3)]


class FileEntry(TypedDict):
    """A file of a trace, in the manifest or as a line of a live run's notes."""

    file: Below
    kind: str
    round: Annotated[int, Field(ge=0, lt=1 << 31)]
    sender: Rule
    recipient: Rule
    seq: Rule
    rows: Number
    bytes: NotRequired[Number | None]
    sha256: NotRequired[Sha256 | None]
    ordered: NotRequired[Annotated[list[_Address], Field(min_length=2, max_length=2)] | None]


class ManifestFile(TypedDict):
    """``messages/manifest.json``."""

    format: Number
    complete: bool
    token: NotRequired[str]
    level: Level
    users: Users | None
    protocol: str
    kinds: dict[KindName, Kind]
    seed_source: NotRequired[Origin | None]
    counts: list[CountRow]
    files: list[FileEntry]
    checksum: NotRequired[str]


class Noted(FileEntry):
    """A line of the notes of files written so far, ``messages/.site-SITE.jsonl``."""

    checksum: str


Figure = Annotated[float | Literal["inf", "-inf"], Field(union_mode="left_to_right")]


class _Law(TypedDict):
    why: str


class _Claim(TypedDict):
    name: str
    basis: str
    holds: bool
    verdict: str
    epsilon: float | str
    delta: float | str


class _Look(TypedDict):
    labels: list[Number]
    statistic: str
    lower: float
    cap: float
    trials: Number
    confidence: float


class _Audit(TypedDict):
    view: str
    name: str
    channels: str
    when: str
    version: str
    kind: str
    at: float
    lower: float
    cap: float
    true_positive: float
    false_positive: float
    confidence: float
    trials: Number
    cluster_size: Number
    composition: Number
    world: str
    statistic: str
    verdict: str
    why: str
    failed: bool
    claims: list[_Claim]
    command: str
    law: _Law | None
    needed: Number | None
    assumes: list[Any] | None
    not_varied: list[str]
    looks: list[_Look]


class AuditFile(TypedDict):
    """``audit.json``."""

    format: Number
    audits: list[_Audit]
    checksum: NotRequired[str]


class _Interval(TypedDict):
    lower: Figure | None
    value: Figure | None
    upper: Figure | None


class _ImpliedEpsilon(TypedDict):
    value: float
    delta: float
    sure: float
    sure_delta: float
    coins: Number
    right: Number
    source: str


class _Attacker(TypedDict):
    name: str
    basis: Literal["exact", "measured", "lower", "refused"]
    source: str
    why: str
    utility: _Interval
    baseline: _Interval
    advantage: _Interval
    ratio: _Interval
    epsilon: NotRequired[_ImpliedEpsilon]


class _AdvantageBound(TypedDict):
    value: Figure | None
    quantity: str
    holds: bool
    why: str
    source: str
    basis: str


Counts = Annotated[list[Number], Field(min_length=100, max_length=100)]
"""Users in each percent of a probability."""


class _PerUser(TypedDict):
    users: Number
    prior: Counts
    posterior: Counts
    right: Counts


class _Attack(TypedDict):
    view: str
    name: str
    channels: str
    when: str
    version: str
    users: Number
    labels: Number
    eta: str
    eta_from: str
    utility: Literal["0/1", "weighted"]
    confidence: float
    attackers: list[_Attacker]
    bounds: list[_AdvantageBound]
    per_user: _PerUser | None
    sentences: list[str]
    above: list[str]
    exceeded_claims: list[str]
    failed: bool
    command: str


class AttackFile(TypedDict):
    """``attack.json``."""

    format: Number
    attacks: list[_Attack]
    checksum: NotRequired[str]


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def check(file: Path, kind: Any, content: Mapping[str, Any], advice: str = RESTORE) -> None:
    """Check the content of a file against its declaration ``kind``.

    Raises InputError naming the file, the field, its value, what is allowed and what to do.
    """
    if (wrong := mismatch(kind, content)) is not None:
        raise InputError(f"{str(file)!r} is damaged: {wrong}; {advice}")


def mismatch(kind: Any, content: Any) -> str | None:
    """Return the first field that a declaration does not allow, with its value and what is allowed; None if all fit."""
    try:
        _adapter(kind).validate_python(content, strict=True)
    except ValidationError as error:
        return _fault_in_words(content, error.errors(include_url=False, include_context=False)[0])
    return None


def _fault_in_words(content: Any, error: Any) -> str:
    path: list[Any] = []
    for part in error["loc"]:  # also holds what stands for a choice, and is in no file
        inside = isinstance(content, dict) and part in content
        if not inside and not (isinstance(content, list) and isinstance(part, int) and part < len(content)):
            continue
        content = content[part]
        path.append(part)
    if error["type"] == "missing":
        where = f" at {place_of(tuple(path))}" if path else ""
        return f"it lacks {error['loc'][-1]!r}{where}"
    if error["loc"][-1] == "[key]":
        content, path[-1] = path[-1], "(a name)"
    allowed = re.sub(r"^(Input|String|Value|List|Dictionary|Keys) should ", "must ", error["msg"])
    return f"{place_of(tuple(path))} = {short(content)}: {allowed.removeprefix('Value error, ')}"
