"""A Ray session: started without output, joined with a time limit, and always ended; its idle actors stay warm.

If Ray already runs in this process, it is used and left running.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from p2p_sim.backends import ray_node
from p2p_sim.backends.ray_head import Head
from p2p_sim.backends.ray_probe import probe
from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # of calls that a lost attempt leaves behind

import ray  # the settings above are read on import
from ray.job_config import JobConfig

AGAIN = "Running again with the same seed gives the same bits"

JOIN_SECONDS = 120.0
_LEAVE_SECONDS = 15.0
_GONE_SECONDS = 1.0
_SETTLE_SECONDS = 60.0
_SURVIVE_SECONDS = 30.0
STORE_LIMITS = (100 << 20, 2 << 30)


class _Job(JobConfig):  # type: ignore[misc]
    """Makes workers import from the folders of this process, in its order, before any others.

    Ray puts the current folder and the script's folder first and has no setting for it, so the search path that it
    sends to workers is replaced here.
    """

    def _serialize(self) -> Any:
        self._py_driver_sys_path = module_finder.folders()[::-1]  # each is put before all others
        return super()._serialize()


class ActorLostError(RunLostError):
    """An actor of a run was lost, or what it had sent, and Ray goes on: the run can be computed again.

    ``gone``: the names of the actors that did not answer when they were asked then.
    """

    gone: tuple[str, ...] = ()


_watched: list[ray_node.Node | Head] = []
"""The Ray that this process has started, or the head that it has joined; at most one."""


@contextlib.contextmanager
def session(address: str | None, actors: int, store_bytes: int) -> Iterator[None]:
    """Join the Ray cluster at ``address`` (host:port), or start Ray here for ``actors`` actors; always end it.

    ``store_bytes``: size of the object store, limited to 100 MiB to 2 GiB.  Meanwhile the standard output of Ray's
    processes goes to standard error.  RAY_ADDRESS is ignored here: it is for ``settings.address_of``.  Raises
    InputError within 20 seconds if Ray does not answer at the address, and if it does not start; RunLostError if it
    ends.

    Actors of one run stay for the next one inside the outermost of nested sessions, and end with it.
    """
    if ray.is_initialized():
        _check_running(address)
        with _idle_actors():
            yield
        return
    if address is not None:
        probe(address)
    with _stdout_to_stderr(), _muted(), contextlib.ExitStack() as kept:
        kept.callback(_read_token)
        node: ray_node.Node | None = None
        joining = _Call()
        try:
            if address is None:
                node = _start(actors, store_bytes)
            token = {} if node is None else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": node.token}
            kept.enter_context(_environment(dict.fromkeys(ray_node.ELSEWHERE) | token))
            _join(node.address() if node is not None else str(address), node, joining)
            if node is None:
                _watched.append(Head(str(address)))
            with _named_losses(), _idle_actors():
                yield
        finally:
            with _signals_later():
                _leave(node, joining)


def _leave(node: ray_node.Node | None, joining: _Call) -> None:
    """Leave Ray, and end it if it is ours.

    Where this process is still joining after a minute, Ray would end this program if it were ended first: it then ends
    with the program.  To a lost head Ray would say goodbye for minutes, and once more at the end of the program.
    """
    gone = node is None and lost() is not None
    _watched.clear()
    if not joining.settle(_SETTLE_SECONDS):
        return
    if gone:
        atexit.unregister(ray.shutdown)
    with contextlib.suppress(Exception):  # Ray itself may be gone
        _Call().run(ray.shutdown, _GONE_SECONDS if gone else _LEAVE_SECONDS)
    if node is not None:
        node.end()


def lost() -> str | None:
    """Return what has ended of the Ray that this process has started or joined, if anything has."""
    return _watched[0].lost() if _watched else None


def _start(actors: int, store_bytes: int) -> ray_node.Node:
    node = ray_node.Node(actors, min(max(store_bytes, STORE_LIMITS[0]), STORE_LIMITS[1]))
    _watched.append(node)
    return node


def _check_running(address: str | None) -> None:
    """Check the Ray that this process is joined to already; raises InputError if it is another, or a client's."""
    if ray.util.client.ray.is_connected():
        raise InputError(
            "this process is a client of Ray (ray://...), which p2p-sim cannot use: call ray.shutdown() first, "
            "and give address='host:port' on a machine that is a node of the cluster"
        )
    here = ray.get_runtime_context().gcs_address
    if address is not None and not _same(address, here):
        raise InputError(
            f"address = {address!r}: this process is joined to Ray at {here}; call ray.shutdown() first"
        )


