"""Find attributes, shapes and contents that an operation accepts, with nothing but its declaration.

A draft of a layer is put before the shape rule of its operation. The rule checks one condition after the other; the
conditions that hold are counted, and the message of the one that fails names ports, attributes and numbers. The draft
is changed there, and kept if as many conditions hold as before: a climb from condition to condition.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from irrun.diagnostics import IrrunError, Refused
from irrun.inference.layer import infer, input_at
from irrun.opdef import Attribute, Input, Op, Site, Value, all_ops, is_custom
from irrun.opdef.attributes import REQUIRED
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, UnknownDimError, text_array, type_set

__all__ = ["Draft", "Port", "Solver", "contents", "failure", "name_of", "versions"]

STRUCTURE: Final = ("Parameter", "Const", "Result", "If", "Loop", "TensorIterator", "ReadValue", "Assign")
"""Types of layers that the graph itself makes."""

_STEPS: Final = 12000
"""The most drafts of the first layer of an operation. Most operations take fewer than a hundred."""
_AGAIN: Final = 300
"""The most drafts of a layer from nothing if a solution of its operation is known."""
_NEAR: Final = 30
"""The most drafts of a climb that starts near a solution. Four of five such climbs take fewer."""
_HOST_STEPS: Final = 60
"""The most drafts of a layer that shall read a tensor of the graph."""
_HOST_FAILURES: Final = 2
"""After so many climbs in vain, an operation reads no tensors of an element type and rank any more."""
_RESTART: Final = 1500
"""The number of drafts without progress after which the climb starts again."""
_ELEMENTS: Final = 1 << 12
"""The most elements of a tensor."""
_WORKING: Final = 1 << 22
"""The most bytes that a kernel may take for itself."""
_REMEMBERED: Final = 6
"""The number of solutions that are kept of each operation, from which later climbs start."""


@cache
def versions() -> dict[str, type[Op]]:
    """Return all versions of operations of the specification by name (``Tile-1``)."""
    return {name_of(cls): cls for cls in all_ops() if not is_custom(cls)}


def name_of(cls: type[Op]) -> str:
    return f"{cls.type}-{cls.since}"


@dataclass
class Port:
    """An input of a draft. ``data`` holds the contents of a setting: a constant such as a list of axes."""

    type: str
    shape: tuple[int, ...]
    data: np.ndarray | None = None
    fixed: bool = False
    """Whether the input is a tensor that is there already."""
    domain: str = ""
    """Which contents are drawn if ``data`` is None: ``positive`` numbers, ``whole`` ones (0 and 1), or any."""

    def copy(self) -> Port:
        return Port(self.type, self.shape, self.data, self.fixed, self.domain)

    def value(self) -> Value:
        return Value(ELEMENT_TYPES[self.type], PartialShape.of(self.shape), self.data)


@dataclass
class Draft:
    """A layer: the texts of its attributes, its inputs, and the number of its outputs."""

    cls: type[Op]
    attributes: dict[str, str] = field(default_factory=dict)
    ports: list[Port] = field(default_factory=list)
    outputs: int = 1

    def copy(self) -> Draft:
        """Return a draft that can be changed on its own. Arrays are shared: a change replaces them."""
        return Draft(self.cls, dict(self.attributes), [port.copy() for port in self.ports], self.outputs)

    def op(self) -> Op:
        """Return the operation with its parsed attributes. Raises _Unparsable if a text cannot be parsed."""
        parsed: dict[str, Any] = {}
        for key, attribute in self.cls.attributes.items():
            text = self.attributes.get(attribute.name)
            if text is not None:
                try:
                    parsed[key] = attribute.parse(text)
                except (ValueError, OverflowError):
                    raise _Unparsable(attribute.name) from None
        return self.cls(**parsed)

    def numbers(self) -> list[int]:
        """Return the numbers that the draft consists of."""
        found = [dim for port in self.ports for dim in port.shape]
        found += [len(port.shape) for port in self.ports]
        for text in self.attributes.values():
            found += _numbers(text)[:8]
        return found


class _Unparsable(Exception):  # noqa: N818
    """An attribute, by its name, has a text that cannot be parsed."""


def failure(draft: Draft) -> str:
    """Return why a layer that the shape rule accepts does not run with random inputs; an empty text if it runs.

    A kernel that fails with an exception of its own counts as one that runs: the judge shall see it.
    """
    op, numbers = draft.op(), np.random.default_rng(1)
    arrays = [contents(port, numbers) for port in draft.ports]
    values = [
        Value(ELEMENT_TYPES[port.type], PartialShape.of(port.shape), array) for port, array in zip(draft.ports, arrays)
    ]
    try:
        with np.errstate(all="ignore"):
            infer(op, Site(draft.outputs), values, dict.fromkeys(draft.cls.needs), contents=False)
            if op.working(*arrays) > _WORKING:
                return "too large"
            results = op.run(*arrays)
    except (Refused, IrrunError) as error:
        return str(error)
    except Exception:
        return ""
    sizes = [np.size(result) for result in (results if isinstance(results, tuple) else (results,))]
    return "too large" if max(sizes, default=0) > _ELEMENTS else ""


@dataclass(frozen=True)
class _Hint:
    """What the message of a refusal mentions: words, numbers, and shapes such as ``[n, 4]``."""

    words: frozenset[str] = frozenset()
    numbers: tuple[int, ...] = ()
    shapes: tuple[tuple[int | None, ...], ...] = ()
    contents: bool = False
    """Whether the shape rule accepts the draft, and a run refuses it: the contents of an input may be wrong."""

    @staticmethod
    def of(message: str, *, contents: bool = False) -> _Hint:
        listed = [text.split(",") for text in re.findall(r"\[([^\[\]]*)\]", message)]
        shapes = [tuple(int(n) if n.strip().isdigit() else None for n in items) for items in listed if items != [""]]
        words = re.findall(r"[\w-]+", message)
        return _Hint(frozenset(words), _numbers(message)[:12], tuple(shapes), contents)


class _Probe(Site):
    """A layer that counts the conditions that hold."""

    def __init__(self, outputs: int, declared: tuple[Any, ...]) -> None:
        super().__init__(outputs, declared, "layer")
        object.__setattr__(self, "passed", 0)

    def require(self, condition: Any, *arguments: Any, **more: Any) -> None:
        if not condition:
            self.refuse(*arguments, **more)
        object.__setattr__(self, "passed", self.passed + 1)  # pyright: ignore[reportAttributeAccessIssue]


class Solver:
    """Solves one operation after the other, and remembers solutions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.known: defaultdict[str, list[Draft]] = defaultdict(list)
        self.tried = 0
        self._unhosted: Counter[tuple[str, str, int]] = Counter()
        """The number of climbs in vain, by the operation and by the element type and rank of its first input."""

    def solve(self, cls: type[Op], host: Port | None = None) -> Draft | None:
        """Return a layer that the operation accepts, or None if none was found.

        ``host`` is its first input, if the layer is to read a tensor that is there already.
        """
        name = name_of(cls)
        memory = self.known[name]
        place = (name, "", 0)
        if host is not None:
            place = (name, host.type, len(host.shape))
            if self._unhosted[place] >= _HOST_FAILURES or not _reads(cls, host.type):
                return None
        for draft, steps in self._starts(cls, host, memory):
            if not steps:
                return draft
            found = self._climb(draft, host, steps)
            if found is not None:
                break
        else:
            self._unhosted[place] += host is not None
            return None
        if host is not None:
            self._unhosted[place] = -_REMEMBERED  # what was solved once is worth more climbs
        if len(memory) < _REMEMBERED:
            memory.append(found.copy())
        elif self.rng.random() < 0.05:
            memory[self.rng.randrange(_REMEMBERED)] = found.copy()
        return found

    def _starts(self, cls: type[Op], host: Port | None, memory: Sequence[Draft]) -> Iterator[tuple[Draft, int]]:
        """Yield where to start one climb after the other, each with the most drafts that it may take.

        A start with no drafts is a solution.
        """
        rng = self.rng
        if not memory:
            yield self._first(cls, host), _STEPS if host is None else _HOST_STEPS
            return
        if rng.random() < 0.03:
            yield self._first(cls, host), _AGAIN if host is None else _HOST_STEPS
        for changes in (rng.choice((0, 1, 1, 2, 4)), 1):
            draft = _hosted(rng.choice(memory).copy(), host)
            for _ in range(changes):
                self._change(draft, _Hint())
            if host is not None:
                yield draft, _HOST_STEPS
                return
            yield draft, _NEAR if changes else 0
        yield rng.choice(memory).copy(), 0

    def _climb(self, draft: Draft, host: Port | None, steps: int) -> Draft | None:
        score, hint = self._score(draft)
        best, stuck = score, 0
        for _ in range(steps):
            if score == _SOLVED:
                return draft
            stuck += 1
            if stuck > _RESTART:
                draft, best, stuck = self._first(draft.cls, host), -1.0, 0
                score, hint = self._score(draft)
                continue
            new = draft.copy()
            for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
                self._change(new, hint)
            found = self._score(new)
            if found[0] >= score or self.rng.random() < 0.01:
                draft, (score, hint) = new, found
            if score > best:
                best, stuck = score, 0
        return draft if score == _SOLVED else None

    def _score(self, draft: Draft) -> tuple[float, _Hint]:
        """Return how many conditions a draft fulfils, and what the message of the next one mentions."""
        self.tried += 1
        probe = _Probe(draft.outputs, tuple([None] * draft.outputs))
        needed = dict.fromkeys(draft.cls.needs)
        try:
            outputs = infer(draft.op(), probe, [port.value() for port in draft.ports], needed, contents=False)
        except _Unparsable as unparsable:
            return -1, _Hint(frozenset([str(unparsable)]))
        except Refused as refused:
            return _passed(probe), _Hint.of(str(refused))
        except (UnknownDimError, IrrunError, MemoryError):
            return _passed(probe), _Hint()
        draft.outputs = len(outputs)
        sizes = [value.shape.count().lo for value in outputs]
        if any(size > _ELEMENTS for size in sizes):
            return 1e5, _Hint()
        if fault := failure(draft):
            return 1e6, _Hint.of(fault, contents=True)
        return _SOLVED, _Hint()

    # -----------------------------------------------------------------------------------------
    # drafts from nothing

    def _first(self, cls: type[Op], host: Port | None) -> Draft:
        rng = self.rng
        draft = Draft(cls, outputs=cls.outputs if cls.outputs is not None else rng.randrange(1, 4))
        for attribute in cls.attributes.values():
            if attribute.default is REQUIRED or rng.random() < 0.3:
                draft.attributes[attribute.name] = self._text(attribute, draft)
        bound: dict[str, str] = {}
        count = sum(not port.optional for port in cls.inputs)
        if any(port.optional for port in cls.inputs):
            count = rng.randrange(count, len(cls.inputs) + 1)
        if cls.inputs and cls.inputs[-1].variadic:
            count = max(count, 1) + rng.choice((0, 1, 1, 2))
        if host is not None:
            draft.ports.append(host.copy())
            if cls.inputs:
                bound[cls.inputs[0].type] = host.type
        while len(draft.ports) < count:
            draft.ports.append(self._port(cls, len(draft.ports), bound, draft))
        return draft

    def _port(self, cls: type[Op], position: int, bound: dict[str, str], draft: Draft) -> Port:
        port = input_at(cls.inputs, position)
        assert port is not None
        if port.type not in bound or port.type not in cls.types:
            bound[port.type] = self._type(cls, port)
        type = bound[port.type]
        shape = tuple(self.rng.choice((1, 2, 2, 3, 4)) for _ in range(self.rng.choice((0, 1, 1, 2, 3, 4))))
        made = Port(type, shape)
        if _is_setting(cls, position, type):
            self._fill(made, draft)
        return made

    def _type(self, cls: type[Op], port: Input) -> str:
        allowed = sorted(t.name for t in type_set(cls.types.get(port.type, port.type)) if t.name in _FED)
        if not allowed:
            allowed = sorted(t.name for t in type_set(cls.types.get(port.type, port.type)) if t.kind != "dynamic")
        whole = [type for type in allowed if ELEMENT_TYPES[type].kind in ("int", "uint")]
        if whole and re.search("AXIS|AXES|LENGTHS|IND", port.type):
            allowed = whole  # some operations take axes and counts as floats, too
        if "f32" in allowed and self.rng.random() < 0.6:
            return "f32"
        usual = [type for type in allowed if type in _USUAL]
        return self.rng.choice(usual if usual and self.rng.random() < 0.95 else allowed)

    def _fill(self, port: Port, draft: Draft) -> None:
        """Give a setting contents: small integers, distinct ones half of the time."""
        count = prod(port.shape)
        type = ELEMENT_TYPES[port.type]
        if count > 64:
            port.shape, count = (1,), 1
        pool = [0, 0, 1, 1, 2, 3, 4, *draft.numbers()]
        low, most = _range(type)
        if type.kind == "boolean":
            items: Sequence[Any] = [self.rng.random() < 0.5 for _ in range(count)]
        elif self.rng.random() < 0.4 and count <= 8:
            first = self.rng.choice((0, 0, 1))
            items = self.rng.sample(range(first, first + max(count, 2)), count)
            items = sorted(items) if self.rng.random() < 0.6 else items
        else:
            items = [self.rng.choice([*pool, self.rng.randrange(low, 6)]) for _ in range(count)]
        items = [max(low, min(int(item), most)) for item in items]
        port.data = np.array(items, object).astype(type.dtype).reshape(port.shape)

    def _text(self, attribute: Attribute, draft: Draft, numbers: Sequence[int] = ()) -> str:
        """Return a random text that an attribute may have, as the description of its texts says."""
        rng, expects = self.rng, attribute.expects
        pool = [0, 1, 1, 2, 2, 3, *draft.numbers(), *numbers]
        lengths = [n for n in numbers if 0 <= n <= 8] * 2
        match expects.split(" ")[0], expects:
            case "one", _:
                return rng.choice(expects.removeprefix("one of ").split(", "))
            case "true", _:
                return rng.choice(("true", "false"))
            case _, "an integer":
                return str(rng.choice((*pool, -1)))
            case _, "a number":
                return str(rng.choice((0.5, 1.0, 2.0, 0.25, 1e-3, 3.0, 0.0)))
            case "integers", _:
                length = rng.choice((*lengths, 0, 1, 1, 2, 2, 2, 3, *[max(len(p.shape) - 2, 0) for p in draft.ports]))
                if rng.random() < 0.6:
                    return ",".join([str(rng.choice((1, 1, 1, 2, 0, 3)))] * length)
                return ",".join(str(abs(rng.choice(pool))) for _ in range(length))
            case "numbers", _:
                return ",".join(
                    str(rng.choice((0.5, 1.0, 2.0, 8.0))) for _ in range(rng.choice((*lengths, 0, 1, 2, 3)))
                )
            case "an", _:
                return rng.choice(("f32", "f32", "f16", "i64", "i32", "u8", "boolean", "bf16", "f64", "i8"))
            case "dims", _:
                return ",".join(str(rng.choice((1, 2, 3))) for _ in range(rng.randrange(4)))
        return rng.choice(_WORDS)

    # -----------------------------------------------------------------------------------------
    # changes

    def _change(self, draft: Draft, hint: _Hint) -> None:
        """Change a draft in one place, most often where the message of a refusal points to."""
        rng, cls = self.rng, draft.cls
        inputs = [n for n, port in enumerate(draft.ports) if not port.fixed]
        hinted = [n for n in inputs if (p := input_at(cls.inputs, n)) is not None and p.name in hint.words]
        attributes = list(cls.attributes.values())
        pointed = [a for a in attributes if a.name in hint.words]
        if hint.contents and rng.random() < 0.3:
            self._change_domain(draft)
            return
        roll = rng.random()
        if (pointed and roll < 0.4) or (attributes and roll < 0.15) or (attributes and not inputs):
            chosen = rng.choice(pointed) if pointed and rng.random() < 0.8 else rng.choice(attributes)
            self._set_attribute(draft, chosen, hint.numbers)
        elif roll > 0.93:
            self._change_count(draft)
        elif roll > 0.86:
            self._replace(draft, hint.numbers)
        elif inputs:
            self._change_port(draft, rng.choice(hinted if hinted and rng.random() < 0.8 else inputs), hint)

    def _set_attribute(self, draft: Draft, attribute: Attribute, numbers: Sequence[int]) -> None:
        if attribute.default is not REQUIRED and self.rng.random() < 0.3:
            draft.attributes.pop(attribute.name, None)
        else:
            draft.attributes[attribute.name] = self._text(attribute, draft, numbers)

    def _change_count(self, draft: Draft) -> None:
        """Change the number of inputs or outputs."""
        cls, rng = draft.cls, self.rng
        if cls.outputs is None and rng.random() < 0.5:
            draft.outputs = rng.randrange(1, 5)
            return
        declared = cls.inputs
        least = sum(not port.optional for port in declared)
        most = len(declared) + (2 if declared and declared[-1].variadic else 0)
        if len(draft.ports) > max(least, 1) and rng.random() < 0.5:
            draft.ports.pop()
        elif len(draft.ports) < most:
            bound = {
                p.type: port.type for n, port in enumerate(draft.ports) if (p := input_at(declared, n)) is not None
            }
            draft.ports.append(self._port(cls, len(draft.ports), bound, draft))

    def _replace(self, draft: Draft, numbers: Sequence[int]) -> None:
        """Replace a number everywhere: dims that are equal stay equal, also to attributes."""
        pool = [n for n in draft.numbers() if n > 0]
        if not pool:
            return
        old, new = self.rng.choice(pool), self.rng.choice([1, 2, 3, 4, 5, *[n for n in numbers if 0 < n < 20]])
        substitute(draft, {old: new}, whole=self.rng.random() < 0.5)

    def _change_port(self, draft: Draft, position: int, hint: _Hint) -> None:
        rng, port, numbers = self.rng, draft.ports[position], hint.numbers
        least = 0 if rng.random() < 0.05 else 1  # a dim of 0 fulfils most conditions, and shows little
        pool = [n for n in (1, 1, 2, 3, 4, *numbers, *numbers, *numbers, *draft.numbers()) if least <= n < 64] or [1]
        dims = list(port.shape)
        roll = rng.random()
        wrong = [n for n, dim in enumerate(dims) if dim in numbers]
        if hint.shapes and rng.random() < 0.25:  # "rois is [3], not [n, 4]"
            dims = [rng.choice(pool) if dim is None else min(dim, 64) for dim in rng.choice(hint.shapes)][:8]
        elif wrong and rng.random() < 0.4:  # "4*hidden_size is 8, not 12"
            dims[rng.choice(wrong)] = rng.choice([n for n in numbers if least <= n < 65] or [1])
        elif roll < 0.3:  # a rank, as a message or another input has it
            rank = rng.choice([*[n for n in numbers if 0 <= n <= 5] * 3, 0, 1, 2, 3, 4, 5])
            dims = dims[:rank] + [rng.choice(pool) for _ in range(rank - len(dims))]
        elif roll < 0.65 and dims:
            at = rng.randrange(len(dims))
            product = rng.choice(pool) * rng.choice((1, 1, 1, *pool))
            dims[at] = min(rng.choice((product, product, dims[at] + 1, max(dims[at] - 1, least))), 64)
        elif roll < 0.78:
            other = rng.choice(draft.ports)
            dims = list(other.shape)
            if rng.random() < 0.3:
                rng.shuffle(dims)
        elif roll < 0.85:
            self._change_type(draft, position)
        if prod(dims) > _ELEMENTS:
            return
        changed = tuple(dims) != port.shape
        port.shape = tuple(dims)
        if _is_setting(draft.cls, position, port.type):
            if changed or port.data is None or rng.random() < 0.5:
                self._fill(port, draft)
            elif port.data.size and ELEMENT_TYPES[port.type].kind != "boolean":
                flat = port.data.copy().ravel()
                low, most = _range(ELEMENT_TYPES[port.type])
                flat[rng.randrange(flat.size)] = max(low, min(rng.choice((*pool, -1)), most))
                port.data = flat.reshape(port.shape)
        else:
            port.data = None

    def _change_domain(self, draft: Draft) -> None:
        """Change which contents are drawn for an input that is no setting."""
        drawn = [port for port in draft.ports if not port.fixed and port.data is None]
        if drawn:
            self.rng.choice(drawn).domain = self.rng.choice(("", "positive", "whole"))

    def _change_type(self, draft: Draft, position: int) -> None:
        """Change the element type of an input, and of the others with the same type variable."""
        cls = draft.cls
        port = input_at(cls.inputs, position)
        if port is None:
            return
        type = self._type(cls, port)
        same = [
            n for n in range(len(draft.ports))
            if n == position or (port.type in cls.types and (p := input_at(cls.inputs, n)) and p.type == port.type)
        ]  # fmt: skip
        if any(draft.ports[n].fixed for n in same):
            return
        for n in same:
            draft.ports[n].type = type
            if _is_setting(cls, n, type):
                self._fill(draft.ports[n], draft)
            else:
                draft.ports[n].data = None


