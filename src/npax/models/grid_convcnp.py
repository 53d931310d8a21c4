import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from numpyro.distributions import Distribution

from ..alone import compiled_alone
from ..blocks import Grid, PyramidUNet, pull_push, pyramid
from ..layers import MLP, LayerNorm, away_from_zero
from ..likelihoods import AbstractLikelihood
from ..wide import wide
from ._base import AbstractConditionalNeuralProcess, check_picture, clean, floats, gaussian_unless, whole_number

PATCH = 2
"""Nodes along each axis that the network takes as one."""


ON_NODE = 1e-3
"""An observation closer to a node than this, in cells, is seen there alone: lattices are not exact in float32."""


class Answered(NamedTuple):
    """What `GridConvCNP` keeps of a context: the first node, the raw numbers of the prediction at every node less those
    in empty space, and those in empty space."""

    origin: Float[Array, " dx"]
    deviation: Float[Array, "*side size"]
    rest: Float[Array, " size"]


class GridConvCNP(AbstractConditionalNeuralProcess):
    r"""Convolutional conditional neural process on the grid (Gordon et al. 2020, section 4): for pictures and fields on
    a lattice, parts of which are missing. One pass answers every node, however many are seen.

    Where `ConvCNP` carries points to a grid by a set convolution, here they are on it, and a mask says which nodes are
    seen. The mask goes down a `pyramid` with the values: at each level the network (`PyramidUNet`) is told the share
    of a cell that is seen, mean and spread of what is seen there, and the gaps filled from the next coarser level,
    nearly by harmonic functions (`pull_push`, ours). So it knows from the start what lies around a gap of any size, and
    predicts

    $$(\mu, \ldots)_g = S\, \tilde y_g + \mathrm{head}(h_g),$$

    with the filled picture $\tilde y$ and a learned $S$ that begins with $\mu = \tilde y$.

    `on_grid(y, mask)` takes a picture of any size and gives the distribution at its nodes. `condition` and `predict`
    are the verbs of all models: an observation between the nodes of a grid that follows the data, as for `ConvCNP`, is
    shared among those around it, and what is between nodes is interpolated linearly from the raw numbers.

    **Equivariance:** to shifts by whole multiples of `shift`, but for what the network sees of the edges.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `spacing`: of the nodes, in the units of `x`. `extent`: the most
    that the context of `condition` may span along an axis (default 4, that of coordinates in [-2, 2]); `margin`: how
    far its grid reaches beyond it at least. `sizes`, `blocks`, `hidden`, `window`: those of `PyramidUNet`.
    `likelihood`: default `HeteroscedasticGaussian(dy)`; its first `dy` raw numbers are taken to be the mean.

    **Cost** for G nodes, seen or not: O(G), about `2 G / 2 ** dx` times `size * hidden * size` products for each block
    of the finest level; a picture of 150,000 pixels takes about 0.3 s on a CPU core at the default sizes.

    **Good values:** enough levels that the coarsest nodes (of `2 ** len(sizes)` pixels a side) are few. **Pitfalls:**
    observations that share a node count as their mean; the network sees values in the unit in which they come: bring
    them to mean zero and standard deviation one.
    """

    first: MLP
    unet: PyramidUNet
    norm: LayerNorm
    head: MLP
    skip: Float[Array, "dy size"]
    likelihood: AbstractLikelihood
    grid: Grid
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        spacing: float,
        extent: float = 4.0,
        margin: float = 0.0,
        sizes: Sequence[int] = (64, 96, 128, 128, 128, 128),
        blocks: Sequence[int] = (1, 1, 1, 1, 1, 2),
        hidden: int = 2,
        window: int = 5,
        likelihood: AbstractLikelihood | None = None,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, sizes=min(sizes, default=0), blocks=min(blocks, default=0))
        f_key, u_key, h_key, z_key = jr.split(key, 4)
        self.likelihood = gaussian_unless(likelihood, dy)
        pixels, width = PATCH**dx, sizes[0]
        first = MLP([pixels * (1 + 2 * dy) + 2 * dy, 2 * width, width], key=f_key)
        self.first = away_from_zero(first, key=z_key)
        self.unet = PyramidUNet(sizes, dx=dx, inputs=1 + 3 * dy, blocks=blocks, hidden=hidden, window=window, key=u_key)
        self.norm = LayerNorm(width)
        self.head = MLP([width, 2 * width, pixels * self.likelihood.size], key=h_key)
        self.skip = jnp.eye(dy, self.likelihood.size)
        self.grid = Grid(spacing, extent, margin, self.stride)
        self.dx, self.dy = dx, dy

    @property
    def stride(self) -> int:
        """Nodes along an axis for one of the coarsest level."""
        return PATCH * self.unet.stride

    @property
    def shift(self) -> float:
        """Shifts of `x` by whole multiples of this shift the grid of `condition` with them."""
        return self.grid.stride * self.grid.spacing

    def covering(self, extent: float) -> "GridConvCNP":
        """The same model (its weights know nothing of the grid's size) for contexts that span up to `extent`."""
        return eqx.tree_at(lambda model: model.grid, self, dataclasses.replace(self.grid, extent=extent))

    def on_grid(self, y: Float[Array, "*side dy"], mask: Bool[Array, "*side"]) -> Distribution:
        """The distribution at every node of a picture: batch shape `[*side]`, event shape `[dy]`.

        What stands where `mask` is `False` counts for nothing, NaN too. **Raises** `ValueError` for other
        shapes, `TypeError` for a mask of something else than booleans.
        """
        check_picture(self, y, mask)
        y, seen = floats(self, y)[0], jnp.asarray(mask)[..., None]
        deviation, rest = self._answers(jnp.where(seen, y, 0.0), seen.astype(y.dtype))
        return self.likelihood(rest + deviation)

    def condition(self, xc, yc, mask=None) -> Answered:
        xc, yc, mask = clean(self, xc, yc, mask)
        origin = self.grid.origin(xc, mask)
        side, exact = self.dx * (self.grid.side,), wide(yc.dtype)
        share, total = jnp.zeros((*side, 1), exact), jnp.zeros((*side, self.dy), exact)
        for node, weight in _corners(self.grid.place(xc, origin), side, slack=ON_NODE):
            weight = jnp.where(mask, weight, 0.0)[:, None].astype(exact)
            share, total = share.at[node].add(weight), total.at[node].add(weight * yc.astype(exact))
        mean, share = total / jnp.where(share > 0, share, 1.0), jnp.minimum(share, 1.0)
        return Answered(origin, *self._answers(mean.astype(yc.dtype), share.astype(yc.dtype)))

    def decode(self, state, xt):
        return state.rest + _between(state.deviation, self.grid.place(xt, state.origin))

    @compiled_alone
    def _answers(self, y, share):
        """The raw numbers at every node, less those in empty space, and those in empty space."""
        side = y.shape[:-1]
        ends = [*((0, -n % self.stride) for n in side), (0, 0)]
        levels = pyramid(jnp.pad(y, ends), jnp.pad(share, ends), len(self.unet.before) + 1)
        filled = pull_push(levels)
        inputs = [jnp.concatenate([*level, guess], axis=-1) for level, guess in zip(levels, filled, strict=True)]
        pixels = jnp.concatenate([levels[0].share, levels[0].mean, filled[0]], axis=-1)
        of_patches = jnp.concatenate([_patches(pixels), levels[1].spread, filled[1]], axis=-1)
        empty = self.first(jnp.zeros((1, of_patches.shape[-1]), y.dtype))[0]
        h = self.first(of_patches.reshape(-1, of_patches.shape[-1])).reshape(*of_patches.shape[:-1], -1)
        h, rest = self.unet(h - empty, empty, inputs[2:])
        still = self.head(self.norm(rest)[None])[0]
        moved = self.head(self.norm(rest + h).reshape(-1, rest.shape[0])).reshape(*h.shape[:-1], -1)
        # Beyond the grid the nodes of a patch answer alike: as their mean.
        still = jnp.mean(still.reshape(-1, self.likelihood.size), axis=0)
        raw = _nodes(moved, self.dx) + filled[0] @ self.skip - still
        return raw[tuple(slice(n) for n in side)], still


