"""Equal mixtures, of Gaussians or of classes: the predictions of latent-variable models."""

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float
from numpyro.distributions import constraints

from .categorical import OneHotCategorical

BISECTIONS = 60


class NormalMixture(dist.Distribution):
    r"""$\frac1k \sum_i \mathcal N(\mu_i, \sigma_i^2)$, a mixture in equal parts; the parts are the last axis."""

    arg_constraints = {"loc": constraints.real_vector, "scale": constraints.independent(constraints.positive, 1)}
    support = constraints.real  # pyright: ignore
    reparametrized_params = ["loc", "scale"]

    def __init__(self, loc: Float[Array, "*batch k"], scale: Float[Array, "*batch k"], *, validate_args=None):
        self.loc, self.scale = loc, scale
        super().__init__(batch_shape=jnp.shape(loc)[:-1], validate_args=validate_args)

    @property
    def parts(self) -> dist.Normal:
        return dist.Normal(self.loc, self.scale)

    @property
    def mean(self):
        return jnp.mean(self.loc, axis=-1)

    @property
    def variance(self):
        return jnp.mean(jnp.square(self.scale), axis=-1) + jnp.var(self.loc, axis=-1)

    def sample(self, key, sample_shape=()):
        pick_key, draw_key = jax.random.split(jnp.asarray(key))
        drawn = self.parts.sample(draw_key, sample_shape)
        pick = jax.random.randint(pick_key, drawn.shape[:-1], 0, drawn.shape[-1])
        return jnp.take_along_axis(drawn, pick[..., None], axis=-1)[..., 0]

    def log_prob(self, value, intermediates=None):
        log_probs = self.parts.log_prob(jnp.asarray(value)[..., None])
        return jax.nn.logsumexp(log_probs, axis=-1) - jnp.log(float(self.loc.shape[-1]))

    def cdf(self, value):
        return jnp.mean(self.parts.cdf(jnp.asarray(value)[..., None]), axis=-1)

    def icdf(self, q):
        """By bisection between the least and the greatest quantile of the parts, to the rounding of float32."""
        quantiles = self.parts.icdf(jnp.asarray(q)[..., None])

        def halve(_, ends):
            low, high = ends
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < q
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        low, high = jax.lax.fori_loop(0, BISECTIONS, halve, (quantiles.min(axis=-1), quantiles.max(axis=-1)))
        return 0.5 * (low + high)


def mixture(parts: dist.Distribution) -> dist.Distribution:
    """The mixture in equal parts of Gaussians or of classes `[k *batch]`, event shape `[dy]`, over their first axis.

    The columns of `y` share the part: they are dependent where the parts differ. Of classes the mean probabilities
    are all there is to know.
    """
    if isinstance(parts, OneHotCategorical):
        log_probs = jax.nn.log_softmax(parts.logits, axis=-1)
        return OneHotCategorical(jax.nn.logsumexp(log_probs, axis=0) - jnp.log(float(parts.logits.shape[0])))
    if not (isinstance(parts, dist.Independent) and isinstance(parts.base_dist, dist.Normal)):
        kind = type(parts.base_dist if isinstance(parts, dist.Independent) else parts).__name__
        raise TypeError(
            f"A mixture takes Gaussian parts or classes, got {kind}. Give the model another likelihood, such as "
            "HeteroscedasticGaussian."
        )
    loc, scale = (jnp.moveaxis(jnp.asarray(a), 0, -2) for a in (parts.base_dist.loc, parts.base_dist.scale))
    weights = dist.Categorical(logits=jnp.zeros(loc.shape[:-1]))
    return dist.MixtureSameFamily(weights, dist.Normal(loc, scale).to_event(1))
