"""What irrun and another engine do with a graph, and how it may differ.

No fixed tolerance decides. The inputs are changed by as much as rounding changes them, and the defining kernels run
again: an element that moves with them may also move from engine to engine.
"""

from __future__ import annotations

import tempfile
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from irrun.api import check, compile
from irrun.diagnostics import IrrunError
from irrun.engines.engine import Engine
from irrun.engines.moves import MOVES
from irrun.engines.outcomes import Crash, Loaded, Outputs, Refusal, Timeout
from irrun.fuzz.inputs import Inputs, changed, rounded, type_of
from irrun.fuzz.reached import algorithms
from irrun.growing.graphs import Graph
from irrun.ir.write import save_model
from irrun.model import Model
from irrun.running.executor import Executable

__all__ = ["Disagreement", "Expected", "Invalid", "differs", "judge"]

_MAX_TENSOR_BYTES: Final = 1 << 26
"""The most bytes of a tensor in a run."""
_BASE: Final = {"f64": 1e-9, "f32": 1e-4, "f16": 1e-2, "bf16": 6e-2}
"""How far two results may be apart in any case, relative to the largest element: engines round inside of layers."""
_FLOOR: Final = 1e-7
"""The distance that floats may have even where all expected ones are zeros."""
_FACTOR: Final = 32.0
"""How often the distance that the jitter makes may be exceeded."""
_JITTERS: Final = 2
"""How often the inputs are changed."""
_JITTERS_IN_DOUBT: Final = 16
"""How often they are changed once results differ: by chance, an element that rounding moves may stay twice."""
_MAX_MESSAGE_CHARS: Final = 1600
"""The most characters of an engine's message that are kept."""


@dataclass(frozen=True)
class Expected:
    """The outputs of a call, with the distance that each element may have."""

    outputs: Sequence[np.ndarray]
    allowed: Sequence[np.ndarray | None]
    """None for an output that may have any values."""


@dataclass(frozen=True)
class Disagreement:
    """Two ways that should be equal and are not.

    ``judge`` is ``exact``, ``check``, ``twin``, ``threads`` or ``engine``, and ``kind`` is ``values``, ``shape``,
    ``refusal``, ``crash``, ``hang`` or ``finding``. ``call`` counts the calls before it. If an engine gives other
    values, ``outputs`` are those of the engine in this call, and ``expected`` what they should be.
    """

    judge: str
    kind: str
    detail: str
    call: int = 0
    outputs: Sequence[np.ndarray] = field(default=(), compare=False, repr=False)
    expected: Expected | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.judge}: {self.kind}: {self.detail}"


class Invalid(Exception):  # noqa: N818
    """The defining kernels refuse the graph in one of its calls: it shows nothing."""


def judge(graph: Graph, engine: Engine | None = None, reached: set[str] | None = None) -> Disagreement | None:
    """Return the first disagreement about a graph, or None. Raises Invalid if the defining kernels refuse it.

    An exception of irrun that is no IrrunError is a disagreement, too, and so is a refusal of a valid graph. The
    algorithms of the default plans are added to ``reached``.
    """
    found_algorithms: set[str] = set() if reached is None else reached
    try:
        found = _judge_with(graph, engine, _JITTERS, found_algorithms)
        in_doubt = found is not None and found.kind == "values"
        if not in_doubt:
            return found
        again = _judge_with(graph, engine, _JITTERS_IN_DOUBT, found_algorithms)
        # an engine that fails when it runs again has given other values all the same
        return again if again is None or again.kind == "values" else found
    except Invalid as error:
        if graph.valid:
            return Disagreement("exact", "refusal", str(error))
        raise
    except IrrunError as error:
        if not _is_bug(error):
            raise
        return Disagreement("exact", "crash", error.diagnostics[0].message)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.name}"
        return Disagreement("exact", "crash", f"{type(error).__name__} in {where}: {error}")


def _judge_with(graph: Graph, engine: Engine | None, jitters: int, reached: set[str]) -> Disagreement | None:
    try:
        model = graph.model(dynamic=True)
    except IrrunError as error:
        if not graph.valid:
            raise
        return Disagreement("check", "refusal", str(error))
    inputs = Inputs(graph)
    reference = _Reference(inputs, model, jitters, narrow=engine is not None)
    expected = reference.calls()
    found = _judge_check(reference.exact, expected) or reference.judge_layouts(expected[0])
    found = found or _judge_plan(inputs, model, reference, expected, reached)
    if found is None and graph.is_dynamic() and not graph.is_stateful():
        found = _judge_twins(inputs, expected)
    if found is None and engine is not None:
        found = _judge_engine(inputs, model, expected, engine)
    return found


