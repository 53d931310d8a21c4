"""Powers of two by bits against float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from npax.bias.exponential import exp2_nonpositive

power = jax.jit(exp2_nonpositive)


def test_powers_of_two_are_right_to_the_last_digits():
    x = -np.concatenate([np.geomspace(1e-30, 126, 20_000), np.linspace(0, 20, 20_001), np.arange(0, 127.0)])
    x = x.astype(np.float32)
    true = np.exp2(x.astype(np.float64))
    found = np.asarray(power(x), np.float64)
    assert np.max(np.abs(found - true)) < 3e-7
    assert np.max(np.abs(found / true - 1)) < 1e-5
    assert np.max(np.abs(np.exp2(np.round(x)) / true - 1)) > 0.3  # a whole power would not do


def test_far_below_zero_nothing_is_left():
    for x in (-127.0, -1e10, -np.inf):
        assert 0 <= power(jnp.float32(x)) < 2e-38
    assert np.isnan(power(jnp.float32(np.nan)))


@pytest.mark.parametrize("x", [0.0, -0.3, -0.5, -7.5, -100.0])
def test_the_slope_is_that_of_a_power_of_two(x):
    slope = jax.jit(jax.grad(exp2_nonpositive))(jnp.float32(x))
    assert float(slope) == pytest.approx(np.log(2) * 2.0**x, rel=1e-5)


def test_other_precisions_are_the_librarys():
    with jax.enable_x64(True):
        assert float(power(jnp.float64(-0.3))) == pytest.approx(2.0**-0.3, rel=1e-14)
