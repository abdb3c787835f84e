"""Slices, cones, differences, statistics and users' histories as JSON values, text tables, CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, overload

import numpy as np

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import HEADER_BYTES, USER
from p2p_sim.core.population import Population
from p2p_sim.report import terminal
from p2p_sim.report.terminal import visible
from p2p_sim.rundir import parquet_columns as arrow_tables
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace.causality import Cone, ConeSide, Hidden, SameFields
from p2p_sim.trace.diff import RunComparison
from p2p_sim.trace.query import not_received
from p2p_sim.trace.replay import UserHistory
from p2p_sim.trace.slices import ADDRESS, Slice, message_id
from p2p_sim.trace.stats import QUANTILES, Stats

_ADDRESS = ("round", "sender", "recipient", "seq", "nbytes")
_LONGEST = 8
_AT_ONCE = 4096  # messages whose values are Python's at once


class _Rows(Sequence[dict[str, Any]]):
    """The messages of one kind as rows, made as they are asked for: a million of them would take a gigabyte."""

    def __init__(self, part: Slice, kind: str):
        self._kind, self._columns, self._fields = kind, part.kinds[kind], part.fields(kind)

    def __len__(self) -> int:
        return len(self._columns["round"])

    @overload
    def __getitem__(self, which: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, which: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        numbers = range(len(self))[which]
        if isinstance(numbers, int):
            return next(self._made(slice(numbers, numbers + 1)))
        return list(self._made(which if isinstance(which, slice) else slice(which, which + 1)))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for low in range(0, len(self), _AT_ONCE):
            yield from self._made(slice(low, low + _AT_ONCE))

    def _made(self, which: slice) -> Iterator[dict[str, Any]]:
        values = {name: column[which].tolist() for name, column in self._columns.items()}
        readable = values.get("readable", [True] * len(values["round"]))
        for i, known in enumerate(readable):
            yield (
                {"id": message_id(self._kind, *(values[name][i] for name in ADDRESS))}
                | {name: values[name][i] for name in _ADDRESS}
                | {"readable": known, "fields": {f: values[f][i] for f in self._fields} if known else None}
            )


def tables(part: Slice, offset: int = 0) -> list[dict[str, Any]]:
    """Return a slice as JSON values, one table a kind; ``offset``: how many rows of each were skipped."""
    return [_table_of(part, kind, offset) for kind in part.kinds]


def _table_of(part: Slice, kind: str, offset: int) -> dict[str, Any]:
    sender, recipient = part.roles[kind]
    return {
        "kind": kind, "text": part.texts[kind], "sender": sender, "recipient": recipient,
        "sealed_for": part.sealed[kind], "layers": list(part.layers[kind]), "fields": part.fields(kind),
        **counted(part.total[kind], _Rows(part, kind), offset),
    }  # fmt: skip


def counted(seen: int, rows: Sequence[dict[str, Any]], offset: int = 0) -> dict[str, Any]:
    """Return rows of a table, with how many there are in all and how many are left out."""
    return {"seen": seen, "offset": offset, "shown": len(rows), "left_out": seen - len(rows), "rows": rows}


def limited(columns: Mapping[str, Any], limit: int, offset: int = 0) -> dict[str, Any]:
    """Return some rows of a table, with how many there are in all."""
    values = [column[offset : offset + limit].tolist() for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
    return counted(len(next(iter(columns.values()))), rows, offset)


def of_users(columns: Mapping[str, Any], name: str, users: Any) -> dict[str, Any]:
    """Return the rows whose column ``name`` is one of some users (ids; None: all)."""
    mine = slice(None) if users is None else np.isin(columns[name], users)
    return {key: column[mine] for key, column in columns.items()}


def draws(drawn: Mapping[str, Any], users: Any, limit: int, offset: int = 0) -> dict[str, Any]:
    """Return draws as rows (stream, party, slot, value) of servers and of some users (ids; None: all)."""
    seen = 0
    rows: list[dict[str, Any]] = []
    for stream, columns in drawn.items():
        own = of_users(columns, "party", users if stream.startswith(f"{USER}/") else None)
        here = limited(own, max(0, limit - len(rows)), max(0, offset - seen))
        seen += here["seen"]
        rows += [{"stream": stream} | row for row in here["rows"]]
    return counted(seen, rows, offset)


def cuts(document: Mapping[str, Any]) -> list[str]:
    """Return notes on what is not shown."""
    found = list(document["notes"])
    found += [f"{part['kind']}: {shown_text(part)}" for part in document["messages"] if part["left_out"]]
    for name in ("inputs", "draws"):
        if document.get(name, {}).get("seen"):
            found.append(
                f"own {name}: {document[name]['seen']:,} rows, which are not messages; --format json has them"
            )
    return found


def shown_text(part: Mapping[str, Any]) -> str:
    """Return how many rows are shown, and how to see the others."""
    shown, seen, first = part["shown"], part["seen"], part["offset"] + 1
    if not part["left_out"]:
        return f"{shown:,} of {seen:,} shown"
    if not part["offset"]:
        return f"{shown:,} of {seen:,} shown; --limit shows the other {part['left_out']:,}"
    span = f"{first:,} to {first + shown - 1:,}" if shown else "none"
    return f"{span} of {seen:,} shown; --limit and --offset show the others"


def as_csv(document: Mapping[str, Any]) -> str:
    """Return all messages as one CSV table with the fields of all kinds; unreadable fields are empty."""
    return csv_of(document["messages"])


def csv_of(
    parts: Sequence[Mapping[str, Any]],
    lead: Sequence[str] = (),
    leading: Sequence[Sequence[Any]] | None = None,
) -> str:
    """Return tables of messages as one CSV table.

    ``lead``: names of additional first columns; ``leading``: their values for each table.
    """
    names = list(dict.fromkeys(name for part in parts for name in part["fields"]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*lead, "kind", "sender_role", "recipient_role", *_ADDRESS, "readable", *names])
    for number, part in enumerate(parts):
        first = () if leading is None else leading[number]
        for row in part["rows"]:
            fields = row["fields"] or {}
            head = [
                *first,
                part["kind"],
                part["sender"],
                part["recipient"],
                *(row[name] for name in _ADDRESS),
            ]
            writer.writerow([*head, row["readable"], *(fields.get(name, "") for name in names)])
    return out.getvalue()


def parquet(part: Slice) -> bytes:
    """Return all messages as one Parquet file: columns as in CSV, null for missing and unreadable fields.

    A field whose type differs between kinds is called KIND.FIELD.
    """
    import pyarrow as pa
    from pyarrow import parquet as files

    types: dict[str, set[Any]] = {}
    for kind, columns in part.kinds.items():
        for name in part.fields(kind):
            types.setdefault(name, set()).add((columns[name].dtype, columns[name].shape[1:]))
    joined = []
    for kind, columns in part.kinds.items():
        size = len(columns["round"])
        readable = columns.get("readable", np.ones(size, np.bool_))
        found = {name: columns[name] for name in _ADDRESS} | {"readable": readable}
        called = {name: name if len(types[name]) == 1 else f"{kind}.{name}" for name in part.fields(kind)}
        found |= {new: columns[name] for name, new in called.items()}
        table = arrow_tables.arrow(found, dict.fromkeys(called.values(), ~readable))
        for name, value in zip(
            ("recipient_role", "sender_role", "kind"), (*part.roles[kind][::-1], kind), strict=True
        ):
            table = table.add_column(0, name, pa.repeat(value, size))
        joined.append(table)
    sink = pa.BufferOutputStream()
    files.write_table(pa.concat_tables(joined, promote_options="default"), sink, compression="zstd")
    found_bytes: bytes = sink.getvalue().to_pybytes()
    return found_bytes


def as_text(document: Mapping[str, Any]) -> str:
    """Return messages, inputs and draws as text tables."""
    what = (
        "every field shown"
        if document["view"] is None
        else f"as {document['coalition']} saw it, channels {document['channels']}"
    )
    blocks = [
        [
            f"{document['run']} ({document['protocol']}), {what}",
            *(f"note: {note}" for note in document["notes"]),
        ]
    ]
    blocks += [lines(part) for part in document["messages"]]
    for name, title in (("inputs", "Own inputs"), ("draws", "Own draws")):
        if name in document:
            blocks.append([title, *lines_of(document[name])])
    if "unknown" in document:
        blocks.append([f"Own inputs and draws are not shown: {document['unknown']}"])
    return "\n\n".join("\n".join(map(visible, block)) for block in blocks) + "\n"


FORMATS: dict[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {
    "table": lambda document: [as_text(document)], "json": terminal.json_pieces,
    "csv": lambda document: [as_csv(document)],
}  # fmt: skip
"""Functions that format a document of messages as text in pieces, by format."""


def lines(part: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table of the messages of one kind."""
    route = f"{part['kind']}, {part['sender']} to {part['recipient']}: {part['text']}"
    rows = [_message_row(part, row) for row in part["rows"]]
    return [route, *_table([*_ADDRESS, *part["fields"]], rows, part)]


