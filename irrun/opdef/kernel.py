"""Kernels: what the planner requests for one layer, and the function that an operation returns to compute it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args

import numpy as np

from irrun.opdef.values import Value

__all__ = [
    "FEW_ROWS",
    "LEAST_ROUNDED",
    "PRECISIONS",
    "AxisRole",
    "Begin",
    "Call",
    "Calls",
    "Change",
    "Epilogue",
    "Formula",
    "Index",
    "Joins",
    "Kernel",
    "OnTileReady",
    "Operands",
    "Packing",
    "Precision",
    "Request",
    "ignore_tile",
]

Index = tuple[slice, ...]
"""A part of an array: a slice for each axis."""

OnTileReady = Callable[[Index], object]
"""A callback with the index of a tile of ``out`` that is complete. The thread that computed the tile calls it."""


def ignore_tile(index: Index) -> None:
    """Do nothing: the ``OnTileReady`` where no step is fused with the kernel."""


Operands = Literal["f32", "bf16", "i8", "codes", "split"]
"""The precision to which the operands of products are rounded. ``i8`` is that of what integer codes multiply. ``codes``
is bf16 for a matrix of integer codes and what it is multiplied by, but f32 with fewer than ``LEAST_ROUNDED`` rows.
``split`` is f32, but each operand may become the sum of two numbers of bf16."""
LEAST_ROUNDED: Final = 4
"""The fewest rows for which tiles pay, which multiply bf16, because codes are unpacked for them."""
Precision = Literal["f32", "bf16", "int8-activations", "auto"]
"""A precision that a user may ask for. ``auto`` stands for those for which the processor is made."""
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)


@dataclass(frozen=True, slots=True)
class Request:
    """What the planner knows of a layer when it requests a kernel from ``Op.prepare``."""

    inputs: tuple[Value | None, ...]
    """What is known of each input, in port order; None for an absent optional one. The ``data`` of a constant input
    is its array. Shapes are those of the specification, also with ``channels_last``."""
    outputs: int = 1
    """How many outputs, counted from the first, have a consumer. A kernel may leave out the outputs after them."""
    channels_last: bool = False
    """Whether the kernel reads and writes values of rank 4 in channels-last layout: (batch, rows, columns, channels).
    All shapes are then static. Only operations that declare ``Op.channels_last`` get such a request."""
    precision: Operands = "f32"
    """The precision to which the kernel rounds the inputs of ``Op.rounded``. Results are f32. Only compiled kernels are
    asked for another one than f32: for others, the planner rounds the inputs."""
    unpacks: bool = True
    """Whether the kernel may hold ``Value.stored`` of an input as f32. Otherwise, each call unpacks parts of it."""

    def first(self, count: int) -> tuple[Value | None, ...]:
        """Return the first ``count`` inputs, with None in place of those that the layer does not have."""
        return (*self.inputs, *(None,) * count)[:count]


Formula = tuple[str, *tuple[float, ...]]
"""What an element-wise kernel computes, where another kernel may compute it in its own pass: ``("add",)``,
``("multiply",)``, ``("add rounded", number)``, which rounds the input of this number to bf16, or ``("clamp", least,
greatest)``, in which NaN stays."""


class Call(NamedTuple):
    """A call of machine code, ``function(*arguments, first, last)``, which computes a part of ``range(size)``."""

    function: Callable[..., object]
    arguments: tuple[Any, ...]
    size: int
    """The rows of a matrix, or its columns if it has less than ``FEW_ROWS``."""
    unit: int = 1
    """Each part begins at a multiple of this number."""
    each: int = 2
    """The parts for each of several threads, where calls are done in turn. With two, a thread that is late takes fewer.
    With one, what each part reads anew, such as filters, is read less often."""


Calls = Sequence[Call]
"""Such calls, in turn."""
FEW_ROWS: Final = 64
"""A matrix with fewer rows has few: threads share the columns of a product, not its rows."""


class Change(Protocol):
    """Changes an array in place, each element for itself."""

    def __call__(self, x: np.ndarray, /) -> None:
        """Change an array. Its rows are contiguous."""
        ...

    def calls(self, x: np.ndarray, /) -> Calls:
        """Return the calls that change a matrix whose rows are contiguous."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Epilogue:
    """What a kernel computes of its results while they are in the cache:
    ``change(clamp(result + bias + residual))``."""

    bias: np.ndarray | None = None
    """A number for each element of an axis (``Joins.bias_axis``), f32 [n]."""
    residual: bool = False
    """Whether the last input of the kernel, which has the shape of its output, is added."""
    limits: tuple[float, float] | None = None
    """The least and the greatest result."""
    change: Change | None = None
    """Changes a part of the results."""
    rounds: bool = False
    """Whether the residual is rounded to bf16 first."""
    row: bool = False
    """Whether the residual is a single row, which is added to each: see ``Joins.adds_rows``."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The constant inputs that a kernel holds in a form of its own, such as a matrix in panels, and that form."""

    inputs: tuple[int, ...] = ()
    """The numbers of the inputs whose contents ``Kernel.call`` does not read, because the kernel holds them."""
    bytes: int = 0
    """The bytes of the form; 0 if it is the memory-mapped .bin itself."""
    create: Callable[[], object] | None = None
    """Creates the form before the first call; None if the kernel holds it already."""


