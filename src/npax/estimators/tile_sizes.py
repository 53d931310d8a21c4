"""How many observations a tile sees: by which number those that are held out are predicted best."""

import warnings
from copy import copy
from typing import Any

import numpy as np
from scipy.stats import norm

from ..arguments import whole_number
from ..progress import Progress

USUAL = 128
"""That of most fields."""
SMALLER = (64, 32)
FEWEST = 100
"""Observations from which on sizes are compared."""
PARTS = 5
"""In which observations are cut; one of them is predicted from the others, each of them in turn where these are few."""
MOST = 2000
"""Observations that are predicted by each size, about: of fewer than 2,000 each part in turn."""
GAIN, SURE = 5.0, 1.5
"""What a smaller tile must gain in the log-likelihood of all that is held out, and in standard errors of that."""


def check_tile_size(size: Any) -> None:
    """**Raises** `ValueError` for what is none."""
    if isinstance(size, str):
        if size != "auto":
            raise ValueError(f'`tile_size` must be a number of observations, or "auto"; got {size!r}.')
    else:
        whole_number(1, tile_size=size)


def best_tile_size(estimator, X: np.ndarray, y: np.ndarray, error: np.ndarray | None) -> int:
    """128, unless tiles of 64 or 32 predict held-out places of `X [n d]`, `y [n]` or `[n dy]` clearly better: where
    more varies in a tile than the network resolves, such as narrow features, or many cycles of a long series.

    The normal log-likelihood of what is held out decides, in one view: a fifth of the places, or several in turn, until
    2,000 values are predicted. **Cost:** for each size as many fits as fifths, and these predictions: seconds.
    """
    place = np.unique(estimator._columns.split(X)[0], axis=0, return_inverse=True)[1].reshape(-1)
    if len(X) < FEWEST or place.max() < PARTS or estimator.strategy == "exact":
        return USUAL
    part = np.random.default_rng(0).permutation(np.arange(place.max() + 1) % PARTS)[place]
    turns = range(min(PARTS, -(-MOST * PARTS // len(X))))
    sizes = [USUAL, *(size for size in SMALLER if size < len(X) * (1 - 1 / PARTS))]

    def fitted(size, seen):
        other = copy(estimator)
        other.tile_size_, other.views, other.progress = size, None, False
        return other._keep(X[seen], y[seen], None if error is None else error[seen])

    def losses(size, bar):
        found = []
        for turn in turns:
            hidden = np.flatnonzero(part == turn)
            other = fitted(size, part != turn)
            hidden = hidden[np.lexsort((*X[hidden].T,))][:: -(-len(hidden) // MOST)]
            prediction = other._predictor()(X[hidden])
            known = 0.0 if error is None else error[hidden].reshape(len(hidden), -1)
            values = y[hidden].reshape(len(hidden), -1)
            found.append(-norm.logpdf(values, prediction.mean, np.hypot(prediction.std(), known)).sum(axis=1))
            bar.advance(1)
        return np.concatenate(found)

    with warnings.catch_warnings(), Progress("Tiles", len(sizes) * len(turns), shown=estimator.progress) as bar:
        warnings.simplefilter("ignore")  # `fit` warns of all observations
        usual, *others = (losses(size, bar) for size in sizes)
    best, most = USUAL, 0.0
    for size, of_size in zip(sizes[1:], others, strict=True):
        gained = usual - of_size
        gain, doubt = gained.sum(), gained.std() * np.sqrt(len(gained))
        if gain > max(GAIN, SURE * doubt, most):
            best, most = size, gain
    return best
