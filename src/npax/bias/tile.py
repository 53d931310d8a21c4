"""Biases as a kernel computes them: one head, one tile of pairs, in registers."""

import functools
import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ._base import AbstractBias, SumBias
from .causal import CausalBias
from .columns import ColumnsBias
from .geometric import RUNGS, GeometricRBFBias, ladder
from .rbf_network import RBFNetworkBias

Tile = Callable[[Sequence[Float[Array, "nq 1"]], Sequence[Float[Array, "1 nk"]]], Float[Array, "nq nk"]]
"""From the columns of the locations to the bias of every pair; elementwise operations only."""


@functools.singledispatch
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
        return _sum(a * exp(-jnp.abs(b) * jnp.square(r - c)) for a, b, c in zip(bias.a, bias.b, bias.c, strict=True))

    return values


@tile.register(GeometricRBFBias)
def _(bias):
    def values(xq, xk):
        r2 = _squared_distance(xq, xk)
        anchors = [exp(-bias.sharpness * 4.0**s * r2) for s in range(0, len(bias.a), RUNGS)]
        return _sum(a * f for a, f in zip(bias.a, ladder(anchors), strict=False))

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
    parts = [part for part in map(tile, bias.parts) if part is not None]
    return (lambda xq, xk: _sum(part(xq, xk) for part in parts)) if len(parts) == len(bias.parts) else None


@jax.custom_jvp
def exp(x: Array) -> Array:
    """For numbers below about 1: an instruction of GPUs and a product, where theirs for all numbers is eight."""
    return jnp.exp2(1.4426950408889634 * x)


@exp.defjvp
def _(primals, tangents):
    y = exp(*primals)
    return y, y * tangents[0]


def _squared_distance(xq, xk):
    return _sum(jnp.square(q - k) for q, k in zip(xq, xk, strict=True))


def _sum(terms):
    return functools.reduce(operator.add, terms)
