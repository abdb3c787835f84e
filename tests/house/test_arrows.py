"""The layers of the design: who may import whom, and what stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = [
    {"core"},
    {"backends", "network", "crypto", "progress", "result_summary", "result_picture"},
    {"catalogue", "protocol_parameters"},
    {"rundir"},
    {"trace", "parquet_users"},
    {"coalition", "observed_view"},
    {"run", "paired", "costing", "check", "plan"},
    {"privacy"},
    {"learning"},
    {"leakage"},
    {"render", "errata"},
    {"report"},
    {"evaluate", "testing"},
    {"sweep"},
    {"comparison"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ROOMS = "p2p_sim.privacy.mechanisms"
CATALOGUE = "p2p_sim.catalogue"
BY_NAME = {
    "core/module_finder.py": "MODULE:CLASS of a command line",
    "core/code_fingerprint.py": "the modules of a protocol of one's own, in a worker",
    "cli/bench.py": "a benchmark of the checkout, which no arrow leads to",
}
"""Who imports what a user names; every other import is a statement, which mypy, these tests and an editor see."""
HEAVY = (
    "numba",
    "ray",
    "pyarrow",
    "scipy",
    "sklearn",
    "pandas",
    "networkx",
    "torch",
    "typer",
    "rich",
    "matplotlib",
)

SOURCES = sorted((ROOT / "p2p_sim").rglob("*.py"))
PROTOCOLS = sorted((ROOT / "protocols").rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache  # most tests here read every file
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports anywhere, also inside functions, as absolute dotted names."""
    return tuple(imports_of(ast.parse(path.read_text()), module_of(path), path.name == "__init__.py"))


def imports_of(tree: ast.Module, module: str, package: bool = False) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.split(".")[: len(module.split(".")) - node.level + package]
                base = ".".join([*up, *([base] if base else [])])
            yield from (f"{base}.{name.name}" for name in node.names)


def layer(module: str) -> str | None:
    """The layer of a module of p2p_sim; None for the package itself and for others."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "p2p_sim" else None


def wrong_arrow(importer: str, imported: str) -> bool:
    """Whether the design forbids that one module imports another."""
    mine, other = layer(importer), layer(imported)
    top = imported.split(".")[0]
    if top in ("experiments", "benchmarks", "tests"):
        return True
    if importer.startswith("protocols"):
        return top == "p2p_sim" and other not in ("core", "crypto", "network")
    if top == "protocols":  # whoever else names a protocol would have to be told of a new one
        return importer != CATALOGUE and not f"{importer}.".startswith(f"{ROOMS}.")
    if top != "p2p_sim" or mine is None:
        return False
    return other not in RANK or RANK[other] > RANK[mine]


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES + PROTOCOLS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_arrows(path):
    wrong = [name for name in imports(path) if wrong_arrow(module_of(path), name)]
    assert not wrong, f"{module_of(path)} must not import {wrong}"


def test_every_module_has_a_layer():
    known = {path.relative_to(ROOT / "p2p_sim").parts[0].removesuffix(".py") for path in SOURCES} - {
        "__init__"
    }
    assert known - set(RANK) == set(), "a new top-level module needs a layer in the design and here"


@pytest.mark.slow
def test_packages_of_one_layer_do_not_import_each_other_in_circles():
    for names in LAYERS:
        reach = {name: set() for name in names}
        for path in SOURCES:
            mine = layer(module_of(path))
            if mine in names:
                reach[mine] |= {layer(name) for name in imports(path)} & names - {mine}
        for name in names:
            assert not any(name in reach[other] for other in reach[name]), (
                f"{name} and {reach[name]} are in a circle"
            )


def at_run_time(tree: ast.Module) -> ast.Module:
    """The file without what is imported for its types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return tree


def in_order(files: dict[str, ast.Module], packages: set[str]) -> list[str]:
    """The modules, each after all that it imports anywhere; raises CycleError naming a circle."""
    needs: dict[str, set[str]] = {module: set() for module in files}
    for module, tree in files.items():
        for name in imports_of(at_run_time(tree), module, module in packages):
            found = name if name in files else name.rpartition(".")[0]
            needs[module] |= {found} & set(files) - {module}
    return list(TopologicalSorter(needs).static_order())


@pytest.mark.slow
def test_no_files_import_each_other_in_circles():
    files = {module_of(path): ast.parse(path.read_text()) for path in SOURCES + PROTOCOLS}
    packages = {module_of(path) for path in SOURCES + PROTOCOLS if path.name == "__init__.py"}
    assert len(in_order(files, packages)) == len(files)


def test_the_check_for_circles_finds_late_ones():
    late = {"a": "import b", "b": "def f():\n    from a import x"}
    with pytest.raises(CycleError):
        in_order({name: ast.parse(text) for name, text in late.items()}, set())
    typed = {"a": "import b", "b": "if TYPE_CHECKING:\n    from a import x"}
    assert in_order({name: ast.parse(text) for name, text in typed.items()}, set()) == ["b", "a"]


