"""Call compiled kernels with random inputs in odd memory, and compare them with ``exact``.

`python -m tools kernel_calls --calls 20000 --seed 7` makes models of one operation, or of a few that kernels join, with
random attributes and shapes, runs them with compiled kernels and with ``exact``, and reports each call whose results
differ by more than rounding, or in kind (NaN, an infinity and its sign). The inputs lie in the layouts of
`tests/help/odd_memory.py`, some of them beside a page that must not be touched; some hold infinities, NaN, huge and
subnormal numbers. `--form avx2` computes as a processor without AVX-512 does, and `--threads` sets the threads.
`--only MatMul --at 31` repeats one call. The exit status is 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import irrun
from irrun import build as b
from irrun.fast.machine.machine_code import MachineCode
from odd_memory import odd

SPECIAL: Final = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e30, -1e30], np.float32)
"""Numbers that some calls hold among their inputs."""
Node = Any


@dataclass
class Draw:
    """What one call is drawn with, and the inputs of its model."""

    rng: np.random.Generator
    special: bool
    inputs: list[np.ndarray] = field(default_factory=list)

    def one(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def size(self, most: int, least: int = 1) -> int:
        """Return a size: small, about a power of two, or any."""
        kind = self.rng.integers(3)
        if kind == 0:
            found = self.rng.integers(1, 9)
        elif kind == 1:
            found = 2 ** self.rng.integers(0, most.bit_length()) + self.rng.integers(-1, 2)
        else:
            found = self.rng.integers(least, most + 1)
        return int(np.clip(found, least, most))

    def normal(self, *shape: int, scale: float = 1) -> np.ndarray:
        return self.rng.standard_normal(shape, np.float32) * np.float32(scale)

    def weights(self, *shape: int) -> np.ndarray:
        """Return constant numbers, some of which f16 holds."""
        numbers = self.normal(*shape, scale=1 / 8)
        return numbers.astype(np.float16).astype(np.float32) if self.rng.random() < 0.5 else numbers

    def input(self, *shape: int, dynamic: float = 0.4) -> Node:
        """Add an input, and return its node. The model does not know its shape in a part ``dynamic`` of the calls."""
        numbers = self.normal(*shape, scale=3)
        if self.special and numbers.size:
            places = self.rng.integers(numbers.size, size=self.rng.integers(1, 4))
            numbers.reshape(-1)[places] = self.rng.choice(SPECIAL, len(places))
        self.inputs.append(numbers)
        declared = [None] * len(shape) if self.rng.random() < dynamic else list(shape)
        return b.parameter(declared, "f32", name=f"x{len(self.inputs)}")


# ---------------------------------------------------------------------------------------------
# models


def _after(d: Draw, node: Node, *shape: int) -> Node:
    """Add what kernels join to products and convolutions: an activation, a clamp, a residual of this shape."""
    kind = d.rng.integers(6)
    if kind == 0:
        return b.Relu(node)
    if kind == 1:
        return b.Clamp(node, min=-1.0, max=2.0)
    if kind == 2:
        return d.one(b.Gelu, b.Sigmoid, b.Tanh, b.Swish)(node)
    return b.Add(node, d.input(*shape)) if kind == 3 else node


def _product(d: Draw) -> Node:
    kind, groups = d.one("f32", "f32", "f16", "bf16", "u8", "i8", "u4", "i4"), 1
    depth, columns = d.size(300), d.size(300, 14)
    depth = max(depth, -(-(1 << 12) // columns))
    ranges = {"u8": (0, 256), "i8": (-128, 128), "u4": (0, 16), "i4": (-8, 8)}
    if kind in ranges:
        groups = d.one(1, 2, 4)
        depth = -(-depth // (groups * 8)) * groups * 8
        low, high = ranges[kind]
        codes, zeros = (
            b.Convert(b.constant(d.rng.integers(low, high, (columns, groups, size)), kind), destination_type="f32")
            for size in (depth // groups, 1)
        )
        scaled = b.Multiply(
            b.Subtract(codes, zeros), np.abs(d.normal(columns, groups, 1, scale=1 / 512)) + np.float32(0.002)
        )
        matrix, flip = b.Reshape(scaled, np.array([columns, depth]), special_zero=False), True
    elif kind == "f32":
        flip = bool(d.rng.integers(2))
        matrix = d.weights(*((columns, depth) if flip else (depth, columns)))
    else:
        matrix, flip = b.Convert(b.constant(d.weights(depth, columns), kind), destination_type="f32"), False
    batch, rows, other = [d.size(3) for _ in range(d.rng.integers(3))], d.size(40), bool(d.rng.integers(2))
    a = d.input(*batch, *((depth, rows) if other else (rows, depth)))
    product = b.MatMul(a, matrix, transpose_a=other, transpose_b=flip)
    if d.rng.random() < 0.5:
        product = b.Add(product, d.normal(columns))
    return _after(d, product, *batch, rows, columns)


def _activation(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        x = d.input(*(d.size(40) for _ in range(d.rng.integers(1, 5))))
        if type == "Gelu":
            return b.Gelu(x, approximation_mode=d.one("ERF", "TANH"))
        return getattr(b, type)(x)

    return draw


def _sequence(type: str) -> Callable[[Draw], Node]:
    gates, states = (4, 2) if type.startswith("LSTM") else (3, 1)

    def draw(d: Draw) -> Node:
        batch, steps, size = d.size(5), d.size(9), d.size(40)
        linear = type.startswith("GRU") and bool(d.rng.integers(2))
        hidden = d.size(70, 38)
        biases = gates + linear
        options = {"linear_before_reset": True} if linear else {}
        if type.endswith("Cell"):
            held = [d.input(batch, hidden, dynamic=0) for _ in range(states)]
            weights = d.weights(gates * hidden, size), d.weights(gates * hidden, hidden), d.weights(biases * hidden)
            node = getattr(b, type)(d.input(batch, size, dynamic=0), *held, *weights, hidden_size=hidden, **options)
            return [node[n] for n in range(states)]
        direction = d.one("forward", "reverse", "bidirectional")
        ways = 2 if direction == "bidirectional" else 1
        x, held = (
            d.input(batch, steps, size, dynamic=0),
            [d.input(batch, ways, hidden, dynamic=0) for _ in range(states)],
        )
        lengths = d.rng.integers(1, steps + 1, batch) if d.rng.random() < 0.5 else np.full(batch, steps)
        weights = (d.weights(ways, gates * hidden, s) for s in (size, hidden))
        node = getattr(b, type)(
            x, *held, lengths.astype(np.int32), *weights, d.weights(ways, biases * hidden), hidden_size=hidden,
            direction=direction, **options,
        )  # fmt: skip
        return [node[n] for n in range(states + 1)]

    return draw


def _inside(node: Node) -> Node:
    """Add so many layers that the planner lays the channels last."""
    for _ in range(10):
        node = b.Negative(node)
    return node


def _spatial(d: Draw, channels: int, least: int) -> tuple[Node, tuple[int, ...]]:
    shape = d.size(3), channels, d.size(24, least), d.size(24, least)
    return d.input(*shape, dynamic=0), shape


def _convolution(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        kernel, dilation = [d.one(1, 1, 2, 3, 3, 5) for _ in "hw"], [d.one(1, 1, 1, 2) for _ in "hw"]
        groups = 1 if not type.startswith("Group") else d.one(2, 3, 8)
        ins, outs = d.size(48), d.size(48)
        if groups > 1 and d.rng.random() < 0.5:
            ins = outs = 1
            groups = d.size(64, 2)  # depthwise
        data, _ = _spatial(d, groups * ins, max((k - 1) * s + 1 for k, s in zip(kernel, dilation)))
        pair = (ins, outs) if type.endswith("BackpropData") else (outs, ins)
        filters = d.weights(*([groups] if type.startswith("Group") else []), *pair, *kernel)
        zero = (0, 0)
        pads = [[int(d.rng.integers(0, k)) for k in kernel] for _ in "be"] if d.rng.random() < 0.7 else [zero, zero]
        if type.endswith("BackpropData"):
            pads = [zero, zero]
        strides = [int(d.rng.integers(1, min(k, 2) + 1)) for k in kernel] if d.rng.random() < 0.5 else [1, 1]
        node = getattr(b, type)(
            data, filters, strides=strides, pads_begin=pads[0], pads_end=pads[1], dilations=dilation
        )
        if d.rng.random() < 0.5:
            node = b.Add(node, d.normal(1, groups * outs, 1, 1))
        return _inside(d.one(node, b.Relu(node), b.Clamp(node, min=0.0, max=6.0), b.Swish(node)))

    return draw


def _pool(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        kernel = [d.one(1, 2, 3, 5) for _ in "hw"]
        data, shape = _spatial(d, d.size(40), max(kernel))
        # a convolution before it, so that the planner lays the channels last
        data = b.Convolution(
            data, d.weights(d.size(40), shape[1], 1, 1), strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0],
            dilations=[1, 1],
        )  # fmt: skip
        options = {"strides": [d.one(1, 2) for _ in "hw"], "kernel": kernel}
        options |= {f"pads_{end}": [int(d.rng.integers(0, (k + 1) // 2)) for k in kernel] for end in ("begin", "end")}
        options["rounding_type"] = d.one("floor", "ceil")
        if type == "AvgPool":
            return _inside(b.AvgPool(data, **options, **{"exclude-pad": bool(d.rng.integers(2))}))
        return _inside(b.MaxPool(data, opset=1, **options))

    return draw


def _group_normalization(d: Draw) -> Node:
    groups = d.one(1, 2, 4)
    channels = groups * d.size(12)
    data, shape = _spatial(d, d.size(16), 1)
    data = b.Convolution(
        data, d.weights(channels, shape[1], 1, 1), strides=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilations=[1, 1]
    )
    return _inside(b.GroupNormalization(data, d.normal(channels), d.normal(channels), num_groups=groups, epsilon=1e-3))


def _along_rows(type: str) -> Callable[[Draw], Node]:
    def draw(d: Draw) -> Node:
        shape = [d.size(300 if axis == 0 else 12) for axis in range(d.rng.integers(1, 4))][::-1]
        x = d.input(*shape, dynamic=0 if type == "RMS" else 0.4)
        if type == "SoftMax":
            return b.SoftMax(x, opset=8, axis=-1)
        if type == "MVN":
            return b.MVN(x, [-1], normalize_variance=True, eps=1e-3, eps_mode=d.one("inside_sqrt", "outside_sqrt"))
        return b.RMS(x, d.normal(shape[-1]), epsilon=1e-3)

    return draw


def _fake_quantize(d: Draw) -> Node:
    x = d.input(*(d.size(40) for _ in range(d.rng.integers(1, 5))))
    low, high = sorted(d.normal(2, scale=3))
    ends = np.float32(low), np.float32(high + 0.5), np.float32(-1), np.float32(d.one(1.0, 254.0, -2.0))
    return b.FakeQuantize(x, *ends, levels=d.one(2, 16, 255, 256, 257, 65536))


def _attention(d: Draw) -> Node:
    lead = [d.size(3) for _ in range(d.rng.integers(1, 3))]
    queries, keys, depth, width = d.size(40), d.size(60), d.size(70), d.size(70)
    some = [d.input(*lead, *size) for size in ((queries, depth), (keys, depth), (keys, width))]
    if d.rng.random() < 0.4:
        return b.ScaledDotProductAttention(*some, causal=True)
    if d.rng.random() < 0.5:
        return b.ScaledDotProductAttention(*some, causal=False)
    mask = np.where(d.rng.random((queries, keys)) < 0.3, -np.inf, 0).astype(np.float32)
    mask[:, 0] = 0
    return b.ScaledDotProductAttention(*some, mask, causal=False)


def _outer(d: Draw) -> Node:
    lead, rows, columns = d.size(4), d.size(600, 200), d.size(512, 350)  # smaller ones are left to numpy
    return b.Multiply(d.input(lead, rows, 1), d.input(lead, 1, columns))


MODELS: Final[Mapping[str, Callable[[Draw], Node]]] = {
    **{type: _activation(type) for type in ("Erf", "Exp", "Gelu", "Sigmoid", "Swish", "Tanh")},
    **{type: _sequence(type) for type in ("GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence")},
    **{
        type: _convolution(type)
        for type in (
            "Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData"
        )
    },
    **{type: _pool(type) for type in ("AvgPool", "MaxPool")},
    **{type: _along_rows(type) for type in ("MVN", "RMS", "SoftMax")},
    "FakeQuantize": _fake_quantize,
    "GroupNormalization": _group_normalization,
    "MatMul": _product,
    "Multiply": _outer,
    "ScaledDotProductAttention": _attention,
}  # fmt: skip
"""What draws the model of a call, by the type of the operation whose compiled kernel it calls."""


# ---------------------------------------------------------------------------------------------
# calls


@dataclass(frozen=True)
class Call:
    """The results of one call."""

    type: str
    number: int
    layouts: tuple[str, ...]
    kernels: frozenset[str]
    """The compiled kernels that ran."""
    wrong: str
    """What differs, or nothing."""


@contextmanager
def _watched() -> Iterator[set[str]]:
    """Yield a set to which the names of the compiled kernels that Python calls are added."""
    ran: set[str] = set()
    plain = MachineCode._call

    def noted(self: MachineCode, arguments: tuple[Any, ...], place: int | None) -> int:
        ran.add(self.__name__)
        return plain(self, arguments, place)

    MachineCode._call = noted
    try:
        yield ran
    finally:
        MachineCode._call = plain


def call(type: str, seed: int, number: int) -> Call:
    """Make the call of this number, in default mode and in ``exact``."""
    rng = np.random.default_rng([seed, number, *type.encode()])
    draw = Draw(rng, special=rng.random() < 0.4)
    made = MODELS[type](draw)
    model = b.model(made)
    placed = [odd(numbers, rng) for numbers in draw.inputs]
    arrays = [array for _, array in placed]
    quick, exact = irrun.compile(model, exact=False), irrun.compile(model, exact=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"), _watched() as ran:
        warnings.simplefilter("ignore")
        results = quick(arrays)
        expected = exact([np.array(array, order="C") for array in arrays])
    outputs = range(len(model.results))
    found = (_difference(type, results[n], expected[n], draw.special) for n in outputs)
    wrong = next(filter(None, found), "")
    return Call(type, number, tuple(name for name, _ in placed), frozenset(ran), wrong)


def _difference(type: str, got: np.ndarray, expected: np.ndarray, special: bool) -> str:
    """Return what differs by more than rounding, or nothing."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape} is not {expected.dtype}{expected.shape}"
    finite = np.isfinite(expected)
    with np.errstate(all="ignore"):
        kinds = [np.where(np.isnan(a), 2, np.sign(a)) * ~np.isfinite(a) for a in (got, expected)]
        kinds = [np.nan_to_num(kind, nan=2) for kind in kinds]
    if (unlike := kinds[0] != kinds[1]).any():
        place = np.unravel_index(np.argmax(unlike), unlike.shape)
        return f"{got[place]} is not {expected[place]} at {tuple(map(int, place))}"
    if not finite.any():
        return ""
    a, c = got[finite].astype(np.float64), expected[finite].astype(np.float64)
    scale = np.abs(c).max()
    error = np.abs(a - c)
    if type == "FakeQuantize" and np.mean(error > 1e-5 * scale) < 0.01:
        return ""  # a number in the middle between two steps may become either
    worst = int(np.argmax(error))
    return f"{a[worst]} is not {c[worst]}, of {scale}" if error[worst] > 3e-5 * scale + 1e-37 else ""


