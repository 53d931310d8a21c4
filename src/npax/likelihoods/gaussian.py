"""Gaussian likelihoods."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jaxtyping import Array, Float

from ..arguments import whole_number
from ._base import AbstractLikelihood
from .noisy import NoisyNormal


class HeteroscedasticGaussian(AbstractLikelihood):
    r"""$y \sim \mathcal N(\mu, \sigma^2)$ with both from the network: $\sigma = s_{\min} + (1 - s_{\min})\,
    \mathrm{softplus}(\cdot)$, independent over the columns of `y`.

    **Arguments:** `dy`; `min_std`: the floor $s_{\min}$ of the standard deviation, in the units of `y`, below 1. The
    default 1e-4 only keeps it from underflowing. KR2 bounds it for noiseless image data and does not tell the bound;
    the authors' public code has 0.05 for CelebA, which `npax bench` takes for all images.
    """

    dy: int = eqx.field(static=True)
    min_std: float = eqx.field(static=True, default=1e-4, converter=float)

    def __check_init__(self):
        whole_number(1, dy=self.dy)
        check_floor(self.min_std)

    @property
    def size(self):
        return 2 * self.dy

    def __call__(self, raw):
        mean, spread = jnp.split(raw, 2, axis=-1)
        return dist.Normal(mean, positive(spread, self.min_std)).to_event(1)


PACE = 16.0
"""How much faster than other parameters a standard deviation that all points share learns: under Adam each moves by the
learning rate in a step, and alone this one would take some thousand steps from 0.7 to 0.1."""


class HomoscedasticGaussian(AbstractLikelihood):
    r"""$y \sim \mathcal N(\mu, \sigma^2)$ with $\mu$ from the network and one learned $\sigma$ per column (TE F.2)."""

    raw_std: Float[Array, " dy"]
    dy: int = eqx.field(static=True)
    min_std: float = eqx.field(static=True, converter=float)

    def __init__(self, dy: int, min_std: float = 1e-4):
        self.raw_std, self.dy, self.min_std = jnp.zeros(dy), dy, min_std

    def __check_init__(self):
        whole_number(1, dy=self.dy)
        check_floor(self.min_std)

    @property
    def size(self):
        return self.dy

    def __call__(self, raw):
        return dist.Normal(raw, jnp.broadcast_to(positive(PACE * self.raw_std, self.min_std), raw.shape)).to_event(1)


class FunctionAndNoise(AbstractLikelihood):
    r"""Tells the function from the noise: $y = f + \varepsilon$, $f \sim \mathcal N(\mu, \sigma_f^2)$,
    $\varepsilon \sim \mathcal N(0, \sigma_n^2)$, all three from the network.

    The distribution is that of a new observation `y`; `npax.likelihoods.noiseless` gives that of `f`. To tell the
    two apart the model must be trained on both (`npax.tasks.GPPrior`, `npax.objectives.function_and_noise_nll`).
    """

    dy: int = eqx.field(static=True)
    min_std: float = eqx.field(static=True, default=1e-3, converter=float)

    def __check_init__(self):
        whole_number(1, dy=self.dy)
        check_floor(self.min_std)

    @property
    def size(self):
        return 3 * self.dy

    def __call__(self, raw):
        mean, spread, noise = jnp.split(raw, 3, axis=-1)
        return NoisyNormal(mean, positive(spread, self.min_std), positive(noise, self.min_std)).to_event(1)


def positive(raw: Float[Array, "*shape"], floor: float) -> Float[Array, "*shape"]:
    """Softplus, bounded away from zero."""
    return floor + (1 - floor) * jax.nn.softplus(raw)


def check_floor(min_std: float) -> None:
    """**Raises** `ValueError` for a floor of `positive` that does not leave it positive."""
    if not 0 < min_std < 1:
        raise ValueError(f"`min_std` must be above 0 and below 1, got {min_std}. Scale `y` to about one.")
