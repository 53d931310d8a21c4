import numpy as np
import pytest

from npax.inference import LatLon, Tiled
from npax.inference.trend import Trend


def quadratic(x):
    return np.stack([3 + x[:, 0] - 2 * x[:, 1] ** 2, x[:, 0] * x[:, 1]], axis=1)


@pytest.fixture
def x():
    return np.random.default_rng(0).uniform([100.0, -3.0], [104.0, 5.0], (400, 2))


def test_it_is_found_and_ends_with_the_observations(x):
    trend, places = Trend(x, quadratic(x)), np.random.default_rng(1).uniform(x.min(0), x.max(0), (50, 2))
    assert np.allclose(trend(places), quadratic(places), atol=1e-6)
    assert np.allclose(
        trend(places + np.array([1e6, 0.0])), quadratic(np.c_[np.full(50, x[:, 0].max()), places[:, 1]]), atol=1e-6
    )


def test_it_is_finite_for_points_on_a_line_or_in_one_place(x):
    for points in (x * [1.0, 0.0], x * 0.0):
        assert np.allclose(Trend(points, np.ones((400, 1)))(points), 1.0)


@pytest.mark.parametrize("radius", [0.01, 0.1, 1.0, 10.0])
def test_it_does_not_explode_on_a_patch_of_the_sphere(radius, rng):
    """There one of the powers is nearly a sum of others: seen from the side the patch is flat."""
    u = rng.uniform(-radius, radius, (2500, 2))
    x = LatLon().positions(np.array([11.0, 48.0]) + u)
    y = u[:, :1] / radius + rng.normal(size=(2500, 1))
    places = LatLon().positions(np.array([11.0, 48.0]) + rng.uniform(-radius, radius, (500, 2)) * 0.99)
    assert np.abs(Trend(x, y)(places)).max() < 2.5


def test_it_does_not_explode_beside_a_track(rng):
    """In the corners of its box a diagonal track says nothing."""
    along = rng.uniform(0, 100, 2500)
    x = np.stack([along, 2 * along], axis=1) + rng.normal(size=(2500, 2)) * 0.05
    corners = np.array([[0.0, 200.0], [100.0, 0.0], [50.0, 0.0], [0.0, 100.0]])
    y = along[:, None] / 50 - 1 + rng.normal(size=(2500, 1))
    assert np.abs(Trend(x, y)(corners)).max() < 5
    assert np.abs(Trend(x, y)(x) - (along[:, None] / 50 - 1)).max() < 0.3


def test_tiles_follow_a_trend_that_is_added(gp, x):
    rng = np.random.default_rng(2)
    y, places = rng.normal(size=(400, 1)), rng.uniform(x.min(0), x.max(0), (30, 2))
    added = 100 * quadratic(x)[:, :1]
    plain, sloped = (Tiled(gp, x, values, size=16)(places) for values in (y, y + added))
    assert np.allclose(sloped.mean - plain.mean, 100 * quadratic(places)[:, :1], atol=1e-2)
    assert np.allclose(sloped.variance, plain.variance, rtol=1e-2)
    few = [Tiled(gp, x, values, size=64)(places).mean for values in (y, y + added)]
    assert not np.allclose(few[1] - few[0], 100 * quadratic(places)[:, :1], atol=1.0)
