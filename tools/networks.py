"""Whole architectures with random weights, converted by OpenVINO, run by both: `python -m tools networks [NAME …]`.

Needs the extra `networks` (torch, transformers, nncf). Prints for each: layers, findings of the check, the largest
error relative to the range of OpenVINO's f32 output, and how many formulas of `irrun why` hold in every run.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import torch
import transformers as tr
from torch import nn

import irrun
from formulas import in_a_run, prove
from irrun.inference.trace import Trace

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_grad_enabled(False)

Feeds = list[np.ndarray]
"""One array for each input."""

HINTS = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "LP_TRANSFORMS_MODE": False,
}


def _image(size: int = 64) -> torch.Tensor:
    return torch.rand(1, 3, size, size)


def _ids(length: int = 12, vocabulary: int = 100) -> torch.Tensor:
    return torch.randint(0, vocabulary, (1, length))


class First(nn.Module):
    """A transformers model as a function of its inputs that gives one tensor."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model.eval(), names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        named = dict(zip(self.names, inputs))
        return self.model(**named, return_dict=False)[0]


def _convert(module: nn.Module, *inputs: torch.Tensor, dynamic: bool = False) -> tuple[ov.Model, list[Feeds]]:
    model = ov.convert_model(module.eval(), example_input=inputs if len(inputs) > 1 else inputs[0])
    if not dynamic:
        model.reshape({i: list(x.shape) for i, x in enumerate(inputs)})
    return model, [[x.numpy() for x in inputs]]


def resnet() -> tuple[ov.Model, list[Feeds]]:
    config = tr.ResNetConfig(embedding_size=16, hidden_sizes=[32, 64, 128, 256], depths=[3, 4, 6, 3])
    return _convert(First(tr.ResNetModel(config), "pixel_values"), _image())


def resnet_dynamic() -> tuple[ov.Model, list[Feeds]]:
    model, feeds = resnet()
    model.reshape([-1, 3, -1, -1])
    return model, [*feeds, [torch.rand(2, 3, 75, 98).numpy()]]


def mobilenet_v2() -> tuple[ov.Model, list[Feeds]]:
    return _convert(First(tr.MobileNetV2Model(tr.MobileNetV2Config(image_size=64)), "pixel_values"), _image())


def vit() -> tuple[ov.Model, list[Feeds]]:
    config = tr.ViTConfig(
        hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128, image_size=64
    )
    return _convert(First(tr.ViTModel(config), "pixel_values"), _image())


def swin() -> tuple[ov.Model, list[Feeds]]:
    config = tr.SwinConfig(image_size=64, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4)
    return _convert(First(tr.SwinModel(config), "pixel_values"), _image())


def bert(*, dynamic: bool = False) -> tuple[ov.Model, list[Feeds]]:
    config = tr.BertConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128
    )
    ids = _ids()
    return _convert(
        First(tr.BertModel(config), "input_ids", "attention_mask"), ids, torch.ones_like(ids), dynamic=dynamic
    )


def bert_dynamic() -> tuple[ov.Model, list[Feeds]]:
    model, feeds = bert(dynamic=True)
    longer = _ids(20)
    return model, [*feeds, [longer.numpy(), torch.ones_like(longer).numpy()]]


def gpt2() -> tuple[ov.Model, list[Feeds]]:
    config = tr.GPT2Config(vocab_size=100, n_embd=64, n_layer=3, n_head=4, use_cache=False)
    ids = _ids()
    return _convert(First(tr.GPT2LMHeadModel(config), "input_ids", "attention_mask"), ids, torch.ones_like(ids))


class T5(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = tr.T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
        self.model = tr.T5ForConditionalGeneration(config).eval()

    def forward(self, ids: torch.Tensor, decoder_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=ids, decoder_input_ids=decoder_ids, use_cache=False).logits


def t5() -> tuple[ov.Model, list[Feeds]]:
    return _convert(T5(), _ids(), _ids(5))


def whisper_encoder() -> tuple[ov.Model, list[Feeds]]:
    config = tr.WhisperConfig(
        d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, decoder_attention_heads=4, num_mel_bins=20,
        max_source_positions=50,
    )  # fmt: skip
    return _convert(First(tr.WhisperModel(config).encoder, "input_features"), torch.rand(1, 20, 100))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = self._block(3, 8), self._block(8, 16)
        self.middle = self._block(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out2, self.out1 = self._block(32, 16), self._block(16, 8)
        self.last = nn.Conv2d(8, 4, 1)

    def _block(self, into: int, out: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out), nn.SiLU(),
            nn.Conv2d(out, out, 3, padding=1), nn.GroupNorm(2, out), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pool = nn.functional.max_pool2d
        a = self.down1(x)
        b = self.down2(pool(a, 2))
        c = self.middle(pool(b, 2))
        b = self.out2(torch.cat([self.up2(c), b], 1))
        a = self.out1(torch.cat([self.up1(b), a], 1))
        return nn.functional.interpolate(self.last(a), scale_factor=2, mode="bilinear").softmax(1)


def unet() -> tuple[ov.Model, list[Feeds]]:
    return _convert(UNet(), _image(32))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(48, 7)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.embed(ids))[0]).log_softmax(-1)


