"""Check a model: infer the outputs of each layer from its inputs, and compare them with the declared outputs.

One fault gives one diagnostic. Where the declared and the inferred output of a layer differ, the checker continues
with the one that the consumers of the output agree with, so that the layers behind it are not reported as well. The
same comparison decides which end of an edge is wrong, and therefore which fix to offer.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.checking.origins import history
from irrun.diagnostics import Diagnostic, Refused, Report, counted, diagnostic
from irrun.edits import Edits, Fix, add_attribute, remove_element, set_attribute, set_dims, set_items
from irrun.inference.bind import bind_all
from irrun.inference.layer import infer, input_name
from irrun.inference.propagate import (
    Values,
    declared,
    needed,
    propagate,
    refusal,
    site,
    to_blame,
    weights_missing,
    wrong_output_count,
)
from irrun.inference.trace import Trace
from irrun.ir.parse import Parsed, no_garbage
from irrun.model import Layer, Model, Port, is_constant
from irrun.opdef import Op, Value
from irrun.source import Source, Span
from irrun.types import ELEMENT_TYPES, Dim, ElementType, PartialShape

__all__ = ["check"]


def check(parsed: Parsed) -> Report:
    """Return all diagnostics of a model, in file order: the problems of its file and those of its layers.

    A comment such as ``<!-- irrun: ignore IR401 -->`` in the file suppresses diagnostics.
    """
    model = parsed.model
    checker = _Checker(model, list(parsed.problems), tuple(parsed.problems))
    if not any(p.code in ("IR101", "IR102") for p in parsed.problems):  # duplicate ids: edges are ambiguous
        with no_garbage():
            checker.file()
            checker.run()
            checker.weights()
    found = sorted((replace(d, fix=checker.fixes.get(id(d), d.fix)) for d in checker.diagnostics), key=_position)
    return Report(tuple(_not_ignored(model.source, found)))


def _not_ignored(source: Source, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Drop diagnostics that a comment suppresses, on the same line or alone on the line before."""
    codes: dict[int, tuple[str, ...]] = {}  # cached by line, because one line may hold a whole model
    for d in found:
        if d.line is not None:
            if d.line not in codes:
                before = source.line(d.line - 1)
                codes[d.line] = _ignored_by(source.line(d.line))
                if not _COMMENT.sub("", before).strip():
                    codes[d.line] += _ignored_by(before)
            if d.code.startswith(codes[d.line]):
                continue
        yield d


def _ignored_by(line: str) -> tuple[str, ...]:
    """Return the codes, or prefixes of codes, in comments such as ``<!-- irrun: ignore IR401, IR303 why -->``.

    A comment with neither a code nor a reason suppresses every diagnostic: it gives ``IR``, the prefix of all codes.
    """
    found: list[str] = []
    for comment in _IGNORE.finditer(line):
        found += re.findall(r"IR\d+", comment["codes"].upper()) or ([] if comment["why"].strip() else ["IR"])
    return tuple(found)


# Both patterns take linear time on any line.
_COMMENT: Final = re.compile(r"<!--[^<]*?-->")
_IGNORE: Final = re.compile(
    r"<!--\s*+irrun:\s*+ignore\b(?P<codes>(?:[\s,]*+\bIR\d++\b)*+)(?P<why>[^<]*?)-->", re.IGNORECASE
)


def _position(d: Diagnostic) -> tuple[int, int]:
    return (d.line or 0, d.column or 0)


