"""Few shapes for many sizes: a compiled program serves every set that fits its padded shape."""

import numpy as np

SMALLEST = 16
COARSE = 4096
"""Sizes beyond are finer: what is done with the padding would take longer than to compile once more."""


def bucket(n: int) -> int:
    """The padded size of a set of `n` points: 16, 24, 32, 48, 64, ...: two per octave, at most half again too large;
    beyond 4,096, where attention takes seconds, sixteen per octave, at most 1/16 too large.

    Sizes up to 4,096 fall into 17 buckets, sizes up to a million into 145.
    """
    if n > COARSE:
        step = 2 ** ((n - 1).bit_length() - 5)
        return -(-n // step) * step
    size = SMALLEST
    while size < n:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def wide_bucket(n: int, largest: int) -> int:
    """The padded size of `n` targets: 64, 256, 1,024, ...: one per two octaves, for what is cheap; up to `largest`."""
    size = 64
    while size < n:
        size *= 4
    return min(size, largest)


def pad(a: np.ndarray, n: int, axis: int = 0) -> np.ndarray:
    """`a` with zeros appended along `axis` up to length `n`."""
    if a.shape[axis] > n:
        raise ValueError(f"`a` has {a.shape[axis]} entries along axis {axis}, more than the `n` = {n} it should get.")
    widths = [(0, 0)] * a.ndim
    widths[axis] = (0, n - a.shape[axis])
    return np.pad(a, widths)
