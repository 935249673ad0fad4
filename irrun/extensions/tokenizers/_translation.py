"""Regular expressions of PCRE2 as those of the package ``regex``.

PCRE2 compiles the patterns of tokenizers with the flags UTF and UCP. ``translate`` writes each construct whose meaning
differs in ``regex`` (version 0) in another way, and refuses what ``regex`` has no words for.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from irrun.diagnostics import Refused
from irrun.extensions.tokenizers._properties import BLANKS, POSIX, WORD, property_of

__all__ = ["DoesNotCompile", "shown", "translate"]


class DoesNotCompile(ValueError):  # noqa: N818  (a verdict on the pattern)
    """PCRE2 does not compile a pattern. ``position`` counts its characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def shown(pattern: str) -> str:
    """Return a pattern for a message, shortened if it is long."""
    return repr(pattern if len(pattern) <= _SHOWN else pattern[:_SHOWN] + "…")


_SHOWN: Final = 120


def translate(pattern: str) -> str:
    """Return a pattern of PCRE2 as one of ``regex``. Raises DoesNotCompile, and Refused (IR201)."""
    return _one_class(_Translation(pattern).whole())


_CLASS: Final = re.compile(r"\[(?!\^)([^\[\]]+)\]")


def _one_class(pattern: str) -> str:
    """Return a pattern whose alternatives are all classes (punctuation of BERT) as one class, which is much faster."""
    alternatives = pattern.split("|")
    if len(alternatives) < 2 or not all(_CLASS.fullmatch(alternative) for alternative in alternatives):
        return pattern
    return f"[{''.join(alternative[1:-1] for alternative in alternatives)}]"


_ESCAPES: Final = {"a": "\\a", "e": "\\x1b", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t"}
_CLASSES: Final = {
    "s": (False, r"\s\u180e"), "S": (True, r"\s\u180e"), "w": (False, WORD), "W": (True, WORD),
    "d": (False, r"\p{Nd}"), "D": (True, r"\p{Nd}"), "h": (False, BLANKS), "H": (True, BLANKS),
    "v": (False, r"\n\x0b\f\r\x85\u2028\u2029"), "V": (True, r"\n\x0b\f\r\x85\u2028\u2029"),
}  # fmt: skip
"""Escapes that stand for a set of characters: whether it is the complement, and the items of a class of ``regex``."""
_OTHER: Final = {
    "b": f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))",
    "B": f"(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))",
    "A": r"\A", "Z": r"(?=\n?\Z)", "z": r"\Z", "G": r"\G", "K": r"\K", "X": r"\X", "N": r"[^\n]",
    "R": r"(?>\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
}  # fmt: skip
"""Escapes outside a class that are no character."""
_REFERENCE: Final = re.compile(r"\\([1-9]\d*)")
_NAMED_REFERENCE: Final = re.compile(r"\\g(?:\{(-?\d+|\w+)\}|(\d+))|\\k(?:\{(\w+)\}|<(\w+)>|'(\w+)')")
_QUANTIFIER: Final = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_GROUP: Final = re.compile(
    r"\(\?(?:(?P<plain>[:|>=!]|<=|<!)|#(?P<comment>[^)]*)\)|(?:P?<|')(?P<name>\w+)[>']|(?P<call>&\w+|P>\w+|[+-]?\d+|R)\)"
    r"|P=(?P<same>\w+)\)|(?P<on>[imsxJUn]*)(?:-(?P<off>[imsx]*))?(?P<end>[:)])"
    r"|\((?P<condition>\w+|<\w+>|'\w+')\)|(?P<assert>(?=\(\?<?[=!])))"
)


