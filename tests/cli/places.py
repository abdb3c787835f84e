"""Places of files at which there is no file: nodes and links of a test's own."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest


def node(path: Path, minor: int) -> Path:
    """Make a character device: 3 is null, 7 is full."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        pytest.skip(f"no devices of one's own here: {error}")
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"r"}


class Reader(threading.Thread):
    """Reads a FIFO: all of it, or a few bytes and then no more."""

    def __init__(self, path: Path, most: int = -1):
        super().__init__(daemon=True)
        self.found, self._path, self._most = b"", path, most
        self.opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # now there is a reader, whoever is first
        os.set_blocking(self.opened, True)
        self._wait = os.open(path, os.O_WRONLY)  # so that the end comes after the writer's, not before it
        self.start()

    def run(self) -> None:
        with os.fdopen(self.opened, "rb", buffering=0) as stream:
            while self._most < 0 or len(self.found) < self._most:
                part = stream.read(1 << 12)
                if not part:
                    return
                self.found += part

    def end(self) -> bytes:
        os.close(self._wait)
        self.join(10)
        assert not self.is_alive()
        return self.found


def loop(place: Path) -> None:
    place.symlink_to(place.name)


def nowhere(place: Path) -> None:
    place.symlink_to("nowhere/x.svg")


def folder_of_others(place: Path) -> None:
    place.mkdir()
    (place / "precious").write_text("precious")


def socket_file(place: Path) -> None:
    here = Path.cwd()
    os.chdir(place.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as held:
            held.bind(place.name)
    finally:
        os.chdir(here)
