"""Makes a comparison: calibrates every protocol, runs those that fit as a sweep, and reads its table."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison import calibrations, candidates, folder, pareto_front, recommendation, runs, table
from p2p_sim.comparison.calibrations import Calibrated
from p2p_sim.comparison.question import People, Question, people_of
from p2p_sim.comparison.result import Comparison
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.label_kinds import CLASSES
from p2p_sim.core.paths import path_of
from p2p_sim.learning import data_split, data_warnings
from p2p_sim.report import output_files
from p2p_sim.report.delta import delta_warning
from p2p_sim.rundir.comparison_files import PICTURE, REPORT, RUNS, TABLE, TABLE_CSV, WHOLE
from p2p_sim.sweep import sweeping
from p2p_sim.sweep.table import FAILED, LEFT_OUT

if TYPE_CHECKING:
    from p2p_sim.learning.applicability import LabelKind
    from p2p_sim.learning.data.datasets import Dataset
    from p2p_sim.sweep.folder import SweepFolder

SCALES = (0.5, 2.0, 0.25, 4.0)
"""Factors of the target's epsilon for the picture, the nearest first."""

_CALIBRATING, _RUNNING, _AGAIN, _PICTURING = 0.4, 0.8, 0.65, 0.95
"""Parts of a time budget at which calibrations, runs and the picture's runs end.  Without a picture, runs end where the
picture's would.  What was left out by then is calibrated again up to ``_AGAIN``, if there is time."""


def made(
    question: Question,
    *,
    out: str | Path | None,
    workers: int | None,
    address: str | None,
    budget: float | None,
    tell: Progress,
) -> Comparison:
    """Make a comparison; see ``p2p_sim.compare``.  ``budget``: seconds."""
    begin = time.monotonic()
    address = sweeping.where_made(workers, address)
    tell("looking at the data", 0, 0)
    people = people_of(question.people, question.range)
    for caution in () if people.data is None else people.data.cautions:  # now: what follows takes minutes
        warnings.warn(caution, UserWarning, stacklevel=2)
    found, others = candidates.of(question.protocols, people.labels, people.features)
    if not found:
        raise InputError(
            f"no protocol here takes {people.labels}: "
            + "; ".join(f"{each.name}: {each.why}" for each in others)
        )
    for promise in question.promises.every:
        promise.view.check([each.kind for each in found])
    place = _place(question, out)
    work = _Work(question, people, place, workers, address, begin, budget, tell)
    with folder.held(place) as kept:
        with _warned_once():
            calibrated, swept = work.made(found, kept)
            result = _result(work, calibrated, others, swept, _remarks(question, people, found[0]))
        tell("writing the comparison", 0, 0)
        _write(result)
    return result


Swept = Sequence[tuple[Calibrated, table.Trials]]
"""Calibrations, each with its runs."""


@dataclass(frozen=True)
class _Work:
    """What is asked of whom, who does the work, and in what time.  ``begin``: by ``time.monotonic``."""

    question: Question
    people: People
    place: Path
    workers: int | None
    address: str | None
    begin: float
    budget: float | None
    tell: Progress

    def made(
        self, found: Sequence[candidates.Candidate], kept: SweepFolder
    ) -> tuple[list[Calibrated], Swept]:
        """Calibrate protocols, and run those that fit; then what was left out, in the time that others left over."""
        calibrated = self.calibrated(found, kept, _CALIBRATING)
        swept = self.swept(_fit(calibrated))
        if _left_out(calibrated, swept) and self.part < _AGAIN:
            calibrated = self.calibrated(found, kept, _AGAIN)
            swept = self.swept(_fit(calibrated))
        return calibrated, swept

    @property
    def part(self) -> float:
        """The part of the budget that is spent; 1 without a budget, as then nothing is left out for lack of time."""
        return 1.0 if self.budget is None else (time.monotonic() - self.begin) / self.budget

    def calibrated(
        self, found: Sequence[candidates.Candidate], kept: SweepFolder, part: float
    ) -> list[Calibrated]:
        """Calibrate protocols to the target, and for the picture to other values, up to a part of the budget.

        Nothing is calibrated twice.
        """
        jobs = calibrations.jobs(found, self.question.promises, SCALES if self.question.picture else ())
        self.tell("calibrating protocols", 0, 0)
        content = "" if self.people.data is None else self.people.data.content()
        return calibrations.made(
            jobs, self.question, self.place, kept, content=content, workers=self.workers, address=self.address,
            until=self._until(part), tell=self.tell,
        )  # fmt: skip

    def swept(self, fit: Sequence[Calibrated]) -> Swept:
        """Run all that fit, over all seeds."""
        until = self._until(_RUNNING if self.question.picture else _PICTURING)
        return self._runner.made([(fit, self.question.seeds)], True, self.place / RUNS, until)

    def pictured(self, those: Sequence[Calibrated], further: Sequence[Calibrated]) -> Swept:
        """Run what is calibrated to other epsilons with one seed, and some ``further`` with all seeds."""
        first, others = self.question.seeds[: runs.PICTURED], self.question.seeds[runs.PICTURED :]
        series = [(those, first), (further, others)]
        return self._runner.made(series, False, self.place / PICTURE, self._until(_PICTURING))

    @property
    def _runner(self) -> runs.Runner:
        return runs.Runner(self.question, self.people, self.workers, self.address, self.tell)

    def _until(self, part: float) -> float | None:
        return None if self.budget is None else self.begin + part * self.budget


