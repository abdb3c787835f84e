"""Tables, JSON, progress."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import time

import numpy as np
import pytest

from p2p_sim import progress
from p2p_sim.progress import Progress
from p2p_sim.report import terminal


def test_json_is_json():
    document = {
        "infinite": [np.inf, -np.inf], "none": float("nan"), "numpy": (np.int64(3), np.float32(0.5), np.bool_(True)),
        7: {"path": object}, "text": "é",
    }  # fmt: skip
    told = json.loads(terminal.as_json(document), parse_constant=lambda name: pytest.fail(name))
    assert told["infinite"] == ["inf", "-inf"]
    assert told["none"] is None
    assert told["numpy"] == [3, 0.5, True]
    assert set(told["7"]) == {"path"}


def test_table():
    text = terminal.table(["name", "n", "share"], [["a", 1234567, 0.123456], ["long name", None, 2.0]])
    assert text.splitlines() == [
        "name                n    share",
        "a           1,234,567   0.1235",
        "long name           -        2",
    ]
    assert terminal.table(["name"], []) == "name"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 40, "3,072.0 GiB"),
    ],
)
def test_nbytes(count, text):
    assert terminal.nbytes(count) == text


def test_progress_is_silent_in_short_work():
    stream = io.StringIO()
    with Progress(stream) as tell:
        tell("counting", 1, 10)
    assert stream.getvalue() == ""


def test_progress_in_lines(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_STEP", 0.05)
    stream = io.StringIO()
    with Progress(stream) as tell:
        tell("user, round 1", 0, 5000)
        tell("", 2500, 5000)
        _wait(lambda: "2,500" in stream.getvalue())
        tell("training", 0, 0)
        _wait(lambda: "training" in stream.getvalue())
    lines = [line.partition(" [")[0] for line in stream.getvalue().splitlines()]
    assert lines[-2:] == ["user, round 1: 2,500 of 5,000", "training"]
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


def test_progress_as_a_bar(monkeypatch):
    pty = pytest.importorskip("pty")
    monkeypatch.setattr(progress, "_BAR_AFTER", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    shown = bytearray()

    def look() -> None:
        with contextlib.suppress(OSError):  # the end, on Linux
            while part := os.read(master, 4096):
                shown.extend(part)

    reader = threading.Thread(target=look)
    reader.start()
    with open(slave, "w") as stream, Progress(stream) as tell:  # noqa: PTH123 (a descriptor)
        tell("user, round 1", 30, 60)
        _wait(lambda: b"50%" in shown)
        tell("training", 0, 0)
        _wait(lambda: b"training" in shown)
    reader.join()
    os.close(master)
    assert b"user, round 1" in shown
    assert shown.endswith(b"\x1b[2K")  # the bar is taken away at the end


def test_progress_without_a_reader():
    stream = io.StringIO()
    with Progress(stream) as tell:
        stream.close()
        tell("counting", 1, 2)


def _wait(happened) -> None:
    end = time.monotonic() + 10
    while not happened() and time.monotonic() < end:
        time.sleep(0.01)
    assert happened()
