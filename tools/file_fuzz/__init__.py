"""The fuzzer of files: mutants of IR files and of pages. ``python -m tools file_fuzz --help`` says how to run it."""