def _is_bug(error: IrrunError) -> bool:
    """Return whether an error says that a kernel failed with an exception of its own (IR603)."""
    return any(problem.code == "IR603" for problem in error.diagnostics)


class _Reference:
    """The defining kernels of a graph, which say what is expected. ``narrow`` counts f64 as f32, in which engines
    compute it.

    Raises Invalid if they refuse what follows from constants alone.
    """

    def __init__(self, inputs: Inputs, model: Model, jitters: int, *, narrow: bool) -> None:
        self.inputs, self.jitters, self.narrow = inputs, jitters, narrow
        try:
            self.exact = compile(model, exact=True, max_memory=_MAX_TENSOR_BYTES)
        except IrrunError as error:
            if _is_bug(error):
                raise
            raise Invalid(str(error)) from error
        self.loose, self.moved = _loose(inputs.graph), _moved(inputs.graph, narrow=narrow)
        self.narrowed = _narrowed(inputs.graph)

    def calls(self) -> list[Expected]:
        """Return what each call gives. Raises Invalid if the kernels refuse one.

        The kernels run once for calls with equal inputs, unless the graph has state.
        """
        first, inputs = self.inputs.first, self.inputs
        computed = range(len(first)) if inputs.graph.is_stateful() else sorted({*first})
        try:
            plain = {call: self._arrays(inputs[call]) for call in computed}
            jittered = [self._jittered(computed, attempt) for attempt in range(self.jitters)]
        except IrrunError as error:
            if _is_bug(error):
                raise
            raise Invalid(str(error)) from error
        settled = {call: self._settled(plain[call], [run[call] for run in jittered]) for call in computed}
        return [settled[call if call in settled else first[call]] for call in range(len(first))]

    def _jittered(self, calls: Sequence[int], attempt: int) -> dict[int, list[np.ndarray]]:
        """Return the outputs of calls whose inputs are changed by rounding."""
        self.exact.reset_state()
        feeds = {call: self.inputs.moved(call, attempt, narrow=self.narrow) for call in calls}
        return {call: self._arrays(moved) for call, moved in feeds.items()}

    def _arrays(self, feeds: list[np.ndarray]) -> list[np.ndarray]:
        """Return copies of what the kernels return, which may be views of their inputs."""
        return [np.array(array) for array in _arrays(self.exact, feeds)]

    def of(self, feeds: Sequence[np.ndarray]) -> Expected | None:
        """Return what a call with other inputs gives, or None if the kernels refuse them."""
        try:
            plain = self._arrays([array.copy() for array in feeds])
            moved = (self.inputs.rounded(feeds, attempt, narrow=self.narrow) for attempt in range(self.jitters))
            return self._settled(plain, [self._arrays(arrays) for arrays in moved])
        except IrrunError as error:
            if _is_bug(error):
                raise
            return None

    def _settled(self, outputs: Sequence[np.ndarray], jittered: Sequence[Sequence[np.ndarray]]) -> Expected:
        """Return outputs with the distances that runs with changed inputs allow."""
        allowed: list[np.ndarray | None] = []
        for n, output in enumerate(outputs):
            if n in self.loose:
                allowed.append(None)
            elif n in self.moved:
                allowed.append(np.full(output.shape, _FLOOR if self.narrow and type_of(output) in _BASE else 0.0))
            else:
                narrow = self.narrow or n in self.narrowed
                allowed.append(_allowed(output, [run[n] for run in jittered], narrow=narrow))
        return Expected(outputs, allowed)

    def judge_layouts(self, expected: Expected) -> Disagreement | None:
        """The defining kernels give the same for inputs in other memory, and do not change them."""
        graph = self.inputs.graph
        if not graph.odd or graph.is_stateful():
            return None
        feeds = self.inputs.placed(0)
        wrong = differs(_arrays(self.exact, feeds), expected) or changed(self.inputs[0], feeds)
        return Disagreement("exact", "values", f"of the defining kernels: {wrong}") if wrong else None


def _loose(graph: Graph) -> set[int]:
    """Return the outputs that depend on random numbers."""
    tainted: set[int] = set()
    for number, node in enumerate(graph.nodes):
        random = node.cls is not None and not node.cls.pure
        if random or any(ref.node in tainted for ref in node.inputs):
            tainted.add(number)
    return {n for n, ref in enumerate(graph.results) if ref.node in tainted}


