"""The Chrome trace, held to the rules of its format and to the messages.

Perfetto 52 and Catapult's viewer, chrome://tracing, opened such files by hand: no import warnings, every arrow bound.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from p2p_sim.render.perfetto import perfetto
from p2p_sim.trace.slices import Slice
from protocols import EncryptedShuffle, PeerToPeer
from tests.render.material import EVIL, PROTOCOLS, evil, large, many, peak, sliced

pytestmark = pytest.mark.slow


def written(part: Slice, title: str, notes: tuple[str, ...] = ()) -> str:
    return "".join(perfetto(part, title, notes))


def named_once(events: list[dict]) -> None:
    """Every process and thread that does anything has one name and one place, told before it does anything."""
    told = [(e["name"], e["pid"], e.get("tid")) for e in events if e["ph"] == "M"]
    assert len(set(told)) == len(told)
    assert [e["ph"] for e in events[: len(told)]] == ["M"] * len(told)
    busy = {(e["pid"], e["tid"]) for e in events if e["ph"] != "M"}
    threads = {(f"thread_{key}", pid, tid) for pid, tid in busy for key in ("name", "sort_index")}
    processes = {(f"process_{key}", pid, None) for pid, _ in busy for key in ("name", "sort_index")}
    assert set(told) == threads | processes
    assert [e["pid"] for e in events if e.get("cat") == "about"] == [1] * bool(events)


def checked(text: str) -> dict:
    """Read a trace and check what the format asks for."""
    trace = json.loads(
        text, parse_constant=pytest.fail, parse_float=pytest.fail
    )  # NaN is no JSON; times are whole
    named_once(trace["traceEvents"])
    assert set(trace) == {"displayTimeUnit", "otherData", "traceEvents"}
    slices, flows, process_of = defaultdict(list), defaultdict(dict), {}
    for event in trace["traceEvents"]:
        assert event["ph"] in "MXsf"
        assert isinstance(event["name"], str)
        assert event["pid"] > 0
        if event["ph"] == "M":
            assert event["name"] in (
                f"{what}_{key}" for what in ("process", "thread") for key in ("name", "sort_index")
            )
            continue
        assert event["ts"] >= 0
        assert process_of.setdefault(event["tid"], event["pid"]) == event["pid"]
        assert event["tid"] not in {event["pid"] for event in trace["traceEvents"]}
        if event["ph"] == "X":
            assert event["dur"] > 0
            slices[event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        else:
            assert event["ph"] not in flows[event["id"]]
            assert (event["ph"] == "f") == (event.get("bp") == "e")
            flows[event["id"]][event["ph"]] = event
    for found in slices.values():  # slices of a thread lie inside each other or apart
        found.sort(key=lambda one: (one[0], -one[1]))
        for one, other in pairwise(found):
            assert other[0] >= one[1] or other[1] <= one[1]
    assert sorted(flows) == list(range(1, len(flows) + 1))
    for pair in flows.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["name"] == pair["f"]["name"]
        assert pair["s"]["ts"] < pair["f"]["ts"]
        for end, verb in (("s", " to "), ("f", " from ")):
            at = pair[end]["ts"]
            around = [one for one in slices[pair[end]["tid"]] if one[0] <= at < one[1]]
            assert verb in max(around)[2]
    return trace


def named(trace) -> dict[int, str]:
    return {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_every_message_is_two_slices_and_an_arrow(protocol):
    _, part = sliced(protocol)
    trace = checked(written(part, "title", ("a note",)))
    assert trace["otherData"]["run"] == "title"
    assert trace["otherData"]["notes"] == "a note"
    threads = named(trace)
    assert len(set(threads.values())) == len(threads)
    events = {event.id: event for event in part.events()}
    for what, end in (("sends", 0), ("receives", 1)):
        found = [e for e in trace["traceEvents"] if e.get("cat") == what]
        assert sorted(e["args"]["id"] for e in found) == sorted(events)
        for e in found:
            event = events[e["args"]["id"]]
            assert threads[e["tid"]] == event.ends[end]
            assert (e["args"]["round"], e["args"]["bytes"]) == (event.round, event.nbytes)
    ends = defaultdict(dict)
    for e in trace["traceEvents"]:
        if e.get("cat") == "message":
            ends[e["id"]][e["ph"]] = threads[e["tid"]]
    assert sorted((pair["s"], pair["f"]) for pair in ends.values()) == sorted(e.ends for e in events.values())


def test_rounds_are_slices_that_follow_each_other():
    _, part = sliced(PeerToPeer(0.1), many())
    trace = checked(written(part, "t"))
    threads = named(trace)
    found = {
        (threads[e["tid"]], e["name"]): (e["ts"], e["dur"])
        for e in trace["traceEvents"]
        if e.get("cat") == "round"
    }
    assert found.keys() == {(end, f"round {event.round}") for event in part.events() for end in event.ends}
    spans = sorted({(name, *span) for (_, name), span in found.items()})
    assert [name for name, _, _ in spans] == ["round 1", "round 2", "round 3"]
    assert all(a + length < b for (_, a, length), (_, b, _) in pairwise(spans))
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert names == {1: "about", 2: "users", 3: "learner"}


def test_what_run_it_is_and_what_was_cut_is_a_slice_as_long_as_all_rounds():
    _, part = sliced(PeerToPeer(0.1), many())
    events = checked(written(part, "A title", ("the first 10 of 20 messages",)))["traceEvents"]
    (about,) = (e for e in events if e.get("cat") == "about")
    for words in ("A title", "the first 10 of 20 messages", "logical"):
        assert words in about["name"]
    assert about["args"]["notes"] == "the first 10 of 20 messages"
    rounds = [e for e in events if e.get("cat") == "round"]
    assert about["ts"] == min(e["ts"] for e in rounds)
    assert about["ts"] + about["dur"] > max(e["ts"] + e["dur"] for e in rounds)


def test_sealed_fields_are_not_shown_unless_somebody_reads_them():
    protocol = EncryptedShuffle(1.0)
    run, part = sliced(protocol)

    def fields(cut):
        events = checked(written(cut, "t"))["traceEvents"]
        return [e["args"]["fields"] for e in events if e.get("cat") in ("sends", "receives")]

    assert {tuple(f.items()) for f in fields(part)} == {
        (("cluster", "sealed for learner"), ("y", "sealed for learner"))
    }
    view = run.view("learner")
    read = fields(Slice.of(view.kinds, view.messages))
    assert len(read) == 24
    assert {f["y"] for f in read} == {"0", "1"}


def test_no_name_breaks_out_and_the_same_run_gives_the_same_bytes():
    text = written(evil(), EVIL[0], tuple(EVIL))
    assert text.isascii()
    trace = checked(text)
    assert sum(e["ph"] == "s" for e in trace["traceEvents"]) == 2 * len(EVIL)
    assert written(evil(), EVIL[0], tuple(EVIL)) == text
    assert checked(written(Slice.of({}, {}), "t"))["traceEvents"] == []


def test_a_trace_of_many_messages_is_not_held():
    part = large(10_000)
    lines: list[int] = []
    held = peak(lambda: lines.append(sum(piece.count("\n") for piece in perfetto(part, "t"))))
    assert lines[0] > 4 * len(part)
    assert held < 6e6  # the document alone is 7 MB, its events 60
