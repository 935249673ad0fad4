"""From functions to machine code that threads share: compiling, linking, and memory by its address."""
