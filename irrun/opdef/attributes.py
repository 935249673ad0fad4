"""Attributes of operations: how the text of an IR file becomes a typed value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from irrun.types import ELEMENT_TYPES, ElementType, PartialShape

__all__ = ["REQUIRED", "Attribute", "attr"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """The declaration of one attribute of an operation.

    ``parse`` converts the text of the IR file to a value, and raises ValueError or OverflowError for an invalid text.
    ``expects`` describes the valid texts in messages. ``name`` is the spelling in the IR; ``aliases`` are other
    spellings that occur in files.
    """

    parse: Callable[[str], Any]
    expects: str
    default: Any
    name: str = ""
    aliases: tuple[str, ...] = ()
    code: str = "IR203"
    """The code of the diagnostic for a text that cannot be parsed."""
    kind: str = "str"
    """The name of the function of ``attr`` that declared the attribute (``int``, ``choice``, ``ints`` …), ``size`` for
    an int that is not negative, or ``static_shape`` for a shape without unknown dims."""
    words: tuple[str, ...] = ()
    """The valid texts of a ``choice``, which may be written in upper or lower case."""
    python: str = "Any"
    """The type of the argument in Python, as an annotation."""
    argument: str = ""
    """What a call of ``irrun.build`` may pass, in messages."""

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Final = _Required()


_T = TypeVar("_T")


def _int(text: str) -> int:
    """Return an integer. One that neither i64 nor u64 holds raises ValueError: no reader of IR takes it."""
    number = int(_plain(text))
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueError(text)
    return number


def _item(text: str) -> int:
    """Return an integer of a list, which kernels hold in an array of i64."""
    number = _int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(text)
    return number


def _float(text: str) -> float:
    return float(_plain(text))


def _plain(text: str) -> str:
    """Return ``text``; raise ValueError if Python would read it as a number but other readers would not (``1_000``)."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "1", "false", "0"):
        raise ValueError(text)
    return word in ("true", "1")


def _element_type(text: str) -> ElementType:
    element_type = ElementType.parse(text)
    # ports of older files say UNSPECIFIED, but no attribute may
    if element_type is None or text.strip().lower() == "unspecified":
        raise ValueError(text)
    return element_type


def _shape(text: str) -> PartialShape:
    shape = PartialShape.parse(text)
    if shape is None:
        raise ValueError(text)
    return shape


def _list(item: Callable[[str], _T]) -> Callable[[str], tuple[_T, ...]]:
    return lambda text: tuple(item(part) for part in text.split(",")) if text.strip() else ()


class attr:  # noqa: N801  (a namespace that reads as a word in the declarations)
    """Functions that declare the attributes of an operation. The result has the type that the operation will see.

    An attribute without ``default`` is required. ``name`` is the spelling in the IR if it is not a valid Python name
    (``exclude-pad``). ``aliases`` are other spellings that occur in files.
    """

    @staticmethod
    def _make(
        parse: Callable[[str], Any],
        expects: str,
        default: Any,
        name: str,
        aliases: tuple[str, ...],
        kind: str,
        code: str = "IR203",
        words: tuple[str, ...] = (),
        python: str = "Any",
        argument: str = "",
    ) -> Any:
        return Attribute(parse, expects, default, name, aliases, code, kind, words, python, argument or expects)

    @staticmethod
    def int(
        default: int | _Required | None = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = (), size: bool = False
    ) -> int:
        """Declare an attribute that is an integer.

        With ``size``, a schema says that it is not negative. The operation itself refuses negative ones.
        """
        return attr._make(_int, "an integer", default, name, aliases, "size" if size else "int", python="int")

    @staticmethod
    def float(default: float | _Required | None = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> float:
        """Declare an attribute that is a number."""
        return attr._make(_float, "a number", default, name, aliases, "float", python="float")

    @staticmethod
    def bool(default: bool | _Required = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> bool:
        """Declare an attribute that is a boolean: true, false, 1 or 0."""
        return attr._make(
            _bool, "true or false", default, name, aliases, "bool", python="bool", argument="True or False"
        )

    @staticmethod
    def str(default: str | _Required | None = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()) -> str:
        """Declare an attribute that is any text."""
        return attr._make(lambda text: text, "text", default, name, aliases, "str", python="str", argument="a str")

    @staticmethod
    def choice(
        *values: str,
        default: str | _Required = REQUIRED,
        name: str = "",
        also: dict[str, str] | None = None,
        aliases: tuple[str, ...] = (),
    ) -> str:
        """Declare an attribute that is one of ``values``, in upper or lower case.

        ``also`` maps further spellings to one of ``values``.
        """
        known = {v.lower(): v for v in values} | {k.lower(): v for k, v in (also or {}).items()}

        def parse(text: str) -> str:
            word = text.strip().lower()
            if word not in known:
                raise ValueError(text)
            return known[word]

        quoted = ", ".join(f'"{value}"' for value in values)
        return attr._make(
            parse, "one of " + ", ".join(values), default, name, aliases, "choice", words=(*values, *(also or ())),
            python=f"Literal[{quoted}]", argument=f"one of {quoted}",
        )  # fmt: skip

    @staticmethod
    def ints(
        default: tuple[int, ...] | _Required | None = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()
    ) -> tuple[int, ...]:
        """Declare an attribute that is a list of integers, separated by commas."""
        return attr._make(
            _list(_item), "integers separated by commas", default, name, aliases, "ints", python="Sequence[int]",
            argument="a list of integers",
        )  # fmt: skip

    @staticmethod
    def floats(
        default: tuple[float, ...] | _Required | None = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()
    ) -> tuple[float, ...]:
        """Declare an attribute that is a list of numbers, separated by commas."""
        return attr._make(
            _list(_float), "numbers separated by commas", default, name, aliases, "floats", python="Sequence[float]",
            argument="a list of numbers",
        )  # fmt: skip

    @staticmethod
    def element_type(
        default: str | _Required | None = REQUIRED, *, name: str = "", aliases: tuple[str, ...] = ()
    ) -> ElementType:
        """Declare an attribute that is an element type. An unknown one is reported as IR305."""
        value = ELEMENT_TYPES[default] if isinstance(default, str) else default
        return attr._make(
            _element_type, "an element type such as f32 or i64", value, name, aliases, "element_type", "IR305",
            python="str | ElementType | DTypeLike", argument='an element type such as "f32" or numpy.int64',
        )  # fmt: skip

    @staticmethod
    def shape(
        default: PartialShape | _Required | None = REQUIRED, *, name: str = "", static: bool = False
    ) -> PartialShape:
        """Declare an attribute that is a partial shape. An invalid one is reported as IR404.

        With ``static``, a schema says that no dim is unknown. The operation itself refuses unknown ones.
        """
        return attr._make(
            _shape, "dims separated by commas, such as 1,3,?,8..16", default, name, (),
            "static_shape" if static else "shape", "IR404",
            python="str | PartialShape | Sequence[Dim | int | None]", argument="a shape such as [1, 3, None]",
        )  # fmt: skip
