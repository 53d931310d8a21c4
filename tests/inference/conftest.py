import equinox as eqx
import jax.numpy as jnp
import pytest
import untrained
from jaxtyping import Array, Float

from npax.likelihoods import FunctionAndNoise
from npax.models import AbstractConditionalNeuralProcess


@pytest.fixture(scope="session")
def small():
    """An untrained model of the shipped model's kind: three coordinates, translation equivariant."""
    return untrained.small()


class SquaredExponentialGP(AbstractConditionalNeuralProcess):
    """An exact GP of known kernel and noise in the clothes of a neural process: the truth that inference must meet."""

    likelihood: FunctionAndNoise = eqx.field(default_factory=lambda: FunctionAndNoise(1, 1e-9))
    dx: int = eqx.field(static=True, default=3)
    scale: float = eqx.field(static=True, default=0.7)
    noise: float = eqx.field(static=True, default=0.1)
    errors: bool = eqx.field(static=True, default=True)

    def kernel(self, a: Float[Array, "n dx"], b: Float[Array, "m dx"]) -> Float[Array, "n m"]:
        r2 = jnp.sum(jnp.square((a[:, None] - b[None]) / self.scale), axis=-1)
        return jnp.exp(-0.5 * r2)

    def condition(self, xc, yc, mask=None, error=None):
        mask = jnp.ones(xc.shape[0], bool) if mask is None else mask
        xc, yc = jnp.where(mask[:, None], xc, 0.0), jnp.where(mask[:, None], yc, 0.0)
        k = jnp.where(mask[:, None] & mask[None], self.kernel(xc, xc), 0.0)
        known = 0.0 if error is None else jnp.square(error[:, 0])
        k = k + jnp.diag(jnp.where(mask, self.noise**2 + known, 1.0))
        inverse = jnp.linalg.inv(k)
        return xc, mask, inverse, inverse @ yc

    def decode(self, state, xt):
        xc, mask, inverse, weights = state
        k = jnp.where(mask, self.kernel(xt, xc), 0.0)
        variance = jnp.maximum(1.0 - jnp.einsum("ti,ij,tj->t", k, inverse, k), 1e-6)
        raw = lambda std: jnp.log(jnp.expm1(std))[:, None]  # noqa: E731  (softplus, undone)
        return jnp.concatenate([k @ weights, raw(jnp.sqrt(variance)), raw(jnp.full(len(xt), self.noise))], axis=1)


@pytest.fixture(scope="session")
def gp():
    return SquaredExponentialGP()
