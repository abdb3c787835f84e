"""Only a disk or a quota that is used up is called full; what else the system refuses has its own name and remedy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from p2p_sim.core import write_errors
from p2p_sim.core.errors import StorageError


def said(error: OSError, folder: str = "runs/r") -> str:
    with pytest.raises(StorageError) as found, write_errors.translated("the run", folder):
        raise error
    assert found.value.__cause__ is error
    return str(found.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_what_is_used_up_is_full(number: int) -> None:
    assert said(OSError(number, os.strerror(number))) == (
        f"the run cannot be written to 'runs/r': {os.strerror(number)}; make room, or choose another folder with --out"
    )


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "change its permissions"),
        (errno.EROFS, "mount its file system for writing"),
        (errno.EIO, "check its disk"),
        (errno.EFBIG, "raise the limit of a file's size"),
        (errno.ESTALE, "check its disk and its permissions"),
    ],
)
def test_another_error_is_named_as_what_it_is(number: int, remedy: str) -> None:
    text = said(OSError(number, os.strerror(number)))
    assert f"{os.strerror(number)}; {remedy}" in text
    assert "make room" not in text


def test_the_file_is_named_where_it_is_not_the_folder() -> None:
    missing = FileNotFoundError(errno.ENOENT, "No such file or directory", "runs/r/outputs/user.parquet")
    assert "No such file or directory ('runs/r/outputs/user.parquet'); do not remove it" in said(missing)
    refused = PermissionError(errno.EACCES, "Permission denied", "runs/r")
    assert "'runs/r': Permission denied; change" in said(refused)
    copied = OSError(errno.ENOSPC, "No space left on device", "old/run.json", None, "runs/r/run.json")
    assert "No space left on device ('runs/r/run.json'); make room" in said(copied)


def test_an_error_without_a_number() -> None:
    assert "'runs/r': 5 requested and 0 written; check its disk and its permissions" in said(
        OSError("5 requested and 0 written")
    )


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="x"), write_errors.translated("the run", Path("r")):
        raise ValueError("x")


def test_what_can_be_chosen_instead() -> None:
    with (
        pytest.raises(StorageError, match="or choose another place"),
        write_errors.translated("labels", Path("r"), "another place"),
    ):
        raise OSError(errno.EIO, "Input/output error")


def test_another_folder_is_not_advised_where_it_does_not_help() -> None:
    assert said(OSError(errno.EMFILE, "Too many open files")).endswith(
        "raise the limit of open files (ulimit -n)"
    )
