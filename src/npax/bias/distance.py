"""Distances between two sets of points, with finite gradients everywhere."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def squared_distance(xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "nq nk"]:
    r"""$\lVert x_q - x_k \rVert^2$ for every pair, from differences (no cancellation, exact zero at equal points).

    Column by column, without an array `[nq, nk, dx]`. The loop matters on CPUs, where XLA would otherwise fuse what
    reads the distances with their making, which it does not vectorise: with the differences of two columns, or with
    those of one that are a slice of a larger array, exponentials take 5 to 7 times longer.
    """

    if xq.shape[1] == 1:  # a loop of one step would be no loop
        xq, xk = (jnp.pad(x, ((0, 0), (0, 1))) for x in (xq, xk))

    def add(total, column):
        q, k = column
        return total + jnp.square(q[:, None] - k[None, :]), None

    start = jnp.zeros((xq.shape[0], xk.shape[0]), jnp.result_type(xq, xk))
    return jax.lax.scan(add, start, (xq.T, xk.T))[0]


def distance(xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "nq nk"]:
    r"""$\lVert x_q - x_k \rVert$ for every pair; its gradient at coinciding points is zero, not NaN."""
    return root(squared_distance(xq, xk))


def root(squared: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The square root; its gradient at zero is zero, not infinite."""
    apart = squared != 0  # a NaN is
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0)
