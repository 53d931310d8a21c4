from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float
from numpyro.distributions import constraints

from ..wide import root_of_squares
from .categorical import OneHotCategorical
from .mixture import EqualMixture


class NoisyNormal(dist.Distribution):
    r"""A new observation of an uncertain function, $y = f + \varepsilon \sim \mathcal N(\mu, \sigma_f^2 + \sigma_n^2)$.

    **Attributes:** `loc`, the mean; `scale`, the standard deviation of the function; `noise`, that of the noise. All
    of one shape. `function` and `observation` are the two normal distributions.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "noise": constraints.positive}
    support = constraints.real  # pyright: ignore
    reparametrized_params = ["loc", "scale", "noise"]

    def __init__(self, loc, scale, noise, *, validate_args=None):
        self.loc, self.scale, self.noise = loc, scale, noise
        super().__init__(batch_shape=jnp.shape(loc), validate_args=validate_args)

    @property
    def function(self) -> dist.Normal:
        return dist.Normal(self.loc, self.scale)

    @property
    def observation(self) -> dist.Normal:
        return dist.Normal(self.loc, root_of_squares(self.scale, self.noise))

    @property
    def mean(self):
        return self.loc

    @property
    def variance(self):
        return self.observation.variance

    def sample(self, key, sample_shape=()):
        return self.observation.sample(key, sample_shape)

    def log_prob(self, value, intermediates=None):
        return self.observation.log_prob(value)

    def cdf(self, value):
        return self.observation.cdf(value)

    def icdf(self, q):
        return self.observation.icdf(q)


def marginals(distribution: dist.Distribution) -> dist.Distribution:
    """The distribution of every single value, with event shape `[]`: it has `cdf` and `icdf`, unless the values are
    those of a one-hot vector, whose entries are 1 with the probability of their class."""
    if isinstance(distribution, OneHotCategorical):
        return dist.BernoulliProbs(distribution.probs)
    if isinstance(distribution, EqualMixture):
        return EqualMixture(marginals(distribution.parts))
    return distribution.base_dist if isinstance(distribution, dist.Independent) else distribution


def log_prob(
    distribution: dist.Distribution, y: Float[Array, "*n dy"], mask: Bool[Array, "*n"] | None = None
) -> Float[Array, "*batch"]:
    """`distribution.log_prob(y)`, also where there are no targets, which NumPyro does not take; zero where `mask` is
    `False`, whatever stands there.

    **Raises** `ValueError` where the columns of `y` are not those of an event: NumPyro would pair them otherwise.
    """
    if distribution.event_shape != y.shape[-1:]:
        raise ValueError(
            f"The distribution of a likelihood must have the event shape [{y.shape[-1]}], the columns of `y`; got "
            f"{[*distribution.event_shape]}. `.to_event(1)` makes an event of the columns."
        )
    if 0 in distribution.batch_shape:
        return jnp.zeros(distribution.batch_shape, y.dtype)
    if mask is None:
        return jnp.asarray(distribution.log_prob(y))
    # Zeros would not do: outside of the support, as of amounts, gradients are NaN. A value that counts lies within.
    within = y.reshape(-1, y.shape[-1])[jnp.argmax(mask)]
    possible = jax.lax.stop_gradient(_possible_value(distribution)).astype(y.dtype)
    safe = jnp.where(jnp.any(mask), within, possible)
    return jnp.where(mask, distribution.log_prob(jnp.where(mask[..., None], y, safe)), 0.0)


def _possible_value(distribution):
    """The mean, where there is one; else any value of the support."""
    try:
        mean = jnp.asarray(distribution.mean)
    except NotImplementedError:
        return _of_support(distribution)
    return jnp.where(jnp.isfinite(mean), mean, _of_support(distribution))


def _of_support(distribution):
    """Of a mixture a value of its first part; zero where the support is not known."""
    if isinstance(distribution, EqualMixture):
        return jnp.take(_of_support(distribution.parts), 0, axis=distribution.axis)
    if isinstance(distribution, dist.Independent):
        return _of_support(distribution.base_dist)
    support: Any = distribution.support
    try:
        return support.feasible_like(jnp.zeros(distribution.shape()))
    except (AttributeError, NotImplementedError):
        return jnp.zeros(distribution.shape())


def noiseless(distribution: dist.Distribution) -> dist.Distribution:
    """The distribution of the function, where the model tells function and noise apart; else the same again."""
    if isinstance(distribution, EqualMixture):
        parts = noiseless(distribution.parts)
        return distribution if parts is distribution.parts else EqualMixture(parts)
    inner = marginals(distribution)
    if not isinstance(inner, NoisyNormal):
        return distribution
    return inner.function.to_event(len(distribution.event_shape))
