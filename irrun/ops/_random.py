"""The random streams of RandomUniform and Multinomial."""

import secrets

import numpy as np

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def seeds(global_seed: int, op_seed: int) -> tuple[int, int]:
    """Return the two seeds. If both are 0, the first one is random."""
    return (global_seed, op_seed) if global_seed or op_seed else (secrets.randbits(64), 0)


def philox(key: int, counter: int, start: int, count: int) -> np.ndarray:
    """Return ``count`` uint32 numbers of the Philox 4x32-10 stream, beginning with number ``4 * start``."""
    n = np.arange(-(-count // 4), dtype=np.uint64) + np.uint64(start % 2**64)
    low, high = n & _LOW, n >> _HALF
    counter_low, counter_high = (np.full_like(n, half) for half in _halves(counter))
    key_low, key_high = _halves(key)
    for _ in range(10):
        product, other = low * np.uint64(0xD2511F53), counter_low * np.uint64(0xCD9E8D57)
        low, high = other >> _HALF ^ high ^ np.uint64(key_low), other & _LOW
        counter_low, counter_high = product >> _HALF ^ counter_high ^ np.uint64(key_high), product & _LOW
        key_low, key_high = (key_low + 0x9E3779B9) % 2**32, (key_high + 0xBB67AE85) % 2**32
    return np.stack([low, high, counter_low, counter_high], axis=1).astype(np.uint32).ravel()[:count]


def _halves(n: int) -> tuple[int, int]:
    """Return the low and the high 32 bits."""
    return n % 2**32, (n >> 32) % 2**32


def mersenne_twister(seed: int, count: int) -> np.ndarray:
    """Return ``count`` uint32 numbers of the MT19937 stream."""
    return np.random.RandomState(seed % 2**32).randint(0, 2**32, count, np.uint32)


def seeded_by_sequence(seeds: tuple[int, int], count: int) -> np.ndarray:
    """Return ``count`` uint32 numbers of C++'s ``std::mt19937``, seeded by a ``std::seed_seq`` of ``seeds``."""
    size, p, q = 624, 306, 317
    values = [len(seeds), *(seed % 2**32 for seed in seeds)]
    state = [0x8B8B8B8B] * size

    def mixed(n: int, factor: int) -> int:
        return factor * (n ^ n >> 27) % 2**32

    for k in range(size):
        first = mixed(state[k] ^ state[(k + p) % size] ^ state[k - 1], 1664525)
        second = (first + k + (values[k] if k < len(values) else 0)) % 2**32
        state[(k + p) % size] = (state[(k + p) % size] + first) % 2**32
        state[(k + q) % size] = (state[(k + q) % size] + second) % 2**32
        state[k] = second
    for k in range(size):
        first = mixed((state[k] + state[(k + p) % size] + state[k - 1]) % 2**32, 1566083941)
        second = (first - k) % 2**32
        state[(k + p) % size] ^= first
        state[(k + q) % size] ^= second
        state[k] = second
    generator = np.random.RandomState()
    generator.set_state(("MT19937", np.array(state, np.uint32), size, 0, 0.0))
    return generator.randint(0, 2**32, count, np.uint32)


def pairs(numbers: np.ndarray) -> np.ndarray:
    """Combine each pair of uint32 numbers into a uint64, the first of them as its high half."""
    return numbers[::2].astype(np.uint64) << _HALF | numbers[1::2]


def fractions(numbers: np.ndarray, digits: int) -> np.ndarray:
    """Return the low ``digits`` bits of each number as a fraction from 0 to 1: f32 for uint32, f64 for uint64."""
    dtype = np.float32 if numbers.dtype == np.uint32 else np.float64
    return (numbers & numbers.dtype.type((1 << digits) - 1)).astype(dtype) * dtype(2.0**-digits)
