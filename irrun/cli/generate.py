"""``irrun generate`` (run): Generate text with a language model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import click

from irrun.base.text import counted, printable
from irrun.cli import _completion, _terminal
from irrun.cli._input_options import seed_option
from irrun.cli._options import format_option, memory_option, plugin_option, timeout_option
from irrun.cli._settings import with_settings
from irrun.genai import Batch, Generation, PagedPipeline, Pipeline, Prompt, Stream

__all__ = ["command"]

_MAX_PROMPT_BYTES: Final = 64 << 20
"""The most bytes of a prompt from standard input: far more than any model takes."""


@dataclass(frozen=True)
class Settings:
    """The options of ``irrun generate``."""

    folder: str
    prompt: Sequence[str]
    paged: str | None
    chat: bool
    system: str | None
    max_new_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    repetition_penalty: float | None
    stop: Sequence[str]
    form: str
    max_memory: int | None
    timeout: float | None

    def prompted(self) -> list[Prompt]:
        """Return the texts to continue, or the messages of chats."""
        texts = [_standard_input() if prompt == "-" else prompt for prompt in self.prompt]
        if not self.chat and self.system is None:
            return [*texts]
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [[*system, {"role": "user", "content": text}] for text in texts]

    def sampling(self) -> dict[str, Any]:
        """Return how tokens are chosen, as ``Pipeline.stream`` takes it."""
        is_drawn = any(option is not None for option in (self.temperature, self.top_k, self.top_p))
        return {
            "max_new_tokens": self.max_new_tokens,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "seed": self.seed,
            "repetition_penalty": self.repetition_penalty,
            "stop": tuple(filter(None, self.stop)) or None,
            "do_sample": self.temperature != 0 if is_drawn else None,
            "temperature": self.temperature or None,
        }


@click.command("generate")
@click.argument("folder", metavar="FOLDER")
@click.option(
    "-p",
    "--prompt",
    metavar="TEXT",
    required=True,
    multiple=True,
    help="The text to continue; - reads standard input. May be repeated with --paged.",
)
@click.option(
    "--paged",
    metavar="FILE",
    shell_complete=_completion.files,
    help="Generate all texts at once, with this paged form of the model; `openvino` lets OpenVINO make it.",
)
@click.option("--chat", is_flag=True, help="Put the prompt into the chat template, as the message of a user.")
@click.option("--system", metavar="TEXT", help="The system's message before that of the user. Implies --chat.")
@click.option(
    "-n",
    "--max-new-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="The most tokens to generate. [default: that of the folder, or 256]",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    metavar="NUMBER",
    help="Draw tokens, less evenly below 1 and more evenly above. 0 takes the likeliest.",
)
@click.option("--top-k", type=click.IntRange(min=1), metavar="N", help="Draw from the N likeliest tokens.")
@click.option(
    "--top-p",
    type=click.FloatRange(min=0, max=1, min_open=True),
    metavar="NUMBER",
    help="Draw from the fewest tokens that together have this probability.",
)
@seed_option("tokens", None)
@click.option(
    "--repetition-penalty",
    type=click.FloatRange(min=0, min_open=True),
    metavar="NUMBER",
    help="Make tokens that have occurred less likely, above 1.",
)
@click.option("--stop", metavar="TEXT", multiple=True, help="End before this text. May be repeated.")
@format_option("text", "json")
@plugin_option
@memory_option()
@timeout_option(None)
@with_settings(Settings)
def command(settings: Settings) -> int:
    """Generate text with a language model.

    FOLDER holds the model, its tokenizer and its detokenizer, as optimum-intel writes them: openvino_model.xml,
    openvino_tokenizer.xml, openvino_detokenizer.xml, and their configuration as JSON.

    The text is printed as it comes; the number of tokens and the time follow on standard error. As in openvino_genai,
    the likeliest token is taken, unless generation_config.json says do_sample. --temperature, --top-k and --top-p draw
    tokens as well. Without --chat, the prompt is passed as it is.

    --paged serves several prompts in one run, as openvino_genai does: the caches of keys and values consist of blocks,
    and a call of the model takes new tokens of several texts. FILE is the model after OpenVINO's
    paged_attention_transformation, as openvino.save_model writes it. The texts are those that each prompt gives by
    itself, in the order of the prompts.

    Exit status: 0 success; 1 the model fails; 2 the folder is no language model, or an option is wrong; 3 an operation
    that irrun does not support; 130 Ctrl-C.
    """
    if settings.paged is not None:
        return _serve(settings, settings.paged)
    if len(settings.prompt) > 1:
        raise click.UsageError("several prompts need --paged; add `--paged openvino`, or pass one -p")
    pipeline = Pipeline(settings.folder, max_memory=settings.max_memory, timeout=settings.timeout)
    stream = pipeline.stream(settings.prompted()[0], **settings.sampling())
    if settings.form == "json":
        _terminal.print_json(_record(stream.result))
        return 0
    return _print(stream)


def _serve(settings: Settings, paged: str) -> int:
    """Generate all texts at once, and print them when the last one has ended."""
    pipeline = PagedPipeline(settings.folder, paged, max_memory=settings.max_memory, timeout=settings.timeout)
    batch = pipeline.generate(settings.prompted(), **settings.sampling())
    if settings.form == "json":
        _terminal.print_json({**asdict(batch), "texts": [_record(text) for text in batch.texts]})
        return 0
    for text in batch.texts:
        sys.stdout.write(_shown(text.text) + "\n")
    sys.stdout.flush()
    _terminal.console(stderr=True).print(_said(batch))
    return 0


def _said(batch: Batch) -> str:
    """Return a line about the work of all texts."""
    prompts, new = (sum(len(getattr(text, name)) for text in batch.texts) for name in ("prompt_ids", "ids"))
    restarts = f", {counted(batch.restarts, 'restart')} for want of blocks" if batch.restarts else ""
    used = f"at most {batch.most_blocks} of {counted(batch.blocks, 'block')} in use{restarts}"
    work = f"{prompts} tokens of prompt, {new} new tokens in {counted(batch.calls, 'call')}"
    return f"{counted(len(batch.texts), 'text')}: {work}; {used}"


def _standard_input() -> str:
    """Return the prompt from standard input. Raises click.UsageError if it is not UTF-8, or too long."""
    data = sys.stdin.buffer.read(_MAX_PROMPT_BYTES + 1)
    if len(data) > _MAX_PROMPT_BYTES:
        raise click.UsageError(f"standard input has more than {_MAX_PROMPT_BYTES:,} bytes; pass a shorter prompt")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not UTF-8 at byte {error.start}; convert it") from None


def _print(stream: Stream) -> int:
    """Print the pieces of a text as they come, and a line about them on standard error."""
    interrupted = False
    try:
        for piece in stream:
            sys.stdout.write(_shown(piece))
            sys.stdout.flush()
    except KeyboardInterrupt:
        interrupted = True
    sys.stdout.write("\n")
    sys.stdout.flush()
    err = _terminal.console(stderr=True)
    if interrupted:
        err.print("interrupted")
        return 130
    result = stream.result
    if not result.text and result.ended_by == "length":
        err.print(
            f"warning: the detokenizer gives no text for any of {len(result.ids)} new tokens; they are special tokens, "
            "or the files belong to several exports: irrun check FOLDER"
        )
    rate = f", {result.tokens_per_second:.1f} per second" if result.tokens_per_second else ""
    ends = {"eos": "the model ended the text", "stop": "a --stop was found", "length": "--max-new-tokens was reached"}
    err.print(
        f"{len(result.prompt_ids)} tokens of prompt, {len(result.ids)} new tokens{rate}; first after "
        f"{result.first_seconds:.2f} s; {ends[result.ended_by]}"
    )
    return 0


def _shown(piece: str) -> str:
    """Return a piece as it is printed. On a terminal, control characters are escaped; a model may write any."""
    if not sys.stdout.isatty():
        return piece
    return "".join(c if c in "\n\t" else printable(c) for c in piece)


def _record(result: Generation) -> dict[str, Any]:
    """Return a result as a dict for JSON."""
    return {
        "text": result.text,
        "ids": list(result.ids),
        "prompt_ids": list(result.prompt_ids),
        "ended_by": result.ended_by,
        "first_seconds": result.first_seconds,
        "seconds": result.seconds,
        "tokens_per_second": result.tokens_per_second,
    }
