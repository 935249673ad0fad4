"""Small changes to Python code, each of which a test should notice.

``mutants(source)`` lists the changes of a module. A change replaces the text of one expression or statement and keeps
every other byte, so that the diff of a mutant is the change and nothing else.

Not changed: annotations, docstrings, f-strings, strings with spaces, assertions, ``__all__``, blocks under
``TYPE_CHECKING`` and ``if __name__``, and what only types or memory depend on (``cast``, ``TypeVar``, ``slots``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from changes import Change, Source
from replacements import (
    ARITHMETIC,
    COMPARISONS,
    DECLARATIONS,
    EXCEPTIONS,
    FOR_TYPES,
    OPPOSITES,
    ORDERED,
    SYMMETRIC,
    TYPES,
    WITHOUT_EFFECT,
    other_type,
)

ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.ListComp, ast.Tuple)
"""The expressions that need no parentheses as an operand. The text of a tuple has its own, or is an index."""
SEQUENCES = (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr)
"""The expressions whose sum has an order."""


def mutants(source: bytes) -> list[Change]:
    """All changes of a module, in the order of their places."""
    return _sorted(_Mutator(source).module())


def default_mutants(source: bytes) -> list[Change]:
    """One change of every default in ``attr.…(…)``, in the order of their places."""
    return _sorted(_Mutator(source).defaults())


def _sorted(changes: Iterator[Change]) -> list[Change]:
    """The changes in the order of their places; of two that write the same text, the one that came first."""
    found: dict[tuple[int, int, str], Change] = {}
    for change in changes:
        found.setdefault((change.start, change.end, change.text), change)
    return [found[place] for place in sorted(found)]


class _Mutator(Source):
    def __init__(self, source: bytes) -> None:
        super().__init__(source)
        self.may_return_none = False
        self.bound: set[str] = set()
        """The names that the function around has bound before: an assignment to them can be left out."""

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
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            yield from self.assignment(node)
        elif isinstance(node, ast.Expr):
            if isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom, ast.Await)):
                yield self.replace("statement", node, "pass")
            if not isinstance(node.value, ast.Constant):
                yield from self.children(node.value)
        elif isinstance(node, ast.If):
            yield from self.branches(node)
        elif isinstance(node, ast.Return) and node.value is not None:
            if self.may_return_none and not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield self.replace("return", node.value, "None")
            yield from self.children(node.value)
        elif isinstance(node, (ast.Raise, ast.Return, ast.Continue, ast.Break, ast.Delete)):
            yield self.replace("statement", node, "pass")
            yield from self.children(node)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                raised = self.text(node.exc.func)
                yield self.replace("exception", node.exc.func, EXCEPTIONS[raised == EXCEPTIONS[0]])
        elif isinstance(node, ast.Try):
            yield from self.block(node.body)
            for handler in node.handlers:
                yield from self.caught(handler.type)
                yield from self.block(handler.body)
            yield from self.block([*node.orelse, *node.finalbody])
        elif not isinstance(node, ast.Assert):
            yield from self.children(node)

    def assignment(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[Change]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target for target in targets if isinstance(target, ast.Name)]
        if node.value is None or any(target.id == "__all__" for target in names):
            return
        places = [target for target in targets if isinstance(target, (ast.Attribute, ast.Subscript))]
        known = [target for target in names if target.id in self.bound]
        if isinstance(node, ast.AugAssign) or len(places) + len(known) == len(targets):
            yield self.replace("statement", node, "pass")
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            old, new = ARITHMETIC[type(node.op)]
            yield self.between("arithmetic", node.target, node.value, old, new)
        self.bound = self.bound | {
            name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
        }
        yield from self.children(*(targets if not isinstance(node, ast.AnnAssign) else ()), node.value)

    def branches(self, node: ast.If) -> Iterator[Change]:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from self.block(node.orelse)
        elif "__name__" not in self.text(node.test):
            yield from self.condition(node.test)
            if node.orelse:
                yield self.replace("branches", node.test, f"not ({self.text(node.test)})")
                for block in (node.body, node.orelse):
                    if not (len(block) == 1 and isinstance(block[0], (ast.Expr, ast.Raise, ast.If, ast.Pass))):
                        yield self.change("statement", self.span(block[0])[0], self.span(block[-1])[1], "pass")
            yield from self.children(node.test)
            yield from self.block(node.body)
            yield from self.block(node.orelse)

    def caught(self, type: ast.expr | None) -> Iterator[Change]:
        """Catch one exception less."""
        if isinstance(type, ast.Tuple):
            for one in type.elts:
                yield self.replace("exception", one, "()")
        elif type is not None:
            yield self.replace("exception", type, "()")

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Change]:
        yield from self.children(*node.decorator_list)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            yield from self.default(default)
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
        outer = self.scope, self.at_import, self.bound
        assert node.end_lineno is not None
        self.scope, self.at_import = (node.lineno, node.end_lineno), False
        self.bound = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        for child in nodes:
            yield from self.statement(child) if isinstance(child, ast.stmt) else self.children(child)
        self.scope, self.at_import, self.bound = outer

    def default(self, node: ast.expr | None) -> Iterator[Change]:
        """Other defaults of a parameter."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield self.replace("default", node, repr(node.value + "~"))
        for change in self.children(node):
            yield replace(change, kind="default") if change.kind == "constant" else change

    # ---------------------------------------------------------------------------------------------
    # expressions

    def children(self, *nodes: ast.AST | None) -> Iterator[Change]:
        """The changes inside of expressions, and of statements that have no rule of their own."""
        for node in nodes:
            if node is None or isinstance(node, ast.JoinedStr) or self.is_for_types(node):
                continue
            if isinstance(node, ast.Lambda):
                for default in node.args.defaults:
                    yield from self.default(default)
                yield from self.body(node, [node.body])
                continue
            if isinstance(node, ast.expr):
                yield from self.expression(node)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.stmt):
                    yield from self.statement(child)
                elif isinstance(child, ast.keyword):
                    yield from self.keyword(child)
                else:
                    yield from self.children(child)

    def is_for_types(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id in FOR_TYPES
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
            if isinstance(node.op, ORDERED) or any(isinstance(n, SEQUENCES) for n in (node.left, node.right)):
                yield from self.swapped("operands", node.left, node.right)
        elif isinstance(node, ast.Constant):
            yield from self.constant(node)
        elif isinstance(node, ast.IfExp):
            yield from self.condition(node.test)
            yield self.replace("branches", node.test, f"not ({self.text(node.test)})")
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for generator in node.generators:
                for test in generator.ifs:
                    yield from self.condition(test)
        elif isinstance(node, ast.Call):
            yield from self.call(node)
        elif isinstance(node, ast.Slice):
            yield from self.slice(node)
        elif isinstance(node, ast.Attribute) and node.attr in TYPES and self.text(node.value) == "np":
            yield self.replace("type", node, f"np.{TYPES[node.attr]}")

    def swapped(self, kind: str, first: ast.expr, second: ast.expr) -> Iterator[Change]:
        """Exchange two expressions; parentheses and comments around them stay."""
        (start, middle), (after, end) = self.span(first), self.span(second)
        texts = [self.text(one) if isinstance(one, ATOMS) else f"({self.text(one)})" for one in (first, second)]
        if texts[0] != texts[1]:
            gap = self.source[middle:after].decode()
            yield self.change(kind, start, end, texts[1] + gap + texts[0])

    def slice(self, node: ast.Slice) -> Iterator[Change]:
        for bound in (node.lower, node.upper):
            if bound is not None:
                yield self.replace("slice", bound, "")
                if not isinstance(
                    bound, (ast.Constant, ast.UnaryOp)
                ):  # the bounds that are numbers change as constants
                    text = self.text(bound) if isinstance(bound, ATOMS) else f"({self.text(bound)})"
                    yield self.replace("slice", bound, f"{text} + 1")
                    yield self.replace("slice", bound, f"{text} - 1")
        if node.step is not None:
            yield self.replace("slice", node.step, "")
        elif node.lower is None or node.upper is None:
            start, end = self.span(node)
            text = self.text(node)
            yield self.change("slice", start, end, f"1{text}" if node.lower is None else f"{text}-1")

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
        elif isinstance(node.value, float):
            yield self.replace("constant", node, repr(node.value * 2 or 1.0))

    def call(self, node: ast.Call) -> Iterator[Change]:
        function = node.func
        end = self.span(function)[1]
        name = function.attr if isinstance(function, ast.Attribute) else self.text(function)
        if name in OPPOSITES:
            yield self.change("opposite", end - len(name), end, OPPOSITES[name])
        if name == "suppress":
            for argument in node.args:
                yield from self.caught(argument)
        if name not in SYMMETRIC and not any(isinstance(argument, ast.Starred) for argument in node.args):
            for first, second in zip(node.args, node.args[1:]):
                yield from self.swapped("arguments", first, second)
        pattern = isinstance(function, ast.Attribute) and self.text(function.value) == "re"
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from self.argument(argument, pattern)
        before: list[ast.AST] = [*node.args[-1:]]
        for keyword in sorted(node.keywords, key=self.span):
            if keyword.arg is not None and keyword.arg not in WITHOUT_EFFECT:
                yield self.dropped(keyword, before)
            before = [keyword]

    def argument(self, node: ast.expr, pattern: bool) -> Iterator[Change]:
        """Other strings, unless they are prose, and other types."""
        if isinstance(node, ast.Name) and node.id in ("bool", "int", "float"):
            yield self.replace("type", node, {"bool": "int", "int": "float", "float": "int"}[node.id])
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            other = other_type(node.value)
            if other is not None:
                yield self.replace("type", node, repr(other))
            elif pattern or " " not in node.value.strip():
                yield self.replace("string", node, repr(node.value + "~"))

    def keyword(self, node: ast.keyword) -> Iterator[Change]:
        """The changes of the value of an argument or option by name."""
        if node.arg in WITHOUT_EFFECT:
            return
        if node.arg in ("axis", "axes") and not isinstance(node.value, ast.Tuple):
            other = {"0": "1", "1": "0", "-1": "0"}.get(self.text(node.value), "0")
            yield self.replace("axis", node.value, other)
        yield from self.children(node.value)

    def dropped(self, node: ast.keyword, before: Sequence[ast.AST]) -> Change:
        """Leave out an argument by name, with the comma after the argument before it, or with its own if it is first."""
        start, end = self.span(node)
        if before:
            gap = self.without_comments(self.span(before[0])[1], start)
            return self.change("keyword", start - len(gap) + gap.rindex(b","), end, "")
        found = re.match(rb"\s*,[ ]?", self.source[end:])
        return self.change("keyword", start, end + (found.end() if found else 0), "")

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