def _fit(calibrated: Sequence[Calibrated]) -> list[Calibrated]:
    return [each for each in calibrated if each.fits and each.job.scale == 1]


def _left_out(calibrated: Sequence[Calibrated], swept: Swept) -> bool:
    """Whether there was no time for a protocol, or for one of its runs."""
    late = any(each.left_out and each.job.scale == 1 for each in calibrated)
    return late or any(row["status"] == LEFT_OUT for _, trials in swept for row in trials.rows)


def _place(question: Question, out: str | Path | None) -> Path:
    """Return the folder of a comparison, the same for the same question; raises InputError if it is another's."""
    if out is not None:
        place = path_of("out", out)
        folder.check(place)
        return place
    text = json.dumps(question.document(), sort_keys=True)
    return Path(folder.COMPARISONS) / f"{question.name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


@contextmanager
def _warned_once() -> Iterator[None]:
    """Let what several sweeps warn of be heard once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(str(each.message).partition(": ")[2] or str(each.message) for each in caught):
        warnings.warn(text, UserWarning, stacklevel=2)


def _result(
    work: _Work,
    calibrated: Sequence[Calibrated],
    others: Sequence[candidates.Inapplicable],
    swept: Swept,
    remarks: Sequence[str],
) -> Comparison:
    """Make the table, run what the picture needs, and recommend."""
    question, people, promises = work.question, work.people, work.question.promises
    target = [each for each in calibrated if each.job.scale == 1]
    trials = {id(each): those for each, those in swept}
    none, same = table.Trials([], 0), people.data is not None
    tries = table.tries_of(trials.get(id(each), none) for each in target)
    rows = [
        table.row_of(each, trials.get(id(each), none), promises, same_users=same, tries=tries)
        for each in target
    ]
    rows = pareto_front.marked(rows, promises)
    pictured, rungs = _pictured(work, calibrated, rows) if question.picture else ([], None)
    utilities = {each.job.candidate.name: trials.get(id(each), none).utilities()[1] for each in target}
    chosen = recommendation.recommended(
        rows, utilities, target, promises, [*remarks, *_cut_short(question, swept), *_among_fewer(people, swept)],
        same_users=same, rungs=rungs,
    )  # fmt: skip
    rows.sort(key=_order)
    rows += [table.row_without(each) for each in others]
    points = [
        point for each, those in (*swept, *pictured) if (point := _point(each, those, promises)) is not None
    ]
    return Comparison(
        question, people.users, work.place, table.frame(rows), chosen, table.views_of(promises, rows), points
    )


def _pictured(
    work: _Work, calibrated: Sequence[Calibrated], rows: Sequence[table.Row]
) -> tuple[Swept, list[recommendation.Rung]]:
    """Run protocols at other epsilons; with all seeds at larger ones if none is of use at the target.

    Returns the runs and, if none is of use, what those at larger epsilons gave.
    """
    run = {str(row["protocol"]) for row in rows if row.get("seeds")}
    those = [
        each for each in calibrated
        if each.fits and each.job.scale != 1 and each.job.candidate.name in run
    ]  # fmt: skip
    known = [row for row in rows if row.get("utility") is not None]
    enough = any(map(recommendation.is_useful, known)) or not recommendation.features_tell(known)
    further = [] if enough else [each for each in those if each.job.scale > 1]
    pictured = work.pictured(those, further)
    tries = table.tries_of(trials for each, trials in pictured if any(each is one for one in further))
    rungs, same = [], work.people.data is not None
    for each, trials in pictured:
        row = table.row_of(each, trials, each.job.promises, same_users=same, tries=tries)
        if any(each is one for one in further) and row["utility"] is not None:
            rungs.append(recommendation.Rung(each, row))
    return pictured, rungs


def _order(row: table.Row) -> tuple[int, float]:
    last = [table.FRONT, table.DOMINATED, table.FITS, LEFT_OUT, FAILED, table.FITS_NOT]
    return last.index(row["status"]), -(row.get("utility") or 0.0)


_OF_A_POINT = ("metric", "utility", "utility_error", "seeds", "utility[true]", "utility[constant]")


def _point(each: Calibrated, trials: table.Trials, promises: Any) -> dict[str, Any] | None:
    """Return a point of the picture: what the target's view learns, and the utility."""
    assert each.fitted is not None
    own = table.row_of(each, trials, each.job.promises, same_users=False)  # of no attack
    if own.get("utility") is None:
        return None
    key = promises.target.view.key
    return {
        "protocol": own["protocol"], "epsilon_nats": own[f"epsilon_nats[{key}]"], "basis": own[f"basis[{key}]"],
        **{name: own[name] for name in _OF_A_POINT},
    }  # fmt: skip


