"""RNN, GRU and LSTM. A cell computes one element, and a sequence does the same for each of its elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from irrun.base.deadline import in_time
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.elementwise import native
from irrun.kernels.matmul import matmul, narrow, wide
from irrun.kernels.recurrence import Pack, PackedWeights, gru, gru_linear, lstm, rnn
from irrun.kernels.threads import each
from irrun.opdef import Kernel, Op, Operands, Packing, Request, Site, Value, attr
from irrun.types import Dim, product

Function = Callable[[np.ndarray], np.ndarray]
Rounding = Callable[[np.ndarray], np.ndarray]
"""Rounds a hidden state, or a part of it, before a product reads it."""
States = tuple[np.ndarray, ...]
"""The hidden state and, for an LSTM, the cell state."""


# ---------------------------------------------------------------------------------------------
# the formulas


def _exact(array: np.ndarray) -> np.ndarray:
    return array


def _rnn(
    functions: Sequence[Function], round: Rounding, x: np.ndarray, states: States, r: np.ndarray, b: np.ndarray
) -> States:
    """Return the hidden state after one element. See ``Kind`` for the parameters of the formulas."""
    (f,), (h,) = functions, states
    return (f(x + matmul(h, r.T)),)


def _gru(
    functions: Sequence[Function],
    round: Rounding,
    x: np.ndarray,
    states: States,
    r: np.ndarray,
    b: np.ndarray,
    *score: np.ndarray,
) -> States:
    (f, g), (h,), n = functions, states, r.shape[1]
    update, reset = np.split(f(x[:, : 2 * n] + matmul(h, r[: 2 * n].T)), 2, axis=1)
    hidden = g(x[:, 2 * n :] + matmul(round(reset * h), r[2 * n :].T))
    return _updated(update, hidden, h, *score)


def _gru_linear_before_reset(
    functions: Sequence[Function], round: Rounding, x: np.ndarray, states: States, r: np.ndarray, b: np.ndarray
) -> States:
    (f, g), (h,), n = functions, states, r.shape[1]
    recurrent = matmul(h, r.T)
    update, reset = np.split(f(x[:, : 2 * n] + recurrent[:, : 2 * n]), 2, axis=1)
    hidden = g(x[:, 2 * n :] + reset * (recurrent[:, 2 * n :] + b))
    return _updated(update, hidden, h)


def _updated(update: np.ndarray, hidden: np.ndarray, h: np.ndarray, score: np.ndarray | None = None) -> States:
    if score is not None:
        update = (1 - score) * update
    return ((1 - update) * hidden + update * h,)


def _lstm(
    functions: Sequence[Function], round: Rounding, x: np.ndarray, states: States, r: np.ndarray, b: np.ndarray
) -> States:
    (f, g, h), (hidden, cell) = functions, states
    forget, new, candidate, output = np.split(x + matmul(hidden, r.T), 4, axis=1)
    cell = f(forget) * cell + f(new) * g(candidate)
    return f(output) * h(cell), cell


@dataclass(frozen=True, slots=True)
class Kind:
    """The numbers of gates, biases (in hidden sizes), functions and states of a cell, and the formula of one step.

    ``step(functions, round, x, states, r, b, *more)`` returns the states after an element. ``functions`` are f, g and h
    of the specification. ``round`` is applied to the reset hidden state of a GRU before its product. ``x`` is the
    element projected to all gates, with their biases added. ``r`` are the recurrence weights and ``b`` the biases that
    belong to no gate.
    """

    gates: int
    biases: int
    functions: int
    states: int
    step: Callable[..., States]
    usual: tuple[str, ...]
    """The activations for which ``pack`` computes the same."""
    pack: Pack
    """Prepares constant weights W, R and B."""


RNN: Final = Kind(1, 1, 1, 1, _rnn, ("tanh",), rnn)
GRU: Final = Kind(3, 3, 2, 1, _gru, ("sigmoid", "tanh"), gru)
GRU_LINEAR: Final = Kind(3, 4, 2, 1, _gru_linear_before_reset, ("sigmoid", "tanh"), gru_linear)
LSTM: Final = Kind(4, 4, 3, 2, _lstm, ("sigmoid", "tanh", "tanh"), lstm)


# ---------------------------------------------------------------------------------------------
# cells and sequences


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


_ACTIVATIONS: Final[Mapping[str, Function]] = {"sigmoid": _sigmoid, "tanh": np.tanh, "relu": _relu}


class _Recurrent(Op):
    """Base of cells and sequences. Their clauses have the same labels everywhere.

    C1  ``activations`` names sigmoid, tanh or relu for each function of the cell.
    C2  Every input has the rank of its layout in the specification.
    C3  Dims with the same name in these layouts are equal, and ``hidden_size`` is the value of the attribute.
    C4  Where ``has_score``, ``clip`` is 0 and ``linear_before_reset`` false.
    """

    hidden_size = attr.int()
    activations = attr.str()
    activations_alpha = attr.floats(())  # sigmoid, tanh and relu have no parameters
    activations_beta = attr.floats(())
    clip = attr.float(0.0)
    types = {"T": "float"}
    kind: ClassVar[Kind]
    has_score: ClassVar[bool] = False
    """Whether the cell has an attention score. Such cells only know sigmoid, tanh and the plain formula."""
    linear_before_reset: bool = False

    @property
    def formula(self) -> Kind:
        """The formula of the cell, which depends on ``linear_before_reset``."""
        return GRU_LINEAR if self.linear_before_reset else self.kind

    def functions(self) -> list[Function]:
        """Return the activations f, g and h, with clipping."""
        functions = [_ACTIVATIONS[name] for name in self._names()]
        # f and g apply to gates, which are clipped, and h to the cell state, which is not
        return [self._clipping(function) for function in functions[:2]] + functions[2:]

    def _names(self) -> list[str]:
        return [name.strip().lower() for name in self.activations.split(",")]

    def _clipping(self, function: Function) -> Function:
        if not self.clip > 0:  # OpenVINO writes 0 where the specification says infinity
            return function
        return lambda x: function(np.clip(x, -self.clip, self.clip))

    def layout(self) -> dict[str, str]:
        """Return the dims of each input, named as in the specification."""
        return {
            "X": "batch_size seq_length input_size",
            "initial_hidden_state": "batch_size num_directions hidden_size",
            "initial_cell_state": "batch_size num_directions hidden_size",
            "sequence_lengths": "batch_size",
            "W": f"num_directions {self.formula.gates}*hidden_size input_size",
            "R": f"num_directions {self.formula.gates}*hidden_size hidden_size",
            "B": f"num_directions {self.formula.biases}*hidden_size",
            "P": "3*hidden_size",
            "A": "batch_size seq_length 1",
        }

    def flops(self, inputs: Sequence[Value | None], outputs: Sequence[Value], /) -> Dim:
        ports = dict(zip((port.name for port in self.inputs), inputs))
        x, weights = ports["X"], [ports[name] for name in ("W", "R")]
        if x is None or not x.shape.dims:
            return Dim.unknown()
        counts = [Dim.unknown() if matrix is None else matrix.shape.count() for matrix in weights]
        return product(x.shape.dims[:-1]) * (counts[0] + counts[1]) * 2  # the rest is small beside the products

    def dims(self, at: Site, inputs: Sequence[Value | None], **known: Dim) -> Callable[[str], list[Dim]]:
        """Check the inputs, and return a function that maps the names of dims to the inferred dims.

        ``known`` are dims that are known beforehand. Refuses by C1 to C3.
        """
        names, allowed = self._names(), [name for name in _ACTIVATIONS if name != "relu" or not self.has_score]
        at.require(
            len(names) == self.formula.functions and all(name in allowed for name in names),
            "C1",
            f'activations is "{self.activations}", not a list of {self.formula.functions} of {", ".join(allowed)}',
        )
        plain = self.clip == 0 and not self.linear_before_reset
        given = f"clip is {self.clip} and linear_before_reset is {str(self.linear_before_reset).lower()}"
        at.require(plain or not self.has_score, "C4", f"{given}, but {self.type} knows only 0 and false")
        known = {"hidden_size": Dim(self.hidden_size), "1": Dim(1), **known}
        layout = self.layout()
        for port, value in zip(self.inputs, inputs):
            if value is None or value.shape.dims is None:
                continue
            words = layout[port.name].split()
            at.require(len(words) == len(value.shape), "C2", f"{port.name} is {value.shape}, not [{', '.join(words)}]")
            for word, dim in zip(words, value.shape):
                times, _, name = word.rpartition("*")
                wanted = known.get(name, dim) * int(times or 1)
                both = wanted.meet(dim)
                at.require(both is not None, "C3", f"{port.name} is {value.shape}: {word} is {dim}, not {wanted}")
                if both is not None and not times:
                    known[name] = both
        return lambda names: [known.get(name, Dim.unknown()) for name in names.split()]

    @property
    def is_usual(self) -> bool:
        """Whether the activations are those that engines know, and gates are not clipped."""
        return tuple(self._names()) == self.formula.usual and not self.clip > 0

    def named(self, inputs: Sequence[np.ndarray | None]) -> dict[str, np.ndarray]:
        """Return the inputs by name, in the dtype to compute in. Results are rounded once, at the end."""
        present = {port.name: a for port, a in zip(self.inputs, inputs) if a is not None}
        return {name: a.astype(wide(a.dtype), copy=False) for name, a in present.items()}

    def run(self, x: np.ndarray, *others: np.ndarray | None) -> tuple[np.ndarray, ...]:
        return self.run_rounding(_exact, x, *others)

    @property
    def rounds_inside(self) -> bool:
        return self.is_usual

    def rounded(self, inputs: Sequence[Value | None], precision: Operands, /) -> tuple[int, ...]:
        """Return the elements, the hidden state, W and R, if the activations are the usual ones."""
        if precision != "bf16" or not self.is_usual:
            return ()
        names = ("X", "initial_hidden_state", "W", "R")
        return tuple(position for position, port in enumerate(self.inputs) if port.name in names)

    def defining(self, precision: Operands) -> Callable[..., tuple[np.ndarray, ...]]:
        """Return ``run``, or what it computes of operands that are rounded to a precision."""
        if precision != "bf16":
            return self.run
        numbers = self.rounded((), precision)

        def call(*inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
            rounded = [rounded_to_bf16(a) if a is not None and n in numbers else a for n, a in enumerate(inputs)]
            return self.run_rounding(rounded_to_bf16, *rounded)  # type: ignore[arg-type]

        return call

    def prepare(self, request: Request) -> Kernel | None:
        return self.prepared(request, self.formula.pack)

    def prepared(self, request: Request, pack: Pack) -> Kernel | None:
        """Return the kernel whose constant weights ``pack`` prepares, or None if there is none."""
        raise NotImplementedError

    def packed(self, request: Request, pack: Pack) -> Sequence[PackedWeights] | None:
        """Return the weights of each direction as ``pack`` prepares them, or None.

        None means that the weights are not constant, or that the layer needs more than the prepared kernels can
        compute.
        """
        known = {port.name: value for port, value in zip(self.inputs, request.inputs) if value is not None}
        weights = [known[name].exact for name in "WRB" if name in known]
        usual = self.is_usual and "A" not in known
        if not usual or not native(*(known[name] for name in known if name != "sequence_lengths")):
            return None
        if any(array is None for array in weights):
            return None
        one_direction = (2, 2, 1)  # the ranks of W, R and B in a cell; in a sequence, an axis of directions comes first
        w, r, *rest = (a if a.ndim > rank else a[None] for a, rank in zip(weights, one_direction) if a is not None)
        b = rest[0] if rest else np.zeros((len(r), self.formula.biases * r.shape[-1]), r.dtype)
        return [pack(*each) for each in zip(w, r, b)]

    @property
    def weights(self) -> tuple[int, ...]:
        """The positions of W, R and B among the inputs."""
        return tuple(position for position, port in enumerate(self.inputs) if port.name in ("W", "R", "B"))

    def initial(self, arrays: dict[str, np.ndarray]) -> States:
        """Return the initial states."""
        return tuple(arrays[name] for name in ("initial_hidden_state", "initial_cell_state")[: self.formula.states])


def _carried(round: Rounding, states: States) -> States:
    """Return the states as the next element reads them, with a hidden state that is rounded."""
    return round(states[0]), *states[1:]


def _project(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return elements projected to all gates, with their biases added, and the remaining biases."""
    return matmul(x, w.T) + b[: len(w)], b[len(w) :]


