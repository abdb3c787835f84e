"""Training on what a run released, of users in memory; ``training_in_batches`` has those read in batches."""

from __future__ import annotations

import time
from dataclasses import asdict, replace

from p2p_sim.core.engine import Progress
from p2p_sim.learning import number_labels
from p2p_sim.learning import planted_canaries as planting
from p2p_sim.learning.data_split import Examples
from p2p_sim.learning.training import (
    bag_training,
    evaluation,
    label_assignment,
    models,
    noise_correction,
    number_evaluation,
)
from p2p_sim.progress import silent
from p2p_sim.run import Run


def train_either(
    run: Run, examples: Examples, model: str, progress: Progress | None
) -> tuple[evaluation.Comparison | None, number_evaluation.NumberComparison | None]:
    """Train on what a run released; of classes and of numbers, one is not None, or none."""
    if model == models.NO_MODEL:
        return None, None
    if examples.values is not None:
        return None, number_labels.train(run, examples, model, progress)
    return train(run, examples, model, progress), None


def train(
    run: Run, examples: Examples, model: str = models.CLASSIFIER, progress: Progress | None = None
) -> evaluation.Comparison | None:
    """Train on the labels that a run released and on the true ones; add accuracies and seconds to the run."""
    before = time.perf_counter()
    (progress or silent)(f"training {model}", 0, 0)
    columns, people = label_assignment.returned(run), examples.population
    comparison, planted = None, planting.of_columns(run.canaries)
    y, queries = people.y, None
    if planted is not None and people.x is not None:
        y, queries = planted.original_labels(people.y), evaluation.QueryRows(people.x[planted.users])
    pairs = label_assignment.pairs(columns, people)
    fits = pairs is None or pairs.fits(people)
    if people.x is not None and pairs is not None and fits:
        comparison = evaluation.compare(
            people.x, y, examples.x_test, examples.y_test, pairs.users, pairs.y, model, pairs.x, queries
        )
        comparison = replace(comparison, note=pairs.note).with_notes(comparison.note)
        comparison = noise_correction.add_corrected(
            comparison, run, people, examples.x_test, examples.y_test, queries
        )
    elif people.x is not None:
        bags = bag_training.of_run(columns, run.source, people)
        if bags is not None:
            before_coins = replace(people, y=y)
            comparison = bag_training.compare(
                before_coins, examples.x_test, examples.y_test, bags, model, queries
            )
    if comparison is None and people.x is not None and run.notes.get("released"):
        why = label_assignment.NO_FEATURES if fits else label_assignment.OTHER_FEATURES
        run.notes["released"]["untrained"] = why
    comparison = None if comparison is None else evaluation.warned(comparison)
    if planted is not None and queries is not None:
        planting.keep_confidences(
            run, queries.predicted, 2 if run.source is None else run.source.label_count()
        )
        comparison = None if comparison is None else comparison.with_notes(planted.note())
    run.notes["accuracy"] = None if comparison is None else asdict(comparison)
    run.timings["training"] = time.perf_counter() - before
    return comparison