def _same(one: str, other: str) -> bool:
    """Return whether two texts are one address: host name and IP, or this machine's loopback and its own IP."""
    places = []
    for address in (one, other):
        host, _, port = address.rpartition(":")
        try:
            number = socket.gethostbyname(host.strip("[]"))
        except OSError:
            number = host
        places.append((ray.util.get_node_ip_address() if number.startswith("127.") else number, port))
    return places[0] == places[1]


def _join(address: str, node: ray_node.Node | None, call: _Call) -> None:
    """Join a Ray that answers; raises InputError."""
    _read_token()

    def join() -> None:
        ray.init(address=address, job_config=_Job(), log_to_driver=False, logging_level=logging.ERROR)

    try:
        call.run(join, JOIN_SECONDS)
    except Exception as error:  # of many kinds
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        if other := _other_versions(str(error)):
            raise InputError(f"address = {address!r}: {other}") from error
        ended = node.lost() if node is not None else None
        if node is not None:
            raise InputError(
                f"Ray did not start on this machine: {ended or first}; {ray_node.busy()}"
            ) from error
        raise InputError(
            f"address = {address!r}: Ray answers there, but this machine cannot join it ({first}); "
            "make it a node with `ray start --address=...`"
        ) from error


def _other_versions(message: str) -> str:
    """Return what Ray says of a cluster that has another Ray or Python than this process, in a sentence; else nothing.

    Ray compares Python's patch release, too.
    """
    rays, pythons = (re.findall(rf"^\s*{name}: (\S+)$", message, re.MULTILINE) for name in ("Ray", "Python"))
    if "Version mismatch" not in message or len(rays) != 2 or len(pythons) != 2:
        return ""
    return (
        f"the cluster has Ray {rays[0]} and Python {pythons[0]}, and this process Ray {rays[1]} and Python "
        f"{pythons[1]}; install the same on both"
    )


class _Call:
    """A long call into Ray in a thread, so that this one hears signals meanwhile.

    An event says when it ends: a thread whose ``join`` was interrupted calls itself ended, in Python 3.11, and is not.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._ended.set()

    def run(self, work: Callable[[], object], seconds: float) -> None:
        """Call; raises what the call raises, and TimeoutError."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:  # raised below
                failed.append(error)
            finally:
                self._ended.set()

        before = signal.getsignal(signal.SIGTERM)
        until = time.monotonic() + seconds
        self._ended.clear()
        threading.Thread(target=run, daemon=True).start()
        while not self._ended.wait(0.05) and time.monotonic() < until:
            _handle_sigterm(before)
        _handle_sigterm(before)
        if not self._ended.is_set():
            raise TimeoutError(f"no answer within {seconds:.0f} s")
        if failed:
            raise failed[0]

    def settle(self, seconds: float) -> bool:
        """Wait for a call that was left by a signal; return whether it has ended."""
        return self._ended.wait(seconds)


def _handle_sigterm(handler: Any) -> None:
    """Put the program's own handler back: Ray puts one in its place that aborts the program, as if it had crashed."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _read_token() -> None:
    """Have Ray read its token from the environment again: it keeps what it read first."""
    inner: Any = ray._raylet
    with contextlib.suppress(AttributeError):  # of a Ray without tokens
        inner.Config.initialize("")
        inner.AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def _muted() -> Iterator[None]:
    """Keep Ray's own coloured lines out: it prints what its processes report, whatever ``log_to_driver`` says."""
    worker: Any = ray._private.worker
    usual = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_lines, **_how: None
    try:
        yield
    finally:
        worker.print_to_stdstream = usual


