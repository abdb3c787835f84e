"""The ShiViz log, read by its own expression; its clocks against what happened before what."""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.trace.export import shiviz as module
from p2p_sim.trace.export.shiviz import shiviz
from protocols import PeerToPeer
from tests.trace_export.material import EVIL, PROTOCOLS, evil, many, sliced


def entries(text: str) -> list[tuple[str, str, dict[str, int]]]:
    """Read a log as ShiViz does: by the expression in its first line; the second, a delimiter, is empty."""
    parser, delimiter, rest = text.split("\n", 2)
    assert delimiter == ""
    found = list(re.finditer(parser.replace("(?<", "(?P<"), rest))
    assert "".join(hit[0] + "\n" for hit in found) == rest
    return [(hit["event"], hit["host"], json.loads(hit["clock"])) for hit in found]


def before(part) -> tuple[list[tuple[str, str]], np.ndarray]:
    """What each party did (host, message and end), and which happened before which, by closing over single steps.

    A party sends before it receives in a round, and messages arrive after they were sent.
    """
    did = [
        ((event.round, end, i), event.ends[end], f"{event.id}/{end}")
        for i, event in enumerate(part.events())
        for end in (0, 1)
    ]
    did.sort()
    place = {name: i for i, (_, _, name) in enumerate(did)}
    reach = np.zeros((len(did), len(did)), np.bool_)
    for (i, (_, host, _)), (j, (_, other, _)) in product(enumerate(did), enumerate(did)):
        reach[i, j] = host == other and i < j
    for event in part.events():
        reach[place[f"{event.id}/0"], place[f"{event.id}/1"]] = True
    while True:
        more = reach | (reach.astype(np.int64) @ reach.astype(np.int64) > 0)
        if (more == reach).all():
            return [(host, name) for _, host, name in did], reach
        reach = more


def smaller(one: dict[str, int], other: dict[str, int]) -> bool:
    return one != other and all(count <= other.get(host, 0) for host, count in one.items())


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_clocks_say_what_happened_before_what(protocol):
    _, part = sliced(protocol)
    log = entries(shiviz(part))
    did, reach = before(part)
    assert [(host) for _, host, _ in log] == [host for host, _ in did]
    clocks = [clock for _, _, clock in log]
    for i, j in product(range(len(log)), repeat=2):
        assert smaller(clocks[i], clocks[j]) == reach[i, j], (did[i], did[j])
    own: dict[str, int] = {}
    for _, host, clock in log:  # ShiViz wants every party to count 1, 2, 3, ...
        own[host] = own.get(host, 0) + 1
        assert clock[host] == own[host]


def test_events_tell_the_message():
    _, part = sliced(PeerToPeer(0.1))
    log = entries(shiviz(part))
    events = list(part.events())
    sent = [(event, host) for event, host, _ in log if event.startswith("sends ")]
    assert sorted(sent) == sorted(
        (" ".join(["sends", e.kind, "to", e.ends[1], *told(e)]), e.ends[0]) for e in events
    )
    received = [(event, host) for event, host, _ in log if event.startswith("receives ")]
    assert sorted(received) == sorted(
        (" ".join(["receives", e.kind, "from", e.ends[0], *told(e)]), e.ends[1]) for e in events
    )


def told(event) -> list[str]:
    return [f"{name}={str(value).lower()}" for name, value in event.fields.items()]


def test_no_name_breaks_out_and_the_same_run_gives_the_same_bytes():
    text = shiviz(evil())
    log = entries(text)
    assert len(log) == 4 * len(EVIL)
    assert all(re.fullmatch(r"\S+", host) for _, host, _ in log)
    assert {host for _, host, _ in log} == {host for _, _, clock in log for host in clock}
    assert shiviz(evil()) == text


def test_too_much_is_refused(monkeypatch):
    _, part = sliced(PeerToPeer(0.1), many())
    monkeypatch.setattr(module, "MOST_ENTRIES", 5000)
    with pytest.raises(InputError, match="more than 5,000 entries together: ask for fewer users"):
        shiviz(part)
