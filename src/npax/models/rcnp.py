import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from ..layers import MLP, ReLU
from ..likelihoods import AbstractLikelihood
from ..turns import in_turns
from ..wide import wide
from ._base import AbstractConditionalNeuralProcess, clean, gaussian_unless, whole_number, widths


class RCNP(AbstractConditionalNeuralProcess):
    r"""Relational conditional neural process (Huang et al. 2023; in its simple form, TE eq. 38):

    $$r_t = \frac1n \sum_i \mathrm{enc}([x_t - x_i, y_i]), \qquad
      p(y_t \mid x_t, D_c) = \mathrm{lik}(\mathrm{dec}(r_t)).$$

    Each target sees the context from where it stands: translation equivariant. An empty context has $r_t = 0$.

    The encoder's last map is affine, so that it is applied to the mean of the hidden layer, once per target.

    **Arguments:** as for `CNP`; `block`: pairs encoded at a time, be they of several tasks under `vmap` or some of one
    task; the numbers do not depend on it.

    **Cost:** O(nc nt) passes through the encoder: far more than attention, whose cost per pair is one product.
    Memory O(block size), also for gradients, which encode every block again. Blocks of masked points are skipped.
    **Good values:** `block` 1,024 to 4,096 on CPUs, where activations must stay in the cache; more on GPUs.
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
        block: int = 2**11,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, size=size, block=block)
        widths(encoder=encoder, decoder=decoder)
        e_key, d_key = jr.split(key)
        self.likelihood = gaussian_unless(likelihood, dy)
        self.encoder = MLP([dx + dy, *encoder, size], activation=ReLU(), locations=slice(0, dx), key=e_key)
        self.decoder = MLP([size, *decoder, self.likelihood.size], activation=ReLU(), key=d_key)
        self.dx, self.dy, self.block = dx, dy, block

    def condition(self, xc, yc, mask=None):
        return clean(self, xc, yc, mask)

    def decode(self, state, xt):
        (xc, yc, mask), nt = state, xt.shape[0]
        count = max(1, -(-nt // max(1, self.block // SIDE)))
        rows = -(-nt // count)
        pieces = jnp.pad(xt, ((0, count * rows - nt), (0, 0))).reshape(count, rows, self.dx)
        hidden = jax.lax.map(lambda xt: _sum_hidden(self.encoder, xt, xc, yc, mask, self.block), pieces)
        n = jnp.sum(mask.astype(hidden.dtype))
        mean = hidden.reshape(count * rows, hidden.shape[-1])[:nt] / jnp.maximum(n, 1.0)
        encoded = self.encoder.layers[-1](mean.astype(xt.dtype))
        return self.decoder(jnp.where(n > 0, encoded, 0.0))


SIDE = 8
"""Context points in a block, at least."""


def _sum_hidden(encoder, xt, xc, yc, mask, block):
    """The encoder's last hidden layer of every target, `[nt width]`, summed over the context in blocks."""
    rows, nc = max(xt.shape[0], 1), max(xc.shape[0], 1)
    count = -(-nc // max(SIDE, block // rows))
    xc, yc, mask = (_in_blocks(a, count) for a in (xc, yc, mask))
    return in_turns(_sum_blocks, max(1, block // (rows * nc)))((encoder, xt, xc, yc), mask)


def _in_blocks(a, count):
    """`[n ...]` to `[count side ...]`, zeros (points that do not count) appended."""
    side = max(1, -(-a.shape[0] // count))
    a = jnp.pad(a, [(0, count * side - a.shape[0]), *((0, 0) for _ in a.shape[1:])])
    return a.reshape(count, side, *a.shape[1:])


def _sum_blocks(operands, mask):
    encoder, xt, xc, yc = operands
    width = encoder.layers[-1].weight.shape[0]
    nothing = jnp.zeros((xt.shape[0], width), wide(xt.dtype))

    @jax.checkpoint  # a gradient keeps no more than each block
    def absorb(total, block):
        xc, yc, mask = block
        return total + jax.lax.cond(jnp.any(mask), lambda: _one_block(mask, encoder, xt, xc, yc), lambda: nothing), None

    return jax.lax.scan(absorb, nothing, (xc, yc, mask))[0]


def _one_block(mask, encoder, xt, xc, yc):
    away = xt[:, None, :] - xc[None, :, :]
    pairs = jnp.concatenate([away, jnp.broadcast_to(yc[None], (*away.shape[:2], yc.shape[1]))], axis=-1)
    count, width = away.shape[0] * away.shape[1], encoder.layers[-1].weight.shape[0]
    hidden = encoder.hidden(pairs.reshape(count, pairs.shape[-1])).reshape(*away.shape[:2], width)
    return jnp.einsum("tch,c->th", hidden, mask.astype(hidden.dtype), preferred_element_type=wide(hidden.dtype))
