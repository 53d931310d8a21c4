"""Attention at linear cost: all keys summed up in a matrix of fixed size, which any number of queries read."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .rotary import RotaryCoordinates


class Totals(NamedTuple):
    """What linear attention keeps of its keys: sums over those that count."""

    values: Float[Array, "heads dv m"]
    weights: Float[Array, "heads m"]
    number: Float[Array, ""]


def totals(
    phi: Float[Array, "heads nk m"],
    v: Float[Array, "heads nk dv"],
    xk: Float[Array, "nk dx"],
    mask: Bool[Array, " nk"],
    rotary: RotaryCoordinates | None,
) -> Totals:
    r"""$\sum_j R(x_j) \phi_j v_j^\top$ and $\sum_j \phi_j$ over the keys under a `True`."""
    phi = jnp.where(mask[None, :, None], phi, 0.0)
    turned = phi if rotary is None else rotary.turned(phi, xk)
    return Totals(jnp.einsum("hkm,hkd->hdm", turned, v), jnp.sum(phi, axis=1), jnp.sum(mask.astype(phi.dtype)))


def read(
    phi: Float[Array, "heads nq m"], xq: Float[Array, "nq dx"], memory: Totals, rotary: RotaryCoordinates | None
) -> Float[Array, "heads nq dv"]:
    r"""$\sum_j (R(x_q) \phi_q)^\top (R(x_j) \phi_j)\, v_j$: depends on locations by $x_q - x_j$ only."""
    phi = phi if rotary is None else rotary.turned(phi, xq)
    return jnp.einsum("hqm,hdm->hqd", phi, memory.values)
