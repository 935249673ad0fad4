"""What a harness may do wrong is a result: it crashes, hangs, takes all memory, or writes something else."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun import build as b
from irrun import engines
from irrun.engines import ChildEngine, Crash, Input, Limits, Loaded, Outputs, Place, Refusal, Timeout

pytestmark = pytest.mark.processes

HARNESS = """
import base64, ctypes, json, os, signal, sys, time

out = os.fdopen(os.dup(1), "w") if "keep" not in sys.argv else sys.stdout

def reply(kind, **content):
    out.write(json.dumps({kind: content}) + "\\n")
    out.flush()

class Answered(Exception):
    pass

def answer(request):
    global options, state
    cmd = request["cmd"]
    if cmd == "start":
        options = request["options"]
        if "start" in options:
            exec(options["start"])
        reply("ok", name="a harness", version=1)
    elif cmd == "load":
        if "load" in options:
            exec(options["load"])
        port = {"names": ["x"], "type": "i64", "shape": "[]"}
        reply("ok", inputs=[port], outputs=[{"names": ["y"]}],
              values=[{"layer": "inner", "port": 0, "type": "Odd", "names": []}])
    elif cmd == "infer":
        number = int.from_bytes(base64.b64decode(request["inputs"][0]["data"]), "little")
        if number == 13:
            exec(options["infer"])
        state += number
        tensor = {"type": "i64", "shape": [], "data": base64.b64encode(state.to_bytes(8, "little")).decode()}
        for layer, port in request["taps"]:
            reply("value", layer=layer, port=port, tensor=tensor)
        reply("ok", outputs=[tensor])
    elif cmd == "reset":
        state = 0
        reply("ok")
    else:
        sys.exit()

state = 0
for line in sys.stdin:
    try:
        answer(json.loads(line))
    except Answered:
        pass
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[ChildEngine]]:
    """Keep the engines that a test starts, and end them."""
    engines: list[ChildEngine] = []
    yield engines
    for engine in engines:
        engine.close()


def _engine(folder: Path, made: list[ChildEngine], limits: Limits | None = None, **options: str) -> ChildEngine:
    """Return an engine that adds up its inputs, and does what ``options`` say when it starts, loads, or gets a 13."""
    file = folder / "harness.py"
    file.write_text(HARNESS)
    engine = ChildEngine([sys.executable, "-S", str(file)], options, "model.xml", limits or Limits(60))
    made.append(engine)
    return engine


def _run(engine: ChildEngine, number: int) -> object:
    outcome = engine.infer({"x": np.array(number)})
    return outcome["y"].item() if isinstance(outcome, Outputs) else outcome


def test_a_harness_of_somebody_else(tmp_path: Path, made: list[ChildEngine]) -> None:
    engine = _engine(tmp_path, made)
    loaded = engine.load(inner=True)
    assert isinstance(loaded, Loaded)
    assert engine.name == "a harness"
    assert loaded.inputs == (Input(("x",), "i64", "[]"),)
    assert [_run(engine, n) for n in (2, 3)] == [2, 5]
    seen: list[object] = []
    engine.infer({"x": np.array(1)}, [Place("inner")], lambda v: seen.append((v.place, v.iteration, v.array().item())))
    assert seen == [(Place("inner"), 0, 6)]
    assert engine.reset() is None
    assert _run(engine, 4) == 4


