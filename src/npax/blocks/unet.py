import functools
import itertools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ..layers import MLP, LayerNorm
from ..wide import wide

TAPS = 64
"""Of a convolution, at most as many as these are summed at once: of more XLA makes slow programs, slowly."""

SLAB = 4096
"""Nodes whose part of a convolution's gradient is summed at once: they stay in a core's cache."""


class ConvBlock(eqx.Module):
    r"""Residual block of a CNN on an infinite grid, of which only a part is computed:

    $$h \leftarrow h + f(h), \qquad f(h) = \mathrm{MLP}(\mathrm{LN}(k * h)).$$

    The convolution is depthwise (a kernel for each channel); the MLP mixes the channels of each node.

    Where there is no data all nodes hold the same, $\bar h$. The grid holds deviations $\delta = h - \bar h$, so that
    zeros around it *are* the rest of the infinite grid:

    $$\delta \leftarrow \delta + f(\bar h + \delta) - f(\bar h), \qquad \bar h \leftarrow \bar h + f(\bar h).$$

    With zeros around $h$, as is usual, the network would see the edges of the grid wherever it reaches them.

    **Arguments:** `size`: channels; `hidden`: width of the MLP; `window`: nodes under the kernel along each of the
    `dx` axes, odd.

    **Cost** per node: O(size (hidden + window ** dx)).
    """

    kernel: Float[Array, "*window size"]
    norm: LayerNorm
    feed: MLP

    def __init__(self, size: int, *, dx: int, hidden: int, window: int, key: PRNGKeyArray):
        if window < 1 or window % 2 == 0:
            raise ValueError(f"`window` must be odd and at least 1, got {window}.")
        k_key, f_key = jr.split(key)
        bound = math.sqrt(3 / window**dx)
        self.kernel = jr.uniform(k_key, (*dx * (window,), size), minval=-bound, maxval=bound)
        self.norm = LayerNorm(size)
        self.feed = MLP([size, hidden, size], key=f_key)

    def __call__(
        self, deviation: Float[Array, "*side size"], rest: Float[Array, " size"]
    ) -> tuple[Float[Array, "*side size"], Float[Array, " size"]]:
        still = rest * jnp.sum(self.kernel, axis=range(self.kernel.ndim - 1))
        moved = still + depthwise(deviation, self.kernel)
        still = self.feed(self.norm(still)[None])[0]
        moved = self.feed(self.norm(moved).reshape(-1, rest.shape[0])).reshape(deviation.shape)
        return deviation + moved - still, rest + still


class UNet(eqx.Module):
    r"""A CNN that works on ever coarser grids and comes back (Ronneberger et al. 2015), of `ConvBlock`s.

    Each level has blocks of its own before and after the next coarser one, whose nodes are means of two (along each
    axis), and takes what that has changed, interpolated linearly, as a correction: the V-cycle of multigrid methods.
    A few small kernels so see far, and most of the work is done where there are few nodes.

    **Arguments:** `blocks`: for each level, the finest first, the number of blocks before the coarser one and again
    after it (at the coarsest, in all); the others as for `ConvBlock`.

    **Shapes:** the side of the grid must be a multiple of `stride`, 2 to the number of coarser levels.

    **Equivariance:** to shifts by multiples of `stride`.
    """

    before: tuple[ConvBlock, ...]
    coarser: "UNet | None"
    after: tuple[ConvBlock, ...]

    def __init__(self, size: int, *, dx: int, blocks: tuple[int, ...], hidden: int, window: int, key: PRNGKeyArray):
        here, *below = blocks
        b_key, c_key, a_key = jr.split(key, 3)
        shape = {"dx": dx, "hidden": hidden, "window": window}
        self.before = tuple(ConvBlock(size, **shape, key=k) for k in jr.split(b_key, here))
        self.coarser = UNet(size, blocks=tuple(below), **shape, key=c_key) if below else None
        self.after = tuple(ConvBlock(size, **shape, key=k) for k in jr.split(a_key, here)) if below else ()

    @property
    def stride(self) -> int:
        """Nodes of the finest level, along an axis, for one of the coarsest."""
        return 1 if self.coarser is None else 2 * self.coarser.stride

    def __call__(
        self, deviation: Float[Array, "*side size"], rest: Float[Array, " size"]
    ) -> tuple[Float[Array, "*side size"], Float[Array, " size"]]:
        """As for `ConvBlock`: what the nodes hold beyond `rest`, and `rest`."""
        for block in self.before:
            deviation, rest = block(deviation, rest)
        if self.coarser is not None:
            coarse = halve(deviation)
            corrected, rest = self.coarser(coarse, rest)
            deviation = deviation + double(corrected - coarse)
        for block in self.after:
            deviation, rest = block(deviation, rest)
        return deviation, rest


