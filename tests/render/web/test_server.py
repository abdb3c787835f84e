"""The server: to this machine and who knows the token, for reading, whatever a run holds."""

from __future__ import annotations

import http.client
import io
import itertools
import json
import os
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from socketserver import ThreadingMixIn
from urllib.parse import quote, urlsplit

import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.render.web import server as server_module
from p2p_sim.render.web.answers import Answers
from p2p_sim.render.web.server import serving
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.rundir import population_file
from p2p_sim.rundir.run_directory import LazyRun
from tests.cli.conftest import below
from tests.render.web.conftest import NAMES, make, served
from tests.run_json_files import document_in


def ask(server, path="", *, method="GET", host=None, token=None, origin=None):
    """Ask over a connection of its own; return status, headers and what came."""
    port = server.server_address[1]
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        line.putrequest(method, f"/{token or server.token}/{path}", skip_host=True)
        line.putheader("Host", f"127.0.0.1:{port}" if host is None else host)
        if origin is not None:
            line.putheader("Origin", origin)
        line.endheaders()
        answer = line.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        line.close()


def told(server, path):
    status, _, body = ask(server, path)
    assert status == 200, body
    return json.loads(body)


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert urlsplit(server.url).hostname == "127.0.0.1"
    assert len(server.token) >= 32


def test_the_page_and_its_headers(server):
    status, headers, body = ask(server)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = headers["Content-Security-Policy"]
    nonce = re.search(r"script-src 'nonce-([^']+)'", policy)[1]
    assert f'<script nonce="{nonce}">' in body
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"unsafe|https?:|\*", policy)
    assert nonce not in ask(server)[1]["Content-Security-Policy"], "a nonce is used once"
    for name, value in {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}.items():
        assert headers[name] == value
    assert "Set-Cookie" not in headers
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""])
@pytest.mark.parametrize("path", ["", "api/overview", "api/lanes?user=1"])
def test_a_foreign_host_is_refused(server, host, path):
    status, _, body = ask(server, path, host=host)
    assert (status, json.loads(body)) == (421, {"error": "this page is served to its own machine alone"})
    assert ask(server, path, host=f"localhost:{server.server_address[1]}")[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_another_page_is_refused(server, origin):
    status, _, body = ask(server, "api/overview", origin=origin)
    assert (status, "this one answers to itself alone" in body) == (403, True)
    assert ask(server, "api/overview", origin=f"http://127.0.0.1:{server.server_address[1]}")[0] == 200


@pytest.mark.parametrize("token", ["x", "%00", "%C3%A9", "A" * 32])
def test_a_wrong_token_is_refused(server, token):
    for path in ("", "api/lanes"):
        status, _, body = ask(server, path, token=token)
        assert status == 403
        assert server.token not in body


def test_near_misses_of_the_token_are_refused(server):
    assert ask(server, token=server.token[:-1])[0] == 403
    assert ask(server, token=server.token + "A")[0] == 403
    line = b"GET /\xc3\xa9\xff/ HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % server.server_address[1]
    with socket.create_connection(server.server_address[:2]) as raw:
        raw.sendall(line)
        assert b" 403 " in raw.recv(100)


@pytest.mark.parametrize("path", ["run.json", "../run.json", "static/page.js", "api", "favicon.ico"])
def test_there_are_no_files_to_be_had(server, path):
    assert ask(server, path)[0] == 404


def test_nothing_is_written(runs, server, capfd):
    before = below(runs)
    for name in NAMES:
        for what in ("overview", "lanes", "figures?view=learner"):
            mark = "&" if "?" in what else "?"
            assert ask(server, f"api/{what}{mark}run={name}")[0] == 200
    ask(server, token="wrong")
    assert below(runs) == before
    assert capfd.readouterr() == ("", ""), "the token is in every line of a log"


def test_runs_are_listed_newest_first(server):
    assert told(server, "api/runs") == {"runs": list(NAMES)}
    assert told(server, "api/overview")["name"] == NAMES[0]
    assert told(server, "api/overview?run=faults")["faults"] == ["drop=0.2", "loss=0.1", "lie=flip:0.3"]


@pytest.fixture
def outside(tmp_path):
    """A served folder with one run, and a run beside it to which links lead."""
    make("labels").save(tmp_path / "secret")
    make("labels").save(tmp_path / "served" / "inside")
    (tmp_path / "served" / "link").symlink_to(tmp_path / "secret")
    return tmp_path


def test_runs_outside_the_folder_are_refused(outside):
    with served(outside / "served") as server:
        assert told(server, "api/runs") == {"runs": ["inside"]}
        tries = [
            "../secret",
            str(outside / "secret"),
            "link",
            "inside/../../secret",
            ".",
            "..",
            "inside/",
            "\0",
        ]
        for name in tries:
            for what in ("overview", "lanes", "figures"):
                status, _, body = ask(server, f"api/{what}?run={quote(name, safe='')}")
                assert status == 400
                assert "and no other folder is served" in json.loads(body)["error"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("lanes?user=-1", "user = '-1': must be a whole number from 0 on"),
        ("lanes?user=seven", "user = 'seven': must be a whole number"),
        ("lanes?user=99999999999999999999", "must be a whole number"),
        ("lanes?user=%D9%A3", "must be a whole number"),
        ("lanes?user=60", "user 60: not in this run"),
        ("lanes?round=x", "round = 'x': must be a whole number"),
        ("lanes?view=user:*", "nobody is in focus: choose a user"),
        ("lanes?view=<b>", "unknown part '<b>'"),
        ("lanes?view=wire&channels=open", "channels = 'open': must be plain or encrypted"),
        ("lanes?shape=round", "shape = 'round': what can be chosen is run, kind, view"),
        ("figures?view=learner%2Bmoon", "unknown part 'moon'"),
        ("figures?view=learner%2B60*user", "60"),
        ("secrets", "nothing is known of 'secrets': ask for runs, overview, lanes, figures"),
        ("", "nothing is known of ''"),
    ],
)
def test_what_cannot_be_asked_is_named(server, path, said):
    status, _, body = ask(server, f"api/{path}")
    assert status == 400
    assert said in json.loads(body)["error"]


