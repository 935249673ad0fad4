"""Hypothesis strategies: shapes, pairs of shapes that broadcast, tensors of any element type, and small valid models.

Only this module of irrun needs hypothesis: ``pip install hypothesis``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from xml.sax.saxutils import quoteattr

import numpy as np

from irrun.diagnostics import Diagnostic, ModelError
from irrun.ir.parse import parse
from irrun.model import Model
from irrun.source import Source
from irrun.types import ELEMENT_TYPES, NF4, ElementType
from irrun.weights import Weights

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("irrun.testing.strategies needs hypothesis: pip install hypothesis") from error

__all__ = ["GeneratedModel", "broadcastable_shapes", "models", "shapes", "tensors"]

Dims = tuple[int, ...]
_T = TypeVar("_T")
Strategy = st.SearchStrategy


# ---------------------------------------------------------------------------------------------
# shapes and tensors


def shapes(min_rank: int = 0, max_rank: int = 4, min_dim: int = 0, max_dim: int = 5) -> Strategy[Dims]:
    """Return a strategy for shapes. They include the shape of a scalar, and empty shapes if ``min_dim`` is 0."""
    return st.lists(st.integers(min_dim, max_dim), min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def broadcastable_shapes(
    draw: st.DrawFn, min_rank: int = 0, max_rank: int = 4, min_dim: int = 0, max_dim: int = 5
) -> tuple[Dims, Dims]:
    """Return a strategy for pairs of shapes that numpy broadcasts to each other.

    Either shape may lack leading axes of the other, or have 1 where the other has another dim.
    """
    common = draw(shapes(min_rank, max_rank, min_dim, max_dim))
    return _blur(draw, common, min_rank), _blur(draw, common, min_rank)


def _blur(draw: st.DrawFn, dims: Dims, min_rank: int = 0) -> Dims:
    """Draw a shape that broadcasts to ``dims``: without some leading axes, and with some dims replaced by 1."""
    kept = dims[draw(st.integers(0, len(dims) - min(min_rank, len(dims)))) :]
    return tuple(1 if draw(st.booleans()) else d for d in kept)


def tensors(
    element_type: str | ElementType | Strategy[str] = "f32",
    shape: Sequence[int] | Strategy[Dims] | None = None,
    min_value: float | None = None,
    max_value: float | None = None,
    special: bool = False,
) -> Strategy[np.ndarray]:
    """Return a strategy for arrays of an element type (``"bf16"``, ``"i4"``, ``"string"`` …).

    ``element_type`` and ``shape`` may be strategies; without ``shape``, the arrays have any of ``shapes()``. All values
    of the type within the bounds may occur. NaN and infinities occur only if ``special`` is true and there are no
    bounds. Raises ValueError for the dynamic type.
    """
    if isinstance(element_type, st.SearchStrategy):
        return element_type.flatmap(lambda name: tensors(name, shape, min_value, max_value, special))
    own = element_type if isinstance(element_type, ElementType) else ELEMENT_TYPES[element_type]
    dims = shapes() if shape is None else shape if isinstance(shape, st.SearchStrategy) else st.just(tuple(shape))
    if own.kind == "dynamic":
        raise ValueError("an array has a type")
    if own.kind == "string":
        words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
        return dims.flatmap(lambda d: st.lists(words, min_size=math.prod(d), max_size=math.prod(d)).map(_words(d)))
    elements = _elements(own, min_value, max_value, special)
    plain = own.dtype
    if plain.isbuiltin == 2:  # of ml_dtypes: draw in a numpy type that holds all of its values, then convert
        plain = np.dtype(np.float32 if own.kind == "float" else np.int8 if own.kind == "int" else np.uint8)
    return dims.flatmap(lambda d: hnp.arrays(plain, d, elements=elements)).map(_cast(own.dtype))


def _words(dims: Dims) -> Callable[[list[str]], np.ndarray]:
    return lambda words: np.array(words, np.str_).reshape(dims)


def _cast(dtype: np.dtype) -> Callable[[np.ndarray], np.ndarray]:
    return lambda array: array.astype(dtype, copy=False)


def _elements(own: ElementType, least: float | None, most: float | None, special: bool) -> Strategy[Any]:
    """Return a strategy for single elements: Python numbers or booleans."""
    if own.kind == "boolean":
        return st.booleans()
    if own.is_integer:
        top = (1 << (own.bits - (own.kind == "int"))) - 1
        bottom = -top - 1 if own.kind == "int" else 0
        return st.integers(
            bottom if least is None else max(math.ceil(least), bottom),
            top if most is None else min(math.floor(most), top),
        )
    if own.bits in (16, 32, 64) and own.name != "bf16":
        within = {
            "min_value": None if least is None else float(own.dtype.type(least)),
            "max_value": None if most is None else float(own.dtype.type(most)),
        }
        special = special and least is None and most is None
        return st.floats(**within, width=own.bits, allow_nan=special, allow_infinity=special)  # type: ignore[arg-type]
    if own.name == "nf4":
        codes = NF4
    else:
        codes = np.arange(1 << own.bits).astype(np.uint16 if own.bits == 16 else np.uint8).view(own.dtype)
        codes = codes.astype(np.float32)
    finite = codes[np.isfinite(codes)]
    allowed = finite[(finite >= (-np.inf if least is None else least)) & (finite <= (np.inf if most is None else most))]
    # the simplest values first, because hypothesis shrinks a failing example towards the first
    known = st.sampled_from(sorted(allowed.tolist(), key=lambda x: (abs(x), x < 0)))
    others = codes[~np.isfinite(codes)].tolist() if special and least is None and most is None else []
    return known | st.sampled_from(others) if others else known


# ---------------------------------------------------------------------------------------------
# models


@dataclass(frozen=True, repr=False)
class GeneratedModel:
    """A generated IR as text and bytes, inputs for it, and the shapes and types that its outputs must have.

    ``declared`` holds the output shapes as the file declares them (None for an open dim). ``shapes`` holds the output
    shapes of a run on the inputs in ``feeds``, and ``types`` the element types of the outputs.
    """

    xml: str
    bin: bytes
    feeds: Mapping[str, np.ndarray]
    declared: tuple[tuple[int | None, ...], ...]
    shapes: tuple[Dims, ...]
    types: tuple[str, ...]

    def __repr__(self) -> str:
        layers = re.findall(r'<layer id="\d+" name="([^"]*)" type="(?!Const|Result)', self.xml)
        feeds = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in self.feeds.items())
        return f"GeneratedModel({feeds}: {' '.join(layers[len(self.feeds) :])})"

    def read(self) -> Model:
        """Return the model, for irrun.check, irrun.compile and irrun.run."""
        parsed = parse(Source("generated.xml", self.xml.encode()), Weights(data=self.bin))
        errors: list[Diagnostic] = [p for p in parsed.problems if p.severity == "error"]
        if errors:
            raise ModelError(errors)
        return parsed.model

    def save(self, folder: str | Path, name: str = "generated") -> Path:
        """Write ``name.xml`` and ``name.bin`` to ``folder``, and return the path of the ``.xml``."""
        path = Path(folder) / f"{name}.xml"
        path.write_text(self.xml, "utf-8")
        path.with_suffix(".bin").write_bytes(self.bin)
        return path


@dataclass(frozen=True)
class _Tensor:
    """An output of a layer: its dims for the generated inputs, and which of them the file leaves open."""

    layer: int
    port: int
    type: str
    dims: Dims
    open: tuple[bool, ...]

    @property
    def declared(self) -> tuple[int | None, ...]:
        return tuple(None if o else d for d, o in zip(self.dims, self.open))


_PRECISIONS = {"f32": "FP32", "f16": "FP16", "f64": "FP64", "boolean": "BOOL"}
_FLOATS, _NUMBERS = ("f32", "f16", "f64"), ("f32", "f16", "f64", "i32", "i64", "u8")


@dataclass
class _Builder:
    """Writes layers, and records the dims of each output according to numpy's rules."""

    draw: st.DrawFn
    rng: np.random.Generator
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    bin: bytearray = field(default_factory=bytearray)
    tensors: list[_Tensor] = field(default_factory=list)
    """The outputs that later layers may read. Large ones are left out, because their consumers may be larger still."""
    made: list[_Tensor] = field(default_factory=list)
    """The outputs of all layers that ``add`` has written, large ones included."""
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    read: set[tuple[int, int]] = field(default_factory=set)

    def pick(self, options: Sequence[_T]) -> _T:
        return self.draw(st.sampled_from(options))

    def integer(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def flag(self) -> bool:
        return self.draw(st.booleans())

    # -- writing

    def layer(
        self,
        type: str,
        inputs: Sequence[_Tensor],
        *outputs: tuple[str, Dims, tuple[bool, ...]],
        opset: int = 1,
        **attributes: Any,
    ) -> list[_Tensor]:
        """Write a layer and its edges, and return its outputs. ``outputs`` are (type, dims, open) for each output."""
        id, port = len(self.layers), len(inputs)
        name = f"{type.lower()}{id}"
        lines = [f'<layer id="{id}" name={quoteattr(name)} type={quoteattr(type)} version="opset{opset}">']
        if attributes:
            data = " ".join(f"{k.rstrip('_')}={quoteattr(_text(v))}" for k, v in attributes.items())
            lines.append(f"<data {data}/>")
        made = [_Tensor(id, port + i, *output) for i, output in enumerate(outputs)]
        for tag, ports in (("input", inputs), ("output", made)):
            if ports:
                lines.append(f"<{tag}>")
                first = 0 if tag == "input" else port
                for number, tensor in enumerate(ports, first):
                    names = f' names="{name}.{number}"' if tag == "output" else ""
                    precision = _PRECISIONS.get(tensor.type, tensor.type.upper())
                    lines.append(f'<port id="{number}" precision="{precision}"{names}>')
                    lines += [f"<dim>{-1 if d is None else d}</dim>" for d in tensor.declared]
                    lines.append("</port>")
                lines.append(f"</{tag}>")
        self.layers.append("\n".join([*lines, "</layer>"]))
        for number, tensor in enumerate(inputs):
            self.read.add((tensor.layer, tensor.port))
            self.edges.append(
                f'<edge from-layer="{tensor.layer}" from-port="{tensor.port}" to-layer="{id}" to-port="{number}"/>'
            )
        return made

    def add(self, type: str, inputs: Sequence[_Tensor], *outputs: Any, opset: int = 1, **attributes: Any) -> None:
        """Write a layer whose outputs later layers may read."""
        made = self.layer(type, inputs, *outputs, opset=opset, **attributes)
        self.made += made
        self.tensors += [t for t in made if math.prod(t.dims) <= 4096 and len(t.dims) <= 6]

    def const(self, array: np.ndarray) -> _Tensor:
        """Write a Const, and its array to the .bin at a multiple of 8 bytes."""
        own = ElementType.of(array.dtype)
        assert own is not None
        raw = array.tobytes()
        output = (own.name, array.shape, (False,) * array.ndim)
        self.bin += b"\0" * (-len(self.bin) % 8)
        (made,) = self.layer(
            "Const", [], output, element_type=own.name, shape=array.shape, offset=len(self.bin), size=len(raw)
        )
        self.bin += raw
        return made

    def ints(self, *numbers: int) -> _Tensor:
        return self.const(np.array(numbers, np.int64))

    def values(self, type: str, dims: Dims) -> np.ndarray:
        """Return random numbers of an element type, small enough that the layers do not overflow."""
        dtype = ELEMENT_TYPES[type].dtype
        if type == "boolean":
            return self.rng.random(dims) < 0.5
        if dtype.kind in "iu":
            return self.rng.integers(1, 5, dims).astype(dtype)
        return (self.rng.random(dims) * 2 - 1).astype(dtype)

    def parameter(self, dynamic: bool) -> None:
        """Write a Parameter and add an array for it to ``feeds``. Some of its dims are open if ``dynamic``."""
        type = self.pick(("f32", "f32", "f32", *_NUMBERS, "boolean"))
        dims = self.draw(shapes(self.pick((3, 2, 0)), 4, min_dim=1))
        open = tuple(dynamic and self.flag() for _ in dims)
        shape = ",".join(self.dim(d) if o else str(d) for d, o in zip(dims, open))
        self.feeds[f"parameter{len(self.layers)}"] = self.values(type, dims)
        self.add("Parameter", [], (type, dims, open), element_type=type, shape=shape)

    def dim(self, actual: int) -> str:
        """Draw the text of an open dim that allows ``actual``: any size, or a range."""
        return self.pick(("?", f"{max(actual - 1, 0)}..{actual + 2}", f"..{actual}", f"{actual}.."))

    # -- choosing

    def tensor(self, types: Sequence[str] = (), min_rank: int = 0, max_rank: int = 9) -> _Tensor | None:
        """Draw an earlier output of one of these types (none given: any type) and ranks; None if there is none."""
        fit = [t for t in self.tensors if (not types or t.type in types) and min_rank <= len(t.dims) <= max_rank]
        return self.pick(fit) if fit else None

    def fixed(self, tensor: _Tensor) -> bool:
        return not any(tensor.open)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


# Each of the following functions adds one layer and the constants that it reads, or nothing if no tensor suits it.


def _unary(b: _Builder) -> None:
    old, newer = ("ReLU", "Tanh", "Sigmoid", "Sin", "Floor"), ("HSwish", "SoftPlus", "Mish")
    type = b.pick(old + newer)
    if x := b.tensor(_FLOATS):
        b.add(type, [x], (x.type, x.dims, x.open), opset=1 if type in old else 4)


def _clamp(b: _Builder) -> None:
    if x := b.tensor(_NUMBERS):
        b.add("Clamp", [x], (x.type, x.dims, x.open), min=0, max=b.integer(1, 9))


def _binary(b: _Builder) -> None:
    """Add a binary operation on a tensor and either a constant or another tensor that broadcasts with it."""
    if not (x := b.tensor(_NUMBERS)):
        return
    others = [t for t in b.tensors if t.type == x.type and _broadcast(x, t)]
    if b.flag() and others:
        y = b.pick(others)
    else:
        dims = _blur(b.draw, tuple(1 if o else d for d, o in zip(x.dims, x.open)))
        y = b.const(b.values(x.type, dims))
    pair = (x, y) if b.flag() else (y, x)
    out = _broadcast(x, y)
    assert out is not None
    kind = b.pick(("Add", "Multiply", "Maximum", "Minimum", "Subtract", "Less", "Equal", "GreaterEqual"))
    if kind == "Subtract" and x.type == "u8":
        kind = "Add"
    type = "boolean" if kind in ("Less", "Equal", "GreaterEqual") else x.type
    b.add(kind, pair, (type, *out), auto_broadcast="numpy")


def _broadcast(x: _Tensor, y: _Tensor) -> tuple[Dims, tuple[bool, ...]] | None:
    """Return the dims of the broadcast result and which of them are open; None if the tensors do not broadcast."""
    rank = max(len(x.dims), len(y.dims))
    dims: list[int] = []
    open: list[bool] = []
    for axis in range(-rank, 0):
        (a, p), (c, q) = ((t.dims[axis], t.open[axis]) if -axis <= len(t.dims) else (1, False) for t in (x, y))
        if a != c and 1 not in (a, c):
            return None
        dims.append(c if a == 1 else a)
        # a fixed dim above 1 fixes the result; a fixed dim of 1 leaves it open
        fixed = [d for d, o in ((a, p), (c, q)) if not o and d > 1]
        open.append((p or q) and not fixed)
    return tuple(dims), tuple(open)


def _logical(b: _Builder) -> None:
    if x := b.tensor(("boolean",)):
        b.add("LogicalNot", [x], (x.type, x.dims, x.open))


def _convert(b: _Builder) -> None:
    if x := b.tensor():
        to = b.pick(("f32", "f16", "i64", "boolean"))
        b.add("Convert", [x], (to, x.dims, x.open), destination_type=to)


def _reshape(b: _Builder) -> None:
    """Add a Reshape that copies leading dims by 0 and merges the rest by -1."""
    if not (x := b.tensor(min_rank=1)):
        return
    rank = len(x.dims)
    cut = b.integer(0, rank - 1)
    # 0 copies each dim before the cut, -1 merges the rest into one dim
    dims, open = (*x.dims[:cut], math.prod(x.dims[cut:])), (*x.open[:cut], any(x.open[cut:]))
    b.add("Reshape", [x, b.ints(*[0] * cut, -1)], (x.type, dims, open), special_zero=True)


def _split_dim(b: _Builder) -> None:
    """Add a Reshape to explicit dims, for a tensor without open dims."""
    fit = [t for t in b.tensors if b.fixed(t)]
    if fit:
        x = b.pick(fit)
        count, dims = math.prod(x.dims), []
        while count > 1 and len(dims) < 3:
            dims.append(b.pick([d for d in range(1, count + 1) if count % d == 0]))
            count //= dims[-1]
        dims.append(count)
        b.add("Reshape", [x, b.ints(*dims)], (x.type, tuple(dims), (False,) * len(dims)), special_zero=b.flag())


def _transpose(b: _Builder) -> None:
    if x := b.tensor(min_rank=1):
        order = b.draw(st.permutations(range(len(x.dims))))
        b.add(
            "Transpose", [x, b.ints(*order)], (x.type, tuple(x.dims[i] for i in order), tuple(x.open[i] for i in order))
        )


def _unsqueeze(b: _Builder) -> None:
    if x := b.tensor(max_rank=4):
        axis = b.integer(0, len(x.dims))
        dims, open = (*x.dims[:axis], 1, *x.dims[axis:]), (*x.open[:axis], False, *x.open[axis:])
        b.add("Unsqueeze", [x, b.ints(axis if b.flag() else axis - len(x.dims) - 1)], (x.type, dims, open))


def _squeeze(b: _Builder) -> None:
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d == 1 and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        dims, open = x.dims[:axis] + x.dims[axis + 1 :], x.open[:axis] + x.open[axis + 1 :]
        b.add("Squeeze", [x, b.ints(axis)], (x.type, dims, open))


def _concat(b: _Builder) -> None:
    if not (x := b.tensor(min_rank=1)):
        return
    axis = b.integer(0, len(x.dims) - 1)
    fit = [t for t in b.tensors if t.type == x.type and _but(t, axis) == _but(x, axis)]
    parts = [b.pick(fit) for _ in range(b.integer(1, 2))]
    dims = (*x.dims[:axis], x.dims[axis] + sum(t.dims[axis] for t in parts), *x.dims[axis + 1 :])
    among = [x, *parts]
    # on the other axes, a dim is known if it is known in any part
    open = tuple(
        any(t.open[i] for t in among) if i == axis else all(t.open[i] for t in among) for i in range(len(x.dims))
    )
    b.add("Concat", among, (x.type, dims, open), axis=axis if b.flag() else axis - len(x.dims))


def _but(tensor: _Tensor, axis: int) -> tuple[Dims, Dims] | None:
    """Return the dims before and after an axis; None if the tensor does not have that axis."""
    return (tensor.dims[:axis], tensor.dims[axis + 1 :]) if axis < len(tensor.dims) else None


def _split(b: _Builder) -> None:
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d % 2 == 0 and d and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        dims = (*x.dims[:axis], x.dims[axis] // 2, *x.dims[axis + 1 :])
        b.add("Split", [x, b.const(np.array(axis, np.int64))], *[(x.type, dims, x.open)] * 2, num_splits=2)


def _reduce(b: _Builder) -> None:
    kind = b.pick(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"))
    if x := b.tensor(_FLOATS if kind == "ReduceMean" else _NUMBERS, min_rank=1):
        axes = sorted(b.draw(st.sets(st.integers(0, len(x.dims) - 1), min_size=1)))
        keep = b.flag()
        kept = [
            (1, False) if i in axes else (x.dims[i], x.open[i]) for i in range(len(x.dims)) if keep or i not in axes
        ]
        b.add(kind, [x, b.ints(*axes)], (x.type, tuple(d for d, _ in kept), tuple(o for _, o in kept)), keep_dims=keep)


def _matmul(b: _Builder) -> None:
    """Add a MatMul with a constant matrix on the right. Either operand may be transposed."""
    fit = [t for t in b.tensors if t.type in _FLOATS and len(t.dims) >= 2]
    if not fit:
        return
    x = b.pick(fit)
    a, c = b.flag(), b.flag()
    row, inner = (-1, -2) if a else (-2, -1)
    if x.open[inner]:
        return
    columns, depth = b.integer(1, 4), x.dims[inner]
    w = b.const(b.values(x.type, (columns, depth) if c else (depth, columns)))
    dims, open = (*x.dims[:-2], x.dims[row], columns), (*x.open[:-2], x.open[row], False)
    b.add("MatMul", [x, w], (x.type, dims, open), transpose_a=a, transpose_b=c)


def _images(b: _Builder) -> list[_Tensor]:
    """Return the tensors for a convolution or pooling: batch, channels (known), and one or two spatial dims."""
    return [t for t in b.tensors if t.type in ("f32", "f16") and len(t.dims) in (3, 4) and not t.open[1]]


def _windows(b: _Builder, x: _Tensor) -> tuple[Dims, Dims, Dims, Dims, Dims]:
    """Draw kernel, strides and both pads for the spatial axes of ``x``. Return them and the output's spatial dims."""
    space = x.dims[2:]
    begin, end = (tuple(b.integer(0, 1) for _ in space) for _ in range(2))
    kernel = tuple(b.integer(1, min(3, d + p + q)) for d, p, q in zip(space, begin, end))
    strides = tuple(b.integer(1, 2) for _ in space)
    # with a pad as wide as the kernel, a window could hold nothing but padding
    begin, end = (tuple(min(p, k - 1) for p, k in zip(pads, kernel)) for pads in (begin, end))
    out = tuple((d + p + q - k) // s + 1 for d, p, q, k, s in zip(space, begin, end, kernel, strides))
    return kernel, strides, begin, end, out


def _convolution(b: _Builder) -> None:
    if fit := _images(b):
        x = b.pick(fit)
        kernel, strides, begin, end, out = _windows(b, x)
        into = b.integer(1, 3)
        w = b.const(b.values(x.type, (into, x.dims[1], *kernel)))
        b.add(
            "Convolution", [x, w], (x.type, (x.dims[0], into, *out), (x.open[0], False, *x.open[2:])),
            strides=strides, dilations=(1,) * len(out), pads_begin=begin, pads_end=end, auto_pad="explicit",
        )  # fmt: skip


def _pool(b: _Builder) -> None:
    if fit := _images(b):
        x = b.pick(fit)
        kernel, strides, begin, end, out = _windows(b, x)
        more = {"exclude-pad": b.flag()} if (average := b.flag()) else {}
        b.add(
            "AvgPool" if average else "MaxPool", [x], (x.type, (*x.dims[:2], *out), x.open),
            kernel=kernel, strides=strides, pads_begin=begin, pads_end=end, rounding_type="floor",
            auto_pad="explicit", **more,
        )  # fmt: skip


def _softmax(b: _Builder) -> None:
    if x := b.tensor(_FLOATS, min_rank=1):
        rank = len(x.dims)
        b.add("SoftMax", [x], (x.type, x.dims, x.open), opset=8, axis=b.integer(-rank, rank - 1))


def _gather(b: _Builder) -> None:
    """Add a Gather with constant indices, some of which may be negative."""
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        indices = b.rng.integers(-x.dims[axis], x.dims[axis], b.draw(shapes(max_rank=2, min_dim=1, max_dim=3)))
        index = b.const(np.asarray(indices, np.int64))
        dims = (*x.dims[:axis], *index.dims, *x.dims[axis + 1 :])
        open = (*x.open[:axis], *index.open, *x.open[axis + 1 :])
        b.add("Gather", [x, index, b.const(np.array(axis, np.int64))], (x.type, dims, open), opset=8, batch_dims=0)


def _slice(b: _Builder) -> None:
    fit = [(t, a) for t in b.tensors for a, d in enumerate(t.dims) if d > 1 and not t.open[a]]
    if fit:
        x, axis = b.pick(fit)
        size = x.dims[axis]
        start = b.integer(0, size - 1)
        stop, step = b.integer(start + 1, size), b.integer(1, 2)
        dims = (*x.dims[:axis], len(range(start, stop, step)), *x.dims[axis + 1 :])
        bounds = [b.ints(n) for n in (start, stop, step, axis)]
        b.add("Slice", [x, *bounds], (x.type, dims, x.open), opset=8)


def _pad(b: _Builder) -> None:
    if x := b.tensor(_NUMBERS, min_rank=1):
        begin, end = (tuple(b.integer(0, 2) for _ in x.dims) for _ in range(2))
        dims = tuple(d + p + q for d, p, q in zip(x.dims, begin, end))
        value = b.const(b.values(x.type, ()))
        b.add("Pad", [x, b.ints(*begin), b.ints(*end), value], (x.type, dims, x.open), pad_mode="constant")


def _tile(b: _Builder) -> None:
    if x := b.tensor(min_rank=1):
        repeats = tuple(b.integer(1, 2) for _ in x.dims)
        b.add("Tile", [x, b.ints(*repeats)], (x.type, tuple(d * r for d, r in zip(x.dims, repeats)), x.open))


def _shape_of(b: _Builder) -> None:
    if x := b.tensor(min_rank=1):
        b.add("ShapeOf", [x], ("i64", (len(x.dims),), (False,)), opset=3, output_type="i64")


def _reshape_by(b: _Builder) -> None:
    """Add a Reshape of a tensor to its own ShapeOf. If dims are open, the target is known only at run time."""
    if x := b.tensor(min_rank=1):
        (shape,) = b.layer("ShapeOf", [x], ("i64", (len(x.dims),), (False,)), opset=3, output_type="i64")
        b.add("Reshape", [x, shape], (x.type, x.dims, x.open), special_zero=False)


def _select(b: _Builder) -> None:
    if x := b.tensor(_NUMBERS):
        fit = [t for t in b.tensors if t.type == "boolean" and (t.dims, t.open) == (x.dims, x.open)]
        if fit:
            other = b.const(b.values(x.type, ()))
            b.add("Select", [b.pick(fit), x, other], (x.type, x.dims, x.open), auto_broadcast="numpy")


_LAYERS = (
    _unary, _binary, _clamp, _logical, _convert, _reshape, _split_dim, _transpose, _unsqueeze, _squeeze, _concat,
    _split, _reduce, _matmul, _convolution, _pool, _softmax, _gather, _slice, _pad, _tile, _shape_of, _reshape_by,
    _select,
)  # fmt: skip


@st.composite
def models(draw: st.DrawFn, min_layers: int = 1, max_layers: int = 8, dynamic: bool | None = None) -> GeneratedModel:
    """Return a strategy for small valid models of several layers, each with inputs for a run.

    ``dynamic`` leaves some dims of the inputs open; None does so in some of the models. All declared dims are correct.
    """
    open = draw(st.booleans()) if dynamic is None else dynamic
    builder = _Builder(draw, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    for _ in range(draw(st.integers(1, 2))):
        builder.parameter(open)
    for _ in range(draw(st.integers(min_layers, max_layers))):
        count, first = len(builder.made), draw(st.integers(0, len(_LAYERS) - 1))
        for add in _LAYERS[first:] + _LAYERS[:first]:
            add(builder)
            if len(builder.made) > count:
                break
    ends = [t for t in builder.made if (t.layer, t.port) not in builder.read]
    for tensor in ends:
        builder.layer("Result", [tensor])
    layers, edges = "\n".join(builder.layers), "\n".join(builder.edges)
    return GeneratedModel(
        xml=f'<?xml version="1.0"?>\n<net name="generated" version="11">\n<layers>\n{layers}\n</layers>\n'
        f"<edges>\n{edges}\n</edges>\n</net>\n",
        bin=bytes(builder.bin),
        feeds=builder.feeds,
        declared=tuple(t.declared for t in ends),
        shapes=tuple(t.dims for t in ends),
        types=tuple(t.type for t in ends),
    )
