"""How certain averages over regions are, of the cells of a map, say."""

import numpy as np
from jaxtyping import Float

from ..devices import first_compiles
from ..progress import Progress
from .by_column import ByColumn, Predictor
from .groups import groups
from .joint import PIECE, nearest_correlation, responses_of, unit_of
from .levels import LevelsEverywhere
from .predict import Prediction
from .with_drift import WithDrift

ALL = 1024
"""Places that stand for all."""
ASKED, OF_EACH = 64, 32
"""Places of which it is asked how all depend on them: of one region, and of each of several."""
LOST = 0.05
"""The correlation, in the mean of places about as far away, that is lost in what the model's response does not mean:
all the places beyond would add up to more than the near ones."""
BEYOND = 2.0
"""How many times as far the lobes of true correlations reach."""
RING = 8
"""Places in the smallest ring around one."""
LEAST = 1 / 9
"""The least variance, as a share of that of as many independent places."""


def average_covariance(
    predictor: Predictor,
    x: Float[np.ndarray, "n columns"],
    weights: Float[np.ndarray, "regions n"],
    prediction: Prediction,
) -> Float[np.ndarray, "regions regions dy"]:
    r"""Joint covariance of weighted sums of the noiseless function over the rows of `x`, which is predicted there.

    Of sums $A_k = \sum_i w_{ki} f_i$ it is $\sum_{ij} w_{ki} w_{lj} \mathrm{Cov}(f_i, f_j)$, of which the model's
    response to a hypothetical observation at $x_j$ (`covariance`) gives all terms of one $j$. The sum over $i$ is taken
    over up to 1,024 places that stand for boxes of near rows, the one over $j$ over 64 of these, or 32 in each of
    several regions, by the weight that the boxes have in it. (With both over the few, places that hardly depend on each
    other would have too much of their own.) As variances are the ones that are predicted, a region of one row has that
    row's; none is below a ninth of what independent places would have.

    **Cost:** conditioning twice (in tiles three times) per place that is asked for, and predicting at those near it, as
    far as they depend on it: 2 to 3 s on a CPU core where 50 to 200 observations are seen at once; of 36 regions, or
    some hundreds, half a minute to one (they share the 1,024 places: of a square divided into 36, 100, 256 and 400
    standard deviations were 0.97, 0.96, 1.02 and 0.95 times those of the process that knows the covariance, the middle
    eight in ten of the last 0.74 to 1.23 times). Beside levels all rows are predicted once more. **Pitfall:** it
    overflows where standard deviations are beyond 1e154; `average_std` does not.
    """
    unit = unit_of(prediction)
    return _covariance(predictor, x, weights, prediction.function_std / unit, unit) * np.square(unit)


def average_std(
    predictor: Predictor,
    x: Float[np.ndarray, "n columns"],
    weights: Float[np.ndarray, "regions n"],
    prediction: Prediction,
) -> Float[np.ndarray, "regions dy"]:
    """The square roots of the diagonal of `average_covariance`."""
    unit = unit_of(prediction)
    found = _covariance(predictor, x, weights, prediction.function_std / unit, unit)
    return np.sqrt(np.einsum("kkc->kc", found)) * unit


def _covariance(predictor, x, weights, std, unit):
    """In squares of `unit [dy]`; `std [n dy]`: that of the function, in units."""
    if isinstance(predictor, WithDrift):
        places, _ = predictor.columns.split(x)
        drift, doubt = predictor.drift, predictor.doubt(x) * (predictor.drift.unit / unit)
        rest = predictor.field(places) if predictor.levels else None
        if rest is None:
            of_field = np.sqrt(np.maximum(np.square(std) - np.square(doubt).sum(axis=1), 0.0)) / drift.widened
        else:
            of_field = rest.function_std / unit
        among = _covariance(predictor.field, places, weights, of_field, unit)
        of_regions = np.einsum("kn,npc->kpc", weights, doubt)
        among = among * np.square(drift.widened) + np.einsum("kpc,lpc->klc", of_regions, of_regions)
        told = places, weights, unit, rest
        return sum((_of_levels(levels, *told) for levels in predictor.levels), among)
    if isinstance(predictor, ByColumn):
        each = predictor.split(std, unit)
        return np.concatenate([_covariance(p, x, weights, *own) for p, *own in each], axis=-1)
    positions = predictor.coordinates.positions(x)
    points = predictor.frame(positions)
    every, of_every, _ = _standing_for(points, weights, ALL)
    few, of_few, around = _standing_for(points[every], of_every, max(ASKED, OF_EACH * len(weights)))
    positions, variance = positions[every], np.square(std[every])
    among, response_to = np.empty((len(every), len(few), std.shape[1])), responses_of(predictor, positions, unit)
    with Progress("Averages", len(few), shown=predictor.progress) as bar:

        def near(j):
            return _of_the_near(response_to(int(j)), points[every], j, variance)

        for row, found in enumerate(first_compiles(near, few)):
            among[:, row] = found
            among[few[row], row] = variance[few[row]]
            bar.advance(1)
    among = np.where(np.isnan(among), np.swapaxes(among[few], 0, 1)[around], among)  # asked from the other side
    found = np.einsum("kn,njc,lj->klc", of_every, np.nan_to_num(among), of_few, optimize=True)
    apart = np.einsum("kn,nc->kc", np.square(of_every), variance)
    columns = [_positive(c, least) for c, least in zip(np.moveaxis(found, -1, 0), LEAST * apart.T, strict=True)]
    return np.stack(columns, axis=-1)


