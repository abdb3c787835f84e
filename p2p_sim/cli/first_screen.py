"""What ``p2p-sim`` alone prints: what one can do, in groups, with examples that work in an empty folder, in order."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

ABOUT = "p2p-sim: run a label-privacy protocol message by message, and see what each party learns."

GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "Run": (("run peer-to-peer --data digits", "real examples; train a model"),),
    "Choose": (
        ("compare --data digits --target epsilon=1", "which to take; or on your file"),
        ("mechanisms", "all protocols"),
        ("data digits", "its columns; or your file's"),
        ("account peer-to-peer --alpha 0.1 --cluster-size 200", "what each party learns"),
        ("calibrate peer-to-peer --vary alpha --view user --epsilon 1 --cluster-size 200", ""),
    ),
    "Doubt": (
        ("audit peer-to-peer --view user --cluster-size 50", "measure what a view learns"),
        ("attack randomized-response --users 5000", "guess the labels"),
        ("leakage --data digits --flip 0.01", "what features tell of labels"),
        ("errata", "the papers' errors, in numbers"),
    ),
    "Look": (
        ("report runs/latest", "a page on a run"),
        ("trace serve runs/latest", "its messages, in a browser"),
        ("replay runs/latest --user 17", "one user's life, recomputed"),
        ("ls runs", "runs that are kept"),
    ),
    "Make": (
        ("new my_protocol", "a protocol of your own"),
        ("check my_protocol:MyProtocol", "the same bits everywhere?"),
        ("doctor", "can it work here?"),
        ("completion bash", "names that TAB completes"),
    ),
}
"""Examples of verbs, by what they are for, each with a few words; each needs nothing but those above it."""

_GROUP, _WIDE = 8, 100


def text(verbs: Iterable[str], room: int | None = None) -> str:
    """Return the screen.

    ``verbs``: all there are; those without an example are named at its end.  ``room``: letters of a line, if it is
    known.  Where there is little, what an example does stands below it; commands stay whole, to be copied.
    """
    others = [verb for verb in verbs if verb not in named()]
    more = f"Also {', '.join(others)}.  " if others else ""
    last = f"{more}All: p2p-sim --help; options of one: p2p-sim VERB --help"
    width = _WIDE if room is None else min(room, _WIDE)
    about, ending = ([line] if room is None else textwrap.wrap(line, room) for line in (ABOUT, last))
    return "\n".join([*about, *_examples(width), *ending]) + "\n"


def _examples(width: int) -> list[str]:
    """Return the groups: on the left examples, on the right what they do."""
    longest = max(len(what) for examples in GROUPS.values() for _, what in examples)
    right, lines = max(width - longest, _GROUP + 2), list[str]()
    for group, examples in GROUPS.items():
        for number, (words, what) in enumerate(examples):
            line = f"{group if number == 0 else '':<{_GROUP}}p2p-sim {words}"
            beside = f"{line:<{max(right - 2, 0)}}  {what}".rstrip()
            lines += [beside] if not what or len(beside) <= width else [line, f"{'':{right}}{what}"]
    return lines


def named() -> set[str]:
    """Return the verbs that have an example."""
    return {words.split()[0] for examples in GROUPS.values() for words, _ in examples}
