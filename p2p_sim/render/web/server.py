"""The server of the web page: read-only, on this machine only, for whoever knows the token in its address.

Pages of other sites could make a browser send requests here; the token and a check of the Host header prevent that.
Whoever sends a request slowly, or opens many connections, takes nothing from others for long: a request must be there
within ``HEAD_SECONDS``, and more than ``MOST`` connections at once are refused.
"""

from __future__ import annotations

import errno
import io
import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qsl

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.render.web.answers import Answers
from p2p_sim.render.web.page import page

LOOPBACK = "127.0.0.1"
HEAD_SECONDS = 10.0
"""A request must be there by then, from the first byte to the last."""

ANSWER_SECONDS = 60.0
"""Each part of an answer, its head and its body, must be taken by then."""

MOST = 64
"""Connections at once; a browser opens six."""

_PAUSE = 0.5  # seconds until a connection is accepted again, where there were no file descriptors
_SHORT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip


class Server(ThreadingTCPServer):
    """Serves the page and its answers; ``url`` includes the token."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # elsewhere a second server on the port would share it, not fail
    request_queue_size = 64

    def __init__(self, answers: Answers, port: int):
        super().__init__((LOOPBACK, port), Handler)
        self.answers, self.token = answers, secrets.token_urlsafe(24)
        self._free, self._short = threading.BoundedSemaphore(MOST), False

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; wait a little where that is not possible, or the loop would take all of a processor."""
        try:
            found = super().get_request()
        except OSError as error:
            if error.errno in _SHORT_OF:
                self._tell(True, f"no connection is accepted now, and it is tried again: {error.strerror}")
                time.sleep(_PAUSE)
            raise
        self._tell(False, "connections are accepted again")
        return found

    def _tell(self, short: bool, what: str) -> None:
        """Say once that connections are not accepted, and once that they are again."""
        if self._short != short:
            print(f"note: {what}", file=sys.stderr, flush=True)
        self._short = short

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or refuse a connection too many."""
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.setblocking(False)
                request.send(_busy())
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except (
            Exception
        ):  # no thread could be started; where Ctrl-C comes meanwhile, one was, and makes room itself
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: a closed browser is none, and a traceback could show the token."""


def _busy() -> bytes:
    """Return the answer to a connection too many."""
    body = json.dumps({"error": f"{MOST} connections are open: try again"})
    lines = [f"HTTP/1.0 {HTTPStatus.SERVICE_UNAVAILABLE.value} {HTTPStatus.SERVICE_UNAVAILABLE.phrase}"]
    more = {"Retry-After": "1", "Content-Type": "application/json", "Content-Length": str(len(body))}
    lines += [f"{name}: {value}" for name, value in {**_HEADERS, **more}.items()]
    return ("\r\n".join([*lines, "", ""]) + body).encode()


class _InTime(io.RawIOBase):
    """What comes over a connection until a point in time, after which reading raises TimeoutError.

    A timeout of the socket itself would start anew with every byte.
    """

    def __init__(self, line: socket.socket, end: float):
        self._line, self._end = line, end

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read what is there, or wait for it."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._line.settimeout(left)
        return self._line.recv_into(buffer)


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    server_version, sys_version = "p2p-sim", ""
    default_request_version = "HTTP/1.0"  # an answer to HTTP/0.9 would have no headers

    def setup(self) -> None:
        """Read the request as long as it may take."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_InTime(self.connection, time.monotonic() + HEAD_SECONDS))

    def do_GET(self) -> None:
        """Send the page or an answer; refuse requests with another host, origin or token."""
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            return self._refuse(
                HTTPStatus.MISDIRECTED_REQUEST, "this page is served to its own machine alone"
            )
        if self.headers.get("Origin", f"http://{self.headers['Host']}") != f"http://{self.headers['Host']}":
            return self._refuse(HTTPStatus.FORBIDDEN, "another page asks: this one answers to itself alone")
        path, _, query = self.path.partition("?")
        token, slash, rest = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return self._refuse(HTTPStatus.FORBIDDEN, "the token in the address is not that of this server")
        if slash and not rest:
            nonce = secrets.token_urlsafe(16)
            return self._send(
                HTTPStatus.OK, "text/html", page(nonce).encode(), {"Content-Security-Policy": policy(nonce)}
            )
        if not rest.startswith("api/"):
            return self._refuse(HTTPStatus.NOT_FOUND, "there is nothing else here")
        try:
            answer = self.server.answers.answer(rest.removeprefix("api/"), dict(parse_qsl(query)))
        except (InputError, ProtocolError) as error:
            return self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:  # whatever a damaged file provokes: the page says it, the server goes on
            return self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
        return self._send(HTTPStatus.OK, "application/json", json.dumps(answer).encode())

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Refuse requests that are not for reading."""
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this page is for reading", {"Allow": "GET, HEAD"})

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_POST

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request in the way of all other refusals, with the headers of every answer."""
        status = HTTPStatus(code)
        self._refuse(status, message or explain or status.description)

    def _refuse(self, status: HTTPStatus, why: str, more: dict[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps({"error": why}).encode(), more)

    def _send(self, status: HTTPStatus, kind: str, body: bytes, more: dict[str, str] | None = None) -> None:
        self.connection.settimeout(ANSWER_SECONDS)  # of each write: head, and body
        self.send_response(status)
        for name, value in {**_HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: addresses include the token."""


def policy(nonce: str) -> str:
    """Return the page's content security policy: only its own scripts and styles, and requests to its server."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@contextmanager
def serving(answers: Answers, port: int = 0) -> Iterator[Server]:
    """Open a server on a port (0: any free one) for ``serve_forever``.  Raises InputError for a port in use."""
    if not 0 <= port < 1 << 16:
        raise InputError(f"port = {port}: must be from 0 (any) to 65535")
    try:
        server = Server(answers, port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use" if error.errno == errno.EADDRINUSE else "is not yours to open"
        raise InputError(
            f"port {port} {why}: choose another by --port, or leave it out for any free one"
        ) from error
    try:
        yield server
    finally:
        server.server_close()
