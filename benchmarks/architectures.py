"""The networks of the benchmark, at their published shape, with random weights (extra `bench`: torch, transformers).

`python -m benchmarks.architectures FOLDER [NAME …]` writes NAME-FORM.xml, NAME-FORM.bin and NAME-FORM.npz for each
form of the weights (see ``FORMS``). The .npz holds the feeds: entry ``3.0`` is the first input of the fourth call. A
network without state has one call.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import nncf
import numpy as np
import openvino as ov
import torch
import transformers as tr
from openvino import opset13 as ops
from openvino._offline_transformations import apply_make_stateful_transformation
from torch import Tensor, nn

Source = tuple[nn.Module, *tuple[Tensor, ...]]
"""A network of PyTorch, and the inputs of an example."""
Made = tuple[ov.Model, list[tuple[Tensor, ...]]]
"""A model and the inputs of each call."""


# ---------------------------------------------------------------------------------------------
# convolutional networks


def _conv(into: int, out: int, size: int, stride: int = 1, groups: int = 1, act: nn.Module | None = None) -> nn.Module:
    """Convolution that keeps the size (divided by ``stride``), BatchNorm and an activation."""
    conv = nn.Conv2d(into, out, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), *([act] if act else []))


class Bottleneck(nn.Module):
    def __init__(self, into: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            _conv(into, width, 1, act=nn.ReLU()), _conv(width, width, 3, stride, act=nn.ReLU()), _conv(width, out, 1)
        )
        self.short = nn.Identity() if into == out and stride == 1 else _conv(into, out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return (self.body(x) + self.short(x)).relu()


def resnet50() -> Source:
    layers: list[nn.Module] = [_conv(3, 64, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    into = 64
    for width, depth, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(depth):
            layers.append(Bottleneck(into, width, stride if i == 0 else 1))
            into = 4 * width
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000)]
    return _settled(nn.Sequential(*layers, *head), _image(224)), _image(224)


class InvertedResidual(nn.Module):
    def __init__(self, into: int, out: int, stride: int, expand: int) -> None:
        super().__init__()
        wide = into * expand
        widen = [_conv(into, wide, 1, act=nn.ReLU6())] if expand > 1 else []
        self.body = nn.Sequential(*widen, _conv(wide, wide, 3, stride, wide, nn.ReLU6()), _conv(wide, out, 1))
        self.residual = into == out and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.residual else self.body(x)


def mobilenet_v2() -> Source:
    layers = [_conv(3, 32, 3, 2, act=nn.ReLU6())]
    into = 32
    for expand, out, depth, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for i in range(depth):
            layers.append(InvertedResidual(into, out, stride if i == 0 else 1, expand))
            into = out
    head = [_conv(into, 1280, 1, act=nn.ReLU6()), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return _settled(nn.Sequential(*layers, *head), _image(224)), _image(224)


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.first = self._block(3, widths[0])
        self.down = nn.ModuleList(self._block(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.merge = nn.ModuleList(self._block(b, a) for a, b in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 1, 1)

    def _block(self, into: int, out: int) -> nn.Module:
        return nn.Sequential(_conv(into, out, 3, act=nn.ReLU()), _conv(out, out, 3, act=nn.ReLU()))

    def forward(self, x: Tensor) -> Tensor:
        levels = [self.first(x)]
        for down in self.down:
            levels.append(down(nn.functional.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([levels.pop(), up(x)], 1))
        return self.last(x).sigmoid()


def unet() -> Source:
    return _settled(UNet((32, 64, 128, 256, 512)), _image(256)), _image(256)


class Residual(nn.Module):
    """Two convolutions behind GroupNorm and SiLU, with the embedded time added between them."""

    def __init__(self, into: int, out: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, into), nn.SiLU(), nn.Conv2d(into, out, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, out))
        self.second = nn.Sequential(nn.GroupNorm(32, out), nn.SiLU(), nn.Conv2d(out, out, 3, padding=1))
        self.short = nn.Identity() if into == out else nn.Conv2d(into, out, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        return self.short(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class Attention(nn.Module):
    """Self-attention over the places of an image."""

    def __init__(self, width: int, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(32, width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        _, width, height, length = x.shape
        places = self.into(self.norm(x).flatten(2).transpose(1, 2))
        queries, keys, values = places.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(queries, keys, values)
        mixed = self.out(mixed.transpose(1, 2).flatten(2)).transpose(1, 2)
        return x + mixed.reshape(1, width, height, length)


class DiffusionUNet(nn.Module):
    """The U-Net of a latent diffusion model, with half the width of the first Stable Diffusion and no text."""

    def __init__(self, widths: tuple[int, ...] = (160, 320, 640), time: int = 640) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(160, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(4, widths[0], 3, padding=1)
        pairs = list(itertools.pairwise((widths[0], *widths)))
        self.down = nn.ModuleList(Residual(a, b, time) for a, b in pairs)
        self.attend = nn.ModuleList(nn.Identity() if b == widths[0] else Attention(b) for b in widths)
        self.shrink = nn.ModuleList(nn.Conv2d(b, b, 3, 2, 1) for b in widths[:-1])
        self.middle = Residual(widths[-1], widths[-1], time)
        self.up = nn.ModuleList(Residual(2 * b, a, time) for a, b in reversed(pairs))
        self.last = nn.Sequential(nn.GroupNorm(32, widths[0]), nn.SiLU(), nn.Conv2d(widths[0], 4, 3, padding=1))

    def forward(self, x: Tensor, waves: Tensor) -> Tensor:
        time, x, levels = self.time(waves), self.first(x), []
        for i, (down, attend) in enumerate(zip(self.down, self.attend)):
            x = attend(down(x, time))
            levels.append(x)
            if i < len(self.shrink):
                x = self.shrink[i](x)
        x = self.middle(x, time)
        for i, up in enumerate(self.up):
            x = up(torch.cat([x, levels.pop()], 1), time)
            if i < len(self.shrink):
                x = nn.functional.interpolate(x, scale_factor=2.0)
        return self.last(x)


def diffusion_unet() -> Source:
    return DiffusionUNet(), torch.randn(1, 4, 32, 32), torch.rand(1, 160)


def _image(size: int) -> Tensor:
    return torch.rand(1, 3, size, size)


def _settled(module: nn.Module, *example: Tensor) -> nn.Module:
    """The network with statistics in its BatchNorms that keep every layer at the scale of a trained one."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 1.0
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, 0, 0.2)
    module.train()(*example)
    return module


