"""Machine code of irrun's compiled kernels: a shared library for each kind of processor, which irrun loads."""
