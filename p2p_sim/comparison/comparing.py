"""Makes a comparison: calibrates every protocol, runs those that fit as a sweep, and reads its table."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison import calibrations, candidates, pareto_front, recommendation, runs, table
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
from p2p_sim.sweep import sweeping
from p2p_sim.sweep.table import FAILED, LEFT_OUT

if TYPE_CHECKING:
    from p2p_sim.learning.applicability import LabelKind
    from p2p_sim.learning.data.datasets import Dataset

COMPARISONS = "comparisons"
"""Where comparisons are kept, in the current folder, unless another place is given."""

RUNS, PICTURE = "runs", "picture"
TABLE, TABLE_CSV, WHOLE, REPORT = "table.parquet", "table.csv", "comparison.json", "report.html"

SCALES = (0.5, 2.0, 0.25, 4.0)
"""By what the target's epsilon is multiplied for the picture, the nearest first."""

_CALIBRATING, _RUNNING, _PICTURING = 0.4, 0.8, 0.95
"""Parts of a time budget at which calibrations, runs and the picture's runs end; of a comparison without a picture runs
end where the picture's would."""


def made(
    question: Question,
    *,
    out: str | Path | None,
    workers: int | None,
    address: str | None,
    budget: float | None,
    tell: Progress,
    say: Callable[[str], None],
) -> Comparison:
    """Make a comparison; see ``p2p_sim.compare``.  ``budget``: seconds."""
    begin = time.monotonic()

    def until(part: float) -> float | None:
        return None if budget is None else begin + part * budget

    address = sweeping.where_made(workers, address)
    tell("looking at the data", 0, 0)
    people = people_of(question.people, question.range)
    found, others = candidates.of(question.protocols, people.labels, people.features)
    if not found:
        raise InputError(
            f"no protocol here takes {people.labels}: "
            + "; ".join(f"{each.name}: {each.why}" for each in others)
        )
    for promise in question.promises.every:
        promise.view.check([each.kind for each in found])
    place = _place(question, out)
    say(f"{place}: {len(found)} protocols, {len(question.seeds)} seeds")
    jobs = calibrations.jobs(found, question.promises, SCALES if question.picture else ())
    tell("calibrating protocols", 0, 0)
    how: dict[str, Any] = {"workers": workers, "address": address}
    content = "" if people.data is None else people.data.content()
    calibrated = calibrations.made(
        jobs, question, place, **how, content=content, until=until(_CALIBRATING), tell=tell
    )
    fit = [each for each in calibrated if each.fits and each.job.scale == 1]
    runner = runs.Runner(question, people, **how, tell=tell)
    with _warned_once():
        last = _RUNNING if question.picture else _PICTURING
        swept = runner.made(fit, question.seeds, runs.ATTACKED, place / RUNS, until(last))
        pictured: list[tuple[Calibrated, table.Trials]] = []
        if question.picture:
            shown = {each.job.candidate.name for each, trials in swept if trials.made}
            those = [each for each in calibrated if each.fits and each.job.scale != 1]
            those = [each for each in those if each.job.candidate.name in shown]
            pictured = runner.made(
                those, question.seeds[: runs.PICTURED], 0, place / PICTURE, until(_PICTURING)
            )
    tell("writing the comparison", 0, 0)
    remarks = [
        *_remarks(question, people, found[0]),
        *_cut_short(question, swept),
        *_among_fewer(people, swept),
    ]
    result = _result(question, people, place, calibrated, others, swept, pictured, remarks)
    _write(result)
    return result


def _place(question: Question, out: str | Path | None) -> Path:
    """Return the folder of a comparison, the same for the same question; raises InputError if it is another's."""
    if out is not None:
        place = path_of("out", out)
        calibrations.check_place(place)
        return place
    text = json.dumps(question.document(), sort_keys=True)
    return Path(COMPARISONS) / f"{question.name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


