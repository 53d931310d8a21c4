"""Training objectives: functions `(model, task, key) -> scalar` of one task; `fit` averages them over a batch.

The key is for the objectives that draw; the others do without."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray, Scalar
from numpyro.distributions import Normal, kl_divergence

from .arguments import booleans, one_key, whole_number
from .likelihoods import NoisyNormal, log_prob, marginals, noiseless
from .models import (
    BNP,
    TNPND,
    AbstractJointNeuralProcess,
    AbstractLatentNeuralProcess,
    AbstractNeuralProcess,
    AbstractVariationalNeuralProcess,
    GridConvCNP,
)
from .models._base import condition_on
from .task import Task
from .tasks import HiddenPixels, Picture, PosteriorTask
from .wide import wide


def nll(model: AbstractNeuralProcess, task: Task, key: PRNGKeyArray | None = None) -> Scalar:
    r"""Negative log-likelihood per target, $-\frac{1}{n_t} \sum_t \log p(y_t \mid x_t, D_c)$: maximum likelihood
    for conditional models. Mean over the valid targets, sum over the columns of `y`; zero without a valid target.

    `key`: of the draws of a model with a latent variable; without one they are the same at every call.
    """
    xt, yt = _visible(task.mask_t, task.xt, task.yt)
    state = _conditioned(model, task)
    latent = isinstance(model, AbstractLatentNeuralProcess)
    predicted = model.predict(state, xt, key=key) if latent else model.predict(state, xt)
    return masked_mean(-log_prob(predicted, yt, task.mask_t), task.mask_t)


def elbo(model: AbstractVariationalNeuralProcess, task: Task, key: PRNGKeyArray) -> Scalar:
    r"""Negative evidence lower bound of a model with a latent variable, per target (ANP, eq. 3):

    $$-\frac{1}{n_t} \Bigl(\mathbb E_{q(z \mid D_c \cup D_t)} \bigl[\textstyle\sum_t \log p(y_t \mid x_t, z)\bigr]
      - \mathrm{KL}\bigl(q(z \mid D_c \cup D_t) \,\Vert\, q(z \mid D_c)\bigr)\Bigr).$$

    One draw of $z$. The divergence counts once per task, not once per target: both terms are sums over the task,
    divided by its number of targets.
    """
    one_key(key)
    posterior, prior, log_likelihood = _of_latent("elbo", model, task)
    found = log_likelihood(jnp.asarray(posterior.rsample(key)))
    return masked_mean(-found, task.mask_t) + _per_target(jnp.sum(kl_divergence(posterior, prior)), task.mask_t)


def importance_weighted_nll(
    model: AbstractVariationalNeuralProcess, task: Task, key: PRNGKeyArray, samples: int = 16
) -> Scalar:
    r"""Negative joint log-likelihood of the targets per target, by importance weights (Burda et al. 2016):

    $$-\frac{1}{n_t} \log \frac1S \sum_s \frac{q(z_s \mid D_c)}{q(z_s \mid D_c \cup D_t)}
      \prod_t p(y_t \mid x_t, z_s), \qquad z_s \sim q(z \mid D_c \cup D_t).$$

    An upper bound in expectation: with one sample the `elbo` (whose divergence is in closed form), with many the truth
    of the model. For evaluation; what `joint_log_prob` estimates by draws given the context alone, with far fewer
    draws where the targets say much about $z$. **Good values:** 16 samples or more.
    """
    whole_number(1, samples=samples)
    posterior, prior, log_likelihood = _of_latent("importance_weighted_nll", model, task)

    def log_weight(key):
        z = jnp.asarray(posterior.rsample(key))
        return jnp.sum(log_likelihood(z)) + jnp.sum(prior.log_prob(z) - posterior.log_prob(z))

    log_weights = jax.vmap(log_weight)(jr.split(key, samples))
    return _per_target(jnp.log(float(samples)) - jax.nn.logsumexp(log_weights), task.mask_t)


def bootstrap_nll(model: BNP, task: Task, key: PRNGKeyArray, draws: int = 4) -> Scalar:
    r"""Likelihood of the base model and of the mixture over bootstrapped contexts (Lee et al. 2020), per target:

    $$-\frac{1}{n_t} \sum_t \Bigl(\log p(y_t \mid x_t, D_c)
      + \log \frac1k \sum_k p(y_t \mid x_t, D_c, \tilde D^{(k)})\Bigr).$$
    """
    _check_kind("bootstrap_nll", model, BNP)
    xt, yt = _visible(task.mask_t, task.xt, task.yt)
    state = _conditioned(model, task)
    base = log_prob(model.predict_base(state, xt), yt, task.mask_t)
    mixed = log_prob(model.predict(state, xt, key=key, samples=draws), yt, task.mask_t)
    return masked_mean(-base - mixed, task.mask_t)


def joint_nll(model: AbstractJointNeuralProcess, task: Task, key: PRNGKeyArray) -> Scalar:
    r"""Negative joint log-likelihood, $-\frac{1}{n_t} \log p(y_1, \ldots, y_{n_t} \mid x_t, D_c)$, of the targets in a
    random order. Never to be compared with `nll`, which takes each target by itself.
    """
    return _joint_nll("joint_nll", model, task, key, task.mask_t.shape[0])


def joint_and_single_nll(model: AbstractJointNeuralProcess, task: Task, key: PRNGKeyArray, targets: int = 32) -> Scalar:
    """The sum of `joint_nll` of as many random `targets` and of `nll` of all: both are least at the truth.

    What `TNPND` trains with. The joint likelihood of many noiseless targets of a smooth function is nearly all about
    how they hang together, and teaches little about the context; few targets, and each by itself, teach both.

    **Cost:** that of `nll`, and O((targets dy)³).
    """
    whole_number(1, targets=targets)
    joint_key, single_key = jr.split(key)
    joint = _joint_nll("joint_and_single_nll", model, task, joint_key, targets)
    return joint + nll(model, task, single_key)


def _joint_nll(objective, model, task, key, targets):
    _check_kind(objective, model, AbstractJointNeuralProcess)
    order_key, draw_key = jr.split(key)
    lots = jr.uniform(order_key, task.mask_t.shape)
    order = jnp.argsort(jnp.where(task.mask_t, lots, 2.0))[:targets]  # those that count first
    xt, yt = _visible(task.mask_t, task.xt, task.yt)
    xt, yt, mask = xt[order], yt[order], task.mask_t[order]
    state = _conditioned(model, task)
    found = model.joint_log_prob(state, xt, yt, mask, key=draw_key)
    return _per_target(-found, mask)


def _conditioned(model, task):
    return condition_on(model, task.xc, task.yc, task.mask_c, task.error_c)


def _check_kind(objective, model, kind):
    """**Raises** `TypeError` for a model of another kind."""
    if not isinstance(model, kind):
        raise TypeError(
            f"`{objective}` is of models of the kind {kind.__name__}, got {type(model).__name__}: train it by "
            f"`objectives.{suited(model).__name__}`. Joint likelihoods of any model: "
            "`npax.inference.autoregressive_log_prob`."
        )


def suited(model: AbstractNeuralProcess) -> Callable:
    """The objective that a model of this kind is trained with, unless one asks for another."""
    match model:
        case AbstractVariationalNeuralProcess():
            return elbo
        case BNP():
            return bootstrap_nll
        case TNPND():
            return joint_and_single_nll
        case AbstractJointNeuralProcess():
            return joint_nll
    return nll


def function_and_noise_nll(
    model: AbstractNeuralProcess, posterior: PosteriorTask, key: PRNGKeyArray | None = None
) -> Scalar:
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
    predicted = marginals(model.predict(_conditioned(model, task), xt))
    return masked_mean(_half_each("function_and_noise_nll", predicted, mean, variance, noise), task.mask_t)


def picture_nll(model: GridConvCNP, picture: Picture, key: PRNGKeyArray | None = None, seen: float = 0.02) -> Scalar:
    """Negative log-likelihood of a field and of new observations of it, half each, at the nodes of a picture.

    What `function_and_noise_nll` is for tasks: the expectation over the noise of an observation is in closed form.
    A node in a gap counts 1, one that is seen counts `seen`: little is to be learned there; zero where no node counts.
    The model needs the `FunctionAndNoise` likelihood.
    """
    y = jnp.where(picture.mask[..., None], picture.y, 0.0)
    predicted = marginals(model.on_grid(y, picture.mask))
    each = _half_each("picture_nll", predicted, picture.function, 0.0, jnp.square(picture.noise))
    weight = jnp.where(picture.mask, seen, 1.0)
    return jnp.sum(weight * each) / jnp.maximum(jnp.sum(weight), jnp.finfo(each.dtype).tiny)


def hidden_pixels_nll(model: GridConvCNP, picture: HiddenPixels, key: PRNGKeyArray | None = None) -> Scalar:
    """Negative log-likelihood per pixel that is wanted, given those that are seen; zero without one."""
    distribution = model.on_grid(jnp.where(picture.mask[..., None], picture.y, 0.0), picture.mask)
    return masked_mean(-log_prob(distribution, picture.y, picture.wanted), picture.wanted)


def posterior_nll(model: AbstractNeuralProcess, posterior: PosteriorTask, key: PRNGKeyArray | None = None) -> Scalar:
    """Expected negative log-likelihood of the noiseless function under the exact posterior of the targets.

    What `nll` is for tasks with noiseless targets, with the expectation over the targets in closed form (see
    `function_and_noise_nll`). The model needs a Gaussian likelihood.
    """
    task = posterior.task
    xt, mean, variance = _visible(task.mask_t, task.xt, posterior.mean, posterior.variance)
    predicted = marginals(noiseless(model.predict(_conditioned(model, task), xt)))
    if not isinstance(predicted, Normal):
        raise TypeError(
            "`posterior_nll` needs a model with a Gaussian likelihood, "
            f"got one whose predictions are {type(predicted).__name__}."
        )
    expected = gaussian_cross_entropy(predicted, mean, variance)
    return masked_mean(jnp.sum(expected, axis=-1), task.mask_t)


def _half_each(objective, predicted, mean, variance, noise):
    """Half the cross-entropies of the function and of a new observation, summed over the columns: `[*n]`."""
    if not isinstance(predicted, NoisyNormal):
        raise TypeError(
            f"`{objective}` needs a model with the `FunctionAndNoise` likelihood, "
            f"got one whose predictions are {type(predicted).__name__}."
        )
    function = gaussian_cross_entropy(predicted.function, mean, variance)
    observation = gaussian_cross_entropy(predicted.observation, mean, variance + noise)
    return 0.5 * jnp.sum(function + observation, axis=-1)


def gaussian_cross_entropy(
    predicted, mean: Float[Array, "*n dy"], variance: Float[Array, "*n dy"] | Scalar | float
) -> Float[Array, "*n dy"]:
    r"""$\mathbb E_{f \sim \mathcal N(m, v)}[-\log \mathcal N(f; \mu, \sigma^2)]$."""
    return -predicted.log_prob(mean) + 0.5 * variance / jnp.square(predicted.scale)


def _of_latent(objective, model, task):
    """Posterior and prior of the latent variable, and the log-likelihoods of the targets given a value of it."""
    _check_kind(objective, model, AbstractVariationalNeuralProcess)
    xt, yt = _visible(task.mask_t, task.xt, task.yt)
    state = _conditioned(model, task)

    def log_likelihood(z):
        return log_prob(model.likelihood(model.decode(state, z, xt)), yt, task.mask_t)

    return _posterior(model, task, xt, yt), model.prior(state), log_likelihood


def _posterior(model, task, xt, yt):
    r"""$q(z \mid D_c \cup D_t)$, where what is in both counts once."""
    xc, yc = _visible(task.mask_c, task.xc, task.yc)
    observed, wanted = jnp.concatenate([xc, yc], axis=1), jnp.concatenate([xt, yt], axis=1)
    mask_c = task.mask_c & ~_among(observed, wanted, task.mask_t)
    both = (jnp.concatenate(pair) for pair in ((task.xc, xt), (task.yc, yt), (mask_c, task.mask_t)))
    return model.posterior(*both)


def _among(rows, others, mask):
    """Which of the rows `[n d]` are one of the others `[m d]` under a `True`, in memory that grows with n + m only: in
    order, a row stands behind those that it is the same as."""
    n = len(rows)
    everything = jax.lax.stop_gradient(jnp.concatenate([rows, others]))
    counted = jnp.concatenate([jnp.zeros(n, bool), mask])
    order = jnp.lexsort([~counted, *everything.T])
    placed = everything[order]
    new = jnp.concatenate([jnp.ones(1, bool), jnp.any(placed[1:] != placed[:-1], axis=1)])
    first = jax.lax.cummax(jnp.where(new, jnp.arange(len(new)), 0))
    return jnp.zeros(len(new), bool).at[order].set(counted[order][first])[:n]


def _visible(mask, *arrays):
    """The arrays with zeros under the mask, so that junk there reaches neither values nor gradients. **Raises** where
    they have not as many rows: one row would be taken for all."""
    booleans(mask_t=mask)
    if any(a.shape[0] != mask.shape[0] for a in arrays):
        rows = ", ".join(str(a.shape[0]) for a in arrays)
        raise ValueError(f"A task's targets must have a row for each of `mask_t`, {mask.shape[0]}; got {rows}.")
    return tuple(jnp.where(mask[:, None], a, 0.0) for a in arrays)


def _per_target(total, mask):
    """Divided by how many targets count; zero where none does."""
    count = jnp.sum(mask)
    total = total.astype(wide(total.dtype))
    return jnp.where(count > 0, total / jnp.maximum(count, 1).astype(total.dtype), 0.0)


def masked_mean(values: Float[Array, "*n"], mask) -> Scalar:
    """The mean of the values that count, where `mask` is `True`; zero where none does. Of 16 bits in float32."""
    values = values.astype(wide(values.dtype))
    return jnp.sum(jnp.where(mask, values, 0.0)) / jnp.maximum(jnp.sum(mask), 1).astype(values.dtype)
