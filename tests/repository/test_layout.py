"""The folders of irrun: which may import which, and who may import what from outside.

``FOLDERS`` is the architecture in one table: a folder may import the folders that its row names, and nothing else.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import irrun
from grouped import each
from irrun.inference.bind import ALIASES
from irrun.opdef import all_ops, is_custom

ROOT = Path(irrun.__file__).parent

FOLDERS: dict[str, set[str]] = {
    "base": set(),
    "departures": set(),
    "specification": {"base"},
    "kernels": {"base"},
    "seam": {"base"},
    "ops": {"base", "kernels"},
    "extensions": {"base", "kernels"},
    "inference": {"base"},
    "ir": {"base", "inference"},
    "checking": {"base", "inference", "ir"},
    "targets": {"base", "inference", "ir", "checking"},
    "planning": {"base", "kernels", "seam", "inference"},
    "fast": {"base", "kernels", "planning"},
    "running": {"base", "kernels", "inference", "planning"},
    "api": {"base", "inference", "ir", "checking", "targets", "running"},
    "engines": {"base", "planning", "api"},
    "surgery": {"base", "inference", "ir", "checking", "running", "api", "engines"},
    "arrays": {"base", "ir", "running"},
    "genai": {"base", "inference", "ir", "running", "api", "engines"},
    "fleet": {"base", "arrays", "ir", "checking", "targets", "running", "api", "genai"},
    "conformance": {"base", "engines"},
    "growing": {"base", "specification", "inference", "api"},
    "fuzz": {
        "base",
        "seam",
        "departures",
        "specification",
        "ir",
        "planning",
        "running",
        "api",
        "engines",
        "conformance",
        "growing",
    },
    "debug": {"base", "inference", "ir", "planning", "running", "api", "engines", "genai"},
    "export": {"base", "inference", "running", "api", "engines", "debug"},
    "report": {"base", "inference", "ir", "checking", "planning", "running", "api", "engines", "debug"},
    "explorer": {"base", "inference", "api"},
    "testing": {"base", "inference", "ir", "checking", "running", "api", "growing", "debug"},
    "compat": {"base", "inference", "ir", "running", "api", "surgery"},
    "server": {"base", "inference", "ir", "checking", "api"},
    "cli": {"base", "kernels", "inference", "ir", "checking", "targets", "planning", "running", "api"}
    | {
        "arrays",
        "fleet",
        "surgery",
        "genai",
        "engines",
        "conformance",
        "fuzz",
        "debug",
        "export",
        "report",
        "explorer",
        "server",
    },
    "entry": {"base", "checking", "running", "api", "testing", "cli"},
}
"""The folders from the foundation up, and what each may import. A folder may always import itself.

