"""Instructions that add products of unsigned and signed bytes to sums of i32, as LLVM code.

Each form gives the exact sums, so that results do not depend on the form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from irrun.fast.machine.emitting import called, equal, repeated
from irrun.fast.machine.late import ir
from irrun.fast.machine.processor import VECTOR, has

__all__ = ["BYTES", "DOT", "DOTS", "Dot"]

BYTES: Final = 4
"""Bytes whose products one lane of a vector of sums adds up."""
_I16: Final = ir.IntType(16)
_I32: Final = ir.IntType(32)

Sums = Sequence[Sequence[ir.Value]]
"""A vector of sums for each row of a block, and each vector of columns."""


class Add(Protocol):
    def __call__(
        self, builder: Any, dot: Dot, sums: Sums, words: Sequence[ir.Value], weights: Sequence[ir.Value], /, *,
        signed_words: bool = False,
    ) -> Sums: ...  # fmt: skip


@dataclass(frozen=True)
class Dot:
    """A form of the products."""

    lanes: int
    """Sums in a vector."""
    add: Add
    """Adds products to the sums. It takes the vectors of weights, and for each row a word: four bytes as an i32. A lane
    of a vector of weights is four bytes of a column. Words are unsigned and weights are signed, or the reverse."""
    name: str
    """The intrinsic function of LLVM."""
    products: int = BYTES
    """Products that one instruction adds to a sum."""
    wide: Add | None = None
    """Adds products as ``add`` does, but a word has two i16. Dense windows are widened for it, once for all filters."""
    quads: bool = False
    """Whether depthwise windows take four taps at once: see ``quads``."""
    offset: int = 0
    """What has been subtracted from the unsigned bytes: the caller adds the products of this number to the sums."""

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(_I32, self.lanes)

    def products_of(self, builder: Any, *arguments: ir.Value) -> ir.Value:
        """Return what the instruction gives."""
        return called(builder, self.name, self.vector, *arguments)


def _four_products(
    builder: Any, dot: Dot, sums: Sums, words: Sequence[ir.Value], weights: Sequence[ir.Value], /, *,
    signed_words: bool = False,
) -> Sums:  # fmt: skip
    """One instruction multiplies four bytes and adds the products to a sum. It takes the unsigned bytes first."""
    splats = [repeated(builder, word, dot.lanes) for word in words]
    return [
        [dot.products_of(builder, sum, *((vector, splat) if signed_words else (splat, vector)))
         for sum, vector in zip(row, weights)]
        for row, splat in zip(sums, splats)
    ]  # fmt: skip


def _four_signed_products(
    builder: Any, dot: Dot, sums: Sums, words: Sequence[ir.Value], weights: Sequence[ir.Value], /, *,
    signed_words: bool = False,
) -> Sums:  # fmt: skip
    """The same for an instruction that takes signed bytes alone: 128 is subtracted from unsigned words.

    Beside signed words, the caller has subtracted it from the weights.
    """
    bytes = ir.VectorType(ir.IntType(8), BYTES * dot.lanes)
    flipped = words if signed_words else [builder.xor(word, ir.Constant(_I32, 0x80808080)) for word in words]
    splats = [builder.bitcast(repeated(builder, word, dot.lanes), bytes) for word in flipped]
    signed = [builder.bitcast(vector, bytes) for vector in weights]
    return [
        [dot.products_of(builder, sum, splat, vector) for sum, vector in zip(row, signed)]
        for row, splat in zip(sums, splats)
    ]


def _two_products(
    builder: Any, dot: Dot, sums: Sums, words: Sequence[ir.Value], weights: Sequence[ir.Value], /, *,
    signed_words: bool = False,
) -> Sums:  # fmt: skip
    """An instruction multiplies pairs of i16: the even bytes, and the odd ones.

    A vector of weights after the other is widened, so that the sums stay in registers.
    """
    pairs = ir.VectorType(_I16, 2 * dot.lanes)
    eight, low = equal(pairs, 8), equal(pairs, 255)

    def halves(vector: ir.Value, is_signed: bool) -> tuple[ir.Value, ir.Value]:
        if is_signed:
            return builder.ashr(builder.shl(vector, eight), eight), builder.ashr(vector, eight)
        return builder.and_(vector, low), builder.lshr(vector, eight)

    splats = [builder.bitcast(repeated(builder, word, dot.lanes), pairs) for word in words]
    added: list[list[ir.Value]] = [[] for _ in sums]
    for n, vector in enumerate(weights):
        wide = halves(builder.bitcast(vector, pairs), not signed_words)
        for row, splat, more in zip(sums, splats, added):
            numbers = halves(splat, signed_words)
            first, then = (dot.products_of(builder, *two) for two in zip(numbers, wide))
            more.append(builder.add(row[n], builder.add(first, then)))
    return added


def _two_wide_products(
    builder: Any, dot: Dot, sums: Sums, words: Sequence[ir.Value], weights: Sequence[ir.Value], /, *,
    signed_words: bool = False,
) -> Sums:  # fmt: skip
    """The same instruction for words and weights that are pairs of i16."""
    pairs = ir.VectorType(_I16, 2 * dot.lanes)
    splats = [builder.bitcast(repeated(builder, word, dot.lanes), pairs) for word in words]
    wide = [builder.bitcast(vector, pairs) for vector in weights]
    return [
        [builder.add(sum, dot.products_of(builder, splat, vector)) for sum, vector in zip(row, wide)]
        for row, splat in zip(sums, splats)
    ]


DOTS: Final[Mapping[str, Dot]] = {
    "avx512vnni": Dot(16, _four_products, "llvm.x86.avx512.vpdpbusd.512", quads=True),
    "avx512bw": Dot(16, _two_products, "llvm.x86.avx512.pmaddw.d.512", 2, _two_wide_products),
    "avxvnni": Dot(8, _four_products, "llvm.x86.avx512.vpdpbusd.256"),
    "avx2": Dot(8, _two_products, "llvm.x86.avx2.pmadd.wd", 2, _two_wide_products),
    "dotprod": Dot(4, _four_signed_products, "llvm.aarch64.neon.sdot.v4i32.v16i8", offset=128),
}
"""By the feature of the processor that has the instruction; the best first.

LLVM replaces functions that take i32, as those with vpdpbusd did at first, by those of newer versions."""


DOT: Final = next((dot for feature, dot in DOTS.items() if has(feature) and dot.lanes == VECTOR), None)
"""The form for this processor, or None if it has none of them."""
