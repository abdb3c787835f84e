"""The frame of experiments: what is written, what is compared, what is skipped, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import _common, _expected, _made_by, _needs
from experiments._common import Claim, Experiment, Options, Outcome, main, read_csv
from experiments._expected import Held
from p2p_sim.core.errors import InputError

CLAIM = Claim("A paper, Figure 1", "it rises", "it rose by 3", "reproduced", "the same data")


def plot() -> Any:
    from experiments import _plots

    figure, axes = _plots.panels(1, 1)
    axes[0, 0].plot([1, 2], [3, 4])
    return figure


def outcome(options: Options) -> Outcome:
    rows = [
        {"n": n, "accuracy": 0.5 + n / 100, "standard_error": 0.01, "seeds": options.seeds or 3}
        for n in (1, 2)
    ]
    return Outcome({"": rows, "part": rows[:1]}, [CLAIM], {"": plot})


THIS = Experiment(
    "sample", "A sample", "A paper, Figure 1", "a second", outcome,
    keys=("n",), values={"accuracy": "standard_error", "seeds": 0.0},
)  # fmt: skip


SECONDS = {"in_one": "it takes seconds"}


@pytest.fixture
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    folder = tmp_path / "expected"
    folder.mkdir()
    monkeypatch.setattr(_expected, "FOLDER", folder)

    def write(rows: str) -> None:
        (folder / "sample.csv").write_text("n,accuracy,standard_error,seeds\n" + rows)

    return write


def run(tmp_path: Path, *words: str, experiment: Experiment = THIS) -> int:
    return main(experiment, [*words, "--out", str(tmp_path / "out")])


def told(tmp_path: Path) -> dict[str, Any]:
    return dict(json.loads((tmp_path / "out/sample.json").read_text()))


def test_all_that_came_out_is_written(tmp_path: Path) -> None:
    assert run(tmp_path, "--seeds", "2") == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"sample.csv", "sample_part.csv", "sample.svg", "sample.png", "sample.json"}
    assert [row["n"] for row in read_csv(tmp_path / "out/sample.csv")] == ["1", "2"]
    found = told(tmp_path)
    assert found["claims"] == [vars(CLAIM)]
    assert (found["quick"], found["seeds"], found["skipped"], found["plots"]) == (False, 2, "", ["sample"])
    assert _made_by.same(found["code"])
    assert not _made_by.same(found["code"] | {"_common.py": "another"})


def test_pictures_are_equal_bytes(tmp_path: Path) -> None:
    pictures = []
    for _ in range(2):
        assert run(tmp_path) == 0
        pictures.append([(tmp_path / "out" / f"sample.{kind}").read_bytes() for kind in ("svg", "png")])
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize(
    ("rows", "words", "code", "said"),
    [
        ("1,0.51,0.01,3\n2,0.52,0.01,3\n", (), 0, ""),
        ("1,0.56,0.01,3\n2,0.52,0.01,3\n", (), 0, ""),  # 3.6 joint standard errors
        ("1,0.57,0.01,3\n2,0.52,0.01,3\n", (), 1, "1: accuracy is 0.51, expected 0.57, within 0.057"),
        ("1,0.51,0.01,4\n", (), 1, "1: seeds is 3, expected 4, within 0"),
        ("3,0.51,0.01,3\n", (), 1, "3: expected, and not found"),
        ("3,0.51,0.01,3\n", ("--seeds", "3"), 0, ""),
        ("1,refused,0.01,3\n", ("--seeds", "3"), 1, "1: accuracy is 0.51, expected nan"),
    ],
)
def test_values_are_held_to_earlier_ones(
    tmp_path: Path,
    expected: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    rows: str,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    expected(rows)
    assert run(tmp_path, *words) == code
    assert said in capsys.readouterr().err
    assert bool(told(tmp_path)["drifted"]) is bool(code)


@pytest.mark.parametrize("place", ["sample_part", "quick/sample_part", "quick/sample"])
def test_other_tables_and_quick_runs_have_earlier_values_of_their_own(
    tmp_path: Path, expected: Callable[[str], None], capsys: pytest.CaptureFixture[str], place: str
) -> None:
    this = replace(THIS, parts={"part": Held(("n",), {"accuracy": "standard_error"})})
    expected("1,0.51,0.01,3\n2,0.52,0.01,3\n")
    (tmp_path / "expected/quick").mkdir()
    other = tmp_path / f"expected/{place}.csv"
    for value, code in (("0.51", 0), ("0.61", 1)):
        other.write_text(f"n,accuracy,standard_error,seeds\n1,{value},0.01,3\n")
        words = ["--quick"] if place.startswith("quick") else []
        assert run(tmp_path, *words, experiment=this) == code
    assert "1: accuracy is 0.51, expected 0.61, within 0.057" in capsys.readouterr().err
    other.unlink()
    assert run(tmp_path, "--quick", experiment=this) == 0


def test_keys_that_do_not_tell_rows_apart_are_refused(
    tmp_path: Path, expected: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    expected("1,0.51,0.01,3\n")
    assert run(tmp_path, experiment=replace(THIS, keys=("seeds",))) == 2
    assert "do not tell rows apart" in capsys.readouterr().err


def test_what_is_absent_skips_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("P2P_SIM_DATA", raising=False)
    monkeypatch.setitem(_needs.PACKAGES, "no_such_package", "pip install nothing")
    assert run(tmp_path, experiment=replace(THIS, needs=("digits", "mnist", "no_such_package"))) == 0
    assert told(tmp_path)["skipped"] == (
        "needs the data set mnist: set P2P_SIM_DATA to a folder that has it (docs/data.md); "
        "needs no_such_package: pip install nothing"
    )
    assert "sample: skipped: needs the data set mnist" in capsys.readouterr().err
    assert not (tmp_path / "out/sample.csv").exists()
    with pytest.raises(InputError, match="need 'minst': known are torch"):
        _needs.missing(["minst"])


def test_bad_input_is_an_error_and_no_outcome(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(options: Options) -> Outcome:
        raise InputError("alpha = 2: needs at most 1")

    assert run(tmp_path, experiment=replace(THIS, run=fails)) == 2
    assert "sample: alpha = 2: needs at most 1" in capsys.readouterr().err
    assert run(tmp_path, experiment=replace(THIS, run=lambda _: Outcome({}, []))) == 2
    assert "sample claims nothing" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "0"), "--seeds: '0' needs at least 1, at most 100,000"),
        (("--seeds", "9" * 20), "--seeds: '99999999999999999999' must be a whole number below 2^64"),
        (("--workers", "1e6"), "--workers: '1e6' needs at least 1"),
        (("--workers", "two"), "--workers: 'two' must be a whole number"),
        (("--out", ""), "--out: '' is no folder"),
    ],
)
def test_what_no_script_can_do_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, *words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "takes", "said"),
    [
        (
            ("--address", "a:1"),
            SECONDS,
            "--address a:1: sample is computed in one process, as it takes seconds",
        ),
        (("--workers", "2"), SECONDS, "--workers 2: sample is computed in one process, as it takes seconds"),
        (("--seeds", "2"), {"seeded": False}, "--seeds 2: sample has no number of seeds to choose"),
        (("--address", "a:1"), {}, ""),
        (("--workers", "2"), {}, ""),
        (("--seeds", "2"), {}, ""),
    ],
)
def test_an_option_of_no_use_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    takes: dict[str, Any],
    said: str,
) -> None:
    this = replace(THIS, **takes)
    if not said:
        assert run(tmp_path, *words, experiment=this) == 0
        return
    with pytest.raises(SystemExit):
        run(tmp_path, *words, experiment=this)
    assert said in capsys.readouterr().err


def test_ctrl_c_ends_with_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(options: Options) -> Outcome:
        raise KeyboardInterrupt

    assert run(tmp_path, experiment=replace(THIS, run=interrupted)) == 130
    assert capsys.readouterr().err.startswith("sample: ended")


def test_fresh_drops_rows_that_were_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    rows = tmp_path / "out/sample.csv.rows.json"
    rows.touch()
    assert run(tmp_path) == 0
    assert rows.exists()
    assert run(tmp_path, "--fresh") == 0
    assert not rows.exists()


def test_fresh_leaves_the_rows_of_scripts_whose_names_begin_alike(tmp_path: Path) -> None:
    (out := tmp_path / "out").mkdir()
    for table in ("release_figure3", "release_figure3_part", "release_figure3_network"):
        (out / f"{table}.csv.rows.json").write_text("{}")
    assert run(tmp_path, "--fresh", experiment=replace(THIS, name="release_figure3", values={})) == 0
    assert [file.name for file in out.glob("*.rows.json")] == ["release_figure3_network.csv.rows.json"]


@pytest.mark.parametrize("part", ["where", "says", "found", "why"])
def test_a_claim_has_all_of_its_parts(part: str) -> None:
    with pytest.raises(InputError, match=f"has no '{part}'"):
        replace(CLAIM, **{part: " "})


def test_a_verdict_is_one_of_four() -> None:
    with pytest.raises(InputError, match="needs one of reproduced, reproduced in shape"):
        replace(CLAIM, verdict="mostly")  # type: ignore[arg-type]
    assert len(_common.VERDICTS) == 4


@pytest.mark.parametrize(
    ("users", "whole", "said"),
    [
        ("100", False, ["1: accuracy is 0.5, expected 0.9, within 0.01"]),
        ("20", False, []),
        ("20", True, ["1: expected, and not found"]),
    ],
)
def test_rows_of_another_size_are_other_rows(users: str, whole: bool, said: list[str]) -> None:
    """A quick run is of fewer users, and what it finds need not be what a full one found."""
    found, expected = (
        [{"n": 1, "users": 100, "accuracy": 0.5}],
        [{"n": "1", "users": users, "accuracy": "0.9"}],
    )
    assert _expected.drifted(found, expected, Held(("n",), {"accuracy": 0.01}), whole=whole) == said