Nobody imports ``ops`` and ``extensions``: ``irrun.opdef`` finds an operation by its type.
"""

MODULES = {
    "base": ["base", "types", "codes", "diagnostics", "files", "model", "opdef"],
    "api": ["api", "build"],
    "fleet": ["fleet", "dask"],
    "entry": ["pytest_plugin", "__main__"],
}
"""The modules beside the folders: the foundation, what users import, and what pytest and ``python -m`` start."""

ORDER = {name: MODULES["base"].index(name) for name in MODULES["base"]}
"""Within the foundation, a module imports only those before it."""

OUTSIDE = {
    "lxml": {"ir"},
    "networkx": {"base", "inference", "ir", "debug", "report"},
    "pytest": {"entry"},
    "hypothesis": {"testing"},
    "threadpoolctl": {"kernels"},
    "click": {"cli"},
    "rich": {"cli", "checking"},
    "jinja2": {"genai"},
    "lsprotocol": {"server"},
    "pygls": {"server"},
    "mcp": {"server"},
    "pydantic": {"server"},
    "PIL": {"arrays"},
    "zarr": {"fleet"},
    "dask": {"fleet"},
    "distributed": {"fleet"},
    "openvino": {"engines"},
    "model_explorer": {"explorer"},
    "onnx": {"engines", "export"},
    "onnxruntime": {"engines"},
    "onnxifier": {"engines"},
    "pyopenvino": {"engines"},
    "numba": {"fast"},
    "llvmlite": {"fast"},
    "numpy": set(FOLDERS),
    "ml_dtypes": set(FOLDERS),
}
"""Which folder may import which package; the standard library is open to all."""

LATE = {"api", "testing", "compat", "cli", "fleet", "pytest_plugin", "__main__"}
"""These import irrun within functions, so that `irrun --help`, `irrun check`, and pytest where irrun is not used, start quickly."""

SEAM = "irrun.fast"
"""What the planner imports of compiled kernels. It imports the modules beside it by their names, when they are needed."""

OPTIONAL = "irrun.fast."
"""The modules of this folder need llvmlite or numba. Modules that only some plans need are imported within functions."""

OPERATIONS = {
    "irrun.opdef",
    "irrun.base.deadline",
    "irrun.base.extras",
    "irrun.types",
    "irrun.diagnostics",
    "irrun.opdef.columns",
    "irrun.model.weights",
}
"""The modules of the foundation that a declaration of an operation may import, and names from others."""
OPERATIONS_BY_NAME = {("irrun.model", "MapEntry")}

FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def folder(module: str) -> str:
    """Return the folder of a module such as ``irrun.ops.tile``; a key of ``MODULES`` for one beside the folders."""
    if module == SEAM:
        return "seam"
    first = module.split(".")[1]
    return next((name for name, modules in MODULES.items() if first in modules), first)


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(source: str) -> list[tuple[str, str | None, bool]]:
    """Return each imported module, the name imported from it, and whether the import stands within a function."""
    return list(_imports(source))


def _imports(source: str) -> Iterator[tuple[str, str | None, bool]]:
    tree = ast.parse(source)
    inner = {
        child
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None, node in inner) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((node.module or "", alias.name, node in inner) for alias in node.names)


def faults(module: str, source: str) -> list[str]:
    """Return what is wrong with the imports of a module."""
    own, found = folder(module), []
    if own not in FOLDERS:
        return [f"{own} is a new folder: give it a row in FOLDERS"]
    for imported, name, lazy in imports(source):
        top = imported.split(".")[0]
        if top != "irrun":
            if top not in (*sys.stdlib_module_names, "__future__") and own not in OUTSIDE.get(top, set()):
                found.append(f"{own} may not import {top}")
            continue
        if imported == "irrun":
            found += (
                []
                if own in ("cli", "compat", "engines", "fleet", "report") or module.split(".")[1] in LATE
                else [f"{module} imports irrun itself"]
            )
            continue
        if lazy and module.split(".")[1] not in LATE and not imported.startswith(OPTIONAL):
            found.append(f"{imported} is imported within a function: a hidden cycle?")
        target = folder(imported)
        if target != own and target not in FOLDERS[own]:
            found.append(f"{own} may not import {imported}")
        if own == target == "base":
            first, second = (name.split(".")[1] for name in (imported, module))
            if first != second and ORDER[first] > ORDER[second]:
                found.append(f"{module} may not import {imported}, which stands above it")
        if own == "ops":
            shared = imported.startswith(("irrun.ops._", "irrun.kernels."))
            if not (shared or imported in OPERATIONS or (imported, name) in OPERATIONS_BY_NAME):
                found.append(f"an operation may not import {imported}")
        elif own == "extensions":
            if not (imported.startswith(("irrun.extensions.", "irrun.kernels.")) or imported in OPERATIONS):
                found.append(f"an operation may not import {imported}")
        elif imported.startswith(("irrun.ops.", "irrun.extensions.")):
            found.append(f"{module} imports a module of ops: operations are found by their type")
        if imported.startswith("irrun.types.") and not module.startswith("irrun.types"):
            found.append(f"{module} imports {imported}: import from irrun.types")
        if target != own and (name or "").startswith("_"):
            found.append(f"{name} is private to {imported}")
        if target != own and any(part.startswith("_") for part in imported.split(".")):
            found.append(f"{imported} is private to {target}")
    return found


@each("path", FILES, ids=module_of)
def test_imports(path: Path) -> None:
    assert not faults(module_of(path), path.read_text("utf-8"))


@each(
    "module, source, said",
    [
        ("irrun.kernels.blocks", "from irrun.ops.tile import Tile1", "kernels may not import irrun.ops.tile"),
        ("irrun.inference.bind", "from irrun.ir.parse import parse", "inference may not import irrun.ir.parse"),
        ("irrun.planning.plan", "from irrun.checking.fix import fix", "planning may not import irrun.checking.fix"),
        ("irrun.planning.plan", "from irrun.ops._rnn import Cell", "imports a module of ops"),
        ("irrun.types", "from irrun.model import Model", "stands above it"),
        ("irrun.types.dims", "from irrun.model import Model", "stands above it"),
        ("irrun.model", "from irrun.types.dims import Dim", "import from irrun.types"),
        ("irrun.ops.tile", "from irrun.ops.concat import Concat1", "an operation may not import irrun.ops.concat"),
        ("irrun.ops.tile", "from irrun.model import Model", "an operation may not import irrun.model"),
        ("irrun.ops.tile", "from irrun.fast import available", "ops may not import irrun.fast"),
        ("irrun.ops.tile", "from irrun.fast.product import offer", "ops may not import irrun.fast.product"),
        ("irrun.running.executor", "from irrun.fast import kernel", "running may not import irrun.fast"),
        ("irrun.planning.plan", "from irrun.fast.passes import join", "planning may not import irrun.fast.passes"),
        ("irrun.planning.plan", "from irrun.kernels.blocks import _MIN_CUT_BYTES", "_MIN_CUT_BYTES is private"),
        ("irrun.running.executor", "def f():\n    from irrun.running.pool import Pool", "within a function"),
        ("irrun.running.executor", "from irrun.ops._rnn import Cell", "irrun.ops._rnn is private to ops"),
        ("irrun.running.executor", "from irrun.cli._fleet import run", "irrun.cli._fleet is private to cli"),
        ("irrun.planning.plan", "import networkx", "planning may not import networkx"),
        ("irrun.extensions.mine.add", "from irrun.ops.tile import Tile1", "an operation may not import irrun.ops.tile"),
        ("irrun.extensions.mine.add", "from irrun.model import Model", "an operation may not import irrun.model"),
        ("irrun.planning.plan", "from irrun.extensions.mine import add", "imports a module of ops"),
        ("irrun.surprises.plan", "", "surprises is a new folder"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str, said: str) -> None:
    assert any(said in fault for fault in faults(module, source))


def test_arrows_run_downwards() -> None:
    """A folder imports only folders above it in the table, so no circle is possible."""
    above: set[str] = set()
    for name, allowed in FOLDERS.items():
        assert allowed <= above
        above.add(name)


def test_no_module_imports_itself_through_others() -> None:
    """Imports within functions count, too. The seam alone imports modules by names that are no import statements."""
    modules = {module_of(path): path for path in FILES}
    graph = nx.DiGraph()
    for module, path in modules.items():
        for imported, name, _ in imports(path.read_text("utf-8")):
            inner = f"{imported}.{name}"
            graph.add_edge(module, inner if inner in modules else imported)
    assert nx.is_directed_acyclic_graph(graph), nx.find_cycle(graph)


def used() -> dict[str, set[str]]:
    """Return the folders that each folder imports."""
    found: dict[str, set[str]] = {name: set() for name in FOLDERS}
    for path in FILES:
        own = folder(module_of(path))
        found[own] |= {folder(imported) for imported, _, _ in imports(path.read_text("utf-8")) if "irrun." in imported}
    return {name: targets - {name} for name, targets in found.items()}


def test_the_table_allows_nothing_that_is_not_used() -> None:
    assert used() == FOLDERS


# ---------------------------------------------------------------------------------------------
# the drawing


def drawing() -> str:
    """Draw the floors of irrun for docs/architecture.md, users at the top: each folder with those that it builds on.

    A folder stands one floor above the highest folder that it imports. An arrow that follows from others is left out.
    """
    graph = nx.DiGraph((name, target) for name, targets in used().items() for target in targets)
    arrows = nx.transitive_reduction(graph)
    floors: list[list[str]] = []
    floor: dict[str, int] = {}
    for name, targets in FOLDERS.items():
        floor[name] = 1 + max((floor[target] for target in targets), default=-1)
        floors += [[] for _ in range(len(floors), floor[name] + 1)]
        below = ", ".join(target for target in FOLDERS if target in arrows[name])
        floors[floor[name]].append(f"{name} → {below}" if below else name)
    return "".join(f"{number:>2}  {'   '.join(floors[number])}\n" for number in reversed(range(len(floors))))


def test_folders_are_small() -> None:
    """A folder has at most about a dozen modules, unless each is one of a kind: an operation, a command, a departure."""
    for path in (ROOT, *(p for p in ROOT.rglob("*") if p.is_dir() and any(p.glob("*.py")))):
        if path.name not in ("ops", "tokenizers", "internal", "cli", "departures"):
            assert len(list(path.glob("*.py"))) <= 16, path


NAMES_OPERATIONS = {
    "irrun.planning.patterns", "irrun.planning.idioms", "irrun.inference.compressed", "irrun.planning.decoders", "irrun.ir.extract",
    "irrun.running.memory", "irrun.running.generate",
}  # fmt: skip
"""The modules of the core that name operations."""


def test_the_core_names_no_operation() -> None:
    """The core knows no operation, except those that every model has."""
    types = {cls.type for cls in all_ops() if not is_custom(cls)} - {
        "Parameter",
        "Result",
        "Const",
        "Loop",
        "TensorIterator",
    }
    types -= set(ALIASES.values())  # other spellings of a few are known to the IR, not to the operations
    for path in FILES:
        module = module_of(path)
        names_none = folder(module) in ("base", "kernels", "inference", "ir", "planning", "running")
        if names_none and module not in NAMES_OPERATIONS:
            constants = {n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)}
            assert not constants & types, path


def test_importing_irrun_is_light() -> None:
    """Nothing heavy before it is asked for: the command line answers at once."""
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name if isinstance(node, ast.Import) else node.module for node in top for alias in node.names}
    assert names <= {"__future__", "importlib", "typing"}
    assert set(irrun.__all__) == {name for names in irrun._HOMES.values() for name in names}
    for name in irrun.__all__:
        assert getattr(irrun, name).__doc__
    with pytest.raises(AttributeError):
        irrun.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.processes
def test_running_imports_no_comparison() -> None:
    """They would take as long to import as all that ``irrun run`` needs."""
    heavy = ("irrun.debug", "irrun.engines", "irrun.genai", "networkx")
    code = f"import sys, irrun.cli.run; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


if __name__ == "__main__":
    print(drawing(), end="")
