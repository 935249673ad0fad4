"""Small changes to Python code, each of which a test should notice.

``mutants(source)`` lists the changes of a module. A change replaces the text of one expression or statement and keeps
every other byte, so that the diff of a mutant is the change and nothing else.

Not changed: annotations, docstrings, f-strings, assertions, ``__all__``, blocks under ``TYPE_CHECKING`` and
``if __name__``, and what only types or memory depend on (``cast``, ``TypeVar``, ``slots``, ``stacklevel``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Change:
    """A replacement of the bytes ``start`` to ``end`` of a module's source."""

    kind: str
    start: int
    end: int
    text: str
    line: int
    """The line that ``start`` is in, counted from 1."""
    scope: tuple[int, int]
    """The first and the last line of the innermost function around it, or of the module."""
    at_import: bool
    """Whether the code runs when the module is imported."""

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def lines(self, source: bytes) -> tuple[str, str]:
        """The lines that change, before and after, without their common indentation."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        last = len(source) if last < 0 else last
        after = source[first : self.start] + self.text.encode() + source[self.end : last]
        return _stripped(source[first:last]), _stripped(after)


def _stripped(text: bytes) -> str:
    return "\n".join(line.strip() for line in text.decode().split("\n"))


COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}
ORDERED_CALLS = {
    *("subtract", "divide", "true_divide", "floor_divide", "mod", "remainder", "fmod", "power", "float_power"),
    *("arctan2", "copysign", "ldexp", "left_shift", "right_shift", "matmul", "cross", "outer"),
    *("less", "less_equal", "greater", "greater_equal", "searchsorted", "isin", "append", "take"),
}
"""Functions of numpy whose first two arguments are not interchangeable."""
ONLY_FOR_TYPES = {"cast", "TypeVar", "NewType"}
WITHOUT_EFFECT = {"slots", "stacklevel"}
DECLARATIONS = {"int", "float", "bool", "str", "choice", "ints", "floats", "element_type", "shape"}
"""What ``attr`` declares attributes of an operation with."""


def mutants(source: bytes) -> list[Change]:
    """All changes of a module, in the order of their places."""
    return _sorted(_Mutator(source).module())


def default_mutants(source: bytes) -> list[Change]:
    """One change of every default in ``attr.…(…)``, in the order of their places."""
    return _sorted(_Mutator(source).defaults())


def _sorted(changes: Iterator[Change]) -> list[Change]:
    return sorted(set(changes), key=lambda change: (change.start, change.end, change.text))


class _Mutator:
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.scope: tuple[int, int] = (1, source.count(b"\n") + 1)
        self.at_import = True

    @cached_property
    def starts(self) -> list[int]:
        """The offset of each line."""
        return [0, *(match.end() for match in re.finditer(rb"\n", self.source))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        place: ast.expr = node  # pyright: ignore[reportAssignmentType]  # statements have the same fields
        assert place.end_lineno is not None
        assert place.end_col_offset is not None
        return self.starts[place.lineno - 1] + place.col_offset, self.starts[
            place.end_lineno - 1
        ] + place.end_col_offset

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()

    def change(self, kind: str, start: int, end: int, text: str) -> Change:
        line = self.source.count(b"\n", 0, start) + 1
        return Change(kind, start, end, text, line, self.scope, self.at_import)

    def replace(self, kind: str, node: ast.AST, text: str) -> Change:
        return self.change(kind, *self.span(node), text)

    def between(self, kind: str, left: ast.AST, right: ast.AST, old: str, new: str) -> Change:
        """Replace the operator between two operands; parentheses and comments stay."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = re.sub(rb"#[^\n]*", lambda match: b" " * len(match[0]), self.source[start:end])
        pattern = r"\b" + old.replace(" ", r"\s+") + r"\b" if old[0].isalpha() else re.escape(old)
        found = re.search(pattern.encode(), gap)
        assert found is not None, (old, gap)
        return self.change(kind, start + found.start(), start + found.end(), new)

    # ---------------------------------------------------------------------------------------------
    # statements

    def module(self) -> Iterator[Change]:
        yield from self.block(self.tree.body)

    def block(self, statements: list[ast.stmt]) -> Iterator[Change]:
        for statement in statements:
            yield from self.statement(statement)

    def statement(self, node: ast.stmt) -> Iterator[Change]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from self.function(node)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Attribute) and node.value is not None:
                yield self.replace("statement", node, "pass")
            yield from self.children(node.value)
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                return
            if all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets):
                yield self.replace("statement", node, "pass")
            if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
                old, new = ARITHMETIC[type(node.op)]
                yield self.between("arithmetic", node.target, node.value, old, new)
            yield from self.children(*targets, node.value)
        elif isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Call):
                yield self.replace("statement", node, "pass")
            if not isinstance(node.value, ast.Constant):
                yield from self.children(node.value)
        elif isinstance(node, ast.If):
            if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                yield from self.block(node.orelse)
            elif "__name__" not in self.text(node.test):
                yield from self.condition(node.test)
                yield from self.children(node.test)
                yield from self.block(node.body)
                yield from self.block(node.orelse)
        elif isinstance(node, ast.Return) and node.value is not None:
            if self.may_return_none and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield self.replace("return", node.value, "None")
            yield from self.children(node.value)
        elif not isinstance(node, ast.Assert):
            yield from self.children(node)

    may_return_none = False

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
        yield from self.children(*node.decorator_list)
        yield from self.children(*node.args.defaults, *(default for default in node.args.kw_defaults if default))
        outer = self.may_return_none
        self.may_return_none = node.returns is not None and bool(
            re.search(r"(\|\s*None|Optional\[.*|\bAny)$", self.text(node.returns))
        )
        yield from self.body(node, node.body)
        self.may_return_none = outer

    def body(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, nodes: Sequence[ast.AST]
    ) -> Iterator[Change]:
        """The changes of code that runs when a function is called."""
        outer = self.scope, self.at_import
        assert node.end_lineno is not None
        self.scope, self.at_import = (node.lineno, node.end_lineno), False
        for child in nodes:
            yield from self.statement(child) if isinstance(child, ast.stmt) else self.children(child)
        self.scope, self.at_import = outer

    # ---------------------------------------------------------------------------------------------
    # expressions

    def children(self, *nodes: ast.AST | None) -> Iterator[Change]:
        """The changes inside of expressions, and of statements that have no rule of their own."""
        for node in nodes:
            if node is None or isinstance(node, ast.JoinedStr) or self.is_for_types(node):
                continue
            if isinstance(node, ast.Lambda):
                yield from self.children(*node.args.defaults)
                yield from self.body(node, [node.body])
                continue
            if isinstance(node, ast.expr):
                yield from self.expression(node)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    yield from self.statement(child)
                elif isinstance(child, ast.keyword):
                    if child.arg not in WITHOUT_EFFECT:
                        yield from self.children(child.value)
                else:
                    yield from self.children(child)

    def is_for_types(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in ONLY_FOR_TYPES
        return isinstance(node, ast.Subscript) and self.text(node.value) in ("Literal", "Callable", "ClassVar")

    def expression(self, node: ast.expr) -> Iterator[Change]:
        if isinstance(node, ast.Compare):
            yield from self.comparison(node)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:]):
                yield self.between("boolean", left, right, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start = self.span(node)[0]
            found = re.match(rb"not\s*", self.source[start:])
            assert found is not None
            yield self.change("boolean", start, start + found.end(), "")
        elif isinstance(node, ast.BinOp):
            if type(node.op) in ARITHMETIC:
                old, new = ARITHMETIC[type(node.op)]
                yield self.between("arithmetic", node.left, node.right, old, new)
        elif isinstance(node, ast.Constant):
            yield from self.constant(node)
        elif isinstance(node, ast.IfExp):
            yield from self.condition(node.test)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for generator in node.generators:
                for test in generator.ifs:
                    yield from self.condition(test)
        elif isinstance(node, ast.Call):
            yield from self.call(node)
        elif isinstance(node, ast.Slice):
            for bound in (node.lower, node.upper):
                if bound is not None:
                    yield self.replace("slice", bound, "")

    def comparison(self, node: ast.Compare) -> Iterator[Change]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators):
            old, new = COMPARISONS[type(operator)]
            yield self.between("comparison", left, right, old, new)
            for side in (left, right):
                texts = side.elts if isinstance(side, (ast.Tuple, ast.Set, ast.List)) else [side]
                for text in texts:
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield self.replace("string", text, repr(text.value + "~"))
            left = right

    def condition(self, test: ast.expr) -> Iterator[Change]:
        for constant in ("True", "False"):
            if self.text(test) != constant:
                yield self.replace("condition", test, constant)

    def constant(self, node: ast.Constant) -> Iterator[Change]:
        if isinstance(node.value, bool):
            yield self.replace("constant", node, str(not node.value))
        elif isinstance(node.value, int):
            yield self.replace("constant", node, f"{node.value + 1}")
            yield self.replace("constant", node, f"{node.value - 1}" if node.value else "(-1)")

    def call(self, node: ast.Call) -> Iterator[Change]:
        name = node.func
        if isinstance(name, ast.Name) and name.id in OPPOSITES:
            yield self.replace("opposite", name, OPPOSITES[name.id])
        elif isinstance(name, ast.Attribute):
            end = self.span(name)[1]
            if name.attr in OPPOSITES:
                yield self.change("opposite", end - len(name.attr), end, OPPOSITES[name.attr])
            two = len(node.args) == 2 and not any(isinstance(argument, ast.Starred) for argument in node.args)
            if two and name.attr in ORDERED_CALLS and self.text(name.value) == "np":
                first, second = node.args
                (start, middle), (after, end) = self.span(first), self.span(second)
                gap = self.source[middle:after].decode()
                yield self.change("arguments", start, end, self.text(second) + gap + self.text(first))

    # ---------------------------------------------------------------------------------------------
    # defaults of attributes

    def defaults(self) -> Iterator[Change]:
        for node in ast.walk(self.tree):
            function = node.func if isinstance(node, ast.Call) else None
            if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
                continue
            assert isinstance(node, ast.Call)
            if function.value.id != "attr" or function.attr not in DECLARATIONS:
                continue
            default = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
            if default is None and function.attr != "choice" and node.args:
                default = node.args[0]
            if default is not None:
                yield self.replace("default", default, self.other_default(function.attr, default, node))

    def other_default(self, declaration: str, default: ast.expr, call: ast.Call) -> str:
        """The text of another default of the same sort."""
        if declaration == "choice":
            choices = [text for value in call.args for text in self.choices(value)]
            own = self.choices(default)
            return next((text for text in choices if text not in own), repr("~"))
        if declaration == "shape":
            return "PartialShape.of((7,))"
        value = ast.literal_eval(default)
        if declaration == "bool":
            return str(not value)
        if declaration in ("ints", "floats"):
            return repr(tuple(item + 1 for item in value) if value else (1,))
        if declaration == "element_type":
            return repr("i32" if value == "i64" else "i64")
        if declaration == "str":
            return repr(f"{value or ''}~")
        if value is None or value == -1:
            return "1"
        return repr(value + 1 if declaration == "int" else value * 2 + 1)

    def choices(self, value: ast.expr) -> list[str]:
        """The text of a choice, or those of all choices in the constant that ``*NAME`` unpacks."""
        if isinstance(value, ast.Constant):
            return [repr(value.value)]
        if not isinstance(value, ast.Starred):
            return [self.text(value)]
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and self.text(node.targets[0]) == self.text(value.value):
                return [repr(item) for item in ast.literal_eval(node.value)]
        return []
