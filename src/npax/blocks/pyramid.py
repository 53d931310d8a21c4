"""A picture with gaps at ever coarser resolutions: what is known in each cell, and what fills the gaps."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..wide import wide
from .unet import double, halve

EMPTY = 1e-7
"""The share of a cell that bounds the gradient of its mean."""


class Level(NamedTuple):
    """What is known of each cell at one resolution: the share of it that is seen, and mean and standard deviation of
    what is seen there, zeros where nothing is."""

    share: Float[Array, "*side 1"]
    mean: Float[Array, "*side dy"]
    spread: Float[Array, "*side dy"]


def pyramid(y: Float[Array, "*side dy"], share: Float[Array, "*side 1"], levels: int) -> list[Level]:
    """`levels` resolutions, the finest (that of `y`) first, each half as fine as the one before.

    `share`, from 0 to 1: how much of each cell is seen; where it is zero `y` counts for nothing, but must be finite.
    The sides must be multiples of 2 to the power `levels - 1`. **Cost:** O(nodes).
    """
    kind, share, y = y.dtype, *(a.astype(wide(a.dtype)) for a in (share, y))
    sums = [(share, share * y, share * jnp.square(y))]
    for _ in range(levels - 1):
        share, first, second = sums[-1]
        sums.append((halve(share), halve(first), halve(second)))
    return [Level(*(part.astype(kind) for part in _level(*each))) for each in sums]


def _level(share, first, second):
    mean = first / (share + EMPTY)
    variance = jnp.maximum(second / (share + EMPTY) - jnp.square(mean), 0.0)
    return Level(share, mean, jnp.where(share > 0, jnp.sqrt(variance + 1e-6), 0.0))


def pull_push(levels: list[Level], sweeps: int = 8) -> list[Float[Array, "*side dy"]]:
    """The picture at each resolution with its gaps filled from the next coarser one (Gortler et al. 1996) and smoothed.

    A cell that is seen, in part or whole, keeps its mean; another takes what the coarser cells around it hold, by
    linear interpolation, and then `sweeps` times the mean of its neighbours. That smooths the edges of coarse cells and
    ends near the harmonic function (Laplace's equation), a good guess of rough fields. Where the coarsest cells see
    nothing they hold zeros.

    **Cost:** O(nodes `sweeps`). **Pitfalls:** a coarse cell of which a few pixels are seen is held at their mean, whose
    edges eight sweeps of the finer levels do not wholly smooth in gaps that are wider than it.
    """

    def push(coarser, level):
        known = level.share > 0
        guess = jnp.where(known, level.mean, double(coarser, edges="edge"))
        return jax.lax.fori_loop(0, sweeps, lambda _, a: jnp.where(known, level.mean, _neighbours(a)), guess)

    return list(itertools.accumulate(levels[-2::-1], push, initial=levels[-1].mean))[::-1]


def _neighbours(a: Float[Array, "*side dy"]) -> Float[Array, "*side dy"]:
    """The mean of each cell's neighbours along the axes; the picture ends with copies of its outermost cells."""
    beside = []
    for axis in range(a.ndim - 1):
        wide = jnp.pad(a, [(int(i == axis),) * 2 for i in range(a.ndim)], mode="edge")
        beside += [jax.lax.slice_in_dim(wide, start, start + a.shape[axis], axis=axis) for start in (0, 2)]
    return sum(beside[1:], start=beside[0]) / len(beside)
