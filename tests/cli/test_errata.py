"""``p2p-sim errata``: what it prints, and how it ends when a correction no longer shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p2p_sim import errata
from p2p_sim.errata import Numbers


def test_all_show(cli) -> None:
    done = cli("errata")
    assert done.status == 0
    assert done.out.endswith(f"\n{len(errata.ERRATA)} of {len(errata.ERRATA)} corrections show.\n")
    assert "Clustering 2022, Theorem 1\n  printed    Algorithm 1" in done.out
    assert (
        "printed 2.2528, exact 2.9808, corrected 3.2528: the exact number exceeds the printed bound"
        in done.out
    )
    assert done.out.count("  shown by   p2p-sim errata --only ") == len(errata.ERRATA)


def test_some_as_json(cli) -> None:
    ids = ["pitfalls-table-2-kdd12", "clustering-renormalization", "clustering-renormalization"]
    rows = cli("errata", "--json", *(word for id in ids for word in ("--only", id))).json
    assert [row["id"] for row in rows] == ids[:2]
    assert (rows[0]["exact"], rows[0]["shows"], rows[1]["printed"]) == ("inf", True, None)
    assert rows[1]["command"] == "p2p-sim errata --only clustering-renormalization"
    assert rows[1]["python"] == (
        "from p2p_sim.errata import clustering2022; clustering2022.renormalization()"
    )


def test_one_that_no_longer_shows_is_an_error(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = errata.ERRATA
    broken = replace(first, numbers=lambda: Numbers(3, 2, 3))
    monkeypatch.setattr(errata, "ERRATA", (broken, second))
    done = cli("errata")
    assert done.status == 1
    assert done.err == "p2p-sim errata: clustering-theorem-1 no longer shows\n"
    assert done.out.endswith("1 of 2 corrections show.\n")


def test_unknown_ids_are_refused(cli) -> None:
    done = cli("errata", "--only", "theorem-1")
    assert done.status == 2
    assert "no erratum 'theorem-1': known are clustering-theorem-1" in done.err
