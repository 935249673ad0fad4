"""The IR in RELAX NG: for each operation its versions, attributes, bodies and numbers of ports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lxml.builder import ElementMaker  # pyright: ignore[reportMissingImports]  (no stubs)

from irrun.inference.bind import is_required, versions_of
from irrun.ir.schema.vocabulary import (
    CONDITION,
    DIM,
    FOREIGN,
    INTEGER,
    PRECISION,
    PURPOSE,
    SLICING,
    UNNUMBERED,
    Texts,
    body_parts,
    described,
    ignored,
    serialized,
    summary,
    texts_of,
)
from irrun.model import VERSIONS
from irrun.opdef import Op, all_ops, arity, is_custom

__all__ = ["relax_ng"]

_NAMESPACE: Final = "http://relaxng.org/ns/structure/1.0"
_NOTES: Final = "http://relaxng.org/ns/compatibility/annotations/1.0"
_E: Final[Any] = ElementMaker(namespace=_NAMESPACE, nsmap={None: _NAMESPACE, "a": _NOTES})
_A: Final[Any] = ElementMaker(namespace=_NOTES, nsmap={"a": _NOTES})


def relax_ng() -> str:
    """Return a RELAX NG grammar (XML syntax) of IR versions 10 and 11 with all registered operations."""
    operations = all_ops()
    types: dict[Texts, str] = {}
    grammar = _E.grammar(
        _E.start(_E.ref(name="net")),
        datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes",
    )
    nets = [_E.group(_attribute("version", _E.value(str(v), type="token")), _parts(v)) for v in reversed(VERSIONS)]
    grammar.append(_define("net", _E.element(_optional(_attribute("name")), _E.choice(*nets), name="net")))
    for version in VERSIONS:
        results = {_name(cls, version): cls for cls in operations if cls.type == "Result"}
        others = {_name(cls, version): cls for cls in operations if cls.type != "Result"}
        grammar.append(_define(f"operation{version}", _E.choice(*(_E.ref(name=name) for name in others))))
        grammar.append(_define(f"layers{version}", _layers(version, *results)))
        for tag in ("body", "then_body", "else_body"):
            content = (_optional(_attribute("name")), _parts(version))
            grammar.append(_define(f"{tag}{version}", _E.element(*content, name=tag)))
        for cls in operations:
            if version == VERSIONS[0] or _name(cls, version) != _name(cls, VERSIONS[0]):
                grammar.append(_define(_name(cls, version), _operation(cls, version, types)))
    grammar.extend(_shared())
    grammar.extend(_define(name, _texts(texts)) for texts, name in types.items())
    return serialized(grammar)


def _layers(version: int, result: str) -> Any:
    """Return the pattern of ``<layers>``, at least one of which is a Result (the definition ``result``)."""
    operation = f"operation{version}"
    return _E.element(
        _E.zeroOrMore(_layer(_E.ref(name=operation))),
        _layer(_E.ref(name=result)),
        _E.zeroOrMore(_layer(_E.choice(_E.ref(name=operation), _E.ref(name=result)))),
        name="layers",
    )


def _layer(operation: Any) -> Any:
    names = (_attribute("name"), _optional(_attribute("output_names")))
    return _E.element(_attribute("id", _texts(INTEGER)), *names, operation, name="layer")


def _name(cls: type[Op], version: int) -> str:
    """Return the name of the definition of an operation. One that is the same in all IR versions has one definition."""
    differs = body_parts(cls) or len({tuple(_required(cls, v)) for v in VERSIONS}) > 1
    name = f"{cls.__module__}.{cls.type}-{cls.since}" if is_custom(cls) else f"{cls.type}-{cls.since}"
    return f"{name}.{version}" if differs else name


def _operation(cls: type[Op], version: int, types: dict[Texts, str]) -> Any:
    """Return the pattern of the rest of a layer of this operation. Sets of texts get a name in ``types``."""
    parts = [_optional(_E.ref(name="rt_info"))]
    attributes = list(_attributes(cls, version, types))
    data = _E.element(*(attributes or [_E.empty()]), name="data")
    parts.append(data if any(_required(cls, version)) else _optional(data))
    spans = [arity(revision.inputs or cls.inputs) for revision in cls.revisions] or [arity(cls.inputs)]
    most = [most for _, most in spans if most is not None]
    parts.append(_ports("input", min(least for least, _ in spans), max(most) if len(most) == len(spans) else None))
    parts.append(_ports("output", min(1, cls.outputs or 0), cls.outputs))
    parts += [_body_part(tag, version, counts=cls.type == "Loop") for tag in body_parts(cls)]
    values: list[Any] = [_E.value(v, type="token") for v in versions_of(cls)]
    if is_custom(cls):
        values.append(_pattern(UNNUMBERED))
    return _E.group(
        _attribute("type", _A.documentation(summary(cls)), _E.value(cls.type, type="token")),
        _attribute("version", _E.choice(*values) if len(values) > 1 else values[0]),
        _E.interleave(*parts),
    )


def _body_part(tag: str, version: int, *, counts: bool) -> Any:
    """Return the pattern of a body, a port map or the back edges. A port map that ``counts`` has a condition."""
    if tag.endswith("body"):
        return _E.ref(name=f"{tag}{version}")
    if tag == "back_edges":
        return _optional(_E.element(_E.zeroOrMore(_E.ref(name="back_edge")), name=tag))
    entries = _E.zeroOrMore(_E.ref(name="entry"))
    if not counts:
        return _optional(_E.element(entries, name=tag))
    return _E.element(entries, _E.ref(name="condition"), _E.zeroOrMore(_E.ref(name="entry")), name=tag)


def _required(cls: type[Op], version: int) -> list[str]:
    """Return the attributes that a layer of this operation must have."""
    return [name for name, a in cls.attributes.items() if name in cls.assumed or is_required(cls.type, a, version)]


def _attributes(cls: type[Op], version: int, types: dict[Texts, str]) -> Iterator[Any]:
    required = _required(cls, version)
    for key, attribute in cls.attributes.items():
        texts = texts_of(attribute)
        name = types.setdefault(texts, f"{attribute.kind}.{len(types)}") if texts != Texts() else None
        spellings = [
            _attribute(spelling, _A.documentation(described(attribute)), *([_E.ref(name=name)] if name else []))
            for spelling in (attribute.name, *attribute.aliases)
        ]
        pattern = _E.choice(*spellings) if len(spellings) > 1 else spellings[0]
        yield pattern if key in required else _optional(pattern)
    for name in ignored(cls):
        yield _optional(_attribute(name))


def _ports(tag: str, least: int, most: int | None) -> Any:
    """Return the pattern of ``<input>`` or ``<output>`` with ``least`` to ``most`` ports (None: any number)."""
    ports = [_E.ref(name="port") for _ in range(least)]
    if most is None:
        ports.append(_E.zeroOrMore(_E.ref(name="port")))
    else:
        ports += [_optional(_E.ref(name="port")) for _ in range(most - least)]
    element = _E.element(*(ports or [_E.empty()]), name=tag)
    return element if least else _optional(element)


def _parts(version: int) -> Any:
    """Return the pattern of the children of a ``<net>`` or a body."""
    foreign = [_optional(_E.ref(name=tag)) for tag in FOREIGN]
    return _E.interleave(_E.ref(name=f"layers{version}"), _optional(_E.ref(name="edges")), *foreign)


def _shared() -> Iterator[Any]:
    """Yield the definitions that no operation changes."""
    ends = [_attribute(name, _texts(INTEGER)) for name in ("from-layer", "from-port", "to-layer", "to-port")]
    yield _define("edges", _E.element(_E.zeroOrMore(_E.element(*ends, name="edge")), name="edges"))
    back = [_attribute(name, _texts(INTEGER)) for name in ("from-layer", "to-layer")]
    yield _define("back_edge", _E.element(*back, name="edge"))
    entry = [_attribute(name, _texts(INTEGER)) for name in ("external_port_id", "internal_layer_id")]
    entry += [_optional(_attribute(name, _texts(INTEGER))) for name in SLICING]
    yield _define("ends", _E.group(*entry))
    either = _E.choice(_E.name("input"), _E.name("output"))
    purpose = _attribute("purpose", _texts(PURPOSE))
    yield _define("entry", _E.element(either, _E.ref(name="ends"), _optional(purpose)))
    condition = _attribute("purpose", _E.value(CONDITION, type="token"))
    yield _define("condition", _E.element(_E.ref(name="ends"), condition, name="output"))
    yield _define(
        "port",
        _E.element(
            _attribute("id", _texts(INTEGER)),
            _optional(_attribute("precision", _E.ref(name="precision"))),
            _optional(_attribute("names")),
            _E.interleave(_E.zeroOrMore(_E.element(_texts(DIM), name="dim")), _optional(_E.ref(name="rt_info"))),
            name="port",
        ),
    )
    yield _define("precision", _texts(PRECISION))
    for tag in FOREIGN:
        yield _define(tag, _E.element(_E.ref(name="anything"), name=tag))
    any_attribute = _E.attribute(_E.anyName())
    any_element = _E.element(_E.anyName(), _E.ref(name="anything"))
    yield _define("anything", _E.zeroOrMore(_E.choice(any_attribute, _E.text(), any_element)))


def _define(name: str, *patterns: Any) -> Any:
    return _E.define(*patterns, name=name)


def _optional(pattern: Any) -> Any:
    return _E.optional(pattern)


def _attribute(name: str, *content: Any) -> Any:
    return _E.attribute(*content, name=name)


def _texts(texts: Texts) -> Any:
    """Return the pattern of a set of texts."""
    patterns = [*(_E.value(word, type="token") for word in texts.words), *map(_pattern, texts.patterns)]
    return _E.choice(*patterns) if len(patterns) > 1 else patterns[0]


def _pattern(text: str) -> Any:
    return _E.data(_E.param(text, name="pattern"), type="token")
