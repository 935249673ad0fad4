"""CharsMapNormalization, NormalizeUnicode and CaseFold: replace characters by others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from irrun.base.deadline import in_time
from irrun.extensions.tokenizers._charsmap import CharsMap, Form, normal_form, read_charsmap
from irrun.extensions.tokenizers._strings import (
    STRINGS,
    check_strings,
    known_bytes,
    packed,
    pieces,
    skip_flags,
    string_outputs,
)
from irrun.opdef import Op, Site, Value, attr, op, opt, ports

_SKIPS: Final = "boolean"


Change = Callable[[Sequence[bytes]], Sequence[bytes]]
"""Changes each of some strings."""


def each(change: Callable[[bytes], bytes]) -> Change:
    """Return the function that changes strings one by one, and equal ones once."""

    def changed_strings(strings: Sequence[bytes]) -> Sequence[bytes]:
        memo = {text: change(text) for text in in_time(dict.fromkeys(strings))}
        return [memo[text] for text in strings]

    return changed_strings


def changed(
    begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, skips: np.ndarray | None, change: Change
) -> tuple[np.ndarray, ...]:
    """Return a string tensor with ``change`` applied to the strings that are not skipped, and the skip flags."""
    strings = pieces(begins, ends, chars)
    if skips is None:
        return packed(change(strings), begins.shape)
    if skips.size != len(strings):
        Site().refuse("C2", f"there are {skips.size} skip flags, but {len(strings)} strings")
    if not skips.any():
        return (*packed(change(strings), begins.shape), skips)
    flags = skips.ravel().tolist()
    own = iter(change([text for text, skip in zip(strings, flags) if not skip]))
    return (*packed([text if skip else next(own) for text, skip in zip(strings, flags)], begins.shape), skips)


def changed_outputs(at: Site, begins: Value, ends: Value, chars: Value, skips: Value | None) -> tuple[Value, ...]:
    """Return the outputs of ``changed``: C1 is the clause of the strings, C2 that of the skip flags."""
    shape = check_strings(at, begins, ends, chars)
    skip_flags(at, skips, shape, "C2")
    return string_outputs(shape) if skips is None else (*string_outputs(shape), skips)


class StringMap(Op):
    """The ports, the shape rule and the kernel of operations that change strings, and know no other input.

    C1 is the clause of the strings, C2 that of the skip flags. An operation with skip flags declares the port.
    """

    inputs = ports(**STRINGS)
    outputs = 3
    checked = False

    def infer(
        self, at: Site, begins: Value, ends: Value, chars: Value, skips: Value | None = None
    ) -> tuple[Value, ...]:
        return changed_outputs(at, begins, ends, chars, skips)

    def run(
        self, begins: np.ndarray, ends: np.ndarray, chars: np.ndarray, skips: np.ndarray | None = None
    ) -> tuple[np.ndarray, ...]:
        return changed(begins, ends, chars, skips, self.change)

    def change(self, strings: Sequence[bytes]) -> Sequence[bytes]:
        """Return each string changed."""
        raise NotImplementedError


_SPACES: Final = re.compile(" +")


@op("CharsMapNormalization")
class CharsMapNormalization(Op):
    """Normalise each string as SentencePiece does: replace the longest known sequence of characters at each place.

    The map is that of ``normalization_form`` and ``case_fold``, or ``charsmap``, the precompiled map of a SentencePiece
    model. Nothing is done to a replacement again, so that marks are neither reordered nor composed across the sequences
    of the map. Strings whose flag in ``skips`` is true are copied. The 4th input is ``skips`` if there is a 5th, or if
    ``normalization_form`` is not empty, and ``charsmap`` otherwise.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  There is one skip flag for each string, of type boolean.
    C3  ``charsmap`` is a precompiled map, of type u8.
    C4  There is a map: ``charsmap``, a form, or ``case_fold``.
    """

    add_dummy_prefix = attr.bool(default=False)
    remove_extra_whitespaces = attr.bool(default=True)
    escape_whitespaces = attr.bool(default=False)
    normalization_form = attr.choice("", "identity", "nfc", "nfd", "nfkc", "nfkd", default="")
    case_fold = attr.bool(default=False)
    nmt = attr.bool(default=False)
    inputs = ports(**STRINGS, skips=opt("boolean u8"), charsmap=opt("u8"))
    outputs = None  # the skip flags are the 4th output if they are an input
    checked = False

    def infer(
        self,
        at: Site,
        begins: Value,
        ends: Value,
        chars: Value,
        skips: Value | None = None,
        charsmap: Value | None = None,
    ) -> tuple[Value, ...]:
        skips, charsmap = self._roles(skips, charsmap)
        at.require(skips is None or skips.type.name in ("boolean", "dynamic"), "C2", "skips is u8, not boolean")
        outputs = changed_outputs(at, begins, ends, chars, skips)
        at.require(charsmap is None or charsmap.type.name in ("u8", "dynamic"), "C3", "charsmap is boolean, not u8")
        self._map(at, charsmap is not None, known_bytes(charsmap))
        return outputs

    def _roles(self, skips: Any, charsmap: Any) -> tuple[Any, Any]:
        """Return the skip flags and the map: the only one of two optional inputs may be either."""
        if charsmap is None and not self.normalization_form:
            return None, skips
        return skips, charsmap

    def _map(self, at: Site, has_map: bool, data: bytes | None) -> CharsMap | None:
        """Return the map, or None if its contents are not known."""
        if has_map:
            try:
                return None if data is None else read_charsmap(data)
            except ValueError as error:  # UnicodeDecodeError, too
                at.refuse("C3", f"charsmap is no precompiled map: {error}")
        form = self.normalization_form.upper()
        at.require(bool(form and form != "IDENTITY") or self.case_fold, "C4", "the layer has no map")
        return normal_form(None if form in ("", "IDENTITY") else cast(Form, form), self.case_fold)

    def run(
        self,
        begins: np.ndarray,
        ends: np.ndarray,
        chars: np.ndarray,
        skips: np.ndarray | None = None,
        charsmap: np.ndarray | None = None,
    ) -> tuple[np.ndarray, ...]:
        skips, charsmap = self._roles(skips, charsmap)
        chars_map = self._map(Site(), charsmap is not None, None if charsmap is None else charsmap.tobytes())
        assert chars_map is not None
        return changed(begins, ends, chars, skips, lambda strings: self._changed(chars_map, strings))

    def _changed(self, chars_map: CharsMap, strings: Sequence[bytes]) -> Sequence[bytes]:
        results = chars_map.normalise_all(strings)
        if self.remove_extra_whitespaces:
            results = [_SPACES.sub(" ", text.strip(" ")) if " " in text else text for text in results]
        if self.add_dummy_prefix:
            results = [" " + text if text else text for text in results]
        if self.escape_whitespaces:
            results = [text.replace(" ", "▁") for text in results]
        return list(map(str.encode, results))


@op("NormalizeUnicode")
class NormalizeUnicode(StringMap):
    """Replace the characters of each string by those of a Unicode normal form.

    As in CharsMapNormalization, marks are neither reordered nor composed across the known sequences. Files before
    2024.5 hold this operation.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  There is one skip flag for each string.
    """

    normalization_form = attr.choice("NFC", "NFD", "NFKC", "NFKD")
    inputs = ports(**STRINGS, skips=opt("boolean"))
    outputs = None

    def change(self, strings: Sequence[bytes]) -> Sequence[bytes]:
        chars_map = normal_form(cast(Form, self.normalization_form), False)
        return list(map(str.encode, chars_map.normalise_all(strings)))


@op("CaseFold")
class CaseFold(StringMap):
    """Fold the case of each string: of all characters with ``encoding`` utf-8, of ASCII letters without it.

    Each character becomes one other (simple case folding): ``ẞ`` becomes ``ß``, which stays. With ``lower`` false,
    ASCII letters become upper case. Files before 2024.5 hold this operation.

    C1  The begins and ends of the strings have one shape, and each string lies within ``chars``, which is 1D.
    C2  There is one skip flag for each string.
    C3  ``lower`` is false only without ``encoding``.
    """

    encoding = attr.choice("", "utf-8", default="utf-8")
    lower = attr.bool(default=True)
    inputs = ports(**STRINGS, skips=opt("boolean"))
    outputs = None

    def infer(
        self, at: Site, begins: Value, ends: Value, chars: Value, skips: Value | None = None
    ) -> tuple[Value, ...]:
        at.require(self.lower or not self.encoding, "C3", f'lower is false, and encoding is "{self.encoding}"')
        return super().infer(at, begins, ends, chars, skips)

    def change(self, strings: Sequence[bytes]) -> Sequence[bytes]:
        return each(self._changed)(strings)

    def _changed(self, text: bytes) -> bytes:
        if not self.encoding:
            return text.lower() if self.lower else text.upper()
        return normal_form(None, True).normalise(text).encode()
