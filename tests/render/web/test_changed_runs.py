"""What happens to a run while its page is open."""

from __future__ import annotations

import os

import pytest

from tests.render.web.conftest import make, served
from tests.render.web.test_server import ask, told


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["gone", "cut", "altered"])
@pytest.mark.parametrize("part", ["messages/ask", "messages/report", "population.parquet", "outputs"])
def test_a_file_that_was_restored_is_read_again(part, harm, tmp_path):
    make("peers").save(tmp_path / "run")
    place = tmp_path / "run" / part
    file = place if place.is_file() else next(place.rglob("*.parquet"))
    octets = file.read_bytes()
    with served(tmp_path / "run") as server:
        paths = ["api/overview", "api/lanes?user=3", "api/lanes?user=4&view=learner", "api/figures?view=user"]
        before = [told(server, path) for path in paths]
        file.unlink()
        if harm != "gone":
            file.write_bytes(octets[:-5] if harm == "cut" else octets[:-1] + b"?")
        os.utime(file.parent, (9, 9))
        for user in range(5, 12):  # whatever is not known by heart
            status, _, body = ask(server, f"api/lanes?user={user}")
            assert status == (400 if part.startswith("messages") else 200)
            assert status == 200 or file.name in body
        file.unlink(missing_ok=True)
        file.write_bytes(octets)
        assert [told(server, path) for path in paths] == before
        assert told(server, "api/lanes?user=12")
