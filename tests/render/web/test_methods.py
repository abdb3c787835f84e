"""The server answers GET and HEAD, and says so to whoever asks otherwise."""

from __future__ import annotations

import pytest

from tests.render.web.test_server import ask


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_methods_that_are_not_for_reading_are_refused(server, method):
    status, headers, _ = ask(server, "api/overview", method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_method_that_there_is_not(server):
    assert ask(server, "api/overview", method="BREW")[0] == 501


@pytest.mark.parametrize(("path", "token"), [("", None), ("api/overview", None), ("x", None), ("", "wrong")])
def test_head_tells_what_get_would(server, path, token):
    asked, got = (ask(server, path, method=method, token=token) for method in ("HEAD", "GET"))
    assert asked[0] == got[0]
    assert asked[2] == ""
    for name in ("Content-Length", "Content-Type"):
        assert asked[1][name] == got[1][name]


@pytest.mark.parametrize("refused", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_head_is_refused_where_get_is(server, refused):
    assert (
        ask(server, "api/overview", method="HEAD", **refused)[0] == ask(server, "api/overview", **refused)[0]
    )
