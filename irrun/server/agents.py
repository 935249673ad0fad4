"""An MCP server: the commands of irrun as tools of an agent, whose answers are short JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

__all__ = ["bounded", "make_server"]

Run = Callable[[Sequence[str]], tuple[int, str]]
"""Run a command of irrun: from its arguments to its exit status and what it writes to standard output."""

_MOST_CHARS: Final = 16_000
"""The most characters of an answer as JSON: some 5,000 tokens."""
_MOST_TEXT_CHARS: Final = 2_000
"""The most characters of a text in an answer that must be made shorter."""
_LENGTHS: Final = (100, 50, 25, 12, 6, 3, 1)
"""The most items of each list, tried in this order until the answer is short enough."""

_OPTIONS: Final = {
    "-i", "--input", "-w", "--weights", "--shape", "--select", "--ignore", "--statistics", "--layer", "--layers",
    "--type", "--all", "--samples", "--seed", "--map", "--keep-state", "--outputs-only", "--rtol", "--atol",
    "--timeout", "--max-memory",
}  # fmt: skip
"""The options that a tool passes to its command: none that writes a file, and none that runs a file of the model's."""

_INSTRUCTIONS: Final = """\
irrun checks, explains and compares OpenVINO IR (model.xml with model.bin beside it). To decide whether a conversion is
right: (1) check the .xml; an error is a wrong model. (2) compare it with the model it was made from, as
ort:model.onnx, or with another engine, as openvino:model.xml; `verdict` is agree, or differ with the first layer that
does. (3) If it differs, bisect names the smallest part that shows it, why says where a shape comes from, and explain
says what the code of a finding means. A run without NaN proves nothing. Give the verdict with the numbers that show it.
`exit_status` is that of the command, and `left_out` counts the items of lists that were cut."""

Path = Annotated[str, Field(description="The path of an IR file, such as model.xml")]
Side = Annotated[str, Field(description="model.xml, openvino:model.xml, openvino[precision=f32]:m.xml or ort:m.onnx")]
Options = Annotated[list[str], Field(description="More options, as on the command line of irrun: -i, NAME=SPEC")]


def make_server(run: Run, version: str) -> MCPServer:
    """Return a server whose tools call commands of irrun. ``run`` on the result serves standard input and output.

    ``version`` is that of irrun.
    """
    server = MCPServer("irrun", version=version, instructions=_INSTRUCTIONS, log_level="ERROR")

    def answer(command: str, *arguments: str, options: Sequence[str] = ()) -> dict[str, Any]:
        """Return the JSON of a command with its exit status. Raises ToolError if the command could not do its work."""
        for option in options:
            if option.startswith("-") and option.partition("=")[0] not in _OPTIONS:
                raise ToolError(f"the tool takes no {option}; its options are {', '.join(sorted(_OPTIONS))}")
        status, text = run([command, "--format", "json", *options, "--", *arguments])
        try:
            record = {"exit_status": status, **json.loads(text)}
        except ValueError:
            raise ToolError(f"irrun {command} ended with status {status} and wrote no JSON: {text[:500]}") from None
        if "error" in record:
            raise ToolError(json.dumps(bounded(record)))
        return bounded(record)

    @server.tool()
    def check(path: Path, options: Options = []) -> dict[str, Any]:  # noqa: B006
        """Check every shape and precision that a model declares. exit_status 1: there are errors in `diagnostics`."""
        return answer("check", path, options=options)

    @server.tool()
    def show(path: Path, layer: str = "", options: Options = []) -> dict[str, Any]:  # noqa: B006
        """Show inputs, outputs, operations and weights of a model; with `layer`, a glob, also these layers."""
        return answer("show", path, options=[*(["--layer", layer] if layer else []), *options])

    @server.tool()
    def why(path: Path, layer: str = "", options: Options = []) -> dict[str, Any]:  # noqa: B006
        """Trace where the dims of a layer come from: formulas, attributes and Parameters. Without `layer`: outputs."""
        return answer("why", path, *([layer] if layer else []), options=options)

    @server.tool()
    def compare(reference: Side, candidate: Side, options: Options = []) -> dict[str, Any]:  # noqa: B006
        """Compare the values of all layers between two engines or models, and name the first layer that differs."""
        return answer("compare", reference, candidate, options=options)

    @server.tool()
    def bisect(reference: Side, candidate: Path, options: Options = []) -> dict[str, Any]:  # noqa: B006
        """Find the smallest part of a model that shows a difference between two engines."""
        return answer("bisect", reference, candidate, options=options)

    @server.tool()
    def op(name: Annotated[str, Field(description="A layer type, such as Broadcast or Broadcast-3")]) -> dict[str, Any]:
        """Show an operation: inputs, attributes with defaults, and the constraints of its specification."""
        return answer("op", name)

    @server.tool()
    def explain(code: Annotated[str, Field(description="The code of a finding, such as IR401")]) -> dict[str, Any]:
        """Explain the code of a finding, with a wrong and a right example."""
        return answer("explain", code)

    return server


def bounded(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record that is at most about ``_MOST_CHARS`` long as JSON: long lists and texts lose their ends.

    ``left_out`` then holds, by the key of the list, how many items were cut.
    """
    shorter = record
    lengths = iter(_LENGTHS)
    while len(json.dumps(shorter)) > _MOST_CHARS and (most := next(lengths, 0)):
        left_out: Counter[str] = Counter()
        shorter = _cut(record, "", most, left_out)
        shorter["left_out"] = dict(left_out)
    return shorter


def _cut(value: Any, key: str, most: int, left_out: Counter[str]) -> Any:
    if isinstance(value, dict):
        return {name: _cut(item, name, most, left_out) for name, item in value.items()}
    if isinstance(value, list):
        if len(value) > most:
            left_out[key] += len(value) - most
        return [_cut(item, key, most, left_out) for item in value[:most]]
    if isinstance(value, str) and len(value) > _MOST_TEXT_CHARS:
        left_out[key] += 1
        return value[:_MOST_TEXT_CHARS] + " …"
    return value
