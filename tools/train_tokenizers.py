"""Train tokenizers of many kinds and convert them: ``python -m tools train_tokenizers FOLDER [NAME…]``.

This needs the packages tokenizers, transformers and openvino_tokenizers. Each tokenizer gets a folder with
``openvino_tokenizer.xml``, ``openvino_detokenizer.xml`` and ``tokenizer.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizer_texts import SENTENCES

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
    ]
)  # fmt: skip
DEEPSEEK = [
    r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
]  # fmt: skip
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


@dataclass
class Training:
    """The texts that the tokenizers are trained on, and the number of tokens of their vocabularies."""

    texts: Sequence[str] = tuple(SENTENCES.values()) * 3
    vocabulary: int = 700


TRAINING = Training()
"""What ``train`` and ``kinds`` use; ``benchmarks.tokenization`` replaces its fields."""


@dataclass(frozen=True)
class Kind:
    """A tokenizer to train: ``make`` returns it, ``options`` are those of the conversion."""

    name: str
    make: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)


def _trained(model: Any, trainer: Any, normalizer: Any = None, split: Any = None, decoder: Any = None, processor: Any = None) -> Any:  # fmt: skip
    from tokenizers import Tokenizer

    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if split is not None:
        tokenizer.pre_tokenizer = split
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.train_from_iterator(TRAINING.texts, trainer)
    if processor is not None:
        tokenizer.post_processor = processor(tokenizer)
    return tokenizer


def _fast(tokenizer: Any, **special: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _template(single: str, pair: str, *names: str) -> Callable[[Any], Any]:
    from tokenizers.processors import TemplateProcessing

    return lambda t: TemplateProcessing(single=single, pair=pair, special_tokens=[(n, t.token_to_id(n)) for n in names])


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpiece(normalizer: Any, split: Any = None, **options: Any) -> Any:
    from tokenizers import decoders, models, pre_tokenizers, trainers

    trainer = trainers.WordPieceTrainer(vocab_size=TRAINING.vocabulary, special_tokens=BERT, show_progress=False)
    tokenizer = _trained(
        models.WordPiece(unk_token="[UNK]"), trainer, normalizer, split or pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece(), _template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS]", "[SEP]"),
    )  # fmt: skip
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return _fast(tokenizer, **names, **options)


def byte_level(
    normalizer: Any = None, split: Any = None, *, pattern: str | list[str] = "", prefix: bool = False,
    special: tuple[str, ...] = ("<|endoftext|>",), processor: Any = None, behavior: str = "isolated", **options: Any,
) -> Any:  # fmt: skip
    from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=TRAINING.vocabulary, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    patterns = [pattern] if isinstance(pattern, str) else pattern
    steps = [pre_tokenizers.Split(Regex(one), behavior) for one in patterns if one]
    steps += [] if split is None else [split]
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not pattern))
    whole = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    tokenizer = _trained(models.BPE(), trainer, normalizer, whole, decoders.ByteLevel(), processor)
    return _fast(tokenizer, **{"pad_token": special[0], "eos_token": special[0], **options})


def fallback_bpe(normalizer: Any = None, split: Any = None, decoder: Any = None, **options: Any) -> Any:
    from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=TRAINING.vocabulary, special_tokens=special, show_progress=False, limit_alphabet=120
    )
    if normalizer is None:
        normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    if decoder is None:
        decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    model = models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    words = pre_tokenizers.Split("▁", "merged_with_next")  # as SentencePiece trains: no token holds an inner ▁
    template = _template("<s> $A", "<s> $A <s> $B", "<s>")
    tokenizer = _trained(model, trainer, normalizer, words, decoder, template)
    data = json.loads(tokenizer.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["content"].startswith("<0x")]
    tokenizer = type(tokenizer).from_str(json.dumps(data))
    if split is not None:
        tokenizer.pre_tokenizer = split
    return _fast(tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>", **options)


def unigram(normalizer: Any, split: Any = None, processor: Any = None, **options: Any) -> Any:
    from tokenizers import decoders, models, pre_tokenizers, trainers

    special = ["<pad>", "</s>", "<unk>", "<s>", "<mask>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=TRAINING.vocabulary, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    template = processor or _template("$A </s>", "$A </s> $B </s>", "</s>")
    split = split or pre_tokenizers.Metaspace()
    tokenizer = _trained(models.Unigram(), trainer, normalizer, split, decoders.Metaspace(), template)
    return _fast(tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", **options)


def charsmap() -> bytes:
    """Return the map of characters of a small SentencePiece model, as T5 and XLM-R have one."""
    import io
    import tempfile

    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    rules = {
        "½": "1⁄2",
        "ﬁ": "fi",
        "①": "1",
        "\u212b": "\u00c5",
        "e\u0301": "\u00e9",
        "\t": " ",
        "\n": " ",
        "\u3000": " ",
        "…": "...",
    }
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        for key, value in rules.items():
            file.write(f"{' '.join(f'{ord(c):X}' for c in key)}\t{' '.join(f'{ord(c):X}' for c in value)}\n")
        file.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TRAINING.texts), model_writer=model, vocab_size=TRAINING.vocabulary,
            normalization_rule_tsv=file.name, minloglevel=2, hard_vocab_limit=False,
        )  # fmt: skip
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def word_level(normalizer: Any, split: Any) -> Any:
    from tokenizers import models, trainers

    trainer = trainers.WordLevelTrainer(
        vocab_size=TRAINING.vocabulary, special_tokens=["[UNK]", "[PAD]"], show_progress=False
    )
    tokenizer = _trained(models.WordLevel(unk_token="[UNK]"), trainer, normalizer, split)
    return _fast(tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def kinds() -> Iterator[Kind]:
    """Yield the tokenizers. They are like those of the models that their names say."""
    from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

    n, p = normalizers, pre_tokenizers

    def bert(**options: Any) -> Any:
        return n.BertNormalizer(**options)

    yield Kind("bert-uncased", lambda: wordpiece(bert(lowercase=True)))
    yield Kind("bert-cased", lambda: wordpiece(bert(lowercase=False, strip_accents=False)), {"max_length": 16})
    yield Kind(
        "bert-pair",
        lambda: wordpiece(bert(lowercase=True), model_max_length=24, truncation_side="right"),
        {"number_of_inputs": 2, "max_length": 24},
    )
    yield Kind(
        "bert-left",
        lambda: wordpiece(bert(lowercase=True), padding_side="left", truncation_side="left"),
        {"max_length": 12, "use_max_padding": True},
    )
    yield Kind(
        "mpnet-accents", lambda: wordpiece(n.Sequence([n.NFKD(), n.Lowercase(), n.StripAccents()]), p.Whitespace())
    )
    yield Kind(
        "electra-digits",
        lambda: wordpiece(
            n.NFKC(), p.Sequence([p.WhitespaceSplit(), p.Digits(individual_digits=True), p.Punctuation("contiguous")])
        ),
        {"add_special_tokens": False},
    )
    yield Kind("gpt2", byte_level)
    yield Kind(
        "gpt2-left-max",
        lambda: byte_level(padding_side="left", truncation_side="left"),
        {"max_length": 10, "use_max_padding": True},
    )
    yield Kind(
        "roberta",
        lambda: byte_level(
            prefix=True,
            special=("<pad>", "<s>", "</s>", "<unk>", "<mask>"),
            processor=lambda t: processors.RobertaProcessing(
                ("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))
            ),
            bos_token="<s>",
            eos_token="</s>",
            mask_token=AddedToken("<mask>", lstrip=True, special=True),
        ),
    )
    yield Kind(
        "roberta-pair",
        lambda: byte_level(
            prefix=True,
            special=("<pad>", "<s>", "</s>"),
            processor=lambda t: processors.RobertaProcessing(
                ("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))
            ),
        ),
        {"number_of_inputs": 2, "max_length": 21},
    )
    yield Kind(
        "llama3",
        lambda: byte_level(
            pattern=LLAMA3,
            special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
            processor=_template("<|im_start|> $A", "<|im_start|> $A <|im_start|> $B", "<|im_start|>"),
            padding_side="left",
        ),
    )
    yield Kind(
        "qwen", lambda: byte_level(n.NFC(), pattern=QWEN, special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    )
    yield Kind("o200k", lambda: byte_level(pattern=O200K), {"skip_special_tokens": False})
    yield Kind("deepseek", lambda: byte_level(pattern=DEEPSEEK))
    yield Kind("neox-nfc", lambda: byte_level(n.NFC()))
    yield Kind("starcoder", lambda: byte_level(split=p.Digits(individual_digits=True)))
    yield Kind("falcon", lambda: byte_level(split=p.Sequence([p.Punctuation("contiguous"), p.Digits()])))
    yield Kind("bloom", lambda: byte_level(pattern=BLOOM))
    yield Kind("nfkd-bytes", lambda: byte_level(n.NFKD()))
    yield Kind(
        "lower-bytes", lambda: byte_level(n.Sequence([n.NFC(), n.Lowercase()])), {"clean_up_tokenization_spaces": True}
    )
    yield Kind("llama2", fallback_bpe, {"utf8_replace_mode": "replace"})
    yield Kind(
        "llama2-metaspace",
        lambda: fallback_bpe(
            n.NFKC(),
            p.Metaspace(prepend_scheme="always", split=False),
            decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace()]),
        ),
    )
    yield Kind(
        "gemma",
        lambda: fallback_bpe(
            n.Replace(" ", "▁"),
            p.Split(" ", "merged_with_previous"),
            decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]),
        ),
        {"utf8_replace_mode": "ignore"},
    )
    yield Kind("t5", lambda: unigram(n.Sequence([n.Precompiled(charsmap()), n.Replace(Regex(" {2,}"), " ")])))
    yield Kind(
        "xlm-roberta",
        lambda: unigram(
            n.NFKC(),
            p.Sequence([p.WhitespaceSplit(), p.Metaspace()]),
            _template("<s> $A </s>", "<s> $A </s> </s> $B </s>", "<s>", "</s>"),
        ),
        {"max_length": 20},
    )
    yield Kind(
        "albert",
        lambda: unigram(
            n.Sequence([n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents(), n.Lowercase()])
        ),
    )
    yield Kind("word-level", lambda: word_level(n.Sequence([n.NFD(), n.Lowercase()]), p.Whitespace()))
    yield Kind(
        "word-level-cased",
        lambda: word_level(n.Strip(), p.Sequence([p.WhitespaceSplit(), p.Punctuation("contiguous")])),
    )

    def clip() -> Any:
        special = ["<|startoftext|>", "<|endoftext|>"]
        trainer = trainers.BpeTrainer(
            vocab_size=TRAINING.vocabulary, special_tokens=special, end_of_word_suffix="</w>", show_progress=False,
            initial_alphabet=p.ByteLevel.alphabet(),
        )  # fmt: skip
        model = models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>")
        split = p.Sequence(
            [p.Split(Regex(CLIP), "removed", invert=True), p.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        normal = n.Sequence([n.NFC(), n.Replace(Regex(r"\s+"), " "), n.Lowercase()])
        tokenizer = _trained(
            model,
            trainer,
            normal,
            split,
            decoders.ByteLevel(),
            _template("<|startoftext|> $A <|endoftext|>", "<|startoftext|> $A <|endoftext|> $B", *special),
        )
        return _fast(
            tokenizer,
            pad_token="<|endoftext|>",
            eos_token="<|endoftext|>",
            bos_token="<|startoftext|>",
            unk_token="<|endoftext|>",
        )

    yield Kind("clip", clip)

    def stripped() -> Any:
        tokenizer = byte_level(special=("<|endoftext|>", "<pad>"))
        tokenizer.add_tokens(
            [
                AddedToken("<left>", lstrip=True),
                AddedToken("<right>", rstrip=True),
                AddedToken("<both>", lstrip=True, rstrip=True),
                "brotherhood",
                "人人",
            ]
        )
        return tokenizer

    yield Kind("added-tokens", stripped)


def train(folder: Path, names: list[str]) -> list[str]:
    """Train and convert the tokenizers, all or those of these names. Return the names of those that were written."""
    import openvino as ov
    from openvino_tokenizers import convert_tokenizer

    done = []
    for kind in kinds():
        if names and kind.name not in names:
            continue
        target = folder / kind.name
        target.mkdir(parents=True, exist_ok=True)
        tokenizer = kind.make()
        tokenizer.backend_tokenizer.save(str(target / "tokenizer.json"))
        try:
            models = convert_tokenizer(tokenizer, with_detokenizer=True, **kind.options)
        except Exception as error:  # the converter refuses a kind
            print(f"{kind.name}: {error!r}")
            continue
        for name, model in zip(("openvino_tokenizer", "openvino_detokenizer"), models):
            ov.save_model(model, target / f"{name}.xml")
        done.append(kind.name)
    return done


if __name__ == "__main__":
    print(*train(Path(sys.argv[1]), sys.argv[2:]))
