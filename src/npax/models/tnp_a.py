import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from ..alone import compiled_alone
from ..arguments import whole_number
from ..bias import CausalBias
from ..blocks import read_memories, write_memories, write_one_more
from ..likelihoods import AbstractLikelihood, log_prob, noiseless
from ._base import AbstractConditionalNeuralProcess, check_mask, clean, context_features, places, target_features
from ._joint import AbstractJointNeuralProcess
from .tnp import TNPD


class TNPA(AbstractConditionalNeuralProcess, AbstractJointNeuralProcess):
    r"""Transformer neural process, autoregressive (TNP-A; Nguyen and Grover 2022): the chain rule in one pass,

    $$p(y_1, \ldots, y_{n_t} \mid x_t, D_c) = \prod_i p(y_i \mid x_i, D_c, (x_1, y_1), \ldots, (x_{i-1}, y_{i-1})).$$

    The network of `TNPD`. Each target stands there twice: with its value, for those behind it to read, and without,
    to be predicted. A causal bias on the place in the order keeps anyone from looking ahead: the context is at 0,
    the i-th target at i with its value and at i - 1/2 without. Training sees the true values of earlier targets, in a
    random order (`objectives.joint_nll`, what `fit` does by default).

    **Arguments**: those of `TNPD`.

    **Cost:** per block O((nc + nt)²) for the likelihood. `predict` gives the marginals, each target as the first, at
    the cost of `TNPD`, and so does `sample`, which draws one target after another and writes each into the memory.

    **Pitfalls:** the likelihood depends on the order of the targets; few terms of the training objective are those
    of first targets, so marginals are less accurate than `TNPD`'s.
    """

    tokens: TNPD
    dx: int = eqx.field(static=True)
    dy: int = eqx.field(static=True)

    def __init__(self, dx: int, dy: int, *, heads: int = 4, key: PRNGKeyArray, **shape):
        self.tokens = TNPD(dx, dy, heads=heads, bias=CausalBias(heads), **shape, key=key)
        self.dx, self.dy = dx, dy

    @property
    def likelihood(self) -> AbstractLikelihood:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.tokens.likelihood

    def condition(self, xc, yc, mask=None):
        xc, yc, mask = clean(self, xc, yc, mask)
        return self._write(xc, yc, _before_all(xc), mask), (xc, yc, mask)

    def decode(self, state, xt):
        return self._read(state[0], xt, _before_all(xt))

    @compiled_alone
    def log_probs(
        self, state, xt: Float[Array, "nt dx"], yt: Float[Array, "nt dy"], mask: Bool[Array, " nt"] | None = None
    ) -> Float[Array, " nt"]:
        """The log-likelihood of each target given the context and the targets before it; zero under a `False`."""
        xt, yt, mask = clean(self, xt, yt, mask, "t")
        memories, at = self._with_targets(state, xt, yt, mask)
        return log_prob(self.likelihood(self._read(memories, xt, at - 0.5)), yt, mask)

    def joint_log_prob(self, state, xt, yt, mask=None, *, key=None):
        return jnp.sum(self.log_probs(state, xt, yt, mask))

    @compiled_alone
    def sample(self, state, xt, key, n=1, *, mask=None, include_noise=True):
        whole_number(1, n=n)
        (xc, yc, mask_c), xt = state[1], places(self, state, xt)
        check_mask(mask, xt, "t")
        nt = xt.shape[0]
        if nt == 0:
            return jnp.zeros((n, 0, self.dy), yc.dtype)
        counted = jnp.ones(nt, bool) if mask is None else jnp.asarray(mask)
        empty = jnp.zeros((nt, self.dy), yc.dtype)
        room = [jnp.zeros_like(xt), empty, _before_all(xt), jnp.zeros(nt, bool)]
        context = (xc, yc, _before_all(xc), mask_c)
        memories = self._write(*(jnp.concatenate(pair) for pair in zip(context, room, strict=True)))

        def one(key):
            order_key, draw_key = jr.split(key)
            order = jnp.argsort(jnp.where(counted, jr.uniform(order_key, (nt,)), 2.0))
            x, keys = xt[order], jr.split(draw_key, nt + 1)

            def step(i, chain):
                memories, y = chain
                here, place = jax.lax.dynamic_slice_in_dim(x, i, 1), jnp.full(1, i + 1, jnp.float32)
                predicted = self.likelihood(self._read(memories, here, place - 0.5))
                drawn = jnp.asarray(predicted.sample(keys[i])).astype(y.dtype)  # counts are whole numbers
                token = self.tokens.embed(context_features(here, drawn))
                memories = write_one_more(self.tokens.stack, memories, token, place[:, None], xc.shape[0] + i)
                return memories, y.at[i].set(drawn[0])

            written, y = jax.lax.fori_loop(0, jnp.sum(counted), step, (memories, empty))
            if not include_noise:
                observation = self.likelihood(self._read(written, x, jnp.full(nt, nt + 1, jnp.float32)))
                if noiseless(observation) is not observation:
                    y = jnp.asarray(noiseless(observation).sample(keys[-1]))
            return jnp.zeros_like(y).at[order].set(y)

        return jax.vmap(one)(jr.split(key, n))

    def _with_targets(self, state, xt, yt, mask):
        xc, yc, mask_c = state[1]
        at = 1.0 + jnp.arange(xt.shape[0], dtype=jnp.float32)
        both = [jnp.concatenate(pair) for pair in ((xc, xt), (yc, yt), (_before_all(xc), at), (mask_c, mask))]
        return self._write(*both), at

    def _write(self, x, y, at, mask):
        return write_memories(self.tokens.stack, self.tokens.embed(context_features(x, y)), at[:, None], mask)

    def _read(self, memories, x, at):
        zt = self.tokens.embed(target_features(x, self.dy))
        return self.tokens.head(read_memories(self.tokens.stack, memories, zt, at[:, None]))


def _before_all(x):
    """Places in time, in float32 whatever else is not: it tells all from their halves up to eight million."""
    return jnp.zeros(x.shape[0], jnp.float32)
