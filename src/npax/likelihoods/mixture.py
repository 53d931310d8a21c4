"""Equal mixtures, of Gaussians or of classes: the predictions of latent-variable models."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from .categorical import OneHotCategorical

BISECTIONS = 60


class NormalMixture(dist.MixtureSameFamily):
    r"""$\frac1k \sum_i \mathcal N(\mu_i, \sigma_i^2)$, a mixture in equal parts, with quantiles; the parts are the last
    axis."""

    def __init__(self, loc: Float[Array, "*batch k"], scale: Float[Array, "*batch k"], *, validate_args=None):
        weights: Any = dist.Categorical(logits=jnp.zeros_like(loc))
        super().__init__(weights, dist.Normal(loc, scale), validate_args=validate_args)

    def icdf(self, q):
        """By bisection between the least and the greatest quantile of the parts, to the rounding of float32."""
        quantiles = jnp.asarray(self.component_distribution.icdf(jnp.asarray(q)[..., None]))

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
    weights = dist.Categorical(logits=jnp.zeros_like(loc[..., 0]))
    return dist.MixtureSameFamily(weights, dist.Normal(loc, scale).to_event(1))
