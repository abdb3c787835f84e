"""networkx graphs and GraphML, against messages counted one by one and read back."""

from __future__ import annotations

import io
import re
from collections import Counter

import networkx
import numpy as np
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.render.graphml import graphml, to_networkx, who_asked_whom
from p2p_sim.trace.slices import Slice
from protocols import EncryptedShuffle, PeerToPeer
from tests.render.material import EVIL, PROTOCOLS, evil, large, peak, sliced


def written(part: Slice, title: str, notes: tuple[str, ...] = ()) -> str:
    return "".join(graphml(part, title, notes))


def read(text: str):
    return networkx.read_graphml(io.BytesIO(text.encode()), force_multigraph=True)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_every_message_is_an_edge_and_reads_back(protocol):
    _, part = sliced(protocol)
    events = {event.id: event for event in part.events()}
    back = networkx.read_graphml(
        io.BytesIO(written(part, "title", ("a note",)).encode()), force_multigraph=True
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


def test_fields_are_attributes_in_their_types():
    _, part = sliced(PeerToPeer(0.1))
    back = read(written(part, "t"))
    events = {event.id: event for event in part.events()}
    for _, _, key, about in back.edges(keys=True, data=True):
        found = {name[6:]: value for name, value in about.items() if name.startswith("field_")}
        assert found == {name: str(value).lower() for name, value in events[key].fields.items()}


def test_what_is_sealed_wide_or_large_is_text():
    _, part = sliced(PROTOCOLS["secure aggregation"])
    back = read(written(part, "t"))
    events = {event.id: event for event in part.events()}
    kinds = {}
    for _, _, key, about in back.edges(keys=True, data=True):
        for name in part.fields(about["kind"]):
            kinds.setdefault(name, set()).add(type(about[f"field_{name}"]))
            if about["kind"] == "share":
                assert about[f"field_{name}"] == "sealed for user"
            elif isinstance(about[f"field_{name}"], int):
                assert about[f"field_{name}"] == events[key].fields[name]
    assert all(len(found) == 1 for found in kinds.values())
    assert {"key": {str}, "seed": {str}, "bag": {int}, "stayed": {str}}.items() <= kinds.items()


def test_a_viewpoint_s_fields_are_only_those_it_reads():
    protocol = EncryptedShuffle(1.0)
    run, _ = sliced(protocol)
    for view, word in (("shuffler", "sealed for learner"), ("learner", None)):
        seen = run.view(view)
        back = read(written(Slice.of(seen.kinds, seen.messages), "t"))
        fields = [about["field_y"] for *_, about in back.edges(data=True)]
        assert len(fields) == sum(len(columns["round"]) for columns in seen.messages.values()) > 0
        assert set(fields) == ({word} if word else {0, 1})
        assert {about["readable"] for *_, about in back.edges(data=True)} == {word is None}
        text = written(Slice.of(seen.kinds, seen.messages), "t")
        assert 'attr.name="readable" attr.type="boolean"' in text
        assert not re.search(">(True|False|None)<", text)  # XML's are lower case, and it has no None


def test_a_number_that_no_other_program_holds_is_text():
    columns = {
        name: np.array(value)
        for name, value in {"round": [1, 1], "sender": [0, 1], "recipient": [1, 0], "seq": [0, 0]}.items()
    }
    about = (("user", "user"), "tells", None, ())

    def field(*kinds):
        names = [f"kind{i}" for i in range(len(kinds))]
        made = {
            name: columns | {"v": v, "nbytes": np.array([1, 1])} for name, v in zip(names, kinds, strict=True)
        }
        part = Slice(made, *(dict.fromkeys(names, one) for one in about), dict.fromkeys(names, 2))
        return [about["field_v"] for *_, about in read(written(part, "t")).edges(data=True)]

    for sign, dtype in ((1, np.uint64), (-1, np.int64)):
        assert set(field(np.array([sign * 2**53, 5], dtype))) == {5, sign * 2**53}
        assert set(field(np.array([sign * (2**53 + 1), 5], dtype))) == {"5", str(sign * (2**53 + 1))}
    mixed = field(np.array([1, 0]), np.array([True, False]))
    assert sorted(mixed) == ["0", "1", "false", "true"]
    octets = np.arange(64, dtype=np.uint8).reshape(2, 32)
    assert set(field(octets)) == {f"0x{row.tobytes().hex()}" for row in octets}


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
    text = written(evil(), EVIL[0], tuple(EVIL))
    graph = networkx.read_graphml(io.BytesIO(text.encode()), force_multigraph=True)
    assert graph.number_of_edges() == 2 * len(EVIL)
    assert EVIL[0] in {about["kind"] for _, _, about in graph.edges(data=True)}
    assert "<script" not in text


def test_the_same_run_gives_the_same_bytes_and_nothing_is_a_graph_too():
    texts = {written(sliced(PROTOCOLS["peer to peer"])[1], "t") for _ in range(2)}
    assert len(texts) == 1
    empty = written(Slice.of({}, {}), "t")
    assert len(networkx.read_graphml(io.BytesIO(empty.encode()))) == 0


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_the_document_is_that_of_networkx(protocol):
    _, part = sliced(protocol)
    graph = to_networkx(part)
    for name, about in graph.nodes(data=True):
        about.update({"user": int(name[5:])} if about["role"] == "user" else {})
    graph.graph = {"title": "t", "notes": "a; b"}
    whole = io.BytesIO()
    networkx.write_graphml_xml(graph, whole)
    assert written(part, "t", ("a", "b")) == whole.getvalue().decode()


@pytest.mark.slow
def test_a_document_of_many_messages_is_not_held():
    part = large(4_000)
    characters: list[int] = []
    held = peak(lambda: characters.append(sum(map(len, graphml(part, "t")))))
    assert characters[0] > 200 * len(part)
    assert held < 4e6  # its graph and elements are 30 MB
