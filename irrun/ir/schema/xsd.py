"""The IR in XSD 1.0: the attributes of all operations in one, and ids that are unique and refer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lxml.builder import ElementMaker  # pyright: ignore[reportMissingImports]  (no stubs)

from irrun.inference.bind import versions_of
from irrun.ir.schema.vocabulary import (
    DIM,
    FOREIGN,
    INTEGER,
    PRECISION,
    PURPOSE,
    SLICING,
    UNNUMBERED,
    Texts,
    described,
    ignored,
    serialized,
    summary,
    texts_of,
)  # fmt: skip
from irrun.model import VERSIONS
from irrun.opdef import Op, all_ops

__all__ = ["xsd"]

_NAMESPACE: Final = "http://www.w3.org/2001/XMLSchema"
_E: Final[Any] = ElementMaker(namespace=_NAMESPACE, nsmap={"xs": _NAMESPACE})

_BODIES: Final = ("body", "then_body", "else_body")
_MAPS: Final = ("port_map", "then_port_map", "else_port_map")


def xsd() -> str:
    """Return an XML Schema (XSD 1.0) of IR versions 10 and 11 with all registered operations."""
    operations = all_ops()
    schema = _E.schema(_net("net", _attribute("version", "irVersion", required=True)))
    schema.append(_simple("irVersion", Texts(tuple(str(v) for v in VERSIONS))))
    schema.append(_simple("integer", INTEGER))
    schema.append(_simple("dim", DIM))
    schema.append(_simple("precision", PRECISION))
    schema.append(_simple("purpose", PURPOSE))
    schema.append(_simple("layerType", Texts(tuple(_summaries(operations))), _summaries(operations)))
    versions = dict.fromkeys(version for cls in operations for version in versions_of(cls))
    schema.append(_simple("operationSet", Texts(tuple(versions), (UNNUMBERED,))))
    schema.extend(_structure())
    schema.extend(_data(operations))
    return serialized(schema)


def _summaries(operations: list[type[Op]]) -> dict[str, str]:
    """Return the documentation of each layer type: that of its newest version."""
    return {cls.type: summary(cls) for cls in operations}


def _net(tag: str, *attributes: Any) -> Any:
    """Return the declaration of ``<net>`` or of a body, with what holds between its layers and edges."""
    children = [
        _child("layers", "layers", required=True), _child("edges", "edges"),
        *(_child(name, "anything") for name in FOREIGN),
    ]  # fmt: skip
    content = _E.complexType(_E.all(*children), _attribute("name", "xs:string"), *attributes)
    key = _E.key(_E.selector(xpath="layers/layer"), _E.field(xpath="@id"), name=f"{tag}.layer")
    refs = [
        _E.keyref(
            _E.selector(xpath="edges/edge"), _E.field(xpath=f"@{end}-layer"), name=f"{tag}.{end}", refer=f"{tag}.layer"
        )
        for end in ("from", "to")
    ]
    fed = _E.unique(
        _E.selector(xpath="edges/edge"), _E.field(xpath="@to-layer"), _E.field(xpath="@to-port"), name=f"{tag}.fed"
    )
    element = _E.element(content, key, *refs, fed, name=tag)
    if tag != "net":
        element.set("minOccurs", "0")
    return element


def _structure() -> Iterator[Any]:
    """Yield the types of the elements that no operation changes."""
    layer = _E.complexType(
        _E.all(
            _child("data", "data"), _child("input", "ports"), _child("output", "ports"), _child("rt_info", "anything"),
            *(_child(tag, "portMap") for tag in _MAPS), _child("back_edges", "backEdges"), *map(_net, _BODIES),
        ),
        _attribute("id", "integer", required=True), _attribute("name", "xs:string", required=True),
        _attribute("type", "layerType", required=True), _attribute("version", "operationSet", required=True),
        _attribute("output_names", "xs:string"),
    )  # fmt: skip
    references = [
        declaration
        for body, entries in zip(_BODIES, _MAPS)
        for declaration in (
            _E.key(_E.selector(xpath=f"{body}/layers/layer"), _E.field(xpath="@id"), name=f"{body}.inner"),
            _E.keyref(
                _E.selector(xpath=f"{entries}/input|{entries}/output"), _E.field(xpath="@internal_layer_id"),
                name=f"{entries}.internal", refer=f"{body}.inner",
            ),
        )
    ]  # fmt: skip
    unique = [
        _E.unique(_E.selector(xpath=f"{side}/port"), _E.field(xpath="@id"), name=f"{side}.port")
        for side in ("input", "output")
    ]
    many = {"minOccurs": "0", "maxOccurs": "unbounded"}
    yield _type("layers", _E.sequence(_E.element(layer, *references, *unique, name="layer", **many)))
    yield _type("ports", _E.sequence(_E.element(name="port", type="port", **many)))
    dims = _E.element(name="dim", type="dim")
    yield _type(
        "port", _E.choice(dims, _E.element(name="rt_info", type="anything"), **many),
        _attribute("id", "integer", required=True), _attribute("precision", "precision"),
        _attribute("names", "xs:string"),
    )  # fmt: skip
    ends = [_attribute(name, "integer", required=True) for name in ("from-layer", "from-port", "to-layer", "to-port")]
    yield _type("edges", _E.sequence(_E.element(_E.complexType(*ends), name="edge", **many)))
    back = [_attribute(name, "integer", required=True) for name in ("from-layer", "to-layer")]
    yield _type("backEdges", _E.sequence(_E.element(_E.complexType(*back), name="edge", **many)))
    entries = (_E.element(name=side, type="mapEntry") for side in ("input", "output"))
    yield _type("portMap", _E.choice(*entries, **many))
    yield _type(
        "mapEntry", *(_attribute(name, "integer", required=True) for name in ("external_port_id", "internal_layer_id")),
        *(_attribute(name, "integer") for name in SLICING), _attribute("purpose", "purpose"),
    )  # fmt: skip
    content = _E.sequence(_E.any(processContents="skip", **many))
    anything = _type("anything", content, _E.anyAttribute(processContents="skip"))
    anything.set("mixed", "true")
    yield anything


def _data(operations: list[type[Op]]) -> Iterator[Any]:
    """Yield the type of ``<data>``, which has the attributes of all operations, and the types of these attributes."""
    texts: dict[str, dict[Texts, None]] = {}
    notes: dict[str, dict[str, dict[str, None]]] = {}
    for cls in operations:
        for attribute in cls.attributes.values():
            for spelling in (attribute.name, *attribute.aliases):
                texts.setdefault(spelling, {})[texts_of(attribute)] = None
                notes.setdefault(spelling, {}).setdefault(described(attribute), {})[cls.type] = None
        for name in ignored(cls):
            texts.setdefault(name, {})[Texts()] = None
            notes.setdefault(name, {}).setdefault("ignored", {})[cls.type] = None
    attributes: list[Any] = []
    for name in sorted(texts):
        note = "; ".join(f"{', '.join(types)}: {what}" for what, types in notes[name].items())
        attributes.append(_attribute(name, f"data.{name}", note=note))
        yield _simple(f"data.{name}", _union(texts[name]))
    yield _type("data", *attributes)


def _union(alternatives: dict[Texts, None]) -> Texts:
    """Return the texts that any of the alternatives has."""
    if Texts() in alternatives:
        return Texts()
    words = dict.fromkeys(word for texts in alternatives for word in texts.words)
    return Texts(tuple(words), tuple(dict.fromkeys(p for texts in alternatives for p in texts.patterns)))


def _simple(name: str, texts: Texts, notes: dict[str, str] | None = None) -> Any:
    """Return the declaration of a type with these texts. Editors show the ``notes`` beside the words."""
    members: list[Any] = []
    if texts.words:
        words = [_E.enumeration(*([_note(notes[word])] if notes else []), value=word) for word in texts.words]
        members.append(_E.restriction(*words, base="xs:token"))
    if texts.patterns:
        members.append(_E.restriction(*(_E.pattern(value=p) for p in texts.patterns), base="xs:token"))
    if not members:
        members.append(_E.restriction(base="xs:string"))
    if len(members) == 1:
        return _E.simpleType(members[0], name=name)
    return _E.simpleType(_E.union(*map(_E.simpleType, members)), name=name)


def _type(name: str, *content: Any) -> Any:
    return _E.complexType(*content, name=name)


def _child(name: str, type: str, *, required: bool = False) -> Any:
    return _E.element(name=name, type=type, minOccurs="1" if required else "0")


def _attribute(name: str, type: str, *, required: bool = False, note: str = "") -> Any:
    return _E.attribute(
        *([_note(note)] if note else []), name=name, type=type, use="required" if required else "optional"
    )


def _note(text: str) -> Any:
    return _E.annotation(_E.documentation(text))
