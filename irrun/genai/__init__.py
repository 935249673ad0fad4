"""Generate text with a language model in a folder, as optimum-intel writes it::

    from irrun.genai import Pipeline

    pipeline = Pipeline("llama")
    print(pipeline.generate("Once upon a time", max_new_tokens=50).text)
    for piece in pipeline.stream([{"role": "user", "content": "Hello!"}]):
        print(piece, end="", flush=True)

The folder holds the model, its tokenizer and its detokenizer as IR files, and their configuration as JSON.
"""

from irrun.genai.checks import check
from irrun.genai.folder import Folder, is_folder
from irrun.genai.pipeline import Generation, Pipeline, Stream
from irrun.genai.sampling import Sampling
from irrun.genai.templates import ChatTemplate

__all__ = ["ChatTemplate", "Folder", "Generation", "Pipeline", "Sampling", "Stream", "check", "is_folder"]
