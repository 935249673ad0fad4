"""Tell a causal language model from other models that read text: classifiers, embeddings, encoders."""

from __future__ import annotations

from typing import Final

from irrun.diagnostics import Diagnostic, diagnostic
from irrun.genai.decoder import input_name, is_too_narrow, logits_of
from irrun.genai.folder import Folder
from irrun.model import Layer, Model

__all__ = ["columns", "embedding", "not_causal"]

_TASKS: Final = {
    "ForMaskedLM": "fills in masked tokens",
    "ForSequenceClassification": "chooses a label for a text",
    "ForTokenClassification": "chooses a label for each token",
    "ForQuestionAnswering": "finds an answer in a text",
    "ForMultipleChoice": "chooses among answers",
    "ForNextSentencePrediction": "compares two texts",
}
"""What models of other tasks do, by the end of their names in the entry ``architectures`` of config.json."""
_HIDDEN: Final = {"last_hidden_state", "sentence_embedding", "token_embeddings", "pooler_output", "text_embeds"}
"""The outputs of models that compute embeddings."""
_HELP: Final = (
    "pass the folder of a causal language model: optimum-cli export openvino --task text-generation-with-past"
)


def not_causal(model: Model, folder: Folder, tokens: int | None) -> Diagnostic | None:
    """Return why a model does not choose the next token of a text (IR805), or None if nothing speaks against it.

    ``tokens`` is the number of tokens of the tokenizer, if it is known. What ``unfed`` reports is left to it.
    """
    result = logits_of(model)
    if result is None:
        return None
    fed = model.fed_by(result, 0) if result.inputs else None
    type, shape = (None, None) if fed is None else (fed[1].type, fed[1].shape)
    names = model.result_names(result)
    hidden = next((name for name in names if name in _HIDDEN), None)
    known = tokens or (embedding(model) or (None,))[0]
    width = columns(model)
    task = _task(folder)
    message = ""
    if hidden is not None:
        message = f"its output is {hidden}: it computes embeddings, not logits"
    elif type is not None and type.kind != "float":
        message = f"its logits are {type}, not floats"
    elif shape is not None and shape.rank is not None and shape.rank not in (2, 3):
        message = f"its logits are {shape}, not [batch,length,vocabulary]"
    elif is_too_narrow(width, known):
        message = f"its logits have {width:,} columns, but there are {known:,} tokens: it chooses among labels"
    elif task:
        message = task
    if not message:
        return None
    message = f"the model is no causal language model: {message}"
    return diagnostic("IR805", message, source=model.source, node=result.node, layer=result.name, help=_HELP)


def _task(folder: Folder) -> str:
    """Return what the model does by its config.json, if that is another task; otherwise an empty text."""
    listed = folder.config.data.get("architectures")
    for name in listed if isinstance(listed, list) else ():
        task = next((what for end, what in _TASKS.items() if isinstance(name, str) and name.endswith(end)), None)
        if task is not None:
            return f"config.json says {name}, which {task}"
    return ""


def embedding(model: Model) -> tuple[int, Layer] | None:
    """Return the number of rows of the table from which the ids take theirs, and its layer; None if it is not found."""
    waiting = [parameter.id for parameter in model.parameters if input_name(model, parameter) == "input_ids"]
    while waiting:
        for id, place in model.readers.get((waiting.pop(), 0), ()):
            layer = model.layers[id]
            if layer.type == "Gather" and place == 1:
                fed = model.fed_by(layer, 0)
                shape = None if fed is None else fed[1].shape
                if shape is not None and shape.rank == 2 and shape[0].value is not None:
                    return shape[0].value, layer
            elif layer.type in ("Convert", "Reshape", "Unsqueeze", "Squeeze") and place == 0:
                waiting.append(layer.id)
    return None


def columns(model: Model) -> int | None:
    """Return the last dim of the logits, if the file declares it."""
    result = logits_of(model)
    fed = None if result is None or not result.inputs else model.fed_by(result, 0)
    shape = None if fed is None else fed[1].shape
    return None if shape is None or not shape.rank else shape[-1].value
