"""Runs under way: what was asked of a run, kept in its unfinished folder until the run is whole.

Nothing else is needed to compute it again if it is cut off, since every draw follows from the seed: see
docs/failures.md.  ``asked.json`` holds the seed, so only its owner may read it, and it goes before the folder gets its
name.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core import code_fingerprint, write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.core.paths import check_usable
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import code_versions, file_lock, integrity, permissions, regular_files

ASKED, RUN = "asked.json", "run.json"
PARTIAL = ".partial-"
"""Stands in the name of an unfinished run directory, after the name that it is to get."""

FORMAT = 1

_AGAIN = "run the protocol again"


def asked(
    protocol: Protocol,
    options: Mapping[str, Any],
    origin: str,
    files: Iterable[Path],
    environment: Iterable[str],
    contents: Mapping[str, str],
) -> dict[str, Any]:
    """Return what is asked of a run, as JSON values: what must be the same when it goes on.

    ``options``: of the command; ``origin``: where the seed came from; ``files``: that it reads; ``environment``: names
    of variables that decide what it reads; ``contents``: SHA-256 of what else it reads.  Raises InputError
    for a file that cannot be read.
    """
    return {
        "format": FORMAT, "protocol": f"{type(protocol).__module__}:{type(protocol).__name__}",
        "options": dict(options), "seed_source": origin, "folder": here(),
        "versions": code_versions.versions(protocol), "code": code_fingerprint.sources(protocol),
        "files": {str(file): _sha256(file) for file in files} | dict(contents),
        "environment": {name: os.environ.get(name, "") for name in environment},
    }  # fmt: skip


def here() -> str:
    """Return the current folder; nothing where it was removed, as no file is then read from it."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return ""


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InputError(
            f"cannot read {str(file)!r}: {error.strerror or error}; check the path and its permissions"
        ) from error
    return digest.hexdigest()


def write(folder: Path, content: Mapping[str, Any]) -> None:
    """Write what is asked into the folder of a run that begins, completely or not at all; raises StorageError."""
    text = json.dumps(integrity.with_checksum(content), indent=2) + "\n"
    fresh = folder / f".p2p-sim-{ASKED}"
    with write_errors.translated("what is asked of the run", folder):
        try:
            fresh.unlink(missing_ok=True)  # of a process that was killed
            permissions.create(fresh, text, private=True)
            fresh.rename(folder / ASKED)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


def find(path: Path) -> Path:
    """Return the folder of the run under way that a path names: itself, or the only one that is to get this name.

    Raises InputError if there is none, or several.
    """
    check_usable(path)
    if os.path.lexists(path / ASKED):
        return path
    pattern = f"{glob.escape(path.name)}{PARTIAL}*"
    drafts = sorted(path.parent.glob(pattern)) if path.name else []
    begun = [each for each in drafts if os.path.lexists(each / ASKED)]
    if len(begun) > 1:
        listed = ", ".join(repr(str(each)) for each in begun[:4])
        raise InputError(f"{len(begun)} runs {str(path)!r} were cut off: name one of them, such as {listed}")
    if begun:
        return begun[0]
    for each in (path, *drafts):
        if os.path.lexists(each / RUN):
            unnamed = PARTIAL in each.name  # ended between the two steps that give a whole run its name
            raise InputError(
                f"run {str(each)!r} is whole: {'give it another name' if unnamed else 'there is nothing to go on with'}"
            )
    if drafts and not path.is_dir():
        path = drafts[0]
    if not path.is_dir():
        raise InputError(
            f"{str(path)!r}: there is no such run, and none under way that will get this name; `p2p-sim run` says "
            "on stderr how to continue a run that is cut off"
        )
    raise InputError(
        f"{str(path)!r} does not say what was asked of it (it has no {ASKED}), so it cannot go on: {_AGAIN}"
    )


def read(folder: Path) -> dict[str, Any]:
    """Read what was asked of a run under way; raises InputError naming the file if it is damaged."""
    from p2p_sim.rundir import json_declarations

    file = folder / ASKED
    content = regular_files.json_of(folder, ASKED, _AGAIN)
    if content is None:
        raise InputError(f"{str(folder)!r} has no {ASKED}: {_AGAIN}")
    if content.get("format") != FORMAT:
        raise InputError(
            f"{str(file)!r} has format {regular_files.short(content.get('format'))}; this version reads format "
            f"{FORMAT}: {_AGAIN}, or go on with the version that began it"
        )
    json_declarations.check(file, json_declarations.AskedFile, content, _AGAIN)
    if not content.get(integrity.CHECKSUM) or integrity.was_altered(content):
        raise InputError(
            f"{str(file)!r} was altered since it was written: its checksum does not match; {_AGAIN}"
        )
    return integrity.bare(content)


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return how what is asked now differs from what was asked: ``numpy 2.4.1 then, 2.5.0 now``, ``core/draw.py``."""
    found = [
        f"{name} {then['versions'].get(name, 'unknown')} then, {now['versions'].get(name, 'unknown')} now"
        for name in sorted({*then["versions"], *now["versions"]} - {"code"})
        if then["versions"].get(name) != now["versions"].get(name)
    ]
    for part, what in (("code", "source"), ("files", "data")):
        for name in sorted({*then[part], *now[part]}):
            if then[part].get(name) != now[part].get(name):
                how = (
                    "is new" if name not in then[part] else "is gone" if name not in now[part] else "differs"
                )
                found.append(f"{what} {name} {how}")
    for name in sorted({*then["environment"], *now["environment"]}):
        one, other = (each["environment"].get(name, "") for each in (then, now))
        if one != other:
            found.append(f"{name} was {one!r}, and is {other!r}")
    return found


def locked(folder: Path) -> int | None:
    """Return a lock on a run under way, a descriptor; it goes with this process.  None where folders have none.

    Raises InputError if another process has it.
    """
    if os.name != "posix":  # elsewhere folders cannot be opened
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    mine = file_lock.lock(descriptor)
    if mine:
        return descriptor
    os.close(descriptor)
    if mine is None:
        return None
    raise InputError(
        f"{str(folder)!r} is still being computed by another process: wait for its end, or end it first"
    )
