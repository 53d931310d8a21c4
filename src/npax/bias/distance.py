"""Distances between two sets of points, with finite gradients everywhere."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def squared_distance(xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "nq nk"]:
    r"""$\lVert x_q - x_k \rVert^2$ for every pair, from differences (no cancellation, exact zero at equal points).

    Written as a sum over columns, which XLA fuses with what follows: no `[nq, nk, dx]` array exists.
    """
    columns = (jnp.square(xq[:, None, i] - xk[None, :, i]) for i in range(xq.shape[1]))
    return sum(columns, start=jnp.zeros((xq.shape[0], xk.shape[0]), xq.dtype))


def distance(xq: Float[Array, "nq dx"], xk: Float[Array, "nk dx"]) -> Float[Array, "nq nk"]:
    r"""$\lVert x_q - x_k \rVert$ for every pair; its gradient at coinciding points is zero, not NaN."""
    r2 = squared_distance(xq, xk)
    apart = r2 > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, r2, 1.0)), 0.0)
