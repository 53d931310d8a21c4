import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro.distributions as dist

from ..alone import compiled_alone
from ..arguments import instance
from ..likelihoods import FunctionAndNoise, HeteroscedasticGaussian, HomoscedasticGaussian, NoisyNormal, marginals
from ._base import (
    AbstractConditionalNeuralProcess,
    AbstractNeuralProcess,
    check_error,
    check_points,
    condition_on,
    hears_errors,
)

_IMAGES = (False, True, True, False), (False, True, False, True)
"""Whether `x` and `y` are mirrored: in the task itself and in its three images."""


class Symmetrised(AbstractNeuralProcess):
    r"""A model that answers mirrored tasks by mirrored answers, made of any Gaussian one: it asks that one about the
    task and its mirror images, $x \to -x$ and $y \to -y$, and gives the geometric mean of what it says,

    $$p(y_t \mid x_t, D_c) \propto \prod_{i=1}^{4} p_i(y_t \mid x_t, D_c)^{1/4}.$$

    Stationary processes of mean zero look the same in the mirror, so their posterior is symmetric too. What a network
    has learned is not quite; where its answers differ at least three of them are off, and the mean takes part of that
    away: of `gp-universal`'s distance to the Bayes floor a seventh (`benchmarks/symmetrised.py`). The log density (of
    the function, where function and noise are told apart) is never below the mean of the four, for by Hölder's
    inequality the geometric mean of densities has a mass of at most one. No training is needed; it gains nothing where
    the model is symmetric, and loses where the world is not: where time has a direction or `y` a sign, such as a rain
    rate.

        reg = npax.NeuralProcessRegressor(npax.Symmetrised(npax.load("gp-universal")))

    Where function and noise are told apart, the mean is that of the function; the noise gets the geometric mean of
    the four.

    **Arguments:** `model`: a conditional neural process with a Gaussian likelihood. **Raises** `TypeError` for another.
    **Cost:** four times that of the model, in time and in the state's memory. **Source:** averaging over a group is
    general knowledge; no paper on neural processes that we know of does it to a trained one.
    """

    model: AbstractNeuralProcess

    def __check_init__(self):
        instance(AbstractNeuralProcess, model=self.model)
        likelihood = self.model.likelihood
        gaussian = isinstance(likelihood, HeteroscedasticGaussian | HomoscedasticGaussian | FunctionAndNoise)
        if not (gaussian and isinstance(self.model, AbstractConditionalNeuralProcess)):
            raise TypeError(
                "`model` must be a conditional neural process with a Gaussian likelihood, got "
                f"{type(self.model).__name__} with {type(likelihood).__name__}."
            )

    @property
    def likelihood(self):  # pyright: ignore
        return self.model.likelihood

    @property
    def dx(self):  # pyright: ignore
        return self.model.dx

    @property
    def dy(self):
        return self.likelihood.dy

    @property
    def errors(self) -> bool:
        """Whether `condition` hears of known errors: as the model does."""
        return hears_errors(self.model)

    @compiled_alone
    def condition(self, xc, yc, mask=None, error=None):
        check_points(self, xc, yc, mask, "c")
        check_error(self, error, yc)
        of_image = eqx.filter_vmap(
            lambda in_x, in_y: condition_on(self.model, _mirrored(in_x, xc), _mirrored(in_y, yc), mask, error)
        )
        return of_image(*map(jnp.array, _IMAGES))

    @compiled_alone
    def predict(self, state, xt):
        def of_image(state, in_x, in_y):
            found = marginals(self.model.predict(state, _mirrored(in_x, xt)))
            assert isinstance(found, dist.Normal | NoisyNormal)
            log_noise = jnp.log(found.noise) if isinstance(found, NoisyNormal) else None
            return _mirrored(in_y, jnp.asarray(found.loc)), jnp.log(jnp.asarray(found.scale)), log_noise

        loc, log_scale, log_noise = eqx.filter_vmap(of_image)(state, *map(jnp.array, _IMAGES))
        loc = jnp.sum(jax.nn.softmax(-2 * log_scale, axis=0) * loc, axis=0)
        scale = jnp.exp(-0.5 * (jax.nn.logsumexp(-2 * log_scale, axis=0) - jnp.log(len(log_scale))))
        if log_noise is None:
            return dist.Normal(loc, scale).to_event(1)
        return NoisyNormal(loc, scale, jnp.exp(jnp.mean(log_noise, axis=0))).to_event(1)


def _mirrored(where, a):
    return jnp.where(where, -jnp.asarray(a), a)