def test_many_ask_at_once(server):
    paths = [f"api/lanes?run={name}&user={user}" for name in NAMES for user in range(6)]
    alone = [ask(server, path)[2] for path in paths]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda path: ask(server, path)[2], paths))
    assert together == alone


def test_a_line_that_says_nothing_and_one_that_breaks_off_stop_nobody(server):
    silent = socket.create_connection(server.server_address[:2])
    broken = socket.create_connection(server.server_address[:2])
    broken.sendall(b"GET /" + server.token.encode())
    broken.close()
    assert ask(server)[0] == 200
    silent.close()


EVERY_ANSWER = {
    "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}  # fmt: skip


def raw(server, line):
    """Send a line and return status, headers and body, as the bytes came."""
    with socket.create_connection(server.server_address[:2], timeout=30) as talk:
        talk.sendall(line)
        talk.shutdown(socket.SHUT_WR)
        came = b"".join(iter(lambda: talk.recv(1 << 16), b""))
    head, _, body = came.partition(b"\r\n\r\n")
    first, _, headers = head.partition(b"\r\n")
    return int(first.split()[1]), http.client.parse_headers(io.BytesIO(headers + b"\r\n\r\n")), body


def test_every_answer_has_the_headers_also_to_what_is_no_request(runs):
    def broken(*_):
        raise ZeroDivisionError("nothing to divide")

    with served(runs, view_functions=replace(VIEW_FUNCTIONS, privacy=broken)) as server:
        host = b"Host: 127.0.0.1:%d\r\n\r\n" % server.server_address[1]
        token = b"/" + server.token.encode() + b"/"
        wanted = {
            b"GET " + token + b" HTTP/1.1\r\n": 200, b"GET " + token + b"api/secrets HTTP/1.1\r\n": 400,
            b"GET\r\n": 400, b"GET / HTTP/x\r\n": 400, b"GET /wrong/ HTTP/1.1\r\n": 403,
            b"GET " + token + b"run.json HTTP/1.1\r\n": 404, b"POST / HTTP/1.1\r\n": 405,
            b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n": 414, b"GET /\r\n": 403,
            b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n": 431,
            b"GET " + token + b"api/figures?view=learner HTTP/1.1\r\n": 500,
            b"BREW / HTTP/1.1\r\n": 501, b"GET / HTTP/2.0\r\n": 505,
        }  # fmt: skip
        for line, status in wanted.items():
            found, headers, body = raw(server, line + host)
            assert found == status, line[:60]
            assert EVERY_ANSWER.items() <= dict(headers.items()).items(), line[:60]
            assert "default-src 'none'" in headers["Content-Security-Policy"]
            assert status == 200 or "error" in json.loads(body), line[:60]


def test_who_sends_a_request_slowly_is_dropped_and_others_are_served(server, monkeypatch):
    monkeypatch.setattr(server_module, "HEAD_SECONDS", 1.0)
    with socket.create_connection(server.server_address[:2], timeout=0.1) as slow:
        began = time.monotonic()
        for byte in itertools.cycle(b"x"):  # at any time less than a second since the last one
            try:
                slow.sendall(bytes([byte]))
                if slow.recv(1) == b"":
                    break
            except TimeoutError:
                assert time.monotonic() - began < 20
            except ConnectionError:
                break
        assert time.monotonic() - began > 0.5
        assert ask(server)[0] == 200


def test_a_connection_too_many_is_refused_until_there_is_room(runs, monkeypatch):
    monkeypatch.setattr(server_module, "MOST", 3)
    with served(runs) as server:
        silent = [socket.create_connection(server.server_address[:2]) for _ in range(3)]
        status, headers, body = raw(server, b"")
        assert (status, json.loads(body)) == (503, {"error": "3 connections are open: try again"})
        assert EVERY_ANSWER.items() <= dict(headers.items()).items()
        for line in silent:
            line.close()
        until = time.monotonic() + 20
        while raw(server, b"GET\r\n\r\n")[0] == 503:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert ask(server)[0] == 200


def test_ctrl_c_is_heard_where_an_answer_is_done_already(runs, monkeypatch):
    """It may come while the thread that answers is started; it was lost where that thread was quick."""

    def interrupted(self, *given):
        begin(self, *given)
        until = time.monotonic() + 20
        while self._free._value < server_module.MOST:
            assert time.monotonic() < until
            time.sleep(0.01)
        raise KeyboardInterrupt

    begin = ThreadingMixIn.process_request
    monkeypatch.setattr(ThreadingMixIn, "process_request", interrupted)
    with serving(Answers(runs, VIEW_FUNCTIONS)) as server:
        socket.create_connection(server.server_address[:2]).close()
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()


def test_a_damaged_run_is_named_and_the_server_goes_on(tmp_path):
    make("peers").save(tmp_path / "good")
    make("peers").save(tmp_path / "bad")
    place = tmp_path / "bad" / "run.json"
    whole = json.dumps(document_in(tmp_path / "bad"))
    wrong = {
        "not json": whole[:200],
        "newer": re.sub(r'"format": \d+', '"format": 99', whole),
        "no such parameter": whole.replace('"theta"', '"<i>theta"'),
        "a list": "[]",
    }
    with served(tmp_path) as server:
        for text in wrong.values():
            place.write_text(text)
            status, _, body = ask(server, "api/overview?run=bad")
            assert status == 400
            assert "bad" in json.loads(body)["error"]
        assert told(server, "api/overview?run=good")["users"] == 60
        place.write_text(whole)
        assert told(server, "api/overview?run=bad")["users"] == 60
        (kept,) = (tmp_path / "bad" / "messages" / "ask").rglob("*.parquet")
        kept.write_bytes(kept.read_bytes()[:-9] + b"123456789")
        os.utime(place, (1, 1))
        status, _, body = ask(server, "api/lanes?run=bad")
        assert status == 400
        assert kept.name in json.loads(body)["error"]


def test_whatever_else_goes_wrong_is_an_answer(runs):
    def broken(*_):
        raise ZeroDivisionError("nothing to divide")

    with served(runs, view_functions=replace(VIEW_FUNCTIONS, privacy=broken)) as server:
        status, _, body = ask(server, "api/figures?view=learner")
        assert (status, json.loads(body)) == (500, {"error": "ZeroDivisionError: nothing to divide"})
        assert ask(server)[0] == 200


def test_a_run_that_was_replaced_is_read_again(tmp_path):
    make("peers").save(tmp_path / "run")
    with served(tmp_path / "run") as server:
        assert told(server, "api/overview")["protocol"] == "PeerToPeer"
        make("shuffle").save(tmp_path / "run", force=True)
        assert told(server, "api/overview")["protocol"] == "EncryptedShuffle"


def test_one_run_is_held_and_read_once(runs):
    read = []

    def counted(path):
        read.append(path.name)
        return LazyRun(path)

    with served(runs, load=counted) as server:
        for _ in range(3):
            told(server, "api/lanes?run=peers")
        told(server, "api/lanes?run=faults")
        told(server, "api/lanes?run=peers")
    assert read == ["peers", "faults", "peers"]


def test_a_population_is_read_once_whoever_asks_first(runs, monkeypatch):
    read, whole = [], population_file.read

    def slow(*given):
        read.append("population")
        time.sleep(0.2)
        return whole(*given)

    monkeypatch.setattr(population_file, "read", slow)
    with served(runs / "peers") as server, ThreadPoolExecutor(4) as pool:
        asked = ["api/figures?view=wire", "api/lanes", "api/figures?view=learner", "api/lanes?user=3"]
        assert [status for status, _, _ in pool.map(lambda path: ask(server, path), asked)] == [200] * 4
    assert read == ["population"]


def test_a_port_in_use_is_named(server, runs):
    port = server.server_address[1]
    with (
        pytest.raises(InputError, match=f"port {port} is in use: choose another"),
        serving(Answers(runs, VIEW_FUNCTIONS), port),
    ):
        pass
    with (
        pytest.raises(InputError, match="port = 70000: must be from 0"),
        serving(Answers(runs, VIEW_FUNCTIONS), 70000),
    ):
        pass


def test_a_folder_without_runs_is_named(tmp_path):
    (tmp_path / "file").touch()
    for name, why in {
        ".": "it has no run.json; name the folder that p2p-sim run made",
        "nowhere": "there is no such folder; p2p-sim run makes one",
        "file": "it is a file; name the folder",
    }.items():
        with pytest.raises(InputError, match=f"is no run directory and holds none: {why}"):
            Answers(tmp_path / name, VIEW_FUNCTIONS)
