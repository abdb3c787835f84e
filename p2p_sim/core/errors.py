"""The two ways things go wrong: what a person passed in, and what a protocol program did."""

from __future__ import annotations


class InputError(ValueError):
    """Something passed in cannot be used; the text names it, its value, what is allowed and what to do."""


class RunLostError(RuntimeError):
    """A process of a run was lost; the text says what to do.  Running again gives the same bits."""


class ProtocolError(RuntimeError):
    """A protocol program broke a rule of the engine; the text names role, step, message and fix."""
