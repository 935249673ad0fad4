"""What holds for every operation: a page, a docstring, a test file, and a refusal for each labelled clause."""

import re
from functools import cache
from pathlib import Path

import irrun.ops
import tables
from grouped import each
from irrun.opdef import Op, all_ops, find, is_custom, labels, resolve
from kit import Refusal, Values

TESTS = tables.FOLDER
MODULES = sorted(
    path.stem for path in Path(irrun.ops.__file__ or "").parent.glob("*.py") if not path.stem.startswith("_")
)
OPS = [cls for cls in all_ops() if not is_custom(cls)]


def name(cls: type[Op]) -> str:
    return f"{cls.type}-{cls.since}"


def module(cls: type[Op]) -> str:
    return cls.__module__.rsplit(".", 1)[-1]


@cache
def refused(module: str) -> list[tuple[type[Op] | None, str]]:
    """Return what a test file refuses: the operation (None: each of the module's) and the id.

    These are the rows of ``REFUSALS`` and, where an operation needs more than tensors, rows of parametrised tests
    whose ids or first values are such as ``C2``.
    """
    path = TESTS / f"test_{module}.py"
    found: list[tuple[type[Op] | None, str]] = [
        (resolve(*_split(row.op)), row.id) for row in tables.rows(path) if isinstance(row, Refusal)
    ]
    for test in (value for name, value in vars(tables.module(path)).items() if name.startswith("test")):
        for mark in (m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"):
            rows, ids = list(mark.args[1]), mark.kwargs.get("ids")
            for number, row in enumerate(rows):
                id = ids[number] if isinstance(ids, (list, tuple)) else row[0] if isinstance(row, tuple) and row else ""
                if isinstance(id, str) and re.match(r"[cC]\d+(-|$)", id):
                    found.append((None, id))
    return found


def reasons(cls: type[Op]) -> set[str]:
    """The clauses and codes for which an operation is shown to refuse."""
    return {id.split("-")[0].upper() for of, id in refused(module(cls)) if of in (cls, None)}


@each("module", MODULES)
def test_every_module_has_a_test_file(module: str) -> None:
    assert (TESTS / f"test_{module}.py").is_file()


@each("cls", OPS, ids=name)
def test_every_operation_has_a_page_and_a_docstring(cls: type[Op]) -> None:
    assert re.fullmatch(r"[\w-]+/[\w.-]+|none", cls.spec), cls.spec
    assert cls.__doc__
    assert cls.__doc__ != Op.__doc__
    assert cls.__doc__.strip().split("\n")[0].endswith(".")
    numbers = [int(label[1:]) for label in labels(cls)]
    assert numbers == sorted(set(numbers))


@each("cls", [c for c in OPS if labels(c)], ids=name)
def test_every_clause_has_a_refusal(cls: type[Op]) -> None:
    """For this very version: a row of another one does not count."""
    missing = labels(cls).keys() - reasons(cls)
    assert not missing, f"no refusal row of {name(cls)} begins with {', '.join(sorted(missing)).lower()}"


@each("cls", OPS, ids=name)
def test_every_refusal_names_a_clause_or_a_code(cls: type[Op]) -> None:
    for reason in {id.split("-")[0].upper() for of, id in refused(module(cls)) if of is cls}:
        assert reason in labels(cls) or re.fullmatch(r"IR\d{3}", reason), f"{name(cls)} has no {reason}"


@each("cls", [cls for cls in OPS if cls.outputs is not None], ids=name)
def test_the_number_of_outputs_is_that_of_the_tables(cls: type[Op]) -> None:
    rows = tables.rows(TESTS / f"test_{module(cls)}.py")
    expected = [row.expected for row in rows if isinstance(row, Values) and resolve(*_split(row.op)) is cls]
    assert {len(e) if isinstance(e, tuple) else 1 for e in expected} <= {cls.outputs}


def _split(op: str) -> tuple[str, int]:
    type, since = op.rsplit("-", 1)
    return type, int(since)


@each("cls", OPS, ids=name)
def test_declarations(cls: type[Op]) -> None:
    """Ports and type variables are declared soundly, and the class is found under its own name."""
    assert find(cls.type)[cls.since] is cls
    assert find(cls.type.upper())[cls.since] is cls
    names = [port.name for port in cls.inputs]
    assert len(set(names)) == len(names)
    assert all(not port.variadic for port in cls.inputs[:-1]), "only the last input repeats"
    spellings = [s for a in cls.attributes.values() for s in (a.name, *a.aliases)]
    assert len(set(spellings)) == len(spellings)
