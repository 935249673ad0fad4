"""Call compiled kernels with random inputs in odd memory, and compare them with ``exact``.

`python -m tools kernel_calls --calls 20000 --seed 7` makes models of one operation, or of a few that kernels join, with
random attributes and shapes. It calls each model several times, with compiled kernels and with ``exact``, and reports
each call whose results differ by more than rounding, or in kind (NaN, an infinity and its sign). The inputs lie in the
layouts of `irrun/growing/layouts.py`, some of them beside a page that must not be touched; some hold infinities, NaN,
huge and subnormal numbers. `--form avx2` computes as a processor without AVX-512 does, and `--threads` sets the
threads, which share calls of every size. `--each 20000` goes on until each kernel ran in so many calls. `--only MatMul
--at 31` repeats the calls of one model. The exit status is 1 if a result is wrong, or if a kernel ran in no call.
"""
