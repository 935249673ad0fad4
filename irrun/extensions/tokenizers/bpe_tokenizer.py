"""BPETokenizer: byte pair encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from irrun.extensions.tokenizers._merging import PairEncoding
from irrun.extensions.tokenizers._strings import I32, RAGGED, check_ragged, check_strings, pieces, rows_of
from irrun.extensions.tokenizers._vocabulary import CAPACITY, cached, known_arrays, tokenized, vocabulary
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.types import Dim, PartialShape

_INPUTS: Final = (11, 14, 15, 18)
"""The possible numbers of inputs: merges as one list or two, without and with added tokens."""
_FIRST_TABLE: Final = 5


def ids_outputs(rows: PartialShape) -> tuple[Value, ...]:
    """Return the outputs of a tokenization: row begins, row ends and ids."""
    return Value(I32, rows), Value(I32, rows), Value(I32, PartialShape.of([Dim.unknown()]))


@op("BPETokenizer")
class BPETokenizer(Op):
    """Return the ids of the tokens of each row by byte pair encoding.

    A string is first cut into the longest tokens that no merge makes; a byte that begins none becomes the token
    ``<0xNN>`` with ``byte_fallback``, else ``unk_token``, or vanishes if the vocabulary has no ``unk_token``. Then
    neighbours are merged: the pair of the lowest rank first, of equal ranks the pair that arose first. ``end_suffix``
    is added to each string. Added tokens with a text that the vocabulary lacks join it. Of equal texts in the
    vocabulary, the last one counts.

    The merges are three inputs, a list of texts ``left right``, or six, the lists of left and right texts.
    ``cache_capacity`` and ``fuse_unk`` change no result: irrun keeps the ids of up to 100,000 words.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  The vocabulary is a string tensor: begins and ends have one shape, and each token lies within its chars.
    C4  The merges are string tensors, with as many left as right texts; the vocabulary has both and their joint text.
    C5  There is one id for each added token.
    C6  The layer has 11, 14, 15 or 18 inputs.
    """

    unk_token = attr.str(default="")
    fuse_unk = attr.bool(default=False)
    suffix_indicator = attr.str(default="")
    end_suffix = attr.str(default="")
    byte_fallback = attr.bool(default=False)
    cache_capacity = attr.int(default=20000)
    inputs = ports(
        **RAGGED, vocab_begins="i32", vocab_ends="i32", vocab_chars="u8",
        merges_begins="i32", merges_ends="i32", merges_chars="u8",
        right_begins=opt("i32"), right_ends=opt("i32"), right_chars=opt("u8"),
        added_begins=opt("i32"), added_ends=opt("i32"), added_chars=opt("u8 i32"), added_ids=opt("i32"),
    )  # fmt: skip
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value | None) -> tuple[Value, ...]:
        given = [port for port in ports if port is not None]
        at.require(len(given) in _INPUTS, "C6", f"the layer has {len(given)} inputs")
        rows = check_ragged(at, given)
        check_strings(at, *given[5:8], label="C3", what="vocab_")
        self._check_tables(at, given)
        return ids_outputs(rows)

    def _check_tables(self, at: Site, given: Sequence[Value]) -> None:
        left, right, added, ids = _tables(given)
        shape = check_strings(at, left[0], left[1], left[2], label="C4", what="merges_")
        if right:
            other = check_strings(at, right[0], right[1], right[2], label="C4", what="right_")
            at.require(shape.meet(other) is not None, "C4", f"there are {shape} left and {other} right texts")
        if added:
            shape = check_strings(at, added[0], added[1], added[2], label="C5", what="added_")
            at.require(shape.meet(ids.shape) is not None, "C5", f"added_begins is {shape}, but added_ids {ids.shape}")
        arrays = [value.exact for value in given[_FIRST_TABLE:]]
        known = [array for array in arrays if array is not None]
        if len(known) == len(arrays):
            self._encoding(known)  # it refuses merges whose texts the vocabulary lacks, and ``prepare`` uses it again

    def prepare(self, request: Request) -> Kernel | None:
        arrays = known_arrays(request, _FIRST_TABLE)
        if arrays is None:
            return None
        encoding = self._encoding(arrays)
        memo: dict[bytes, tuple[int, ...]] = {}
        return Kernel(lambda *inputs: self._run(encoding, memo, *inputs[:5]))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        given = [array for array in arrays if array is not None]
        return self._run(self._encoding(given[_FIRST_TABLE:]), {}, *given[:5])

    def _encoding(self, arrays: Sequence[np.ndarray]) -> PairEncoding:
        def build() -> PairEncoding:
            given: list[Any] = [*(None,) * _FIRST_TABLE, *arrays]
            left, right, added, ids = _tables(given)
            merges = _pairs(
                pieces(*left, label="C4", what="merges_"), pieces(*right, label="C4", what="right_") if right else None
            )
            extra = pieces(*added, label="C5", what="added_") if added else []
            fits = not added or ids.size == len(extra)
            Site().require(fits, "C5", f"there are {len(extra)} added tokens and {ids.size} ids")
            return PairEncoding(
                vocabulary(*given[5:8]), merges, list(zip(extra, ids.ravel().tolist() if added else [])),
                unknown=self.unk_token.encode(), suffix=self.end_suffix.encode(), byte_fallback=self.byte_fallback,
            )  # fmt: skip

        return cached(build, ("bpe", self.unk_token, self.end_suffix, self.byte_fallback), arrays)

    def _run(
        self,
        encoding: PairEncoding,
        memo: dict[bytes, tuple[int, ...]],
        row_begins: np.ndarray,
        row_ends: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        chars: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        strings = pieces(begins, ends, chars)
        rows_of(row_begins, row_ends, len(strings))

        def ids(text: bytes) -> list[int]:
            words = encoding.words(text)
            if words is None:
                return encoding.ids(text)
            out: list[int] = []
            for word in words:
                known = memo.get(word)
                if known is None:
                    known = tuple(encoding.ids(word))
                    if len(memo) < CAPACITY:
                        memo[word] = known
                out += known
            return out

        return tokenized(row_begins, row_ends, strings, ids, memo)


def _tables(given: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any], Any]:
    """Return the left texts of the merges, the right ones, the added tokens and their ids; ``()`` where absent."""
    count = len(given)
    right = given[11:14] if count in (14, 18) else ()
    added = given[count - 4 : count - 1] if count in (15, 18) else ()
    return given[8:11], right, added, given[-1]


def _pairs(left: Sequence[bytes], right: Sequence[bytes] | None) -> list[tuple[bytes, bytes]]:
    """Return the merges as pairs. Raises Refused (C4) for a merge that is no pair."""
    if right is not None:
        if len(left) != len(right):
            Site().refuse("C4", f"there are {len(left)} left and {len(right)} right texts")
        return list(zip(left, right))
    found: list[tuple[bytes, bytes]] = []
    for rank, text in enumerate(left):
        first, space, second = text.partition(b" ")
        if not space:
            Site().refuse("C4", f"merge {rank} is {text!r}, not two texts with a space between them")
        found.append((first, second))
    return found
