"""The calibrations of a comparison: one for each protocol and each epsilon, made by processes, and kept in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from p2p_sim.catalogue import class_name
from p2p_sim.comparison.calibration_worker import Calibrator
from p2p_sim.comparison.candidates import Candidate
from p2p_sim.comparison.fit_to_promises import Fitted
from p2p_sim.comparison.promises import Promise, Promises
from p2p_sim.comparison.question import Question
from p2p_sim.core import code_fingerprint
from p2p_sim.core.engine import Progress
from p2p_sim.core.errors import InputError
from p2p_sim.core.threads import cores
from p2p_sim.result_summary import counted
from p2p_sim.rundir.run_directory import to_json
from p2p_sim.sweep import folder, work_queue
from p2p_sim.sweep.processes import Workers
from p2p_sim.sweep.time_budget import TimeBudget
from p2p_sim.sweep.work_queue import Task

_LIBRARIES = ("scipy", "scikit-learn")


@dataclass(frozen=True)
class Job:
    """One calibration.  ``scale``: by what the target's epsilon is multiplied; 1 for the target itself."""

    candidate: Candidate
    promises: Promises
    scale: float = 1.0

    def text(self, question: Question) -> str:
        """Return what a worker is asked."""
        own = self.candidate
        settings = {**question.people, "seed": question.seeds[0], "split_seed": question.seeds[0]}
        settings.pop("model", None)
        if "users" in settings:
            del settings["split_seed"]
        if own.graph is not None:
            settings["graph"] = own.graph
        run: dict[str, Any] = {
            "protocol": own.name, "settings": settings,
            "parameters": {name: to_json(value) for name, value in own.fixed.items()},
        }  # fmt: skip
        if own.vary is not None:
            run["promise"] = {"vary": own.vary, "between": [own.start], "view": "", "epsilon": 0.0}
        first = self.scale == 1
        asked = {
            "run": run, "vary": own.vary, "promises": _asked(self.promises.every), "delta": self.promises.delta,
            "beside": None if first else _asked(question.promises.constraints), "pilot": first,
        }  # fmt: skip
        return json.dumps(asked, sort_keys=True)


def _asked(promises: Sequence[Promise]) -> list[list[Any]]:
    return [[each.view.text, each.view.users, each.epsilon] for each in promises]