_SOLVED: Final = float("inf")
_WORDS: Final = (
    "a",
    "abc->ab",
    "ab,bc->ac",
    "ij,jk->ik",
    "sum",
    "tanh",
    "relu,tanh",
    "sigmoid,tanh,tanh",
    "ab->ba",
    "x",
)
_USUAL: Final = ("f32", "f16", "bf16", "i64", "i32", "u8", "i8", "boolean", "string")
"""Element types of activations that engines compute in. The others are drawn seldom: most engines refuse them."""
_FED: Final = frozenset(
    name
    for name, type in ELEMENT_TYPES.items()
    if name != "f8e8m0" and type.kind != "dynamic" and (type.bits >= 8 or type.kind in ("boolean", "string"))
)
"""Element types of tensors that can be passed to an engine."""


@cache
def _reads(cls: type[Op], type: str) -> bool:
    """Return whether the first input of an operation may have an element type."""
    port = cls.inputs[0]
    return ELEMENT_TYPES[type] in type_set(cls.types.get(port.type, port.type))


def _range(type: ElementType) -> tuple[int, int]:
    """Return the least and the largest number that settings of an element type get."""
    return 0 if type.kind == "uint" else -3, min(60, (1 << type.bits - (type.kind == "int")) - 1)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple([int(number) for number in _NUMBER.findall(text)])