def _moved(graph: Graph, *, narrow: bool) -> set[int]:
    """Return the outputs whose elements are those of inputs and constants, moved, and converted last if at all.

    A conversion rounds once. ``narrow`` leaves out f64, which an engine may hold as f32.
    """
    computed: set[int] = set()
    converted: set[int] = set()
    for number, node in enumerate(graph.nodes):
        type = "" if node.cls is None else node.cls.type
        is_wide = narrow and "f64" in (node.type, node.attributes.get("destination_type"))
        is_move = type in MOVES or (node.is_input and node.stored is None)
        sources = {ref.node for ref in node.inputs}
        if is_wide or not (is_move or type == "Convert") or sources & (computed | converted):
            computed.add(number)
        elif type == "Convert":
            converted.add(number)
    return {n for n, ref in enumerate(graph.results) if ref.node not in computed}


def _narrowed(graph: Graph) -> set[int]:
    """Return the outputs that depend on floats narrower than f64, also where they are converted to f64."""
    narrow: set[int] = set()
    for number, node in enumerate(graph.nodes):
        type = node.type if node.is_input else node.attributes.get("destination_type")
        if (type in _BASE and type != "f64") or any(ref.node in narrow for ref in node.inputs):
            narrow.add(number)
    return {n for n, ref in enumerate(graph.results) if ref.node in narrow}


