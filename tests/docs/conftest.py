"""The command line in this process, for commands of documents."""

from tests.cli.conftest import cli

__all__ = ["cli"]
