"""The evidence that all checks of a model share: what is declared, what is inferred, and what is reported so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irrun.base.edits import Fix
from irrun.diagnostics import Diagnostic, diagnostic
from irrun.inference.propagate import Bodies, Values
from irrun.inference.trace import Trace
from irrun.model import Layer, Model
from irrun.opdef import Op, Value
from irrun.types import ElementType, PartialShape

__all__ = ["Consequence", "Constant", "Consumer", "Election", "Evidence", "Key"]

Key = tuple[int, int]
"""An output: the id of its layer, and its position among the outputs of the layer."""

Consumer = tuple[Layer, int]
"""A layer that reads an output, and the position of its input."""


class Constant(NamedTuple):
    """A constant that can be read: the offset and size of its bytes in the .bin, and its layer."""

    offset: int
    size: int
    layer: Layer


class Consequence(NamedTuple):
    """A finding that affects later layers: its id, its layer, and the inferred outputs (none for a refused layer)."""

    finding: int
    layer: Layer
    outputs: Values


class Election(NamedTuple):
    """The type and shape on which an output port and its consumers agree; None where they agree on declaring none."""

    type: ElementType | None
    shape: PartialShape | None


@dataclass(slots=True)
class Evidence:
    """What is known about one model, or about one body of a layer, while it is checked."""

    model: Model
    problems: tuple[Diagnostic, ...]
    """The problems that reading found in the whole file, bodies included."""
    problem_fixes: dict[int, Fix] = field(default_factory=dict)
    """Fixes for ``problems``, by position in that tuple. Bodies share this dict with their model."""
    constants: list[Constant] = field(default_factory=list)
    """The constants that can be read. Bodies share this list with their model."""
    findings: list[Diagnostic] = field(default_factory=list)
    """The diagnostics of this check. The id of a finding is its position in this list."""

    bodies: Bodies = field(default_factory=Bodies)
    """The inferred bodies of the file. Bodies share this dict with their model."""
    ops: dict[int, Op | None] = field(default_factory=dict)
    """The operation of each layer by layer id; None if irrun does not know it or its attributes are wrong."""
    values: Values = field(default_factory=dict)
    """The value of each output that its consumers read: the inferred one or the declared one."""
    inferred: Values = field(default_factory=dict)
    """The inferred value of each output, also where ``values`` holds the declared one."""
    inferred_ahead: Values = field(default_factory=dict)
    """The values of outputs that a vote needed before propagation reached their layer."""
    inputs_voted: int = 0
    """The number of inputs of all layers that votes have inferred so far. It bounds the time of a check."""
    agreed: dict[Value, tuple[ElementType | None, PartialShape | None]] = field(default_factory=dict)
    """For an inferred value, the last declaration that agreed with it. It saves most comparisons of a large model."""

    broken_bodies: set[int] = field(default_factory=set)
    """Ids of layers with an error in a body. They are not checked, because their own errors would follow from it."""
    unparsable: set[int] = field(default_factory=set)
    """Nodes of the ports whose precision or dims cannot be parsed. Reading reports them; edges ignore them."""
    misdeclared: set[Key] = field(default_factory=set)
    """Outputs whose declaration is reported as wrong. Differences along their edges are not reported as well."""
    elections: dict[Key, Election] = field(default_factory=dict)
    """The elections held before the edges were checked, of outputs that cannot be inferred."""
    contested: set[Key] = field(default_factory=set)
    """Outputs whose consumers contradict each other without a majority. A fix that depends on them is not safe."""
    undecided: set[Key] = field(default_factory=set)
    """Outputs that contradict a consumer while the .bin is missing, so that nothing tells which end is wrong."""
    consequences: list[Consequence] = field(default_factory=list)
    """The findings that affect later layers."""

    consumers: Mapping[Key, Sequence[Consumer]] = field(init=False)
    """The consumers of each output that has any: the layers with the positions of their inputs."""
    trace: Trace = field(init=False)
    """Follows dims back to their origin, for the notes of findings."""

    def __post_init__(self) -> None:
        layers = self.model.layers
        self.consumers = {
            key: [(layers[id], position) for id, position in readers] for key, readers in self.model.readers.items()
        }
        self.trace = Trace(self.model, self.ops, self.values)

    def body(self, model: Model) -> Evidence:
        """Return the evidence for a body of this model."""
        return Evidence(model, self.problems, self.problem_fixes, self.constants, bodies=self.bodies)

    def report(
        self, code: str, message: str, layer: Layer, node: int, attribute: str | None = None, **more: object
    ) -> int:
        """Report a finding at an element of a layer, or at one attribute of the element, and return its id.

        ``more`` holds further fields of Diagnostic.
        """
        return self.add(
            diagnostic(
                code, message, source=self.model.source, node=node, attribute=attribute, layer=layer.name, **more
            )
        )

    def add(self, finding: Diagnostic) -> int:
        """Report a finding and return its id."""
        self.findings.append(finding)
        return len(self.findings) - 1

    def contest(self, key: Key) -> tuple[str, ...]:
        """Return the note that explains why no fix is safe, if the consumers of an output contradict each other."""
        return ("its consumers contradict each other, so that no fix is safe",) if key in self.contested else ()

    def is_guess(self, layer: Layer) -> bool:
        """Return whether the inferred outputs of a layer follow from an input whose value is contested."""
        return any(feed in self.contested for feed in self.model.feeds[layer.id])
