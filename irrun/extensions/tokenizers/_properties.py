"""Unicode properties of PCRE2 as items of a class of the package ``regex``."""

from __future__ import annotations

from typing import Final

from irrun.extensions.tokenizers._packages import package

__all__ = ["BLANKS", "POSIX", "WORD", "property_of"]

WORD: Final = r"\p{L}\p{N}\p{Mn}\p{Pc}"
r"""The characters of ``\w`` with UCP. ``regex`` itself has other ones."""
BLANKS: Final = r"\t \xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
r"""The characters of ``\h``."""

POSIX: Final = {
    "alpha": r"\p{L}", "lower": r"\p{Ll}", "upper": r"\p{Lu}", "alnum": r"\p{L}\p{N}", "space": r"\s\u180e",
    "blank": BLANKS, "cntrl": r"\p{Cc}", "digit": r"\p{Nd}", "word": WORD, "xdigit": "0-9A-Fa-f", "ascii": r"\x00-\x7f",
    "punct": r"\p{P}$+<=>^`|~", "graph": r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}",
    "print": r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\p{Cf}",
}  # fmt: skip
"""The classes with names, with UCP."""

_OWN: Final = {
    "any": r"\x00-\U0010ffff", "l&": r"\p{Lu}\p{Ll}\p{Lt}", "lc": r"\p{Lu}\p{Ll}\p{Lt}", "xan": r"\p{L}\p{N}",
    "xwd": WORD, "xps": r"\s\u180e", "xsp": r"\s\u180e",
}  # fmt: skip
_CATEGORIES: Final = frozenset(
    "C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
    .lower().split()
)  # fmt: skip
_BINARY: Final = {
    "alphabetic", "alpha", "lowercase", "lower", "uppercase", "upper", "whitespace", "wspace", "space", "ideographic",
    "ideo", "emoji", "emojipresentation", "emojimodifier", "extendedpictographic", "cased", "caseignorable",
    "defaultignorablecodepoint", "diacritic", "extender", "hexdigit", "asciihexdigit", "idstart", "idcontinue",
    "xidstart", "xidcontinue", "math", "dash", "quotationmark", "radical",
}  # fmt: skip


def property_of(name: str) -> str | None:
    """Return the characters with a property of PCRE2 as items of a class, or None if there is no such property.

    PCRE2 takes the name of a script for its Script_Extensions.
    """
    key = name.lower().replace("_", "").replace(" ", "").replace("-", "")
    if key in _OWN:
        return _OWN[key]
    if key in _CATEGORIES:
        return rf"\p{{{name.capitalize()}}}"
    if key in _BINARY:
        return rf"\p{{{name}}}"
    kind, sign, value = key.partition("=" if "=" in key else ":")
    script, kind = (value, kind) if sign else (key, "scx")
    if not script.isalnum() or kind not in ("sc", "script", "scx", "scriptextensions"):
        return None
    item = rf"\p{{{'sc' if kind in ('sc', 'script') else 'scx'}={script}}}"
    regex = package("regex")
    try:
        regex.compile(item)
    except regex.error:
        return None
    return item
