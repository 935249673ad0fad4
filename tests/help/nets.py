"""IR files written by hand, one element a line: what OpenVINO itself would not write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

Output = tuple[str, str]
"""A port as ``("FP32", "1,3,?")``."""


@dataclass(frozen=True)
class Ref:
    """An output of a layer: its layer's id, its port's id, and what the port declares."""

    layer: int
    port: int
    output: Output


@dataclass
class Net:
    """Collects layers and edges; ``text`` is the IR, ``bin`` the weights."""

    version: int = 11
    bin: bytearray = field(default_factory=bytearray)
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)

    def add(
        self,
        type: str,
        inputs: Sequence[Ref] = (),
        outputs: Sequence[Output] = (),
        *,
        name: str = "",
        opset: str | None = "opset1",
        names: str = "",
        bare: bool = False,
        **attributes: object,
    ) -> Ref:
        """Add a layer; the reference to its first output. ``bare``: input ports without precision."""
        id, port = len(self.layers), 0
        name = name or f"{type.lower()}{id}"
        version = f" version={quoteattr(opset)}" if opset else ""
        lines = [f'<layer id="{id}" name={quoteattr(name)} type={quoteattr(type)}{version}>']
        if attributes:
            data = " ".join(f"{k}={quoteattr(str(v))}" for k, v in attributes.items())
            lines.append(f"\t<data {data}/>")
        if inputs:
            lines.append("\t<input>")
            for ref in inputs:
                lines += _port(port, ref.output, bare=bare)
                self.edges.append(
                    f'<edge from-layer="{ref.layer}" from-port="{ref.port}" to-layer="{id}" to-port="{port}"/>'
                )
                port += 1
            lines.append("\t</input>")
        first = port
        if outputs:
            lines.append("\t<output>")
            for output in outputs:
                lines += _port(port, output, names)
                port += 1
            lines.append("\t</output>")
        self.layers.append("\n".join([*lines, "</layer>"]))
        return Ref(id, first, outputs[0] if outputs else ("", ""))

    def parameter(self, element_type: str, shape: str, *, name: str = "", names: str = "") -> Ref:
        output = (_precision(element_type), ",".join(d if d.strip().isdigit() else "-1" for d in _dims(shape)))
        return self.add("Parameter", (), [output], name=name, names=names, element_type=element_type, shape=shape)

    def const(self, element_type: str, shape: str, data: bytes, *, name: str = "", offset: int | None = None) -> Ref:
        at = len(self.bin) if offset is None else offset
        if offset is None:
            self.bin += data
        return self.add(
            "Const", (), [(_precision(element_type), shape)], name=name, element_type=element_type, shape=shape,
            offset=at, size=len(data),
        )  # fmt: skip

    def result(self, ref: Ref, *, name: str = "") -> Ref:
        return self.add("Result", [ref], name=name)

    @property
    def text(self) -> str:
        body = "\n".join(self.layers).replace("\n", "\n\t\t")
        edges = "\n\t\t".join(self.edges)
        return (
            f'<?xml version="1.0"?>\n<net name="net" version="{self.version}">\n\t<layers>\n\t\t{body}\n\t</layers>\n'
            f"\t<edges>\n\t\t{edges}\n\t</edges>\n\t<rt_info/>\n</net>\n"
        )

    def save(self, folder: Path, name: str = "net") -> Path:
        """Write ``name.xml`` and, if there are weights, ``name.bin``; the path of the former."""
        path = folder / f"{name}.xml"
        path.write_text(self.text)
        if self.bin:
            path.with_suffix(".bin").write_bytes(self.bin)
        return path


def _precision(element_type: str) -> str:
    return {"boolean": "BOOL", "u1": "BIN", "f16": "FP16", "f32": "FP32", "f64": "FP64"}.get(
        element_type, element_type.upper()
    )


def _dims(shape: str) -> list[str]:
    return shape.split(",") if shape.strip() not in ("", "...") else []


def _port(id: int, output: Output, names: str = "", *, bare: bool = False) -> list[str]:
    precision, shape = output
    head = f'\t\t<port id="{id}"'
    if precision and not bare:
        head += f' precision="{precision}"'
    if names:
        head += f" names={quoteattr(names)}"
    dims = [f"\t\t\t<dim>{dim.strip()}</dim>" for dim in _dims(shape)]
    return [f"{head}>", *dims, "\t\t</port>"] if dims else [f"{head}/>"]
