import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from ..blocks import MLP, ReLU
from ..likelihoods import AbstractLikelihood, HeteroscedasticGaussian
from ._base import AbstractConditionalNeuralProcess, at_least_one, clean


class RCNP(AbstractConditionalNeuralProcess):
    r"""Relational conditional neural process (Huang et al. 2023; in its simple form, TE eq. 38):

    $$r_t = \frac1n \sum_i \mathrm{enc}([x_t - x_i, y_i]), \qquad
      p(y_t \mid x_t, D_c) = \mathrm{lik}(\mathrm{dec}(r_t)).$$

    Each target sees the context from where it stands: translation equivariant. An empty context has $r_t = 0$.

    **Arguments:** as for `CNP`; `block`: context points encoded at a time.

    **Cost:** O(nc nt) passes through the encoder: far more than attention, whose cost per pair is one product.
    Memory O(block nt), also for gradients, which encode every block again.
    """

    encoder: MLP
    decoder: MLP
    likelihood: AbstractLikelihood
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)
    block: int = eqx.field(static=True)

    def __init__(
        self,
        dx: int,
        dy: int,
        *,
        encoder: tuple[int, ...] = (256, 256, 256),
        size: int = 256,
        decoder: tuple[int, ...] = (256, 256, 256),
        likelihood: AbstractLikelihood | None = None,
        block: int = 64,
        key: PRNGKeyArray,
    ):
        at_least_one(dx=dx, dy=dy, size=size, block=block)
        e_key, d_key = jr.split(key)
        self.likelihood = HeteroscedasticGaussian(dy) if likelihood is None else likelihood
        self.encoder = MLP([dx + dy, *encoder, size], activation=ReLU(), key=e_key)
        self.decoder = MLP([size, *decoder, self.likelihood.size], activation=ReLU(), key=d_key)
        self.dx, self.dy, self.block = dx, dy, block

    def condition(self, xc, yc, mask=None):
        return clean(xc, yc, mask)

    def decode(self, state, xt):
        xc, yc, mask = state
        side = min(self.block, max(xc.shape[0], 1))
        count = max(1, -(-xc.shape[0] // side))
        blocks = tuple(_in_blocks(a, count, side) for a in (xc, yc, mask))

        @jax.checkpoint
        def absorb(total, block):
            xc, yc, mask = block
            away = xt[None, :, :] - xc[:, None, :]
            pairs = jnp.concatenate([away, jnp.broadcast_to(yc[:, None, :], (*away.shape[:2], self.dy))], axis=-1)
            encoded = self.encoder(pairs.reshape(-1, pairs.shape[-1])).reshape(*away.shape[:2], -1)
            return total + jnp.sum(jnp.where(mask[:, None, None], encoded, 0.0), axis=0), None

        start = jnp.zeros((xt.shape[0], self.encoder.layers[-1].weight.shape[1]), xt.dtype)
        total, _ = jax.lax.scan(absorb, start, blocks)
        return self.decoder(total / jnp.maximum(jnp.sum(mask.astype(xt.dtype)), 1.0))


def _in_blocks(a, count, side):
    """`[n ...]` to `[count side ...]`, zeros (points that do not count) appended."""
    a = jnp.pad(a, [(0, count * side - a.shape[0]), *((0, 0) for _ in a.shape[1:])])
    return a.reshape(count, side, *a.shape[1:])
