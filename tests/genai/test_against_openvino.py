"""The tokens of 50 prompts, greedy: those of irrun.genai and those of OpenVINO, which runs in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from irrun.genai import Pipeline
from language_models import write
from tokenizer_texts import SENTENCES

pytest.importorskip("regex", reason="the tokenizers need the package regex")

TOKENS = 10

_WORKER = """
import json, sys
sys.modules["openvino_telemetry"] = None
import numpy as np
import openvino as ov

path, count = sys.argv[1], int(sys.argv[2])
hints = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "INFERENCE_NUM_THREADS": 1}
request = ov.Core().compile_model(path, "CPU", hints).create_infer_request()
answers = []
for prompt in json.load(sys.stdin):
    request.reset_state()
    ids, fresh = list(prompt), list(prompt)
    for _ in range(count):
        places = np.arange(len(ids) - len(fresh), len(ids), dtype=np.int64)[None]
        request.infer({
            "input_ids": np.array([fresh], np.int64), "attention_mask": np.ones((1, len(ids)), np.int64),
            "position_ids": places, "beam_idx": np.zeros(1, np.int32),
        })
        fresh = [int(request.get_tensor("logits").data[0, -1].argmax())]
        ids += fresh
    answers.append(ids[len(prompt):])
print(json.dumps(answers))
"""


def prompts() -> list[str]:
    """Return 50 beginnings of sentences in many languages."""
    texts = [text[:length] for length in (4, 9, 15, 22, 30) for text in SENTENCES.values()]
    return list(dict.fromkeys(texts))[:50]


@pytest.mark.openvino
@pytest.mark.parametrize("kind", ["llama3", "llama2"])
def test_greedy_tokens(kind: str, tmp_path: Path) -> None:
    pipeline = Pipeline(write(tmp_path, kind))
    own = prompts() if kind == "llama3" else prompts()[:8]
    results = [pipeline.generate(prompt, max_new_tokens=TOKENS, eos=frozenset()) for prompt in own]
    done = subprocess.run(
        [sys.executable, "-c", _WORKER, str(tmp_path / "openvino_model.xml"), str(TOKENS)],
        input=json.dumps([result.prompt_ids for result in results]), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [list(result.ids) for result in results] == json.loads(done.stdout)
    assert len({result.ids for result in results}) > len(own) // 2
