"""Scores of predictions on many tasks, task by task."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float
from numpyro.distributions import constraints

from ..arguments import instance
from ..inference import Planar, Tiled
from ..inference.grids import wide_enough
from ..likelihoods import Categorical, EqualMixture, NoisyNormal, OneHotCategorical, marginals, noiseless
from ..models import AbstractNeuralProcess
from ..models._base import condition_on
from ..task import Task
from ..tasks import AbstractGPTask, AbstractTasks

Scores = dict[str, np.ndarray]
"""Per task, means over its targets, and over the columns of these: `nll`, `squared_error`, `absolute_error`, `crps` and
`covered`, the share of the targets in the central 95 % (of counts: from the 2.5 % quantile to the 97.5 % quantile, both
included). Of classes: `nll` is that of the class, errors and `crps` (the Brier score) those of the entries of the
one-hot vector, `covered` the share in the smallest set of classes that holds 95 %."""

GROUP = 128
"""Tasks that are scored by one call of a compiled program."""


CHUNK = 1024
"""Targets that are predicted at a time."""
EXACT = 2**14
"""Context points up to which all of them are seen by every target; larger contexts are seen in tiles."""
TILE = 512
"""Context points that a tile sees: as many as the largest context of training."""


def draw(tasks: AbstractTasks, n: int, seed: int) -> tuple[Task, Any]:
    """`n` tasks, and the tinygp kernels they came from or `None`; the same for the same seed."""
    return _draw(tasks, jr.split(jr.key(seed), n))


@eqx.filter_jit
def _draw(tasks, keys):
    one = tasks.sample_with_kernel if isinstance(tasks, AbstractGPTask) else lambda key: (tasks.sample(key), None)
    points = jax.eval_shape(tasks.sample, keys[0]).yt.shape[0]
    return jax.lax.map(one, keys, batch_size=max(1, min(32, 2**17 // points)))


def score(
    prediction: dist.Distribution, yt: Float[Array, " nt *dy"], mask: Bool[Array, " nt"]
) -> dict[str, Float[Array, ""]]:
    """The scores of one task's prediction, with batch shape `[nt]` and event shape `[dy]`, or `yt`'s shape and `[]`.

    Means over the targets that `mask` lets count, and over their columns: the log-likelihood too is one of a value (of
    classes, of a target). A task without any scores NaN, and so do CRPS and coverage of a distribution without `cdf`,
    and errors of one without a mean.
    """
    return {name: jnp.mean(values, where=mask) for name, values in _each(prediction, yt, mask).items()}


def _each(prediction, yt, mask):
    """The scores of every target, `[nt]`, means over its columns; those of hidden targets mean nothing."""
    yt = jnp.where(mask.reshape(-1, *(yt.ndim - 1) * [1]), yt, 0.0)
    single = marginals(prediction) if prediction.event_shape else prediction
    unknown = jnp.full_like(yt, jnp.nan)
    try:
        error = single.mean - yt
    except NotImplementedError:  # of what NumPyro transforms
        error = unknown
    scores = {"squared_error": jnp.square(error), "absolute_error": jnp.abs(error)}
    if isinstance(prediction, OneHotCategorical):
        p = prediction.probs
        likelier = jnp.sum(p, axis=-1, where=p > jnp.sum(p * yt, axis=-1, keepdims=True))
        scores["nll"] = -jnp.asarray(prediction.log_prob(yt))
        scores["crps"] = scores["squared_error"]  # of an entry, which is 0 or 1: the Brier score
        scores["covered"] = (likelier < 0.95).astype(yt.dtype)
    else:
        scores["nll"] = -jnp.asarray(single.log_prob(yt)) / math.prod(single.event_shape)
        try:
            scores["crps"] = crps(single, yt)
            scores["covered"] = _covered(single, yt).astype(yt.dtype)
        except NotImplementedError:  # some of NumPyro's distributions have no `cdf`
            scores |= dict.fromkeys(("crps", "covered"), unknown)
    return {name: jnp.mean(values.reshape(len(yt), -1), axis=1) for name, values in scores.items()}


def _covered(prediction, y):
    """Whether `y` is between the quantiles of 2.5 and 97.5 %. Steps of a distribution function hold more than a level:
    of whole numbers the quantile of a level is the least at which the function reaches it."""
    if _support(prediction).is_discrete:
        return (_probability(prediction, y) >= 0.025) & (_probability(prediction, y - 1) < 0.975)
    return jnp.abs(_probability(prediction, y) - 0.5) < 0.475


def _probability(prediction, y):
    """That of at most `y`. NumPyro has no `cdf` outside of the support, and of some counts one that rises between
    whole numbers."""
    if isinstance(prediction, EqualMixture):
        return jnp.mean(_probability(prediction.parts, prediction.beside(y)), axis=prediction.axis)
    low, high = (jnp.asarray(a, y.dtype) for a in _ends(prediction))
    y = jnp.floor(y) if _support(prediction).is_discrete else y
    return jnp.where(y < low, 0.0, jnp.where(y >= high, 1.0, prediction.cdf(jnp.clip(y, low, high))))


def _ends(prediction):
    """The least and the greatest value that can be."""
    if isinstance(prediction, EqualMixture):
        low, high = (jnp.broadcast_to(a, prediction.parts.batch_shape) for a in _ends(prediction.parts))
        return jnp.min(low, axis=0), jnp.max(high, axis=0)
    support = _support(prediction)
    return getattr(support, "lower_bound", -jnp.inf), getattr(support, "upper_bound", jnp.inf)


def _support(prediction) -> Any:
    """That of a single value."""
    support = prediction.support
    while hasattr(support, "base_constraint"):  # of vectors with independent entries
        support = support.base_constraint
    return constraints.real if support is None else support


def crps(prediction: dist.Distribution, y: Float[Array, "*shape"], nodes: int = 64) -> Float[Array, "*shape"]:
    r"""$\int (F(x) - 1[x \ge y])^2 dx$ of any distribution with a mean, a variance and a `cdf`.

    Of normal distributions and mixtures of them in closed form, $\mathbb E|X - y| - \frac12 \mathbb E|X - X'|$; of
    others by Gauss-Legendre quadrature on either side of `y`, out to 8 standard deviations from the mean or to the end
    of the support; of counts, whose `cdf` has steps, to about two hundredths of their standard deviation.
    """
    if isinstance(prediction, NoisyNormal):
        prediction = prediction.observation
    mixed = isinstance(prediction, EqualMixture)
    parts = prediction.parts if mixed else prediction
    parts = parts.observation if isinstance(parts, NoisyNormal) else parts
    if isinstance(parts, dist.Normal):
        loc, scale = jnp.broadcast_arrays(jnp.asarray(parts.loc), jnp.asarray(parts.scale))
        one_for_all = [1] * (y.ndim + mixed - loc.ndim)
        shape = (*loc.shape[:mixed], *one_for_all, *loc.shape[mixed:])
        loc, scale = (a.reshape(shape if mixed else (1, *shape)) for a in (loc, scale))
        return _crps_of_normals(loc, scale, y)
    at, weights = (jnp.asarray(a, y.dtype).reshape(-1, *y.ndim * [1]) for a in np.polynomial.legendre.leggauss(nodes))
    reach = 8 * jnp.sqrt(prediction.variance)
    least, greatest = _ends(prediction)
    low = jnp.minimum(y, jnp.maximum(prediction.mean - reach, least))
    high = jnp.maximum(y, jnp.minimum(prediction.mean + reach, greatest))
    below = _probability(prediction, low + (y - low) * (at + 1) / 2)
    above = 1 - _probability(prediction, y + (high - y) * (at + 1) / 2)
    parts = (y - low) * jnp.square(below) + (high - y) * jnp.square(above)
    return jnp.sum(weights * parts, axis=0) / 2


def _crps_of_normals(loc, scale, y):
    """Of their mixture in equal parts, along the first axis."""

    def distance(mean, std):  # the mean of |N(mean, std)|
        z = mean / std
        return mean * (2 * jax.scipy.stats.norm.cdf(z) - 1) + 2 * std * jax.scipy.stats.norm.pdf(z)

    def apart(part):
        return jnp.mean(distance(part[0] - loc, jnp.hypot(part[1], scale)), axis=0)

    return jnp.mean(distance(y - loc, scale), axis=0) - jnp.mean(jax.lax.map(apart, (loc, scale)), axis=0) / 2


def score_model(tasks: AbstractTasks, batch: Task, model: AbstractNeuralProcess, tiled: bool = False) -> Scores:
    """A model on raw coordinates and values; coordinates are padded with zeros to as many as the model takes.

    Where the targets of `tasks` are the noiseless function so is what is scored, if the model tells function and
    noise apart. Joint predictions are scored by their marginals. Memory is that of a few thousand targets, however
    many a task has; a context of more than `EXACT` points, or any that is to be `tiled`, is seen in tiles, so that time
    is bounded too. `batch`: tasks of a leading axis, as `draw` gives them.
    """
    instance(Task, batch=batch)
    instance(AbstractNeuralProcess, model=model)
    if np.ndim(batch.xc) != 3:
        raise ValueError(
            f"`batch` must be tasks of a leading axis, as `draw` gives them: `xc` [tasks, nc, dx]; got "
            f"{[*np.shape(batch.xc)]}."
        )
    model = wide_enough(model, np.asarray(batch.xc))
    if tiled or batch.xc.shape[1] > EXACT:
        return _score_tiled(model, batch)
    groups = range(0, batch.xc.shape[0], GROUP)
    parts = [jax.tree.map(lambda a, i=i: a[i : i + GROUP], batch) for i in groups]
    noiseless_targets = isinstance(tasks, AbstractGPTask) and tasks.target_noise_std == 0
    return concatenate([_score_model(model, part, noiseless_targets) for part in parts])


@eqx.filter_jit
def _score_model(model, batch, noiseless_targets):
    missing = model.dx - batch.xc.shape[-1]
    nc, nt = batch.xc.shape[1], batch.xt.shape[1]
    chunks = -(-nt // CHUNK)
    spare = -nt % chunks

    def one(task):
        xc, xt = (jnp.pad(x, ((0, 0), (0, missing))) for x in (task.xc, task.xt))
        state = condition_on(model, xc, task.yc, task.mask_c, task.error_c)

        def part(targets):
            xt, yt, mask = targets
            prediction = model.predict(state, xt)
            return _each(noiseless(prediction) if noiseless_targets else prediction, yt, mask)

        targets = [jnp.pad(a, ((0, spare), *(a.ndim - 1) * [(0, 0)])) for a in (xt, task.yt, task.mask_t)]
        if chunks == 1:
            each = part(targets)
        else:
            each = jax.lax.map(part, [a.reshape(chunks, -1, *a.shape[1:]) for a in targets])
        return {name: jnp.mean(values.reshape(-1), where=targets[2]) for name, values in each.items()}

    return jax.lax.map(one, batch, batch_size=max(1, min(16, 2**14 // max(nc, min(nt, CHUNK)))))


def _score_tiled(model, batch):
    """Tiles of the training's size, each centred and none scaled; targets as many as there are."""
    parts = []
    for i in range(batch.xc.shape[0]):
        task = jax.tree.map(lambda a, i=i: np.asarray(a[i]), batch)
        seen, asked = task.mask_c, task.mask_t
        xc, yc, xt, yt = task.xc[seen], task.yc[seen], task.xt[asked], jnp.asarray(task.yt[asked])
        error = None if task.error_c is None else task.error_c[seen]
        tiled = Tiled(model, xc.astype(float), yc.astype(float), Planar(scaled=False), error=error, size=TILE)
        found = tiled(xt.astype(float))
        if isinstance(model.likelihood, Categorical):
            prediction = OneHotCategorical(jnp.log(jnp.maximum(jnp.asarray(found.mean, jnp.float32), 1e-30)))
        else:
            mean, std = (jnp.asarray(a, jnp.float32) for a in (found.mean, found.std()))
            prediction = dist.Normal(mean, std).to_event(1)
        parts.append({name: value[None] for name, value in score(prediction, yt, jnp.ones(len(yt), bool)).items()})
    return concatenate(parts)


def concatenate(parts) -> Scores:
    """The scores of several groups of tasks as one."""
    return {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its standard error; no error where there is one value only."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(error)
