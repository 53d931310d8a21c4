"""Counts as normal observations of their level, so that what predicts fields predicts rates."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..counts import AbstractCounts, Linearised
from .frames import HALF_SPAN
from .groups import halved, of_same
from .normalise import AbstractCoordinates
from .predict import Prediction
from .with_drift import Columns

ROUNDS = 30
FARTHEST = 2.0
"""How far a level moves in a round, at most: a line touches the rate for about so far."""
SETTLED = 0.03
"""The change of levels, in their standard deviations, root mean square, below which rounds end."""
NEARLY = 0.25
"""That below which they end when it no longer falls: observations are grouped anew in each round."""
ENOUGH = 2.0
"""Expected events of a sum: of fewer the network takes for noise what is none."""
OUTBREAK = 8.0
"""Events that are not summed with others, however few are expected."""
KEPT_OF_LINE, KEPT = 100, 250
"""Sums that are left along a line, and elsewhere, or down to half as many, where they have fewer events."""
KEPT_OF_MANY = 1000
"""The same beside covariates, where counts are twice as many or more: fewer sums would mix unlike ones."""
FEWEST, KEPT_OF_FEW = 0.5, 20
"""Expected events of a sum, and sums that are left where they have fewer, in any case: single ones look like noise."""


class Counted(NamedTuple):
    """Counts `y [n]` of an `exposure [n]` at rows of `x [n d + p]`, or sums of a `number [n]` of them, which are of so
    many different `places [n]`."""

    x: np.ndarray
    y: np.ndarray
    exposure: np.ndarray
    number: np.ndarray | float = 1.0
    places: np.ndarray | float = 1.0

    def pooled(self, counts: AbstractCounts, system: AbstractCoordinates, columns: Columns) -> "Counted":
        """Sums over groups of near places with like covariates, at their means by exposure, where counts are small; and
        over the same places with the same covariates in any case, for a rate hears of no more than of their sum.

        Where half of the counts have fewer, sums have two expected events, or so many that 125 to 250 sums are left
        (along a line 50 to 100; beside covariates, whose effects sums hide, 500 to 1,000, of 2,000 counts or more).
        They have half an event in any case, if 20 sums are left then. Where eight are seen, as in an outbreak, they
        stay by themselves.
        """
        events = counts.events(*counts.with_prior(self.y, self.exposure))  # more than none, where none was seen
        wanted, always = min(events.sum() / self._kept(columns), ENOUGH), min(events.sum() / KEPT_OF_FEW, FEWEST)
        least = max(wanted, always) if np.median(events) < wanted else always
        places, z = columns.split(self.x)
        positions = system.positions(places)
        spread = np.ptp(z, axis=0)
        alike = z / np.where(spread > 0, spread / (2 * HALF_SPAN), 1.0)
        points = np.concatenate([system.space(positions)(positions), alike], axis=1)

        def first(rows):
            expected, *of = (np.cumsum(a[rows]) for a in (events, self.y, self.exposure))
            enough = (expected >= least) | (counts.seen(*of) >= OUTBREAK)
            enough &= (expected[-1] - expected >= least) | (counts.seen(*(a[-1] - a for a in of)) >= OUTBREAK)
            cuts = np.flatnonzero(enough[:-1]) + 1
            return int(cuts[np.argmin(np.abs(expected[cuts - 1] - expected[-1] / 2))]) if len(cuts) else 0

        groups = list(halved(points, first)) if least > events.min() else of_same(points)
        if len(groups) == len(points):
            return self
        x = np.empty((len(groups), self.x.shape[1]))
        x[:, columns.places] = system.columns(self._means(positions, groups))
        x[:, columns.covariates] = self._means(z, groups)
        y, exposure = (np.array([a[rows].sum() for rows in groups]) for a in (self.y, self.exposure))
        which = np.empty(len(points), int)
        for place, rows in enumerate(of_same(points)):
            which[rows] = place
        number, of_places = np.array([(len(rows), len(np.unique(which[rows]))) for rows in groups], float).T
        return Counted(x, y, exposure, number, of_places)

    def _kept(self, columns):
        """How many sums are to be left where they have up to two events."""
        if not len(columns.covariates):
            return KEPT_OF_LINE if len(columns.places) == 1 else KEPT
        return KEPT_OF_MANY if len(self.y) >= 2 * KEPT_OF_MANY else np.inf

    def _means(self, a, groups):
        """By exposure; of differences, which are exact."""
        each = [(a[rows[0]], a[rows] - a[rows[0]], self.exposure[rows]) for rows in groups]
        return np.array([first + weight @ apart / weight.sum() for first, apart, weight in each])


class Rounds(NamedTuple):
    """What counts were linearised to, after how many rounds, whether these had ended by themselves, and the logarithms
    of the probabilities of the counts, as the last round predicted them."""

    seen: Linearised
    number: int
    settled: bool
    log_evidence: np.ndarray


def linearised(
    counts: AbstractCounts,
    y: np.ndarray,
    exposure: np.ndarray,
    predict: Callable[[Linearised], Prediction],
    note: Callable[[float], None] = lambda change: None,
) -> Rounds:
    r"""Counts `y [n]` as normal observations of the levels of their rates, for whatever predicts from such.

    In turns: `predict` gives mean, noise and function at the places of the counts from normal observations with known
    errors, and each count becomes a normal observation about there (`AbstractCounts.linearised`), until levels settle.
    The level of a count has a noise of its own, by which rates differ more than by chance; from a function $\mathcal
    N(m, v)$ and what is seen of the level, $z$ with the error $s$, it is $\mathcal N((1 - g) m + g z, (1 - g)^2 v + g
    s^2)$, $g = n^2 / (n^2 + s^2)$, for a noise of standard deviation $n$.

    `note` hears of the change in each round. **Cost:** that of `predict`, 3 to 8 times.
    """
    y, exposure = counts.with_prior(y, exposure)
    middle = np.full(len(y), counts.level(y.sum() / exposure.sum()))
    level, _ = posterior = counts.posterior(y, exposure, middle, np.ones(len(y)))
    seen, step, last, number = counts.linearised(y, exposure, *posterior), 1.0, np.inf, 0
    while True:
        number += 1
        before, field = level, predict(seen)
        level, std = _levels(field, seen)
        level = before + np.clip(level - before, -FARTHEST, FARTHEST)
        change = float(np.sqrt(np.mean(np.square((level - before) / std))))
        note(change)
        seen = _between(seen, counts.linearised(y, exposure, level, std), step)
        settled = (change < SETTLED and number > 1) or last <= change < NEARLY  # first errors are of counts alone
        if settled or number == ROUNDS:
            break
        step, last = (step / 2 if change > last else step), change
    return Rounds(
        seen, number, settled, counts.log_evidence(y, exposure, field.mean[:, 0], field.observation_std[:, 0])
    )


def _levels(field: Prediction, seen: Linearised):
    """Mean and standard deviation of the level of each count, whose noise is its own."""
    mean, function = field.mean[:, 0], field.function_variance[:, 0]
    noise = np.maximum(field.variance[:, 0] - function, 0.0)
    share = noise / (noise + np.square(seen.error))
    variance = np.square(1 - share) * function + share * np.square(seen.error)
    return mean + share * (seen.value - mean), np.sqrt(variance)


def _between(old: Linearised, new: Linearised, step: float) -> Linearised:
    """So far from the old one to the new one, in precisions and what they weigh."""
    before, after = (1 - step) / np.square(old.error), step / np.square(new.error)
    precision = before + after
    return Linearised((before * old.value + after * new.value) / precision, 1 / np.sqrt(precision))
