"""Make the package irrun-fast: the machine code of compiled kernels, so that nobody waits for a compiler.

``python -m tools ahead record [MODEL.xml …]`` writes ``entries.json``: the kernels, and the types of the arguments with
which random models of every kernel (``kernel_calls``) and the given models call them. ``python -m tools ahead build
FOLDER`` compiles these entries for each kind of processor, links a library of each, and writes a wheel to the folder.
Both need the extra ``fast``, and building needs gcc and hatchling.
"""
