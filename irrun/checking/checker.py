"""Infer every layer from what feeds it, and compare with what the file declares.

One fault gives one diagnostic: where a layer's declared and inferred outputs differ, what is handed on
is the one that the layers reading it agree with. So is decided which end of an edge is wrong, and what fixes it.
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
    """Everything that is wrong with a model that could be read, in file order.

    But for what a comment ``<!-- irrun: ignore IR401 -->`` in the file says to pass over.
    """
    model = parsed.model
    checker = _Checker(model, list(parsed.problems), tuple(parsed.problems))
    if not any(p.code in ("IR101", "IR102") for p in parsed.problems):  # else who feeds whom is not certain
        with no_garbage():
            checker.file()
            checker.run()
            checker.weights()
    found = sorted((replace(d, fix=checker.fixes.get(id(d), d.fix)) for d in checker.found), key=_position)
    return Report(tuple(_not_ignored(model.source, found)))


def _not_ignored(source: Source, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """What no comment says to ignore: on the line of the finding, or alone on the line before."""
    codes: dict[int, tuple[str, ...]] = {}  # by line; one line may hold a whole model
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
    """The codes, or prefixes of codes, in ``<!-- irrun: ignore IR401, IR303 why -->``; all where there are none."""
    found: list[str] = []
    for comment in _IGNORE.finditer(line):
        found += re.findall(r"IR\d+", comment["codes"].upper()) or ([] if comment["why"].strip() else ["IR"])
    return tuple(found)


# both linear on whatever stands in a line
_COMMENT: Final = re.compile(r"<!--[^<]*?-->")
_IGNORE: Final = re.compile(
    r"<!--\s*+irrun:\s*+ignore\b(?P<codes>(?:[\s,]*+\bIR\d++\b)*+)(?P<why>[^<]*?)-->", re.IGNORECASE
)


def _position(d: Diagnostic) -> tuple[int, int]:
    return (d.line or 0, d.column or 0)


@dataclass(slots=True)
class _Checker:
    model: Model
    found: list[Diagnostic]
    problems: tuple[Diagnostic, ...]
    """What is wrong with the file as a file; any of it may lie in a body."""
    ops: dict[int, Op | None] = field(default_factory=dict)
    readers: dict[tuple[int, int], list[tuple[Layer, int]]] = field(default_factory=dict)
    values: Values = field(default_factory=dict)
    agreed: set[tuple[Value, ElementType | None, int]] = field(default_factory=set)
    """What was inferred of an output, with the type and the (identity of the) shape of a port that agree with it."""
    liars: set[tuple[int, int]] = field(default_factory=set)
    """Outputs that declare something else than was inferred: their edges are not reported again."""
    inferred: Values = field(default_factory=dict)
    """What was inferred of an output, whatever was handed on."""
    broken_bodies: set[int] = field(default_factory=set)
    """Layers with an error in a body: what they refuse follows from it."""
    unreadable: set[int] = field(default_factory=set)
    """Ports whose precision or dims cannot be read, by node: they are reported, and say nothing."""
    fixes: dict[int, Fix] = field(default_factory=dict)
    """What fixes the problems of the file, by the identity of the problem."""
    constants: list[tuple[int, int, Layer]] = field(default_factory=list)
    """Of each constant that can be read, offset and size in the .bin; those of bodies as well."""
    consequences: list[tuple[Diagnostic, Layer, Values]] = field(default_factory=list)
    """Findings from which others would follow: with the layer, and what it gives in truth (nothing if refused)."""

    trace: Trace = field(init=False)
    """Where dims come from."""

    def __post_init__(self) -> None:
        self.trace = Trace(self.model, self.ops, self.values)

    def run(self) -> None:
        model = self.model
        for layer, op, problems in bind_all(model):
            id = layer.id
            self.ops[id] = op
            self.found += problems
            for position, feed in enumerate(model.feeds[id]):
                if feed is not None:
                    self.readers.setdefault(feed, []).append((layer, position))
            for body in layer.bodies.values():
                inner = _Checker(body, [], self.problems, fixes=self.fixes, constants=self.constants)
                inner.run()
                self.found += inner.found
                if any(d.severity == "error" for d in (*inner.found, *self.problems)):
                    self.broken_bodies.add(id)
        given = {id: Value.of(contents) for id, (contents, _) in model.contents.items()}
        unreadable = list(self.unreadable_ports())
        propagate(model, self.ops, self.settle, self.values, given)
        for key, readers in self.readers.items():
            self.edges(key, readers)
        self.mend(unreadable)
        self.unused()
        self.count_consequences()

    def file(self) -> None:
        """What concerns the file as a whole; a missing .bin is one finding, however many constants it holds."""
        model = self.model
        if model.is_fragment:
            return
        if not model.results:
            help = "add a Result layer for each output"
            no_result = diagnostic("IR107", "the model has no Result", source=model.source, node=0, help=help)
            self.found.append(no_result)
        if model.weights is None and model.constants:
            self.found.append(weights_missing(model))

    # -- one layer ------------------------------------------------------------------------------

    def settle(self, layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        if None in self.model.feeds[layer.id] or layer.id in self.broken_bodies:  # that is reported already
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
        """Compare one output with its declaration; the value to hand on."""
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
        self.liars.add(key)
        claim = Value(port.type or value.type, port.shape or value.shape)
        handed_on = self.believed(key, value, claim)
        if other_type:
            self.wrong_type(layer, port, value, handed_on is claim)
        if other_dims:
            self.wrong_dims(layer, position, value, handed_on is claim)
        if handed_on is claim:
            self.consequences.append((self.found[-1], layer, {key: value}))
        return handed_on

    def origin(self, layer: Layer, position: int, value: Value) -> Value:
        """Compare a Parameter or Const, whose shape is just what it says, with what reads it; the value to hand on."""
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
                self.liars.add(key)
                message = f"{title}: dims are {value.shape}, but what reads it is made for {made_for.shape}"
                node = self.dim_node(port, made_for.shape)
                self.add("IR402", message, layer, node, port=port.id, help=f"declare {made_for.shape}")
                self.consequences.append((self.found[-1], layer, {key: value}))
                return made_for
        due = _declarable(value.shape)
        if port.shape not in (None, due, *claims) and due.rank == port.shape.rank:
            self.liars.add(key)
            self.add_dims("IR405", f"{title}: dims are {port.shape}, inferred {value.shape}", layer, port, due)
        return value

    def wrong_type(self, layer: Layer, port: Port, value: Value, is_claim_believed: bool) -> None:
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
        """Of what was inferred of an output and what it claims, that with which the layers reading it agree.

        They say so by what their input ports declare or, where these say nothing, by what they would give.
        """
        readers = self.readers.get(key, ())
        for agrees in (lambda layer, position, v: _agrees(layer.inputs[position], v), self.leads_to_declared):
            for layer, position in readers:
                votes = agrees(layer, position, value), agrees(layer, position, claim)
                if votes[0] != votes[1]:
                    return value if votes[0] else claim
        return value

    def leads_to_declared(self, layer: Layer, position: int, value: Value) -> bool:
        """Whether a layer gives what it declares if ``value`` is what it reads at ``position``."""
        op, feeds = self.ops[layer.id], self.model.feeds[layer.id]
        if op is None:
            return True
        try:
            inputs = [value if feed == feeds[position] else self.known(feed) if feed else None for feed in feeds]
            found = infer(op, site(layer), inputs, needed(op, self.model, layer))
        except Exception:  # refused or failed: either way, not what it declares
            return False
        return all(_agrees(port, v) for port, v in zip(layer.outputs, found))

    def known(self, feed: tuple[int, int]) -> Value:
        """What an output gives as far as can be told by now. Raises Refused."""
        if feed in self.values:
            return self.values[feed]
        layer, op = self.model.layers[feed[0]], self.ops[feed[0]]
        if op is None or layer.inputs:
            return declared(layer)[feed[1]]
        return infer(op, site(layer), [], needed(op, self.model, layer))[feed[1]]  # a constant: its turn comes later

    def wrong_dims(self, layer: Layer, position: int, value: Value, is_claim_believed: bool) -> None:
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
        """The dims that an output should declare: those that its readers agree on where they fit, else as inferred."""
        claims = [l.inputs[p].shape for l, p in self.readers.get(key, ())]
        claim = claims[0] if claims else None
        if claim is not None and all(c == claim for c in claims) and value.shape.meet(claim) is not None:
            return claim
        return _declarable(value.shape)

    def cause(self, layer: Layer, found: ElementType | PartialShape) -> str | None:
        """The attribute that says what was inferred, as the file spells it."""
        op = self.ops[layer.id]
        for name, attribute in op.attributes.items() if op else ():
            if type(getattr(op, name)) is type(found) and getattr(op, name) == found:
                spellings = (attribute.name, *attribute.aliases)
                return next((s for s in spellings if s in layer.attributes), attribute.name)
        return None

    def refused(self, layer: Layer, found: Diagnostic) -> None:
        """Add what a layer refuses; of a constant whose size does not fit, at the attribute that is wrong."""
        if found.code in ("IR502", "IR503") and is_constant(layer) and layer.outputs:
            node = self.model.source.children(layer.node, "data")[0]
            for name, text in self.sized(layer):
                edits = set_attribute(self.model.source, node, name, text)
                help = f'write {name}="{text}"'
                span = self.model.source.span(node, name)
                found = replace(found, span=span, help=help, fix=_fix(help, edits))
                break
        self.found.append(found)
        self.consequences.append((found, layer, {}))

    def sized(self, layer: Layer) -> Iterator[tuple[str, str]]:
        """The attributes of a constant of which the others and its output port say that they are wrong, and how."""
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
        """What feeds a layer, one line an input: its name, shape, contents and origin."""
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
        """An output port and the input ports that it feeds should declare the same."""
        source = self.model.layers[key[0]]
        output = source.outputs[key[1]]
        for l, p in readers:
            if l.inputs[p].shape is not output.shape or l.inputs[p].type is not output.type:
                break
        else:
            return  # nearly always
        if key in self.liars or not self.says_something(output):
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
        return (port.type is not None or port.shape is not None) and port.node not in self.unreadable

    def is_output_wrong(
        self, key: tuple[int, int], said: PartialShape | None, claims: Sequence[PartialShape | None]
    ) -> bool:
        """Whether it is the output port that declares wrong dims, where those that it feeds declare others."""
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
        said, right = port.shape, other[1].shape
        is_loose = said is None or right is None or said.meet(right) is not None
        says = "it declares no dims" if said is None else f"dims are {said}"
        differs = "declares none" if right is None else f"is {right}"
        message = f"{_end((layer, port), kind)}: {says}, but {_end(other, other_kind)} {differs}"
        # without the values of constants, which of the two ends is wrong may be a guess
        is_safe = self.model.weights is not None or not self.model.constants
        self.add_dims("IR405" if is_loose else "IR402", message, layer, port, right or PartialShape(()), safe=is_safe)

    # -- the file as a whole --------------------------------------------------------------------

    def unreadable_ports(self) -> Iterator[tuple[Diagnostic, Layer, int, bool]]:
        """The ports whose precision or dims are no such thing: layer, position, and whether it is an input."""
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
        source = self.model.source
        if code == "IR305":
            return [source.span(port.node, "precision")]
        return [source.span(node) for node in source.children(port.node, "dim")]

    def mend(self, unreadable: Iterable[tuple[Diagnostic, Layer, int, bool]]) -> None:
        """Find fixes for what cannot be read, and for edges that stand there twice."""
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
        """Report layers that no Result and no variable depends on: one finding where each chain of them ends."""
        model = self.model
        if model.is_fragment or not model.results or any(d.code.startswith(("IR0", "IR1")) for d in self.problems):
            return
        read = {key[0] for key in self.readers}
        if all(id in read or self.counts(layer) for id, layer in model.layers.items()):
            return
        left = [id for id, layer in model.layers.items() if self.counts(layer)]
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

    def counts(self, layer: Layer) -> bool:
        """Whether a layer does something even if nothing reads it, or may do. (OpenVINO itself leaves constants.)"""
        op = self.ops[layer.id]
        return op is None or not layer.inputs or not layer.outputs or not op.pure

    def weights(self) -> None:
        """Compare what the constants of the model and its bodies take of the .bin, and what they leave."""
        model = self.model
        if model.weights is None or any(d.code in ("IR501", "IR502", "IR503", "IR201") for d in self.found):
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
            # the one at fault overlaps with more, and does not begin where another ends and end where one begins
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
        # a part of a model may well leave some of the .bin of the whole
        if left >= _ALIGNMENT and path and path.with_suffix("") == Path(model.source.path).with_suffix(""):
            message = f"{path.name} has {counted(left, 'byte')} after the last that a constant reads"
            help = "is it the .bin of another model? otherwise save the model again"
            self.found.append(diagnostic("IR506", message, source=model.source, help=help))

    def constant(self, layer: Layer, value: Value) -> None:
        """Note what a constant takes of the .bin, and look for numbers that are none."""
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

    # -- what follows from a finding ------------------------------------------------------------

    def count_consequences(self) -> None:
        """Say of each finding how many layers would give something else than they declare, and fix them with it."""
        if self.model.is_fragment:  # after its layer come only the Results that were made for it
            return
        if not self.consequences:
            return
        rank = {id: number for number, id in enumerate(self.model.order)}
        place = {id(d): number for number, d in enumerate(self.found)}
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
            self.found[at] = finding

    def is_changed(self, id: int, changed: dict[tuple[int, int], Value | None]) -> bool:
        """Whether a layer gives something else, or has no outputs and so only takes it."""
        outputs = self.model.layers[id].outputs
        return not outputs or any((id, position) in changed for position in range(len(outputs)))

    def declaring(
        self, finding: Diagnostic, layer: Layer, changed: dict[tuple[int, int], Value | None], count: int
    ) -> Fix | None:
        """The fix that declares what layers give in truth. Not safe where an attribute may be at fault as well."""
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
        """The outputs that are others than declared if ``layer`` gives ``outputs``: None for what cannot be computed.

        It gives nothing if ``outputs`` is empty. And how many steps it took to tell, at most ``most``.
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
        """What a layer gives where other outputs give what ``changed`` says; None for what cannot be told."""
        op, feeds = self.ops[layer.id], self.model.feeds[layer.id]
        nothing = [None] * len(layer.outputs)
        if op is None or any(feed in changed and changed[feed] is None for feed in feeds if feed):
            return nothing
        inputs = [None if feed is None else changed.get(feed) or self.values.get(feed) for feed in feeds]
        try:
            found = infer(op, site(layer), inputs, needed(op, self.model, layer))
        except Exception:  # refused or failed: either way, it gives nothing
            return nothing
        return found[: len(layer.outputs)]

    # -- reporting ------------------------------------------------------------------------------

    def add_dims(
        self, code: str, message: str, layer: Layer, port: Port, due: PartialShape, fixable: bool = True,
        safe: bool = True, **more: object,
    ) -> None:  # fmt: skip
        """Add a finding at the first wrong dim of a port, with the fix that writes ``due``."""
        help = f"declare {due}"
        edits = set_dims(self.model.source, port.node, _numbers_of(due)) if fixable and due.rank is not None else None
        at: dict[str, Any] = {"port": port.id, "help": help, "fix": _fix(help, edits, safe=safe)} | more
        self.add(code, message, layer, self.dim_node(port, due), **at)

    def dim_node(self, port: Port, due: PartialShape) -> int:
        """The first dim of a port that is not what is due; where the rank is another, the first of all."""
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
        """Add a finding at the attribute that contradicts an output port and what reads it. Its fix is not safe."""
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
        """The items of a ``shape`` attribute that becomes ``due``: those that do not contradict it as they stand."""
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
        self.found.append(
            diagnostic(
                code, message, source=self.model.source, node=node, attribute=attribute, layer=layer.name, **more
            )
        )


