"""The ShiViz log, read by its own expression; its clocks against what happened before what.

ShiViz itself is not to be had as a package; how it reads a file and draws arrows is retold here from its sources.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.render import shiviz as module
from p2p_sim.render.shiviz import shiviz
from protocols import PeerToPeer
from tests.trace_export.material import EVIL, PROTOCOLS, evil, many, sliced


def entries(text: str) -> list[tuple[str, str, dict[str, int]]]:
    """Read a log as ShiViz does: by the expression in its first line; the second, a delimiter, is empty."""
    parser, delimiter, rest = text.split("\n", 2)
    assert delimiter == ""
    found = list(re.finditer(parser.replace("(?<", "(?P<"), rest))
    first = found[0].start() if found else len(rest)
    assert "".join(hit[0] + "\n" for hit in found) == rest[first:]  # all but the title and notes
    assert rest[:first].count("\n") >= 1
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
    log = entries(shiviz(part, "title"))
    did, reach = before(part)
    assert [(host) for _, host, _ in log] == [host for host, _ in did]
    clocks = [clock for _, _, clock in log]
    for i, j in product(range(len(log)), repeat=2):
        assert smaller(clocks[i], clocks[j]) == reach[i, j], (did[i], did[j])
    own: dict[str, int] = {}
    for _, host, clock in log:  # ShiViz wants every party to count 1, 2, 3, ...
        own[host] = own.get(host, 0) + 1
        assert clock[host] == own[host]


Place = tuple[str, int]
"""An event: its host, and which of the host's events it is, from 1."""


def arrows(log: list[tuple[str, str, dict[str, int]]]) -> set[tuple[Place, Place]]:
    """The arrows that ShiViz draws: from every event that is news to a host, unless other news tells of it."""
    clock_of = {(host, clock[host]): clock for _, host, clock in log}
    assert len(clock_of) == len(log)
    found, known = set(), defaultdict(dict)
    for host, count in sorted(clock_of):
        clock, heard = clock_of[host, count], known[host]
        news = {(one, n) for one, n in clock.items() if one != host and n > heard.get(one, 0)}
        heard.update(clock)
        told = {(one, n) for place in news for one, n in clock_of[place].items() if one != place[0]}
        found |= {(place, (host, count)) for place in news - told}
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_every_message_that_travels_is_an_arrow(protocol):
    _, part = sliced(protocol)
    log = entries(shiviz(part, "title"))
    wanted, sent, count = set(), defaultdict(list), Counter()
    for event, host, _ in log:
        count[host] += 1
        words = event.split(" ")
        if words[0] == "sends":
            sent[host, words[3], *words[1:2], *words[4:]].append(count[host])
        else:
            first = sent[words[3], host, *words[1:2], *words[4:]].pop(0)
            wanted |= {((words[3], first), (host, count[host]))} if words[3] != host else set()
    assert len(wanted) == sum(e.ends[0] != e.ends[1] for e in part.events())
    assert arrows(log) == wanted


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_clocks_follow_from_the_arrows(protocol):
    log = entries(shiviz(sliced(protocol)[1], "title"))
    came, clocks, count = defaultdict(list), {}, Counter()
    for start, end in arrows(log):
        came[end].append(start)
    for _, host, clock in log:  # what happened before stands before it
        count[host] += 1
        before = [
            clocks.get((host, count[host] - 1), {}),
            *(clocks[start] for start in came[host, count[host]]),
        ]
        merged = {one: max(other.get(one, 0) for other in before) for other in before for one in other}
        clocks[host, count[host]] = merged | {host: count[host]}
        assert clock == clocks[host, count[host]]


def test_the_file_opens_as_shiviz_opens_it_and_says_what_it_is():
    text = shiviz(sliced(PeerToPeer(0.1))[1], "A title", ("the first 10 of 20 messages",))
    lines = text.split("\n")
    assert (
        lines[0] == r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
    )  # its default, which it takes from the first line
    assert lines[1:4] == ["", "A title", "the first 10 of 20 messages"]
    assert lines[4].startswith("sends ask to user:")


def test_events_tell_the_message():
    _, part = sliced(PeerToPeer(0.1))
    log = entries(shiviz(part, "title"))
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
    text = shiviz(evil(), EVIL[0], tuple(EVIL))
    log = entries(text)
    assert len(log) == 4 * len(EVIL)
    assert all(re.fullmatch(r"\S+", host) for _, host, _ in log)
    assert {host for _, host, _ in log} == {host for _, _, clock in log for host in clock}
    assert shiviz(evil(), EVIL[0], tuple(EVIL)) == text


def test_too_much_is_refused(monkeypatch):
    _, part = sliced(PeerToPeer(0.1), many())
    monkeypatch.setattr(module, "MOST_ENTRIES", 5000)
    with pytest.raises(InputError, match="more than 5,000 entries together: ask for fewer users"):
        shiviz(part, "title")
