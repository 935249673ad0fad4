"""Find the operation of each layer and parse its attributes: the step from ``Layer`` to ``Op``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any, Final

from irrun.base.edits import Fix, add_attribute, rename_attribute
from irrun.diagnostics import Diagnostic, diagnostic
from irrun.model import VERSIONS, Layer, Model
from irrun.opdef import Attribute, Op, all_ops, find, is_custom, resolve

__all__ = ["bind", "bind_all", "declaration", "is_required", "opset_of", "versions_of"]

# Other names of layer types, in lower case. Types are compared without regard to case, as in OpenVINO.
ALIASES: Final = {
    "constant": "Const",
    # names that the examples on the specification pages use
    "fillemptyrows": "SparseFillEmptyRows",
    "matrixnonmaxsuppression": "MatrixNms",
    "multiclassnonmaxsuppression": "MulticlassNms",
}
# Attributes that converters of 2020 and 2021 wrote although the operation does not have them. They are ignored.
MEANINGLESS: Final = {("convolution", "output_padding"), ("groupconvolution", "output_padding")}
LATEST_OPSET: Final = 17
EXTENSIONS: Final = ("extension", "experimental", "ie_internal_opset")
"""Values of ``version`` that name no numbered opset. irrun finds the newest version of an operation under them."""


@lru_cache(64)
def opset_of(version: str | None) -> int | None:
    """Return the number of an opset (8 for ``opset8``), or None for a name without a number (``extension``).

    Raises ValueError if ``version`` is not the name of an opset that irrun knows.
    """
    if version is None:
        return 1  # files of 2020 leave out the version of opset1
    if version.lower() in EXTENSIONS:
        return None
    match = re.fullmatch(r"opset(\d{1,3})", version.strip().lower())
    if match is None or not 1 <= int(match[1]) <= LATEST_OPSET:
        raise ValueError(version)
    return int(match[1])


def bind(model: Model, layer: Layer) -> tuple[Op | None, list[Diagnostic]]:
    """Return the operation of ``layer`` with its parsed attributes, and the diagnostics of the layer.

    The operation is None if one of the diagnostics is an error, or if the layer is an example in documentation that
    does not show its attributes.
    """

    def at(code: str, message: str, node: int, attribute: str | None = None, **more: object) -> Diagnostic:
        named = f'{layer.type} "{layer.name}": {message}'
        return diagnostic(code, named, source=model.source, node=node, attribute=attribute, layer=layer.name, **more)

    def renamed(name: str, to: str) -> Fix | None:
        if spellings[to] in written:
            return None
        edits = rename_attribute(model.source, data(), name, to)
        return Fix(f"rename {name} to {to}", edits, safe=False) if edits else None

    cls = _operation(layer, is_fragment=model.is_fragment)
    if isinstance(cls, _Unknown):
        return None, [at(cls.code, cls.message, layer.node, cls.attribute, help=cls.help)]
    problems: list[Diagnostic] = []
    unknown: dict[str, Diagnostic] = {}
    values: dict[str, Any] = {}
    data = partial(_data_node, model, layer)
    spellings = _spellings(cls)
    written = {spellings.get(name) for name in layer.attributes}
    for text_name, text in layer.attributes.items():
        name = spellings.get(text_name)
        if name is None and (cls.type.lower(), text_name) in MEANINGLESS:
            continue
        if name is None:
            near = difflib.get_close_matches(text_name, spellings, 1)
            kind = "argument" if model.source.is_script else "attribute"
            message = f"{cls.type}-{cls.since} has no {kind} {text_name}"
            help = f"did you mean {near[0]}?" if near else None
            fix = renamed(text_name, near[0]) if near else None
            unknown[text_name] = at("IR204", message, data(), text_name, help=help, fix=fix)
            continue
        attribute = cls.attributes[name]
        try:
            values[name] = attribute.parse(text)
        except (ValueError, OverflowError):
            wrong = "holds an integer beyond 64 bits" if _is_long(text, attribute) else f"should be {attribute.expects}"
            message = f'{text_name}="{text}" {wrong}'
            if model.source.is_script:
                message = f"{name} should be {attribute.argument}, not {text}"
            problems.append(at(attribute.code, message, data(), text_name))
            values[name] = None
    fitting = cls.fitted(len(layer.inputs), values) if cls.revisions else ()
    missing = [
        a for name, a in cls.attributes.items() if name not in values and is_required(layer.type, a, model.version)
    ]
    if missing and model.is_fragment and not model.source.children(layer.node, "data"):
        return None, problems  # an example in documentation that leaves out the attributes
    for attribute in missing:
        message = f"the attribute {attribute.name} is missing"
        help, fix = f'write {attribute.name}="…" ({attribute.expects}) in <data>', None
        if model.source.is_script:
            name = next(name for name, own in cls.attributes.items() if own is attribute)
            message, help = f"the argument {name} is missing", f"pass {name}=…, {attribute.argument}"
        misspelt = difflib.get_close_matches(attribute.name, unknown, 1)
        if misspelt:  # the unknown attribute is a misspelling of this one: report one fault, not two
            del unknown[misspelt[0]]
            kind = "arguments" if model.source.is_script else "attributes"
            help = f"{misspelt[0]} is not one of its {kind}; did you mean {attribute.name}?"
            fix = renamed(misspelt[0], attribute.name)
        elif (value := _declared(layer, attribute)) and layer.attributes:
            edits = add_attribute(model.source, data(), attribute.name, value)
            fix = Fix(f'write {attribute.name}="{value}"', edits, safe=False) if edits else None
        problems.append(at("IR202", message, data() if layer.attributes else layer.node, help=help, fix=fix))
    op = None if problems else cls(fitting, **values)
    return op, [*problems, *unknown.values()]


def bind_all(model: Model) -> Iterator[tuple[Layer, Op | None, Sequence[Diagnostic]]]:
    """Yield each layer of the model with the results of ``bind``, in the order of the file.

    Layers with equal type, version, attributes and number of inputs share one Op instance if the operation is pure.
    """
    known: dict[tuple[object, ...], Op] = {}
    for layer in model.layers.values():
        key = (layer.type, layer.version, len(layer.inputs), *layer.attributes.items())
        op, problems = known.get(key), ()
        if op is None:
            op, problems = bind(model, layer)
            if op is not None and op.pure and not problems:  # an operation that is not pure may keep state between runs
                known[key] = op
        yield layer, op, problems


def declaration(layer: Layer) -> type[Op] | None:
    """Return the class that declares the operation of a layer, or None if irrun does not know the operation."""
    found = _operation(layer, is_fragment=False)
    return None if isinstance(found, _Unknown) else found


def is_required(type: str, attribute: Attribute, version: int) -> bool:
    """Return whether a layer of this type must have an attribute in this IR version.

    A Const may leave out ``element_type`` in IR version 10 only.
    """
    is_type = attribute.name == "element_type" and type.lower() in ("const", "constant")
    return attribute.required or (is_type and version >= VERSIONS[-1])


def versions_of(cls: type[Op]) -> tuple[str, ...]:
    """Return the values of ``version`` with which a layer finds an operation, such as ``opset5`` to ``opset17``.

    A custom operation is also found with other names that have no number.
    """
    candidates = (*(f"opset{number}" for number in range(1, LATEST_OPSET + 1)), *EXTENSIONS)
    layers = [Layer(0, "", cls.type, version, {}, (), (), 0) for version in candidates]
    return tuple(str(layer.version) for layer in layers if _operation(layer, is_fragment=False) is cls)


def _declared(layer: Layer, attribute: Attribute) -> str | None:
    """Return the text for a missing attribute that repeats the declaration of the only output, or None.

    Such an attribute holds the element type (code IR305) or the shape (code IR404) of the output.
    """
    port = layer.outputs[0] if len(layer.outputs) == 1 else None
    if port and port.type and attribute.code == "IR305":
        return port.type.name
    return str(port.shape).strip("[]") if port and port.shape and attribute.code == "IR404" else None


@dataclass(frozen=True, slots=True)
class _Unknown:
    """Why a layer has no operation: the fields of the diagnostic to report. ``attribute`` is the one at fault."""

    code: str
    message: str
    attribute: str
    help: str | None = None


def _operation(layer: Layer, *, is_fragment: bool) -> type[Op] | _Unknown:
    """Return the operation class of ``layer`` in its opset, or why there is none."""
    type = ALIASES.get(layer.type.lower(), layer.type)
    try:
        opset = None if is_fragment and layer.version is None else opset_of(layer.version)
    except ValueError:
        custom = resolve(type, None, layer.version or "")
        if custom is not None and is_custom(custom):  # a custom operation may have an opset name of its own
            return _misplaced(layer, custom) or custom
        if re.fullmatch(r"opset\d+", layer.version or ""):
            known = f"{layer.version} is not known; irrun knows opset1 to opset{LATEST_OPSET}"
            return _Unknown("IR207", known, "version", "update irrun, or write an opset that it knows")
        message = f'version="{layer.version}" is not an operation set of OpenVINO'
        help = "register a custom operation with @irrun.op (--plugin FILE.py)"
        return _Unknown("IR201", message, "version", _since(type) if custom is not None else help)
    cls = resolve(type, opset, layer.version if opset is None and layer.version else "")
    if cls is not None:
        return _misplaced(layer, cls) or cls
    if versions := find(type):
        message = f"{layer.version} has no {layer.type}; it came with opset{min(versions)}"
        return _Unknown("IR201", message, "version", _since(type))
    lower = {c.type.lower(): c.type for c in all_ops()}
    near = difflib.get_close_matches(layer.type.lower(), lower, 1, cutoff=0.75)
    custom = "register a custom operation with @irrun.op (--plugin FILE.py); `irrun ops` lists the others"
    help = f"did you mean {lower[near[0]]}?" if near else custom
    return _Unknown("IR201", f"irrun does not know the operation {layer.type}", "type", help)


def _misplaced(layer: Layer, cls: type[Op]) -> _Unknown | None:
    """Return why ``version`` names the wrong kind of operation set, or None.

    The operations of irrun's extensions are in no numbered opset. OpenVINO's own are in no extension, but for a few
    that files of 2020 have there.
    """
    is_numbered = (layer.version or "opset1").lower().startswith("opset")
    if cls.__module__.startswith("irrun.extensions.") and is_numbered:
        message = f"{layer.version or 'opset1'} has no {layer.type}, which is an operation of an extension"
        return _Unknown("IR201", message, "version", 'write version="extension"')
    if not is_custom(cls) and layer.version == "extension" and not _ONCE_EXTENSIONS.fullmatch(cls.type):
        message = f"{layer.type} is an operation of OpenVINO, not of an extension"
        return _Unknown("IR201", message, "version", _since(cls.type))
    return None


_ONCE_EXTENSIONS: Final = re.compile(r"ExperimentalDetectron.*|(GRU|RNN)Cell|Proposal")


def _since(type: str) -> str:
    return f'write version="opset{min(find(type))}" or later'


_INTEGERS: Final = re.compile(r"\s*[+-]?[0-9]+\s*(,\s*[+-]?[0-9]+\s*)*")


def _is_long(text: str, attribute: Attribute) -> bool:
    """Return whether a text that an attribute refuses would hold integers if one of them had fewer digits."""
    return "integer" in attribute.expects and _INTEGERS.fullmatch(text) is not None


@cache
def _spellings(cls: type[Op]) -> Mapping[str, str]:
    """Return the name of the Python attribute for each spelling of an XML attribute, including its aliases."""
    return {
        spelling: name
        for name, attribute in cls.attributes.items()
        for spelling in (attribute.name, *attribute.aliases)
    }


def _data_node(model: Model, layer: Layer) -> int:
    """Return the ordinal of ``<data>``, or that of the layer if it has no ``<data>``.

    Only diagnostics need it: finding it builds the index of the source.
    """
    nodes = model.source.children(layer.node, "data")
    return nodes[0] if nodes else layer.node
