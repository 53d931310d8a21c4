"""Laws of every bias."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from laws import BIASES, HEADS, finite, normal, on_lattice

from npax.bias.tile import tile

every_bias = pytest.mark.parametrize("make", BIASES.values(), ids=BIASES)
STATIONARY = {name: make for name, make in BIASES.items() if name not in ("causal", "sum")}


@pytest.fixture
def points(getkey):
    return normal(getkey(), (6, 2)), normal(getkey(), (8, 2))


@every_bias
def test_shape_and_type(make, points, getkey):
    values = eqx.filter_jit(make(getkey()))(*points)
    assert values.shape == (HEADS, 6, 8) and values.dtype == jnp.float32


@every_bias
def test_a_function_of_the_pair_alone(make, points, getkey):
    """Blocks of the matrix are the bias of blocks of points: what attention relies on."""
    bias, (xq, xk) = eqx.filter_jit(make(getkey())), points
    assert np.allclose(np.asarray(bias(xq, xk))[:, 2:5, 3:7], bias(xq[2:5], xk[3:7]), atol=1e-6)


@pytest.mark.parametrize("make", STATIONARY.values(), ids=STATIONARY)
def test_stationary_biases_are_symmetric(make, points, getkey):
    bias, (xq, xk) = eqx.filter_jit(make(getkey())), points
    assert np.allclose(bias(xq, xk), np.swapaxes(bias(xk, xq), 1, 2), atol=1e-6)


@every_bias
def test_a_shift_of_all_points_changes_nothing(make, getkey):
    """By a power of two and on a lattice of 1/64, so that the differences are exact in float32."""
    bias = eqx.filter_jit(make(getkey()))
    xq, xk = (on_lattice(getkey(), (n, 2)) for n in (6, 8))
    assert np.allclose(bias(xq + 256.0, xk + 256.0), bias(xq, xk), atol=1e-5)
    assert not np.allclose(bias(xq + 1.0, xk), bias(xq, xk), atol=1e-3)


@every_bias
def test_gradients_are_finite_where_points_coincide(make, getkey):
    x = jnp.zeros((3, 2))

    @eqx.filter_jit
    @eqx.filter_grad
    def gradients(operands):
        bias, xq, xk = operands
        values = bias(xq, xk)
        return jnp.sum(jnp.where(jnp.isfinite(values), values, 0.0))

    assert finite(gradients((make(getkey()), x, x)))


@pytest.mark.parametrize("name", [name for name in BIASES if name.startswith(("rbf", "geometric", "tisa"))])
def test_second_derivatives_within_a_loop_are_those_without(name, points, getkey):
    """As of the blocks of a model: by the places, of queries and of keys."""
    bias, (xq, xk) = BIASES[name](getkey()), points
    stacked = jax.tree.map(lambda a: jnp.stack([a, 0.5 * a]) if eqx.is_inexact_array(a) else a, bias)
    arrays, rest = eqx.partition(stacked, eqx.is_inexact_array)

    def total(one, x):
        return jnp.sum(jnp.sin(eqx.combine(one, rest)(x, xk)))

    def looped(x):
        return jax.lax.scan(lambda c, one: (jnp.sin(c + total(one, x)), None), 0.0, arrays)[0]

    def unrolled(x):
        first, second = (jax.tree.map(lambda a, i=i: a[i], arrays) for i in range(2))
        return jnp.sin(jnp.sin(total(first, x)) + total(second, x))

    found, expected = (jax.jit(jax.jacrev(jax.grad(f)))(xq[:3]) for f in (looped, unrolled))
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-3)


@every_bias
def test_jit_changes_nothing(make, points, getkey):
    bias = make(getkey())
    assert_equal_where_finite(eqx.filter_jit(bias)(*points), bias(*points))


def assert_equal_where_finite(got, true):
    got, true = np.asarray(got), np.asarray(true)
    where = np.isfinite(true)
    assert (where == np.isfinite(got)).all()
    assert reference.relative(np.where(where, got, 0.0), np.where(where, true, 0.0)) < 1e-5


def of_all_heads(bias, xq, xk):
    """The tiles of all heads."""
    parts = jax.tree.map(lambda a: tuple(map(tuple, a.reshape(HEADS, -1).T)), bias)
    start = [jnp.zeros((len(xq), len(xk)), xq.dtype)] * HEADS
    return jnp.stack(tile(parts)([x[:, None] for x in xq.T], [x[None, :] for x in xk.T], start))


@eqx.filter_jit
def values_and_gradients(f, weight, *operands):
    values, pull = jax.vjp(f, *operands)
    return values, pull(weight)


@pytest.mark.parametrize("name", [name for name in BIASES if not name.startswith("kernel")])
def test_a_tile_is_a_block_of_the_bias(name, points, getkey):
    """In values and gradients, where points coincide too."""
    bias, (xq, xk) = BIASES[name](getkey()), points
    xk = jax.device_put(np.concatenate([np.asarray(xq)[:2], np.asarray(xk)[2:]]))
    weight = normal(getkey(), (HEADS, 6, 8))
    got, got_gradients = values_and_gradients(of_all_heads, weight, bias, xq, xk)
    true, true_gradients = values_and_gradients(lambda b, *x: b(*x), weight, bias, xq, xk)
    assert_equal_where_finite(got, true)
    for a, b in zip(*map(jax.tree.leaves, (got_gradients, true_gradients)), strict=True):
        assert reference.relative(a, b) < 1e-5
