"""Checks whether Ray answers at an address, before ``ray.init``, which would wait for minutes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from p2p_sim.core.errors import InputError
from p2p_sim.core.number_texts import read_digits

PROBE_SECONDS = 3.0
ANSWER_SECONDS = 14.0
_LAST_PORT = 65_535

_OTHER_TOKEN = "InvalidAuthToken"
_NO_TOKEN = "authentication_token_loader"  # the place where Ray then aborts


def probe(address: str) -> None:
    """Check that Ray answers at host:port; raises InputError within 20 seconds if it does not.

    Where a token is sent it is then asked without one, for ``ANSWER_SECONDS`` at most.
    """
    host, _, port = str(address).rpartition(":")
    by = "RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") == address else "address"
    number = read_digits(port)
    if not host or number is None or not 0 < number <= _LAST_PORT or "/" in address:
        ports = "" if number is None else f" (ports are 1 to {_LAST_PORT:,})"
        raise InputError(
            f"{by} = {address!r}: give host:port of the Ray head, for example 10.0.0.5:6379{ports}"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS).close()
    except (socket.gaierror, UnicodeError) as error:
        raise InputError(
            f"{by} = {address!r}: the name of the host does not resolve to an address here ({error}); give the host's "
            "IP address, or a name that this machine knows"
        ) from error
    except (OSError, OverflowError) as error:
        raise InputError(
            f"{by} = {address!r}: nothing answers there ({error}); start it with `ray start --head`"
        ) from error
    try:
        answer = _answer(address)
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{by} = {address!r}: something answers, but not as Ray within {ANSWER_SECONDS:.0f} s; give the "
            "address that `ray start --head` printed"
        ) from error
    if answer is not None:
        raise InputError(f"{by} = {address!r}: {_why(answer)}")
    if _tokens() and _open_to_all(address):  # Ray's workers would have no token for this process, and end
        raise InputError(
            f"{by} = {address!r}: RAY_AUTH_MODE is token here, and the cluster asks nobody for a token: start it anew "
            "with RAY_AUTH_MODE=token on every machine, or unset the variable here if nobody else reaches its ports"
        )


def _tokens() -> bool:
    """Whether this process sends a token."""
    return os.environ.get("RAY_AUTH_MODE", "").lower() == "token"


def _open_to_all(address: str) -> bool:
    """Whether a cluster that answers also answers without a token; not if it takes long to say so."""
    try:
        return _answer(address, {"RAY_AUTH_MODE": "disabled"}) is None
    except subprocess.TimeoutExpired:
        return False


def _answer(address: str, instead: dict[str, str] | None = None) -> str | None:
    """Return what Ray's health check of a cluster wrote if it failed, None if all is well; raises TimeoutExpired.

    It is made in a process: here Ray keeps the token that it read first.  ``instead``: environment variables that
    differ from those of this process.
    """
    # -P: not with what lies in the current folder
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "health-check", "--address", address]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
        env=os.environ | (instead or {}), timeout=ANSWER_SECONDS,
    )  # fmt: skip
    return done.stderr.decode(errors="replace") if done.returncode else None


def _why(answer: str) -> str:
    """Return why Ray's health check failed, by what it wrote, and what to do."""
    token = (
        "the token of its head (`ray get-auth-token` there) to ~/.ray/auth_token, or set RAY_AUTH_TOKEN to it"
    )
    if _NO_TOKEN in answer:
        return f"RAY_AUTH_MODE is token, and there is no token here: copy {token}"
    if _OTHER_TOKEN not in answer:
        return (
            "Ray's health check failed there; give the head's host:port, and if the cluster asks for a token (it does "
            "if its machine had ~/.ray/auth_token when it started), set RAY_AUTH_MODE=token"
        )
    if not _tokens():
        return f"the cluster asks for a token, and none is sent: set RAY_AUTH_MODE=token, and copy {token}"
    return (
        "the cluster does not take the token that is sent, of RAY_AUTH_TOKEN, else of the file RAY_AUTH_TOKEN_PATH, "
        f"else of ~/.ray/auth_token: copy {token}"
    )
