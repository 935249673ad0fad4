"""FarmHash64 of a text (farmhashna), with which tables of strings find their buckets."""

from __future__ import annotations

from typing import Final

__all__ = ["farmhash64"]

_MASK: Final = (1 << 64) - 1
_K0: Final = 0xC3A5C85C97CB3127
_K1: Final = 0xB492B66FBE98F273
_K2: Final = 0x9AE16A3B2F90404F


def _word(text: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(text[at : at + size], "little")


def _rotated(value: int, by: int) -> int:
    return (value >> by | value << (64 - by)) & _MASK


def _shifted(value: int) -> int:
    return value ^ value >> 47


def _mixed(u: int, v: int, by: int) -> int:
    a = _shifted((u ^ v) * by & _MASK)
    b = _shifted((v ^ a) * by & _MASK)
    return b * by & _MASK


def farmhash64(text: bytes) -> int:
    """Return the hash of a text: an integer of 64 bits."""
    size = len(text)
    if size <= 16:
        return _up_to_16(text, size)
    if size <= 32:
        by = _K2 + size * 2
        a, b = _word(text, 0) * _K1, _word(text, 8)
        c, d = _word(text, size - 8) * by, _word(text, size - 16) * _K2
        a, c = a & _MASK, c & _MASK
        u = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK
        return _mixed(u, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, by)
    return _up_to_64(text, size) if size <= 64 else _longer(text, size)


def _up_to_16(text: bytes, size: int) -> int:
    by = _K2 + size * 2
    if size >= 8:
        a, b = _word(text, 0) + _K2 & _MASK, _word(text, size - 8)
        c = _rotated(b, 37) * by + a & _MASK
        return _mixed(c, (_rotated(a, 25) + b) * by & _MASK, by)
    if size >= 4:
        return _mixed(size + (_word(text, 0, 4) << 3), _word(text, size - 4, 4), by)
    if size:
        y = text[0] + (text[size >> 1] << 8)
        z = size + (text[-1] << 2)
        return _shifted((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _up_to_64(text: bytes, size: int) -> int:
    by = _K2 + size * 2
    a, b = _word(text, 0) * _K2 & _MASK, _word(text, 8)
    c, d = _word(text, size - 8) * by & _MASK, _word(text, size - 16) * _K2 & _MASK
    y = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK
    z = _mixed(y, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, by)
    e, f = _word(text, 16) * by & _MASK, _word(text, 24)
    g, h = (y + _word(text, size - 32)) * by & _MASK, (z + _word(text, size - 24)) * by & _MASK
    u = _rotated(e + f & _MASK, 43) + _rotated(g, 30) + h & _MASK
    return _mixed(u, e + _rotated(f + a & _MASK, 18) + g & _MASK, by)


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_word(text, at + n) for n in (0, 8, 16, 24))
    a = a + w & _MASK
    b = _rotated(b + a + z & _MASK, 21)
    c = a
    a = a + x + y & _MASK
    b = b + _rotated(a, 44) & _MASK
    return a + z & _MASK, b + c & _MASK


def _longer(text: bytes, size: int) -> int:
    seed = 81
    x, y = seed, (seed * _K1 + 113) & _MASK
    z = _shifted(y * _K2 + 113 & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + _word(text, 0)) & _MASK
    end, last = (size - 1) // 64 * 64, size - 64
    at = 0
    while True:
        x = _rotated(x + y + v[0] + _word(text, at + 8) & _MASK, 37) * _K1 & _MASK
        y = _rotated(y + v[1] + _word(text, at + 48) & _MASK, 42) * _K1 & _MASK
        x ^= w[1]
        y = y + v[0] + _word(text, at + 40) & _MASK
        z = _rotated(z + w[0] & _MASK, 33) * _K1 & _MASK
        v = _weak(text, at, v[1] * _K1 & _MASK, x + w[0] & _MASK)
        w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
        z, x = x, z
        at += 64
        if at == end:
            break
    by = (_K1 + ((z & 0xFF) << 1)) & _MASK
    at = last
    w = (w[0] + ((size - 1) & 63) & _MASK, w[1])
    v = (v[0] + w[0] & _MASK, v[1])
    w = (w[0] + v[0] & _MASK, w[1])
    x = _rotated(x + y + v[0] + _word(text, at + 8) & _MASK, 37) * by & _MASK
    y = _rotated(y + v[1] + _word(text, at + 48) & _MASK, 42) * by & _MASK
    x ^= w[1] * 9 & _MASK
    y = y + v[0] * 9 + _word(text, at + 40) & _MASK
    z = _rotated(z + w[0] & _MASK, 33) * by & _MASK
    v = _weak(text, at, v[1] * by & _MASK, x + w[0] & _MASK)
    w = _weak(text, at + 32, z + w[1] & _MASK, y + _word(text, at + 16) & _MASK)
    z, x = x, z
    first = _mixed(v[0], w[0], by) + _shifted(y) * _K0 + z & _MASK
    return _mixed(first, _mixed(v[1], w[1], by) + x & _MASK, by)
