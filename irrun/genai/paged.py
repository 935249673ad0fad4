"""Several texts at once, through the paged form of a language model."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.api import compile as compiled
from irrun.diagnostics import EngineError, ExecutionError, FeedError, ModelError, diagnostic
from irrun.engines.folder import private_folder
from irrun.engines.opening import open as opened
from irrun.engines.outcomes import Loaded, Refusal
from irrun.genai.decoder import is_too_narrow, logits_of
from irrun.genai.prompts import Prompt, Prompts
from irrun.genai.sampling import Sampling
from irrun.genai.schedule import SLOTS, Blocks, NewTokens, Schedule, needed, tables
from irrun.genai.streaming import Generation
from irrun.model import Layer, Model
from irrun.running.executor import Executable
from irrun.running.liveness import held_bytes

__all__ = ["Batch", "Paged", "PagedPipeline", "rewritten"]

_PAGED: Final = "PagedAttentionExtension"
_TABLES: Final = ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
_CACHES: Final = ("key_cache", "value_cache")
_HELP: Final = "pass the model after openvino's paged_attention_transformation, as openvino.save_model writes it"


class Paged:
    """Feeds a compiled paged model. ``tokens`` is the number of tokens of the tokenizer, if it is known.

    Raises ModelError (IR805) if the model has no PagedAttentionExtension, or inputs that nothing feeds.
    """

    def __init__(self, executable: Executable, tokens: int | None = None) -> None:
        self._executable, self._tokens = executable, tokens
        model = executable.model
        layers = [layer for layer in model.layers.values() if layer.type == _PAGED]
        if not layers:
            raise _unfit(model, None, f"the model has no layer {_PAGED}")
        self._shapes = {name: shape for layer in layers for name, shape in self._caches(layer).items()}
        self._names = self._fed()
        logits = logits_of(model)
        if logits is None:
            raise _unfit(model, None, "the model has no output logits")
        self._output = model.results.index(logits)
        self._fresh: dict[str, np.ndarray] = {}

    def _caches(self, layer: Layer) -> dict[str, tuple[int, int]]:
        """Return the heads and the width of a row of the two caches of a layer, by the names of their Parameters.

        The file leaves the shapes of caches open. The layer reads a key and a value as [tokens, heads * width], from a
        Reshape of [tokens, 1, heads, width].
        """
        model, values = self._executable.model, self._executable.plan.values
        feeds = model.feeds[layer.id]
        found: dict[str, tuple[int, int]] = {}
        for rows, cache in ((1, 3), (2, 4)):
            source, feed = feeds[cache], feeds[rows]
            before = None if feed is None or model.layers[feed[0]].type != "Reshape" else model.feeds[feed[0]][0]
            dims = None if before is None else values[before].shape.dims
            heads, width = (None, None) if dims is None or len(dims) < 3 else (dims[-2].value, dims[-1].value)
            if source is None or heads is None or width is None:
                raise _unfit(model, layer, f'the heads of {_CACHES[cache - 3]} of "{layer.name}" are not known')
            found[model.layers[source[0]].name] = heads, width
        return found

    def _fed(self) -> list[str]:
        """Return the names of the inputs beside the caches. Raises ModelError (IR805) for inputs that nothing feeds."""
        model = self._executable.model
        known = tables([NewTokens([0], 0, [0])])
        names: list[str] = []
        for parameter in model.parameters:
            if parameter.name in self._shapes:
                continue
            name = next((name for name in model.input_names(parameter) if name in known), None)
            if name is None:
                raise _unfit(model, parameter, f'no generation can feed the input "{parameter.name}"')
            names.append(name)
        if missing := [name for name in ("input_ids", *_TABLES) if name not in names]:
            raise _unfit(model, None, f"the model has no input {', '.join(missing)}")
        return names

    def begin(self, blocks: int) -> Blocks:
        """Forget all tokens, and return the blocks of new caches: ``blocks``, or fewer if the memory is too small.

        The caches may take half of the ``max_memory`` of the model that its constants leave.
        """
        self._executable.reset_state()
        rest = self._executable.max_memory - held_bytes(self._executable.plan)
        count = min(blocks, max(0, rest) // 2 // self.block_bytes)
        self._fresh = {
            name: np.zeros((count, heads, SLOTS, width), np.float32) for name, (heads, width) in self._shapes.items()
        }
        return Blocks(count)

    @property
    def block_bytes(self) -> int:
        """The bytes of one block in all caches, which are f32."""
        return 4 * SLOTS * sum(math.prod(shape) for shape in self._shapes.values())

    def require_room(self, blocks: Blocks, tokens: int) -> None:
        """Raise FeedError (IR601) unless a sequence of so many tokens fits the blocks."""
        if needed(tokens) > blocks.count:
            message = f"a text of {tokens:,} tokens needs {needed(tokens)} blocks, but max_memory allows {blocks.count}"
            help = f"a block of {SLOTS} tokens takes {self.block_bytes:,} bytes: raise --max-memory (max_memory=), or "
            help += "lower --max-new-tokens"
            raise FeedError(diagnostic("IR601", message, file=self._executable.model.source.path, help=help))

    def __call__(self, pieces: Sequence[NewTokens]) -> list[np.ndarray]:
        """Return the logits after each piece, f32 [vocabulary].

        Raises ExecutionError if the model fails, and IR605 if its output is not [tokens, 1, vocabulary].
        """
        given = tables(pieces)
        feeds = {name: given[name] for name in self._names}
        logits = self._executable({**feeds, **self._fresh})[self._output]
        self._fresh = {}
        count, columns = len(given["input_ids"]), logits.shape[-1] if logits.ndim else 0
        if not columns or logits.size != count * columns:
            raise self._refused(f"the logits are [{','.join(map(str, logits.shape))}], not [{count},1,vocabulary]")
        if is_too_narrow(columns, self._tokens):
            raise self._refused(f"the logits have {columns:,} columns, but there are {self._tokens:,} tokens")
        last = given["subsequence_begins"][1:] - 1
        return list(logits.reshape(count, columns)[last].astype(np.float32, copy=False))

    def _refused(self, message: str) -> ExecutionError:
        return ExecutionError(diagnostic("IR605", message, source=self._executable.model.source, help=_HELP))


@dataclass(frozen=True)
class Batch:
    """The results of prompts that were served together, in the order of the prompts.

    ``calls`` is the number of runs of the model, ``blocks`` the number of blocks of the caches, and ``most_blocks`` the
    most of them in use at once. ``restarts`` counts the texts that gave their blocks to an earlier text and were
    computed again.
    """

    texts: tuple[Generation, ...]
    calls: int
    blocks: int
    most_blocks: int
    restarts: int


class PagedPipeline(Prompts):
    """A language model in a folder that generates several texts at once, as a server does.

    ``paged`` is the paged form of the folder's model: a file that openvino.save_model has written after
    paged_attention_transformation, or ``openvino``, which lets an installed OpenVINO make it. ``max_memory`` is that of
    ``irrun.compile``; the caches of keys and values take at most half of what the weights leave. ``timeout`` is the
    most seconds of a call of the model.

    Raises the errors of ``Pipeline``, ModelError (IR805) if ``paged`` is no paged model, and EngineError (IR702) if
    OpenVINO is not installed or does not rewrite the model.
    """

    def __init__(
        self,
        folder: str | Path,
        paged: str | Path = "openvino",
        *,
        max_memory: int | None = None,
        exact: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        limits: dict[str, Any] = {"max_memory": max_memory, "exact": exact, "timeout": timeout}
        super().__init__(folder, **limits)
        with ExitStack() as stack:
            if paged == "openvino":
                paged = rewritten(self.folder.model, stack.enter_context(private_folder()))
            self._paged = Paged(compiled(paged, **limits), self._tokens)
            weakref.finalize(self, stack.pop_all().close)  # the model reads the .bin as long as it lives

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling | None = None, **settings: Any) -> Batch:
        """Generate a text after each prompt, all at once, and return them.

        Each text is the one that ``Pipeline.generate`` gives for its prompt, within the rounding of logits. Arguments
        and errors are those of ``Pipeline.generate``; FeedError (IR601) also if a text of ``max_new_tokens`` needs more
        blocks than ``max_memory`` allows.
        """
        texts = [self._text(prompt, sampling, settings) for prompt in prompts]
        lengths = [len(text.prompt) + text.most for text in texts]
        blocks = self._paged.begin(sum(map(needed, lengths)))
        for length in lengths:
            self._paged.require_room(blocks, length)
        schedule, calls = Schedule(blocks, texts), 0
        while call := schedule.call():
            calls += 1
            pieces = [NewTokens(r.text.tokens[r.held : r.held + count], r.held, r.blocks) for r, count in call]
            for (running, count), logits in zip(call, self._paged(pieces)):
                running.held += count
                if not running.lacking:
                    running.text.add(logits)
                    if running.text.ended_by is not None:
                        schedule.end(running)
        return Batch(tuple(text.result for text in texts), calls, blocks.count, blocks.most, schedule.restarts)


def rewritten(model: Path, folder: Path) -> Path:
    """Return a file in ``folder`` with the paged form of a model, by OpenVINO. Raises EngineError (IR702)."""
    file = folder / "paged.xml"
    with opened("openvino[transform=paged]") as engine:
        loaded = engine.load(model, inner=True)  # inner: OpenVINO need not compile it
        failure = engine.save(file) if isinstance(loaded, Loaded) else loaded
    if failure is not None:
        reason = failure.message if isinstance(failure, Refusal) else f"{failure}"
        message = f"OpenVINO does not rewrite the model to paged attention: {reason}"
        help = "pass a stateful model whose attention OpenVINO recognises, or the paged form as a file"
        raise EngineError(diagnostic("IR702", message, file=str(model), help=help))
    return file


def _unfit(model: Model, layer: Layer | None, message: str) -> ModelError:
    node, name = (0, None) if layer is None else (layer.node, layer.name)
    return ModelError([diagnostic("IR805", message, source=model.source, node=node, layer=name, help=_HELP)])
