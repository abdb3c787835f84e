"""``run --population``: users in Parquet files, and the examples there that train and test a ``--model``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from p2p_sim.cli.options import comma_list, option
from p2p_sim.core.errors import InputError, StorageError
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.cli.run import RunCommand
    from p2p_sim.core.population_in_parts import PopulationInParts
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.learning.data.stored_table import StoredTable

BACK = (
    "the files of --population must stay as they are until the run is saved: put them back as they were, and go on "
    "with --resume"
)
_NAMED = 4


def check(command: RunCommand, protocol: Protocol) -> None:
    """Check the options that go with ``--population``, and with a model of it; raises InputError."""
    for place in filter(None, (command.population, command.test_population)):
        from p2p_sim import parquet_users

        parquet_users.check_address(place)
    if command.population is not None:
        _check_labels(command, protocol)
        if command.split_seed is not None and command.test is None:
            raise InputError(
                "--split-seed draws test rows, and --test is missing: leave it out, or give both"
            )
    if not _trains(command):
        for name in ("test_population", *(["drop"] if command.population is not None else [])):
            if getattr(command, name) is not None:
                missing = "--model" if command.population is not None else "--population and --model"
                raise InputError(
                    f"{option(name)} needs {missing}: give that too, or leave out {option(name)}"
                )
        return
    from p2p_sim.learning.training import models_in_batches

    with terminal.stdout_to_stderr():  # modules that are imported may print
        models_in_batches.check(str(command.model))
    if command.test is not None and command.test_population is not None:
        raise InputError("--test and --test-population are both given: give one of them")
    if command.test is None and command.test_population is None:
        raise InputError(
            "--model with --population needs --test P, a share of the rows that test it, or --test-population PLACE, "
            "further rows: give one of them, or leave out --model"
        )


def _check_labels(command: RunCommand, protocol: Protocol) -> None:
    """Raise InputError unless what is said of the labels goes with the protocol."""
    from p2p_sim.learning import applicability
    from p2p_sim.learning.data import datasets

    rule = _table(command).rule
    if rule is None:
        return
    many, numbers = protocol.label_count() > 2, protocol.numbers() is not None
    datasets.check_positive(rule.positive, many, numbers)
    if numbers:
        raise InputError(
            f"--classes says that labels are classes, and those of {type(protocol).__name__} stand for numbers: leave "
            "it out, and give their places, 0 to k - 1; or read the numbers by --data"
        )
    kind = applicability.LabelKind(BINARY if rule.count == 2 else CLASSES, rule.label, rule.count)
    if reason := applicability.applicable(protocol, kind):
        raise InputError(reason)
    if more := applicability.more_labels(protocol, kind):
        warnings.warn(more, stacklevel=2)


def users(command: RunCommand) -> PopulationInParts:
    """Return the users of ``--population``."""
    return _table(command).population()


def contents(command: RunCommand) -> dict[str, str]:
    """Return a SHA-256 for each file of ``--population`` and ``--test-population``."""
    from p2p_sim import parquet_users

    places = filter(None, [command.population, command.test_population])
    return {name: found for place in places for name, found in parquet_users.contents(place).items()}


@contextmanager
def unchanged(command: RunCommand, noted: Mapping[str, str]) -> Iterator[None]:
    """Raise StorageError in place of another error if files are not as they were noted; see ``check_unchanged``."""
    try:
        yield
    except Exception as error:
        check_unchanged(command, noted, error)
        raise


def check_unchanged(command: RunCommand, noted: Mapping[str, str], error: Exception | None = None) -> None:
    """Raise StorageError if files are not as they were noted, see ``contents``; ``error``: what this led to.

    A run that is refused for this can go on when they are back.
    """
    try:
        now = contents(command)
    except InputError as gone:
        raise StorageError(
            f"while the run was under way files were moved or changed: {gone}; {BACK}"
        ) from error
    found = [
        f"{name!r} {'is new' if name not in noted else 'is gone' if name not in now else 'was changed'}"
        for name in sorted({*noted, *now})
        if noted.get(name) != now.get(name)
    ]
    if found:
        more = f" and {len(found) - _NAMED} more" if found[_NAMED:] else ""
        raise StorageError(
            f"while the run was under way {', '.join(found[:_NAMED])}{more}: {BACK}"
        ) from error


def examples(command: RunCommand, protocol: Protocol) -> dict[str, Any]:
    """Return the model, and the examples that it is trained and tested on, as ``experiment.among`` takes them."""
    from p2p_sim.cli.table_options import columns
    from p2p_sim.learning.data import stored_examples

    if not _trains(command):
        return {}
    trained = _table(command).examples(drop=columns(command.drop), labels=protocol.label_count())
    if command.test_population is None:
        return {"model": command.model, "examples": trained, "test": stored_examples.held_out(trained)}
    test = stored_examples.of_test(command.test_population, trained)
    return {"model": command.model, "examples": trained, "test": test}


def _table(command: RunCommand) -> StoredTable:
    """Return the table of ``--population``; test rows are drawn by the split seed, or else the run's."""
    from p2p_sim.learning.data.stored_table import StoredTable

    assert command.population is not None  # the caller has looked
    assert command.seed is not None  # drawn before
    positive = None if command.positive is None else comma_list(command.positive)
    seed = command.seed if command.split_seed is None else command.split_seed
    return StoredTable(
        command.population, command.label or "y", command.cluster_column, positive, command.declared(), command.test,
        seed,
    )  # fmt: skip


def _trains(command: RunCommand) -> bool:
    """Whether a model is trained on what is in the files."""
    from p2p_sim.learning.training import models

    return command.population is not None and command.model not in (None, models.NO_MODEL)
