"""How well places that are held out are predicted from the others."""

import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy.stats import norm

from ..progress import Progress

PARTS = 5
"""In which observations are cut; one of them is predicted from the others, each of them in turn where these are few."""
GAIN, SURE = 5.0, 1.5
"""What the log-likelihood of all that is held out must gain, and in standard errors of that."""


class HeldOut:
    """Observations of an estimator: a fifth of the places of `X [n d]`, or several in turn, until about `most` values
    of `y [n]` or `[n dy]` are held out."""

    def __init__(self, estimator: Any, X: np.ndarray, y: np.ndarray, error: np.ndarray | None, most: int):
        self.estimator, self.X, self.y, self.error, self.most = estimator, X, y, error, most
        place = np.unique(estimator._columns.split(X)[0], axis=0, return_inverse=True)[1].reshape(-1)
        self.places = int(place.max()) + 1
        self.part = np.random.default_rng(0).permutation(np.arange(self.places) % PARTS)[place]
        self.turns = range(min(PARTS, -(-most * PARTS // len(X))))

    def losses(self, bar: Progress, **settings: Any) -> np.ndarray:
        """The negative logarithms of the normal likelihoods of what is held out, in one view, by the estimator with
        other `settings`."""
        return self.losses_of_tiles([self.estimator.tile_size_], bar, **settings)[0]

    def losses_of_tiles(self, sizes: Sequence[int], bar: Progress, **settings: Any) -> list[np.ndarray]:
        """The same for tiles of several sizes, which see the observations in the same way."""
        turns = [self._turn(turn, sizes, bar, settings) for turn in self.turns]
        return [np.concatenate(losses) for losses in zip(*turns, strict=True)]

    def _turn(self, turn, sizes, bar, settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `fit` warns of all observations
            seen, hidden = self.part != turn, np.flatnonzero(self.part == turn)
            other, error = copy(self.estimator), self.error
            vars(other).update(settings, views=None, progress=False)
            other._keep(self.X[seen], self.y[seen], None if error is None else error[seen])
            hidden = hidden[np.lexsort((*self.X[hidden].T,))][:: -(-len(hidden) // self.most)]
            return [self._loss(other, size, hidden, bar) for size in sizes]

    def _loss(self, other, size, hidden, bar):
        other._take_tiles(size)
        prediction = other._predictor()(self.X[hidden])
        known = 0.0 if self.error is None else self.error[hidden].reshape(len(hidden), -1)
        values = self.y[hidden].reshape(len(hidden), -1)
        bar.advance(1)
        return -norm.logpdf(values, prediction.mean, np.hypot(prediction.std(), known)).sum(axis=1)


def gain(usual: np.ndarray, other: np.ndarray) -> float:
    """By how much the losses of all that is held out are less than usual, zero if not clearly."""
    gained = usual - other
    total, doubt = gained.sum(), gained.std() * np.sqrt(len(gained))
    return float(total) if total > max(GAIN, SURE * doubt) else 0.0
