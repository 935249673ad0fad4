"""VocabEncoder and VocabDecoder: whole strings as ids, and ids as strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.tokenizers._strings import (
    I32,
    STRINGS,
    check_pieces,
    check_strings,
    gathered,
    pieces,
    string_outputs,
)
from irrun.extensions.tokenizers._vocabulary import cached, known_arrays, vocabulary
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.types import Dim, PartialShape


@op("VocabEncoder")
class VocabEncoder(Op):
    """Return the value of each string in a table, or ``default`` for a string that the table lacks.

    Of equal keys, the first one counts.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The keys are a string tensor: begins and ends have one shape, and each key lies within its chars.
    C3  There is one value for each key.
    C4  ``default`` is one number.
    """

    inputs = ports(
        **STRINGS, vocab_begins="i32", vocab_ends="i32", vocab_chars="u8", values="T_VALUE", default="T_VALUE"
    )
    types = {"T_VALUE": "i32 i64"}
    checked = False

    def infer(self, at: Site, *ports: Value) -> Value:
        shape = check_strings(at, *ports[:3])
        keys, values = check_strings(at, *ports[3:6], label="C2", what="vocab_"), ports[6]
        at.require(keys.meet(values.shape) is not None, "C3", f"vocab_begins is {keys}, but values is {values.shape}")
        count = ports[7].shape.count()
        at.require(count.lo <= 1 <= count.hi, "C4", f"default is {ports[7].shape}, not one number")
        return Value(values.type, shape)

    def prepare(self, request: Request) -> Kernel | None:
        arrays = known_arrays(request, 3)
        if arrays is None:
            return None
        table = self._table(arrays[:4])
        return Kernel(lambda *inputs: self._run(table, arrays[4], *inputs[:3]))

    def run(self, *arrays: np.ndarray) -> np.ndarray:
        return self._run(self._table(arrays[3:7]), arrays[7], *arrays[:3])

    def _table(self, arrays: Sequence[np.ndarray]) -> dict[bytes, int]:
        def build() -> dict[bytes, int]:
            keys, values = vocabulary(*arrays[:3], label="C2"), arrays[3].ravel().tolist()
            Site().require(len(keys) == len(values), "C3", f"{len(keys)} keys have {len(values)} values")
            return dict(zip(reversed(keys), reversed(values)))

        return cached(build, "keys", arrays)

    def _run(
        self, table: dict[bytes, int], default: np.ndarray, begins: np.ndarray, ends: np.ndarray, chars: np.ndarray
    ) -> np.ndarray:
        Site().require(default.size == 1, "C4", f"default has {default.size} elements")
        other = default.ravel().tolist()[0]
        found = [table.get(text, other) for text in pieces(begins, ends, chars)]
        return np.array(found, default.dtype).reshape(begins.shape)


@op("VocabDecoder")
class VocabDecoder(Op):
    """Return the texts of ids as a ragged string tensor: a row for each row of ``ids``, a string for each id.

    Ids in ``skip_ids`` and ids that the vocabulary lacks become empty strings. Without the input, they are those of the
    attribute ``skip_tokens``. A row without ids is one empty string.

    C1  ``ids`` is 2D.
    C2  The vocabulary is a string tensor: begins and ends have one shape, and each token lies within its chars.
    C3  ``skip_ids`` is 1D.
    """

    skip_tokens = attr.ints(default=())
    inputs = ports(ids="i32", vocab_begins="i32", vocab_ends="i32", vocab_chars="u8", skip_ids=opt("i32"))
    outputs = 5
    checked = False

    def infer(
        self,
        at: Site,
        ids: Value,
        vocab_begins: Value,
        vocab_ends: Value,
        vocab_chars: Value,
        skip_ids: Value | None = None,
    ) -> tuple[Value, ...]:
        at.require(ids.rank in (None, 2), "C1", f"ids is {ids.shape}, not 2D")
        check_strings(at, vocab_begins, vocab_ends, vocab_chars, label="C2", what="vocab_")
        rank = None if skip_ids is None else skip_ids.rank
        at.require(rank in (None, 1), "C3", f"skip_ids is of rank {rank}, not 1D")
        rows, columns = (ids.shape[0], ids.shape[1]) if ids.rank == 2 else (Dim.unknown(), Dim.unknown())
        row, strings = PartialShape.of([rows]), PartialShape.of([rows * columns.max(1)])
        return Value(I32, row), Value(I32, row), *string_outputs(strings)

    def run(
        self,
        ids: np.ndarray,
        vocab_begins: np.ndarray,
        vocab_ends: np.ndarray,
        vocab_chars: np.ndarray,
        skip_ids: np.ndarray | None = None,
    ) -> tuple[np.ndarray, ...]:
        check_pieces(Site(), vocab_begins, vocab_ends, vocab_chars.size, "C2", "vocab_")
        rows, columns = ids.shape
        flat = ids.ravel() if columns else np.full(rows, -1, np.int32)
        columns = max(columns, 1)
        skipped = np.array(self.skip_tokens, np.int64) if skip_ids is None else skip_ids
        known = (flat >= 0) & (flat < vocab_begins.size) & ~np.isin(flat, skipped)
        places = np.where(known, flat, 0)
        firsts = np.where(known, vocab_begins.ravel()[places], 0) if vocab_begins.size else np.zeros(flat.size, int)
        lasts = np.where(known, vocab_ends.ravel()[places], 0) if vocab_begins.size else firsts
        indices, offsets = gathered(firsts, lasts)
        bounds = np.arange(rows + 1, dtype=np.int32) * np.int32(columns)
        begins, ends = offsets[:-1].astype(np.int32), offsets[1:].astype(np.int32)
        return bounds[:-1], bounds[1:], begins, ends, vocab_chars[indices]

    def working(self, *inputs: np.ndarray) -> int:
        """Return the bytes of the texts: an id may stand for the whole of the vocabulary's bytes."""
        ids, begins, ends = inputs[:3]
        longest = int((ends.astype(np.int64) - begins).max()) if ends.size else 0
        return ids.size * max(longest, 0) * 9
