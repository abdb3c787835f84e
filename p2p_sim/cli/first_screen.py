"""What ``p2p-sim`` alone prints: what one can do, in groups, with an example of each verb.  It needs no other file."""

from __future__ import annotations

from collections.abc import Iterable

ABOUT = "p2p-sim: run a label-privacy protocol message by message, and see what each party learns."

GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "Run": (
        ("run peer-to-peer --data digits", "real examples; train a model"),
        ("sweep grid.toml", "a grid of runs, in one table"),
    ),
    "Choose": (
        ("mechanisms", "the protocols there are"),
        ("data my.csv", "what is understood of a file"),
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
        ("diff runs/a runs/b", "the first message that differs"),
        ("ls runs", "runs that are kept"),
    ),
    "Make": (
        ("new my_protocol", "a protocol of your own"),
        ("check my_protocol:MyProtocol", "the same bits everywhere?"),
        ("doctor", "can it work here?"),
        ("completion bash", "names that TAB completes"),
    ),
}
"""Examples of verbs, by what they are for, each with a few words."""

_GROUP, _EXAMPLE = 8, 60


def text(verbs: Iterable[str]) -> str:
    """Return the screen.  ``verbs``: all there are; those without an example are named at its end."""
    others = [verb for verb in verbs if verb not in named()]
    lines = [ABOUT]
    for group, examples in GROUPS.items():
        for number, (words, what) in enumerate(examples):
            left = group if number == 0 else ""
            lines.append(f"{left:<{_GROUP}}{f'p2p-sim {words}':<{_EXAMPLE}}  {what}".rstrip())
    more = f"Also {', '.join(others)}.  " if others else ""
    return (
        "\n".join([*lines, f"{more}All verbs: p2p-sim --help; the options of one: p2p-sim VERB --help"])
        + "\n"
    )


def named() -> set[str]:
    """Return the verbs that have an example."""
    return {words.split()[0] for examples in GROUPS.values() for words, _ in examples}
