"""What is not a plain file, made in a test's own folder: devices, FIFOs and their readers, sockets, links, folders."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest


def null_device(path: Path) -> Path:
    """Make a device like /dev/null; skips the test where devices cannot be made."""
    return _character_device(path, 3)


def full_device(path: Path) -> Path:
    """Make a device like /dev/full; skips the test where devices cannot be made."""
    return _character_device(path, 7)


def _character_device(path: Path, minor: int) -> Path:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"devices cannot be made here: {error}")
    return path


class FifoReader(threading.Thread):
    """Reads a FIFO to its end, or until ``limit`` bytes have come."""

    def __init__(self, path: Path, limit: int | None = None):
        super().__init__(daemon=True)
        self._received, self._limit = b"", limit
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # returns before there is a writer
        os.set_blocking(self._file, True)
        self._writer = os.open(path, os.O_WRONLY)  # without a writer, a read would be at the end at once
        self.start()

    def run(self) -> None:
        with os.fdopen(self._file, "rb", buffering=0) as stream:
            while self._limit is None or len(self._received) < self._limit:
                part = stream.read(1 << 12)
                if not part:
                    return
                self._received += part

    def end(self) -> bytes:
        """Wait for the end of the FIFO; return what was read."""
        os.close(self._writer)
        self.join(10)
        assert not self.is_alive()
        return self._received


def symlink_loop(path: Path) -> None:
    """Make a link to itself."""
    path.symlink_to(path.name)


def dangling_symlink(path: Path) -> None:
    """Make a link into a folder that does not exist."""
    path.symlink_to("nowhere/x.svg")


def nonempty_folder(path: Path) -> None:
    """Make a folder with a file that must not be lost."""
    path.mkdir()
    (path / "precious").write_text("precious")


def unix_socket(path: Path) -> None:
    """Make the file of a socket."""
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has at most about 100 bytes
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def names_in(folder: Path) -> set[str]:
    """Return the names in a folder, without that of the run r that tests write from."""
    return {path.name for path in folder.iterdir()} - {"r"}