@dataclass(frozen=True)
class Calibrated:
    """What came of a job: ``fitted``, or ``error``, why it failed.  ``messages``: of a user, in a
    small run."""

    job: Job
    fitted: Fitted | None
    error: str = ""
    messages: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether all promises are kept."""
        return self.fitted is not None and not self.fitted.why

    @property
    def left_out(self) -> bool:
        """Whether there was no time for it."""
        return self.fitted is None and self.error == LEFT_OUT

    @property
    def why(self) -> str:
        """Why not; empty if they are."""
        return self.error if self.fitted is None else self.fitted.why


def jobs(candidates: Sequence[Candidate], promises: Promises, scales: Sequence[float]) -> list[Job]:
    """Return the calibrations to the target of every candidate, then those to other epsilons of its view alone."""
    found = [Job(each, promises) for each in candidates]
    for scale in scales:
        other = replace(promises.target, epsilon=promises.target.epsilon * scale)
        alone = Promises(other, (), promises.delta)
        found += [Job(each, alone, scale) for each in candidates if each.vary is not None]
    return found


def made(
    asked: Sequence[Job],
    question: Question,
    place: Path,
    kept: folder.SweepFolder,
    *,
    content: str = "",
    workers: int | None,
    address: str | None,
    until: float | None,
    tell: Progress,
) -> list[Calibrated]:
    """Make the calibrations that are not in the folder yet; return all, in order.

    ``kept``: the folder of the comparison ``place``, held.  ``content``: the SHA-256 of the data; empty of synthetic
    users.
    Raises InputError where the folder holds those of another question, of other data or of other code.
    """
    texts = [job.text(question) for job in asked]
    about = _about(asked, question, content)
    if kept.about is None:
        kept.begin(about)
    _check_same(kept.about or {}, about, place)
    left = [index for index in range(len(asked)) if index not in kept.done]
    if left:
        wanted = min(len(left), workers or cores())
        budget = None if until is None else TimeBudget(until, wanted)
        with _workers(address, wanted, len(left)) as pool:
            tasks = [Task(index, texts[index], asked[index].candidate.name) for index in left]
            _make(tasks, pool, budget, kept, partial(tell, _label(asked)), len(asked))
    answers = [kept.answer(index) if index in kept.again else None for index in range(len(asked))]
    return [_calibrated(job, answer) for job, answer in zip(asked, answers, strict=True)]


def _workers(address: str | None, wanted: int, left: int) -> AbstractContextManager[Workers]:
    return work_queue.workers(Calibrator, wanted if address is None else left, address)


def _label(asked: Sequence[Job]) -> str:
    protocols = len({job.candidate.name for job in asked})
    epsilons = f" at up to {-(-len(asked) // protocols)} ε" if len(asked) > protocols else ""
    return f"calibrating {counted(protocols, 'protocol')}{epsilons}"


def _make(
    tasks: Sequence[Task],
    workers: Workers,
    budget: TimeBudget | None,
    kept: folder.SweepFolder,
    tell: Callable[[int, int], None],
    count: int,
) -> None:
    """Have what is left of ``count`` jobs calibrated; what there is no time for is left out."""
    if budget is not None:
        budget.begin(task.group for task in tasks)
    for number, each in enumerate(work_queue.ended(tasks, workers, budget), count - len(tasks) + 1):
        if not each.out_of_time:
            found = {"error": each.why, "again": True} if each.answer is None else json.loads(each.answer)
            kept.add(each.index, found)
        tell(number, count)


LEFT_OUT = "the time was over before it was calibrated"


def _calibrated(job: Job, answer: Mapping[str, Any] | None) -> Calibrated:
    if answer is None:
        return Calibrated(job, None, LEFT_OUT)
    if "error" in answer:
        return Calibrated(job, None, str(answer["error"]))
    return Calibrated(job, Fitted(**answer["found"]), messages=float(answer["messages"]))


def _about(asked: Sequence[Job], question: Question, content: str) -> dict[str, Any]:
    modules = sorted({name for job in asked for name in code_fingerprint.modules_of(job.candidate.made())})
    code = code_fingerprint.code_of(modules) | {name: metadata.version(name) for name in _LIBRARIES}
    every = [[class_name(job.candidate.kind), job.scale] for job in asked]
    asks = json.loads(json.dumps([question.document(), every]))
    return {"source": "", "runs": len(asked), "grids": asks, "code": code, "examples": {"data": content}}


def _check_same(then: Mapping[str, Any], now: Mapping[str, Any], place: Path) -> None:
    changes = [] if then["grids"] == now["grids"] else [_asked_else(then["grids"], now["grids"])]
    changes += [] if then["examples"] == now["examples"] else ["its data are others"]
    changes += code_fingerprint.differences(then["code"], now["code"])
    if changes:
        raise InputError(
            f"{str(place)!r} has a comparison that differs: {changes[0]}.  Give another --out, or remove the folder"
        )


def _asked_else(then: Sequence[Any], now: Sequence[Any]) -> str:
    """Return how the questions of two comparisons differ, in words; ``then``, ``now``: as ``_about`` keeps them."""
    before, after = ({**asked[0], **asked[0]["people"]} for asked in (then, now))
    names = [name for name in {**before, **after} if name != "people" and before.get(name) != after.get(name)]
    differences = [
        f"{name} = {_value_text(before.get(name))} then, {_value_text(after.get(name))} now" for name in names
    ]
    return (
        f"it asked something else ({'; '.join(differences)})" if differences else "it was of other protocols"
    )


def _value_text(value: Any) -> str:
    return "not given" if value is None else json.dumps(value)
