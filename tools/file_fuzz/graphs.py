"""Random graphs, and inputs for several calls of each."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from file_fuzz.builder import FLOATS, INTEGERS, Builder, Tensor, number
from file_fuzz.layers import LAYERS
from irrun import build as b
from irrun.model import Model

__all__ = ["CALLS", "RandomGraph", "finished", "new_builder", "random_graph"]

CALLS: Final = "AAABBAC"
"""The dims of each call of a dynamic model, a letter for each set: they repeat, until a plan of their own is made."""
_TYPES: Final = (*(("f32",) * 5), "f16", "bf16", "f64", "i64", "i32", "u8", "boolean", "string")


@dataclass(frozen=True)
class RandomGraph:
    """A model, the inputs of each call, and the tolerance of each output."""

    model: Model
    feeds: list[list[np.ndarray]]
    tolerances: list[float]

    @property
    def is_stateful(self) -> bool:
        return any(layer.type == "ReadValue" for layer in self.model.layers.values())


def new_builder(seed: str, *, dynamic: bool = False) -> Builder:
    """Return an empty graph. The open dims of a dynamic one have the sizes that ``CALLS`` names."""
    rng = random.Random(seed)
    builder = Builder(rng, np.random.default_rng(rng.getrandbits(64)))
    if dynamic:
        least = rng.choice((0, 1, 1, 1, 2))
        sets = {letter: {name: rng.randrange(least, 7) for name in "nmk"} for letter in sorted(set(CALLS))}
        builder.sizes = [sets[letter] for letter in CALLS]
    return builder


def random_graph(seed: object, *, layers: int | None = None) -> RandomGraph:
    """Return a random graph of ``layers`` layers, by default of any number up to 12."""
    dice = random.Random(f"kind/{seed}")
    dynamic = dice.random() < 0.6
    g = new_builder(f"graph/{seed}", dynamic=dynamic)
    most = dice.randrange(1, 13)
    _parameters(g, dynamic)
    for _ in range(most if layers is None else min(most, layers)):
        before = len(g.tensors)
        for _ in range(20):  # not every layer suits the tensors that there are
            g.rng.choice(_ALL)(g)
            if len(g.tensors) > before:
                break
        g.tensors = [t for t in g.tensors if _size(g, t) <= _LARGEST]
    return finished(g)


_LARGEST: Final = 1 << 14
"""The most elements of a tensor that other layers may read."""


def _size(g: Builder, tensor: Tensor) -> int:
    """Return the most elements of a tensor, as far as its dims are numbers; open ones count 6."""
    size = 1
    for dim in tensor.dims:
        size *= dim if isinstance(dim, int) else 6 ** (dim.count("*") + 1)
    return size


def _parameters(g: Builder, dynamic: bool) -> None:
    for position in range(g.rng.choice((1, 1, 2, 3))):
        if position and g.rng.random() < 0.5:  # of the dims of the first, so that they meet
            dims = g.parameters[0][1]
        else:
            dims = tuple(g.rng.choice((1, 2, 3, 4, 5, 8)) for _ in range(g.rng.choice((0, 1, 2, 3, 3, 4, 4, 4))))
            if dynamic:
                dims = tuple(g.rng.choice("nmk") if g.rng.random() < 0.5 else d for d in dims)
        type = g.rng.choice(_TYPES)
        g.parameter(dims, type, rank=not (dynamic and g.rng.random() < 0.15))


def finished(g: Builder) -> RandomGraph:
    """Return the graph with all tensors that no layer reads as outputs, and a random selection of others."""
    ends = [t for t in g.tensors if g.rng.random() < 0.15] + g.tensors[-2:]
    unique = list({id(t): t for t in ends}.values())
    model = b.model(
        {f"out{n}": t.output if not hasattr(t.output, "output") else t.output.output for n, t in enumerate(unique)},
        inputs=[node for node, _, _ in g.parameters], sinks=g.sinks,
    )  # fmt: skip
    feeds = [
        [g.array([d if isinstance(d, int) else sizes[d] for d in dims], type, 2.0) for _, dims, type in g.parameters]
        for sizes in g.sizes
    ]
    return RandomGraph(model, feeds, [t.error for t in unique])


# ---------------------------------------------------------------------------------------------
# bodies and state


def _few(g: Builder, x: Tensor, output: Any, count: int) -> Tensor:
    """Return the output of a few element-wise layers on ``output``, a parameter of a body with the dims of ``x``."""
    inner = Builder(g.rng, g.numbers, tensors=[Tensor(output, x.dims, x.type, x.bound, x.error)])
    for _ in range(count):
        t = inner.tensors[-1]
        match g.rng.randrange(3):
            case 0:
                inner.add(b.Tanh(t.output), t.dims, t.type, 1, t.error, rounds=8)
            case 1:
                c = g.constant([], t.type)
                inner.add(b.Add(t.output, c.output), t.dims, t.type, t.bound + 1, t.error, rounds=2)
            case _:
                c = g.constant([], t.type)
                inner.add(b.Multiply(t.output, c.output), t.dims, t.type, t.bound, t.error, rounds=2)
    return inner.tensors[-1]


def _if(g: Builder) -> None:
    if not (x := g.pick(lambda t: t.type in FLOATS)):
        return
    y = g.pick(lambda t: t.type in INTEGERS and t.error == 0 and all(isinstance(d, int) and d for d in t.dims))
    condition: Any = b.constant(np.array(g.rng.random() < 0.5))
    if y is not None:
        flat = b.Reshape(y.output, g.ints(-1), special_zero=False)
        condition = b.Greater(b.ReduceMax(flat, [0], keep_dims=False), number(4, y.type))
    made: list[Tensor] = []

    def branch(output: Any) -> Any:
        made.append(_few(g, x, output, g.rng.randrange(1, 4)))
        return made[-1].output

    node = b.If(condition, x.output, then=branch, otherwise=branch)
    g.add(node[0], x.dims, x.type, max(t.bound for t in made), max(t.error for t in made), rounds=0)


def _loop(g: Builder) -> None:
    """Add a Loop or a TensorIterator over the first axis."""
    if not (
        x := g.pick(lambda t: t.type in FLOATS and t.rank >= 1 and isinstance(t.dims[0], int) and 0 < t.dims[0] < 9)
    ):
        return
    length = x.dims[0]
    assert isinstance(length, int)
    row = Tensor(None, (1, *x.dims[1:]), x.type, x.bound, x.error)
    start = b.constant(np.zeros((1,) * x.rank), x.type)
    made: list[Tensor] = []

    def step(part: Any, total: Any) -> list[Any]:
        new = _few(g, row, part, 2)
        made.append(new)
        sums = b.Multiply(b.Add(b.Tanh(total), new.output), number(0.5, x.type))
        return [sums, b.concatenated(new.output)]

    if any(isinstance(d, str) for d in x.dims[1:]):
        return
    begin = b.Broadcast(start, g.ints(1, *(d for d in x.dims[1:] if isinstance(d, int))))
    if g.rng.random() < 0.5:
        node = b.TensorIterator(b.sliced(x.output, axis=0), begin, body=step)
    else:
        true = b.constant(np.array(True))
        node = b.Loop(
            number(length, "i64"), true, b.sliced(x.output, axis=0), begin,
            body=lambda i, part, total: [b.constant(np.array(True)), *step(part, total)],
        )  # fmt: skip
    new = made[-1]
    eps = 2.0**-24 if x.type == "f32" else 2.0**-53 if x.type == "f64" else 2.0**-8
    g.add(node[0], row.dims, x.type, new.bound + 1, 2 * new.error + 8 * eps * (new.bound + 1), rounds=8)
    g.add(node[1], x.dims, x.type, new.bound, new.error, rounds=0)


def _state(g: Builder) -> None:
    """Add a variable that is read and set once in each run."""
    if g.sinks:
        return
    x = g.pick(lambda t: t.type == "f32" and t.rank >= 1 and all(isinstance(d, int) for d in t.dims))
    if x is None:
        return
    shape = ",".join(map(str, x.dims))
    start = g.constant([d for d in x.dims if isinstance(d, int)], "f32")
    read = b.ReadValue(start.output, variable_id="v", variable_type="f32", variable_shape=shape)
    mixed = b.Multiply(b.Add(b.Tanh(read), x.output), number(0.5, "f32"))
    g.sinks.append(b.Assign(mixed, variable_id="v"))
    g.add(mixed, x.dims, "f32", x.bound + 1, 2 * x.error + 1e-6 * (x.bound + 1), rounds=8)


_ALL: Final = (*LAYERS, _if, _loop, _state)
