"""Joint samples and likelihoods from marginal predictions, one target after another (AR-CNP, Bruinsma et al. 2023)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from ..arguments import one_key, whole_number
from ..arrays import floats
from ..models import AbstractJointNeuralProcess, AbstractLatentNeuralProcess, AbstractNeuralProcess
from ..models._base import condition_on
from .buckets import bucket, pad
from .chains import TOGETHER, Asked, draw, log_prob, one_draw, padded_error
from .grids import wide_enough
from .normalise import refuse_far
from .predict import known_errors, to_model


def sample(
    model: AbstractNeuralProcess,
    xc,
    yc,
    xt,
    n: int = 1,
    *,
    key: PRNGKeyArray,
    method: str = "auto",
    include_noise: bool = True,
    progress: bool = False,
    error=None,
) -> Float[Array, "n nt dy"]:
    r"""Samples of all targets together, $y^{(s)} \sim p(y_1, \ldots, y_{n_t} \mid x_t, D_c)$.

    `method="ar"`: the chain rule in a random order for each sample, $y_i \sim p(y_i \mid D_c, y_{<i})$, every drawn
    value joining the context. It gives dependent samples from any model of marginals. The noiseless function is drawn
    at the end, at each target given $D_c$ and all drawn $y$: its own values in the chain, taken for noisy ones, would
    make it vary too little. `"independent"`: each target from its own marginal; the samples are jagged. `"latent"`: one
    draw of the latent variable per sample, for models that have one. `"auto"`: the model's own joint samples where it
    has any (latent variables, TNP-ND, TNP-A), else `"ar"`.

    **Arguments:** `model`; `xc [nc dx]`, `yc [nc dy]`, `xt [nt dx]` in the model's coordinates, as for the model
    itself (`NeuralProcessRegressor.sample_y` takes any units); `n` samples; `include_noise`: of new observations, or
    of the noiseless function where the model tells them apart; `progress`: show a progress bar over the values that
    `"ar"` draws; `error [nc dy]`: known standard errors of `yc`, for models that take them (what is drawn has none).

    **Cost** of `"ar"`: `n nt` times that of conditioning on `nc` to `nc + nt` points; a CPU's cores share the samples.
    **Good values:** up to a few hundred targets. **Pitfalls:** targets closer together than the model resolves carry
    its errors along the chain. Noiseless values are drawn at each target by itself given the chain, so between
    neighbours they differ by what the chain leaves open: where targets are few, more than the function does. Places
    and values are of one task, as numbers: loop over tasks (`jit` and `vmap` may go over keys alone). Values are of
    float32.

    **Raises:** `ValueError` for an unknown method, a latent that the model does not have, shapes that do not match, or
    places beyond a million;
    `TypeError` for what is no model or no key, and within a transformation of places or values.
    """
    if method not in ("auto", "ar", "latent", "independent"):
        raise ValueError(f'`method` must be "auto", "ar", "latent" or "independent", got {method!r}.')
    if method == "latent" and not isinstance(model, AbstractLatentNeuralProcess):
        raise ValueError(
            f'`method="latent"` needs a model with a latent variable, and {type(model).__name__} has none. '
            'Use "ar" for joint samples or "independent".'
        )
    whole_number(1, n=n)
    _check(model, key, xc, yc, xt)
    n = int(n)
    xc, xt = _places(model, xc, "xc"), _places(model, xt, "xt")
    yc = _values(model, yc, xc, "yc", "xc")
    error = known_errors(model, error, yc)
    if len(xt) == 0:
        return jnp.zeros((n, 0, yc.shape[1]))
    rows = np.arange(len(xt))
    if not include_noise:
        xt, rows = _distinct(xt)
    model = wide_enough(model, np.concatenate([xc, xt]))
    if method == "ar" or (method == "auto" and not isinstance(model, AbstractJointNeuralProcess)):
        asked = Asked.of(xc, yc, error, xt)
        return draw(model, asked, n, key, include_noise=include_noise, progress=progress)[:, rows]
    context, slots = _padded(xc, yc, error), pad(xt, bucket(len(xt)))
    side = 1 << (min(n, TOGETHER) - 1).bit_length()
    drawn = -(-n // side) * side  # few numbers of samples, few programs
    if method == "independent":
        return _independent(model, context, slots, jr.split(key, drawn), include_noise)[:n, rows]
    counted = np.arange(len(slots)) < len(xt)
    groups = [_own(model, context, slots, counted, k, side, include_noise) for k in jr.split(key, drawn // side)]
    return jnp.concatenate(groups)[:n, rows]


def autoregressive_log_prob(
    model: AbstractNeuralProcess, xc, yc, xt, yt, *, key: PRNGKeyArray, orders: int = 1, error=None
) -> Float[Array, " orders"]:
    r"""Joint log-likelihoods $\log p(y_t \mid x_t, D_c) = \sum_i \log p(y_i \mid D_c, y_{<i})$ of new observations,
    each in a random order of the targets. A model that is not a consistent process gives each order another value.

    Never to be compared with likelihoods of targets predicted one by one. `error [nc dy]`: known standard errors of
    `yc`, for models that take them. **Cost:** as one sample per order. **Pitfall:** it is a score, of one task of
    numbers as in `sample`; it has no gradient. Train by `npax.objectives`.
    """
    whole_number(1, orders=orders)
    _check(model, key, xc, yc, xt, yt)
    xc, xt = _places(model, xc, "xc"), _places(model, xt, "xt")
    yc, yt = _values(model, yc, xc, "yc", "xc"), _values(model, yt, xt, "yt", "xt")
    error = known_errors(model, error, yc)
    model = wide_enough(model, np.concatenate([xc, xt]))
    asked = Asked.of(xc, yc, error, xt)
    return log_prob(model, asked, jnp.asarray(pad(yt, len(asked.xt))), jr.split(key, orders))


def _check(model, key, *numbers):
    if not isinstance(model, AbstractNeuralProcess):
        raise TypeError(
            f'`model` must be a model, such as `npax.load("gp-universal")`; got {model!r}. Estimators have `sample_y`.'
        )
    if any(isinstance(a, Tracer) for a in numbers):
        raise TypeError(
            "Chains are drawn for one task of numbers at a time, not within `jit`, `vmap` or `grad`: call this in a "
            "loop over tasks."
        )
    if not isinstance(key, Tracer):
        one_key(key)


def _places(model, x, name):
    x = floats(x)
    if x.ndim != 2:
        raise ValueError(f"`{name}` must have the shape [rows, columns], a row for each point; got {x.shape}.")
    return to_model(model, refuse_far(_finite(x, name), name))


def _values(model, y, x, name, of):
    y, dy = floats(y).astype(np.float32), model.likelihood.dy
    if y.ndim != 2 or y.shape[1] != dy:
        raise ValueError(
            f"`{name}` must have the shape [rows, {dy}], the columns that the model predicts; got {y.shape}."
        )
    if len(y) != len(x):
        raise ValueError(f"`{name}` must have as many rows as `{of}`, {len(x)}; got {len(y)}.")
    return _finite(y, name)


def _finite(a, name):
    rows = np.isfinite(a).all(axis=1)
    if not rows.all():
        raise ValueError(f"`{name}` must be finite, got NaN or infinity in row {np.argmin(rows)}: leave such rows out.")
    return a


def _padded(x, y, error):
    """Places, values, mask and known errors of a context."""
    size = bucket(len(x))
    return pad(x, size), pad(y, size), np.arange(size) < len(x), padded_error(error, size)


def _distinct(x):
    """The rows of `x` without repetitions, in their order, and which of them each was: a function has one value at each
    place."""
    _, first, rows = np.unique(x, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return x[np.sort(first)], rank[rows.reshape(-1)]


@eqx.filter_jit
def _independent(model, context, xt, keys, include_noise) -> Array:
    distribution = model.predict(condition_on(model, *context), xt)
    return jax.vmap(lambda key: one_draw(distribution, key, include_noise))(keys)


@eqx.filter_jit
def _own(model, context, xt, counted, key, n, include_noise) -> Array:
    return model.sample(condition_on(model, *context), xt, key, n, mask=counted, include_noise=include_noise)


def followed_by_none(error: Float[Array, "nc dy"] | None, n: int) -> Float[Array, "nc+{n} dy"] | None:
    """Known errors of a context that `n` values follow of which no part of the noise is known."""
    return None if error is None else jnp.pad(error, ((0, n), (0, 0)))