FAULTS = {
    "abort": ("os.abort()", Crash, "it was ended by SIGABRT"),
    "segmentation fault": ("os.kill(os.getpid(), signal.SIGSEGV)", Crash, "it was ended by SIGSEGV"),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", Crash, "SIGKILL; the system may have run out of memory"),
    "exit": ("sys.exit(3)", Crash, "it ended with status 3"),
    "exception": ("raise ValueError('a message')", Crash, "it ended with status 1"),
    "garbage": ("out.write('done!\\n'); out.flush()", Crash, "it broke the protocol: it wrote 'done!'"),
    "json": ("out.write('[1]\\n'); out.flush()", Crash, "it broke the protocol: it wrote '[1]'"),
    "two keys": ('out.write(\'{"ok": {}, "x": {}}\\n\'); out.flush()', Crash, "it broke the protocol"),
    "deep": ("out.write('[' * 100000 + '\\n'); out.flush()", Crash, "it broke the protocol"),
    "bytes": ("out.buffer.write(b'\\xff\\xfe\\n'); out.buffer.flush()", Crash, "it broke the protocol"),
    "closed": ("out.close(); os.close(1); time.sleep(60)", Crash, "it closed its output"),
}


@pytest.mark.skipif(os.name != "posix", reason="names signals")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_a_result_and_the_engine_goes_on(fault: str, tmp_path: Path, made: list[ChildEngine]) -> None:
    code, kind, said = FAULTS[fault]
    engine = _engine(tmp_path, made, infer=code)
    assert isinstance(engine.load(), Loaded)
    assert _run(engine, 2) == 2
    outcome = _run(engine, 13)
    assert isinstance(outcome, kind)
    assert said in getattr(outcome, "cause", "")
    assert _run(engine, 5) == 5  # a new process, without the state of the old one
    assert engine.restarts == 1
    assert _run(engine, 5) == 10


def test_what_the_engine_printed_last_is_kept(tmp_path: Path, made: list[ChildEngine]) -> None:
    code = "sys.stderr.write('noise\\n' * 100000 + 'assertion failed in Gather\\n'); sys.stderr.flush(); os.abort()"
    engine = _engine(tmp_path, made, infer=code)
    engine.load()
    outcome = _run(engine, 13)
    assert isinstance(outcome, Crash)
    assert outcome.log.endswith("noise\nassertion failed in Gather")
    assert len(outcome.log) < 5000


@pytest.mark.parametrize("code", ["time.sleep(60)", "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"])
def test_a_hang(code: str, tmp_path: Path, made: list[ChildEngine]) -> None:
    engine = _engine(tmp_path, made, Limits(seconds=1.5), infer=code)
    engine.load()
    began = time.monotonic()
    assert _run(engine, 13) == Timeout(1.5)
    assert time.monotonic() - began < 20
    assert _run(engine, 5) == 5


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the memory of a process")
def test_a_memory_explosion(tmp_path: Path, made: list[ChildEngine]) -> None:
    code = "data = []\nwhile True: data.append(b'x' * (1 << 24)); time.sleep(0.002)"
    engine = _engine(tmp_path, made, Limits(60, memory=300 << 20), infer=code)
    engine.load()
    outcome = _run(engine, 13)
    assert isinstance(outcome, Crash)
    assert re.match(
        r"out of memory: it took (?!300\.0 MiB).*, more than the .* that --max-memory allows", outcome.cause
    )
    assert _run(engine, 5) == 5


def test_the_processes_that_an_engine_starts_end_with_it(tmp_path: Path, made: list[ChildEngine]) -> None:
    code = "import subprocess; open('pid', 'w').write(str(subprocess.Popen(['sleep', '60']).pid)); time.sleep(60)"
    engine = _engine(tmp_path, made, Limits(3), infer=code.replace("'pid'", repr(str(tmp_path / "pid"))))
    engine.load()
    assert isinstance(_run(engine, 13), Timeout)
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            break
        if state == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the process is still there")


def test_faults_while_loading(tmp_path: Path, made: list[ChildEngine]) -> None:
    engine = _engine(tmp_path, made, load="os.abort()")
    assert isinstance(engine.load(), Crash)
    assert isinstance(engine.infer({"x": np.array(1)}), Crash)
    wrong = _engine(tmp_path, made, load="reply('ok', inputs=[{}], outputs=[]); raise Answered")
    outcome = wrong.load()
    assert isinstance(outcome, Crash)
    assert "its answer to load is wrong" in outcome.cause
    says = _engine(tmp_path, made, load="reply('refused', message='no such operation', reason=''); raise Answered")
    assert says.load() == Refusal("no such operation")


