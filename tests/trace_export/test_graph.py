"""networkx graphs and GraphML, against messages counted one by one and read back."""

from __future__ import annotations

import io
from collections import Counter

import networkx
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.trace.export.graph import graphml, to_networkx, who_asked_whom
from p2p_sim.trace.slices import Slice
from protocols import PeerToPeer
from tests.trace_export.material import EVIL, PROTOCOLS, evil, sliced


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_every_message_is_an_edge_and_reads_back(protocol):
    _, part = sliced(protocol)
    events = {event.id: event for event in part.events()}
    back = networkx.read_graphml(
        io.BytesIO(graphml(part, "title", ("a note",)).encode()), force_multigraph=True
    )
    assert back.graph["title"] == "title"
    assert back.graph["notes"] == "a note"
    for graph in (to_networkx(part), back):
        assert isinstance(graph, networkx.MultiDiGraph)
        edges = list(graph.edges(keys=True, data=True))
        assert {key for _, _, key, _ in edges} == events.keys()
        assert len(edges) == len(part)
        for sender, recipient, key, about in edges:
            event = events[key]
            assert (sender, recipient) == event.ends
            expected = (event.kind, event.round, event.seq, event.nbytes)
            assert (about["kind"], about["round"], about["seq"], about["nbytes"]) == expected
    for name, about in back.nodes(data=True):
        assert name == (f"user:{about['user']}" if about["role"] == "user" else about["role"])


def test_who_asked_whom_counts():
    _, part = sliced(PeerToPeer(0.1))
    for kind in (None, "ask"):
        wanted, size = Counter(), Counter()
        for event in part.events():
            if kind in (None, event.kind):
                wanted[event.ends] += 1
                size[event.ends] += event.nbytes
        graph = who_asked_whom(part, kind)
        assert {(a, b): graph[a][b]["weight"] for a, b in graph.edges} == wanted
        assert {(a, b): graph[a][b]["nbytes"] for a, b in graph.edges} == size
    assert graph.out_degree("user:4") == 1
    with pytest.raises(InputError, match=r"'vote'.*ask"):
        who_asked_whom(part, "vote")


def test_no_name_breaks_out():
    text = graphml(evil(), EVIL[0], tuple(EVIL))
    graph = networkx.read_graphml(io.BytesIO(text.encode()), force_multigraph=True)
    assert graph.number_of_edges() == 2 * len(EVIL)
    assert EVIL[0] in {about["kind"] for _, _, about in graph.edges(data=True)}
    assert "<script" not in text


def test_the_same_run_gives_the_same_bytes_and_nothing_is_a_graph_too():
    texts = {graphml(sliced(PROTOCOLS["peer to peer"])[1], "t") for _ in range(2)}
    assert len(texts) == 1
    empty = graphml(Slice.of({}, {}), "t")
    assert len(networkx.read_graphml(io.BytesIO(empty.encode()))) == 0
