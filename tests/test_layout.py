"""The house: every room imports only what stands above it, and what comes from outside has one door each."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import irrun
from irrun.bind import ALIASES
from irrun.opdef import all_ops

ROOT = Path(irrun.__file__).parent

# each may import those above it
ORDER = [
    "types", "drawing", "source", "edits", "diagnostics", "weights", "model", "safe_xml", "parse", "opdef", "ops",
    "bind", "infer", "trace", "origins", "checker", "fix", "write", "pool", "steps", "patterns", "layout", "fuse", "plan",
    "hooks", "profile", "dump", "submodel", "executor", "memory", "fragment", "feeds", "reshaping", "build", "api",
    "checking", "render", "reports", "testing", "compat", "pytest_plugin", "cli", "__main__",
]  # fmt: skip

# who may import what from outside; the standard library anybody
OUTSIDE = {
    "lxml": {"write"},
    "networkx": {"model", "submodel"},
    "pytest": {"pytest_plugin"},
    "hypothesis": {"testing"},
    "threadpoolctl": {"ops"},
    "click": {"cli"},
    "rich": {"cli", "render"},
    "PIL": {"cli"},
    "numpy": set(ORDER),
    "ml_dtypes": set(ORDER),
}

# the topmost rooms import late, so that `irrun --help` and a run of pytest without irrun are quick
LATE = {"testing", "pytest_plugin", "cli", "__main__"}

# what an operation may know of the house
OPERATIONS = {"irrun.opdef", "irrun.types", "irrun.diagnostics", "irrun.drawing", "irrun.weights"}
OPERATIONS_BY_NAME = {("irrun.model", "MapEntry")}

FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imports(path: Path) -> Iterator[tuple[str, str | None, bool]]:
    """Each imported module, the name taken from it, and whether the import stands within a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms(path: Path) -> None:
    own = room(path)
    assert own in ORDER, "a new room: give it a place in ORDER"
    above = set(ORDER[: ORDER.index(own)])
    for module, name, lazy in imports(path):
        top, *rest = module.split(".")
        if top != "irrun":
            if top not in sys.stdlib_module_names and top != "__future__":
                assert own in OUTSIDE.get(top, set()), f"{module} has no business in {own}"
            continue
        if own in LATE:
            continue
        assert not lazy, f"{module} is imported within a function: a hidden cycle?"
        assert rest, "import from the module that has it"
        if own == "ops":
            shared = rest[0] == "ops" and rest[-1].startswith("_")
            assert module in OPERATIONS or shared or (module, name) in OPERATIONS_BY_NAME, module
        else:
            assert rest[0] in above, f"{own} stands above {module}"


def test_the_core_names_no_operation() -> None:
    """What reads, checks and runs has never heard of any operation, but for those that every model has, and patterns."""
    types = {cls.type for cls in all_ops()} - {"Parameter", "Result", "Const", "Loop", "TensorIterator"}
    types -= set(ALIASES.values())  # other spellings of a few are known to the IR, not to the operations
    for path in FILES:
        if room(path) in ("ops", "patterns") or room(path) not in {*ORDER[: ORDER.index("hooks")], "hooks", "executor"}:
            continue
        constants = {n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)}
        assert not constants & types, path


def test_importing_irrun_is_light() -> None:
    """Nothing heavy before it is asked for: the command line answers at once."""
    tree = ast.parse((ROOT / "__init__.py").read_text())
    top = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name if isinstance(node, ast.Import) else node.module for node in top for alias in node.names}
    assert names <= {"__future__", "importlib", "typing"}
    assert set(irrun.__all__) == {name for names in irrun._HOMES.values() for name in names}
    for name in irrun.__all__:
        assert getattr(irrun, name).__doc__
    with pytest.raises(AttributeError):
        irrun.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