# ---------------------------------------------------------------------------------------------
# transformers


class First(nn.Module):
    """A transformers model as a function of its inputs that gives one tensor."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs)), return_dict=False)[0]


def _ids(length: int, vocabulary: int) -> Tensor:
    return torch.randint(0, vocabulary, (1, length))


def bert_base() -> Source:
    config = tr.BertConfig()
    ids = _ids(128, config.vocab_size)
    return First(tr.BertModel(config), "input_ids", "attention_mask"), ids, torch.ones_like(ids)


def vit_b16() -> Source:
    return First(tr.ViTForImageClassification(tr.ViTConfig(num_labels=1000)), "pixel_values"), _image(224)


def swin_t() -> Source:
    return First(tr.SwinForImageClassification(tr.SwinConfig(num_labels=1000)), "pixel_values"), _image(224)


def whisper_encoder() -> Source:
    config = tr.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536)
    return First(tr.WhisperModel(config).encoder, "input_features"), torch.rand(1, 80, 3000)


def gpt2() -> Source:
    config = tr.GPT2Config(use_cache=False)
    ids = _ids(64, config.vocab_size)
    return First(tr.GPT2LMHeadModel(config), "input_ids", "attention_mask"), ids, torch.ones_like(ids)


class Decoder(nn.Module):
    """A Llama-style decoder with its cache as inputs and outputs, to be made stateful."""

    LAYERS, SIZE, HEADS, KEYS = 12, 768, 12, 4

    def __init__(self) -> None:
        super().__init__()
        config = tr.LlamaConfig(
            hidden_size=self.SIZE, intermediate_size=2048, num_hidden_layers=self.LAYERS,
            num_attention_heads=self.HEADS, num_key_value_heads=self.KEYS, attn_implementation="sdpa",
        )  # fmt: skip
        self.model = tr.LlamaForCausalLM(config)

    def forward(self, ids: Tensor, attention_mask: Tensor, position_ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = tr.DynamicCache(config=self.model.config)
        for layer, keys, held in zip(cache.layers, past[::2], past[1::2]):
            layer.keys, layer.values, layer.is_initialized = keys, held, True
            layer.dtype, layer.device = keys.dtype, keys.device
        out = self.model(
            input_ids=ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache,
            use_cache=True,
        )  # fmt: skip
        return (out.logits, *(t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)))


def decoder() -> Source:
    """Return the decoder, and two tokens behind 32 others."""
    past = [torch.zeros(1, Decoder.KEYS, 32, Decoder.SIZE // Decoder.HEADS) for _ in range(2 * Decoder.LAYERS)]
    ids = _ids(2, 32000)
    return Decoder(), ids, torch.ones(1, 34, dtype=torch.int64), torch.arange(32, 34)[None], *past


def _stateful(module: nn.Module, *example: Tensor) -> Made:
    """Return the decoder with its cache as variables, as Optimum Intel exports it.

    The first call takes a prompt of 32 tokens, each of the 64 others one token more. ``beam_idx`` says which sequence
    of the batch each new token continues: without it, OpenVINO does not fuse the attention with the variables.
    """
    model = ov.convert_model(module.eval(), example_input=example)
    held = {f"past.{i}": f"present.{i}" for i in range(len(example) - 3)}
    for port, name in zip(model.inputs, ["ids", "attention_mask", "position_ids", *held]):
        port.get_tensor().set_names({name})
    for port, name in zip(model.outputs, ["logits", *held.values()]):
        port.get_tensor().set_names({name})
    dynamic = [[-1, -1]] * 3 + [[-1, Decoder.KEYS, -1, Decoder.SIZE // Decoder.HEADS]] * len(held)
    model.reshape(dict(zip(model.inputs, dynamic)))
    _choose_sequences(model, list(held))
    apply_make_stateful_transformation(model, held)
    _begin_empty(model)

    def call(start: int, length: int) -> tuple[Tensor, ...]:
        end = start + length
        positions = torch.arange(start, end)[None]
        return _ids(length, 32000), torch.ones(1, end, dtype=torch.int64), positions, torch.zeros(1, dtype=torch.int32)

    return model, [call(0, 32), *(call(32 + i, 1) for i in range(TOKENS))]


TOKENS = 64
"""Calls of the decoder with one token."""


def _choose_sequences(model: ov.Model, past: list[str]) -> None:
    """Gather the sequences of each input in ``past`` by the new input ``beam_idx``, i32 [batch]."""
    beams = ops.parameter([-1], ov.Type.i32, name="beam_idx")
    beams.output(0).get_tensor().set_names({"beam_idx"})
    for port in map(model.input, past):
        readers = port.get_target_inputs()
        chosen = ops.gather(port, beams, ops.constant(0, ov.Type.i64))
        for reader in readers:
            reader.replace_source_output(chosen.output(0))
    model.add_parameters([beams])
    model.validate_nodes_and_infer_types()


def _begin_empty(model: ov.Model) -> None:
    """Let each variable begin without tokens, for as many sequences as ``ids`` has."""
    first = ops.constant([0], ov.Type.i64)
    batch = ops.gather(ops.shape_of(model.input("ids"), ov.Type.i64), first, ops.constant(0, ov.Type.i64))
    for read in [op for op in model.get_ops() if op.get_type_name() == "ReadValue"]:
        rest = [dim.min_length for dim in read.get_output_partial_shape(0)][1:]
        shape = ops.concat([batch, ops.constant(rest, ov.Type.i64)], 0)
        read.set_arguments([ops.broadcast(ops.constant(0.0, ov.Type.f32), shape)])
    model.validate_nodes_and_infer_types()


# ---------------------------------------------------------------------------------------------
# recurrent networks


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10_000, 128)
        self.lstm = nn.LSTM(128, 256, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(512, 17)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.lstm(self.embed(ids))[0]).log_softmax(-1)


def lstm_tagger() -> Source:
    return Tagger(), _ids(64, 10_000)


# ---------------------------------------------------------------------------------------------


NETWORKS: dict[str, Callable[[], Source]] = {
    made.__name__: made
    for made in (
        resnet50,
        mobilenet_v2,
        unet,
        diffusion_unet,
        bert_base,
        vit_b16,
        swin_t,
        whisper_encoder,
        gpt2,
        decoder,
        lstm_tagger,
    )
}


def _convert(module: nn.Module, *inputs: Tensor) -> Made:
    model = ov.convert_model(module.eval(), example_input=inputs if len(inputs) > 1 else inputs[0])
    model.reshape({i: list(x.shape) for i, x in enumerate(inputs)})
    return model, [inputs]


FORMS: dict[str, Callable[[ov.Model, list[np.ndarray]], ov.Model]] = {
    "f32": lambda model, _: model,
    "f16": lambda model, _: model,
    "int8": lambda model, feeds: (
        _quantized(model, feeds)
        if _convolutional(model)
        else nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)
    ),
    "quantized": lambda model, feeds: _quantized(model, feeds, nncf.ModelType.TRANSFORMER),
    "int4": lambda model, _: nncf.compress_weights(
        model,
        mode=nncf.CompressWeightsMode.INT4_ASYM,
        group_size=128,
        advanced_parameters=nncf.AdvancedCompressionParameters(
            group_size_fallback_mode=nncf.GroupSizeFallbackMode.ADJUST
        ),
    ),
}
"""What is done to a network before it is saved. All forms but f32 are saved as ``save_model`` does by default: numbers
that are still f32 become f16. In int8 and int4, NNCF compresses the weights; but a convolutional network in int8 has
FakeQuantize, as others have if they are quantized. A group of int4 has 128 weights, or fewer where 128 does not divide
a row, as in Swin-T."""


def _quantized(model: ov.Model, feeds: list[np.ndarray], type: nncf.ModelType | None = None) -> ov.Model:
    """Return a model with FakeQuantize. Eight inputs like ``feeds`` give its limits."""

    def example(seed: int) -> list[np.ndarray]:
        draw = np.random.default_rng(seed)
        return [draw.random(x.shape, np.float32) if x.dtype == np.float32 else draw.permuted(x, axis=-1) for x in feeds]

    return nncf.quantize(model, nncf.Dataset([*map(example, range(8))]), subset_size=8, model_type=type)


def _convolutional(model: ov.Model) -> bool:
    """Return whether most of the work is in convolutions: a transformer of images has one or a few."""
    return sum(op.get_type_name() in ("Convolution", "GroupConvolution") for op in model.get_ops()) > 10


def _is_left_out(form: str, name: str, model: ov.Model) -> bool:
    """Return whether nobody stores a network so: in int4 if it convolves, or with FakeQuantize if it writes text."""
    writes_text = form == "quantized" and name in (gpt2.__name__, decoder.__name__)
    return form in ("int4", "quantized") and (writes_text or _convolutional(model))


def converted(name: str) -> Made:
    """Return a network as OpenVINO converts it, and the inputs of each call."""
    torch.manual_seed(0)
    return (_stateful if name == decoder.__name__ else _convert)(*NETWORKS[name]())


def write(name: str, folder: Path) -> None:
    """Convert one network, in all forms. A .xml comes last: where it is, all is."""
    model, calls = converted(name)
    feeds = {f"{i}.{k}": x.numpy() for i, call in enumerate(calls) for k, x in enumerate(call)}
    for form in (form for form in FORMS if not _is_left_out(form, name, model)):
        file = f"{name}-{form}"
        changed = FORMS[form](model.clone(), [x.numpy() for x in calls[0]])
        np.savez(folder / f"{file}.npz", **feeds)
        partial = folder / f"{file}.partial.xml"
        ov.save_model(changed, partial, compress_to_fp16=form != "f32")
        partial.with_suffix(".bin").replace(folder / f"{file}.bin")
        partial.replace(folder / f"{file}.xml")


def main(folder: str, *names: str) -> Iterator[str]:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or NETWORKS:
        write(name, Path(folder))
        yield name


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(False)
    for done in main(*sys.argv[1:]):
        print(done, flush=True)