_NUMBER: Final = re.compile(r"-?\d+")


def _passed(probe: _Probe) -> float:
    return float(probe.passed)  # pyright: ignore[reportAttributeAccessIssue]


def _is_setting(cls: type[Op], position: int, type: str) -> bool:
    """Return whether an input is a constant in most models: integers of another type variable than the first input."""
    port = input_at(cls.inputs, position)
    kind = ELEMENT_TYPES[type].kind
    if port is None or kind not in ("int", "uint", "boolean"):
        return False
    return position > 0 and port.type != cls.inputs[0].type


def _hosted(draft: Draft, host: Port | None) -> Draft:
    """Return a draft with another first input, and with the other dims changed accordingly."""
    if host is None or not draft.ports:
        return draft
    old = draft.ports[0]
    if len(old.shape) == len(host.shape):
        substitute(draft, dict(zip(old.shape, host.shape)), whole=False)
    cls = draft.cls
    for position, port in enumerate(draft.ports):
        declared = input_at(cls.inputs, position)
        if declared is not None and declared.type == cls.inputs[0].type and declared.type in cls.types:
            port.type = host.type
            port.data = None
    draft.ports[0] = host.copy()
    return draft


def substitute(draft: Draft, numbers: dict[int, int], *, whole: bool) -> None:
    """Replace dims everywhere in the inputs that are not fixed; ``whole`` also in attributes and contents."""
    for port in draft.ports:
        if port.fixed:
            continue
        shape = tuple(min(numbers.get(dim, dim), 64) for dim in port.shape)
        if prod(shape) > _ELEMENTS:
            continue
        if port.data is not None:
            if whole and ELEMENT_TYPES[port.type].kind in ("int", "uint"):
                port.data = np.array([numbers.get(int(n), int(n)) for n in port.data.ravel()]).astype(
                    port.data.dtype).reshape(port.data.shape)  # fmt: skip
            continue
        port.shape = shape
    if whole:
        for name, text in draft.attributes.items():
            draft.attributes[name] = re.sub(
                r"\b\d+\b", lambda found: str(numbers.get(int(found[0]), int(found[0]))), text
            ) if re.fullmatch(r"[\d,\s-]*", text) else text  # fmt: skip


def contents(port: Port, numbers: np.random.Generator, scale: float = 2.0) -> np.ndarray:
    """Return random contents of an input: floats in [-scale, scale), integers from 0 to 3, or those of its domain."""
    if port.data is not None:
        return port.data
    type, shape = ELEMENT_TYPES[port.type], port.shape
    if type.kind == "string":
        words = ["", "a", "hello", "größer", "x" * 20]
        count = prod(shape)
        return text_array([words[n] for n in numbers.integers(0, len(words), count)], shape)
    if type.kind == "boolean":
        return np.asarray(numbers.random(shape) < 0.5)
    if port.domain == "whole":
        return np.asarray(numbers.integers(0, 2, shape)).astype(type.dtype)
    if type.kind == "float":
        low = scale / 8 if port.domain == "positive" else -scale
        return np.asarray(numbers.uniform(low, scale, shape)).astype(type.dtype)
    low = int(port.domain == "positive")
    return np.asarray(numbers.integers(low, min(4, 1 << type.bits), shape)).astype(type.dtype)
