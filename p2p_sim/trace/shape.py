"""What a manifest must look like, for those that tell no checksum: earlier versions wrote none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from p2p_sim.trace.compact import ADDRESSES, STORED

_Fits = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _text(value: Any) -> bool:
    return type(value) is str


def _or_none(fits: _Fits) -> _Fits:
    return lambda value: value is None or fits(value)


def _dtype(value: Any) -> bool:
    return value in ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def _rule(value: Any) -> bool:
    """Whether this is how an address column is kept; see ``compact``."""
    if type(value) is not dict or len(value) != 1:
        return bool(value == STORED)
    (name, told), whole = next(iter(value.items())), type(next(iter(value.values()))) is int
    copied = type(told) is list and len(told) == 2 and all(map(_text, told))
    return {"all": whole, "from": whole, "as": copied}.get(name, False)


_WHOLE: dict[str, _Fits] = {
    "complete": lambda value: type(value) is bool, "level": _text, "users": _or_none(_number), "protocol": _text,
}  # fmt: skip
_KIND: dict[str, _Fits] = {
    "sender": _text, "recipient": _text, "text": _text, "sealed_for": _or_none(_text), "nbytes": _number,
}  # fmt: skip
_FIELD: dict[str, _Fits] = {"dtype": _dtype, "length": _or_none(_number)}
_COUNT: dict[str, _Fits] = dict.fromkeys(("round", "messages", "travelled", "nbytes"), _number)
_FILE: dict[str, _Fits] = {
    "file": _text,
    "round": _number,
    "rows": _number,
    **dict.fromkeys(ADDRESSES, _rule),
}


def check(told: Mapping[str, Any]) -> None:
    """Raise ValueError unless this is a manifest."""
    _fields("", told, _WHOLE)
    for kind, about in _named("kinds", told).items():
        _fields(f"kinds: {kind}: ", about, _KIND)
        for name, field in _named("fields", about).items():
            _fields(f"kinds: {kind}: {name}: ", field, _FIELD)
    for what, shape in (("counts", _COUNT), ("files", _FILE)):
        rows = told.get(what)
        if type(rows) is not list:
            raise ValueError(f"{what} is no list")
        for row in rows:
            _fields(f"{what}: ", row, shape)
            if not _text(row.get("kind")) or row["kind"] not in told["kinds"]:
                raise ValueError(f"{what}: kind = {row.get('kind')!r}")


def fits(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> bool:
    """Whether this can be what a manifest says of a file."""
    known = _text(entry.get("kind")) and entry["kind"] in kinds
    return known and all(good(entry.get(name)) for name, good in _FILE.items())


def _fields(where: str, told: Any, shape: Mapping[str, _Fits]) -> None:
    if not isinstance(told, Mapping):
        raise ValueError(f"{where}no values by name")
    for name, good in shape.items():
        if name not in told or not good(told[name]):
            raise ValueError(f"{where}{name} = {str(told.get(name))[:60]!r}")


def _named(name: str, told: Mapping[str, Any]) -> Mapping[str, Any]:
    found = told.get(name)
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} is not values by name")
    return found
