"""What the hosts of network namespaces are told; the hosts themselves are made by hand, as root."""

from importlib import metadata
from pathlib import Path

from benchmarks import hosts


def test_another_version_is_mounted_over_the_true_one(tmp_path: Path) -> None:
    ((place, other),) = hosts._other_version(tmp_path).items()
    version = metadata.version("cryptography")
    assert place.read_text().replace(f"\nVersion: {version}\n", "\nVersion: 1.2.3\n") == other.read_text()
    assert place.read_text() != other.read_text()


def test_the_last_warning_or_error_is_kept() -> None:
    assert hosts._said("warning: one\nerror: two\n[3 s]\n") == "error: two"
    assert hosts._said("one\ntwo\n") == "two"


def test_hosts_know_no_other_ray(monkeypatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    found = hosts._environment("secret")
    assert "RAY_ADDRESS" not in found
    assert (found["RAY_AUTH_MODE"], found["RAY_AUTH_TOKEN"]) == ("token", "secret")
