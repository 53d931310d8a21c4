import abc

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree
from numpyro.distributions import Distribution

from ..alone import compiled_alone
from ..likelihoods import log_prob, mixture, noiseless
from ._base import State, check_mask, clean, places, whole_number
from ._joint import AbstractJointNeuralProcess

SAMPLES = 16
"""Latent draws of which a prediction is the mixture."""


class AbstractLatentNeuralProcess(AbstractJointNeuralProcess):
    r"""A neural process whose context stands for many functions: each draw $z$ of its latent variable is one,

    $$p(y_t \mid x_t, D_c) = \mathbb E_{z \mid D_c}\bigl[\mathrm{lik}(\mathrm{decode}(z, x_t))\bigr].$$

    `predict` gives the mixture over draws, the same ones at every call with the same `key`. Given one draw the
    targets are independent of one another; one draw for each sample of all targets makes joint samples.

    A model gives `condition`, `draw` and `decode`; the rest is written here.
    """

    @abc.abstractmethod
    def draw(self, state: State, key: PRNGKeyArray) -> PyTree:
        """One draw of the latent variable given the context."""

    @abc.abstractmethod
    def decode(self, state: State, draw: PyTree, xt: Float[Array, "nt dx"]) -> Float[Array, "nt size"]:
        """The raw numbers that the likelihood turns into a distribution at each target, given one draw."""

    def predict(
        self, state: State, xt: Float[Array, "nt dx"], *, key: PRNGKeyArray | None = None, samples: int = SAMPLES
    ) -> Distribution:
        """The mixture over `samples` draws, at each target: batch shape `[nt]`, event shape `[dy]`."""
        return mixture(self.predict_each(state, xt, key=key, samples=samples))

    def predict_each(
        self, state: State, xt: Float[Array, "nt dx"], *, key: PRNGKeyArray | None = None, samples: int = SAMPLES
    ) -> Distribution:
        """The distribution of each target given each draw: batch shape `[samples nt]`, event shape `[dy]`."""
        whole_number(1, samples=samples)
        xt = places(self, state, xt)
        keys = jr.split(jr.key(0) if key is None else key, samples)
        return self.likelihood(self._decode_each(state, xt, keys))

    @compiled_alone
    def _decode_each(self, state, xt, keys):
        return jax.vmap(lambda key: self.decode(state, self.draw(state, key), xt))(keys)

    def sample(self, state, xt, key, n=1, *, mask=None, include_noise=True):
        whole_number(1, n=n)
        latent_key, draw_key = jr.split(key)
        check_mask(mask, xt, "t")
        if mask is not None:
            xt = jnp.where(jnp.asarray(mask)[:, None], xt, 0.0)
        each = self.predict_each(state, xt, key=latent_key, samples=n)
        return jnp.asarray((each if include_noise else noiseless(each)).sample(draw_key))

    def joint_log_prob(self, state, xt, yt, mask=None, *, key=None, samples: int = SAMPLES):
        r"""$\log \frac1S \sum_s \prod_t p(y_t \mid x_t, z_s)$ with draws $z_s$ given the context: a lower bound in
        expectation, tighter with more `samples`."""
        xt, yt, mask = clean(self, xt, yt, mask, "t")
        each = log_prob(self.predict_each(state, xt, key=key, samples=samples), yt, mask)
        return jax.nn.logsumexp(jnp.sum(each, axis=-1)) - jnp.log(float(samples))


class AbstractVariationalNeuralProcess(AbstractLatentNeuralProcess):
    r"""A model whose latent variable has a density, $q(z \mid D)$ of any set of points: it can be trained by the
    evidence lower bound (`objectives.elbo`), as `fit` does by default."""

    @abc.abstractmethod
    def prior(self, state: State) -> Distribution:
        r"""$q(z \mid D_c)$, of which `draw` draws."""

    @abc.abstractmethod
    def posterior(
        self, x: Float[Array, "n dx"], y: Float[Array, "n dy"], mask: Bool[Array, " n"] | None = None
    ) -> Distribution:
        r"""$q(z \mid D)$ of any set of points: of context and targets together in training."""
