"""Random models, grown in one place: for ``irrun fuzz``, for the strategies of ``irrun.testing``, and for tests.

A ``Grower`` makes one ``Graph`` after the other: a ``Solver`` finds layers from the declarations of the operations, and
a ``Chain`` puts layers together as networks do.
"""

from __future__ import annotations

from irrun.growing.chain import COMMON_TYPES, Chain, Tensor
from irrun.growing.choices import Choices
from irrun.growing.drafts import Draft, Port, versions
from irrun.growing.graphs import Graph, Node, Ref, Stored
from irrun.growing.grower import CYCLE, Grower, add_inputs, add_layers, unread
from irrun.growing.layers import LAYERS
from irrun.growing.solver import Solver

__all__ = [
    "COMMON_TYPES", "CYCLE", "LAYERS", "Chain", "Choices", "Draft", "Graph", "Grower", "Node", "Port", "Ref", "Solver",
    "Stored", "Tensor", "add_inputs", "add_layers", "unread", "versions",
]  # fmt: skip
