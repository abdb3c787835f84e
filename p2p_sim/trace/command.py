"""The command line that gives a run again, and the same without its seed."""

from __future__ import annotations

from collections.abc import Sequence

HIDDEN = "..."
"""What stands in place of a seed that is not told."""


def option(name: str, value: object) -> list[str]:
    """Return an option with its value as words; in one word where the value could be taken for an option."""
    text = str(value)
    return [f"{name}={text}"] if text.startswith("-") else [name, text]


def without_seed(words: Sequence[str]) -> list[str]:
    """Return a command in which the seed is not told, nor that it was the default."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != "--seed" and not word.startswith("--seed="):
            kept.append(word)
        skip = word == "--seed" and not skip
    return [*kept, "--seed", HIDDEN]
