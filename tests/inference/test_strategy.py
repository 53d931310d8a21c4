import numpy as np
import pytest

from npax.inference import Planar
from npax.inference.strategy import CLOSE, QUIET, choose, tile_reach


@pytest.mark.parametrize(("nc", "wanted"), [(1, "exact"), (1500, "exact"), (1501, "tiled"), (1_000_000, "tiled")])
def test_few_observations_are_all_seen(nc, wanted):
    assert choose(nc) == wanted


def test_tiles_that_reach_no_farther_than_a_part_of_the_whole_see_more():
    assert choose(1000, CLOSE) == "exact"
    assert choose(1000, 0.99 * CLOSE) == "tiled"


def test_with_little_noise_tiles_see_more_however_far_they_reach():
    assert choose(1000, noise=QUIET) == "exact"
    assert choose(1000, noise=0.99 * QUIET) == "tiled"


def test_the_reach_of_a_tile_is_the_distance_to_its_farthest_place(rng):
    line = np.linspace(-2, 2, 401)[:, None]
    assert np.isclose(tile_reach(line, 101), 0.5)  # 50 on each side, and itself
    assert tile_reach(np.repeat(line, 3, axis=0), 101) == tile_reach(line, 101)
    assert tile_reach(line, 401) == np.inf and tile_reach(line[:0], 8) == np.inf
    cluster = np.concatenate([0.01 * rng.random((300, 2)), 10 * rng.random((10, 2))])
    assert tile_reach(Planar().frame(cluster)(cluster), 128) < 0.01 * CLOSE


@pytest.mark.parametrize(("d", "turn"), [(1, 320), (2, 1000)])
def test_as_documented_for_places_that_are_spread_evenly(d, turn, rng):
    for n in (int(0.8 * turn), int(1.25 * turn)):
        x = 4 * rng.random((n, d)) - 2
        assert choose(n, tile_reach(x, 128)) == ("exact" if n < turn else "tiled")