@pytest.mark.parametrize(
    ("importer", "imported", "wrong"),
    [
        ("p2p_sim.core.site", "p2p_sim.backends.local", True),
        ("p2p_sim.core.site", "p2p_sim.core.mail", False),
        ("p2p_sim.rundir.run_directory", "p2p_sim.coalition", True),
        ("p2p_sim.coalition", "p2p_sim.rundir.run_directory", False),
        ("p2p_sim.privacy.profile", "p2p_sim.learning.training.models", True),
        ("p2p_sim.privacy.profile", "protocols.peer_to_peer", True),
        ("p2p_sim.privacy.mechanisms.peer_to_peer.law", "protocols.PeerToPeer", False),
        ("p2p_sim.privacy.mechanisms_of_another", "protocols", True),
        ("p2p_sim.catalogue", "protocols", False),
        ("p2p_sim.cli.run", "protocols", True),
        ("p2p_sim.run", "protocols", True),
        ("p2p_sim.run", "benchmarks.engine", True),
        ("protocols.peer_to_peer", "p2p_sim.core.Message", False),
        ("protocols.peer_to_peer", "p2p_sim.run", True),
        ("protocols.peer_to_peer", "p2p_sim.Population", True),
    ],
)
def test_the_check_itself_tells_right_from_wrong(importer, imported, wrong):
    assert wrong_arrow(importer, imported) is wrong


def test_the_check_sees_relative_and_late_imports():
    tree = ast.parse("from . import local\nfrom ..run import run\ndef f():\n    import ray\n")
    assert list(imports_of(tree, "p2p_sim.backends.x")) == [
        "p2p_sim.backends.local",
        "p2p_sim.run.run",
        "ray",
    ]


def test_ray_is_imported_only_under_backends():
    for path in SOURCES + PROTOCOLS:
        if any(name.split(".")[0] == "ray" for name in imports(path)):
            assert layer(module_of(path)) == "backends", path


def imported_by_name(tree: ast.Module) -> list[str]:
    """Every place of a file that imports, or could, what a text names."""
    ways = {
        "import_module",
        "__import__",
        "_gcd_import",
        "exec_module",
        "run_module",
        "find_loader",
        "resolve_name",
    }
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute | ast.alias)]
    names = [(each, getattr(each, "id", getattr(each, "attr", getattr(each, "name", "")))) for each in found]
    return [ast.unparse(each) for each, name in names if name.rpartition(".")[2] in ways]


def test_only_what_a_user_names_is_imported_by_name():
    where = {path for path in SOURCES + PROTOCOLS if imported_by_name(ast.parse(path.read_text()))}
    assert where == {ROOT / "p2p_sim" / name for name in BY_NAME}


@pytest.mark.parametrize(
    "line",
    [
        "importlib.import_module(f'{__name__}.{name}')",
        "from importlib import import_module as late",
        "__import__('p2p_sim.run')",
        "spec.loader.exec_module(module)",
    ],
)
def test_the_check_finds_each_way_to_import_by_name(line):
    assert imported_by_name(ast.parse(line))


@pytest.mark.parametrize("package", ["p2p_sim", "p2p_sim.core", "p2p_sim.privacy"])
def test_a_package_has_every_name_that_it_offers(package):
    """Each stands in ``__all__``, for types, and in ``__getattr__``; one process asks for one name first."""
    code = f"""
import {package}, types
found = {{name: getattr({package}, name) for name in {package}.__all__}}
files = [name for name, value in found.items() if isinstance(value, types.ModuleType)]
print(*sorted(files), hasattr({package}, "nothing"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    own = "bounds building_blocks mechanisms " if package == "p2p_sim.privacy" else ""
    assert (done.stdout, done.stderr) == (f"{own}False\n", "")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return {name.split(".")[0] for name in out.stdout.split()}


@pytest.mark.parametrize("statement", ["import p2p_sim", "import p2p_sim.cli"])
def test_the_package_is_imported_without_any_library_that_takes_long(statement):
    """The time itself is measured by ``p2p-sim bench command --cases import``."""
    heavy = loaded_by(statement) & {*HEAVY, "numpy"} - ({"typer", "rich"} if "cli" in statement else set())
    assert not heavy, f"{statement} loads {sorted(heavy)}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement", ["import p2p_sim.core", "import protocols", "import p2p_sim.backends.local"]
)
def test_the_core_is_light(statement):
    heavy = loaded_by(statement) & set(HEAVY)
    assert not heavy, f"{statement} loads {sorted(heavy)}"


def chance_of_its_own(tree: ast.Module, module: str) -> list[str]:
    """Where a file uses numpy's random, the random or secrets module, or a clock."""
    found = [
        name
        for name in imports_of(tree, module)
        if name.split(".")[0] in ("random", "secrets", "time", "datetime")
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "random" and isinstance(node.value, ast.Name):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "path", PROTOCOLS + [p for p in SOURCES if layer(module_of(p)) == "core"], ids=lambda path: path.stem
)
def test_chance_has_one_source(path):
    found = chance_of_its_own(ast.parse(path.read_text()), module_of(path))
    allowed = {
        "random_words": {"np.random"},
        "seeds": {"secrets"},
    }  # streams; the seed of those that are given none
    assert set(found) <= allowed.get(path.stem, set())


@pytest.mark.parametrize("package", ["privacy", "report"])
def test_no_figure_depends_on_a_clock(package):
    may = {"evidence.py", "kept_file.py"}  # progress of an audit, and the day a result was made
    for path in (p for p in SOURCES if layer(module_of(p)) == package and p.name not in may):
        clocks = [name for name in imports(path) if name.split(".")[0] in ("time", "datetime")]
        assert clocks == [], path


def test_the_check_for_chance_finds_some():
    tree = ast.parse("import random\nfrom time import time\nx = np.random.rand(3)")
    assert chance_of_its_own(tree, "protocols.bad") == ["random", "time.time", "np.random"]
