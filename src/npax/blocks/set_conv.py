import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..wide import wide

EMPTY = 1e-4
"""The density at which a node knows half of what its nearest observation says."""


class Grid(eqx.Module):
    r"""A regular grid that follows the data: its nodes are whole multiples of `spacing`, its place is the context's.

    The number of nodes is fixed, so that shapes are known before values are: the grid serves any context that spans
    at most `extent` along each axis, wherever it lies, and reaches at least `margin` beyond it on either side. The
    first node is a multiple of `stride` cells. So a shift of the data by that much shifts the grid with them, and
    nothing else changes.

    **Arguments:** `spacing`, `extent`, `margin`, in the units of `x`; `stride`, in cells: the number of nodes along
    an axis is a multiple of it.
    """

    spacing: float = eqx.field(static=True)
    extent: float = eqx.field(static=True)
    margin: float = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    def __check_init__(self):
        if not (self.spacing > 0 and self.extent > 0 and self.margin >= 0):
            raise ValueError(
                "`spacing` and `extent` must be positive and `margin` not negative, "
                f"got spacing={self.spacing}, extent={self.extent}, margin={self.margin}."
            )

    @property
    def side(self) -> int:
        """Nodes along each axis."""
        cells = (self.extent + 2 * self.margin) / self.spacing + 1
        return self.stride * (math.ceil(cells / self.stride) + 1)

    def origin(self, x: Float[Array, "n dx"], mask: Bool[Array, " n"]) -> Float[Array, " dx"]:
        """The first node along each axis: as many on either side of the points that count as the stride allows.

        **Raises** at run time where they span more than `extent`.
        """
        x = jax.lax.stop_gradient(x)
        low = jnp.min(jnp.where(mask[:, None], x, jnp.inf), axis=0, initial=jnp.inf)
        high = jnp.max(jnp.where(mask[:, None], x, -jnp.inf), axis=0, initial=-jnp.inf)
        middle = eqx.error_if(
            jnp.where(jnp.any(mask), (low + high) / 2, 0.0),
            jnp.any(high - low > self.extent * (1 + 1e-5)),
            f"The context spans more than {self.extent:g}, the extent of the model's grid, along an axis of `x`. "
            "Scale `x`, or use `model.covering(extent)`: the same weights on a larger grid.",
        )
        step = self.stride * self.spacing
        first = middle - (self.side - 1) / 2 * self.spacing
        return step * jnp.floor(first / step + 0.5)

    def cells(self, x: Float[Array, "n dx"], origin: Float[Array, " dx"]) -> Float[Array, "n dx side"]:
        """How far each point lies from the nodes along each axis, in cells."""
        at = self.place(x, origin)
        return (at[:, :, None] - jnp.arange(self.side, dtype=at.dtype)).astype(x.dtype)

    def place(self, x: Float[Array, "n dx"], origin: Float[Array, " dx"]) -> Float[Array, "n dx"]:
        """How far each point lies from the first node along each axis, in cells; in float32 at least."""
        whole = wide(x.dtype)
        return (x.astype(whole) - origin.astype(whole)) / self.spacing


class SetConv(eqx.Module):
    r"""Set convolutions (Gordon et al. 2020): from points to the nodes of a grid, and from there to points.

    The weight of a point $x$ at a node $g$ is an RBF with a learned length scale, $w(x - g) =
    \exp(-\|x - g\|^2 / 2 \ell^2)$. `write` gives each node the density and the mean of the values around it,

    $$\rho_g = \sum_i w(x_i - g), \qquad v_g = \frac{\sum_i w(x_i - g)\, y_i}{\rho_g + \epsilon},$$

    with $\epsilon = 10^{-4}$, which fades values out where there is no data; `read` interpolates the grid,

    $$r(x) = \frac{1}{(\sqrt{2\pi}\, \ell)^{d_x}} \sum_g w(x - g)\, h_g,$$

    divided by what the weights of all nodes of an infinite grid sum to. Nodes outside the grid count as zero: what
    is read far from the grid is zero.

    $\ell$ is measured in cells and at least half of one, so that no point falls between the nodes.

    **Arguments:** `scale`: the initial length scale in cells, above 1/2.

    **Cost:** O(n G) for a grid of G nodes; the weights are products over the axes.
    """

    raw_scale: Float[Array, ""]

    def __init__(self, scale: float = 1.0):
        if not scale > 0.5:
            raise ValueError(f"`scale` must be above 0.5 (half a cell), got {scale}.")
        self.raw_scale = jnp.array(math.log(math.expm1(scale - 0.5)), jnp.float32)

    @property
    def scale(self) -> Float[Array, ""]:
        """The length scale in cells."""
        return 0.5 + jax.nn.softplus(self.raw_scale)

    def write(
        self,
        grid: Grid,
        origin: Float[Array, " dx"],
        x: Float[Array, "n dx"],
        y: Float[Array, "n dy"],
        mask: Bool[Array, " n"],
    ) -> tuple[Float[Array, "*side 1"], Float[Array, "*side dy"]]:
        """Density and values at the nodes."""
        n, dx = x.shape
        weights = self._weights(grid.cells(x, origin))
        spread = jnp.where(mask[:, None], jnp.concatenate([jnp.ones((n, 1), y.dtype), y], axis=-1), 0.0)
        for axis in reversed(range(1, dx)):
            spread = (weights[:, axis, :, None] * spread[:, None, :]).reshape(n, grid.side * spread.shape[1])
        sums = (weights[:, 0].T @ spread).reshape(*dx * (grid.side,), 1 + y.shape[1])
        density, total = sums[..., :1], sums[..., 1:]
        precise = wide(sums.dtype)  # the gradient of a quotient has squares
        return density, (total.astype(precise) / (density.astype(precise) + EMPTY)).astype(sums.dtype)

    def read(
        self, grid: Grid, origin: Float[Array, " dx"], h: Float[Array, "*side size"], x: Float[Array, "n dx"]
    ) -> Float[Array, "n size"]:
        """The grid at the points."""
        n, dx = x.shape
        weights = self._weights(grid.cells(x, origin)) / (math.sqrt(2 * math.pi) * self.scale)
        product = weights[:, 0]
        for axis in range(1, dx):
            product = (product[:, :, None] * weights[:, axis, None, :]).reshape(n, product.shape[1] * grid.side)
        return product @ h.reshape(product.shape[1], h.shape[-1])

    def _weights(self, cells):
        return jnp.exp(-0.5 * jnp.square(cells / self.scale))
