"""A raw table in Parquet files: its users, their examples, and the rows that test a model, none of it read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2p_sim import parquet_users
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.learning.data import stored_examples
from p2p_sim.learning.data.declared_labels import DeclaredLabels
from p2p_sim.learning.data.stored_examples import StoredExamples


@dataclass(frozen=True)
class StoredTable:
    """The rows of a Parquet file, or of all those in a folder in the order of their names.

    ``place``, ``label``, ``cluster``: see ``parquet_users.population``.  ``positive``: the values of the label that
    count as 1; ``classes``: every value that it can have, in the order of their numbers, the second of two is 1; both
    as text.  Without them labels are bool, or integers from 0.  ``test``: a share in (0, 1) of the rows that are no
    users but test a model, the same that ``data_split.gather`` draws by ``seed``; None: all rows are users.
    """

    place: str
    label: str = "y"
    cluster: str | None = None
    positive: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    test: float | None = None
    seed: int = 0

    @property
    def rule(self) -> DeclaredLabels | None:
        """What values of the label mean; None: they are labels."""
        return DeclaredLabels.of(self.label, self.positive, self.classes)

    def population(self) -> PopulationInParts:
        """Return the users, of whom each shard reads its own; raises InputError as ``parquet_users.population``."""
        return parquet_users.population(
            self.place, label=self.label, cluster=self.cluster, rule=self.rule, test=self.test, seed=self.seed
        )

    def examples(self, *, drop: Sequence[str] = (), labels: int = 2) -> StoredExamples:
        """Return the users' examples; arguments and errors are those of ``stored_examples.of_users``."""
        return stored_examples.of_users(
            self.place, label=self.label, cluster=self.cluster, drop=drop, labels=labels, rule=self.rule,
            test=self.test, seed=self.seed,
        )  # fmt: skip
