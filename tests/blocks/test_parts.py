"""Linear, LayerNorm and MLP against numpy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
import scipy.special
from laws import normal

from npax.blocks import MLP, LayerNorm, Linear, PointEncoder, ReLU


def as64(a):
    return np.asarray(a, np.float64)


def gelu(x):
    """The tanh form, JAX's default."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_linear_is_an_affine_map(getkey):
    linear = Linear(5, 3, key=getkey())
    linear = jax.tree.map(lambda a: a + 0.1, linear)
    x = normal(getkey(), (7, 5))
    true = as64(x) @ as64(linear.weight) + as64(linear.bias)
    assert reference.relative(eqx.filter_jit(linear)(x), true) < 1e-6
    assert Linear(5, 3, use_bias=False, key=getkey()).bias is None


def test_gradients_of_linear_are_matrix_products(getkey):
    linear, x, weight = Linear(5, 3, key=getkey()), normal(getkey(), (7, 5)), normal(getkey(), (7, 3))
    d_linear, d_x = jax.jit(jax.grad(lambda linear, x: jnp.sum(weight * linear(x)), argnums=(0, 1)))(linear, x)
    assert reference.relative(d_linear.weight, as64(x).T @ as64(weight)) < 1e-6
    assert reference.relative(d_linear.bias, as64(weight).sum(axis=0)) < 1e-6
    assert reference.relative(d_x, as64(weight) @ as64(linear.weight).T) < 1e-6


def test_layer_norm_gives_zero_mean_and_unit_variance(getkey):
    norm = LayerNorm(32)
    x = 5 + 3 * normal(getkey(), (6, 32))
    y = as64(eqx.filter_jit(norm)(x))
    assert np.abs(y.mean(axis=-1)).max() < 1e-5
    assert np.abs(y.var(axis=-1) - 1).max() < 1e-4
    true = (as64(x) - as64(x).mean(-1, keepdims=True)) / np.sqrt(as64(x).var(-1, keepdims=True) + 1e-5)
    assert reference.relative(y, true) < 1e-5


def test_layer_norm_of_a_constant_row_is_finite(getkey):
    norm, x = LayerNorm(8), jnp.full((2, 8), 3.0)
    assert (np.asarray(eqx.filter_jit(norm)(x)) == 0).all()
    assert np.isfinite(jax.jit(jax.grad(lambda x: jnp.sum(jnp.square(norm(x)))))(x)).all()


@pytest.mark.parametrize(("options", "activation"), [({}, gelu), ({"activation": ReLU()}, lambda x: x * (x > 0))])
def test_mlp_is_affine_maps_with_an_activation_between(options, activation, getkey):
    mlp = MLP([4, 8, 6, 2], **options, key=getkey())
    mlp = jax.tree.map(lambda a: a + 0.05, mlp)
    x = normal(getkey(), (5, 4))
    true = as64(x)
    for i, layer in enumerate(mlp.layers):
        true = true @ as64(layer.weight) + as64(layer.bias)
        true = activation(true) if i < 2 else true
    assert reference.relative(eqx.filter_jit(mlp)(x), true) < 1e-5
    exact = 0.5 * (1 + scipy.special.erf(1 / np.sqrt(2)))  # of x = 1; the tanh form is within 2e-4 of it
    assert abs(float(jax.nn.gelu(jnp.array(1.0))) - exact) < 2e-4


@pytest.mark.parametrize(("hidden", "layers"), [((8, 8), 0), ((), 0), ((8,), 1)])
@pytest.mark.parametrize("valid", [0, 1, 6])
def test_the_mean_of_encoded_points_is_that_of_the_valid_ones(hidden, layers, valid, getkey):
    encoder = PointEncoder(1, 1, hidden, 4, layers=layers, heads=2, key=getkey())
    *_, last = encoder.embed.layers
    encoder = eqx.tree_at(lambda e: e.embed.layers[-1].bias, encoder, normal(getkey(), last.bias.shape))
    x, y, mask = normal(getkey(), (6, 1)), normal(getkey(), (6, 1)), jnp.arange(6) < valid
    each = encoder(x, y, mask)
    expected = np.asarray(each)[:valid].mean(axis=0) if valid else np.zeros(4)
    assert np.allclose(encoder.mean(x, y, mask), expected, atol=1e-5)
