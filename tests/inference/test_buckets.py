import numpy as np
import pytest

from npax.inference import Exact
from npax.inference.buckets import bucket, pad, wide_bucket


def test_two_sizes_per_octave_hold_every_set():
    sizes = [bucket(n) for n in range(2049)]
    assert sorted(set(sizes)) == [16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048]
    assert all(n <= size for n, size in enumerate(sizes))
    assert all(size <= 1.5 * n for n, size in enumerate(sizes) if n > 16)


def test_large_sets_are_padded_little():
    for n in (4097, 5079, 8192, 8193, 65_536, 65_537, 100_000, 1_000_000):
        size = bucket(n)
        assert n <= size <= n * (1 + 1 / 16) and size % 256 == 0 and bucket(size) == size


def test_wide_buckets():
    assert [wide_bucket(n, 1024) for n in (0, 1, 64, 65, 256, 257, 1024)] == [64, 64, 64, 256, 256, 1024, 1024]


def test_padding_keeps_what_was_there_and_refuses_to_cut():
    a = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(pad(a, 5)[:3], a) and not pad(a, 5)[3:].any()
    assert pad(a, 4, axis=1).shape == (3, 4)
    with pytest.raises(ValueError, match="more than"):
        pad(a, 2)


def test_fifty_context_sizes_compile_at_most_fifteen_times(gp, rng):
    x, y = rng.uniform(0, 1, (2000, 2)), rng.normal(size=(2000, 1))
    sizes = np.unique(np.geomspace(1, 2000, 80).round().astype(int))[-50:]
    sizes[0] = 1
    assert len(np.unique(sizes)) == 50
    traced = []

    class Counting(type(gp)):
        def condition(self, xc, yc, mask=None):
            traced.append(xc.shape[0])
            return xc

        def decode(self, state, xt):
            return xt

    model = Counting()
    for n in sizes:
        assert len(Exact(model, x[:n], y[:n])(x[:7]).mean) == 7
    assert len(traced) == len(set(traced)) <= 15
