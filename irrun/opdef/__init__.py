"""How an operation is declared: attributes, ports, a shape rule and a kernel.

An operation is a class with the decorator ``op``; ``resolve`` finds it by the type and operation set of a layer. Its
method ``infer`` validates the inputs and infers the outputs as ``Value`` objects, ``run`` computes them as arrays, and
``prepare`` may choose a faster ``Kernel`` for one layer whose shapes and constants are known.

A declaration imports everything that it needs from here.
"""

from irrun.diagnostics import Refused
from irrun.opdef.attributes import Attribute, attr
from irrun.opdef.inputs import Input, arity, opt, ports, variadic
from irrun.opdef.kernel import (
    FEW_ROWS,
    LEAST_ROUNDED,
    PRECISIONS,
    AxisRole,
    Begin,
    Call,
    Calls,
    Change,
    Epilogue,
    Formula,
    Index,
    Joins,
    Kernel,
    OnTileReady,
    Operands,
    Packing,
    Precision,
    Request,
    ignore_tile,
)
from irrun.opdef.operation import SPECIFICATION, Body, Op, Site, Stream
from irrun.opdef.registry import all_ops, find, is_custom, labels, named, op, released, resolve
from irrun.opdef.revisions import RELEASES, Revision
from irrun.opdef.stored import Stored
from irrun.opdef.values import CHANNELS_LAST, ORDER, Value, few
from irrun.opdef.variables import Together, Variables, read_only

__all__ = [
    "CHANNELS_LAST", "FEW_ROWS", "LEAST_ROUNDED", "ORDER", "PRECISIONS", "RELEASES", "SPECIFICATION", "Attribute",
    "AxisRole", "Begin", "Body", "Call", "Calls", "Change", "Epilogue", "Formula", "Index", "Input", "Joins", "Kernel",
    "OnTileReady", "Op", "Operands", "Packing", "Precision", "Refused", "Request", "Revision", "Site", "Stored",
    "Stream", "Together", "Value", "Variables", "all_ops", "arity", "attr", "few", "find", "ignore_tile", "is_custom",
    "labels", "named", "op", "opt", "ports", "read_only", "released", "resolve", "variadic",
]  # fmt: skip
