"""How an operation is declared: attributes, ports, a shape rule and a kernel.

An operation is a class with the decorator ``op``; ``resolve`` finds it by the type and operation set of a layer. Its
method ``infer`` validates the inputs and infers the outputs as ``Value`` objects, ``run`` computes them as arrays, and
``prepare`` may choose a faster ``Kernel`` for one layer whose shapes and constants are known.

A declaration imports everything that it needs from here.
"""

from irrun.diagnostics import Refused
from irrun.opdef.attributes import Attribute, attr
from irrun.opdef.kernel import CHANNELS_LAST, ORDER, Finish, Kernel
from irrun.opdef.operation import Body, Input, Op, Site, Variables, opt, ports, variadic
from irrun.opdef.registry import all_ops, find, is_custom, labels, op, resolve
from irrun.opdef.values import Value

__all__ = [
    "CHANNELS_LAST", "ORDER", "Attribute", "Body", "Finish", "Input", "Kernel", "Op", "Refused", "Site", "Value",
    "Variables", "all_ops", "attr", "find", "is_custom", "labels", "op", "opt", "ports", "resolve", "variadic",
]  # fmt: skip
