import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..blocks import Grid, SetConv, UNet
from ..layers import MLP, LayerNorm, Linear
from ..likelihoods import AbstractLikelihood
from ._base import AbstractConditionalNeuralProcess, clean, gaussian_unless, whole_number


class OnGrid(NamedTuple):
    """What `ConvCNP` keeps of a context: the first node, the features at the nodes less those of empty space, and
    those of empty space."""

    origin: Float[Array, " dx"]
    deviation: Float[Array, "*side size"]
    rest: Float[Array, " size"]


class ConvCNP(AbstractConditionalNeuralProcess):
    r"""Convolutional conditional neural process (Gordon et al. 2020), off the grid: a set convolution takes the
    context onto a regular grid, a CNN works there, another set convolution reads the result at the targets:

    $$h = \mathrm{CNN}\bigl(e + W [\log(1 + \rho), v]\bigr), \qquad
      p(y_t \mid x_t, D_c) = \mathrm{lik}\Bigl(\mathrm{head}\Bigl(\sum_g w(x_t - g)\, h_g\Bigr)\Bigr),$$

    with the density $\rho$ and the values $v$ of `SetConv` at the nodes $g$, a `UNet` as CNN, and $e$ learned.

    Ours where the papers differ from one another: $\log(1 + \rho)$ in the place of $\rho$, and a U-Net of residual
    blocks (depthwise convolution, LayerNorm, MLP: see `UNet`) as CNN. Gordon et al. have a plain CNN and a U-Net, TE
    eleven layers of 128 channels, KR1 (§2.3.2) names a residual CNN.

    **The grid** has a fixed spacing and a fixed number of nodes, so that shapes do not depend on values, and lies
    where the context lies (`Grid`); targets play no part, so one state serves any. It stands for an infinite one:
    all that is outside it is taken to hold the features of empty space, in the CNN and when targets are read. Hence
    a larger grid changes nothing but what the CNN would have carried out across the edge, and a target far from the
    grid gets exactly the prediction of an empty context. A context too wide for the grid is an error at run time,
    never cut; `covering` gives the model a wider one.

    **Equivariance:** to shifts of `x` by whole multiples of `shift`, exactly; to others only as far as the CNN
    has learned it.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `spacing`: between nodes, in the units of `x`. `extent`: the
    most that a context may span along an axis (default 4, that of coordinates in [-2, 2]); `margin`: how far the
    grid reaches beyond it at least, where predictions are still more than the prior. `blocks`, `size`, `hidden`,
    `window`: those of `UNet`. `likelihood`: default `HeteroscedasticGaussian(dy)`.

    **Cost**, for G nodes: `condition` O(nc G) and the CNN, about 2 G size hidden products for each block of the
    finest level, and a `2 ** dx` times smaller number at each coarser one; `decode` O(nt G). The state holds
    G size floats, however large the context. G grows with the power `dx`: good for one and two dimensions,
    bearable for three on a coarse grid.

    **Good values:** a spacing of a third of the shortest length scale or less; levels and blocks with which the CNN
    sees the whole domain (each block sees (`window` - 1) / 2 nodes of its level further). **Pitfall:** observations
    closer together than the spacing are hard to tell apart.
    """

    encode: SetConv
    embed: Linear
    empty: Float[Array, " size"]
    cnn: UNet
    read: SetConv
    norm: LayerNorm
    head: MLP
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
        margin: float = 1.0,
        blocks: tuple[int, ...] = (1, 1, 1, 1, 1, 1),
        size: int = 64,
        hidden: int = 256,
        window: int = 5,
        likelihood: AbstractLikelihood | None = None,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, size=size, hidden=hidden, blocks=min(blocks, default=0))
        e_key, r_key, c_key, h_key = jr.split(key, 4)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.encode, self.read = SetConv(), SetConv()
        self.embed = Linear(1 + dy, size, use_bias=False, key=e_key)
        # Small beside the data, or training starts slowly; not zeros, whose normalisation has gradients of 1e7.
        self.empty = 0.1 * jr.normal(r_key, (size,))
        self.cnn = UNet(size, dx=dx, blocks=blocks, hidden=hidden, window=window, key=c_key)
        self.norm = LayerNorm(size)
        self.head = MLP([size, 4 * size, self.likelihood.size], key=h_key)
        self.grid = Grid(spacing, extent, margin, self.cnn.stride)
        self.dx, self.dy = dx, dy

    @property
    def shift(self) -> float:
        """Shifts of `x` by whole multiples of this shift the predictions with it, and change nothing else."""
        return self.grid.stride * self.grid.spacing

    def covering(self, extent: float) -> "ConvCNP":
        """The same model (its weights know nothing of the grid's size) for contexts that span up to `extent`."""
        return eqx.tree_at(lambda model: model.grid, self, dataclasses.replace(self.grid, extent=extent))

    def condition(self, xc, yc, mask=None) -> OnGrid:
        xc, yc, mask = clean(self, xc, yc, mask)
        origin = self.grid.origin(xc, mask)
        density, values = self.encode.write(self.grid, origin, xc, yc, mask)
        nodes = jnp.concatenate([jnp.log1p(density), values], axis=-1)
        deviation = self.embed(nodes.reshape(-1, 1 + self.dy)).reshape(*density.shape[:-1], -1)
        return OnGrid(origin, *self.cnn(deviation, self.empty))

    def decode(self, state, xt):
        h = state.rest + self.read.read(self.grid, state.origin, state.deviation, xt)
        return self.head(self.norm(h))
