"""Messages as a networkx graph and GraphML: parties are nodes, and every message is an edge."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.render import text_labels
from p2p_sim.trace.slices import Event, Slice

_LARGEST = 2**53  # beyond it, programs that compute in floating point round
_LETTERS = 200  # of octets or several numbers: keys and shares are whole


def fields(part: Slice, event: Event) -> dict[str, str]:
    """Return the fields of a message as text, by name."""
    names = map(text_labels.clean, part.fields(event.kind))
    if event.fields is None or _sealed(part, event.kind):
        sealed = part.sealed[event.kind]
        return dict.fromkeys(names, f"sealed for {text_labels.clean(sealed)}" if sealed else "not readable")
    columns = part.kinds[event.kind]
    values = (np.array(value, columns[name].dtype)[()] for name, value in event.fields.items())
    return dict(zip(names, (text_labels.value(value, _LETTERS) for value in values), strict=True))


def readable_numbers(part: Slice) -> set[str]:
    """Return the names of fields that are whole numbers up to 2^53 in every message that has them.

    Bits are not included: some programs read a missing bit as false.
    """
    found: dict[str, set[bool]] = {}
    for kind, columns in part.kinds.items():
        shut = _sealed(part, kind) or not columns.get("readable", np.ones(1, np.bool_)).all()
        for name in part.fields(kind):
            found.setdefault(name, set()).add(not shut and _whole(columns[name]))
    return {name for name, whole in found.items() if whole == {True}}


def _whole(column: npt.NDArray[Any]) -> bool:
    if column.ndim > 1 or column.dtype.kind not in "iu":
        return False
    return not column.size or bool(column.min() >= -_LARGEST and column.max() <= _LARGEST)


def plain(part: Slice, event: Event, numbers: set[str]) -> dict[str, str | int]:
    """Return the fields of a message by name: those in ``numbers`` as integers, all others as text."""
    known = event.fields or {}
    return fields(part, event) | {
        text_labels.clean(name): int(value) for name, value in known.items() if name in numbers
    }


def _sealed(part: Slice, kind: str) -> bool:
    """Return whether a kind's fields are sealed and there is no viewer who could read them."""
    return part.sealed[kind] is not None and "readable" not in part.kinds[kind]


def to_networkx(part: Slice) -> Any:
    """Return a ``MultiDiGraph``: nodes such as ``user:17`` and ``learner``, with their role; one edge a message.

    An edge's key is the message's id.  Its attributes are ``kind``, ``round``, ``seq``, ``nbytes`` (0 to oneself), the
    fields as ``field_NAME`` (integers if all are, otherwise text), and, if there is a viewer, ``readable``: whether she
    can read the fields.
    """
    import networkx

    graph, numbers = networkx.MultiDiGraph(), readable_numbers(part)
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
        about |= {f"field_{name}": value for name, value in plain(part, event, numbers).items()}
        graph.add_edge(*event.ends, key=event.id, **about)
    return graph


def who_asked_whom(part: Slice, kind: str | None = None) -> Any:
    """Return a ``DiGraph`` with one edge for each pair of parties: ``weight``: number of messages; ``nbytes``: bytes.

    ``kind``: count only messages of this kind, such as "ask".  Raises InputError for an unknown kind.
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
    graph.graph["title"] = text_labels.clean(title, 400)
    if notes:
        graph.graph["notes"] = text_labels.clean("; ".join(notes), 2000)
    for name, about in raw.nodes(data=True):
        role = text_labels.clean(about["role"])
        more = {"user": int(name.partition(":")[2])} if about["role"] == USER else {}
        graph.add_node(text_labels.clean(name), role=role, **more)
    for sender, recipient, key, about in raw.edges(keys=True, data=True):
        ends = text_labels.clean(sender), text_labels.clean(recipient)
        graph.add_edge(
            *ends, key=text_labels.clean(key, 200), **about | {"kind": text_labels.clean(about["kind"])}
        )
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
