"""Run directories from anybody: whatever is changed in one, every reader works or refuses it by name.

Nothing else is raised, nothing is waited for, and memory is bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim import cli as program
from p2p_sim.report import report_content
from p2p_sim.report.kept_file import AUDITS
from p2p_sim.rundir import integrity, run_directory
from p2p_sim.trace import query
from p2p_sim.trace.diff import compare
from p2p_sim.trace.stats import stats
from protocols import PeerToPeer, RandomizedResponse

pytestmark = pytest.mark.slow

USERS = 24
SEED = 2**63 + 5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything: trace, population with public columns, faults, outputs and an audit."""
    y = np.arange(USERS) % 2 == 0
    public = {
        "age": np.arange(USERS) % 7,
        "town": np.array(["here", "there"] * (USERS // 2)),
        "at": np.ones((USERS, 2)),
    }
    people = Population.from_arrays(y=y, cluster=np.arange(USERS) // 6, public=public)
    path = tmp_path_factory.mktemp("made") / "run"
    p2p_sim.run(PeerToPeer(0.1, 0.5), people, trace="full", faults=["drop=0.1"], out=path, seed=SEED)
    audit = ["audit", "--run", str(path), "--view", "learner", "--trials", "200", "--delta", "0.05"]
    assert program.main(audit) == 0
    return path


def read_everything(path: Path) -> None:
    run = p2p_sim.load(path)
    for kind in ("ask", "label", "report"):
        run.messages(kind)
    assert run.output("learner")
    AUDITS.read(path, run)


READERS: dict[str, Callable[[Path], Any]] = {
    "load": read_everything,
    "view": lambda path: p2p_sim.load(path).view("learner+user:3"),
    "replay": lambda path: p2p_sim.load(path).replay(3),
    "messages": lambda path: query.messages(path, user=3),
    "stats": stats,
    "open": lambda path: [list(run_directory.open_trace(path).batches(kind)) for kind in ("ask", "label", "report")],
    "document": lambda path: report_content.documents([str(path)]),
    "diff": lambda path: compare(path, path),
}  # fmt: skip


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TimeoutError for what waits."""

    def late(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def works_or_is_refused(path: Path, reader: str) -> None:
    with within(60), contextlib.suppress(InputError):
        READERS[reader](path)


@contextlib.contextmanager
def copied(made: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(shutil.copytree(made, Path(name) / "run"))


def seal(path: Path) -> None:
    """Make all checksums again, as somebody who means to deceive would."""
    file = path / "messages/manifest.json"
    told = json.loads(file.read_bytes())
    for entry in told["files"] if isinstance(told, dict) and isinstance(told.get("files"), list) else ():
        with contextlib.suppress(TypeError, KeyError, OSError, ValueError):
            entry["sha256"] = integrity.sha256(path / "messages" / entry["file"])
            entry["bytes"] = (path / "messages" / entry["file"]).stat().st_size
    write(file, told, sealed=True)
    file = path / "run.json"
    told = json.loads(file.read_bytes())
    if isinstance(told, dict) and isinstance(told.get("sha256"), dict):
        for name in told["sha256"]:
            with contextlib.suppress(OSError, ValueError):
                told["sha256"][name] = integrity.sha256(path / name)
    write(file, told, sealed=True)


def write(file: Path, told: Any, *, sealed: bool) -> None:
    if sealed and isinstance(told, dict):
        told.pop("checksum", None)
        with contextlib.suppress(ValueError):  # a NaN has none
            told = integrity.with_checksum(told)
    file.write_text(json.dumps(told))


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


VALUES = [
    None, True, False, -1, 0, 1, 7, 2**31, 2**62, 2**63, 2**70, -(2**70), 10**400, 1.5, -0.5, 1e308, float("nan"),
    float("inf"), float("-inf"), "", "x", "../x", "/etc/passwd", "a\0b", "\ud800", "x" * 5000, "full", "sample=3",
    "user", [], [1], [[]], {}, {"x": 1}, {"from": 2**62}, {"all": -1}, {"as": ["x", "sender"]}, nested(40),
    nested(900), "inf",
]  # fmt: skip
JSONS = ("run.json", "messages/manifest.json", "audit.json")


def places(told: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_of_any_json_file(made: Path, data: st.DataObject) -> None:
    with copied(made) as path:
        file = path / data.draw(st.sampled_from(JSONS), "file")
        told = json.loads(file.read_bytes())
        place = data.draw(st.sampled_from(list(places(told))), "place")
        inner = told
        for key in place[:-1]:
            inner = inner[key]
        how = data.draw(st.sampled_from(["put", "put", "put", "remove", "add"]), "how")
        if how == "remove":
            del inner[place[-1]]
        elif how == "add" and isinstance(inner, dict):
            inner[data.draw(st.sampled_from(["", "extra", "../x", "all", "seq", "a\0b"]), "name")] = inner[
                place[-1]
            ]
        else:
            inner[place[-1]] = data.draw(st.sampled_from(VALUES), "value")
        sealed = data.draw(st.booleans(), "sealed")
        write(file, told, sealed=sealed)
        if sealed:
            with contextlib.suppress(ValueError, RecursionError):
                seal(path)
        works_or_is_refused(path, data.draw(st.sampled_from(list(READERS)), "reader"))


def files_of(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def link(file: Path) -> None:
    moved = file.parents[3] / f"moved-{file.name}" if "messages" in file.parts else file.parents[1] / "moved"
    file.rename(moved)
    file.symlink_to(moved)


def device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def gone(file: Path) -> None:
    file.unlink()


def columns(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """Change the table in a Parquet file; another file becomes one."""

    def changed(file: Path) -> None:
        table = parquet.read_table(file) if file.suffix == ".parquet" else pa.table({"x": [1]})
        table = pa.table({name: table[name] for name in table.column_names}, metadata=table.schema.metadata)
        parquet.write_table(change(table), file)

    return changed


def each(make: Callable[[int], Any]) -> Callable[[pa.Table], pa.Table]:
    """Replace every column."""
    return lambda table: pa.table(
        {name: make(len(table)) for name in table.column_names}, metadata=table.schema.metadata
    )


TABLES = {
    "text": each(lambda rows: pa.array(["x"] * rows)),
    "nested": each(lambda rows: pa.array([[[1], [2]]] * rows)),
    "struct": each(lambda rows: pa.array([{"a": 1}] * rows)),
    "dictionary": each(lambda rows: pa.array(["x"] * rows).dictionary_encode()),
    "nulls": each(lambda rows: pa.nulls(rows)),
    "some nulls": lambda table: pa.table(
        {n: pa.array([None, *table[n].to_pylist()[1:]], table[n].type) for n in table.column_names},
        metadata=table.schema.metadata,
    ),
    "negative": lambda table: pa.table(
        {
            n: pa.array([-1] * len(table), table[n].type) if pa.types.is_signed_integer(table[n].type) else table[n]
            for n in table.column_names
        },
        metadata=table.schema.metadata,
    ),
    "huge ids": lambda table: pa.table(
        {
            n: pa.array([2**31 - 1] * len(table), table[n].type)
            if table[n].type in (pa.int32(), pa.int64())
            else table[n]
            for n in table.column_names
        },
        metadata=table.schema.metadata,
    ),
    "huge": each(lambda rows: pa.array([2**62] * rows)),
    "floats": each(lambda rows: pa.array([float("nan")] * rows)),
    "times": each(lambda rows: pa.array([0] * rows, pa.timestamp("ns"))),
    "decimals": each(lambda rows: pa.array([1] * rows, pa.decimal128(30, 2))),
    "twice": lambda table: pa.table([*table.columns, table[0]], names=[*table.column_names, table.column_names[0]]),
    "more": lambda table: table.append_column("more", pa.array(range(len(table)))),
    "fewer": lambda table: table.drop_columns(table.column_names[-1:]),
    "no rows": lambda table: table.slice(0, 0),
    "half the rows": lambda table: table.slice(0, len(table) // 2),
    "rows twice": lambda table: pa.concat_tables([table, table]),
}  # fmt: skip
HARMS: dict[str, Callable[[Path], None]] = {
    "cut": cut, "emptied": emptied, "fifo": fifo, "folder": folder, "link": link, "device": device, "gone": gone,
    **{name: columns(change) for name, change in TABLES.items()},
}  # fmt: skip


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_file(made: Path, data: st.DataObject) -> None:
    with copied(made) as path:
        name = data.draw(st.sampled_from(files_of(path)), "file")
        harm = data.draw(st.sampled_from(list(HARMS)), "harm")
        HARMS[harm](path / name)
        if data.draw(st.booleans(), "sealed") and harm not in ("fifo", "device"):
            with contextlib.suppress(ValueError, OSError):
                seal(path)
        works_or_is_refused(path, data.draw(st.sampled_from(list(READERS)), "reader"))


@pytest.mark.parametrize("harm", ["fifo", "link", "device", "folder"])
@pytest.mark.parametrize(
    "name",
    ["run.json", "messages/manifest.json", "audit.json", "population.parquet", "outputs/*.parquet", "messages/ask/*/*"],
)  # fmt: skip
def test_only_regular_files_are_read(made, name, harm):
    with copied(made) as path:
        (file,) = path.glob(name)
        HARMS[harm](file)
        what = {"fifo": "a FIFO", "folder": "a folder"}.get(harm, "a link, and a run directory has none")
        with within(30), pytest.raises(InputError, match=rf"{file.name}' is damaged: it is {what}"):
            read_everything(path)


def test_a_folder_that_is_a_link_is_refused(made):
    with copied(made) as path:
        (path / "messages").rename(path.parent / "elsewhere")
        (path / "messages").symlink_to("../elsewhere")
        for opened in (p2p_sim.load, run_directory.LazyRun, run_directory.open_trace):
            with pytest.raises(
                InputError, match="messages' is damaged: it is a link, and a run directory has none"
            ):
                opened(path)
        assert run_directory.open_trace(path.parent / "elsewhere").kept
        (path.parent / "latest").symlink_to(made)
        read_everything(path.parent / "latest")  # that a folder is named by a link is the reader's own doing


def test_the_notes_of_a_run_that_was_cut_off_may_be_no_file(made):
    with copied(made) as path:
        (path / "run.json").unlink()
        file = path / "messages/manifest.json"
        write(
            file, json.loads(file.read_bytes()) | {"complete": False, "counts": [], "files": []}, sealed=True
        )
        os.mkfifo(path / "messages/.site-00000.jsonl")
        with within(30), pytest.raises(InputError, match=r"\.site-00000\.jsonl' is damaged: it is a FIFO"):
            run_directory.open_trace(path)


WRONG_JSON = {
    "run.json": [
        ("seed", -1, "seed = -1: must be greater than or equal to 0"),
        ("seed", 2**70, f"seed = {2**70}: must be an integer of 64 bits"),
        ("timings", {"run": float("nan")}, r"timings.run = nan: must be a finite number"),
        ("notes", nested(900), r"must be nested in at most 32 levels"),
        ("sha256", {"../x": "0" * 64}, r"'../x': must be the path of a file below the folder"),
        ("users", "many", "users = 'many': must be a valid integer"),
    ],
    "messages/manifest.json": [
        ("users", 2**62, f"users = {2**62}: must be less than or equal to 2147483647"),
        ("files", [7], r"files.0 = 7: must be a valid dictionary"),
        ("level", "much", "level = 'much': trace = 'much': allowed are"),
    ],
    "audit.json": [("audits", [{"view": 7}], "audits.0.view = 7: must be a valid string")],
}


@pytest.mark.parametrize("name", WRONG_JSON)
def test_a_wrong_value_is_named_with_what_is_allowed_and_what_to_do(made, name):
    for field, value, said in WRONG_JSON[name]:
        with copied(made) as path:
            told = json.loads((path / name).read_bytes()) | {field: value}
            write(path / name, told, sealed=True)
            if name == "messages/manifest.json":
                seal(path)
            advice = "(restore it, or run the protocol again|delete it, and audit the run again)"
            with pytest.raises(InputError, match=rf"{name}' is damaged: .*{said}.*; {advice}"):
                read_everything(path)


@pytest.mark.parametrize(
    "harm", [harm for harm in TABLES if harm not in ("negative", "huge ids", "rows twice")]
)
def test_a_table_of_another_kind_is_named(made, harm):
    for name in ("messages/label/round=2/*", "population.parquet"):
        with copied(made) as path:
            (file,) = path.glob(name)
            HARMS[harm](file)
            seal(path)
            with pytest.raises(InputError, match=rf"{file.name}' is damaged: .*; restore it"):
                read_everything(path)


BOMB = """
import json, resource, sys
from pathlib import Path
import p2p_sim
from p2p_sim.rundir import run_directory
path, = map(Path, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
told = []
for ask in (
    lambda: p2p_sim.load(path).messages("report"),
    lambda: p2p_sim.load(path).population,
    lambda: run_directory.open_trace(path).rows("report", limit=3)[1],
):
    try:
        told.append(repr(ask()))
    except p2p_sim.InputError as error:
        told.append(str(error))
print(json.dumps(told))
"""


def bomb(file: Path, doublings: int) -> int:
    """Make a Parquet file whose footer names each of its row groups many times; return its number of rows."""
    meta = parquet.read_metadata(file)
    for _ in range(doublings):
        meta.append_row_groups(meta)
    whole = file.read_bytes()
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    meta.write_metadata_file(file)
    file.write_bytes(whole[:end] + file.read_bytes()[4:])
    return int(parquet.read_metadata(file).num_rows)


@pytest.fixture
def bombs(tmp_path):
    """A run of which the messages of a kind and the users are a thousand million in files of a megabyte or so."""
    people = Population.synthetic(users=1 << 18, seed=2)
    path = tmp_path / "run"
    p2p_sim.run(RandomizedResponse(1.0), people, trace="full", out=path, seed=SEED)
    (file,) = (path / "messages").rglob("*.parquet")
    rows = bomb(file, 12)
    assert bomb(path / "population.parquet", 12) == rows == 1 << 30
    assert file.stat().st_size < 7e6
    return path


def asked(path: Path) -> list[str]:
    root = str(Path(p2p_sim.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(path)], capture_output=True, text=True, timeout=200, check=True,
        env=os.environ | {"PYTHONPATH": root, "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )  # fmt: skip
    told: list[str] = json.loads(done.stdout)
    return told


def test_a_thousand_million_rows_in_a_small_file(bombs):
    seal(bombs)
    messages, people, first = asked(bombs)
    assert "has 1,073,741,824 rows, and the manifest says 262,144" in messages == first
    assert "has 1,073,741,824 rows, and the manifest says 262,144" in people
    for name in ("run.json", "messages/manifest.json"):  # now all of it says so
        told = json.loads((bombs / name).read_bytes())
        told["users"] = 1 << 30
        for row in told.get("costs", told.get("counts")):
            row["messages"] = row["travelled"] = 1 << 30
        for entry in told.get("files", []):
            entry["rows"] = 1 << 30
        write(bombs / name, told, sealed=True)
    seal(bombs)
    messages, people, first = asked(bombs)
    assert "holds 1,073,741,824 rows, which take " in messages
    assert "ask for fewer at once, by limit= and offset=" in messages
    assert "population.parquet' holds 1,073,741,824 rows, which take " in people
    assert first == str(1 << 30)
