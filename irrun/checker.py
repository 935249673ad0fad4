"""Infer every layer from what feeds it, and compare with what the file declares.

One fault gives one diagnostic: where a layer's declared and inferred outputs differ, what is handed on
is the one that the layers reading it agree with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from irrun.bind import bind
from irrun.diagnostics import Diagnostic, Refused, Report, diagnostic
from irrun.infer import Values, declared, needed, propagate, refusal, site, to_blame, wrong_output_count
from irrun.model import Layer, Model, Port
from irrun.opdef import Op, Value, infer, input_at
from irrun.parse import Parsed
from irrun.source import STDIN, Source

__all__ = ["check", "weights_missing"]


def check(parsed: Parsed) -> Report:
    """Everything that is wrong with a model that could be read, in file order.

    But for what a comment ``<!-- irrun: ignore IR401 -->`` in the file says to pass over.
    """
    model = parsed.model
    checker = _Checker(model, list(parsed.problems), tuple(parsed.problems))
    if not any(p.code in ("IR101", "IR102") for p in parsed.problems):  # else who feeds whom is not certain
        checker.file()
        checker.run()
    found = sorted(checker.found, key=_position)
    return Report(tuple(_not_ignored(model.source, found)))


def weights_missing(model: Model) -> Diagnostic:
    """That the ``.bin`` of a model with constants is not there."""
    path = model.source.path
    lacking = "no .bin is named" if path == STDIN else f"{Path(path).with_suffix('.bin')} is missing"
    count = "one constant has its" if model.constants == 1 else f"{model.constants} constants have their"
    return Diagnostic(
        "IR501", "error", f"{lacking}; {count} values in it", file=path, source=model.source,
        help="name it with -w" if path == STDIN else "put it beside the .xml under the same name, or name it with -w",
    )  # fmt: skip


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
    liars: set[tuple[int, int]] = field(default_factory=set)
    """Outputs that declare something else than was inferred: their edges are not reported again."""
    broken_bodies: set[int] = field(default_factory=set)
    """Layers with an error in a body: what they refuse follows from it."""

    def run(self) -> None:
        model = self.model
        for id, layer in model.layers.items():
            self.ops[id], problems = bind(model, layer)
            self.found += problems
            for position, feed in enumerate(model.feeds[id]):
                if feed is not None:
                    self.readers.setdefault(feed, []).append((layer, position))
            for body in layer.bodies.values():
                inner = _Checker(body, [], self.problems)
                inner.run()
                self.found += inner.found
                if any(d.severity == "error" for d in (*inner.found, *self.problems)):
                    self.broken_bodies.add(id)
        given = {id: Value.of(contents) for id, (contents, _) in model.contents.items()}
        propagate(model, self.ops, self.settle, self.values, given)
        for layer in model.layers.values():
            self.edges(layer)

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
        as_declared = declared(layer)
        if None in self.model.feeds[layer.id] or layer.id in self.broken_bodies:  # that is reported already
            return as_declared
        if isinstance(found, Refused):
            notes = self.inputs(layer)
            self.found.append(refusal(self.model, layer, self.ops[layer.id], found, notes=notes))
            return as_declared
        if isinstance(found, Exception):
            message = f'{layer.type} "{layer.name}": irrun failed to infer it: {found!r}'
            self.add("IR603", message, layer, layer.node, help=to_blame(self.ops[layer.id]))
            return as_declared
        if len(found) != len(layer.outputs):
            if layer.outputs or not self.model.is_fragment:
                self.add("IR206", wrong_output_count(layer, self.ops[layer.id], len(found)), layer, layer.node)
            return (*found, *as_declared[len(found) :])[: len(layer.outputs)]
        return [
            self.output(layer, position, value, claim)
            for position, (value, claim) in enumerate(zip(found, as_declared))
        ]

    def output(self, layer: Layer, position: int, value: Value, claim: Value) -> Value:
        """Compare one output with its declaration; the value to hand on."""
        port = layer.outputs[position]
        as_inferred = True
        if port.type is not None and value.type.kind != "dynamic" and port.type is not value.type:
            as_inferred = False
            said, found = port.type.port_name, value.type.port_name
            message = f'{layer.type} "{layer.name}" output {port.id}: precision is {said}, inferred {found}'
            self.add(
                "IR303", message, layer, port.node, "precision", port=port.id,
                notes=self.inputs(layer), help=f'declare precision="{found}"',
            )  # fmt: skip
        if port.shape is not None and value.shape.meet(port.shape) is None:
            as_inferred = False
            self.wrong_dims(layer, port, value)
        if as_inferred:
            return value
        self.liars.add((layer.id, position))
        return self.believed((layer.id, position), value, Value(port.type or value.type, port.shape or value.shape))

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
        inputs: list[Value | None] = []
        for feed in feeds:
            source = self.model.layers[feed[0]] if feed else None
            known = self.values.get(feed) or declared(source)[feed[1]] if feed and source else None
            inputs.append(value if feed == feeds[position] else known)
        try:
            found = infer(op, site(layer), inputs, needed(op, self.model, layer))
        except Exception:  # refused or failed: either way, not what it declares
            return False
        return all(_agrees(port, v) for port, v in zip(layer.outputs, found))

    def wrong_dims(self, layer: Layer, port: Port, value: Value) -> None:
        shape = port.shape
        assert shape is not None
        title = f'{layer.type} "{layer.name}" output {port.id}'
        dims = self.model.source.children(port.node, "dim")
        if shape.rank != value.rank:
            message = f"{title}: rank is {shape.rank} {shape}, inferred {value.rank} {value.shape}"
            node, help = (dims[0] if dims else port.node), f"declare {value.shape}"
        else:
            wrong = [i for i, (a, b) in enumerate(zip(shape, value.shape)) if a.meet(b) is None]
            said = ", ".join(f"dim {i} is {shape[i]}, inferred {value.shape[i]}" for i in wrong)
            message, node = f"{title}: {said}", dims[wrong[0]]
            help = f"declare {', '.join(str(value.shape[i]) for i in wrong)}"
        op = self.ops[layer.id]
        gives = f"{op.type}-{op.since} gives {value.shape}" if op else ""
        self.add(
            "IR401", message, layer, node, port=port.id, notes=(gives, *self.inputs(layer)),
            help=f"{help}, or change what it follows from" if layer.inputs else help,
        )  # fmt: skip

    def inputs(self, layer: Layer) -> tuple[str, ...]:
        """What feeds a layer, one line an input: its name, shape, contents and origin."""
        op = self.ops[layer.id]
        rows: list[tuple[str, str, str]] = []
        for position, feed in enumerate(self.model.feeds[layer.id]):
            if feed is None:
                continue
            source = self.model.layers[feed[0]]
            value = self.values.get(feed)
            declared_input = input_at(op.inputs, position) if op else None
            name = declared_input.name if declared_input else f"input {position}"
            if declared_input and declared_input.variadic:
                name += f"[{position - len(op.inputs) + 1}]" if op else ""
            text = _describe(value) if value else ""
            line = self.model.source.span(source.node).line
            rows.append((name, text, f'line {line}, {source.type} "{source.name}"'))
        if not rows:
            return ()
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return tuple(f"{a:<{widths[0]}} {b:<{widths[1]}}  {c}" for a, b, c in rows)

    # -- edges ----------------------------------------------------------------------------------

    def edges(self, layer: Layer) -> None:
        """An input port should declare what the output port feeding it declares."""
        for position, (port, feed) in enumerate(zip(layer.inputs, self.model.feeds[layer.id])):
            if feed is None or feed in self.liars:
                continue
            fed = self.model.fed_by(layer, position)
            assert fed is not None
            source, output = fed
            title = f'{layer.type} "{layer.name}" input {port.id}'
            origin = f'{source.type} "{source.name}" output {output.id}'
            if port.type and output.type and port.type is not output.type:
                said, fed_with = port.type.port_name, output.type.port_name
                self.add(
                    "IR304", f"{title}: precision is {said}, but {origin} is {fed_with}", layer, port.node,
                    "precision", port=port.id, help=f'declare precision="{fed_with}"',
                )  # fmt: skip
            if port.shape is None or output.shape is None or port.shape.meet(output.shape) is not None:
                continue
            dims = self.model.source.children(port.node, "dim")
            wrong = 0
            if port.shape.rank == output.shape.rank:
                wrong = next(i for i, (a, b) in enumerate(zip(port.shape, output.shape)) if a.meet(b) is None)
            self.add(
                "IR402", f"{title}: dims are {port.shape}, but {origin} is {output.shape}", layer, dims[wrong],
                port=port.id, help=f"declare {output.shape}",
            )  # fmt: skip

    # -- reporting ------------------------------------------------------------------------------

    def add(
        self, code: str, message: str, layer: Layer, node: int, attribute: str | None = None, **more: object
    ) -> None:
        self.found.append(
            diagnostic(
                code, message, source=self.model.source, node=node, attribute=attribute, layer=layer.name, **more
            )
        )


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
