"""The product of tokens and weights, with a gradient that is fast on CPUs."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.custom_vjp
def matmul(x: Float[Array, "n size_in"], w: Float[Array, "size_in size_out"]) -> Float[Array, "n size_out"]:
    """`x @ w`.

    Under `vmap` the gradient of `w` is one product per task, then a sum. Left to itself, autodiff contracts tasks and
    rows at once, for which XLA's CPU backend first transposes every activation: a training step takes 1.4 times as
    long.
    """
    return x @ w


def _forward(x, w):
    return x @ w, (x, w)


def _backward(residuals, d_y):
    x, w = residuals
    if x.shape[1] <= d_y.shape[1]:  # the narrow side first: the faster order
        d_w = jnp.einsum("ni,no->io", x, d_y)
    else:  # the barrier keeps XLA from folding the transposition back into the product
        d_w = jax.lax.optimization_barrier(jnp.einsum("no,ni->oi", d_y, x)).T
    return d_y @ w.T, d_w


matmul.defvjp(_forward, _backward)
