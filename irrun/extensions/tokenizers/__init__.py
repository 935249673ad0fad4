"""The operations of OpenVINO Tokenizers: the files ``openvino_tokenizer.xml`` and ``openvino_detokenizer.xml``.

Texts are bytes, which are only assumed to be UTF-8. A string tensor travels as three ports and a ragged one as five
(see ``_strings``). Regular expressions need the package ``regex``, models of SentencePiece the package
``sentencepiece``: the extra ``tokenizers`` of irrun. They are imported when a layer first needs them.
"""

from irrun.extensions.tokenizers import (
    bpe_tokenizer,
    byte_texts,
    greedy_tokenizers,
    normalization,
    ragged,
    regex_normalization,
    regex_split,
    sentencepiece,
    special_tokens_split,
    string_functions,
    string_tensors,
    truncate,
    unigram_tokenizer,
    vocab,
)

__all__ = [
    "bpe_tokenizer", "byte_texts", "greedy_tokenizers", "normalization", "ragged", "regex_normalization", "regex_split",
    "sentencepiece", "special_tokens_split", "string_functions", "string_tensors", "truncate", "unigram_tokenizer",
    "vocab",
]  # fmt: skip
