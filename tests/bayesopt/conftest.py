import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import tinygp
import untrained

from npax.gp import exact_posterior
from npax.likelihoods import FunctionAndNoise
from npax.models import AbstractConditionalNeuralProcess

SCALE, NOISE = 0.7, 0.1


@pytest.fixture(scope="session")
def small():
    """An untrained model of the shipped model's kind: three coordinates, translation equivariant."""
    return untrained.small()


class SquaredExponentialGP(AbstractConditionalNeuralProcess):
    """An exact GP of known kernel and noise in the clothes of a neural process."""

    likelihood: FunctionAndNoise = eqx.field(default_factory=lambda: FunctionAndNoise(1, 1e-9))
    dx: int = eqx.field(static=True, default=3)

    def condition(self, xc, yc, mask=None):
        return xc, yc, jnp.ones(xc.shape[0], bool) if mask is None else mask

    def decode(self, state, xt):
        xc, yc, mask = state
        mean, variance, _ = exact_posterior(
            tinygp.kernels.ExpSquared(jnp.array(SCALE), tinygp.kernels.distance.L2Distance()),
            NOISE**2,
            xc,
            yc[:, 0],
            xt,
            mask,
        )
        raw = lambda std: jnp.log(jnp.expm1(std))  # noqa: E731  (softplus, undone)
        return jnp.stack([mean, raw(jnp.sqrt(variance)), raw(jnp.full(len(xt), NOISE))], axis=1)


@pytest.fixture(scope="session")
def exact():
    """The model, and its posterior of the noiseless function by numpy: mean and covariance."""

    def posterior(seen, xt):
        k = lambda a, b: np.exp(-((a - b.T) ** 2) / (2 * SCALE**2))  # noqa: E731
        x, y, xt = (np.asarray(a, float) for a in (seen.x, seen.y, xt))
        gain = k(xt, x) @ np.linalg.inv(k(x, x) + NOISE**2 * np.eye(len(y)))
        return gain @ y, k(xt, xt) - gain @ k(x, xt)

    return SquaredExponentialGP(), posterior
