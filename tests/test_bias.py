import jax
import jax.numpy as jnp
import jax.random as jr

import npax


def test_geometric_ladder_is_a_sum_of_squared_exponentials(getkey):
    bias = npax.GeometricRBFBias(4, key=getkey())
    xq, xk = jr.normal(getkey(), (7, 2)), jr.normal(getkey(), (5, 2))
    r2 = jnp.sum((xq[:, None] - xk[None]) ** 2, axis=-1)
    widths = 0.25 * 4.0 ** jnp.arange(6)
    truth = jnp.einsum("hs,sqk->hqk", bias.a, jnp.exp(-widths[:, None, None] * r2))
    assert jnp.allclose(bias(xq, xk), truth, atol=1e-5)


def test_gradients_are_finite_where_points_coincide(getkey):
    x = jnp.zeros((3, 2))
    for bias in (npax.RBFNetworkBias(4, key=getkey()), npax.GeometricRBFBias(4, key=getkey())):
        grads = jax.grad(lambda x, bias=bias: jnp.sum(bias(x, x)))(x)
        assert jnp.isfinite(grads).all()