@contextlib.contextmanager
def _named_losses() -> Iterator[None]:
    """Turn errors of Ray itself into RunLostError, which names what was lost."""
    try:
        yield
    except (InputError, ProtocolError, RunLostError, ray.exceptions.RayTaskError):
        raise
    except Exception as error:
        ended = lost()
        if ended is None and not isinstance(error, ray.exceptions.RayError):
            raise
        first = str(error).strip().partition("\n")[0]
        raise RunLostError(f"Ray was lost during this run: {ended or first}.  {AGAIN}") from error


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Deliver SIGINT and SIGTERM after the ``with`` block: a second Ctrl-C must not cut what ends within seconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if received:
            signal.raise_signal(received[0])


@contextlib.contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables inside the ``with`` block, or remove them (None)."""
    before = {name: os.environ.get(name) for name in changes}

    def change(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    change(changes)
    try:
        yield
    finally:
        change(before)


@dataclass
class Hosted:
    """An actor in this session; ``made_for``: what must be the same for another run to use it.

    ``code``: of its process as far as it was checked, by file and package.  ``name``: in the run that uses it now.
    """

    actor: Any
    made_for: Hashable
    name: str = ""
    code: dict[str, str] = field(default_factory=dict)


_idle: list[Hosted] | None = None
"""Actors that no run uses now; None outside of sessions."""


@contextlib.contextmanager
def _idle_actors() -> Iterator[None]:
    """Keep actors between the runs of a session; at the end of the outermost one, kill them."""
    global _idle
    if _idle is not None:
        yield
        return
    _idle = []
    try:
        yield
    finally:
        left, _idle = _idle, None
        kill(left)


@contextlib.contextmanager
def hosts() -> Iterator[list[Hosted]]:
    """Give an empty list of the actors of one run; at its end they become idle, and after an error they are killed.

    After an error nobody knows what an actor is still busy with; where only some were lost, those who answer stay.
    """
    used: list[Hosted] = []
    try:
        yield used
    except ActorLostError as error:
        left = _answering(used)
        error.gone = tuple(each.name for each in used if each not in left)
        keep(left)
        raise
    except BaseException:
        kill(used)
        raise
    keep(used)


def _answering(actors: list[Hosted]) -> list[Hosted]:
    """Return the actors that come to the end of what they do; the others are killed."""
    waiting = {each.actor.__ray_ready__.remote(): each for each in actors}
    left, until = [], time.monotonic() + _SURVIVE_SECONDS
    while waiting and time.monotonic() < until and lost() is None:
        for answer in ray.wait(list(waiting), timeout=1.0)[0]:  # a longer one would hear no Ctrl-C
            each = waiting.pop(answer)
            with contextlib.suppress(ray.exceptions.RayError):
                ray.get(answer)
                left.append(each)
    kill([each for each in actors if each not in left])
    return left


def keep(actors: list[Hosted]) -> None:
    """Leave actors idle for another run of this session; outside of any, kill them."""
    if _idle is None:
        kill(actors)
    else:
        _idle.extend(actors[::-1])  # the next run takes the last one first


def idle(made_for: Hashable, fits: Callable[[Hosted], bool]) -> Hosted | None:
    """Take an idle actor that is made for a run and fits it, None if there is none.

    Others that it meets are killed: nobody may need them again, and they may hold the processors of a cluster.
    """
    while _idle:
        host = _idle.pop()
        if host.made_for == made_for and fits(host):
            return host
        kill([host])
    return None


def kill(actors: list[Hosted]) -> None:
    """Kill actors, unless Ray itself has ended."""
    for each in actors if lost() is None else ():
        with contextlib.suppress(Exception):  # Ray itself may be gone
            ray.kill(each.actor)


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send standard output to standard error: Ray's processes inherit it and warn on it, results must stay clean."""
    sys.stdout.flush()
    try:
        saved = os.dup(1)
    except OSError:  # no standard output: nothing to protect
        yield
        return
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)
