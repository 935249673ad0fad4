"""Write drafts of layers from nothing, and change them where a refusal points to."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from irrun.growing.drafts import MAX_DIM, MAX_ELEMENTS, Draft, Port, integers_in, is_setting, setting_range, substitute
from irrun.growing.habits import is_given, is_rare, usual_types
from irrun.inference.layer import input_at
from irrun.opdef import Attribute, Input, Op
from irrun.opdef.attributes import REQUIRED
from irrun.types import ELEMENT_TYPES, type_set

__all__ = ["Author", "Hint"]

_MAX_LISTED: Final = 64
"""The most elements of a setting: a longer one becomes a single element."""
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
_SHARE_OF_RARE: Final = 0.06
"""The share of layers with an attribute that networks hardly ever change."""
_FED: Final = frozenset(
    name
    for name, type in ELEMENT_TYPES.items()
    if name != "f8e8m0" and type.kind != "dynamic" and (type.bits >= 8 or type.kind in ("boolean", "string"))
)
"""Element types of tensors that can be passed to an engine."""


_MAX_NUMBERS: Final = 12
"""The most numbers of a message that are tried. The first ones are those that contradict each other."""


@dataclass(frozen=True)
class Hint:
    """What the message of a refusal mentions: words, numbers, and shapes such as ``[n, 4]``.

    A rule names ports and attributes as the specification does, and shows the numbers that contradict each other. A
    hint only makes a climb shorter: a draft counts by the conditions that hold.
    """

    words: frozenset[str] = frozenset()
    numbers: tuple[int, ...] = ()
    shapes: tuple[tuple[int | None, ...], ...] = ()
    contents: bool = False
    """Whether the shape rule accepts the draft, and a run refuses it: the contents of an input may be wrong."""

    @staticmethod
    def of(message: str, *, contents: bool = False) -> Hint:
        listed = [text.split(",") for text in re.findall(r"\[([^\[\]]*)\]", message)]
        shapes = [tuple(int(n) if n.strip().isdigit() else None for n in items) for items in listed if items != [""]]
        words = re.findall(r"[\w-]+", message)
        return Hint(frozenset(words), integers_in(message)[:_MAX_NUMBERS], tuple(shapes), contents)


class Author:
    """Writes and changes drafts at random. ``usual`` drafts keep to what networks write."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.usual = rng, True

    # -- drafts from nothing

    def write(self, cls: type[Op], host: Port | None) -> Draft:
        rng = self.rng
        draft = Draft(cls, outputs=cls.outputs if cls.outputs is not None else rng.randrange(1, 4))
        for attribute in cls.attributes.values():
            rare = self.usual and is_rare(attribute)
            if attribute.default is REQUIRED or rng.random() < (_SHARE_OF_RARE if rare else 0.3):
                draft.attributes[attribute.name] = self._draw_text(attribute, draft)
        bound: dict[str, str] = {}
        count = sum(not port.optional for port in cls.inputs)
        if any(port.optional for port in cls.inputs):
            all_given = self.usual and is_given(cls)
            count = len(cls.inputs) if all_given else rng.randrange(count, len(cls.inputs) + 1)
        if cls.inputs and cls.inputs[-1].variadic:
            count = max(count, 1) + rng.choice((0, 1, 1, 2))
        if host is not None:
            draft.ports.append(host.copy())
            if cls.inputs:
                bound[cls.inputs[0].type] = host.type
        while len(draft.ports) < count:
            draft.ports.append(self._new_port(cls, len(draft.ports), bound, draft))
        return draft

    def _new_port(self, cls: type[Op], position: int, bound: dict[str, str], draft: Draft) -> Port:
        port = input_at(cls.inputs, position)
        assert port is not None
        if port.type not in bound or port.type not in cls.types:
            bound[port.type] = self._draw_type(cls, port)
        type = bound[port.type]
        shape = tuple(self.rng.choice((1, 2, 2, 3, 4)) for _ in range(self.rng.choice((0, 1, 1, 2, 3, 4))))
        made = Port(type, shape)
        if is_setting(cls, position, type):
            self._fill(made, draft)
        return made

    def _draw_type(self, cls: type[Op], port: Input) -> str:
        if self.usual:
            return self.rng.choice(usual_types(cls, port.type))
        allowed = sorted(t.name for t in type_set(cls.types.get(port.type, port.type)) if t.name in _FED)
        if not allowed:
            allowed = sorted(t.name for t in type_set(cls.types.get(port.type, port.type)) if t.kind != "dynamic")
        whole = [type for type in allowed if ELEMENT_TYPES[type].kind in ("int", "uint")]
        if whole and re.search("AXIS|AXES|LENGTHS|IND", port.type):
            allowed = whole  # some operations take axes and counts as floats, too
        if "f32" in allowed and self.rng.random() < 0.6:
            return "f32"
        return self.rng.choice(allowed)

    def _fill(self, port: Port, draft: Draft) -> None:
        """Give a setting contents: small integers, distinct ones half of the time."""
        count = prod(port.shape)
        type = ELEMENT_TYPES[port.type]
        if count > _MAX_LISTED:
            port.shape, count = (1,), 1
        pool = [0, 0, 1, 1, 2, 3, 4, *draft.numbers()]
        low, most = setting_range(type)
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

    def _draw_text(self, attribute: Attribute, draft: Draft, numbers: Sequence[int] = ()) -> str:
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

    # -- changes

    def change(self, draft: Draft, hint: Hint) -> None:
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
        left_out = 1 - _SHARE_OF_RARE if self.usual and is_rare(attribute) else 0.3
        if attribute.default is not REQUIRED and self.rng.random() < left_out:
            draft.attributes.pop(attribute.name, None)
        else:
            draft.attributes[attribute.name] = self._draw_text(attribute, draft, numbers)

    def _change_count(self, draft: Draft) -> None:
        """Change the number of inputs or outputs."""
        cls, rng = draft.cls, self.rng
        if cls.outputs is None and rng.random() < 0.5:
            draft.outputs = rng.randrange(1, 5)
            return
        declared = cls.inputs
        least = sum(not port.optional for port in declared)
        most = len(declared) + (2 if declared and declared[-1].variadic else 0)
        all_given = self.usual and is_given(cls)
        if len(draft.ports) > max(least, 1) and not all_given and rng.random() < 0.5:
            draft.ports.pop()
        elif len(draft.ports) < most:
            bound = {
                p.type: port.type for n, port in enumerate(draft.ports) if (p := input_at(declared, n)) is not None
            }
            draft.ports.append(self._new_port(cls, len(draft.ports), bound, draft))

    def _replace(self, draft: Draft, numbers: Sequence[int]) -> None:
        """Replace a number everywhere: dims that are equal stay equal, also to attributes."""
        pool = [n for n in draft.numbers() if n > 0]
        if not pool:
            return
        old, new = self.rng.choice(pool), self.rng.choice([1, 2, 3, 4, 5, *[n for n in numbers if 0 < n < 20]])
        substitute(draft, {old: new}, whole=self.rng.random() < 0.5)

    def _change_port(self, draft: Draft, position: int, hint: Hint) -> None:
        rng, port, numbers = self.rng, draft.ports[position], hint.numbers
        least = 0 if rng.random() < 0.05 else 1  # a dim of 0 fulfils most conditions, and shows little
        pool = [n for n in (1, 1, 2, 3, 4, *numbers, *numbers, *numbers, *draft.numbers()) if least <= n < MAX_DIM] or [
            1
        ]
        dims = list(port.shape)
        roll = rng.random()
        wrong = [n for n, dim in enumerate(dims) if dim in numbers]
        if hint.shapes and rng.random() < 0.25:  # "rois is [3], not [n, 4]"
            dims = [rng.choice(pool) if dim is None else min(dim, MAX_DIM) for dim in rng.choice(hint.shapes)][:8]
        elif wrong and rng.random() < 0.4:  # "4*hidden_size is 8, not 12"
            dims[rng.choice(wrong)] = rng.choice([n for n in numbers if least <= n <= MAX_DIM] or [1])
        elif roll < 0.3:  # a rank, as a message or another input has it
            rank = rng.choice([*[n for n in numbers if 0 <= n <= 5] * 3, 0, 1, 2, 3, 4, 5])
            dims = dims[:rank] + [rng.choice(pool) for _ in range(rank - len(dims))]
        elif roll < 0.65 and dims:
            at = rng.randrange(len(dims))
            product = rng.choice(pool) * rng.choice((1, 1, 1, *pool))
            dims[at] = min(rng.choice((product, product, dims[at] + 1, max(dims[at] - 1, least))), MAX_DIM)
        elif roll < 0.78:
            other = rng.choice(draft.ports)
            dims = list(other.shape)
            if rng.random() < 0.3:
                rng.shuffle(dims)
        elif roll < 0.85:
            self._change_type(draft, position)
        if prod(dims) > MAX_ELEMENTS:
            return
        changed = tuple(dims) != port.shape
        port.shape = tuple(dims)
        if is_setting(draft.cls, position, port.type):
            if changed or port.data is None or rng.random() < 0.5:
                self._fill(port, draft)
            elif port.data.size and ELEMENT_TYPES[port.type].kind != "boolean":
                flat = port.data.copy().ravel()
                low, most = setting_range(ELEMENT_TYPES[port.type])
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
        type = self._draw_type(cls, port)
        same = [
            n for n in range(len(draft.ports))
            if n == position or (port.type in cls.types and (p := input_at(cls.inputs, n)) and p.type == port.type)
        ]  # fmt: skip
        if any(draft.ports[n].fixed for n in same):
            return
        for n in same:
            draft.ports[n].type = type
            if is_setting(cls, n, type):
                self._fill(draft.ports[n], draft)
            else:
                draft.ports[n].data = None