@jax.custom_vjp
def depthwise(h: Float[Array, "*side size"], kernel: Float[Array, "*window size"]) -> Float[Array, "*side size"]:
    """Correlates each channel with its kernel; zeros around the grid.

    All taps are written out as one sum of shifted copies, those of kernels of more than `TAPS` as one for each of their
    planes: on CPUs XLA's own depthwise convolution takes hundreds of times as long.
    """

    def plane(total, part):
        taps = part.weights.reshape(-1, kernel.shape[-1])
        return total + functools.reduce(jnp.add, map(jnp.multiply, part.near(around, h.shape[:-1]), taps)), None

    around = _with_margin(h, kernel)
    total = jax.lax.scan(plane, jnp.zeros(h.shape, jnp.result_type(h, kernel)), _planes(kernel))[0]
    # The comparison changes nothing, but keeps XLA from computing the sum anew in all that follows: a norm thrice.
    return jnp.where(total == jnp.inf, jnp.inf, total)


def _forward(h, kernel):
    return depthwise(h, kernel), (h, kernel)


def _backward(residuals, d_y):
    h, kernel = residuals
    if h.size == 0:
        return jnp.zeros_like(h), jnp.zeros_like(kernel)
    nodes = max(1, math.prod(h.shape[1:-1]))
    rows = max(1, min((h.shape[0] + 1) // 2, SLAB // nodes))  # two slabs at least: XLA unrolls a loop of one
    beyond = [(0, -h.shape[0] % rows), *(h.ndim - 1) * ((0, 0),)]
    around, padded = (jnp.pad(a, beyond) for a in (_with_margin(h, kernel), d_y))

    def slab(total, first):
        d_here = jax.lax.dynamic_slice_in_dim(padded, first, rows)
        strip = jax.lax.dynamic_slice_in_dim(around, first, rows + kernel.shape[0] - 1)

        def plane(part):
            return jnp.stack(_sums([(near * d_here).astype(exact) for near in part.near(strip, d_here.shape[:-1])]))

        return total + jax.lax.map(plane, planes), None

    planes = _planes(kernel)
    dtype = jnp.result_type(h, d_y)
    exact = wide(dtype)
    total = jnp.zeros((len(planes.first), planes.weights[0, ..., 0].size, h.shape[-1]), exact)
    d_kernel = jax.lax.scan(slab, total, jnp.arange(0, padded.shape[0], rows))[0]
    d_h = depthwise(d_y, jnp.flip(kernel, range(kernel.ndim - 1)))
    return d_h.astype(h.dtype), d_kernel.reshape(kernel.shape).astype(kernel.dtype)


depthwise.defvjp(_forward, _backward)


def _with_margin(h, kernel):
    return jnp.pad(h, [*((w // 2, w // 2) for w in kernel.shape[:-1]), (0, 0)])


class _Plane(NamedTuple):
    """A part of a kernel: the first of its places along the first axis, and its weights."""

    first: Int[Array, "*planes"]
    weights: Float[Array, "*planes_and_window size"]

    def near(self, around, side):
        """What stands under each of its taps, at every node."""
        window = self.weights.shape[:-1]
        strip = jax.lax.dynamic_slice_in_dim(around, self.first, side[0] + window[0] - 1)
        for offset in itertools.product(*map(range, window)):
            yield strip[tuple(slice(start, start + n) for start, n in zip(offset, side, strict=True))]


def _planes(kernel):
    """The kernel as one part, or each of its planes as a part where it has too many taps."""
    deep, *wide = kernel.shape[:-1]
    thick = deep if deep * math.prod(wide) <= TAPS else 1
    return _Plane(jnp.arange(0, deep, thick), kernel.reshape(deep // thick, thick, *kernel.shape[1:]))


def _sums(products):
    """Each array's sum over all axes but the last."""
    return jax.lax.platform_dependent(*products, cpu=_at_once, default=_one_by_one)


def _at_once(*products):
    """In one pass over all, which share what they are made of."""
    zeros, axes = [jnp.zeros((), a.dtype) for a in products], tuple(range(products[0].ndim - 1))
    return jax.lax.reduce(products, tuple(zeros), lambda a, b: tuple(map(jnp.add, a, b)), axes)


def _one_by_one(*products):
    return tuple(jnp.sum(a, axis=range(a.ndim - 1)) for a in products)


def halve(h: Float[Array, "*side size"]) -> Float[Array, "*half size"]:
    """The grid twice as coarse: means of two nodes along each axis."""
    pairs = [n for side in h.shape[:-1] for n in (side // 2, 2)]
    return jnp.mean(h.reshape(*pairs, h.shape[-1]), axis=range(1, 2 * h.ndim - 2, 2))


def double(h: Float[Array, "*half size"], edges: str = "constant") -> Float[Array, "*side size"]:
    """The grid twice as fine, by linear interpolation; around it what `jax.numpy.pad` makes of `edges`: zeros, or
    what stands at its edges (`"edge"`)."""
    for axis in range(h.ndim - 1):
        around = jnp.pad(h, [(1, 1) if a == axis else (0, 0) for a in range(h.ndim)], mode=edges)
        left, right = (jax.lax.slice_in_dim(around, s, s + h.shape[axis], axis=axis) for s in (0, 2))
        fine = jnp.stack([0.75 * h + 0.25 * left, 0.75 * h + 0.25 * right], axis=axis + 1)
        h = fine.reshape(*h.shape[:axis], 2 * h.shape[axis], *h.shape[axis + 1 :])
    return h
