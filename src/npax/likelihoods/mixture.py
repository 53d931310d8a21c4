"""Equal mixtures of distributions: the predictions of latent-variable models."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpyro.distributions as dist

from .categorical import OneHotCategorical

BISECTIONS = 60


class EqualMixture(dist.Distribution):
    r"""$\frac1k \sum_i p_i(y)$: the mixture in equal parts of the distributions along the first batch axis of `parts`.

    The columns of a `y` with an event shape share the part: they are dependent where the parts differ.

    **Shapes:** `parts` with batch shape `[k *batch]`; the mixture has `[*batch]`, and its event shape.
    **Cost:** that of all parts, of samples too. `cdf` and `icdf` are there where the parts have them and the event
    shape is `[]` (`npax.likelihoods.marginals`).
    """

    pytree_data_fields = ("parts",)

    def __init__(self, parts: dist.Distribution, *, validate_args=None):
        self.parts = parts
        super().__init__(parts.batch_shape[1:], parts.event_shape, validate_args=validate_args)

    @property
    def support(self):
        return self.parts.support

    @property
    def mean(self):
        return jnp.mean(jnp.asarray(self.parts.mean), axis=self.axis)

    @property
    def variance(self):
        mean, variance = jnp.asarray(self.parts.mean), jnp.asarray(self.parts.variance)
        return jnp.mean(variance, axis=self.axis) + jnp.var(mean, axis=self.axis)

    def log_prob(self, value, intermediates=None):
        each = jnp.asarray(self.parts.log_prob(self.beside(value)))
        axis = -1 - len(self.batch_shape)
        possible = jnp.any(each != -jnp.inf, axis=axis, keepdims=True)  # elsewhere the gradient is NaN, if not zero
        total = jax.nn.logsumexp(jnp.where(possible, each, 0.0), axis=axis)
        return jnp.where(jnp.squeeze(possible, axis), total, -jnp.inf) - jnp.log(float(each.shape[axis]))

    def sample(self, key: Any, sample_shape=()):
        of_part, of_value = jr.split(key)
        drawn = jnp.asarray(self.parts.sample(of_value, sample_shape))
        shape = (*sample_shape, *self.batch_shape, *(1 for _ in self.event_shape))
        part = jr.randint(of_part, shape, 0, drawn.shape[self.axis])
        return jnp.take_along_axis(drawn, jnp.expand_dims(part, self.axis), self.axis).squeeze(self.axis)

    def cdf(self, value):
        return jnp.mean(self.parts.cdf(self.beside(value)), axis=self.axis)

    def icdf(self, q):
        r"""By bisection between the least and the greatest quantile of the parts, to the rounding of float32.

        Its derivatives are those of the implicit function $F_\theta(y) = q$: two steps of Newton's, which change no
        value, give the first three."""
        still, level = jax.lax.stop_gradient((self, jnp.asarray(q)))
        found = still._bisected(level)
        inside = (level > 0) & (level < 1)  # else an end of the support, which has no density
        middle = jnp.mean(jnp.asarray(still.parts.icdf(jnp.full_like(still.beside(level), 0.5))), axis=self.axis)
        for _ in range(2):
            at = jnp.where(inside, found, middle)
            density, above = jnp.exp(self.log_prob(at)), self.cdf(at) - q
            moved = at - (above - jax.lax.stop_gradient(above)) / jnp.where(density > 0, density, 1.0)
            found = jnp.where(inside, moved, found)
        return found

    def _bisected(self, q):
        quantiles = jnp.asarray(self.parts.icdf(self.beside(q)))

        def halve(_, ends):
            low, high = ends
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < q
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        ends = quantiles.min(axis=self.axis), quantiles.max(axis=self.axis)
        low, high = jax.lax.fori_loop(0, BISECTIONS, halve, ends)
        return 0.5 * (low + high)

    def beside(self, value):
        """`value`, which is broadcast as NumPyro's distributions do, with an axis for the parts."""
        shape = jnp.broadcast_shapes(jnp.shape(value), (*self.batch_shape, *self.event_shape))
        return jnp.expand_dims(jnp.broadcast_to(value, shape), self.axis)

    @property
    def axis(self) -> int:
        """That of the parts, from the end: `vmap` adds axes in front of it."""
        return -1 - len(self.batch_shape) - len(self.event_shape)


def mixture(parts: dist.Distribution) -> dist.Distribution:
    """The mixture in equal parts of distributions `[k *batch]` over their first axis.

    Of classes the mean probabilities are all there is to know: it is an `OneHotCategorical` again.
    """
    if isinstance(parts, OneHotCategorical):
        log_probs = jax.nn.log_softmax(parts.logits, axis=-1)
        return OneHotCategorical(jax.nn.logsumexp(log_probs, axis=0) - jnp.log(float(parts.logits.shape[0])))
    return EqualMixture(parts)
