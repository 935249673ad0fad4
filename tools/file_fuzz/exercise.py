"""Do with a mutant all that a user can do with a file. Only a result or an ``IrrunError`` is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

import irrun
from irrun.api import load_all
from irrun.checking.checker import check
from irrun.checking.fix import fix
from irrun.checking.origins import Explanation
from irrun.checking.questions import at_line, by_name, outputs
from irrun.checking.render import concise, text
from irrun.checking.reports import FORMATS
from irrun.codes import Kind
from irrun.diagnostics import Diagnostic, IrrunError, ReadError
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed
from irrun.model import Model
from irrun.running.executor import Executable, Outputs
from irrun.running.generate import element_types, generate
from irrun.running.memory import predicted

__all__ = ["Bug", "exercise"]

_T = TypeVar("_T")

_MAX_MEMORY = 1 << 24
"""The most bytes of a tensor in a run. More would take long, and show nothing else."""
_TIMEOUT = 0.5
"""The most seconds of a run: a mutated Loop may be endless."""


class Bug(Exception):  # noqa: N818
    """A promise that does not hold."""


def exercise(path: Path, rng: random.Random) -> str:
    """Return the outcome of everything that is done with the file, in a word. Raises an exception for a fault."""
    try:
        items = load_all(path)
    except IrrunError as error:
        _require_no_bug(error)
        return "not read"
    outcomes = {_example(item, path, rng) for item in items}
    _why_lines([item for item in items if isinstance(item, Parsed)], rng)
    return max(outcomes, key=_ORDER.index, default="no examples")


_ORDER = ("not read", "errors", "not compiled", "not run", "result")


def _example(item: Parsed | ReadError, path: Path, rng: random.Random) -> str:
    if isinstance(item, ReadError):
        _require_no_bug(item)
        return "not read"
    model = item.model
    report = check(item)
    _rendered(report.diagnostics, path, rng)
    for unsafe in (False, True):
        fixed = fix(item, unsafe=unsafe)
        left = sum(d.severity == "error" for d in fixed.left)
        if left > len(report.errors):
            raise Bug(f"fix (unsafe={unsafe}) left {left} errors of {len(report.errors)}")
    _why(model, rng)
    _parts(model, rng)
    saved = _saved(model, path, rng)
    if rng.random() < 0.3:
        shapes = {n: rng.choice(_SHAPES) for n in range(len(model.parameters)) if rng.random() < 0.5}
        try:
            check(item.reshape(shapes))
        except IrrunError as error:
            _require_no_bug(error)
    if any(problem.blocks for problem in item.problems):
        return "errors"
    return _run(model, saved, rng)


_SHAPES = ("?", "...", "1", "2,3", "0", "1..4,?", "9223372036854775807", "?,?,?,?", "1,3,8,8", "")


def _run(model: Model, saved: Model | None, rng: random.Random) -> str:
    """Compile and run a model in both modes, the saved copy as well, and return the outcome."""
    executables: list[Executable] = []
    refused: set[bool] = set()
    for exact in (False, True):
        try:
            executables.append(irrun.compile(model, max_memory=_MAX_MEMORY, timeout=_TIMEOUT, exact=exact))
            refused.add(False)
        except IrrunError as error:
            _require_no_bug(error)
            refused.update([True] if _kinds(error) - {Kind.LIMIT} else [])  # the modes take different amounts of memory
    if len(refused) == 2:
        raise Bug("one of the two modes refuses the model")
    if len(executables) < 2:
        return "not compiled"
    try:
        types = element_types(model, {})
        feeds = {
            n: generate("random", model, n, types[n], None, rng.randrange(100), _MAX_MEMORY)
            for n, parameter in enumerate(model.parameters)
            if parameter.id not in model.contents
        }
    except IrrunError as error:
        _require_no_bug(error)
        return "not run"
    if rng.random() < 0.1:
        _attempt(lambda: predicted(model, _MAX_MEMORY))
    ran = [_attempt(lambda executable=executable: executable(feeds)) for executable in executables]
    if saved is not None and ran[0] is not None:
        try:
            again = irrun.compile(saved, max_memory=_MAX_MEMORY, timeout=_TIMEOUT, exact=False)(feeds)
            _require_alike(ran[0], again, "the saved model")
        except IrrunError as error:
            if not _kinds(error) <= {Kind.LIMIT}:
                raise Bug(f"the saved model is refused: {error}") from error
    if ran[0] is None or ran[1] is None:  # one of them may take too long, or rounding decide about a value
        return "not run"
    _require_alike(ran[0], ran[1], "exact")
    for _ in range(3 if rng.random() < 0.2 else 0):  # the third run of a dynamic model has a plan of its own
        _attempt(lambda: executables[0](feeds))
    return "result"


def _kinds(error: IrrunError) -> set[Kind]:
    return {diagnostic.kind for diagnostic in error.diagnostics}


def _attempt(call: Callable[[], _T]) -> _T | None:
    """Return the result of a call, or None if it raises an IrrunError."""
    try:
        return call()
    except IrrunError as error:
        _require_no_bug(error)
        return None


def _require_alike(first: Outputs, second: Outputs, what: str) -> None:
    """Raise Bug if two runs give other types, shapes or values. Floats may differ by more than rounding explains.

    The graph fuzzer looks at the rounding. Here, values may cancel or be as large as the type allows.
    """
    for a, c in zip(first.arrays, second.arrays, strict=True):
        if (a.dtype != c.dtype and a.dtype.kind not in "TUO") or a.shape != c.shape:
            raise Bug(f"{what} gives {c.dtype}{list(c.shape)}, the default {a.dtype}{list(a.shape)}")
        if not _are_close(a, c):
            raise Bug(f"{what} gives other values than the default:\n{c}\n{a}")


def _are_close(a: np.ndarray, c: np.ndarray) -> bool:
    if a.dtype.kind in "TUOiub":
        return bool((a == c).all())
    if not a.size:  # the other dims may be too large for f64
        return True
    first, second = a.astype(np.float64), c.astype(np.float64)
    with np.errstate(all="ignore"):
        largest = np.abs(second[np.isfinite(second)]).max(initial=0)
        near = np.abs(first - second) <= _NEAR.get(a.dtype.itemsize, 1e-3) * (1 + largest)
        if largest > _LARGE.get(a.dtype.itemsize, np.inf):  # a sum may overflow in one order alone
            near |= ~np.isfinite(first) | ~np.isfinite(second)
    return bool((near | (first == second) | (np.isnan(first) & np.isnan(second))).all())


_NEAR = {1: 0.5, 2: 0.05}
"""How near to each other two results are, by the bytes of an element, relative to the largest one."""
_LARGE = {2: 1e3, 4: 1e36, 8: 1e306}
"""The size of results next to which others are beyond the range, by the bytes of an element."""


def _rendered(diagnostics: tuple[Diagnostic, ...], path: Path, rng: random.Random) -> None:
    for diagnostic in diagnostics:
        if diagnostic.code == "IR603":
            raise Bug(str(diagnostic))
        concise(diagnostic)
        str(diagnostic)
    for diagnostic in rng.sample(diagnostics, min(2, len(diagnostics))):
        text(diagnostic)
    if rng.random() < 0.1:
        rng.choice(list(FORMATS.values()))({str(path): diagnostics})


def _why(model: Model, rng: random.Random) -> None:
    trace = Trace(model)
    for asked in outputs([trace])[:3]:
        explanation = Explanation(asked, everything=rng.random() < 0.5)
        str(explanation)
        explanation.record()
    layers = list(model.layers.values())
    for layer in rng.sample(layers, min(2, len(layers))):
        if layer.name:
            _attempt(lambda layer=layer: str(Explanation(by_name([trace], layer.name))))


def _why_lines(items: list[Parsed], rng: random.Random) -> None:
    if items and rng.random() < 0.3:
        traces = [Trace(item.model) for item in items[:3]]
        _attempt(lambda: str(Explanation(at_line(traces, rng.randrange(200)))))


def _parts(model: Model, rng: random.Random) -> None:
    """Cut a part out of the model."""
    names = [layer.name for layer in model.layers.values()]
    if names:
        begin = [rng.choice(names)] if rng.random() < 0.5 else []
        end = [rng.choice(names)] if rng.random() < 0.5 else []
        _attempt(lambda: irrun.extract(model, begin, end))


def _saved(model: Model, path: Path, rng: random.Random) -> Model | None:
    """Return the model as it is read again after it was written beside the mutant; None if that is refused."""
    if model.is_fragment or rng.random() > 0.3:
        return None
    copy = path.with_name("saved.xml")
    try:
        irrun.save_model(model, copy, compact=rng.random() < 0.5)
        return irrun.read_model(copy)
    except IrrunError as error:
        _require_no_bug(error)
        return None


def _require_no_bug(error: IrrunError) -> None:
    """Raise Bug for an error that calls itself a fault of irrun (IR603)."""
    for diagnostic in error.diagnostics:
        if diagnostic.code == "IR603":
            raise Bug(str(diagnostic)) from error
    str(error)
