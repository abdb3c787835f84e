"""``run.json``: reading and checking it, and its tables, which are mappings with several keys as lists of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from p2p_sim.core.errors import InputError, near_path
from p2p_sim.core.paths import link_target
from p2p_sim.rundir import integrity, parquet_columns, regular_files, under_way
from p2p_sim.rundir.regular_files import RESTORE, short
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.rundir.trace_writer import MESSAGES


def to_list(table: Mapping[Any, Any], *names: str) -> list[dict[str, Any]]:
    """Return one object for each entry of a mapping; ``names``: of the parts of its key, then of its values."""
    return [
        dict(zip(names, (*key, *(value if isinstance(value, tuple) else (value,))), strict=True))
        for key, value in table.items()
    ]


def from_list(rows: Sequence[Mapping[str, Any]], *names: str, values: int = 1) -> dict[Any, Any]:
    """Read back what ``to_list`` wrote; the last ``values`` names belong to the value."""
    found = {}
    for row in rows:
        parts = tuple(row[name] for name in names)
        value = parts[len(parts) - values :]
        found[parts[: len(parts) - values]] = value if values > 1 else value[0]
    return found


FORMAT = 2
RUN = "run.json"

_ADVICE = RESTORE

_Value = TypeVar("_Value")


def read_run_json(path: Path) -> dict[str, Any]:
    """Read and check run.json.

    Raises InputError naming the file, what is wrong with it and what to do: if there is none, it has another format,
    it is no JSON, one of its fields is missing or no value that it can have (see
    ``json_declarations``), or it was altered in another way.
    """
    from p2p_sim.rundir import json_declarations

    file = path / RUN
    parquet_columns.check_name(path)
    content = regular_files.json_of(path, RUN)
    if content is None:
        raise InputError(f"{str(path)!r} is not a run directory: {why_none(path)}")
    if type(content.get("format")) is not int or content["format"] < 1:
        raise InputError(f"{str(file)!r} is damaged: it does not say which format it has; {_ADVICE}")
    if content["format"] != FORMAT:
        raise InputError(
            f"{str(file)!r} has format {content['format']}; this version reads format {FORMAT}: run the protocol "
            f"again, or read it with the version that wrote it{_writer(content)}"
        )
    json_declarations.check(file, json_declarations.RunFile, content)
    if integrity.was_altered(content):
        raise InputError(
            f"{str(file)!r} was altered since it was written: its checksum does not match; {_ADVICE}"
        )
    return content


def text_of(content: dict[str, Any]) -> str:
    """Return the text of run.json or a similar file: its content and the checksum of it."""
    return json.dumps(integrity.with_checksum(content), indent=2) + "\n"


class Fields:
    """The fields of run.json, read one by one; raises InputError naming file and field for a bad value."""

    def __init__(self, path: Path, content: dict[str, Any]):
        self._file, self._content = path / RUN, content

    def __call__(self, name: str, read: Callable[[Any], _Value]) -> _Value:
        """Return what ``read`` makes of a field."""
        try:
            return read(self._content[name])
        except Exception as error:  # whatever an altered value provokes
            what = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            raise InputError(f"{str(self._file)!r} is damaged at {name!r}: {what}; {_ADVICE}") from error


def agree(path: Path, name: str, expected: Any, file: str, found: Any) -> None:
    """Check that run.json and another file of the run agree; raises InputError naming both."""
    if expected is not None and expected != found:
        raise InputError(
            f"{str(path / RUN)!r} says {name} = {short(expected)}, but {str(path / file)!r} says {short(found)}: one "
            f"of them was altered, or belongs to another run; {_ADVICE}"
        )


def _writer(fields: dict[str, Any]) -> str:
    """Name the version that wrote a run.json of which no more is known than that it has another format."""
    versions = fields.get("versions")
    version = versions.get("p2p-sim") if type(versions) is dict else None
    return f", {version!r:.60}" if type(version) is str else ""


def _folders_beside(path: Path) -> list[str]:
    """Return the folders that lie where a path says one is, written as it is."""
    try:
        return [str(path.with_name(each.name)) for each in path.parent.iterdir() if each.is_dir()]
    except (OSError, ValueError):  # none is there, or the path has no name
        return []


def why_none(path: Path) -> str:
    """Return why a folder is no run directory, and what to do."""
    if path.is_symlink() and not path.exists():
        return f"it links to {link_target(path)!r}, which is gone; name another run"
    if not path.exists():
        nearest = near_path(str(path), _folders_beside(path))
        return f"there is no such folder{nearest}; p2p-sim run makes one and says where it is"
    if path.is_file():
        return "it is a file; name the folder that p2p-sim run made"
    if (path / under_way.ASKED).is_file():
        return f"it has no {RUN}, the run was cut off; p2p-sim run --resume {path} goes on with it"
    if (path / MESSAGES).is_dir():
        return f"it has no {RUN}; its trace can be opened (p2p-sim trace), the run was cut off: run it again"
    inside = sorted(file.parent.name for file in path.glob(f"*/{RUN}"))
    if inside:
        return (
            f"it has no {RUN}; it holds {len(inside):,}, such as {str(path / inside[0])!r}: name one of them"
        )
    return f"it has no {RUN}; name the folder that p2p-sim run made"


HIDDEN = "..."
"""Stands in place of a seed that is left out."""


def option(name: str, value: object) -> list[str]:
    """Return an option and its value as words; as one word if the value could be taken for an option."""
    text = str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def without_seed(words: Sequence[str]) -> list[str]:
    """Return a command with the seed replaced by ``HIDDEN``, also if the command did not name it."""
    left: list[str] = []
    skip = False
    for word in words:
        if not skip and word.partition("=")[0] not in _SEEDS:
            left.append(word)
        skip = word in _SEEDS and not skip
    own = (
        _SEEDS[1] if list(words[1:2]) == ["attack"] else _SEEDS[0]
    )  # what is kept of p2p-sim attack is of a saved run
    return [*left, own, HIDDEN]


_SEEDS = ("--seed", "--attack-seed")


def in_python(run: RunRecord, path: str | Path, call: str) -> str:
    """Return an error text for a run whose protocol is not shipped: how to make ``call`` in Python instead."""
    module, _, owner = run.protocol.partition(":")
    values = ", ".join(f"{name}={value!r}" for name, value in run.parameters.items())
    return (
        f"{run.protocol} is not a shipped protocol: in Python, from {module} import {owner}; "
        f"p2p_sim.load({str(path)!r}).{call}, protocol={owner}({values})){on_command_line(run)}"
    )


def recomputing(run: RunRecord) -> str:
    """Return why messages of a run that it did not keep are not recomputed, and what to do."""
    again = "run it again with --trace full (trace='full')"
    if run.seed is None:
        return f"its seed was not kept, so they are not recomputed: {again}"
    return (
        f"{run.protocol} is not a shipped protocol, so they are not recomputed here: {again}, or in Python give "
        f"protocol=...{on_command_line(run)}"
    )


_PROGRAM = re.compile(r"(?!__main__)[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def on_command_line(run: RunRecord) -> str:
    """Return how the program of a run is named on the command line; empty for a name that cannot be imported.

    A run's file may come from anybody, so what it names is for its reader to judge.
    """
    if not _PROGRAM.fullmatch(run.protocol):
        return ""
    return f"; on the command line, if you trust that code, add --protocol {run.protocol}"