_ALIGNMENT: Final = 64
"""Fewer bytes than this at the end of a .bin are padding."""
_LOOKED_AT: Final = 1 << 14
"""How many elements of a constant are looked at for NaN."""
_MOST_STEPS: Final = 20_000
"""How many layers are inferred again, at most, to count what follows from the findings."""


def _fix(title: str, edits: Edits | None, *, safe: bool = True) -> Fix | None:
    return Fix(title, edits, safe) if edits else None


def _end(end: tuple[Layer, Port], kind: str) -> str:
    layer, port = end
    return f'{layer.type} "{layer.name}" {kind} {port.id}'


def _declarable(shape: PartialShape) -> PartialShape:
    """A shape as ports declare it: each dim a number or unknown."""
    if shape.dims is None:
        return shape
    return PartialShape(tuple(dim if dim.is_static else Dim.unknown() for dim in shape.dims))


def _numbers_of(shape: PartialShape) -> list[int]:
    return [-1 if dim.value is None else dim.value for dim in shape]


def _items(shape: PartialShape) -> str:
    return str(shape).strip("[]")


def _outvoted(said: object, claims: Sequence[object]) -> bool:
    """Whether several claims agree with one another, and not with what is said."""
    return len(claims) > 1 and claims[0] != said and all(claim == claims[0] for claim in claims)


def _same(a: Value, b: Value) -> bool:
    return a.type is b.type and a.shape == b.shape


def _agrees(port: Port, value: Value) -> bool:
    same_type = port.type is None or value.type.kind == "dynamic" or port.type is value.type
    return same_type and (port.shape is None or port.shape.meet(value.shape) is not None)


def _describe(value: Value) -> str:
    """``[4]`` or, where the contents are known and few, ``= [1,16,50,50]``."""
    if value.data is not None and value.data.size <= 8 and value.data.dtype.kind in "iuO":
        return f"= {_numbers(value.data)}"
    return str(value.shape)


def _numbers(data: np.ndarray) -> str:
    if data.ndim == 0:
        return str(data.item())
    return "[" + ",".join(str(n) for n in data.ravel().tolist()) + "]"