def _arrays(executable: Executable, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays that a run returns."""
    return list(executable(feeds).arrays)


def _allowed(output: np.ndarray, others: Sequence[np.ndarray], *, narrow: bool) -> np.ndarray | None:
    """Return the distance that each element may have; None if even the shape depends on rounding."""
    if any(other.shape != output.shape for other in others):
        return None
    if output.dtype.kind in "OUST":
        return np.where([other != output for other in others], np.inf, 0.0).max(axis=0, initial=0.0)
    wide = output.astype(np.float64)
    largest = np.abs(wide[np.isfinite(wide)]).max(initial=0.0)
    base = _BASE.get(rounded(output, narrow=narrow), 0.0) * largest
    allowed = np.full(wide.shape, max(base, _FLOOR) if type_of(output) in _BASE else 0.0)
    for other in others:
        with np.errstate(all="ignore"):
            distance = np.abs(other.astype(np.float64) - wide)
            same = (other == output) | (np.isnan(wide) & np.isnan(other.astype(np.float64)))
        # an integer, or a special value, that moves at all is a matter of rounding
        loose = ~np.isfinite(distance) if type_of(output) in _BASE else distance > 0
        allowed += np.where(same, 0.0, np.where(loose, np.inf, _FACTOR * distance))
    return allowed


def differs(outputs: Sequence[np.ndarray], expected: Expected) -> str:
    """Return how outputs differ from what is expected, or an empty text."""
    if len(outputs) != len(expected.outputs):
        return f"{len(outputs)} outputs instead of {len(expected.outputs)}"
    for position, (got, want, allowed) in enumerate(zip(outputs, expected.outputs, expected.allowed)):
        if type_of(got) != type_of(want):
            return f"output {position} is {type_of(got)}, not {type_of(want)}"
        if allowed is None:
            continue
        if got.shape != want.shape:
            return f"output {position} is {list(got.shape)}, not {list(want.shape)}"
        if got.dtype.kind in "OUST":
            wrong = np.asarray(got != want) & (allowed == 0)
        else:
            with np.errstate(all="ignore"):
                a, b = got.astype(np.float64), want.astype(np.float64)
                wrong = ~((np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)) | np.isinf(allowed))
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0]) if wrong.ndim else ()
            return f"output {position} has {got[at]} at {list(at)}, not {want[at]} ({int(wrong.sum())} of {wrong.size})"
    return ""


def _judge_check(exact: Executable, expected: Sequence[Expected]) -> Disagreement | None:
    """No error in a valid model, and what is inferred holds what comes. Warnings are right: the graphs are random."""
    findings = check(exact.model).errors
    if findings:
        return Disagreement("check", "finding", f"{findings[0].code} {findings[0].message}")
    for call in expected:
        for tensor, array in zip(exact.outputs, call.outputs):
            if tensor.shape is not None and not tensor.shape.fits(array.shape):
                return Disagreement("check", "shape", f"{list(array.shape)} does not fit the inferred {tensor.shape}")
    return None


def _judge_plan(
    inputs: Inputs, model: Model, reference: _Reference, expected: Sequence[Expected], reached: set[str]
) -> Disagreement | None:
    """The default plan gives what the defining kernels give, also when two threads use it at once."""
    try:
        executable = compile(model, exact=False, max_memory=_MAX_TENSOR_BYTES)
        found = _judge_calls(inputs, executable, expected)
        if found is None and inputs.graph.odd and not inputs.graph.is_stateful():
            found = _judge_chained(inputs, executable, reference)
    except IrrunError as error:
        return Disagreement("exact", "refusal", str(error))
    reached |= algorithms(executable)
    if found is not None or inputs.graph.is_stateful():
        return found
    return _judge_threads(inputs, executable, expected)


def _judge_calls(inputs: Inputs, executable: Executable, expected: Sequence[Expected]) -> Disagreement | None:
    """Each call gives what is expected, and changes neither its inputs nor what the call before has returned."""
    returned: Sequence[np.ndarray] = ()
    for call, wanted in enumerate(expected):
        feeds, copies = inputs.placed(call), [array.copy() for array in returned]
        outputs = _arrays(executable, feeds)
        wrong = differs(outputs, wanted) or changed(inputs[call], feeds)
        if not wrong and (late := changed(copies, returned)):
            wrong = late.replace("input", "before, output")
        if wrong:
            return Disagreement("exact", "values", f"call {call + 1}: {wrong}")
        returned = outputs
    return None


def _judge_chained(inputs: Inputs, executable: Executable, reference: _Reference) -> Disagreement | None:
    """Outputs of a call may be the inputs of the next one."""
    outputs = _arrays(executable, inputs.placed(0))
    feeds = inputs.chained(0, outputs)
    if feeds is None:
        return None
    copies = [array.copy() for array in feeds]
    wanted = reference.of(copies)
    if wanted is None:
        return None
    wrong = differs(_arrays(executable, feeds), wanted) or changed(copies, feeds)
    return Disagreement("exact", "values", f"an output as an input: {wrong}") if wrong else None


def _judge_threads(inputs: Inputs, executable: Executable, expected: Sequence[Expected]) -> Disagreement | None:
    """Two threads give the same at once: one goes from the first call on, one from the last call back."""
    found: list[Disagreement] = []

    def work(calls: Sequence[int], feeds: Sequence[list[np.ndarray]]) -> None:
        for call, arrays in zip(calls, feeds):
            try:
                wrong = differs(_arrays(executable, arrays), expected[call])
            except Exception as error:
                found.append(Disagreement("threads", "crash", f"call {call + 1}: {type(error).__name__}: {error}"))
                return
            if wrong:
                found.append(Disagreement("threads", "values", f"call {call + 1}: {wrong}"))
                return

    last = len(expected) - 1
    calls = (range(0, last + 1, 2), range(last, -1, -2))
    workers = [threading.Thread(target=work, args=(some, [inputs.placed(call) for call in some])) for some in calls]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found[0] if found else None


def _short(text: str) -> str:
    """Return the beginning and the end of a long message."""
    if len(text) <= _MAX_MESSAGE_CHARS:
        return text
    start = _MAX_MESSAGE_CHARS * 3 // 8
    return f"{text[:start]} … {text[start - _MAX_MESSAGE_CHARS :]}"


def _judge_twins(inputs: Inputs, expected: Sequence[Expected]) -> Disagreement | None:
    """The model with the static shapes of each call gives the same."""
    for call in sorted({*inputs.first}):
        try:
            twin = compile(inputs.graph.model(inputs.graph.calls[call]), exact=False, max_memory=_MAX_TENSOR_BYTES)
            if wrong := differs(_arrays(twin, inputs.placed(call)), expected[call]):
                return Disagreement("twin", "values", f"with the shapes of call {call + 1}: {wrong}")
        except IrrunError as error:
            return Disagreement("twin", "refusal", f"with the shapes of call {call + 1}: {error}")
    return None


def _judge_engine(inputs: Inputs, model: Model, expected: Sequence[Expected], engine: Engine) -> Disagreement | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        save_model(model, path)
        outcome: object = engine.load(path)
        call = 0
        for call, wanted in enumerate(expected if isinstance(outcome, Loaded) else ()):
            outcome = engine.infer(dict(enumerate(inputs[call])))
            if not isinstance(outcome, Outputs):
                break
            arrays = [output.array for output in outcome.outputs]
            if wrong := differs(arrays, wanted):
                return Disagreement("engine", "values", f"call {call + 1}: {wrong}", call, arrays, wanted)
    match outcome:
        case Refusal(message=message):
            lines = [line for line in message.splitlines() if line.strip()]
            return Disagreement("engine", "refusal", _short(" ".join(lines)), call)
        case Crash(cause=cause):
            return Disagreement("engine", "crash", cause, call)
        case Timeout(seconds=seconds):
            return Disagreement("engine", "hang", f"no answer within {seconds:g} s", call)
    return None