def lstm_tagger() -> tuple[ov.Model, list[Feeds]]:
    return _convert(Tagger(), _ids())


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.Hardswish(),
        )  # fmt: skip
        self.boxes, self.scores = nn.Conv2d(32, 4, 1), nn.Conv2d(32, 3, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen = self.features(x)
        centre, size = self.boxes(seen).flatten(2).transpose(1, 2).sigmoid().chunk(2, -1)
        size = size * 0.3
        return torch.cat([centre - size, centre + size], -1), self.scores(seen).flatten(2).sigmoid()


def detector() -> tuple[ov.Model, list[Feeds]]:
    """A head with boxes and scores, and NonMaxSuppression behind it."""
    import openvino.opset9 as ops

    model, feeds = _convert(Detector(), _image(32))
    boxes, scores = (result.input_value(0) for result in model.get_results())
    threshold = [ops.constant(np.float32(0.5)), ops.constant(np.float32(0.4))]
    limit = ops.constant(np.int64(10))
    nms = ops.non_max_suppression(boxes, scores, limit, *threshold, box_encoding="corner")
    return ov.Model([nms.output(0), nms.output(1), nms.output(2)], model.get_parameters(), "detector"), feeds


def _quantized(module: nn.Module, image: torch.Tensor) -> tuple[ov.Model, list[Feeds]]:
    import nncf

    model, feeds = _convert(module, image)
    data = nncf.Dataset([image.numpy() for _ in range(4)])
    return nncf.quantize(model, data, subset_size=4), feeds


def int8_fake_quantize() -> tuple[ov.Model, list[Feeds]]:
    return _quantized(UNet(), _image(32))


class Decoder(nn.Module):
    """A Llama-style decoder with its cache as inputs and outputs, to be made stateful."""

    LAYERS, HEADS, SIZE = 2, 4, 64

    def __init__(self) -> None:
        super().__init__()
        config = tr.LlamaConfig(
            vocab_size=100, hidden_size=self.SIZE, intermediate_size=128, num_hidden_layers=self.LAYERS,
            num_attention_heads=self.HEADS, num_key_value_heads=2, attn_implementation="sdpa",
        )  # fmt: skip
        self.model = tr.LlamaForCausalLM(config).eval()

    def forward(
        self, ids: torch.Tensor, attention_mask: torch.Tensor, position_ids: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        cache = tr.DynamicCache(config=self.model.config)
        for layer, keys, held in zip(cache.layers, past[::2], past[1::2]):
            layer.keys, layer.values, layer.is_initialized = keys, held, True
            layer.dtype, layer.device = keys.dtype, keys.device
        out = self.model(
            input_ids=ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache,
            use_cache=True,
        )  # fmt: skip
        kept = out.past_key_values
        layers = [(layer.keys, layer.values) for layer in kept.layers]
        return (out.logits, *[t for pair in layers for t in pair])


def _stateful_decoder() -> ov.Model:
    from openvino._offline_transformations import apply_make_stateful_transformation

    past = [torch.zeros(1, 2, 3, Decoder.SIZE // Decoder.HEADS) for _ in range(2 * Decoder.LAYERS)]
    example = (_ids(2), torch.ones(1, 5, dtype=torch.int64), torch.arange(3, 5)[None], *past)
    model = ov.convert_model(Decoder().eval(), example_input=example)
    names = ["ids", "attention_mask", "position_ids", *(f"past.{i}" for i in range(len(past)))]
    for port, name in zip(model.inputs, names):
        port.get_tensor().set_names({name})
    for i, port in enumerate(model.outputs):
        port.get_tensor().set_names({"logits" if i == 0 else f"present.{i - 1}"})
    shapes: dict[Any, Any] = {port: [-1, -1] for port in model.inputs[:3]}
    shapes |= {port: [1, 2, -1, Decoder.SIZE // Decoder.HEADS] for port in model.inputs[3:]}
    model.reshape(shapes)
    apply_make_stateful_transformation(model, {f"past.{i}": f"present.{i}" for i in range(len(past))})
    return model


def _generation(logits: Callable[[Feeds], np.ndarray]) -> list[int]:
    """20 tokens, each the likeliest after those before it."""
    tokens = [1, 5, 9]
    fresh = list(tokens)
    for _ in range(20):
        start = len(tokens) - len(fresh)
        feeds = [
            np.array([fresh]), np.ones((1, len(tokens)), np.int64), np.arange(start, len(tokens))[None],
        ]  # fmt: skip
        fresh = [int(logits(feeds)[0, -1].argmax())]
        tokens += fresh
    return tokens


def llama_int4() -> tuple[ov.Model, list[Feeds]]:
    import nncf

    config = tr.LlamaConfig(
        vocab_size=128, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False,
    )  # fmt: skip
    ids = _ids()
    llama = First(tr.LlamaForCausalLM(config), "input_ids", "attention_mask")
    model, feeds = _convert(llama, ids, torch.ones_like(ids))
    mode = nncf.CompressWeightsMode.INT4_ASYM
    return nncf.compress_weights(model, mode=mode, group_size=32, ratio=1.0, all_layers=True), feeds


NETWORKS = {
    made.__name__: made
    for made in (
        resnet, resnet_dynamic, mobilenet_v2, vit, swin, bert, bert_dynamic, gpt2, t5, whisper_encoder, unet, detector, lstm_tagger,
        int8_fake_quantize, llama_int4,
    )
}  # fmt: skip


def compare(name: str, folder: Path) -> str:
    """One line on one network."""
    model, feeds = NETWORKS[name]()
    path = folder / f"{name}.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    report = irrun.check(path)
    executable = irrun.compile(path, strict=True)
    theirs = ov.Core().compile_model(path, "CPU", HINTS).create_infer_request()
    worst = 0.0
    for given in feeds:
        ours = executable(given).arrays
        expected = list(theirs.infer(given).values())
        for a, b in zip(ours, expected, strict=True):
            worst = max(worst, _error(a, b))
    return _line(name, executable, report, f"error {worst:.1e}  {_explained(path, feeds)}", worst < 1e-3)


def _explained(path: Path, feeds: list[Feeds]) -> str:
    """How many dims `irrun why` explains, once each formula has been worked out with the numbers of every run."""
    model = irrun.read_model(path)
    trace = Trace(model)
    counts = [prove(trace), *(prove(trace, in_a_run(model, given)) for given in feeds)]
    return f"{counts[-1]['formula'] + counts[-1]['own']} formulas, {counts[-1]['untold']} untold"


def _error(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return float("inf")
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.abs(a - b).max() / (np.abs(b).max() + 1e-30)) if a.size else 0.0


def generate(folder: Path) -> str:
    """A decoder that keeps its cache in variables, generating."""
    path = folder / "llama_stateful.xml"
    ov.save_model(_stateful_decoder(), path, compress_to_fp16=False)
    report = irrun.check(path)
    executable = irrun.compile(path, strict=True)
    request = ov.Core().compile_model(path, "CPU", HINTS).create_infer_request()
    ours: list[np.ndarray] = []
    theirs: list[np.ndarray] = []

    def run(feeds: Feeds) -> np.ndarray:
        # the fourth input, where there is one, tells which beam each row of the cache goes on with
        more = [np.zeros(1, np.int32)] * (len(executable.model.parameters) - len(feeds))
        ours.append(executable([*feeds, *more])[0])
        theirs.append(np.array(next(iter(request.infer([*feeds, *more]).values()))))
        return ours[-1]

    tokens = _generation(run)
    worst = max(_error(a, b) for a, b in zip(ours, theirs))
    same = all(a[0, -1].argmax() == b[0, -1].argmax() for a, b in zip(ours, theirs))
    return _line(
        "llama_stateful", executable, report, f"{len(tokens) - 3} tokens, error {worst:.1e}", same and worst < 1e-3
    )


def _line(name: str, executable: irrun.Executable, report: irrun.Report, what: str, right: bool) -> str:
    findings = f"{len(report.errors)} errors, {len(report) - len(report.errors)} warnings"
    verdict = "ok  " if right and report.ok else "FAIL"
    return f"{verdict} {name:<20} {len(executable.model.layers):>5} layers  {findings}  {what}"


def main() -> Iterator[str]:
    wanted = sys.argv[1:] or [*NETWORKS, "llama_stateful"]
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            try:
                yield generate(Path(folder)) if name == "llama_stateful" else compare(name, Path(folder))
            except irrun.IrrunError as error:
                kinds = sorted({str(d.message) for d in error.diagnostics if d.code == "IR201"})
                yield f"FAIL {name:<20} {(kinds or [str(error)])[0].splitlines()[0][:300]}"


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
