"""Two fuzzers: mutants of files, and random graphs. ``python -m tools file_fuzz --help`` says how to run them."""