@dataclass(slots=True)
class _Checker:
    """The check of one model or of one body."""

    model: Model
    diagnostics: list[Diagnostic]
    problems: tuple[Diagnostic, ...]
    """The problems that reading found in the whole file, bodies included."""
    ops: dict[int, Op | None] = field(default_factory=dict)
    readers: dict[tuple[int, int], list[tuple[Layer, int]]] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    agreed: set[tuple[Value, ElementType | None, int]] = field(default_factory=set)
    """Comparisons without a difference: the inferred value, the declared type, and ``id()`` of the declared shape."""
    misdeclared: set[tuple[int, int]] = field(default_factory=set)
    """Outputs whose declaration is reported as wrong. Differences along their edges are not reported as well."""
    inferred: Values = field(default_factory=dict)
    """The inferred value of each output, also where the declared value was handed on instead."""
    broken_bodies: set[int] = field(default_factory=set)
    """Ids of layers with an error in a body. They are not checked, because their own errors would follow from it."""
    unreadable: set[int] = field(default_factory=set)
    """Nodes of the ports whose precision or dims cannot be parsed. Reading reports them; edges ignore them."""
    fixes: dict[int, Fix] = field(default_factory=dict)
    """Fixes for ``problems``, by ``id()`` of the problem."""
    constants: list[tuple[int, int, Layer]] = field(default_factory=list)
    """Offset and size in the .bin (in bytes) and layer of each constant that can be read, bodies included."""
    consequences: list[tuple[Diagnostic, Layer, Values]] = field(default_factory=list)
    """Diagnostics that affect later layers, each with its layer and the inferred outputs (none if it is refused)."""

    trace: Trace = field(init=False)
    """Follows dims back to their origin, for the notes of diagnostics."""

    def __post_init__(self) -> None:
        self.trace = Trace(self.model, self.ops, self.values)

    def run(self) -> None:
        """Check the bodies, layers and edges, and fill ``diagnostics``, ``fixes`` and ``constants``."""
        model = self.model
        for layer, op, problems in bind_all(model):
            id = layer.id
            self.ops[id] = op
            self.diagnostics += problems
            for position, feed in enumerate(model.feeds[id]):
                if feed is not None:
                    self.readers.setdefault(feed, []).append((layer, position))
            for body in layer.bodies.values():
                inner = _Checker(body, [], self.problems, fixes=self.fixes, constants=self.constants)
                inner.run()
                self.diagnostics += inner.diagnostics
                if any(d.severity == "error" for d in (*inner.diagnostics, *self.problems)):
                    self.broken_bodies.add(id)
        given = {id: Value.of(contents) for id, (contents, _) in model.contents.items()}
        unreadable = list(self.unreadable_ports())
        propagate(model, self.ops, self.settle, self.values, given)
        for key, readers in self.readers.items():
            self.edges(key, readers)
        self.add_fixes(unreadable)
        self.unused()
        self.count_consequences()

    def file(self) -> None:
        """Report problems of the whole file. A missing .bin is reported once, not once per constant."""
        model = self.model
        if model.is_fragment:
            return
        if not model.results:
            help = "add a Result layer for each output"
            no_result = diagnostic("IR107", "the model has no Result", source=model.source, node=0, help=help)
            self.diagnostics.append(no_result)
        if model.weights is None and model.constants:
            self.diagnostics.append(weights_missing(model))

    # -- one layer ------------------------------------------------------------------------------

    def settle(self, layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        """Check one layer and return the outputs to hand on: the inferred or the declared ones.

        ``found`` holds the inferred outputs, or the exception that inference raised.
        """
        if None in self.model.feeds[layer.id] or layer.id in self.broken_bodies:  # the cause is reported elsewhere
            return declared(layer)
        if isinstance(found, Refused):
            notes = (*self.inputs(layer), *history(layer, self.trace.blamed(layer.id)))
            self.refused(layer, refusal(self.model, layer, self.ops[layer.id], found, notes=notes))
            return declared(layer)
        if isinstance(found, Exception):
            message = f'{layer.type} "{layer.name}": irrun failed to infer it: {found!r}'
            self.add("IR603", message, layer, layer.node, help=to_blame(self.ops[layer.id]))
            return declared(layer)
        if len(found) != len(layer.outputs):
            if layer.outputs or not self.model.is_fragment:
                self.add("IR206", wrong_output_count(layer, self.ops[layer.id], len(found)), layer, layer.node)
            return (*found, *declared(layer)[len(found) :])[: len(layer.outputs)]
        if is_constant(layer) and self.model.weights is not None:
            self.constant(layer, found[0])
        return [self.output(layer, position, value) for position, value in enumerate(found)]

    def output(self, layer: Layer, position: int, value: Value) -> Value:
        """Compare one output with its declaration, and return the value to hand on."""
        key, port = (layer.id, position), layer.outputs[position]
        self.inferred[key] = value
        compared = (value, port.type, id(port.shape))
        if compared in self.agreed and layer.inputs:
            return value
        other_type = port.type is not None and value.type.kind != "dynamic" and port.type is not value.type
        other_dims = port.shape is not None and value.shape.meet(port.shape) is None
        if not other_type and not other_dims:
            self.agreed.add(compared)
            return value if layer.inputs else self.origin(layer, position, value)
        self.misdeclared.add(key)
        claim = Value(port.type or value.type, port.shape or value.shape)
        handed_on = self.believed(key, value, claim)
        if other_type:
            self.wrong_type(layer, port, value, handed_on is claim)
        if other_dims:
            self.wrong_dims(layer, position, value, handed_on is claim)
        if handed_on is claim:
            self.consequences.append((self.diagnostics[-1], layer, {key: value}))
        return handed_on

    def origin(self, layer: Layer, position: int, value: Value) -> Value:
        """Compare the output of a layer without inputs with its consumers, and return the value to hand on.

        Nothing else can show that the shape of a Parameter or Const is wrong, because the layer itself defines it.
        """
        key, port = (layer.id, position), layer.outputs[position]
        claims = [c for l, p in self.readers.get(key, ()) if (c := l.inputs[p].shape) is not None]
        if claims and all(claim is port.shape for claim in claims):
            return value
        title = f'{layer.type} "{layer.name}" output {port.id}'
        if claims and all(c == claims[0] for c in claims) and value.shape.meet(claims[0]) is None:
            made_for = Value(value.type, claims[0])
            votes = {
                (self.leads_to_declared(reader, at, made_for), self.leads_to_declared(reader, at, value))
                for reader, at in self.readers[key]
            }
            if (True, False) in votes and (False, True) not in votes:
                self.misdeclared.add(key)
                message = f"{title}: dims are {value.shape}, but what reads it is made for {made_for.shape}"
                node = self.dim_node(port, made_for.shape)
                self.add("IR402", message, layer, node, port=port.id, help=f"declare {made_for.shape}")
                self.consequences.append((self.diagnostics[-1], layer, {key: value}))
                return made_for
        due = _declarable(value.shape)
        if port.shape not in (None, due, *claims) and due.rank == port.shape.rank:
            self.misdeclared.add(key)
            self.add_dims("IR405", f"{title}: dims are {port.shape}, inferred {value.shape}", layer, port, due)
        return value

    def wrong_type(self, layer: Layer, port: Port, value: Value, is_claim_believed: bool) -> None:
        """Report an output port whose precision differs from the inferred type (IR303)."""
        assert port.type is not None
        said, found = port.type.port_name, value.type.port_name
        message = f'{layer.type} "{layer.name}" output {port.id}: precision is {said}, inferred {found}'
        name = self.cause(layer, value.type) if is_claim_believed else None
        if name is not None:
            self.add_cause("IR303", message, layer, port, name, port.type)
            return
        help = f'declare precision="{found}"'
        edits = None if is_claim_believed else set_attribute(self.model.source, port.node, "precision", found)
        self.add(
            "IR303", message, layer, port.node, "precision", port=port.id, notes=self.inputs(layer), help=help,
            fix=_fix(help, edits),
        )  # fmt: skip

    def believed(self, key: tuple[int, int], value: Value, claim: Value) -> Value:
        """Choose between the inferred and the declared value of an output: whichever its consumers agree with.

        The input ports of the consumers decide first. If they fit both values or neither, the declared outputs of the
        consumers decide: the value from which these follow is chosen. Without a decision, return the inferred value.
        """
        readers = self.readers.get(key, ())
        for agrees in (lambda layer, position, v: _agrees(layer.inputs[position], v), self.leads_to_declared):
            for layer, position in readers:
                votes = agrees(layer, position, value), agrees(layer, position, claim)
                if votes[0] != votes[1]:
                    return value if votes[0] else claim
        return value

    def leads_to_declared(self, layer: Layer, position: int, value: Value) -> bool:
        """Return whether a layer would produce its declared outputs if it read ``value`` at ``position``.

        Return True if irrun does not know the operation of the layer.
        """
        op, feeds = self.ops[layer.id], self.model.feeds[layer.id]
        if op is None:
            return True
        try:
            inputs = [value if feed == feeds[position] else self.known(feed) if feed else None for feed in feeds]
            found = infer(op, site(layer), inputs, needed(op, self.model, layer))
        except Exception:  # refused or failed: the layer does not produce its declared outputs
            return False
        return all(_agrees(port, v) for port, v in zip(layer.outputs, found))

    def known(self, feed: tuple[int, int]) -> Value:
        """Return what is known so far of the output ``feed``. Raises Refused."""
        if feed in self.values:
            return self.values[feed]
        layer, op = self.model.layers[feed[0]], self.ops[feed[0]]
        if op is None or layer.inputs:
            return declared(layer)[feed[1]]
        return infer(op, site(layer), [], needed(op, self.model, layer))[feed[1]]  # not yet propagated

    def wrong_dims(self, layer: Layer, position: int, value: Value, is_claim_believed: bool) -> None:
        """Report an output port whose dims differ from the inferred shape (IR401), with their origin."""
        port = layer.outputs[position]
        shape = port.shape
        assert shape is not None
        title = f'{layer.type} "{layer.name}" output {port.id}'
        due = self.due((layer.id, position), value)
        if shape.rank != value.rank:
            message = f"{title}: rank is {shape.rank} {shape}, inferred {value.rank} {value.shape}"
            help = f"declare {value.shape}"
            wrong = []
        else:
            wrong = [i for i, (a, b) in enumerate(zip(shape, value.shape)) if a.meet(b) is None]
            said = ", ".join(f"dim {i} is {shape[i]}, inferred {value.shape[i]}" for i in wrong)
            message = f"{title}: {said}"
            help = f"declare {', '.join(str(value.shape[i]) for i in wrong)}"
            due = PartialShape(tuple(due[i] if i in wrong else dim for i, dim in enumerate(shape)))
        op = self.ops[layer.id]
        gives = f"{op.type}-{op.since} gives {value.shape}" if op else ""
        self.values[layer.id, position] = value
        places = [p for p in self.trace.places(layer.id, position) if p.index in wrong and not p.is_element]
        notes = (gives, *self.inputs(layer), *history(layer, {f"dim {p.index}": p for p in places}))
        name = self.cause(layer, value.shape) if is_claim_believed else None
        if name is not None:
            self.add_cause("IR401", message, layer, port, name, shape, notes=notes)
            return
        help = f"{help}, or change what it follows from" if layer.inputs else help
        self.add_dims("IR401", message, layer, port, due, not is_claim_believed, notes=notes, help=help)

    def due(self, key: tuple[int, int], value: Value) -> PartialShape:
        """Return the shape that an output should declare.

        That is the shape that all its consumers declare if the inferred shape allows it, otherwise the inferred shape.
        """
        claims = [l.inputs[p].shape for l, p in self.readers.get(key, ())]
        claim = claims[0] if claims else None
        if claim is not None and all(c == claim for c in claims) and value.shape.meet(claim) is not None:
            return claim
        return _declarable(value.shape)

    def cause(self, layer: Layer, inferred: ElementType | PartialShape) -> str | None:
        """Return the attribute whose value equals the inferred type or shape, as the file spells it, or None."""
        op = self.ops[layer.id]
        for name, attribute in op.attributes.items() if op else ():
            if type(getattr(op, name)) is type(inferred) and getattr(op, name) == inferred:
                spellings = (attribute.name, *attribute.aliases)
                return next((s for s in spellings if s in layer.attributes), attribute.name)
        return None

    def refused(self, layer: Layer, found: Diagnostic) -> None:
        """Report a layer that its shape rule refuses.

        For a constant whose bytes do not fit, report the wrong attribute, with a fix, where it is known.
        """
        if found.code in ("IR502", "IR503") and is_constant(layer) and layer.outputs:
            node = self.model.source.children(layer.node, "data")[0]
            for name, text in self.sized(layer):
                edits = set_attribute(self.model.source, node, name, text)
                help = f'write {name}="{text}"'
                span = self.model.source.span(node, name)
                found = replace(found, span=span, help=help, fix=_fix(help, edits))
                break
        self.diagnostics.append(found)
        self.consequences.append((found, layer, {}))

    def sized(self, layer: Layer) -> Iterator[tuple[str, str]]:
        """Yield the attribute of a Const that contradicts its other attributes and its port, with the corrected text.

        Yield nothing where it is not certain which attribute is wrong.
        """
        port, said = layer.outputs[0], layer.attributes
        shape, type = PartialShape.parse(said.get("shape", "...")), ElementType.parse(said.get("element_type", ""))
        size, offset = int(said["size"]), int(said["offset"])
        available = len(self.model.weights.data) - offset if self.model.weights else 0
        if port.type is None or port.type.bits == 0 or type is None or shape is None or shape.static is None:
            return
        port_shape = port.shape or PartialShape(())
        if port_shape == shape and port.type is type:
            needed = type.nbytes(shape.count().lo)
            if 0 <= needed <= available:
                yield "size", str(needed)
        elif port.type is type and port_shape.static is not None and type.nbytes(port_shape.count().lo) == size:
            yield "shape", _items(port_shape)
        elif port_shape == shape and port.type.nbytes(shape.count().lo) == size:
            yield "element_type", port.type.name

    def inputs(self, layer: Layer) -> tuple[str, ...]:
        """Return one line of text per connected input: its name, its shape or contents, and its producer."""
        op = self.ops[layer.id]
        rows: list[tuple[str, str, str]] = []
        for position, feed in enumerate(self.model.feeds[layer.id]):
            if feed is None:
                continue
            source = self.model.layers[feed[0]]
            value = self.values.get(feed)
            name = input_name(op, position) if op else f"input {position}"
            text = _describe(value) if value else ""
            line = self.model.source.span(source.node).line
            rows.append((name, text, f'line {line}, {source.type} "{source.name}"'))
        if not rows:
            return ()
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return tuple(f"{a:<{widths[0]}} {b:<{widths[1]}}  {c}" for a, b, c in rows)

    # -- edges ----------------------------------------------------------------------------------

    def edges(self, key: tuple[int, int], readers: Sequence[tuple[Layer, int]]) -> None:
        """Report each difference between an output port and the input ports that it feeds, at the wrong end."""
        source = self.model.layers[key[0]]
        output = source.outputs[key[1]]
        for l, p in readers:
            if l.inputs[p].shape is not output.shape or l.inputs[p].type is not output.type:
                break
        else:
            return  # the usual case: all ports share the same type and shape objects
        if key in self.misdeclared or not self.says_something(output):
            return
        ports = [(l, l.inputs[p]) for l, p in readers if self.says_something(l.inputs[p])]
        retyped = [(l, p) for l, p in ports if p.type and output.type and p.type is not output.type]
        reshaped = [(l, p) for l, p in ports if p.shape is not output.shape and p.shape != output.shape]
        if retyped:
            inferred = self.inferred.get(key)
            claims = [p.type for _, p in ports]
            is_known = inferred is not None and inferred.type.kind != "dynamic"
            is_dynamic = inferred is not None and inferred.type in claims
            if not is_known and (is_dynamic or _outvoted(output.type, claims)):
                self.other_type(source, output, retyped[0], "output", "input")
            else:
                for layer, port in retyped:
                    self.other_type(layer, port, (source, output), "input", "output")
        if reshaped:
            if self.is_output_wrong(key, output.shape, [p.shape for _, p in ports]):
                self.other_dims(source, output, reshaped[0], "output", "input")
            else:
                for layer, port in reshaped:
                    self.other_dims(layer, port, (source, output), "input", "output")

    def says_something(self, port: Port) -> bool:
        """Return whether a port declares a type or dims, and both can be parsed."""
        return (port.type is not None or port.shape is not None) and port.node not in self.unreadable

    def is_output_wrong(
        self, key: tuple[int, int], said: PartialShape | None, claims: Sequence[PartialShape | None]
    ) -> bool:
        """Return whether the output port is the wrong end of edges whose input ports declare other dims."""
        value = self.inferred.get(key)
        if value is not None and value.rank is not None:
            due = _declarable(value.shape)
            if said == due or due in claims:
                return said != due
        if _outvoted(said, claims):
            return True
        layer, position = self.readers[key][0]
        claim = layer.inputs[position].shape
        if said is None or claim is None:
            return said is None
        dynamic = value.type if value else ELEMENT_TYPES["dynamic"]
        as_said, as_claimed = (self.leads_to_declared(layer, position, Value(dynamic, s)) for s in (said, claim))
        return as_claimed and not as_said

    def other_type(self, layer: Layer, port: Port, other: tuple[Layer, Port], kind: str, other_kind: str) -> None:
        """Report the wrong end of an edge whose ports declare different precisions (IR304)."""
        assert port.type
        assert other[1].type
        right = other[1].type.port_name
        help = f'declare precision="{right}"'
        message = f"precision is {port.type.port_name}, but {_end(other, other_kind)} is {right}"
        edits = set_attribute(self.model.source, port.node, "precision", right)
        self.add(
            "IR304", f"{_end((layer, port), kind)}: {message}", layer, port.node, "precision", port=port.id, help=help,
            fix=_fix(help, edits),
        )  # fmt: skip

    def other_dims(self, layer: Layer, port: Port, other: tuple[Layer, Port], kind: str, other_kind: str) -> None:
        """Report the wrong end of an edge whose ports declare different dims: IR402, or IR405 if both can be true."""
        said, right = port.shape, other[1].shape
        is_loose = said is None or right is None or said.meet(right) is not None
        says = "it declares no dims" if said is None else f"dims are {said}"
        differs = "declares none" if right is None else f"is {right}"
        message = f"{_end((layer, port), kind)}: {says}, but {_end(other, other_kind)} {differs}"
        # without the values of constants, the choice of the wrong end may be a guess
        is_safe = self.model.weights is not None or not self.model.constants
        self.add_dims("IR405" if is_loose else "IR402", message, layer, port, right or PartialShape(()), safe=is_safe)

    # -- the file as a whole --------------------------------------------------------------------

    def unreadable_ports(self) -> Iterator[tuple[Diagnostic, Layer, int, bool]]:
        """Collect ports whose precision or dims cannot be parsed in ``unreadable``.

        Yield for each its diagnostic, its layer, its position among the inputs or outputs, and whether it is an input.
        """
        named: dict[str | None, list[Layer]] = {}
        broken = [d for d in self.problems if d.code in ("IR305", "IR404") and d.port is not None]
        for layer in self.model.layers.values() if broken else ():
            named.setdefault(layer.name, []).append(layer)
        for d in broken:
            for layer in named.get(d.layer, ()):
                for is_input, ports in ((True, layer.inputs), (False, layer.outputs)):
                    for position, port in enumerate(ports):
                        if port.id == d.port and d.span in self.spans(port, d.code):
                            self.unreadable.add(port.node)
                            yield d, layer, position, is_input

    def spans(self, port: Port, code: str) -> list[Span]:
        """Return the places at which reading can report ``code`` (IR305 or IR404) for a port."""
        source = self.model.source
        if code == "IR305":
            return [source.span(port.node, "precision")]
        return [source.span(node) for node in source.children(port.node, "dim")]

    def add_fixes(self, unreadable: Iterable[tuple[Diagnostic, Layer, int, bool]]) -> None:
        """Add fixes for ports that cannot be parsed, and for edges that the file holds twice."""
        source = self.model.source
        for d, layer, position, is_input in unreadable:
            key = self.model.feeds[layer.id][position] if is_input else (layer.id, position)
            value = self.values.get(key) if key else None
            if key is None or value is None:
                continue
            port = layer.inputs[position] if is_input else layer.outputs[position]
            shape = self.due(key, value)
            if d.code == "IR305" and value.type.kind != "dynamic":
                name = value.type.port_name
                edits = set_attribute(source, port.node, "precision", name)
                self.fixes[id(d)] = Fix(f'declare precision="{name}"', edits or ())
            elif d.code == "IR404" and shape.rank is not None:
                self.fixes[id(d)] = Fix(f"declare {shape}", set_dims(source, port.node, _numbers_of(shape)) or ())
        twice = [d for d in self.problems if d.code == "IR105"]
        seen: set[tuple[int, int, int, int]] = set()
        for edge in self.model.edges if twice else ():
            ends = (edge.from_layer, edge.from_port, edge.to_layer, edge.to_port)
            if ends in seen:
                span = source.span(edge.node)
                for d in twice:
                    if d.span == span:
                        self.fixes[id(d)] = Fix("remove the edge", remove_element(source, edge.node) or (), safe=False)
            seen.add(ends)

    def unused(self) -> None:
        """Report layers on which no Result and no variable depends: one diagnostic at the last layer of each chain."""
        model = self.model
        if model.is_fragment or not model.results or any(d.code.startswith(("IR0", "IR1")) for d in self.problems):
            return
        read = {key[0] for key in self.readers}
        if all(id in read or self.has_purpose(layer) for id, layer in model.layers.items()):
            return
        left = [id for id, layer in model.layers.items() if self.has_purpose(layer)]
        used = set(left)
        while left:
            for feed in model.feeds[left.pop()]:
                if feed is not None and feed[0] not in used:
                    used.add(feed[0])
                    left.append(feed[0])
        unread = model.layers.keys() - used
        for id in sorted(unread - read):
            layer, chain, left = model.layers[id], {id}, [id]
            while left:
                feeds = {feed[0] for feed in model.feeds[left.pop()] if feed is not None}
                left += (feeds & unread) - chain
                chain |= feeds & unread
            notes = (f"and {counted(len(chain) - 1, 'layer')} before it",) if len(chain) > 1 else ()
            message = f'{layer.type} "{layer.name}": nothing reads what it gives'
            help = "add the edge or Result that is missing, or remove the layer"
            self.add("IR108", message, layer, layer.node, notes=notes, help=help)

    def has_purpose(self, layer: Layer) -> bool:
        """Return whether a layer may have a purpose although no layer reads its outputs.

        That is an unknown operation, an operation with side effects, or a layer without inputs or without outputs.
        (OpenVINO itself keeps unused constants.)
        """
        op = self.ops[layer.id]
        return op is None or not layer.inputs or not layer.outputs or not op.pure

    def weights(self) -> None:
        """Report constants that share only some of their bytes (IR505), and unused bytes after the last one (IR506)."""
        model = self.model
        if model.weights is None or any(d.code in ("IR501", "IR502", "IR503", "IR201") for d in self.diagnostics):
            return
        if len(self.constants) < model.constants:
            return
        ranges: dict[tuple[int, int], Layer] = {}
        for offset, size, layer in self.constants:
            if size:
                ranges.setdefault((offset, size), layer)
        pairs: list[tuple[tuple[int, int], tuple[int, int]]] = []
        farthest = (0, 0)
        for place in sorted(ranges):
            if place[0] < sum(farthest):
                pairs.append((farthest, place))
            farthest = max(farthest, place, key=sum)
        starts, ends = {len(model.weights.data), *(offset for offset, _ in ranges)}, {0, *map(sum, ranges)}
        often = Counter(place for pair in pairs for place in pair)
        for pair in pairs:
            # the wrong one overlaps with more constants, and fewer of its two ends touch the end of another constant
            wrong, other = sorted(pair, key=lambda p: (-often[p], (p[0] in ends) + (sum(p) in starts), -p[0]))
            layer = ranges.pop(wrong, None)
            if layer is None or other not in ranges:
                continue
            message = (
                f'{layer.type} "{layer.name}": bytes {wrong[0]} to {sum(wrong)} are in part those of '
                f'"{ranges[other].name}", {other[0]} to {sum(other)}'
            )
            node = model.source.children(layer.node, "data")[0]
            self.add("IR505", message, layer, node, "offset", help="correct offset or size")
        path, left = model.weights.path, len(model.weights.data) - sum(farthest)
        # a sub-model under another file name may use only some of the .bin of the whole model
        if left >= _ALIGNMENT and path and path.with_suffix("") == Path(model.source.path).with_suffix(""):
            message = f"{path.name} has {counted(left, 'byte')} after the last that a constant reads"
            help = "is it the .bin of another model? otherwise save the model again"
            self.diagnostics.append(diagnostic("IR506", message, source=model.source, help=help))

    def constant(self, layer: Layer, value: Value) -> None:
        """Record the bytes of a constant in the .bin, and report NaN, or +inf among ordinary numbers (IR507)."""
        op: Any = self.ops[layer.id]
        self.constants.append((op.offset, op.size, layer))
        if value.type.kind != "float" or value.data is None or value.data.size < 2:
            return
        some = value.data.reshape(-1)[:_LOOKED_AT]
        if np.isfinite(some).all():
            return
        some = some.astype(np.float32)
        if np.isnan(some).any():
            said = "NaN"
        elif np.isposinf(some).any() and len(np.unique(some[np.isfinite(some)][:_LOOKED_AT])) > 2:
            said = "+inf among ordinary numbers"
        else:
            return
        node = self.model.source.children(layer.node, "data")[0]
        message = f'{layer.type} "{layer.name}": the constant holds {said}'
        self.add("IR507", message, layer, node, help="did training diverge or f16 overflow, or is offset wrong?")

    # -- consequences of a diagnostic -----------------------------------------------------------

    def count_consequences(self) -> None:
        """Add to each diagnostic in ``consequences`` the number of later layers that it affects.

        Where it has no fix yet, add one that also corrects the declarations of these layers.
        """
        if self.model.is_fragment:  # its layer feeds only the Results that reading has added
            return
        if not self.consequences:
            return
        rank = {id: number for number, id in enumerate(self.model.order)}
        place = {id(d): number for number, d in enumerate(self.diagnostics)}
        left = _MOST_STEPS
        for finding, layer, outputs in self.consequences:
            changed, steps = self.after(layer, outputs, rank, left)
            left -= steps
            if left <= 0:
                return
            after = {id for id, _ in changed} | {r.id for key in changed for r, _ in self.readers.get(key, ())}
            count = sum(id != layer.id and self.is_changed(id, changed) for id in after)
            at = place[id(finding)]
            if count:
                finding = replace(finding, notes=(*finding.notes, f"and {counted(count, 'layer')} after it"))
            if finding.fix is None and outputs:
                finding = replace(finding, fix=self.declaring(finding, layer, changed, count))
            self.diagnostics[at] = finding

    def is_changed(self, id: int, changed: dict[tuple[int, int], Value | None]) -> bool:
        """Return whether ``changed`` holds an output of the layer, or the layer has no outputs."""
        outputs = self.model.layers[id].outputs
        return not outputs or any((id, position) in changed for position in range(len(outputs)))

    def declaring(
        self, finding: Diagnostic, layer: Layer, changed: dict[tuple[int, int], Value | None], count: int
    ) -> Fix | None:
        """Return the fix that declares the values in ``changed``, or None where one of them cannot be declared.

        The fix is not safe where an attribute may be wrong instead of the declarations.
        """
        source = self.model.source
        edits: Edits = ()
        for (id, position), value in changed.items():
            if value is None or value.rank is None:
                return None
            shape = _declarable(value.shape)
            readers = self.readers.get((id, position), ())
            for port in (self.model.layers[id].outputs[position], *(l.inputs[p] for l, p in readers)):
                written: list[Edits | None] = []
                if port.shape is not None and port.shape != shape:
                    written.append(set_dims(source, port.node, _numbers_of(shape)))
                if port.type is not None and value.type.kind != "dynamic" and port.type is not value.type:
                    written.append(set_attribute(source, port.node, "precision", value.type.port_name))
                for some in written:
                    if some is None:
                        return None
                    edits += some
        follows = f", and what follows from it in {counted(count, 'layer')}" if count else ""
        return _fix(f"declare what is inferred{follows}", edits, safe=finding.code != "IR402" and not layer.attributes)

    def after(
        self, layer: Layer, outputs: Values, rank: dict[int, int], most: int
    ) -> tuple[dict[tuple[int, int], Value | None], int]:
        """Return the outputs that would change if ``layer`` produced ``outputs``, and the number of layers inferred.

        The first result maps each changed output to its new value, or to None where it cannot be computed. It includes
        the outputs of ``layer`` itself. With empty ``outputs``, none of these can be computed. ``rank`` is the position
        of each layer in topological order. At most ``most`` layers are inferred.
        """
        changed: dict[tuple[int, int], Value | None] = dict(outputs)
        if not outputs:
            changed = {(layer.id, position): None for position in range(len(layer.outputs))}
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()

        def spread(key: tuple[int, int]) -> None:
            for reader, _ in self.readers.get(key, ()):
                if reader.id not in seen and reader.id in rank:
                    seen.add(reader.id)
                    heapq.heappush(waiting, (rank[reader.id], reader.id))

        for key in changed:
            spread(key)
        steps = 0
        while waiting and steps < most:
            steps += 1
            reader = self.model.layers[heapq.heappop(waiting)[1]]
            found = self.with_changed(reader, changed)
            others = {
                (reader.id, position): value
                for position, value in enumerate(found)
                if value is None or not _same(value, self.values[reader.id, position])
            }
            changed.update(others)
            for key in others:
                spread(key)
        return changed, steps

    def with_changed(self, layer: Layer, changed: dict[tuple[int, int], Value | None]) -> Sequence[Value | None]:
        """Infer a layer whose inputs have the values in ``changed``; an output that cannot be computed is None."""
        op, feeds = self.ops[layer.id], self.model.feeds[layer.id]
        nothing = [None] * len(layer.outputs)
        if op is None or any(feed in changed and changed[feed] is None for feed in feeds if feed):
            return nothing
        inputs = [None if feed is None else changed.get(feed) or self.values.get(feed) for feed in feeds]
        try:
            found = infer(op, site(layer), inputs, needed(op, self.model, layer))
        except Exception:  # refused or failed: the layer has no outputs
            return nothing
        return found[: len(layer.outputs)]

    # -- reporting ------------------------------------------------------------------------------

    def add_dims(
        self, code: str, message: str, layer: Layer, port: Port, due: PartialShape, fixable: bool = True,
        safe: bool = True, **more: object,
    ) -> None:  # fmt: skip
        """Report the first wrong dim of a port, with the fix that declares ``due``."""
        help = f"declare {due}"
        edits = set_dims(self.model.source, port.node, _numbers_of(due)) if fixable and due.rank is not None else None
        at: dict[str, Any] = {"port": port.id, "help": help, "fix": _fix(help, edits, safe=safe)} | more
        self.add(code, message, layer, self.dim_node(port, due), **at)

    def dim_node(self, port: Port, due: PartialShape) -> int:
        """Return the node of the first dim of a port that differs from ``due``.

        If the ranks differ, that is the first dim; if the port has no dims, the port itself.
        """
        dims = self.model.source.children(port.node, "dim")
        shape = port.shape
        if shape is None or not dims:
            return port.node
        if shape.rank != due.rank:
            return dims[0]
        return dims[next((i for i, (a, b) in enumerate(zip(shape, due)) if a != b), 0)]

    def add_cause(
        self, code: str, message: str, layer: Layer, port: Port, name: str, due: ElementType | PartialShape,
        **more: object,
    ) -> None:  # fmt: skip
        """Report the attribute ``name`` that contradicts an output port and its consumers.

        The fix sets the attribute to ``due``. It is not safe, because it changes what the model computes.
        """
        source = self.model.source
        node = next(iter(source.children(layer.node, "data")), layer.node)
        text = due.name if isinstance(due, ElementType) else _items(due)
        if name not in layer.attributes:
            edits = add_attribute(source, node, name, text)
        elif isinstance(due, ElementType):
            edits = set_attribute(source, node, name, text)
        else:
            edits = set_items(source, node, name, self.kept(layer.attributes[name], due))
        help = f'write {name}="{text}", with which its output port and what reads it agree'
        fix = _fix(f'write {name}="{text}"', edits, safe=False)
        self.add(code, message, layer, node, name, port=port.id, help=help, fix=fix, **more)

    def kept(self, text: str, due: PartialShape) -> list[str]:
        """Return the items of a ``shape`` attribute changed to ``due``; items that already agree keep their text."""
        said = PartialShape.parse(text)
        items = _items(due).split(",")
        if said is None or said.rank != due.rank:
            return items
        parts = [part.strip() for part in text.split(",")]
        return [p if _declarable(PartialShape((a,))) == PartialShape((b,)) else i
                for p, a, b, i in zip(parts, said, due, items)]  # fmt: skip

    def add(
        self, code: str, message: str, layer: Layer, node: int, attribute: str | None = None, **more: object
    ) -> None:
        """Report a diagnostic at an element of a layer, or at one attribute of the element."""
        self.diagnostics.append(
            diagnostic(
                code, message, source=self.model.source, node=node, attribute=attribute, layer=layer.name, **more
            )
        )


_ALIGNMENT: Final = 64
"""Fewer unused bytes than this at the end of a .bin are padding: constants are aligned to 64 bytes."""
_LOOKED_AT: Final = 1 << 14
"""The most elements of a constant that are searched for NaN and +inf, so that large constants stay cheap to check."""
_MOST_STEPS: Final = 20_000
"""The most layers inferred again to count consequences, over all diagnostics. It bounds the time of a check."""


def _fix(title: str, edits: Edits | None, *, safe: bool = True) -> Fix | None:
    return Fix(title, edits, safe) if edits else None


def _end(end: tuple[Layer, Port], kind: str) -> str:
    layer, port = end
    return f'{layer.type} "{layer.name}" {kind} {port.id}'


def _declarable(shape: PartialShape) -> PartialShape:
    """Return a shape as ports can declare it: each dim is a number or unknown, and intervals become unknown."""
    if shape.dims is None:
        return shape
    return PartialShape(tuple(dim if dim.is_static else Dim.unknown() for dim in shape.dims))


def _numbers_of(shape: PartialShape) -> list[int]:
    return [-1 if dim.value is None else dim.value for dim in shape]


def _items(shape: PartialShape) -> str:
    return str(shape).strip("[]")


def _outvoted(said: object, claims: Sequence[object]) -> bool:
    """Return whether there are several ``claims``, all are equal, and they differ from ``said``."""
    return len(claims) > 1 and claims[0] != said and all(claim == claims[0] for claim in claims)


def _same(a: Value, b: Value) -> bool:
    return a.type is b.type and a.shape == b.shape


def _agrees(port: Port, value: Value) -> bool:
    """Return whether a value can have the type and shape that a port declares."""
    same_type = port.type is None or value.type.kind == "dynamic" or port.type is value.type
    return same_type and (port.shape is None or port.shape.meet(value.shape) is not None)


def _describe(value: Value) -> str:
    """Return the shape, as ``[4]``, or up to 8 known integer contents, as ``= [1,16,50,50]``."""
    if value.data is not None and value.data.size <= 8 and value.data.dtype.kind in "iuO":
        return f"= {_numbers(value.data)}"
    return str(value.shape)


def _numbers(data: np.ndarray) -> str:
    if data.ndim == 0:
        return str(data.item())
    return "[" + ",".join(str(n) for n in data.ravel().tolist()) + "]"
