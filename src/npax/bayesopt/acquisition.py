"""Where to evaluate a function next: what each candidate promises to somebody who looks for the minimum."""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ..wide import wide
from .surrogate import AbstractSurrogate, Evaluations

TERMS = 24
"""Of the continued fraction: at its worst place it is then within 1e-9 of its limit."""


class AbstractAcquisition(eqx.Module):
    """What an evaluation at each candidate promises. The candidate that promises most is evaluated next."""

    @abc.abstractmethod
    def __call__(
        self, surrogate: AbstractSurrogate, seen: Evaluations, xt: Float[Array, "nt d"], key: PRNGKeyArray
    ) -> Float[Array, " nt"]:
        """Promises that can be compared between calls with the same evaluations and key."""


class ExpectedImprovement(AbstractAcquisition):
    r"""$\log \mathbb E[\max(f^* - f(x), 0)]$: how far below the best so far (Jones et al. 1998), in logarithms.

    Since evaluations are noisy, the best so far $f^*$ is the lowest posterior mean among them, not the lowest value.
    """

    def __call__(self, surrogate, seen, xt, key):
        places = jnp.concatenate([xt, jnp.where(seen.mask[:, None], seen.x, 0.0)])
        mean, std = surrogate.moments(seen, places)
        n = xt.shape[0]
        best = jnp.min(mean[n:], where=seen.mask, initial=jnp.inf)
        best = jnp.where(jnp.any(seen.mask), best, jnp.min(mean))
        return log_expected_improvement(mean[:n], std[:n], best)


class ConfidenceBound(AbstractAcquisition):
    r"""$-(\mu(x) - w \sigma(x))$: the least value that is still credible (GP-UCB of Srinivas et al. 2010, for minima).

    `width`: the number $w$ of standard deviations; more explores more. **Good values:** 1 to 3.
    """

    width: Float[Array, ""]

    def __init__(self, width: float | Float[Array, ""] = 2.0):
        real = np.ndim(width) == 0 and np.asarray(width).dtype.kind in "iuf"
        if not real or not 0 <= width < math.inf:
            raise ValueError(f"`width` must be one number, finite and not negative, got {width!r}.")
        self.width = jnp.asarray(width, jnp.float32)  # not a setting: another one compiles nothing

    def __call__(self, surrogate, seen, xt, key):
        mean, std = surrogate.moments(seen, xt)
        return self.width * std - mean


class ThompsonSampling(AbstractAcquisition):
    """Minus a function drawn from the belief: its minimum is evaluated next (Thompson 1933; ANP App. C)."""

    def __call__(self, surrogate, seen, xt, key):
        return -surrogate.sample(seen, xt, key)


class RandomSearch(AbstractAcquisition):
    """Promises at random: every candidate is as good as any other. The control that the others must beat; with it
    `Optimizer` goes on with the quasi-random places that it begins with."""

    def __call__(self, surrogate, seen, xt, key):
        return jr.uniform(key, xt.shape[:1])


def acquisition(name: str) -> AbstractAcquisition:
    """An acquisition by the name that the public functions take."""
    match name:
        case "ei":
            return ExpectedImprovement()
        case "ucb":
            return ConfidenceBound()
        case "thompson":
            return ThompsonSampling()
    raise ValueError(f'`acquisition` must be "ei", "ucb", "thompson" or an acquisition object, got {name!r}.')


def log_expected_improvement(
    mean: Float[Array, "*shape"], std: Float[Array, "*shape"], best: Float[Array, "*#shape"] | float
) -> Float[Array, "*shape"]:
    r"""$\log \mathbb E[\max(b - f, 0)] = \log \sigma + \log(\phi(z) + z \Phi(z))$, $z = (b - \mu) / \sigma$, for
    $f \sim \mathcal N(\mu, \sigma^2)$ and $b$ the best so far. Minimisation.

    Accurate in float32, with finite gradients, however small the improvement: for $z < -3$ the two terms cancel, and
    Laplace's continued fraction of the Mills ratio gives their sum without a difference,

    $$\phi(z) + z \Phi(z) = \frac{\phi(z)}{1 + |z| F}, \qquad
      F = |z| + \cfrac{2}{|z| + \cfrac{3}{|z| + \cfrac{4}{\ddots}}}.$$

    **Reference:** that EI is to be maximised in logarithms: Ament et al. (2023), Unexpected improvements to expected
    improvement.
    """
    dtype = mean.dtype
    mean, std = (jnp.asarray(a, wide(dtype)) for a in (mean, std))
    known = std == 0  # then the improvement is
    z = (best - mean) / jnp.where(known, 1.0, std)
    near = z > -3
    inner, outer = jnp.where(near, z, 0.0), jnp.where(near, 3.0, -z)
    body = jnp.log(jax.scipy.stats.norm.pdf(inner) + inner * jax.scipy.stats.norm.cdf(inner))
    fraction = outer
    for i in range(TERMS, 1, -1):
        fraction = outer + i / fraction
    tail = -jnp.log1p(outer * fraction) - 0.5 * outer * outer - 0.5 * math.log(2 * math.pi)
    likely = jnp.log(jnp.where(known, 1.0, std)) + jnp.where(near, body, tail)
    better = best > mean
    sure = jnp.where(better, jnp.log(jnp.where(known & better, best - mean, 1.0)), -jnp.inf)
    return jnp.where(known, sure, likely).astype(dtype)
