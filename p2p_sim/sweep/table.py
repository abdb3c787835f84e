"""The table of a sweep: a row for each run, tidy, and the same whatever way the sweep took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from p2p_sim.report import output_files
from p2p_sim.rundir.sweep_files import TABLE, TABLE_CSV
from p2p_sim.sweep.folder import SweepFolder
from p2p_sim.sweep.one_run import Row, columns_of, trial_of
from p2p_sim.sweep.settings import SEEDS

if TYPE_CHECKING:
    from p2p_sim.sweep.grids import Grids

MADE, FAILED, LEFT_OUT = "made", "failed", "left out"
_NO_TIME: dict[str, Any] = {"error": "there was no time left for it: give the same command again to go on"}


def written(grids: Grids, folder: SweepFolder) -> Any:
    """Return the table, and write it into the sweep's folder, as Parquet and as CSV; raises InputError."""
    found = _frame(_rows(grids, folder))
    output_files.write(folder.path / TABLE, found.to_parquet(index=False), private=True)  # it tells seeds
    text = found.to_csv(index=False, lineterminator="\n")
    output_files.write(folder.path / TABLE_CSV, text, private=True)
    return found


def _rows(grids: Grids, folder: SweepFolder) -> Iterator[Row]:
    """Yield the rows in the order of the grids."""
    settings: dict[str, int] = {}
    for index, run in enumerate(grids.runs()):
        answer = folder.answer(index) if index in folder.again else _NO_TIME
        setting = settings.setdefault(trial_of(run), len(settings))
        status = MADE if "row" in answer else LEFT_OUT if answer is _NO_TIME else FAILED
        cells = answer.get("row") or columns_of(run)
        yield {"run": index, "setting": setting, "status": status, **cells, "error": answer.get("error", "")}


def _frame(rows: Iterable[Row]) -> Any:
    """Return rows as a DataFrame; what a row lacks is missing there."""
    import pandas

    columns: dict[str, list[Any]] = {}
    order: list[str] = []
    for count, row in enumerate(rows):
        before = -1
        for name in row if row.keys() - columns.keys() else ():
            if name not in columns:  # it goes where this row has it
                columns[name] = [None] * count
                order.insert(before + 1, name)
            before = order.index(name)
        for name, cells in columns.items():
            cells.append(row.get(name))
    return pandas.DataFrame({name: _column(name, columns[name]) for name in order})


def _column(name: str, cells: Sequence[Any]) -> Any:
    """Return cells as a column of one type: numbers, true or false, or text where they are mixed."""
    import pandas

    kinds = {type(cell) for cell in cells if cell is not None}
    missing = any(cell is None for cell in cells)
    if name in SEEDS:
        return pandas.Series(cells, dtype="UInt64" if missing else "uint64")
    if (kinds <= {float, int} and float in kinds) or not kinds:
        return pandas.Series(cells, dtype="float64")
    if kinds == {int}:
        return pandas.Series(cells, dtype="Int64" if missing else "int64")
    if kinds == {bool}:
        return pandas.Series(cells, dtype="boolean" if missing else "bool")
    return pandas.Series([cell if cell is None else str(cell) for cell in cells])