def _patches(a: Float[Array, "*side c"]) -> Float[Array, "*half c_of_patch"]:
    """The nodes of each patch side by side."""
    dx = a.ndim - 1
    split = a.reshape(*(n for side in a.shape[:-1] for n in (side // PATCH, PATCH)), a.shape[-1])
    order = (*range(0, 2 * dx, 2), *range(1, 2 * dx, 2), 2 * dx)
    return split.transpose(order).reshape(*(side // PATCH for side in a.shape[:-1]), -1)


def _nodes(a: Float[Array, "*half c_of_patch"], dx: int) -> Float[Array, "*side c"]:
    """The inverse of `_patches`."""
    split = a.reshape(*a.shape[:-1], *dx * (PATCH,), -1)
    order = (*itertools.chain.from_iterable((axis, dx + axis) for axis in range(dx)), 2 * dx)
    return split.transpose(order).reshape(*(PATCH * side for side in a.shape[:-1]), split.shape[-1])


def _between(a: Float[Array, "*side size"], at: Float[Array, "n dx"]) -> Float[Array, "n size"]:
    """Values between nodes, by linear interpolation; zeros beyond them. `at` in cells."""
    parts = (weight[:, None].astype(a.dtype) * a[node] for node, weight in _corners(at, a.shape[:-1]))
    return functools.reduce(jnp.add, parts)


def _corners(at: Float[Array, "n dx"], side: tuple[int, ...], slack: float = 0.0) -> Iterator[tuple[Any, Any]]:
    """The nodes around each place (in cells), as an index, and their weights `[n]` in linear interpolation: zeros where
    they lie beyond the grid. A node closer than `slack` has all of it."""
    last = jnp.array(side, at.dtype) - 1
    low = jnp.floor(jnp.clip(at, -1.0, last))  # far places have integers too
    for corner in itertools.product((0.0, 1.0), repeat=len(side)):
        node = low + jnp.array(corner, at.dtype)
        near = jnp.clip((1 - slack - jnp.abs(at - node)) / (1 - 2 * slack), 0.0, 1.0)
        weight = jnp.prod(near, axis=1)
        weight = jnp.where(jnp.any((node < 0) | (node > last), axis=1), 0.0, weight)  # of no number: none
        yield tuple(jnp.clip(node, 0.0, last).astype(jnp.int32).T), weight
