"""What computes the cases of an experiment: this process, others of this machine, or those of a Ray cluster."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from experiments import _made_by
from p2p_sim.core.errors import InputError, ProtocolError, RunLostError
from p2p_sim.core.module_finder import in_one_line
from p2p_sim.core.threads import cores
from p2p_sim.learning.training.models import one_thread
from p2p_sim.sweep import work_queue
from p2p_sim.sweep.sweeping import where_made
from p2p_sim.sweep.work_queue import Task

Row = dict[str, Any]
Compute = Callable[[], Sequence[Row]]


class Answer(TypedDict, total=False):
    """The rows of a case, or why there are none."""

    rows: list[Row]
    error: str


@dataclass(frozen=True)
class Processors:
    """Processes that compute cases: ``workers`` of this machine, 1: this one itself; or of the Ray cluster at
    ``address``, one for each of its processors."""

    workers: int = 1
    address: str | None = None

    @classmethod
    def asked(cls, workers: int | None, address: str | None, *, quick: bool) -> Processors:
        """Return those that were asked for; raises InputError for both, or for fewer than one worker.

        Without any of them a quick run stays in this process, as importing takes as long as its work; a full one takes
        the cluster of RAY_ADDRESS, where there is one, and otherwise all processors here, as ``p2p_sim.sweep`` does.
        """
        if quick and workers is None and address is None:
            return cls()
        return cls(workers or cores(), where_made(workers, address))

    def computed(self, cases: Sequence[Compute]) -> Iterator[tuple[int, Answer]]:
        """Yield what came of each case, with its number, as it ends; a single one is computed in this process.

        Raises InputError for a case that cannot be sent to another process, and RunLostError where no worker begins.
        """
        if len(cases) < 2 or (self.address is None and self.workers == 1):
            yield from ((index, answer_of(compute)) for index, compute in enumerate(cases))
            return
        tasks = [Task(index, _asked(compute)) for index, compute in enumerate(cases)]
        most = len(cases) if self.address is not None else min(self.workers, len(cases))
        with work_queue.workers(Computer, most, self.address) as hands:
            for each in work_queue.ended(tasks, hands):
                yield each.index, Answer(error=each.why) if each.answer is None else json.loads(each.answer)


HERE = Processors()


class Computer:
    """A worker that computes cases; data that these read stay in its process for the next one."""

    def answer(self, text: str) -> str:
        """Return rows as JSON, or why there are none; ``text``: a case, and the fingerprint of its code."""
        asked = json.loads(text)
        try:
            compute = pickle.loads(base64.b64decode(asked["case"]))
        except (ImportError, AttributeError) as error:
            return json.dumps({"error": f"{in_one_line(error)}: this worker has other code"})
        if _made_by.of(compute) != asked["code"]:
            return json.dumps({"error": "this worker has other code, or other versions of packages"})
        return json.dumps(answer_of(compute))


def answer_of(compute: Compute) -> Answer:
    """Compute a case; rows are as they are read back from a file.  What fails is shown on stderr, and returned."""
    try:
        with one_thread():  # another number may round otherwise
            return Answer(rows=json.loads(json.dumps(list(compute()), default=_plain)))
    except (InputError, ProtocolError, RunLostError) as error:
        return Answer(error=str(error))
    except Exception as error:  # whatever it is: the other cases are computed
        traceback.print_exc(file=sys.stderr)
        return Answer(error=in_one_line(error))


def _asked(compute: Compute) -> str:
    try:
        case = base64.b64encode(pickle.dumps(compute)).decode()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"a case cannot be computed by another process ({error}): leave --workers and --address out"
        ) from error
    return json.dumps({"case": case, "code": _made_by.of(compute)})


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no value of a row")


def in_words(settings: Mapping[str, Any]) -> str:
    """Return the settings of a case in words; a fingerprint of examples says nothing to a reader."""
    return ", ".join(f"{name} = {value}" for name, value in settings.items() if name != "content")
