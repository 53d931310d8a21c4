"""Training objectives: functions `(model, task) -> scalar` of one task; `fit` averages them over a batch."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar
from numpyro.distributions import Normal

from .likelihoods import NoisyNormal, marginals, noiseless
from .models import AbstractNeuralProcess
from .task import Task
from .tasks import PosteriorTask


def nll(model: AbstractNeuralProcess, task: Task) -> Scalar:
    r"""Negative log-likelihood per target, $-\frac{1}{n_t} \sum_t \log p(y_t \mid x_t, D_c)$: maximum likelihood
    for conditional models. Mean over the valid targets, sum over the columns of `y`; zero without a valid target.
    """
    xt, yt = _visible(task.mask_t, task.xt, task.yt)
    log_prob = model(task.xc, task.yc, xt, task.mask_c).log_prob(yt)
    return masked_mean(-jnp.asarray(log_prob), task.mask_t)


def function_and_noise_nll(model: AbstractNeuralProcess, posterior: PosteriorTask) -> Scalar:
    r"""Expected negative log-likelihood of the function and of a new observation, half each.

    For tasks whose exact posterior given the hidden hyper-parameters is known, $f_t \sim \mathcal N(m, v)$: the
    expectation over $f_t$ is taken in closed form instead of by one draw,

    $$\mathbb E[-\log \mathcal N(f; \mu, \sigma^2)] = \log \sigma + \tfrac12 \log 2\pi
      + \frac{(\mu - m)^2 + v}{2 \sigma^2}.$$

    By the tower rule its mean over tasks is the same as that of `nll`; its gradient has less noise
    (Rao-Blackwell), and the draw of the targets costs nothing. The model needs the `FunctionAndNoise` likelihood.
    """
    task = posterior.task
    xt, mean, variance, noise = _visible(task.mask_t, task.xt, posterior.mean, posterior.variance, posterior.noise)
    predicted = marginals(model(task.xc, task.yc, xt, task.mask_c))
    if not isinstance(predicted, NoisyNormal):
        raise TypeError(
            "`function_and_noise_nll` needs a model with the `FunctionAndNoise` likelihood, "
            f"got one whose predictions are {type(predicted).__name__}."
        )
    function = gaussian_cross_entropy(predicted.function, mean, variance)
    observation = gaussian_cross_entropy(predicted.observation, mean, variance + noise)
    return masked_mean(0.5 * jnp.sum(function + observation, axis=-1), task.mask_t)


def posterior_nll(model: AbstractNeuralProcess, posterior: PosteriorTask) -> Scalar:
    """Expected negative log-likelihood of the noiseless function under the exact posterior of the targets.

    What `nll` is for tasks with noiseless targets, with the expectation over the targets in closed form (see
    `function_and_noise_nll`). The model needs a Gaussian likelihood.
    """
    task = posterior.task
    xt, mean, variance = _visible(task.mask_t, task.xt, posterior.mean, posterior.variance)
    predicted = marginals(noiseless(model(task.xc, task.yc, xt, task.mask_c)))
    if not isinstance(predicted, Normal):
        raise TypeError(
            "`posterior_nll` needs a model with a Gaussian likelihood, "
            f"got one whose predictions are {type(predicted).__name__}."
        )
    expected = gaussian_cross_entropy(predicted, mean, variance)
    return masked_mean(jnp.sum(expected, axis=-1), task.mask_t)


def gaussian_cross_entropy(
    predicted, mean: Float[Array, "nt dy"], variance: Float[Array, "nt dy"]
) -> Float[Array, "nt dy"]:
    r"""$\mathbb E_{f \sim \mathcal N(m, v)}[-\log \mathcal N(f; \mu, \sigma^2)]$."""
    return -predicted.log_prob(mean) + 0.5 * variance / jnp.square(predicted.scale)


def _visible(mask, *arrays):
    """The arrays with zeros under the mask, so that junk there reaches neither values nor gradients."""
    return tuple(jnp.where(mask[:, None], a, 0.0) for a in arrays)


def masked_mean(values: Float[Array, " n"], mask) -> Scalar:
    return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(jnp.sum(mask), 1).astype(values.dtype)
