"""Generate text with a language model in a folder, as optimum-intel writes it::

    from irrun.genai import Pipeline

    pipeline = Pipeline("llama")
    print(pipeline.generate("Once upon a time", max_new_tokens=50).text)
    for piece in pipeline.stream([{"role": "user", "content": "Hello!"}]):
        print(piece, end="", flush=True)

Several texts at once, through the paged form of the model that a server runs::

    from irrun.genai import PagedPipeline

    batch = PagedPipeline("llama").generate(["Once upon a time", "The quick brown"], max_new_tokens=50)
    print([generation.text for generation in batch.texts])

The folder holds the model, its tokenizer and its detokenizer as IR files, and their configuration as JSON.
"""

from irrun.genai.checks import check
from irrun.genai.folder import Folder, is_folder
from irrun.genai.paged import Batch, PagedPipeline
from irrun.genai.pipeline import Pipeline, Stream
from irrun.genai.prompts import Prompt
from irrun.genai.sampling import Sampling
from irrun.genai.streaming import Generation
from irrun.genai.templates import ChatTemplate

__all__ = [
    "Batch",
    "ChatTemplate",
    "Folder",
    "Generation",
    "PagedPipeline",
    "Pipeline",
    "Prompt",
    "Sampling",
    "Stream",
    "check",
    "is_folder",
]
