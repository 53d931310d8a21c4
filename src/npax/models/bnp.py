from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from numpyro.distributions import Distribution

from ..alone import compiled_alone
from ..blocks import AbstractCrossAttention, DeterministicPath, PointEncoder, UniformAttention
from ..layers import MLP, Linear, ReLU, masked_mean, spread_over_locations
from ..likelihoods import AbstractLikelihood, of_real_numbers
from ._base import clean, gaussian_unless, places, whole_number, widths
from ._latent import AbstractLatentNeuralProcess


class BNPState(NamedTuple):
    """The context, valid points first and in an order of their own, and what the base path keeps of it."""

    xc: Float[Array, "nc dx"]
    yc: Float[Array, "nc dy"]
    mask: Bool[Array, " nc"]
    memory: Any


class BNP(AbstractLatentNeuralProcess):
    r"""Bootstrapping neural process (Lee et al. 2020): the uncertainty about the function is that of a bootstrap.

    A CNP (base) predicts; what it gets wrong on its own context is resampled to make new contexts. For each draw:

    1. the context is resampled with replacement, $\hat D$, and the base model predicts $\mu_i, \sigma_i$ at all $x_i$;
    2. the standardised residuals $\varepsilon_i = (y_i - \mu_i) / \sigma_i$ are resampled with replacement, and what
       was drawn is centred;
    3. $\tilde y_i = \mu_i + \sigma_i \tilde\varepsilon_i$ makes the bootstrapped context $\tilde D$, which is encoded;
    4. the decoder reads both: its first layer adds a linear map of $\tilde r(x_t)$ to what it makes of $[r(x_t), x_t]$.

    No gradient passes through steps 1 to 3. With a cross-attention other than the uniform one it is **BANP**. Train
    it with `objectives.bootstrap_nll`, as `fit` does by default.

    Ours: one deterministic path. The authors' public code concatenates a second, pooled one.

    **Arguments:** those of `CNP`.
    **Good values:** 4 draws in training, as Lee et al. have it; they predict with 50, `predict` with 16 unless told.
    **Cost:** three encodings of the context per draw, and a sort of the context so that its order does not matter, at
    every prediction: the state holds the context as it is.
    **Raises:** `ValueError` for a likelihood of classes, counts or shares: a mean and residuals do not make them.
    **Pitfall:** its variance must be finite, or residuals are not numbers.
    """

    path: DeterministicPath
    first: Linear
    adapt: Linear
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
        attention: AbstractCrossAttention | None = None,
        layers: int = 0,
        heads: int = 8,
        decoder: tuple[int, ...] = (256, 256, 256),
        likelihood: AbstractLikelihood | None = None,
        key: PRNGKeyArray,
    ):
        whole_number(1, dx=dx, dy=dy, size=size)
        widths(encoder=encoder, decoder=decoder)
        whole_number(1, decoder_layers=len(decoder))
        self.likelihood = gaussian_unless(likelihood, dy)
        if likelihood is not None and not of_real_numbers(likelihood):
            raise ValueError(
                "A bootstrapping neural process makes values of residuals, which may be any real numbers; those of "
                f"`likelihood` = {type(likelihood).__name__} may not. Choose another model, such as `NP`."
            )
        e_key, f_key, s_key, a_key, d_key = jr.split(key, 5)
        points = PointEncoder(dx, dy, encoder, size, layers=layers, heads=heads, key=e_key)
        self.path = DeterministicPath(points, UniformAttention() if attention is None else attention)
        self.first = spread_over_locations(Linear(size + dx, decoder[0], key=f_key), slice(size, None), key=s_key)
        self.adapt = Linear(size, decoder[0], use_bias=False, key=a_key)
        self.decoder = MLP([*decoder, self.likelihood.size], activation=ReLU(), activated=True, key=d_key)
        self.dx, self.dy = dx, dy

    def condition(self, xc, yc, mask=None) -> BNPState:
        xc, yc, mask = _sorted(*clean(self, xc, yc, mask))
        return BNPState(xc, yc, mask, self.path.memorise(xc, yc, mask))

    def predict_base(self, state: BNPState, xt: Float[Array, "nt dx"]) -> Distribution:
        """What the CNP without a bootstrap predicts."""
        return self.likelihood(self._decode(state.memory, None, places(self, state, xt)))

    @compiled_alone
    def draw(self, state: BNPState, key):
        return self.path.memorise(state.xc, self._bootstrap(state, key), state.mask)

    def decode(self, state: BNPState, draw, xt):
        return self._decode(state.memory, draw, xt)

    @compiled_alone
    def _decode(self, memory, bootstrapped, xt):
        hidden = self.first(self.path.read(memory, xt), xt)
        if bootstrapped is not None:
            hidden = hidden + self.adapt(self.path.read(bootstrapped, xt))
        return self.decoder(self.decoder.activation(hidden))

    def _bootstrap(self, state, key):
        r"""Values $\tilde y$ of a bootstrapped context, `[nc dy]`."""
        pairs, residuals = jr.split(key)
        some = _with_replacement(pairs, state.mask)
        frozen = jax.lax.stop_gradient(self)
        resampled = frozen.path.memorise(state.xc[some], state.yc[some], state.mask)
        predicted = frozen.likelihood(frozen._decode(resampled, None, state.xc))
        mean, std = jnp.asarray(predicted.mean), jnp.sqrt(predicted.variance)
        residual = (state.yc - mean) / std
        drawn = residual[_with_replacement(residuals, state.mask)]
        y = mean + std * (drawn - masked_mean(drawn, state.mask))
        return jax.lax.stop_gradient(jnp.where(state.mask[:, None], y, 0.0))


def _with_replacement(key, mask):
    """One of the valid points for each slot; they come first."""
    count = jnp.sum(mask, dtype=jnp.int32)
    picks = jnp.floor(jr.uniform(key, mask.shape, jnp.float32) * count.astype(jnp.float32)).astype(jnp.int32)
    return jnp.clip(picks, 0, jnp.maximum(count - 1, 0))


def _sorted(xc, yc, mask):
    """Valid points first, by their coordinates and values: the same draws then meet the same points in any order."""
    columns = [*jax.lax.stop_gradient(jnp.concatenate([xc, yc], axis=1)).T]
    order = jnp.lexsort([*columns[::-1], ~mask])
    return xc[order], yc[order], mask[order]
