"""The empirical variogram of a picture with gaps, for networks that shall know what kind of field they look at."""

import itertools
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from .mlp import MLP

LEAST = 1e-6
"""The semivariance that a network takes for none."""


class VariogramEncoder(eqx.Module):
    r"""What is known of a picture as a whole, as one vector: an MLP of the logarithms of its `variogram`.

    A convolution sees a part of the picture. Whether what it sees is noise or roughness, how far values belong
    together, and in which direction, all parts tell together: the geostatistician's first look (ours).

    **Arguments:** `lags`: in nodes; `size`: of the vector. **Cost:** as `variogram`.
    """

    net: MLP
    lags: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, lags: Sequence[int], size: int, *, dx: int, dy: int, key: PRNGKeyArray):
        if min(lags, default=0) < 1:
            raise ValueError(f"`lags` must be at least 1 node, got {tuple(lags)}.")
        self.lags = tuple(lags)
        self.net = MLP([len(directions(dx)) * len(self.lags) * dy, 2 * size, size], key=key)

    def __call__(self, y: Float[Array, "*side dy"], share: Float[Array, "*side 1"]) -> Float[Array, " size"]:
        """The arguments of `variogram`."""
        semivariance = variogram(y, share, self.lags)
        return self.net(0.25 * jnp.log(semivariance + LEAST).reshape(1, -1))[0]


def variogram(
    y: Float[Array, "*side dy"], share: Float[Array, "*side 1"], lags: Sequence[int], pairs: float = 1.0
) -> Float[Array, "directions lags dy"]:
    r"""Matheron's estimate of the semivariance (1962) along each of the `directions` $d$ of a lattice, at lags of $k$
    nodes,

    $$\hat\gamma_{dk} = \frac{n_0 + \tfrac12 \sum_g w_g (y_g - y_{g + kd})^2}{n_0 + \sum_g w_g},
    \qquad w_g = m_g m_{g + kd},$$

    over the pairs that are seen and $n_0$ (`pairs`) more, as unlike as values of unit variance are on average: with few
    pairs, or none, it is near one.

    Of a field with noise of variance $\tau^2$ it begins at $\tau^2$ and rises to the whole variance; how fast, and
    along which directions, tells length scale, smoothness and anisotropy.

    **Arguments:** `y`: finite, of mean zero and unit variance; `share`, from 0 to 1: how much of a node is seen.
    **Cost:** O(nodes `len(lags)`), for each direction.
    """
    side, reach = y.shape[:-1], max(lags)
    here = [share[..., 0], *jnp.moveaxis(y, -1, 0)]
    around = [jnp.pad(a, reach) for a in here]

    def semivariance(offset):
        seen, *columns = (jax.lax.dynamic_slice(a, reach + offset, side) for a in around)
        weight = here[0] * seen
        unlike = [_sum(0.5 * weight * jnp.square(a - b)) for a, b in zip(here[1:], columns, strict=True)]
        return (pairs + jnp.stack(unlike)) / (pairs + _sum(weight))

    offsets = jnp.array([[[k * step for step in d] for k in lags] for d in directions(len(side))])
    found = jax.lax.map(semivariance, offsets.reshape(-1, len(side)))  # a loop, which is compiled once
    return found.reshape(*offsets.shape[:2], -1)


def directions(dx: int) -> list[tuple[int, ...]]:
    """Steps to the neighbours of a node, diagonal ones too, one of each two that are opposite: 1, 4, 13, ..."""
    steps = itertools.product((0, 1, -1), repeat=dx)
    return [step for step in steps if next(filter(None, step), 0) == 1]


def _sum(a):
    """By a product, which runs on a core's vector unit: a plain sum, to XLA on CPUs one number after the other, takes
    four times as long."""
    rows = a.reshape(-1, a.shape[-1])
    return jnp.sum(jnp.matmul(jnp.ones(len(rows), a.dtype), rows, precision="highest"))