class Cell(_Recurrent):
    """Base of the operations on one element."""

    def layout(self) -> dict[str, str]:
        absent = ("seq_length", "num_directions")
        return {
            port: " ".join(word for word in words.split() if word not in absent)
            for port, words in super().layout().items()
        }

    def infer(self, at: Site, x: Value, *others: Value | None) -> tuple[Value, ...]:
        dims = self.dims(at, (x, *others))
        return tuple(x.reshaped(dims("batch_size hidden_size")) for _ in range(self.formula.states))

    def prepared(self, request: Request, pack: Pack) -> Kernel | None:
        packed = self.packed(request, pack)
        if packed is None:
            return None
        (weights,), states = packed, self.formula.states

        def call(x: np.ndarray, *others: np.ndarray | None) -> tuple[np.ndarray, ...]:
            y = np.empty((len(x), 1, self.hidden_size), x.dtype)
            return weights.run(x[:, None], others[:states], y)  # type: ignore[arg-type]

        return Kernel(call, "packed", packing=Packing(self.weights, weights.nbytes))

    def run_rounding(self, round: Rounding, /, x: np.ndarray, *others: np.ndarray | None) -> tuple[np.ndarray, ...]:
        arrays = self.named((x, *others))
        r = arrays["R"]
        b = arrays.get("B", np.zeros(self.formula.biases * r.shape[1], r.dtype))
        scores = (arrays["A"],) if "A" in arrays else ()
        with np.errstate(over="ignore", invalid="ignore"):
            projected, rest = _project(arrays["X"], arrays["W"], b)
            states = _carried(round, self.initial(arrays))
            after = self.formula.step(self.functions(), round, projected, states, r, rest, *scores)
        return tuple(narrow(state, x.dtype) for state in after)


