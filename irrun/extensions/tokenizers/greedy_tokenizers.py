"""WordpieceTokenizer and TrieTokenizer: the longest known token at each place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irrun.extensions.tokenizers._strings import RAGGED, check_ragged, check_strings, pieces, rows_of
from irrun.extensions.tokenizers._vocabulary import LongestMatch, cached, known_arrays, tokenized, vocabulary
from irrun.extensions.tokenizers.bpe_tokenizer import ids_outputs
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports


@op("WordpieceTokenizer")
class WordpieceTokenizer(Op):
    """Return the ids of the longest token that begins each word of a row, and then of the longest that continue it.

    A token that begins with ``suffix_indicator`` continues a word. A word that is longer than ``max_bytes_per_word``,
    or that does not consist of tokens, is one ``unk_token_id``.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  The vocabulary is a string tensor: begins and ends have one shape, and each token lies within its chars.
    C4  ``unk_token_id`` is one number, the id of a token.
    """

    suffix_indicator = attr.str(default="##")
    max_bytes_per_word = attr.int(default=100)
    inputs = ports(**RAGGED, vocab_begins="i32", vocab_ends="i32", vocab_chars="u8", unk_token_id="i32 i64")
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        rows = check_ragged(at, ports)
        tokens = check_strings(at, *ports[5:8], label="C3", what="vocab_").count()
        unknown = ports[8]
        at.require(unknown.shape.count().lo <= 1 <= unknown.shape.count().hi, "C4", f"unk_token_id is {unknown.shape}")
        id = unknown.scalar()
        at.require(id is None or 0 <= id < tokens.hi, "C4", f"unk_token_id is {id}, the vocabulary has {tokens} tokens")
        return ids_outputs(rows)

    def prepare(self, request: Request) -> Kernel | None:
        arrays = known_arrays(request, 5)
        if arrays is None:
            return None
        first, later = self._tables(arrays[:3])
        unknown, memo = int(arrays[3].ravel()[0]), {}
        return Kernel(lambda *inputs: self._run(first, later, unknown, memo, *inputs[:5]))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        first, later = self._tables(arrays[5:8])
        return self._run(first, later, int(arrays[8].ravel()[0]), {}, *arrays[:5])

    def _tables(self, arrays: Sequence[np.ndarray]) -> tuple[LongestMatch, LongestMatch]:
        """Return the tokens that begin a word and those that continue it."""
        suffix = self.suffix_indicator.encode()

        def build() -> tuple[LongestMatch, LongestMatch]:
            first: dict[bytes, int] = {}
            later: dict[bytes, int] = {}
            for id, text in enumerate(vocabulary(*arrays)):
                if text.startswith(suffix):
                    later[text[len(suffix) :]] = id
                else:
                    first[text] = id
            return LongestMatch(first), LongestMatch(later)

        return cached(build, ("wordpiece", suffix), arrays)

    def _run(
        self,
        first: LongestMatch,
        later: LongestMatch,
        unknown: int,
        memo: dict[bytes, tuple[int, ...]],
        row_begins: np.ndarray,
        row_ends: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        chars: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        def ids(text: bytes) -> list[int]:
            if len(text) > self.max_bytes_per_word:
                return [unknown]
            out: list[int] = []
            at = 0
            while at < len(text):
                found = (later if at else first).at(text, at)
                if found is None:
                    return [unknown]
                out.append(found[0])
                at = found[1]
            return out or [unknown]

        strings = pieces(begins, ends, chars)
        rows_of(row_begins, row_ends, len(strings))
        return tokenized(row_begins, row_ends, strings, ids, memo)


@op("TrieTokenizer")
class TrieTokenizer(Op):
    """Return the ids of the tokens of each row: the longest token at each place (RWKV).

    Of equal texts in the vocabulary, the last one counts.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  The row begins and row ends have one shape, and each row lies within the strings.
    C3  The vocabulary is a string tensor: begins and ends have one shape, and each token lies within its chars.
    C4  There is one id for each token.
    C5  A token begins at each place that is reached.
    """

    inputs = ports(**RAGGED, vocab_begins="i32", vocab_ends="i32", vocab_chars="u8", ids="i32")
    outputs = 3
    checked = False

    def infer(self, at: Site, *ports: Value) -> tuple[Value, ...]:
        rows = check_ragged(at, ports)
        tokens, ids = check_strings(at, *ports[5:8], label="C3", what="vocab_"), ports[8].shape
        at.require(tokens.meet(ids) is not None, "C4", f"vocab_begins is {tokens}, but ids is {ids}")
        return ids_outputs(rows)

    def prepare(self, request: Request) -> Kernel | None:
        arrays = known_arrays(request, 5)
        if arrays is None:
            return None
        table, memo = self._table(arrays), {}
        return Kernel(lambda *inputs: self._run(table, memo, *inputs[:5]))

    def run(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(self._table(arrays[5:]), {}, *arrays[:5])

    def _table(self, arrays: Sequence[np.ndarray]) -> LongestMatch:
        def build() -> LongestMatch:
            tokens = vocabulary(*arrays[:3])
            Site().require(arrays[3].size == len(tokens), "C4", f"{len(tokens)} tokens have {arrays[3].size} ids")
            return LongestMatch(dict(zip(tokens, arrays[3].ravel().tolist())))

        return cached(build, "trie", arrays)

    def _run(
        self,
        table: LongestMatch,
        memo: dict[bytes, tuple[int, ...]],
        row_begins: np.ndarray,
        row_ends: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        chars: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        def ids(text: bytes) -> list[int]:
            out: list[int] = []
            at = 0
            while at < len(text):
                found = table.at(text, at)
                if found is None:
                    Site().refuse("C5", f"no token begins at byte {at} of {text[:40]!r}")
                out.append(found[0])
                at = found[1]
            return out

        strings = pieces(begins, ends, chars)
        rows_of(row_begins, row_ends, len(strings))
        return tokenized(row_begins, row_ends, strings, ids, memo)