def _of_levels(levels: LevelsEverywhere, x, weights, unit, rest):
    """Of known levels, each by itself, and of the map of the others, which have deviations of their own; `rest`: what
    is predicted of what they leave."""
    some, m = levels.different(x), len(unit)
    shares = np.broadcast_to(some.shares(levels.unheard(rest)), (len(x), m))
    of_places = np.array(
        [[np.bincount(some.rows, region * share, len(some.places)) for share in shares.T] for region in weights]
    )
    own = levels.levels.unsure[some.at] / unit
    among = np.zeros((len(weights), len(weights), m))
    if not some.known.all():
        predicted, new = levels.map(some.new), of_places[:, 0, ~some.known]
        own[~some.known] = np.sqrt(predicted.variance - predicted.function_variance) / unit
        among = _covariance(levels.map, some.new, new, predicted.function_std / unit, unit)
    return among + np.einsum("kcp,lcp,pc->klc", of_places, of_places, np.square(own))


def _of_the_near(response, points, j, variance):
    """Covariances with the place `j`, `[n columns]`, none beyond `BEYOND` times the distance at which they are `LOST`:
    the `response` of places farther away is not asked for."""
    away = np.sqrt(np.square(points - points[j]).sum(axis=1))
    order = np.lexsort((np.arange(len(away)) != j, away))  # the place itself before others that are there
    away, deviations = away[order], np.sqrt(variance * variance[j])[order]
    near = _Near(response, order, variance[j])
    reach, start = np.full(variance.shape[1], np.inf), 1
    while start < len(order) and not np.isfinite(reach).all():
        ring = slice(start, min(start + RING + (start - 1) // 2, len(order)))
        like = near.until(ring.stop)[ring] / np.where(deviations[ring] > 0, deviations[ring], 1.0)
        lost = np.abs(np.nansum(like, axis=0)) < LOST * np.maximum(np.sum(~np.isnan(like), axis=0), 1)
        reach = np.where(lost & np.isinf(reach), BEYOND * away[ring.stop - 1], reach)
        start = ring.stop
    near.until(np.searchsorted(away, reach.max(), side="right"))
    kept = np.empty_like(variance)
    kept[order] = np.where(away[:, None] > reach, 0.0, near.covariances)
    return kept


class _Near:
    """Covariances `[n columns]` with the first place of an order, in that order, as far as they have been asked for:
    responses in the proportion that makes `variance [columns]` of its own."""

    def __init__(self, response, order, variance):
        self.response, self.order, self.variance = response, order, variance
        self.covariances, self.known = np.zeros((len(order), len(variance))), 0

    def until(self, number):
        """With the nearest so many, at least."""
        while self.known < number:
            some = slice(self.known, self.known + PIECE)
            found = self.response(self.order[some])
            if not self.known:
                own = np.where(found[0] > 0, found[0], self.variance)
                self.scale = np.where(own > 0, self.variance / np.where(own > 0, own, 1.0), 0.0)
            self.covariances[some] = found * self.scale
            self.known = some.stop
        return self.covariances


def _standing_for(points, weights, number):
    """Rows of `points [n d]`, about so many, that stand for the boxes of rows around them, the weights of these
    `[regions m]`, and which box each row is in: boxes are small where rows weigh much in any region."""
    largest = np.abs(weights).sum(axis=1, keepdims=True)
    share = (np.abs(weights) / np.where(largest > 0, largest, 1.0)).max(axis=0, initial=0.0)
    rows, of_each = np.flatnonzero(share), np.zeros(len(points), int)
    if not len(rows):
        return rows, weights[:, rows], of_each
    parts = [rows[part] for part in groups(points[rows], 1, share[rows] * number / share.sum())]
    for i, part in enumerate(parts):
        of_each[part] = i
    standing = np.array([part[_nearest_the_middle(points[part])] for part in parts])
    return standing, np.stack([weights[:, part].sum(axis=1) for part in parts], axis=1), of_each


def _nearest_the_middle(points):
    return int(np.argmin(np.square(points - points.mean(axis=0)).sum(axis=1)))


def _positive(a, least):
    """A covariance matrix near `a`: symmetric, without negative eigenvalues, its diagonal `least` or more."""
    std = np.sqrt(np.maximum(np.diag(a), least))
    both = np.outer(std, std)
    return nearest_correlation((a + a.T) / 2 / np.where(both > 0, both, 1.0)) * both