def lines_of(rows: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table of other rows."""
    cells = [[cell(value) for value in row.values()] for row in rows["rows"]]
    return _table(list(rows["rows"][0]) if cells else [], cells, rows)


def sides(difference: Mapping[str, Any], first: str, second: str) -> list[str]:
    """Return the fields of a message in two runs, as one line a run; ``first``, ``second``: names of the runs."""
    found = []
    for name, fields in ((first, difference["first"]), (second, difference["second"])):
        pairs = [] if fields is None else [f"{key} = {cell(value)}" for key, value in fields.items()]
        found.append(f"  {name}: {'not there' if fields is None else ', '.join(pairs) or 'there'}")
    return found


def _message_row(part: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    names = {end: part[end] for end in ("sender", "recipient") if part[end] != USER}
    cells = [str(names.get(name, row[name])) for name in _ADDRESS]
    if row["fields"] is not None:
        return cells + [cell(value) for value in row["fields"].values()]
    sealed = f"sealed, {max(row['nbytes'] - HEADER_BYTES, 0)} bytes"
    return cells + [sealed if part["sealed_for"] else "not readable"] * len(part["fields"])


def _table(names: list[str], rows: list[list[str]], part: Mapping[str, Any]) -> list[str]:
    if not rows:
        return ["none" if not part["left_out"] else shown_text(part)]
    right = [all(row[i].lstrip("-").isdigit() for row in rows) for i in range(len(names))]
    widths = [max(len(row[i]) for row in rows) if right[i] else 0 for i in range(len(names))]
    padded = [[text.rjust(width) for text, width in zip(row, widths, strict=True)] for row in rows]
    return [*terminal.table(names, padded).splitlines(), shown_text(part)]


def cell(value: Any) -> str:
    """Return one value as text; of a long list, the first few entries."""
    if isinstance(value, list):
        shown = ", ".join(map(cell, value[:_LONGEST]))
        return f"[{shown}]" if len(value) <= _LONGEST else f"[{shown}, ... {len(value):,} values]"
    return str(value).lower() if isinstance(value, bool) else str(value)


_TITLES = {
    "before": "May have depended on (all that its sender had received in earlier rounds, and so on)",
    "after": "May have led to (all that its recipient sent in later rounds, and so on)",
}


def cone_document(found: Cone) -> dict[str, Any]:
    """Return a cone as JSON values."""
    return {
        "notes": list(found.notes),
        "message": tables(found.message)[0]["rows"][0],
        "text": next(iter(found.message.texts.values())),
        "before": _half(found.before),
        "after": _half(found.after),
        "hidden": asdict(found.hidden) | {"text": sentence(found.hidden)},
    }


def _half(half: ConeSide) -> dict[str, Any]:
    rows = [
        {"round": round, "kind": kind, "messages": number} for (kind, round), number in half.counts.items()
    ]
    return {
        "messages": half.messages, "users": half.users,
        "rounds": sorted(rows, key=lambda row: row["round"]), "nearest": tables(half.nearest),
    }  # fmt: skip


def sentence(hidden: Hidden) -> str:
    """Return a sentence on what the recipient of a message cannot see of its origin."""
    who, whom = hidden.sender, hidden.recipient
    if who == whom:
        return f"Nothing is hidden: {who} sent it to herself."
    if not hidden.unseen:
        return (
            f"Nothing is hidden: nothing that carries anything had reached {who} but what {whom} sent; it can only "
            f"come from what {who} held and drew."
        )
    count = " and ".join(f"{number:,} {kind}" for kind, number in hidden.unseen.items())
    plural = "s" if sum(hidden.unseen.values()) > 1 else ""
    start = f"The protocol hides its origin: {whom} does not see the {count} message{plural} that had reached {who}"
    if not who.startswith(USER):
        among = _alike(hidden.alike)
        return (
            f"{start}, from {_users(hidden.users)}; which of them it was made from, only {who} knows{among}."
        )
    if hidden.users is None:
        return f"{start}; from whom they may have come is not known without protocol and population."
    group = f"of cluster {hidden.cluster}" if hidden.cluster is not None else f"who can reach {who}"
    return f"{start}; it may carry what any of the {_users(hidden.users)} {group} handed on."


def _users(number: int | None) -> str:
    return "no user" if not number else "1 user" if number == 1 else f"{number:,} users"


def _alike(alike: tuple[SameFields, ...]) -> str:
    parts = [f"{row.messages:,} {row.kind} with the same {' and '.join(row.fields)}" for row in alike]
    return f" (among them {', '.join(parts)})" if parts else ""


def cone_text(document: Mapping[str, Any]) -> str:
    """Return a cone as text."""
    row = document["message"]
    fields = "".join(f"; {name} = {cell(value)}" for name, value in row["fields"].items())
    head = [
        f"{document['run']} ({document['protocol']}), message {row['id']}: {document['text']}{fields}",
        *(f"note: {note}" for note in document["notes"]),
    ]
    blocks = ["\n".join(map(visible, head)), visible(document["hidden"]["text"])]
    for way, title in _TITLES.items():
        half = document[way]
        who = f"{half['messages']:,} messages, {'sent' if way == 'before' else 'received'} by {_users(half['users'])}"
        if not half["messages"]:
            blocks.append(f"{title}: nothing")
            continue
        rows = [[row["round"], row["kind"], row["messages"]] for row in half["rounds"]]
        blocks.append(f"{title}: {who}\n{terminal.table(['round', 'kind', 'messages'], rows)}")
        blocks += ["\n".join(map(visible, lines(part))) for part in half["nearest"]]
    return "\n\n".join(blocks) + "\n"


_PARTS = ("settings", "population", "counts", "outputs", "digest")


def diff_document(found: RunComparison) -> dict[str, Any]:
    """Return a comparison as JSON values; ``first``: the first message that differs, in causal order."""
    differences = found.messages
    result: dict[str, Any] = {"equal": found.equal, "notes": list(found.notes)}
    result |= {name: [asdict(unlike) for unlike in getattr(found, name)] for name in _PARTS}
    result["messages"] = None
    if differences is not None:
        rows = [
            {name: value for name, value in asdict(row).items() if name != "least"} for row in differences
        ]
        result["messages"] = {
            "compared": list(found.compared), "different": rows, "first": differences[0].least if differences else None
        }  # fmt: skip
    return result


def diff_text(document: Mapping[str, Any]) -> str:
    """Lay out a comparison: what differs first, then what was compared."""
    head = f"{document['first_run']} and {document['second_run']}: {'equal' if document['equal'] else 'DIFFERENT'}"
    blocks = ["\n".join(map(visible, [head, *(f"note: {note}" for note in document["notes"])]))]
    rows = [
        [row["what"], _value(row["first"]), _value(row["second"]), row["differ"], row["party"]]
        for part in _PARTS
        for row in document[part]
    ]
    if rows:
        blocks.append(terminal.table(["What", "first", "second", "differ", "first party"], rows))
    if document["messages"] is not None:
        blocks.append(_messages(document["messages"]))
    return "\n\n".join(blocks) + "\n"


def _messages(document: Mapping[str, Any]) -> str:
    one, other = document["compared"]
    first = document["first"]
    if first is None:
        return f"Messages: {one:,} compared; all are equal."
    names = ["round", "kind", "only_first", "only_second", "changed"]
    rows = [[row[name] for name in names] for row in document["different"]]
    table = terminal.table(["round", "kind", "only in the first", "only in the second", "other fields"], rows)
    head = f"The first that differs: {first['id']}, from {first['sender']} to {first['recipient']}"
    lines = [head, *sides(first, "first", "second")]
    return f"Messages: {one:,} and {other:,} compared\n{table}\n\n" + "\n".join(map(visible, lines))


def _value(value: Any) -> str:
    return "none" if value is None else cell(value)


def stats_document(found: Stats) -> dict[str, Any]:
    """Return statistics as JSON values."""
    return {
        "notes": list(found.notes),
        "rounds": [
            {"round": round, "kind": kind, **_count(count)} for (kind, round), count in found.counts.items()
        ],
        "roles": [{"role": role, "way": way, **_count(count)} for (role, way), count in found.roles.items()],
        "between": [
            {"kind": kind, "sender": sender, "recipient": recipient, **_count(count)}
            for (kind, sender, recipient), count in found.between.items()
        ],
        "degrees": [
            {"way": degree.way, "kind": degree.kind, "round": degree.round, **_spread(asdict(degree.spread))}
            for degree in found.degrees
        ],
    }


def _count(count: Count) -> dict[str, int]:
    return {"messages": count.messages, "travelled": count.travelled, "bytes": count.nbytes}


def _spread(spread: dict[str, Any]) -> dict[str, Any]:
    named = {f"q{round(100 * q)}": n for q, n in zip(QUANTILES, spread.pop("quantiles"), strict=True)}
    return spread | named


def stats_text(document: Mapping[str, Any]) -> str:
    """Return statistics as text tables."""
    head = [f"{document['run']} ({document['protocol']})", *(f"note: {note}" for note in document["notes"])]
    blocks = ["\n".join(map(visible, head))]
    names, titles = ("messages", "travelled", "bytes"), ("delivered", "travelled", "bytes")
    rows = [[row["round"], row["kind"], *(row[name] for name in names)] for row in document["rounds"]]
    rows.append(["in all", None, *(sum(row[name] for row in document["rounds"]) for name in names)])
    blocks.append(terminal.table(["round", "kind", *titles], rows))
    rows = [[f"{row['sender']} to {row['recipient']}", row["kind"], *(row[name] for name in names)]
            for row in document["between"]]  # fmt: skip
    blocks.append(terminal.table(["who to whom", "kind", *titles], rows))
    rows = [[row["role"], row["way"], *(row[name] for name in names)] for row in document["roles"]]
    blocks.append(terminal.table(["role", "", *titles], rows))
    if document["degrees"]:
        blocks.append(_degrees(document["degrees"]))
    return "\n\n".join(blocks) + "\n"


def _degrees(degrees: list[dict[str, Any]]) -> str:
    numbers = ["users", "none", "least", *(f"q{round(100 * q)}" for q in QUANTILES), "most", "mean"]
    rows = []
    for row in degrees:
        kind = "all kinds" if row["kind"] is None else row["kind"]
        span = "all" if row["round"] is None else str(row["round"])
        rows.append(
            [f"{kind}, {row['way']}", span, *(row[name] for name in numbers), f"{USER}:{row['busiest']}"]
        )
    title = "Messages a user (qP: the least number that P % of the users do not exceed)"
    return f"{title}\n{terminal.table(['', 'round', *numbers, 'most by'], rows)}"


_WAYS = ("sent", "received")


def replay_document(run: RunRecord, people: Population, history: UserHistory, limit: int) -> dict[str, Any]:
    """Return a life as JSON values; ``people``: of the population at least her; ``limit``: most rows of each table."""
    assert run.source is not None  # which recomputed the life
    row, clusters, kinds = people.row(history.user, "replay"), people.clusters, run.source.messages()
    result: dict[str, Any] = {
        "users": run.users or people.users,
        "world": history.world,
        "cluster": None if clusters is None or clusters.labels is None else int(clusters.label[row]),
        "y": people.y[row].item(),
        "notes": list(not_received(run)),
    }
    for way in _WAYS:
        columns = getattr(history, way)
        total = {kind: len(found["round"]) for kind, found in columns.items()}
        some = {kind: {name: c[:limit] for name, c in found.items()} for kind, found in columns.items()}
        result[way] = tables(Slice.of(kinds, some, total))
    drawn = [{"name": d.name, "step": d.step, "value": np.asarray(d.value).tolist()} for d in history.drawn]
    result["drawn"] = counted(len(drawn), drawn[:limit])
    return result


def replay_text(histories: Sequence[Mapping[str, Any]]) -> str:
    """Return histories as text tables."""
    return "\n\n".join(map(_page, histories))


def _page(document: Mapping[str, Any]) -> str:
    blocks = [_head(document)]
    for way in _WAYS:
        for part in document[way]:
            head, *rest = lines(part)
            blocks.append([f"{way}: {head}", *rest])
    blocks.append(["drawn", *lines_of(document["drawn"])])
    blocks.append(verdict(document))
    return "\n\n".join("\n".join(map(visible, block)) for block in blocks) + "\n"


def _head(document: Mapping[str, Any]) -> list[str]:
    cluster = "" if document["cluster"] is None else f", in cluster {document['cluster']}"
    held = cell(document["y"])
    return [
        f"{document['run']} ({document['protocol']}), user {document['user']}{cluster}, label {held}",
        f"recomputed from seed {document['seed']} by running {document['world']:,} of {document['users']:,} "
        "users again",
        *(f"by other code: {what}" for what in document["code"]),
        *(f"note: {note}" for note in document["notes"]),
    ]


def notes(document: Mapping[str, Any]) -> list[str]:
    """Return notes that a table of her messages lacks: what is left out, and whether the trace agrees."""
    parts = [(way, part) for way in _WAYS for part in document[way]]
    cut = [f"{way} {part['kind']}: {shown_text(part)}" for way, part in parts if part["left_out"]]
    return [*document["notes"], *cut, *verdict(document)]


def verdict(document: Mapping[str, Any]) -> list[str]:
    """Return lines that say whether the trace agrees."""
    found = document["compared"]
    if found is None:
        return ["Compared with no trace: the run kept no messages."]
    count = f"The trace ({found['trace']}) holds {found['held']:,} of her {found['replayed']:,} messages"
    if not found["different"]:
        return [f"{count}; they are equal."]
    difference = found["first"]
    line = f"{count}; {found['different']:,} DIFFER.  The first: {difference['id']}"
    return [line, *sides(difference, "replayed", "in the trace")]


def replay_csv(histories: Sequence[Mapping[str, Any]]) -> str:
    """Return all messages as one CSV table; the first columns are the user, and sent or received."""
    parts = [
        (document["user"], way, part) for document in histories for way in _WAYS for part in document[way]
    ]
    return csv_of([part for *_, part in parts], ("user", "way"), [first for *first, _ in parts])


def as_json(histories: Sequence[Mapping[str, Any]]) -> str:
    """Return one history as JSON, several as a list."""
    return terminal.as_json(histories if len(histories) > 1 else histories[0])


REPLAY_FORMATS: dict[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
    "table": replay_text, "json": as_json, "csv": replay_csv
}  # fmt: skip
"""Functions that format histories, by format."""
