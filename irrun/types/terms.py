"""The formula of a dim: how it was computed from the dims of the inputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakValueDictionary

__all__ = ["Term"]


class Term:
    """The formula of a dim: a symbol, or an arithmetic operation on terms and ints.

    A symbol has its name in ``op`` and no ``args``. Otherwise ``op`` is the operator and ``args`` its operands.
    Terms are interned: equal terms are the same object, so that ``is`` compares them.
    """

    __slots__ = ("__weakref__", "args", "op", "size")
    op: str
    args: tuple[Term | int, ...]
    size: int
    """The number of symbols and numbers in the written formula, at most 1,000,000.

    Sub-terms are shared, so that a formula can be far longer than the memory that its terms take.
    """
    _interned: WeakValueDictionary[tuple[object, ...], Term] = WeakValueDictionary()

    def __new__(cls, op: str, *args: Term | int) -> Term:
        term = cls._interned.get((op, *args))
        if term is None:
            term = super().__new__(cls)
            term.op, term.args = op, args
            term.size = min(sum(arg.size if isinstance(arg, Term) else 1 for arg in args) or 1, 1_000_000)
            cls._interned[(op, *args)] = term
        return term

    def __str__(self) -> str:
        return self.text(str)

    def text(self, spell: Callable[[str], str]) -> str:
        """Return the formula as text, with each symbol replaced by ``spell(symbol)``.

        Check ``size`` first: the text of a large formula takes much time and memory.
        """
        if not self.args:
            return spell(self.op)
        parts = [arg.text(spell) if isinstance(arg, Term) else str(arg) for arg in self.args]
        if self.op in ("max", "min", "broadcast"):
            return f"{self.op}({', '.join(parts)})"
        # for each operator: which operators put its left and its right operand in parentheses
        loose = {"+": ("", ""), "-": ("", "+-"), "*": ("+-%", "+-%"), "%": ("+-*%", "+-*%")}
        a, b = (
            f"({part})" if isinstance(arg, Term) and arg.op in ops else part
            for arg, part, ops in zip(self.args, parts, loose.get(self.op, ("+-", "+-*%")))
        )
        return f"{self.op}({a} / {b})" if self.op in ("floor", "ceil") else f"{a} {self.op} {b}"

    def leaves(self) -> Iterator[str | int]:
        """Yield the symbols and numbers of the formula from left to right, each only once."""
        seen: set[Term | int] = set()
        waiting: list[Term | int] = [self]
        while waiting:
            part = waiting.pop()
            if part in seen:
                continue
            seen.add(part)
            if isinstance(part, int):
                yield part
            elif part.args:
                waiting += reversed(part.args)
            else:
                yield part.op
