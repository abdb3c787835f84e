"""What a program reads of its parties, found in its code without running it."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

_LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")
"""How instructions begin that put a local variable on the stack, or two, of which the last is on top."""


def reads(kind: type, role: str, column: str) -> bool:
    """Return whether the program of a role reads a column of its parties, such as ``me.cluster``.

    The code of method ``role``, of the methods of ``kind`` that it or they name, and of such functions of their modules
    is searched for the attribute of a variable that is named as the method's party is.
    """
    program = getattr(kind, role, None)
    code = getattr(program, "__code__", None)
    if code is None or code.co_argcount < 2:
        return False
    party, seen, left = code.co_varnames[1], set[CodeType](), [program]
    while left:
        each = left.pop()
        if each is None or each.__code__ in seen:
            continue
        seen.add(each.__code__)
        for part in _parts(each.__code__):
            if _loads(part, party, column):
                return True
            left += [_named(kind, each, name) for name in part.co_names]
    return False


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _loads(code: CodeType, variable: str, attribute: str) -> bool:
    """Return whether an attribute of a variable is read."""
    top = None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and step.argval == attribute and top == variable:
            return True
        top = None
        if step.opname.startswith(_LOADS):
            top = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
    return False


def _named(kind: type, function: Any, name: str) -> Callable[..., Any] | None:
    """Return the method of a class, or else the function of a function's own module, that has a name; None: neither."""
    method = getattr(kind, name, None)
    if hasattr(method, "__code__"):
        return method
    other = function.__globals__.get(name)
    return other if hasattr(other, "__code__") and other.__module__ == function.__module__ else None