class _Translation:
    """One pass over a pattern. ``at`` is the place that is read next."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = re.sub(r"\A(?:\(\*(?:UTF|UCP)\))+", "", pattern), 0
        self.out: list[str] = []
        self.flags: list[list[str]] = [[]]  # for each open group, the flags that were switched on within it
        self.extended: list[bool] = [False]

    def whole(self) -> str:
        while self.at < len(self.pattern):
            self.item()
        if len(self.flags) > 1:
            self.fail("a parenthesis is not closed", len(self.pattern))
        self.out.append(")" * len(self.flags[0]))
        return "".join(self.out)

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise DoesNotCompile(message, self.at if position is None else position)

    def cannot(self, construct: str) -> NoReturn:
        raise Refused(
            f"irrun cannot express {construct} at position {self.at} of the pattern {shown(self.pattern)}",
            help="write it with other constructs of PCRE2, or report the pattern",
            code="IR201",
        )

    def item(self) -> None:
        char = self.pattern[self.at]
        if char == "\\":
            self.out.append(self.escape())
        elif char == "[":
            self.out.append(self.character_class())
        elif char == "(":
            self.group()
        elif char == ")":
            if len(self.flags) == 1:
                self.fail("a closing parenthesis has no opening one")
            self.out.append(")" * len(self.flags.pop()) + ")")
            self.extended.pop()
            self.at += 1
        elif char == "|":
            opened = self.flags[-1]
            self.out.append(")" * len(opened) + "|" + "".join(opened))
            self.at += 1
        elif char == "{" and not self.quantifier():
            self.out.append(r"\{")
            self.at += 1
        elif self.extended[-1] and (char.isspace() or char == "#"):
            self.at = self.pattern.find("\n", self.at) + 1 or len(self.pattern) if char == "#" else self.at + 1
        elif char != "{":
            self.out.append(char if char in ".^$*+?" else _literal(char))
            self.at += 1

    def quantifier(self) -> bool:
        """Read ``{2,3}``. Return False for a brace that stands for itself."""
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match is None or not (match[1] or (match[2] and match[3])):
            return False
        if max(int(match[1] or 0), int(match[3] or 0)) > 65535:
            self.fail("a number of repetitions is more than 65535")
        if match[3] and int(match[1] or 0) > int(match[3]):
            self.fail("the numbers of repetitions are out of order")
        self.out.append(f"{{{match[1] or 0}{match[2]}{match[3]}}}")
        self.at = match.end()
        return True

    def group(self) -> None:
        if self.pattern.startswith("(*", self.at):
            self.cannot("a verb")
        if not self.pattern.startswith("(?", self.at):
            self.open("(")
            return
        match = _GROUP.match(self.pattern, self.at)
        if match is None:
            self.cannot(f"the group {self.pattern[self.at : self.at + 4]}")
        if match["plain"]:
            self.open(f"(?{match['plain']}", match.end())
        elif match["comment"] is not None:
            self.at = match.end()
        elif match["name"]:
            self.open(f"(?<{match['name']}>", match.end())
        elif match["call"] or match["same"]:
            if (match["call"] or "").startswith(("+", "-")):
                self.cannot("a relative subroutine call")
            self.out.append(match[0])
            self.at = match.end()
        elif match["condition"]:
            name = match["condition"].strip("<>'")
            if name == "R":
                self.cannot("a condition on recursion")
            self.open(f"(?({name})", match.end())
        elif match["assert"] is not None:
            self.open("(?", match.end())
        else:
            self.switch(match)

    def open(self, text: str, end: int | None = None) -> None:
        self.out.append(text)
        self.flags.append([])
        self.extended.append(self.extended[-1])
        self.at = self.at + 1 if end is None else end

    def switch(self, match: re.Match[str]) -> None:
        """Read ``(?i)`` and ``(?i:…)``. In PCRE2, the former holds up to the end of the group that it is in."""
        on, off = match["on"], match["off"] or ""
        if bad := set(on) & set("JUn"):
            self.cannot(f"the flag {min(bad)}")
        extended = "x" in on or (self.extended[-1] and "x" not in off)
        on, off = on.replace("x", ""), off.replace("x", "")
        text = f"(?{on}{'-' if off else ''}{off}:"
        if match["end"] == ":":
            self.open(text, match.end())
        else:
            self.out.append(text)
            self.flags[-1].append(text)
            self.at = match.end()
        self.extended[-1] = extended

    def escape(self) -> str:
        """Read an escape outside a class."""
        char = self.pattern[self.at + 1 : self.at + 2]
        if char in _CLASSES:
            self.at += 2
            return f"[{'^' if _CLASSES[char][0] else ''}{_CLASSES[char][1]}]"
        if char == "N" and self.pattern.startswith("{", self.at + 2):
            self.cannot(r"\N{…}")
        if char in _OTHER:
            self.at += 2
            return _OTHER[char]
        if char in "pP" and char:
            complement, items = self.property()
            return f"[{'^' if complement else ''}{items}]"
        if char in "gk" and char:
            return self.reference()
        if char == "C":
            self.cannot(r"\C")
        if char == "Q":
            end = self.pattern.find(r"\E", self.at + 2)
            text = self.pattern[self.at + 2 : end if end >= 0 else None]
            self.at = len(self.pattern) if end < 0 else end + 2
            return "".join(map(_literal, text))
        if char == "E":
            self.at += 2
            return ""
        number = _REFERENCE.match(self.pattern, self.at)
        if number and (int(number[1]) < 10 or int(number[1]) <= self.pattern.count("(")):
            self.at = number.end()
            return f"(?:\\{number[1]})"
        return _literal(chr(self.code()))

    def reference(self) -> str:
        match = re.compile(r"\\g(?:\{(-?\d+|\w+)\}|(\d+))|\\k(?:\{(\w+)\}|<(\w+)>|'(\w+)')").match(
            self.pattern, self.at
        )
        if match is None:
            self.cannot("a subroutine call")
        name = next(group for group in match.groups() if group)
        if name.startswith("-"):
            self.cannot("a relative reference")
        self.at = match.end()
        return f"(?:\\{name})" if name.isdigit() else f"(?P={name})"

    def property(self) -> tuple[bool, str]:
        r"""Read ``\p{…}``. Return whether it is a complement, and the items of a class."""
        match = re.compile(r"\\([pP])(?:\{\s*(\^?)\s*([^}]*?)\s*\}|(\w))").match(self.pattern, self.at)
        if match is None:
            self.fail(r"\p has no name of a property")
        items = property_of(match[3] or match[4] or "")
        if items is None:
            self.fail(f"there is no property {match[3] or match[4]}")
        self.at = match.end()
        return (match[1] == "P") != bool(match[2]), items

    def code(self) -> int:
        """Read an escape that stands for one character, within a class or not. Return its code point."""
        start, char = self.at, self.pattern[self.at + 1 : self.at + 2]
        if not char:
            self.fail("the pattern ends in a backslash")
        octal = r"0[0-7]{0,2}|[1-7][0-7]{0,2}"
        number = re.compile(rf"\\(?:x\{{\s*([0-9a-fA-F]+)\s*\}}|o\{{\s*([0-7]+)\s*\}}|x([0-9a-fA-F]{{0,2}})|({octal}))")
        if match := number.match(self.pattern, start):
            self.at = match.end()
            code = int(match[1] or match[3] or "0", 16) if match[1] or match[3] is not None else 0
            code = int(match[2] or match[4], 8) if match[2] or match[4] else code
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                self.fail(f"there is no character {code:#x}", start)
            return code
        self.at += 2
        if char in _ESCAPES:
            return ord("\x1b" if char == "e" else _ESCAPES[char].encode().decode("unicode_escape"))
        if char == "c" and self.at < len(self.pattern) and self.pattern[self.at].isascii():
            self.at += 1
            return ord(self.pattern[self.at - 1].upper()) ^ 64
        if char.isascii() and char.isalnum():
            self.fail(f"\\{char} is no escape", start)
        return ord(char)

    def character_class(self) -> str:
        """Read a class. Complements within it become alternatives, because classes of ``regex`` have no such items."""
        start = self.at
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        items: list[str] = []
        complements: list[str] = []
        first = True
        while first or not self.pattern.startswith("]", self.at):
            if self.at >= len(self.pattern):
                self.fail("a class is not closed", start)
            first = False
            self.class_item(items, complements)
        self.at += 1
        own = "".join(items)
        if not complements:
            return f"[{'^' if negated else ''}{own}]" if own else (r"(?s:.)" if negated else r"(?!)")
        if negated:
            none = "".join(f"(?![^{c}])" for c in complements)
            return f"(?:{none}{f'[^{own}]' if own else '(?s:.)'})"
        return f"(?:{'|'.join([*([f'[{own}]'] if own else []), *(f'[^{c}]' for c in complements)])})"

    def class_item(self, items: list[str], complements: list[str]) -> None:
        if match := re.compile(r"\[([:.=])(\^?)([a-z<>]*)\1\]").match(self.pattern, self.at):
            known = POSIX.get(match[3])
            if match[1] != ":" or known is None:
                self.fail(f"there is no class {match[0]}")
            self.at = match.end()
            (complements if match[2] else items).append(known)
            return
        low = self.class_code(items, complements)
        if low is None:
            return
        ahead = self.pattern[self.at : self.at + 2]
        if len(ahead) < 2 or ahead[0] != "-" or ahead[1] == "]":
            items.append(_in_class(low))
            return
        position = self.at
        self.at += 1
        high = self.class_code(items, complements)
        if high is None:  # a set after a hyphen: both stand for themselves
            items.append(_in_class(low) + r"\-")
        elif high < low:
            self.fail("a range is out of order", position)
        else:
            items.append(f"{_in_class(low)}-{_in_class(high)}")

    def class_code(self, items: list[str], complements: list[str]) -> int | None:
        """Read one character of a class. Add a set to ``items`` or ``complements`` and return None."""
        char = self.pattern[self.at]
        if char != "\\":
            self.at += 1
            return ord(char)
        escaped = self.pattern[self.at + 1 : self.at + 2]
        if escaped in _CLASSES:
            complement, text = _CLASSES[escaped]
            self.at += 2
        elif escaped in ("p", "P"):
            complement, text = self.property()
        elif escaped == "b":
            self.at += 2
            return 8
        elif escaped in ("B", "R", "X", "Q"):
            self.cannot(f"\\{escaped} within a class")
        else:
            return self.code()
        (complements if complement else items).append(text)
        return None


def _literal(char: str) -> str:
    """Return a character that stands for itself outside a class."""
    return char if char.isalnum() or char == "_" else _in_class(ord(char))


def _in_class(code: int) -> str:
    """Return a character that stands for itself in a class."""
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\U{code:08x}"