class RecurrentSequence(_Recurrent):
    """Base of the operations on a sequence of elements."""

    # the specification requires this attribute, but its own examples leave it out
    direction = attr.choice("forward", "reverse", "bidirectional", default="forward")
    types = {"T": "float", "T_LEN": "int"}

    def infer(self, at: Site, x: Value, *others: Value | None) -> tuple[Value, ...]:
        dims = self.dims(at, (x, *others), num_directions=Dim(2 if self.direction == "bidirectional" else 1))
        states = [x.reshaped(dims("batch_size num_directions hidden_size")) for _ in range(self.formula.states)]
        return (x.reshaped(dims("batch_size num_directions seq_length hidden_size")), *states)

    def prepared(self, request: Request, pack: Pack) -> Kernel | None:
        packed = self.packed(request, pack)
        if packed is None:
            return None
        backwards = [self.direction == "reverse", True]
        states, defining = self.formula.states, self.defining(request.precision)
        work = sum(weights.work for weights in packed)

        def call(x: np.ndarray, *others: np.ndarray | None) -> tuple[np.ndarray, ...]:
            lengths = others[states]
            assert lengths is not None
            if not x.size or (lengths < x.shape[1]).any():
                return defining(x, *others)
            y = np.empty((len(x), len(packed), x.shape[1], self.hidden_size), x.dtype)
            given = [state for state in others[:states] if state is not None]
            ends = [np.empty((len(x), len(packed), self.hidden_size), x.dtype) for _ in range(states)]

            def one_way(way: int) -> None:
                first = tuple(state[:, way] for state in given)
                for end, state in zip(ends, packed[way].run(x, first, y[:, way], backwards=backwards[way])):
                    end[:, way] = state

            each(one_way, range(len(packed)), work * x.shape[0] * x.shape[1])
            return y, *ends

        known, data = request.inputs[1 + states], request.inputs[0]
        lengths = None if known is None else known.exact
        shape = None if data is None else data.shape.static
        whole = lengths is not None and shape is not None and 0 not in shape and (lengths >= shape[1]).all()
        packing = Packing(self.weights if whole else (), sum(weights.nbytes for weights in packed))
        return Kernel(call, "packed", packing=packing)

    def run_rounding(self, round: Rounding, /, x: np.ndarray, *others: np.ndarray | None) -> tuple[np.ndarray, ...]:
        arrays = self.named((x, *others))
        directions = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]
        with np.errstate(over="ignore", invalid="ignore"):
            passes = [self._pass(arrays, round, number, backwards) for number, backwards in enumerate(directions)]
        return tuple(narrow(np.stack(both, axis=1), x.dtype) for both in zip(*passes))

    def _pass(
        self, arrays: dict[str, np.ndarray], round: Rounding, direction: int, backwards: bool
    ) -> tuple[np.ndarray, ...]:
        """Return the hidden states [batch, time, hidden] and the last states [batch, hidden] of one direction."""
        x, r = arrays["X"], arrays["R"][direction]
        batch, time = np.arange(x.shape[0]), np.arange(x.shape[1])[:, None]
        lengths = np.clip(arrays["sequence_lengths"], 0, len(time))
        inside = (time < lengths)[..., None]
        # reverse each sequence up to its own end; elements after the end stay in place
        order = np.where(time < lengths, lengths - 1 - time, time) if backwards else time
        x, *scores = (a[batch, order] for a in (x, *([arrays["A"]] if "A" in arrays else [])))
        projected, b = _project(x, arrays["W"][direction], arrays["B"][direction])
        states = tuple(state[:, direction] for state in self.initial(arrays))
        y = np.zeros((*inside.shape[:2], r.shape[1]), x.dtype)
        functions = self.functions()
        for t in in_time(range(len(time))):
            carried = _carried(round, states)
            after = self.formula.step(functions, round, projected[t], carried, r, b, *(score[t] for score in scores))
            states = tuple(np.where(inside[t], new, old) for new, old in zip(after, states))
            y[t] = states[0]
        # OpenVINO gives zeros as the last states of an empty sequence, not its initial states
        last = (np.where(lengths[:, None] > 0, state, 0) for state in states)
        return np.where(inside, y, 0)[order, batch].swapaxes(0, 1), *last