def _remarks(question: Question, people: People, first: candidates.Candidate) -> list[str]:
    """Return the doubts that concern all protocols; ``first``: any that takes the labels."""
    found: list[str] = []
    if people.data is not None:
        found += data_warnings.data_warnings(_examples(question, people.data, first))
        found += _as_classes(people.labels, people.data)
        found.append(
            "choosing by the true labels, as here, costs privacy that no figure includes: where that matters, compare "
            "on public or synthetic people like these"
        )
    if "cluster_column" in question.people:
        found.append(
            f"column {question.people['cluster_column']!r} says who meets whom, so no model learns from it: without "
            "--cluster-column it would be a feature"
        )
    if people.users > runs.MOST_USERS:
        found.append(
            f"utility, attack and costs are of runs among {runs.MOST_USERS:,} of the {people.users:,} users; what "
            "views learn is of all"
        )
    if people.features == 0:
        found.append(
            "there are no features, so no model was trained, and nothing says how useful the labels are"
        )
    warning = delta_warning(question.promises.delta, people.users)
    return found + ([warning] if warning else [])


def _as_classes(labels: LabelKind, data: Dataset) -> list[str]:
    """Return that labels of several classes are all numbers, and how to say that they measure something."""
    if (
        labels.name != CLASSES
        or data.classes_from != "inferred"
        or not all(_is_number(each) for each in data.classes)
    ):
        return []
    return [
        f"the {labels.count} numbers that occur as label {labels.label!r} were taken as classes, none nearer to "
        "another; if they measure something, say their public range (--range LOW,HIGH)"
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _cut_short(question: Question, swept: Sequence[tuple[Calibrated, table.Trials]]) -> list[str]:
    """Return which protocols have some seeds, but fewer than were asked for."""
    few = [
        f"{each.job.candidate.name} {len(trials.made)}"
        for each, trials in swept
        if 0 < len(trials.made) < len(question.seeds)
    ]
    return [f"of {len(question.seeds)} seeds there was time for fewer: {', '.join(few)}"] if few else []


def _among_fewer(people: People, swept: Sequence[tuple[Calibrated, table.Trials]]) -> list[str]:
    """Return which protocols were run among fewer users than the others."""
    names = [
        each.job.candidate.name
        for each, trials in swept
        if trials.made and trials.among < min(people.users, runs.MOST_USERS)
    ]
    if not names:
        return []
    return [
        f"{' and '.join(names)} cannot be simulated here among as many users as the others: except for what "
        f"views learn, {'their' if len(names) > 1 else 'its'} figures are of runs among {runs.FEWER_USERS:,} users, "
        "and more users would make a better model"
    ]


def _examples(question: Question, data: Dataset, first: candidates.Candidate) -> data_split.Examples:
    """Return the users of a run, without k-means, and the test rows."""
    among = {name: question.people[name] for name in ("test",) if name in question.people}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the runs say it
        clusters = 1 if data.cluster is None else None
        return data_split.gather(first.made(), data, clusters=clusters, **among)


def _write(result: Comparison) -> None:
    """Write what was found into the comparison's folder, readable by its owner alone: it contains seeds."""
    place = result.path
    output_files.write(place / TABLE, result.table.to_parquet(index=False), private=True)
    text = result.table.to_csv(index=False, lineterminator="\n")
    output_files.write(place / TABLE_CSV, text, private=True)
    output_files.write(place / WHOLE, result.as_json(), private=True)
    if result.question.picture:
        output_files.write(place / REPORT, result.html(), private=True)
