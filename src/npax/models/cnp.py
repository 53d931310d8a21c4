import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from ..blocks import MLP
from ..likelihoods import AbstractLikelihood, HeteroscedasticGaussian
from ._base import AbstractNeuralProcess, at_least_one, clean, masked_mean


class CNP(AbstractNeuralProcess):
    r"""Conditional neural process (Garnelo et al. 2018): the mean of the encoded context, decoded at each target,

    $$r = \frac1n \sum_i \mathrm{enc}([x_i, y_i]), \qquad p(y_t \mid x_t, D_c) = \mathrm{lik}(\mathrm{dec}([r, x_t])).$$

    The fastest of all, and the least accurate: one vector carries the whole context, so fine detail is lost however
    many points there are. An empty context has $r = 0$.

    **Arguments:** `dx`, `dy`: columns of `x` and `y`. `encoder`, `decoder`: widths of the hidden layers. `size`:
    width of $r$. `likelihood`: default `HeteroscedasticGaussian(dy)`.

    **Cost:** O(nc + nt). The state is `r [size]`.
    """

    encoder: MLP
    decoder: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        encoder: tuple[int, ...] = (256, 256, 256),
        size: int = 256,
        decoder: tuple[int, ...] = (256, 256, 256),
        likelihood: AbstractLikelihood | None = None,
        key: PRNGKeyArray,
    ):
        at_least_one(dx=dx, dy=dy, size=size)
        e_key, d_key = jr.split(key)
        self.likelihood = HeteroscedasticGaussian(dy) if likelihood is None else likelihood
        self.encoder = MLP([dx + dy, *encoder, size], key=e_key)
        self.decoder = MLP([size + dx, *decoder, self.likelihood.size], key=d_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None) -> Float[Array, " size"]:
        xc, yc, mask = clean(xc, yc, mask)
        return masked_mean(self.encoder(jnp.concatenate([xc, yc], axis=-1)), mask)

    def decode(self, state, xt):
        r = jnp.broadcast_to(state, (xt.shape[0], state.shape[0]))
        return self.decoder(jnp.concatenate([r, xt], axis=-1))