@contextmanager
def _warned_once() -> Iterator[None]:
    """Let what several sweeps warn of be heard once."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        yield
    for text in dict.fromkeys(str(each.message).partition(": ")[2] or str(each.message) for each in heard):
        warnings.warn(text, UserWarning, stacklevel=2)


def _result(
    question: Question,
    people: People,
    place: Path,
    calibrated: Sequence[Calibrated],
    others: Sequence[candidates.Inapplicable],
    swept: Sequence[tuple[Calibrated, table.Trials]],
    pictured: Sequence[tuple[Calibrated, table.Trials]],
    remarks: Sequence[str],
) -> Comparison:
    target = [each for each in calibrated if each.job.scale == 1]
    trials = {id(each): those for each, those in swept}
    none = table.Trials([], 0)
    promises = question.promises
    rows = [table.row_of(each, trials.get(id(each), none), promises) for each in target]
    rows = pareto_front.marked(rows, promises)
    utilities = {each.job.candidate.name: trials.get(id(each), none).utilities()[1] for each in target}
    chosen = recommendation.recommended(
        rows, utilities, target, promises, remarks, same_users=people.data is not None
    )
    rows.sort(key=_order)
    rows += [table.row_without(each) for each in others]
    points = [
        point for each, those in (*swept, *pictured) if (point := _point(each, those, promises)) is not None
    ]
    return Comparison(
        question, people.users, place, table.frame(rows), chosen, table.views_of(promises, rows), points
    )


def _order(row: table.Row) -> tuple[int, float]:
    last = [table.FRONT, table.DOMINATED, table.FITS, LEFT_OUT, FAILED, table.FITS_NOT]
    return last.index(row["status"]), -(row.get("utility") or 0.0)


_OF_A_POINT = ("metric", "utility", "utility_error", "seeds", "utility[true]", "utility[constant]")


def _point(each: Calibrated, trials: table.Trials, promises: Any) -> dict[str, Any] | None:
    """Return a point of the picture: what the target's view learns, and the utility."""
    assert each.fitted is not None
    own = table.row_of(each, trials, each.job.promises)
    if own.get("utility") is None:
        return None
    key = promises.target.view.key
    return {
        "protocol": own["protocol"], "epsilon_nats": own[f"epsilon_nats[{key}]"], "basis": own[f"basis[{key}]"],
        **{name: own[name] for name in _OF_A_POINT},
    }  # fmt: skip


def _remarks(question: Question, people: People, first: candidates.Candidate) -> list[str]:
    """Return doubts that are of all protocols alike; ``first``: any that takes the labels."""
    found: list[str] = []
    if people.data is not None:
        found += data_warnings.data_warnings(_examples(question, people.data, first))
        found += _as_classes(people.labels, people.data)
        found.append(
            "choosing by the true labels, as here, costs privacy that no figure includes: where that matters, compare "
            "on public or synthetic people like these"
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
    """Return which protocols have fewer seeds than were asked for, though some."""
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
        f"among so many users as the others, {' and '.join(names)} cannot be simulated here: what the table has of "
        f"{'them' if len(names) > 1 else 'it'}, but for what views learn, is of runs among {runs.FEWER_USERS:,}, and "
        "more users would make a better model"
    ]


def _examples(question: Question, data: Dataset, first: candidates.Candidate) -> data_split.Examples:
    """Return the users of a run, without k-means, and the test rows."""
    among = {name: question.people[name] for name in ("test",) if name in question.people}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the runs say it
        clusters = 1 if data.cluster is None else None
        return data_split.gather(first.made(), data, clusters=clusters, **among)


def _write(result: Comparison) -> None:
    """Write what was found into the comparison's folder, readable by its owner alone: it tells seeds."""
    place = result.path
    output_files.write(place / TABLE, result.table.to_parquet(index=False), private=True)
    text = result.table.to_csv(index=False, lineterminator="\n")
    output_files.write(place / TABLE_CSV, text, private=True)
    output_files.write(place / WHOLE, result.as_json(), private=True)
    if result.question.picture:
        output_files.write(place / REPORT, result.html(), private=True)
