"""``run --population``: users in Parquet files, and the examples there that train and test a ``--model``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p2p_sim.cli.options import option
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.cli.run import RunCommand
    from p2p_sim.core.population_in_parts import PopulationInParts
    from p2p_sim.core.protocol import Protocol


def check(command: RunCommand) -> None:
    """Check the options that go with a model of ``--population``; raises InputError."""
    if not _trains(command):
        for name in ("test_population", *(["drop"] if command.population is not None else [])):
            if getattr(command, name) is not None:
                raise InputError(
                    f"{option(name)} needs --population with --model, which is missing: leave it out"
                )
        return
    from p2p_sim.learning.training import models_in_batches

    with terminal.stdout_to_stderr():  # modules that are imported may print
        models_in_batches.check(str(command.model))
    if command.test_population is None:
        raise InputError(
            "--model with --population needs --test-population PLACE, further rows that test it: give them, or "
            "leave out --model"
        )


def users(command: RunCommand) -> PopulationInParts:
    """Return the users of ``--population``."""
    from p2p_sim import parquet_users

    assert command.population is not None
    return parquet_users.population(
        command.population, label=command.label or "y", cluster=command.cluster_column
    )


def contents(command: RunCommand) -> dict[str, str]:
    """Return a SHA-256 for each file of ``--population`` and ``--test-population``."""
    from p2p_sim import parquet_users

    places = filter(None, [command.population, command.test_population])
    return {name: found for place in places for name, found in parquet_users.contents(place).items()}


def examples(command: RunCommand, protocol: Protocol) -> dict[str, Any]:
    """Return the model, and the examples that it is trained and tested on, as ``experiment.among`` takes them."""
    from p2p_sim.cli.table_options import columns
    from p2p_sim.learning.data import stored_examples

    if not _trains(command):
        return {}
    assert command.population is not None  # otherwise nothing is trained
    trained = stored_examples.of_users(
        command.population, label=command.label or "y", cluster=command.cluster_column, drop=columns(command.drop),
        labels=protocol.label_count(),
    )  # fmt: skip
    test = None
    if command.test_population is not None:
        test = stored_examples.of_test(command.test_population, trained)
    return {"model": command.model, "examples": trained, "test": test}


def _trains(command: RunCommand) -> bool:
    """Whether a model is trained on what is in the files."""
    from p2p_sim.learning.training import models

    return command.population is not None and command.model not in (None, models.NO_MODEL)
