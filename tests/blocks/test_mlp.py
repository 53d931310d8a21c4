import jax.numpy as jnp
import numpy as np
import pytest

from npax.blocks import MLP, Linear, spread_over_locations


@pytest.mark.parametrize("dx", [1, 2])
def test_outputs_bend_all_over_the_range_of_the_coordinates(dx, getkey):
    plain = Linear(dx + 3, 2000, key=getkey())
    spread = spread_over_locations(plain, slice(0, dx), slope=4.0, key=getkey())
    assert (spread.weight[dx:] == plain.weight[dx:]).all()
    w = np.asarray(spread.weight[:dx], np.float64)
    assert np.abs(w).max() <= 4 / np.sqrt(dx) and np.abs(w).std() > 1 / np.sqrt(dx)
    if dx == 1:
        zeros = -np.asarray(spread.bias) / w[0]
        assert np.abs(zeros).max() <= 2.001
        assert np.abs(np.histogram(zeros, 4, (-2, 2))[0] / 500 - 1).max() < 0.2


def test_a_network_on_locations_tells_near_ones_apart_from_the_start(getkey):
    key = getkey()
    x = jnp.linspace(-2, 2, 41)[:, None]

    def curvature(**options):
        return jnp.abs(jnp.diff(MLP([1, 64, 8], key=key, **options)(x), n=2, axis=0)).mean()

    assert curvature(locations=slice(0, 1)) > 5 * curvature()
