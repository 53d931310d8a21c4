"""Laws of every bias."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
import reference
from laws import BIASES, HEADS, normal, on_lattice

from npax.bias.tile import tile

every_bias = pytest.mark.parametrize("make", BIASES.values(), ids=BIASES)
STATIONARY = {name: make for name, make in BIASES.items() if name not in ("causal", "sum")}


@every_bias
def test_shape_and_type(make, getkey):
    xq, xk = normal(getkey(), (4, 2)), normal(getkey(), (6, 2))
    values = make(getkey())(xq, xk)
    assert values.shape == (HEADS, 4, 6) and values.dtype == jnp.float32


@every_bias
def test_a_function_of_the_pair_alone(make, getkey):
    """Blocks of the matrix are the bias of blocks of points: what attention relies on."""
    bias = make(getkey())
    xq, xk = normal(getkey(), (6, 2)), normal(getkey(), (8, 2))
    assert jnp.allclose(bias(xq, xk)[:, 2:5, 3:7], bias(xq[2:5], xk[3:7]), atol=1e-6)


@pytest.mark.parametrize("make", STATIONARY.values(), ids=STATIONARY)
def test_stationary_biases_are_symmetric(make, getkey):
    bias = make(getkey())
    xq, xk = normal(getkey(), (4, 2)), normal(getkey(), (6, 2))
    assert jnp.allclose(bias(xq, xk), jnp.swapaxes(bias(xk, xq), 1, 2), atol=1e-6)


@every_bias
def test_a_shift_of_all_points_changes_nothing(make, getkey):
    """By a power of two and on a lattice of 1/64, so that the differences are exact in float32."""
    bias = make(getkey())
    xq, xk = (on_lattice(getkey(), (n, 2)) for n in (4, 6))
    assert jnp.allclose(bias(xq + 256.0, xk + 256.0), bias(xq, xk), atol=1e-5)
    assert not jnp.allclose(bias(xq + 1.0, xk), bias(xq, xk), atol=1e-3)


@every_bias
def test_gradients_are_finite_where_points_coincide(make, getkey):
    x = jnp.zeros((3, 2))

    def total(operands):
        bias, xq, xk = operands
        values = bias(xq, xk)
        return jnp.sum(jnp.where(jnp.isfinite(values), values, 0.0))

    grads = eqx.filter_grad(total)((make(getkey()), x, x))
    assert all(jnp.isfinite(g).all() for g in jax.tree.leaves(grads))


@every_bias
def test_jit_changes_nothing(make, getkey):
    bias = make(getkey())
    xq, xk = normal(getkey(), (4, 2)), normal(getkey(), (6, 2))
    plain, jitted = bias(xq, xk), eqx.filter_jit(bias)(xq, xk)
    finite = jnp.isfinite(plain)
    assert (finite == jnp.isfinite(jitted)).all()
    assert reference.relative(jnp.where(finite, jitted, 0.0), jnp.where(finite, plain, 0.0)) < 1e-5


@pytest.mark.parametrize("name", [name for name in BIASES if not name.startswith("kernel")])
def test_a_tile_is_a_block_of_the_bias(name, getkey):
    """In values and gradients, where points coincide too."""
    bias = BIASES[name](getkey())
    xq, xk = normal(getkey(), (4, 2)), normal(getkey(), (6, 2))
    xk = xk.at[:2].set(xq[:2])

    def of_all(bias, xq, xk):
        def of_one(head):
            parts = jax.tree.map(lambda a: tuple(a[head]), bias)
            return tile(parts)([x[:, None] for x in xq.T], [x[None, :] for x in xk.T])

        return jnp.stack([of_one(head) for head in range(HEADS)])

    weight = normal(getkey(), (HEADS, 4, 6))
    (got, pull), (true, true_pull) = jax.vjp(of_all, bias, xq, xk), jax.vjp(lambda b, *x: b(*x), bias, xq, xk)
    finite = jnp.isfinite(true)
    assert (finite == jnp.isfinite(got)).all()
    assert reference.relative(jnp.where(finite, got, 0.0), jnp.where(finite, true, 0.0)) < 1e-5
    for a, b in zip(jax.tree.leaves(pull(weight)), jax.tree.leaves(true_pull(weight)), strict=True):
        assert reference.relative(a, b) < 1e-5
