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
from .rbf_network import LOG2_E, RBFNetworkBias

Tile = Callable[
    [Sequence[Float[Array, "nq 1"]], Sequence[Float[Array, "1 nk"]], Sequence[Float[Array, "nq nk"]]],
    Sequence[Float[Array, "nq nk"]],
]
"""From the columns of the locations and a start for each head to these plus the bias of every pair; elementwise
operations only."""


@functools.singledispatch
def tile(bias: AbstractBias) -> Tile | None:
    """The bias of some heads as a function of the columns of `xq` and `xk`; None for those that have no such form.

    Inside a kernel a parameter of `bias` is, instead of an array `[heads bases]`, a tuple over the bases of tuples over
    the heads, each entry a scalar or a column `[nq 1]`. To give a bias of your own such a form, register it:
    `@tile.register(MyBias)`. Its arrays must all be parameters with the heads first.
    """
    del bias
    return None


def tile_of(bias: AbstractBias) -> Tile | None:
    """The `tile` of a bias that is computed as its kind is: not of a subclass with a formula of its own."""
    kind = next(kind for kind in type(bias).__mro__ if kind in tile.registry)
    own = kind is not object and type(bias).__call__ is not kind.__call__
    return None if own else tile(bias)


@tile.register(RBFNetworkBias)
def _(bias):
    def added(xq, xk, tiles):
        r2 = _squared_distance(xq, xk)
        r = r2 * jax.lax.rsqrt(jnp.where(r2 > 0, r2, 1.0))
        for of_heads in zip(bias.a, bias.b, bias.c, strict=True):
            each = zip(tiles, *of_heads, strict=True)
            tiles = [t + a * jnp.exp2(-LOG2_E * jnp.abs(b) * jnp.square(r - c)) for t, a, b, c in each]
        return tiles

    return added


@tile.register(GeometricRBFBias)
def _(bias):
    def added(xq, xk, tiles):
        r2 = _squared_distance(xq, xk)
        anchors = [jnp.exp2(-LOG2_E * bias.sharpness * 4.0**s * r2) for s in range(0, len(bias.a), RUNGS)]
        for of_heads, f in zip(bias.a, ladder(anchors), strict=False):
            tiles = [t + a * f for t, a in zip(tiles, of_heads, strict=True)]
        return tiles

    return added


@tile.register(CausalBias)
def _(bias):
    def added(xq, xk, tiles):
        hidden = jnp.where(xk[bias.column] > xq[bias.column], -jnp.inf, 0.0)
        return [t + hidden for t in tiles]

    return added


@tile.register(ColumnsBias)
def _(bias):
    inner = tile_of(bias.bias)
    if inner is None:
        return None
    return lambda xq, xk, tiles: inner([xq[c] for c in bias.columns], [xk[c] for c in bias.columns], tiles)


@tile.register(SumBias)
def _(bias):
    parts = [part for part in map(tile_of, bias.parts) if part is not None]
    if len(parts) < len(bias.parts):
        return None
    return lambda xq, xk, tiles: functools.reduce(lambda tiles, part: part(xq, xk, tiles), parts, tiles)


def _squared_distance(xq, xk):
    return _sum(jnp.square(q - k) for q, k in zip(xq, xk, strict=True))


def _sum(terms):
    return functools.reduce(operator.add, terms)
