"""Distances between two sets of points, with finite gradients everywhere."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def squared_distance(xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "nq nk"]:
    r"""$\lVert x_q - x_k \rVert^2$ for every pair, from differences (no cancellation, exact zero at equal points).

    Column by column, without an array `[nq, nk, dx]`. The loop matters on CPUs: XLA does not vectorise a kernel with
    the differences of two columns, nor any exponential that is fused with it (7 times slower).
    """

    if xq.shape[1] == 1:
        return jnp.square(xq - xk.T)

    def add(total, column):
        q, k = column
        return total + jnp.square(q[:, None] - k[None, :]), None

    return jax.lax.scan(add, jnp.zeros((xq.shape[0], xk.shape[0]), xq.dtype), (xq.T, xk.T))[0]


def distance(xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "nq nk"]:
    r"""$\lVert x_q - x_k \rVert$ for every pair; its gradient at coinciding points is zero, not NaN."""
    r2 = squared_distance(xq, xk)
    apart = r2 > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, r2, 1.0)), 0.0)