def calls(types: Sequence[str], count: int, seed: int) -> Iterable[Call]:
    """Make ``count`` calls, of each type as many."""
    for number in range(-(-count // len(types))):
        for type in types:
            yield call(type, seed, number)


def main(arguments: Sequence[str] | None = None) -> int:
    from processor_forms import FORMS

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--calls", type=int, default=2000, help="how many calls to make (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="which calls (default: 0)")
    parser.add_argument("--form", choices=FORMS, default="native", help="the instruction set (default: native)")
    parser.add_argument("--threads", type=int, default=1, help="threads of a call (default: 1)")
    parser.add_argument("--only", choices=MODELS, action="append", help="make calls of this operation alone")
    parser.add_argument("--at", type=int, help="make the call of this number alone")
    options = parser.parse_args(arguments)
    settings = {**FORMS[options.form], "IRRUN_FAST": "always", "IRRUN_THREADS": str(options.threads)}
    if any(os.environ.get(name) != value for name, value in settings.items()):  # read when irrun is imported
        given = list(sys.argv[1:] if arguments is None else arguments)
        os.execve(sys.executable, [sys.executable, "-m", "tools", "kernel_calls", *given], os.environ | settings)
    types, start = options.only or list(MODELS), time.monotonic()
    made = (
        [call(types[0], options.seed, options.at)]
        if options.at is not None
        else calls(types, options.calls, options.seed)
    )
    counts: Counter[str] = Counter()
    compiled: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for one in made:
        counts[one.type] += 1
        compiled[one.type] += bool(one.kernels)
        if one.wrong:
            wrong[one.type] += 1
            print(
                f"{one.type} {one.number} ({', '.join(one.layouts)}; {', '.join(sorted(one.kernels))}): {one.wrong}",
                flush=True,
            )
    for type in types:
        print(f"{type:<30}{counts[type]:>8} calls {compiled[type]:>8} compiled {wrong[type]:>6} wrong")
    print(
        f"{counts.total()} calls, {wrong.total()} wrong, {time.monotonic() - start:.0f} s; {options.form}, {options.threads} threads"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
