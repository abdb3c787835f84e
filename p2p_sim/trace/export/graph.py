"""Messages as a networkx graph: parties are nodes, and every message is an edge."""

from __future__ import annotations

import io
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.trace.diagram import labels
from p2p_sim.trace.export import told
from p2p_sim.trace.slices import Slice


def to_networkx(part: Slice) -> Any:
    """Return a ``MultiDiGraph``: nodes ``user:17`` and ``learner`` with their role; an edge a message.

    An edge's key is the message's id; it has ``kind``, ``round``, ``seq``, ``nbytes`` (0 to oneself) and its fields as
    ``field_NAME``, whole numbers if all are, otherwise text; and, where somebody looks,
    ``readable``: whether she can read the fields.
    """
    import networkx

    graph, numbers = networkx.MultiDiGraph(), told.numbers(part)
    for event in part.events():
        for name, role in zip(event.ends, event.roles, strict=True):
            graph.add_node(name, role=role)
        about: dict[str, Any] = {
            "kind": event.kind,
            "round": event.round,
            "seq": event.seq,
            "nbytes": event.nbytes,
        }
        if "readable" in part.kinds[event.kind]:
            about["readable"] = event.fields is not None
        about |= {f"field_{name}": value for name, value in told.plain(part, event, numbers).items()}
        graph.add_edge(*event.ends, key=event.id, **about)
    return graph


def who_asked_whom(part: Slice, kind: str | None = None) -> Any:
    """Return a ``DiGraph`` with one edge a pair of parties: ``weight``, how many messages; ``nbytes``, their bytes.

    ``kind``: count messages of one kind only, such as "ask".  Raises InputError for a kind that the slice lacks.
    """
    import networkx

    if kind is not None and kind not in part.kinds:
        raise InputError(f"no message kind {kind!r} in this slice; it has {list(part.kinds)}")
    graph = networkx.DiGraph()
    for event in part.events():
        if kind not in (None, event.kind):
            continue
        sender, recipient = event.ends
        for name, role in zip(event.ends, event.roles, strict=True):
            graph.add_node(name, role=role)
        if not graph.has_edge(sender, recipient):
            graph.add_edge(sender, recipient, weight=0, nbytes=0)
        graph[sender][recipient]["weight"] += 1
        graph[sender][recipient]["nbytes"] += event.nbytes
    return graph


def graphml(part: Slice, title: str, notes: tuple[str, ...] = ()) -> str:
    """Return the messages as a GraphML document; ``title`` and ``notes`` become attributes of the graph."""
    import networkx

    raw, graph = to_networkx(part), networkx.MultiDiGraph()
    graph.graph["title"] = labels.clean(title, 400)
    if notes:
        graph.graph["notes"] = labels.clean("; ".join(notes), 2000)
    for name, about in raw.nodes(data=True):
        role = labels.clean(about["role"])
        more = {"user": int(name.partition(":")[2])} if about["role"] == USER else {}
        graph.add_node(labels.clean(name), role=role, **more)
    for sender, recipient, key, about in raw.edges(keys=True, data=True):
        ends = labels.clean(sender), labels.clean(recipient)
        graph.add_edge(*ends, key=labels.clean(key, 200), **about | {"kind": labels.clean(about["kind"])})
    writer, out = (
        networkx.readwrite.graphml.GraphMLWriter(),
        io.BytesIO(),
    )  # not lxml's, whose bytes are others
    writer.add_graph_element(graph)
    bits = {key.get("id") for key in writer.xml.iter("key") if key.get("attr.type") == "boolean"}
    for datum in writer.xml.iter("data"):
        if datum.get("key") in bits:
            datum.text = datum.text.lower()  # as XML has it: true, false
    writer.dump(out)
    return out.getvalue().decode().rstrip("\n") + "\n"