def test_a_tensor_that_does_not_fill_its_shape(tmp_path: Path, made: list[ChildEngine]) -> None:
    code = "reply('ok', outputs=[{'type': 'f32', 'shape': [5], 'data': ''}]); raise Answered"
    engine = _engine(tmp_path, made, infer=code)
    engine.load()
    outcome = _run(engine, 13)
    assert isinstance(outcome, Crash)
    assert "its answer to infer is wrong: 0 bytes do not fill the shape [5] of f32" in outcome.cause


def test_another_number_of_outputs_than_announced(tmp_path: Path, made: list[ChildEngine]) -> None:
    tensor = "{'type': 'f32', 'shape': [0], 'data': ''}"
    engine = _engine(tmp_path, made, infer=f"reply('ok', outputs=[{tensor}, {tensor}]); raise Answered")
    engine.load()
    outcome = _run(engine, 13)
    assert isinstance(outcome, Crash)
    assert "2 outputs, but load announced 1" in outcome.cause


def test_files_are_removed(tmp_path: Path, made: list[ChildEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    x = b.parameter([100, 100], name="x")
    irrun.save_model(b.model({"y": b.ReLU(b.Add(x, 1.0, name="sum"))}), tmp_path / "model.xml")
    array = np.ones((100, 100), np.float32)
    with engines.open(f"irrun:{tmp_path / 'model.xml'}", Limits(120)) as engine:
        engine.load(inner=True)
        for taps in ([], [Place("sum")]):
            assert isinstance(engine.infer({"x": array}, taps, lambda value: value.drop()), Outputs)
        (folder,) = tmp_path.glob("irrun-*")
        assert folder.stat().st_mode & 0o77 == 0
        assert {file.name for file in folder.rglob("*") if file.is_file()} == {"lock", "log"}
    assert not list(tmp_path.glob("irrun-*"))


def test_what_an_engine_prints_does_not_disturb(tmp_path: Path) -> None:
    """The kernel of a plugin prints, in Python and from C, to what it believes to be standard output."""
    harness = tmp_path / "noisy.py"
    harness.write_text(
        "import os, sys\n"
        "class Harness:\n"
        "    takes_arrays, name = True, 'noisy'\n"
        "    def __init__(self, options): print('starting'); os.write(1, b'raw\\n')\n"
        "    def load(self, path, inner):\n"
        "        print('{\"ok\": {}}', flush=True); os.system('echo child')\n"
        "        return {'inputs': [], 'outputs': [{'names': ['y']}]}\n"
        "    def infer(self, feeds, taps, show): os.write(1, b'{}\\n'); return [sys.stdin.read().__len__() + __import__('numpy').zeros(2)]\n"
        "    def reset(self): pass\n"
    )
    serve = Path(engines.__file__).parent / "harnesses" / "serve.py"
    engine = ChildEngine([sys.executable, str(serve), str(harness)], path="m.xml", limits=Limits(60))
    try:
        assert isinstance(engine.load(), Loaded)
        outputs = engine.infer({})
        assert isinstance(outputs, Outputs)
        assert outputs["y"].tolist() == [0, 0]
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("side", "said", "help"),
    [
        (
            "openvino[python=/no/such/python]:m.xml",
            "no such file",
            "check the path of the interpreter: /no/such/python",
        ),
        (f"openvino[python={sys.executable}]:m.xml", "", "install it (pip install openvino)"),
    ],
)
def test_an_engine_that_is_not_there(
    side: str, said: str, help: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openvino.py").write_text("raise ImportError('there is none')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(irrun.EngineError) as caught, engines.open(side):
        pass
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "IR702"
    assert said in diagnostic.message
    assert help in (diagnostic.help or "")
