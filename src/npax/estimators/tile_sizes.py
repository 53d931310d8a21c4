"""How many observations a tile sees: by which number those that are held out are predicted best."""

from typing import Any

import numpy as np

from ..arguments import whole_number
from ..progress import Progress
from .held_out import PARTS, HeldOut, gain

USUAL = 128
"""That of most fields."""
SMALLER = (64, 32)
FEWEST = 100
"""Observations from which on sizes are compared."""
MOST = 2000
"""Observations that are predicted by each size, about: of fewer than 2,000 each part in turn."""


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
    2,000 values are predicted. **Cost:** as many fits as fifths, and for each size these predictions: seconds.
    """
    if len(X) < FEWEST or estimator.strategy == "exact":
        return USUAL
    held_out = HeldOut(estimator, X, y, error, MOST)
    if held_out.places <= PARTS:
        return USUAL
    sizes = [USUAL, *(size for size in SMALLER if size < len(X) * (1 - 1 / PARTS))]
    with Progress("Tiles", len(sizes) * len(held_out.turns), shown=estimator.progress) as bar:
        usual, *others = held_out.losses_of_tiles(sizes, bar)
    gains = {USUAL: 0.0} | {size: gain(usual, other) for size, other in zip(sizes[1:], others, strict=True)}
    return max(gains, key=lambda size: gains[size])
