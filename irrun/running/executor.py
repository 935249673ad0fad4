"""Run compiled models: check the inputs, execute the steps of the plan, and return the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from irrun.diagnostics import (
    Diagnostic,
    ExecutionError,
    FeedError,
    IrrunError,
    Refused,
    diagnostic,
)
from irrun.inference.layer import infer
from irrun.inference.propagate import declared_inside, refusal, site
from irrun.kernels.copies import copy_to
from irrun.kernels.threads import one_thread, products_are_shared_here
from irrun.model import Layer, Model
from irrun.opdef import Stream, Value, Variables
from irrun.running.failures import kernel_failed, refuse_too_large
from irrun.running.hooks import Hook, Strict, Tap, untrue
from irrun.running.plan import Planning, plan
from irrun.running.pool import Pool
from irrun.running.steps import Plan, Step
from irrun.types import Dim, ElementType, PartialShape

__all__ = ["Executable", "Feeds", "Outputs"]

Feeds = Mapping[Any, Any] | Sequence[Any] | np.ndarray | np.generic | int | float | None
"""The inputs of a run: a mapping by parameter name, tensor name or position, a sequence in Parameter order, or the
array of the only input. None passes no inputs."""


class Outputs(Mapping[str, np.ndarray]):
    """The outputs of a run: a mapping from names to arrays, in Result order.

    A position is also accepted as a key, and ``arrays`` holds all outputs. Each array has the numpy (or ml_dtypes)
    dtype of its element type and shares memory with no other array. ``taps`` holds the intermediate values that were
    requested, by layer name.
    """

    def __init__(
        self,
        names: Sequence[tuple[str, ...]],
        arrays: Sequence[np.ndarray],
        taps: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.arrays = tuple(arrays)
        self.taps: Mapping[str, np.ndarray] = taps or {}
        self._names = [own[0] for own in names]
        self._position: dict[str, int] = {}
        for position, own in enumerate(names):
            for name in own:
                self._position.setdefault(name, position)

    def __getitem__(self, key: str | int) -> np.ndarray:
        if not isinstance(key, str):
            return self.arrays[key]
        try:
            return self.arrays[self._position[key]]
        except KeyError:
            raise KeyError(f"no output {key!r}; there are {', '.join(map(repr, self._names))}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        rows = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in zip(self._names, self.arrays))
        return f"Outputs({rows})"


class Executable:
    """A compiled model. Call it with feeds, any number of times.

    ``strict`` checks every output of every layer against the type and shape that its port declares. ``max_memory`` is
    the most bytes that one tensor may take. ``exact`` computes each layer in a step of its own, with the plain kernel
    (``Op.run``) that defines its operation.
    """

    def __init__(self, model: Model, *, strict: bool, max_memory: int, exact: bool = False) -> None:
        self.model = model
        self.strict = strict
        self.max_memory = max_memory
        self.exact = exact
        self.plan: Plan = plan(model, Planning(max_memory, specialise=not exact, fuse=not exact))
        self._declared: _Shapes = tuple(declared_inside(model, p.id).shape for p in model.parameters)
        self._dynamic = not all(shape.is_static for shape in self._declared)
        self._narrow: dict[_Shapes, Plan] = {}
        self._last: _Sizes = ()
        self._common = self._declared
        self._variables = Variables()
        self._streams: dict[int, Stream] = {}  # by id() of the layer: layers of bodies may share ids
        self._pool = Pool()
        self._output_names = [model.result_names(r) for r in model.results]
        known = all(v.shape.is_static and v.type.kind != "dynamic" for v in self.plan.values.values())
        known = known and not any(layer.bodies for layer in model.layers.values())
        self._untrue = next(self._untruths(), None) if strict and known else None
        self._strict: tuple[Hook, ...] = (Strict(model),) if strict and not known else ()

    def _untruths(self) -> Iterator[Diagnostic]:
        """Yield the diagnostics (IR602) of a strict run that already follow from the inferred types and shapes."""
        for (id, position), value in self.plan.values.items():
            layer, shape = self.model.layers[id], value.shape.static or ()
            if layer.type.lower() not in ("parameter", "const", "constant"):
                wrong = untrue(self.model, layer, layer.outputs[position], shape, value.type.dtype)
                if wrong is not None:
                    yield wrong

    @cached_property
    def _layered(self) -> Plan:
        """The plan in which each layer is a step of its own, for hooks that observe single layers."""
        return self.plan if self.exact else plan(self.model, Planning(self.max_memory, fuse=False))

    def __call__(self, feeds: Feeds = None, *, hooks: Sequence[Hook] = (), taps: str | Sequence[str] = ()) -> Outputs:
        """Run the model and return its outputs.

        ``hooks`` are called before and after each step. ``taps`` are names or globs of layers. ``Outputs.taps``
        holds copies of their outputs: the first under the layer's name, each further one under ``name:port``.

        Raises FeedError if ``feeds`` do not fit the model (IR601) or a tap matches no layer (IR606), and
        ExecutionError (IR602 to IR605) if the run fails.
        """
        arrays = self._arrays(feeds)
        wanted = (taps,) if isinstance(taps, str) else taps
        tap = Tap(self.model, wanted, self._known(arrays)) if wanted else None
        if self._untrue is not None:
            raise ExecutionError(self._untrue)
        every: tuple[Hook, ...] = (*self._strict, *hooks, *([tap] if tap else []))
        fused = all(getattr(hook, "joined", False) for hook in every)
        plan = self._plan_for(tuple([a.shape for a in arrays])) if fused else self._layered
        try:
            # no numpy warnings: NaN and Inf are ordinary values, as in the OpenVINO runtime
            with (
                np.errstate(all="ignore"),
                products_are_shared_here() if plan.heavy else nullcontext(),
                one_thread() if self.exact else nullcontext(),
            ):
                np.setbufsize(_BUFFER)  # errstate restores the previous size
                results = self._walk(plan, arrays, every)
        except BaseException:
            self._variables.discard()
            raise
        self._variables.commit()
        owned = self._own(results, (*arrays, *plan.constants.values()))
        return Outputs(self._output_names, owned, tap.arrays if tap else None)

    def _plan_for(self, shapes: _Sizes) -> Plan:
        """Return the plan for inputs of these shapes.

        A dynamic model gets a narrower plan for dims that are the same in three consecutive runs. Dims that change
        stay open. For a decoder, this pins the dims of one token, but not the length of the past. If several plans
        fit, the one with the fewest steps is used.
        """
        if self.exact or not self._dynamic:
            return self.plan
        last, self._last = self._last, shapes
        if last != shapes:
            self._pool.trim()  # its free memory was for other shapes
        common, self._common = self._common, _common(self._declared, last, shapes)
        if common == self._common != self._declared and common not in self._narrow and len(self._narrow) < _NARROW:
            pinned = {p.id: shape for p, shape in zip(self.model.parameters, common)}
            self._narrow[common] = plan(self.model, Planning(self.max_memory), pinned, self.plan)
        fitting = (p for known, p in self._narrow.items() if all(k.fits(s) for k, s in zip(known, shapes)))
        return min(fitting, key=lambda p: len(p.steps), default=self.plan)

    def _own(self, results: Sequence[np.ndarray | None], others: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the results in C order, as arrays that share memory with no other array: the caller may change them.

        ``others`` are the inputs and constants. A result that is one of them, a view, or returned twice is copied.
        """
        owned: list[np.ndarray] = []
        seen = {id(array) for array in others}
        for array in results:
            assert array is not None
            alone = isinstance(array, np.ndarray) and array.flags.carray and id(array) not in seen
            if not alone or not (array.base is None or self._pool.lends(array)):
                array = self._copy(np.asarray(array))
            seen.add(id(array))
            owned.append(array)
        return owned

    def _copy(self, array: np.ndarray) -> np.ndarray:
        """Return a copy in C order. Its memory comes from the pool, except for strings."""
        if array.dtype.hasobject or array.dtype.kind == "U":
            return np.array(array)
        copy = self._pool.take(array.shape, array.dtype)
        copy_to(copy, array)
        return copy

    def _known(self, arrays: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        """Return the arrays that are known before a run, by layer id: the inputs and the constants."""
        plan = self._layered  # this plan keeps every constant
        slots = {number: id for number, (id, _) in enumerate(plan.values)}
        return {slots[number]: array for number, array in plan.constants.items()} | {
            parameter.id: array for parameter, array in zip(self.model.parameters, arrays)
        }

    @property
    def state(self) -> Mapping[str, np.ndarray]:
        """The variables of a stateful model, by ``variable_id``. Empty before the first run."""
        return self._variables.values

    def reset_state(self) -> None:
        """Clear the variables, as before the first run."""
        self._variables.reset()

    # -- feeds ----------------------------------------------------------------------------------

    def _arrays(self, feeds: Feeds) -> list[np.ndarray]:
        """Return an array for each Parameter, from ``feeds`` or from a comment in a fragment.

        Raises FeedError (IR601).
        """
        parameters = self.model.parameters
        given = self._by_position(feeds)
        arrays: list[np.ndarray] = []
        for position, parameter in enumerate(parameters):
            if position in given:
                arrays.append(self._array(parameter, given[position]))
            elif parameter.id in self.model.contents:
                arrays.append(self.model.contents[parameter.id][0])
            else:
                names = ", ".join(f'"{p.name}"' for p in parameters)
                raise self._feed_error(parameter, "is not given", f"the model takes {names}")
        return arrays

    def _by_position(self, feeds: Feeds) -> dict[int, Any]:
        """Return the inputs by position. Raises FeedError (IR601) for unknown, repeated or too many inputs."""
        parameters = self.model.parameters
        if feeds is None:
            return {}
        if isinstance(feeds, Mapping):
            named = {name: i for i, p in reversed(list(enumerate(parameters))) for name in self.model.input_names(p)}
            given: dict[int, Any] = {}
            for key, value in feeds.items():
                position = named.get(key) if isinstance(key, str) else key
                if not isinstance(position, (int, np.integer)) or not 0 <= position < len(parameters):
                    raise self._no_such_input(key)
                if position in given:
                    raise self._feed_error(parameters[int(position)], "is given twice")
                given[int(position)] = value
            return given
        arrays = list(feeds) if isinstance(feeds, (list, tuple)) else [feeds]
        if len(arrays) > len(parameters):
            message = f"{len(arrays)} inputs are given, the model takes {len(parameters)}"
            help = "wrap the one array: [array]" if len(parameters) == 1 and isinstance(feeds, list) else None
            raise FeedError(Diagnostic("IR601", "error", message, file=self.model.source.path, help=help))
        return dict(enumerate(arrays))

    def _no_such_input(self, key: object) -> FeedError:
        names = ", ".join(f'"{p.name}"' for p in self.model.parameters) or "none"
        return FeedError(
            Diagnostic(
                "IR601", "error", f"the model has no input {key!r}", file=self.model.source.path,
                help=f"its inputs are {names}",
            )
        )  # fmt: skip

    def _feed_error(self, parameter: Layer, message: str, help: str | None = None) -> FeedError:
        return FeedError(
            diagnostic(
                "IR601", f'input "{parameter.name}" {message}', source=self.model.source, node=parameter.node,
                layer=parameter.name, help=help,
            )
        )  # fmt: skip

    def _array(self, parameter: Layer, given: Any) -> np.ndarray:
        """Return an input as an array that fits its Parameter; may be ``given`` itself. Raises FeedError (IR601)."""
        key = (parameter.id, 0)
        value = self.plan.values[key]
        wanted = value.type
        try:
            array = _accept(given, wanted, self.model.version)
        except (ValueError, TypeError, OverflowError) as error:
            raise self._feed_error(parameter, f"cannot be read as {wanted}: {error}") from None
        if array is None:
            help = f"convert it: array.astype({wanted.dtype.name!r})"
            raise self._feed_error(parameter, f"is {given.dtype.name}, the model takes {wanted}", help)
        if not value.shape.fits(array.shape):
            got = f"[{','.join(map(str, array.shape))}]"
            raise self._feed_error(parameter, f"has shape {got}, the model takes {value.shape}")
        return array

    # -- the loop -------------------------------------------------------------------------------

    def _walk(self, plan: Plan, arrays: Sequence[np.ndarray], hooks: Sequence[Hook]) -> list[np.ndarray]:
        """Run a plan, of the model or of a body, and return the arrays of its Results."""
        slots: list[Any] = [None] * (plan.slots + 1)  # the last slot, which is also slot -1, is an absent input
        for number, array in plan.constants.items():
            slots[number] = array
        for number, array in zip(plan.parameters, arrays):
            slots[number] = array
        for step in plan.steps:
            inputs = [slots[number] for number in step.reads]
            for hook in hooks:
                hook.before(step, inputs)
            if step.dynamic:
                self._check_once(plan, step, inputs)
            try:
                if step.out is not None:
                    returned = step.kernel.call(*inputs, out=self._pool.take(*step.out))
                elif step.needed:
                    returned = step.kernel.call(*inputs, **self._needed(step, hooks))
                else:
                    returned = step.kernel.call(*inputs)
            except IrrunError:
                raise  # a step of a body has failed and reported it
            except Exception as error:
                raise self._failed(plan, step, inputs, error) from error
            outputs = returned if isinstance(returned, tuple) else (returned,)
            for hook in hooks:
                hook.after(step, inputs, outputs)
            for number, array in zip(step.writes, outputs):
                slots[number] = array
            for number in step.frees:
                slots[number] = None
        return [slots[number] for number in plan.results]

    def _needed(self, step: Step, hooks: Sequence[Hook]) -> dict[str, Any]:
        """Return the keyword arguments for the kernel of a step, with runnable bodies and the current variables."""
        offers = dict(step.needed)
        if "bodies" in offers:
            offers["bodies"] = {tag: _RunningBody(self, plan, hooks) for tag, plan in step.bodies.items()}
        if "variables" in offers:
            offers["variables"] = self._variables
        if "stream" in offers:
            offers["stream"] = self._streams.setdefault(id(step.layer), Stream())
        return offers

    def _check_once(self, plan: Plan, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        """Check a dynamic step, unless it has passed with the same dtypes, shapes and integer contents.

        Only integers of rank 0 and 1 are compared by contents, because shapes may depend on them.
        """
        known = tuple(
            None if a is None else (a.dtype, a.shape, a.tobytes() if a.dtype.kind in "iu" and a.ndim < 2 else None)
            for a in inputs
        )
        if known in step.passed:
            return
        self._check(plan, step, inputs)
        if len(step.passed) >= _PASSED:
            step.passed.clear()
        step.passed.add(known)

    def _check(self, plan: Plan, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        """Apply the shape rule of a layer to its actual inputs, before its kernel allocates memory.

        Raises ExecutionError: IR604 if an output is too large, otherwise the code of the broken rule.
        """
        values = [
            None if a is None else Value(_type(plan.types[number], a), PartialShape.of(a.shape), a)
            for number, a in zip(step.reads, inputs)
        ]
        try:
            outputs = infer(step.op, site(step.layer), values, dict(step.needed), contents=False)
        except Refused as refused:
            raise self._refused(step, refused) from None
        for value in outputs:
            refuse_too_large(self.model, step.layer, value, self.max_memory)

    def _refused(self, step: Step, refused: Refused) -> ExecutionError:
        """Return the error for a rule that the inputs of a step break."""
        if refused.code == "IR403":  # the input values break the rule, not the model
            refused.code = "IR605"
        return ExecutionError(refusal(self.model, step.layer, step.op, refused))

    def _failed(self, plan: Plan, step: Step, inputs: Sequence[np.ndarray | None], error: Exception) -> ExecutionError:
        """Return the error for an exception in a kernel. It blames the inputs, the lack of memory, or irrun."""
        if isinstance(error, Refused):
            return self._refused(step, error)
        try:
            if step.own_inputs:
                self._check(plan, step, inputs)
        except ExecutionError as refused:
            return refused
        except Exception:
            pass  # the shape rule fails as well: report the exception of the kernel
        shapes = ", ".join("none" if a is None else f"{a.dtype}{list(a.shape)}" for a in inputs)
        if isinstance(error, MemoryError):
            message = f'{step.layer.type} "{step.layer.name}" ran out of memory; its inputs are {shapes}'
            return ExecutionError(
                diagnostic("IR604", message, source=self.model.source, node=step.layer.node, layer=step.layer.name)
            )
        return ExecutionError(kernel_failed(self.model, step.layer, step.op, error, f"; its inputs are {shapes}"))


_Shapes = tuple[PartialShape, ...]
_Sizes = tuple[tuple[int, ...], ...]

_BUFFER: Final = 1 << 10
"""Elements in the buffers of numpy's ufuncs. Numpy then does not copy operands that it broadcasts along rows of about
this length.

With numpy's default of 8192, adding a bias to rows of 768 to 4096 elements takes 1.5 times as long. Conversions
between dtypes need a buffer of some hundred elements.
"""
_NARROW: Final = 4
"""The most plans that an Executable makes for recurring input dims. Making one takes as long as a few runs."""


def _common(declared: _Shapes, last: _Sizes, now: _Sizes) -> _Shapes:
    """Return the declared shapes, with the dims pinned that are equal in the inputs ``last`` and ``now``."""
    shapes: list[PartialShape] = []
    for shape, a, b in zip(declared, last or [()] * len(now), now):
        if len(a) == len(b):
            dims = shape.dims or tuple(PartialShape.of_rank(len(a)))
            shape = PartialShape(tuple(Dim(n) if n == m else dim for n, m, dim in zip(a, b, dims)))
        shapes.append(shape)
    return tuple(shapes)


_PASSED: Final = 256
"""The most passed checks that a dynamic step remembers, so that ever new inputs do not fill the memory."""


@dataclass(frozen=True, slots=True)
class _RunningBody:
    """A body (``opdef.Body``) that is run on arrays, within one run of ``executable``."""

    executable: Executable
    plan: Plan
    hooks: Sequence[Hook]

    def declared(self, id: int) -> Value:
        return declared_inside(self.plan.model, id)

    def __call__(self, inputs: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        model = self.plan.model
        arrays = self.executable._walk(self.plan, [inputs[p.id] for p in model.parameters], self.hooks)
        return {result.id: array for result, array in zip(model.results, arrays)}


def _type(known: ElementType, array: np.ndarray) -> ElementType:
    """Return the planned element type of a slot, or that of ``array`` if the plan leaves the type open."""
    return (ElementType.of(array.dtype) or known) if known.kind == "dynamic" else known


def _accept(given: Any, wanted: ElementType, version: int) -> np.ndarray | None:
    """Return an input as an array of the element type ``wanted``, or None if its dtype does not fit.

    The dtype of a numpy array must fit, in any byte order. Python numbers, strings and lists are converted if they
    keep their meaning. May return ``given`` itself. Raises ValueError, TypeError or OverflowError for values that
    cannot be converted.
    """
    array = np.asarray(given)
    if wanted.kind == "dynamic":
        element_type = ElementType.of(array.dtype.newbyteorder("="))
        if element_type is None:
            raise TypeError(f"no element type has dtype {array.dtype.name}")
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    if not isinstance(given, np.ndarray):
        return _read(array, wanted)
    if array.dtype.newbyteorder("=") == wanted.dtype:
        array = array.astype(wanted.dtype, copy=False)
        return _read(array, wanted) if wanted.bits < 8 and wanted.dtype == np.uint8 else array
    if wanted.kind == "string":
        words = array.dtype.kind in "UT" or (array.dtype == object and all(isinstance(w, str) for w in array.flat))
        return array.astype(np.str_) if words else None
    if version == 10 and wanted.name == "f16" and array.dtype.newbyteorder("=") == np.float32:
        return array.astype(np.float16)  # OpenVINO takes f32 where a v10 file says f16
    return None


def _read(array: np.ndarray, wanted: ElementType) -> np.ndarray:
    """Return numbers, booleans or strings as an array of ``wanted``.

    Raises TypeError for values of another kind, OverflowError for integers out of range.
    """
    if not array.size:
        return np.empty(array.shape, wanted.dtype)
    kinds = {"float": "fiu", "int": "iuO", "uint": "iuO", "boolean": "biu", "string": "U"}[wanted.kind]
    if array.dtype.kind not in kinds and array.dtype != wanted.dtype:
        raise TypeError(f"it holds {array.dtype.name}")
    if wanted.kind in ("int", "uint", "boolean"):
        bits = 1 if wanted.kind == "boolean" else wanted.bits
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if wanted.kind == "int" else (0, (1 << bits) - 1)
        for number in (array.min(), array.max()):
            if not isinstance(number, (int, np.integer, np.bool_)) or not least <= number <= most:
                raise OverflowError(f"{number} is not within {least}..{most}")
    with np.errstate(over="ignore"):
        return array.astype(wanted.dtype)
