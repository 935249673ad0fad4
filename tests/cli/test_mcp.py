"""irrun mcp: one session of an agent with twenty calls of tools."""

import json
import sys
from typing import Any

import pytest

pytest.importorskip("mcp", reason="irrun mcp needs the extra `mcp`")

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from irrun.server.agents import bounded
from places import ROOT

pytestmark = pytest.mark.processes

INPUTS = ["-i", "a=ones:[1,3,4]", "-i", "b=[[0],[1],[2]]"]
SCALES = {"reference": "samples/elementwise.xml", "candidate": "samples/wrong_scale.xml", "options": INPUTS}

CALLS: list[tuple[str, dict[str, Any], int | None, str]] = [
    ("check", {"path": "samples/wrong_dim.xml"}, 1, '"IR401"'),
    ("explain", {"code": "IR401"}, 0, "dims-mismatch"),
    ("explain", {"code": "dims-mismatch"}, 0, "IR401"),
    ("explain", {"code": "IR999"}, None, "there is no code IR999"),
    ("why", {"path": "samples/wrong_dim.xml", "layer": "broadcast"}, 0, "target_shape"),
    ("why", {"path": "samples/wrong_dim.xml"}, 0, "broadcast"),
    ("why", {"path": "samples/wrong_dim.xml", "layer": "nothing"}, None, "no layer is called"),
    ("show", {"path": "samples/convnet.xml"}, 0, '"image"'),
    ("show", {"path": "samples/convnet.xml", "layer": "block1/*"}, 0, "block1/conv"),
    ("show", {"path": "missing.xml"}, None, "cannot read missing.xml"),
    ("check", {"path": "samples/convnet.xml"}, 0, '"diagnostics": []'),
    ("check", {"path": "samples/convnet.xml", "options": ["--shape", "image=[1,1,2,2]"]}, 1, "IR4"),
    ("check", {"path": "samples/wrong_dim.xml", "options": ["--ignore", "IR401"]}, 0, '"diagnostics": []'),
    ("check", {"path": "samples/wrong_dim.xml", "options": ["--fix"]}, None, "the tool takes no --fix"),
    ("op", {"name": "Broadcast-3"}, 0, "target_shape"),
    ("op", {"name": "relu"}, 0, "ReLU"),
    ("op", {"name": "Brodcast"}, None, "did you mean Broadcast"),
    ("compare", SCALES, 1, '"verdict": "differ"'),
    ("compare", SCALES | {"candidate": "samples/elementwise.xml"}, 0, '"verdict": "agree"'),
    ("bisect", SCALES, 1, '"multiply"'),
]


def test_a_session() -> None:
    before = (ROOT / "samples" / "wrong_dim.xml").read_bytes()

    async def session() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-m", "irrun", "mcp"], cwd=ROOT)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {"check", "show", "why", "compare", "bisect", "op", "explain"}
            for name, arguments, status, said in CALLS:
                result = await client.call_tool(name, arguments)
                (content,) = result.content
                assert content.type == "text"
                assert said in content.text.replace('\\"', '"')
                assert result.is_error == (status is None)
                if status is not None:
                    assert result.structured_content is not None
                    assert result.structured_content["exit_status"] == status
                    assert result.structured_content["command"] == name

    anyio.run(session)
    assert len(CALLS) == 20
    assert (ROOT / "samples" / "wrong_dim.xml").read_bytes() == before


def test_an_answer_is_short() -> None:
    rows = [{"name": f"layer{number}", "inputs": list(range(10)), "text": "x" * 100} for number in range(1000)]
    short = bounded({"layers": rows, "verdict": "differ", "note": "y" * 5000})
    assert len(json.dumps(short)) <= 16_000
    assert short["verdict"] == "differ"
    assert short["layers"][0]["name"] == "layer0"
    assert short["left_out"]["layers"] == 1000 - len(short["layers"])
    small = {"layers": [1, 2, 3]}
    assert bounded(small) == small