@dataclass(frozen=True, slots=True)
class Begin:
    """What a kernel does in each run before its calls, with variables of the model to which the calls append.

    ``first`` takes what ``Kernel.call`` does, and ``spare``, where it leaves what the calls need to know. It returns
    arrays that live as long as the calls, or None if only ``Kernel.call`` gives the results.

    ``again`` does the same for n kernels at once, after an earlier run has called ``first`` for each. The kernels read
    the same arrays at the inputs ``reads``, and each has its own ``variables``, which are now ``length`` long.
    ``again`` takes the inputs of one kernel, and the ``spare`` memory of all, u8 [n, ``spare_bytes``].
    """

    first: Callable[..., tuple[np.ndarray, ...] | None]
    again: Callable[..., tuple[np.ndarray, ...] | None]
    variables: tuple[str, ...]
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Joins:
    """How the planner may join a kernel with the kernels around it. By default, it may not."""

    formula: Formula | None = None
    """What an ``elementwise`` kernel computes, if that has a formula."""
    change: Change | None = None
    """The in-place form of a unary ``elementwise`` kernel."""
    row_calls: Callable[..., Calls] | None = None
    """Returns the calls that compute the output, if each row depends on the same row of ``row_inputs`` alone.

    It takes these inputs in port order (None for the others), and ``out``; all are matrices with contiguous rows. An
    ``elementwise`` kernel also takes arrays of one axis, which are the same for each row. All other arrays of the calls
    live as long as the kernel, so that the calls may be done again.
    """
    row_inputs: tuple[int, ...] = ()
    """The numbers of the inputs that ``row_calls`` reads."""
    calls: Callable[..., Calls] | None = None
    """Returns the calls that fill ``out``, if these are all that ``Kernel.call`` does.

    It takes what ``Kernel.call`` does, and ``spare``, u8 with ``spare_bytes``; ``out`` is contiguous. The calls are
    always as many. Arrays that the kernel does not hold live as long as the calls.
    """
    reads_view: Callable[[int, np.ndarray], bool] | None = None
    """Whether ``calls`` reads a view at the input of a number in place; an array is passed with the strides of it."""
    spare_bytes: int = 0
    """Bytes of memory that the kernel, or ``calls``, needs besides ``out``, at a multiple of 64."""
    checked: bool = False
    """Whether the calls may fail. The first i64 of ``spare``, which is 0 before them, then is not 0 after them, and
    only ``Kernel.call`` gives the results."""
    begin: Begin | None = None
    """What each run does before ``calls``, which then need not be prepared again for inputs of unknown shapes."""
    with_epilogue: Callable[[Epilogue], Kernel] | None = None
    """Returns a kernel that also computes an epilogue. A residual is an input after those of this kernel."""
    bias_axis: int = -1
    """The axis along which the bias of an epilogue lies."""
    adds_rows: bool = False
    """Whether the residual of an epilogue may be [1, ..., 1, n], with the numbers of the last axis of the output."""
    chain: Callable[[Kernel, Kernel], Kernel | None] | None = None
    """Returns one kernel for a kernel and the next one, which reads its result and has the same ``chain``.

    Its inputs are the first kernel's, then the second's except the value passed between them. It is None if a chain
    would not pay off.
    """
    channels_last: Kernel | None = None
    """The kernel with channels last in the memory of its result. This kernel returns a view of such a result."""
    in_parts: Callable[[Sequence[int]], Kernel | None] | None = None
    """Returns the kernel that reads its first input in two parts, which a Concat would join along the last axis.

    It takes the sizes of their last axes. The parts are its first inputs, and the others follow. None for other sizes.
    """
    by_heads: bool = False
    """Whether ``out`` may be a view [batch, heads, rows, columns] of an array [batch, rows, heads, columns]."""
    stages: tuple[Any, ...] = ()
    """What ``chain`` needs to know. A kernel without stages is in no chain."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How one layer is computed, chosen when its model is compiled.

    ``call`` takes the input arrays in port order (None for an absent optional one) and returns an array or a tuple.
    """

    call: Callable[..., Any]
    algorithm: str = ""
    """The name of the algorithm, where an operation has several: a word or two, as the profile shows them."""
    out: Literal["new", "whole", "tiles", "elementwise"] = "new"
    """Which memory ``call`` fills. ``out`` and ``on_tile_ready`` are passed only where all shapes are static.
    ``tiles`` and ``elementwise`` have a single output.

    - ``new``: it allocates its outputs, or returns views of its inputs.
    - ``whole``: it takes ``out=``, a C-contiguous array of the output's type and shape that overlaps with no input, or
      None. It fills and returns ``out``, or a new array. With several outputs, ``out`` is a tuple of arrays.
    - ``tiles``: it also takes ``on_tile_ready=`` (see ``OnTileReady``) and calls it once for each tile of ``out``, on
      any thread. The tiles are disjoint and cover ``out``. The callback changes the tile in place.
    - ``elementwise``: it takes ``out=``, which may be one of the inputs. Each element of the output depends on the
      elements at its place in the inputs, which numpy broadcasts, so that ``call`` may get corresponding tiles of all
      of them.
    """
    flops: int = 0
    """Multiplications and additions of a call, if these take most of its time."""
    packing: Packing = Packing()
    joins: Joins = Joins()


AxisRole = Literal["axes", "entries", "leading"]
"""What a constant input or an attribute says about axes, so that irrun can adapt it to another layout.

- ``axes``: it holds one axis or several.
- ``entries``: it holds an entry for each axis.
- ``leading``: it counts leading axes.
"""
