"""Biases as a kernel computes them: one head, one tile of pairs, in registers."""

from collections.abc import Callable, Sequence
from functools import singledispatch

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ._base import AbstractBias, SumBias
from .causal import CausalBias
from .columns import ColumnsBias
from .geometric import RUNGS, GeometricRBFBias
from .rbf_network import RBFNetworkBias

Tile = Callable[[Sequence[Float[Array, "nq 1"]], Sequence[Float[Array, "1 nk"]]], Float[Array, "nq nk"]]
"""From the columns of the locations to the bias of every pair; elementwise operations only."""


@singledispatch
def tile(bias: AbstractBias) -> Tile | None:
    """The bias of one head as a function of the columns of `xq` and `xk`; None for those that have no such form.

    Inside a kernel every parameter of `bias` is that of one head: a tuple over the bases instead of an array
    `[heads bases]`, each entry a scalar or a column `[nq 1]`. To give a bias of your own such a form, register it:
    `@tile.register(MyBias)`. Its arrays must all be parameters with the heads first.
    """
    del bias
    return None


@tile.register(RBFNetworkBias)
def _(bias):
    def values(xq, xk):
        r2 = _squared_distance(xq, xk)
        r = r2 * jax.lax.rsqrt(jnp.where(r2 > 0, r2, 1.0))
        bases = zip(bias.a, bias.b, bias.c, strict=True)
        return sum(a * exp(-jnp.abs(b) * jnp.square(r - c)) for a, b, c in bases)

    return values


@tile.register(GeometricRBFBias)
def _(bias):
    def values(xq, xk):
        r2, total = _squared_distance(xq, xk), 0.0
        for s, a in enumerate(bias.a):
            f = exp(-bias.sharpness * 4.0**s * r2) if s % RUNGS == 0 else jnp.square(jnp.square(f))
            total = total + a * f
        return total

    return values


@tile.register(CausalBias)
def _(bias):
    return lambda xq, xk: jnp.where(xk[bias.column] > xq[bias.column], -jnp.inf, 0.0)


@tile.register(ColumnsBias)
def _(bias):
    inner = tile(bias.bias)
    if inner is None:
        return None
    return lambda xq, xk: inner([xq[c] for c in bias.columns], [xk[c] for c in bias.columns])


@tile.register(SumBias)
def _(bias):
    parts = [tile(part) for part in bias.parts]
    if None in parts:
        return None
    return lambda xq, xk: sum(part(xq, xk) for part in parts)


@jax.custom_jvp
def exp(x: Array) -> Array:
    """For numbers below about 1: an instruction of GPUs and a product, where theirs for all numbers is eight."""
    return jnp.exp2(1.4426950408889634 * x)


@exp.defjvp
def _(primals, tangents):
    y = exp(*primals)
    return y, y * tangents[0]


def _squared_distance(xq, xk):
    return sum(jnp.square(q - k) for q, k in zip(xq, xk, strict=True))
