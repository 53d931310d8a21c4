import itertools

import pytest

from npax.inference.strategy import CHEAP, EXACT_UP_TO, choose, exact_work, tiled_work


@pytest.mark.parametrize(
    ("nc", "nt", "wanted"),
    [
        (1, 1, "exact"),
        (2000, 1, "exact"),  # tiles are less work, but it is little
        (2000, 1000, "exact"),
        (2000, 1_000_000, "tiled"),
        (500, 1_000_000, "exact"),
        (2001, 1, "tiled"),  # where tiles are more accurate
        (1_000_000, 1_000_000, "tiled"),
    ],
)
def test_cheaper_unless_cheap_or_inaccurate(nc, nt, wanted):
    assert choose(nc, nt, 128) == wanted


def test_work_grows_and_small_contexts_are_one_tile():
    assert exact_work(100, 10) == tiled_work(100, 10, 128)
    for work in (exact_work, lambda nc, nt: tiled_work(nc, nt, 128)):
        sizes = [1, 10, 100, 1000, 10_000]
        assert all(
            work(1000, a) < work(1000, b) and work(a, 1000) <= work(b, 1000) for a, b in itertools.pairwise(sizes)
        )
    assert exact_work(EXACT_UP_TO, 1) < CHEAP
