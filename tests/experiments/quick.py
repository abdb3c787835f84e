"""Quick runs of experiments, made once for the tests of a file."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from experiments import _made_by, _needs
from experiments._common import VERDICTS, Options, Outcome, drifted, main
from experiments._processors import Compute, Processors


@contextmanager
def sendable() -> Iterator[None]:
    """Compute cases as another process would have them: each is pickled, and what is read back is of the same code."""
    computed = Processors.computed

    def sent(self: Processors, cases: Sequence[Compute]) -> Any:
        copies = [pickle.loads(pickle.dumps(compute)) for compute in cases]
        assert [*map(_made_by.of, copies)] == [*map(_made_by.of, cases)]
        return computed(self, copies)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Processors, "computed", sent)
        yield


def results(scripts: Sequence[Any], out: Path) -> dict[str, Any]:
    """What quick runs of some scripts say, by name, and under ``out`` where; skips where what they need is absent."""
    for script in scripts:
        if missing := _needs.missing(script.EXPERIMENT.needs):
            pytest.skip(missing)
        with sendable():
            assert main(script.EXPERIMENT, ["--quick", "--out", str(out)]) == 0
    names = [script.EXPERIMENT.name for script in scripts]
    return {name: json.loads((out / f"{name}.json").read_text()) for name in names} | {"out": out}


def outcome(script: Any, out: Path) -> Outcome:
    """What a quick run of a script finds, held to earlier values; skips where what it needs is absent."""
    if missing := _needs.missing(script.EXPERIMENT.needs):
        pytest.skip(missing)
    with sendable():
        found = script.EXPERIMENT.run(options := Options(quick=True, seeds=None, out=out))
    assert drifted(script.EXPERIMENT, options, found) == []
    return cast("Outcome", found)


def claims(told: dict[str, Any], script: Any) -> list[dict[str, str]]:
    """The claims of a script, each with verdict and reason; its files are all there."""
    name = script.EXPERIMENT.name
    found = told[name]["claims"]
    assert all(claim["verdict"] in VERDICTS and claim["why"] for claim in found)
    assert {path.suffix for path in told["out"].glob(f"{name}.*")} == {".csv", ".json", ".png", ".svg"}
    return found
