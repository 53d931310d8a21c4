"""Joint predictions in the user's units: covariances and samples."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from ..arguments import whole_number
from ..devices import first_compiles
from ..likelihoods import of_real_numbers
from ..models import Symmetrised
from ..models._base import condition_on
from ..progress import Progress
from .autoregressive import followed_by_none, sample
from .buckets import pad, wide_bucket
from .by_column import ByColumn, Predictor
from .frames import HALF_SPAN
from .grids import wide_enough
from .levels import LevelsEverywhere
from .normalise import FAR
from .predict import Prediction, condition, moments, to_model
from .tile import Tiled
from .with_drift import WithDrift

Response = Callable[[np.ndarray], np.ndarray]
"""From numbers of targets, `[n]`, to their covariances with one, `[n dy]`, before symmetrisation, in squares of a unit;
NaN where it does not reach, which is not asked for."""

LARGEST = 1000
"""Targets up to which joint covariances are computed."""
LEAST = 1e-6
"""Eigenvalue of a matrix of correlations, at least."""
PIECE = 128
"""Targets that are asked for at once how they respond."""
REACH = 1.1
"""How far beyond its observations a tile still sees dependence, as a share of their range."""


def covariance(
    predictor: Predictor, x: np.ndarray, prediction: Prediction, *, include_noise: bool = True
) -> np.ndarray:
    r"""Joint covariance of the targets, `[n n dy]`, with the predicted variances on its diagonal.

    From the model's response to hypothetical observations. In any Gaussian process, observing $y_j$ moves the mean
    at $x_i$ by $\partial \mu_i / \partial y_j = \mathrm{Cov}(f_i, f_j) / \mathrm{Var}(y_j)$, so

    $$\mathrm{Cov}(f_i, f_j) = \tfrac12 (\mu_i^+ - \mu_i^-)\, s_j, \qquad
      \mu^\pm = \mathbb E[f \mid D_c \cup \{(x_j, \mu_j \pm s_j)\}], \quad s_j^2 = \mathrm{Var}(y_j).$$

    As correlations these are symmetrised and made positive definite: eigenvalues are raised to half the size of the
    most negative one. With a tiled predictor the response is that of the observations around $x_j$, and zero where they
    do not reach.

    **Cost:** conditioning twice per target, in tiles three times. **Pitfalls:** a model of several columns sees all of
    them at once, so its result is that of Gaussian processes only if the columns are independent. Of smooth functions
    neighbouring places are less dependent than they should be: of sin x on [0, 10], seen 60 times with noise 0.3 (1),
    differences of the noiseless function over 0.1 have a standard deviation of 0.07 (0.31) here, 0.15 (0.49) in
    `npax.sample` and 0.01 (0.09) by a fitted Gaussian process (means of five draws). Of rough ones they are more so: of
    a Matern-1/2 process differences over 1/15 of its length scale have 0.6 to 0.7 of the exact one's. Means over
    regions are about right (over the very places of 60 observations in the plane, with noise 0.7 of the field, their
    standard deviation is 0.88 of the exact one).
    Covariances overflow where standard deviations are beyond 1e154; samples do not.
    **Raises** `ValueError` for more than 1,000 targets.
    """
    check_joint(len(x))
    if isinstance(predictor, WithDrift):
        (places, _), doubt = predictor.columns.split(x), predictor.doubt(x) * predictor.drift.unit
        rest = predictor.field(places)
        among = covariance(predictor.field, places, rest, include_noise=include_noise)
        among = among * np.square(predictor.drift.widened) + np.einsum("ipc,jpc->ijc", doubt, doubt)
        return sum((_of_levels(levels, places, levels.unheard(rest)) for levels in predictor.levels), among)
    if isinstance(predictor, ByColumn):
        each = [(p, Prediction(*own)) for p, *own in predictor.split(*prediction)]
        return np.concatenate([covariance(p, x, own, include_noise=include_noise) for p, own in each], axis=-1)
    unit = unit_of(prediction)
    return _covariance(predictor, x, prediction, unit, include_noise) * np.square(unit)


def check_joint(n: int) -> None:
    """**Raises** `ValueError` for more targets than covariances are computed of: before anything is predicted."""
    if n > LARGEST:
        raise ValueError(
            f"Joint covariances, and samples in tiles, take at most {LARGEST} targets, got {n}. Ask for them in parts, "
            'for standard deviations, or for samples of the exact strategy (`strategy="exact"`).'
        )


def unit_of(prediction):
    """For each column one in which standard deviations are at most one, `[dy]`: squares neither over- nor underflow."""
    largest = prediction.std().max(axis=0, initial=0.0)
    return np.where(largest > 0, largest, 1.0)


def _covariance(predictor, x, prediction, unit, include_noise):
    """In squares of `unit [dy]`."""
    dy = prediction.mean.shape[1]
    positions, first, rows = np.unique(
        predictor.coordinates.positions(x), axis=0, return_index=True, return_inverse=True
    )
    n, rows = len(first), rows.reshape(-1)  # a function has one value at each place
    responses, response_to, everywhere = np.zeros((n, n, dy)), responses_of(predictor, positions, unit), np.arange(n)
    with Progress("Covariances", n, shown=predictor.progress) as bar:
        for j, found in enumerate(first_compiles(lambda j: response_to(j)(everywhere), everywhere)):
            responses[:, j] = found
            bar.advance(1)
    std = prediction.std(include_noise=False) / unit
    noise = np.square(prediction.std() / unit) - np.square(std)
    columns = []
    for c in range(dy):
        products = np.outer(std[first, c], std[first, c])
        among = nearest_correlation(_symmetric(responses[:, :, c]) / products) * products
        columns.append(among[np.ix_(rows, rows)] + np.diag(include_noise * noise[:, c]))
    return np.stack(columns, axis=-1) if n else responses


def joint_samples(predictor: Predictor, x: np.ndarray, n: int, key, *, include_noise: bool = True) -> np.ndarray:
    """Joint samples `[n nt dy]`: from an exact predictor the model's own where it has any, else autoregressive
    (`npax.sample`); from a tiled one Gaussian, by `covariance`.

    **Cost**: of autoregressive ones, `n nt` times that of conditioning on `nc + nt` points; of those in tiles, that of
    `covariance`. The predictor's `progress` shows a bar.
    """
    whole_number(1, n_samples=n)
    if isinstance(predictor, WithDrift):
        places, _ = predictor.columns.split(x)
        of_slopes = jr.fold_in(key, 2**30)  # none of those that a split gives
        drawn = joint_samples(predictor.field, places, n, key, include_noise=include_noise)
        rest = predictor.field(places)
        drawn = rest.mean + predictor.drift.widened * (drawn - rest.mean)
        doubt = predictor.doubt(x) * predictor.drift.unit
        slopes = np.asarray(jr.normal(of_slopes, (n, *doubt.shape[1:])), np.float64)
        drawn = drawn + predictor.added(x) + np.einsum("ipc,spc->sic", doubt, slopes)
        for levels, own in zip(
            predictor.levels, jr.split(jr.fold_in(of_slopes, 1), len(predictor.levels)), strict=True
        ):
            drawn = drawn + _levels(levels, own, places, n, levels.unheard(rest))
        return drawn
    if isinstance(predictor, ByColumn):
        each = zip(predictor.each, jr.split(key, len(predictor.each)), strict=True)
        return np.concatenate([joint_samples(p, x, n, own, include_noise=include_noise) for p, own in each], axis=-1)
    if isinstance(predictor, Tiled):
        if not of_real_numbers(predictor.model.likelihood):
            raise ValueError(
                f"Samples in tiles are Gaussian, and {type(predictor.model.likelihood).__name__}, the likelihood of "
                'the model, is not of any real number. Choose `strategy="exact"`.'
            )
        check_joint(len(x))
        prediction = predictor(x)
        unit = unit_of(prediction)
        cov = _covariance(predictor, x, prediction, unit, include_noise)
        normal = np.asarray(jr.normal(key, (n, *prediction.mean.shape)), np.float64)
        return prediction.mean + np.einsum("ijc,sjc->sic", _root(cov), normal) * unit
    xt = to_model(predictor.model, predictor.frame(predictor.coordinates.positions(x)))
    columns = []
    *keys, of_noise = jr.split(key, len(predictor.contexts) + 1)
    for column_key, context in zip(keys, predictor.contexts, strict=True):
        xc, yc, _, error = context.seen
        xc, yc, error = (None if a is None else a[context.mask] for a in (xc, yc, error))
        own = {
            "error": error,
            "include_noise": include_noise and predictor.noise is None,
            "progress": predictor.progress,
        }
        drawn = _drawn_in_views(predictor.model, xc, yc, xt, n, column_key, **own)
        columns.append(context.standardiser.undo(np.asarray(drawn, np.float64)))
    samples = np.concatenate(columns, axis=-1)
    if predictor.noise is None or not include_noise:
        return samples
    return samples + predictor.noise(x) * np.asarray(jr.normal(of_noise, samples.shape), np.float64)


def _of_levels(levels: LevelsEverywhere, x, share):
    """Their joint covariance, `[n n dy]`: that of the map, and of what is not known of those that were seen."""
    some, dy = levels.different(x), levels.levels.values.shape[1]
    among = np.zeros((len(some.places), len(some.places), dy))
    seen = np.flatnonzero(some.known)
    among[seen, seen] = np.square(levels.levels.unsure[some.at[seen]])
    if not some.known.all():
        among[np.ix_(~some.known, ~some.known)] = covariance(levels.map, some.new, levels.map(some.new))
    share = some.shares(share)
    return among[np.ix_(some.rows, some.rows)] * share[:, None] * share


def _levels(levels: LevelsEverywhere, key, x, n, share):
    """Joint samples of them, `[n nt dy]`."""
    some, (of_known, of_new) = levels.different(x), jr.split(key)
    known = levels.levels
    deviations = np.asarray(jr.normal(of_known, (n, *known.values.shape)), np.float64)
    values, away = np.take(known.values, some.at, axis=0), np.take(known.unsure * deviations, some.at, axis=1)
    if not some.known.all():
        values[~some.known], away[:, ~some.known] = 0.0, joint_samples(levels.map, some.new, n, of_new)
    return values[some.rows] + some.shares(share) * away[:, some.rows]


def _drawn_in_views(model, xc, yc, xt, n, key, **options):
    """Samples `[n nt dy]`, of which each view of a model of several draws its share: no more work than one view."""
    if not isinstance(model, Symmetrised):
        return sample(model, xc, yc, xt, n, key=key, **options)
    shares = [len(range(i, n, len(model.views))) for i in range(len(model.views))]
    drawn = []
    for view, share, own in zip(model.views, shares, jr.split(key, len(shares)), strict=True):
        if share:
            turn = np.asarray(view.turn)
            turned = np.clip(xt @ turn, -FAR, FAR)
            found = sample(model.model, xc @ turn, view.sign * yc, turned, share, key=own, **options)
            drawn.append(view.sign * np.asarray(found))
    return np.concatenate(drawn)


def nearest_correlation(a: np.ndarray) -> np.ndarray:
    """A correlation matrix near the symmetric `a`, which has a Cholesky factor: diagonal restored to ones, eigenvalues
    raised to half the size of the most negative one, which tells how wrong they are. As zeros they would call sums and
    differences certain that are not."""
    a = np.clip(a, -1, 1)
    np.fill_diagonal(a, 1.0)
    values, vectors = np.linalg.eigh(a)
    a = (vectors * np.maximum(values, max(-values.min(initial=0.0) / 2, LEAST))) @ vectors.T
    scale = np.sqrt(np.diag(a))
    return a / np.outer(scale, scale)


def _symmetric(a):
    """The mean of `a` and its transpose; of one of them where the other is NaN; zero where both are."""
    both = np.stack([a, a.T])
    return np.nansum(both, axis=0) / np.maximum(np.sum(~np.isnan(both), axis=0), 1)


def responses_of(predictor, positions, unit) -> Callable[[int], Response]:
    """A function of `j`, the target that is observed, which is conditioned on there. What it returns tells of some of
    the targets, and asks for no others."""
    # In one view: how answers depend on each other is not worth asking in several.
    asked = predictor.model.model if isinstance(predictor.model, Symmetrised) else predictor.model
    return (_responses_in_tiles if isinstance(predictor, Tiled) else _responses)(predictor, asked, positions, unit)


def _responses(predictor, asked, positions, unit):
    xt = to_model(asked, predictor.frame(positions))
    models = [wide_enough(asked, np.concatenate([context.x, xt])) for context in predictor.contexts]
    each = [
        (model, context.seen, condition(model, context))
        for model, context in zip(models, predictor.contexts, strict=True)
    ]
    scale = np.square(np.concatenate([context.standardiser.std for context in predictor.contexts], axis=-1) / unit)

    def response_to(j):
        moved = [(model, _with_one_more(model, seen, xt[j : j + 1], state)) for model, seen, state in each]
        return lambda rows: _moves(moved, xt[rows]) * scale

    return response_to


def _responses_in_tiles(predictor, asked, positions, unit):
    def response_to(j):
        frame, contexts = predictor.around(predictor.frame(positions[j : j + 1])[0])
        local = frame(positions)
        middle, half = _middle_and_half(contexts[0], local.shape[1])
        away = np.abs(local - middle)
        reached = np.all(away <= REACH * np.maximum(away[j], half), axis=1)
        xt, moved = to_model(asked, local), []
        for context in contexts:
            model = wide_enough(asked, np.concatenate([context.x, xt[reached]]))
            moved.append((model, _with_one_more(model, context.seen, xt[j : j + 1])))
        std = predictor.standardiser.std * np.concatenate([c.standardiser.std for c in contexts], axis=-1)

        def response(rows):
            covariances, there = np.full((len(rows), len(unit)), np.nan), reached[rows]
            covariances[there] = _moves(moved, xt[rows[there]]) * np.square(std / unit)
            return covariances

        return response

    return response_to


def _middle_and_half(context, d):
    """Middle of the observations that one cell sees, and half their range along the axis where it is largest."""
    x = context.x[context.mask][:, :d]
    low, high = x.min(axis=0), x.max(axis=0)
    return (low + high) / 2, float((high - low).max()) / 2 or HALF_SPAN


def _moves(moved, xt):
    """How the groups of columns of targets, `[n dy]`, respond, each by its model and `_with_one_more`."""
    size = wide_bucket(len(xt), PIECE)
    pieces = [pad(xt[start : start + size], size) for start in range(0, max(len(xt), 1), size)]
    columns = [
        np.concatenate([np.asarray(_move(model, states, std, piece)) for piece in pieces])
        for model, (states, std) in moved
    ]
    return np.concatenate(columns, axis=1).astype(np.float64)[: len(xt)]


@eqx.filter_jit
def _with_one_more(model, context, xj, state=None):
    """States of a context with an observation at `xj [1 dx]`, a standard deviation above the mean there and one below,
    and that standard deviation; `state`: that of the context alone, if it is known already."""
    xc, yc, mask, error = context
    mean, variance, _ = moments(model.predict(condition_on(model, *context) if state is None else state, xj))
    std = jnp.sqrt(variance)

    def after(y):
        x, y, seen = jnp.concatenate([xc, xj]), jnp.concatenate([yc, y]), jnp.append(mask, True)
        return condition_on(model, x, y, seen, followed_by_none(error, 1))

    return eqx.filter_vmap(after)(jnp.stack([mean + std, mean - std])), std


@eqx.filter_jit
def _move(model, states, std, xt):
    """Of targets `[n dx]`, to an observation that `_with_one_more` has added."""
    above, below = eqx.filter_vmap(lambda state: moments(model.predict(state, xt))[0])(states)
    return (above - below) / 2 * std


def _root(cov):
    """Square roots of the covariance matrices of the columns, `[n n dy]`: the symmetric ones, which do not depend on
    the signs of eigenvectors, which rounding errors turn."""
    values, vectors = np.linalg.eigh(np.moveaxis(cov, -1, 0))
    roots = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return np.moveaxis(roots, 0, -1)
