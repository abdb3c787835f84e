"""Messages as a networkx graph and GraphML: parties are nodes, and every message is an edge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER
from p2p_sim.render import text_labels
from p2p_sim.render.message_table import MessageTable, tabulate
from p2p_sim.trace.slices import Event, Slice

Array = npt.NDArray[Any]
_AT_ONCE = 4096  # parties that are written at once
_LARGEST = 2**53  # beyond it, programs that compute in floating point round
_LETTERS = 200  # of octets or several numbers: keys and shares are whole


def fields(part: Slice, event: Event) -> dict[str, str]:
    """Return the fields of a message as text, by name."""
    names = map(text_labels.clean, part.fields(event.kind))
    if event.fields is None or _sealed(part, event.kind):
        sealed = part.sealed[event.kind]
        return dict.fromkeys(names, f"sealed for {text_labels.clean(sealed)}" if sealed else "not readable")
    columns = part.kinds[event.kind]
    values = (
        value if columns[name].ndim == 1 else np.array(value, columns[name].dtype)
        for name, value in event.fields.items()
    )  # fmt: skip
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
        graph.add_edge(*event.ends, key=event.id, **_attributes(part, event, numbers))
    return graph


def _attributes(part: Slice, event: Event, numbers: set[str]) -> dict[str, Any]:
    """Return what an edge says of its message."""
    about: dict[str, Any] = {
        "kind": event.kind, "round": event.round, "seq": event.seq, "nbytes": event.nbytes,
    }  # fmt: skip
    if "readable" in part.kinds[event.kind]:
        about["readable"] = event.fields is not None
    return about | {f"field_{name}": value for name, value in plain(part, event, numbers).items()}


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


def graphml(part: Slice, title: str, notes: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the messages as a GraphML document in pieces; ``title`` and ``notes`` become attributes of the graph.

    It is that of networkx's writer for ``to_networkx``, with the edges of a sender together, but neither the graph nor
    the document is held: of a million messages they take gigabytes.
    """
    table = tabulate(part)
    nodes, edges = _insertion_order(table)
    order, numbers = (table.kind[edges], table.row[edges]), readable_numbers(part)
    about = {"title": text_labels.clean(title, 400)}
    about |= {"notes": text_labels.clean("; ".join(notes), 2000)} if notes else {}
    writer = _Writer()
    kinds, first = np.unique(order[0], return_index=True)
    sample = np.sort(first[: len(kinds)])
    ends = [*nodes[nodes >= 0][:1].tolist(), *nodes[nodes < 0].tolist()]
    some = part.events((order[0][sample], order[1][sample]))
    yield writer.head([
        *writer.data("graph", about), *(writer.node(table, number) for number in ends),
        *(writer.edge(event, _attributes(part, event, numbers)) for event in some),
    ])  # fmt: skip
    names: set[str] = set()
    for low in range(0, len(nodes), _AT_ONCE):
        for number in nodes[low : low + _AT_ONCE].tolist():
            name = text_labels.clean(table.name(number))
            if number >= 0 or name not in names:  # names of servers may be the same once they are shortened
                yield writer.text(writer.node(table, number))
            names |= {name} if number < 0 else set()
    for event in part.events(order):
        yield writer.text(writer.edge(event, _attributes(part, event, numbers)))
    yield from map(writer.text, writer.data("graph", about))
    yield "  </graph>\n</graphml>\n"


def _insertion_order(table: MessageTable) -> tuple[Array, Array]:
    """Return parties and rows as a networkx graph iterates over them if messages are added in order.

    Parties come as they first occur.  Rows come by sender, then by recipient as that sender first wrote to them.
    """
    ends = np.column_stack([table.sender, table.recipient])
    numbers, first = np.unique(ends, return_index=True)
    shown = np.argsort(first)
    rank = np.empty(len(numbers), np.int64)
    rank[shown] = np.arange(len(numbers))
    sender, recipient = (rank[np.searchsorted(numbers, column)] for column in ends.T)
    _, began, pair = np.unique(sender * len(numbers) + recipient, return_index=True, return_inverse=True)
    return numbers[shown], np.lexsort((began[pair.reshape(-1)], sender))


class _Writer:
    """Makes the elements of a document one by one, with networkx's writer, which knows their types.

    Not with its writer for lxml, whose bytes are others.
    """

    def __init__(self) -> None:
        from networkx.readwrite.graphml import GraphMLWriter

        self._writer = GraphMLWriter()

    def head(self, _made: Sequence[ElementTree.Element]) -> str:
        """Return all before the first node; every attribute must occur in the elements that were made before."""
        self._writer.indent(self._writer.xml)
        keys = ElementTree.tostring(self._writer.xml, "unicode").rstrip().removesuffix("</graphml>")
        return f"<?xml version='1.0' encoding='utf-8'?>\n{keys}  <graph edgedefault=\"directed\">\n"

    def data(self, scope: str, about: Mapping[str, Any]) -> list[ElementTree.Element]:
        """Return attributes as elements."""
        found = [self._writer.add_data(name, type(value), value, scope) for name, value in about.items()]
        for element, value in zip(found, about.values(), strict=True):
            if isinstance(value, bool):
                element.text = str(value).lower()  # as XML has it: true, false
        return found

    def node(self, table: MessageTable, number: int) -> ElementTree.Element:
        """Return a party as an element."""
        role, _ = table.party(number)
        element = ElementTree.Element("node", id=text_labels.clean(table.name(number)))
        element.extend(
            self.data("node", {"role": text_labels.clean(role)} | ({"user": number} if role == USER else {}))
        )
        return element

    def edge(self, event: Event, about: Mapping[str, Any]) -> ElementTree.Element:
        """Return a message as an element."""
        source, target = map(text_labels.clean, event.ends)
        element = ElementTree.Element(
            "edge", source=source, target=target, id=text_labels.clean(event.id, 200)
        )
        element.extend(self.data("edge", {**about, "kind": text_labels.clean(event.kind)}))
        return element

    def text(self, element: ElementTree.Element) -> str:
        """Return an element inside the graph as text."""
        self._writer.indent(element, 2)
        element.tail = "\n"
        return "    " + ElementTree.tostring(element, "unicode")
