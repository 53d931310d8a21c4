"""Exact or tiled: by the accuracy of each, and where exact answers would be slow."""

import numpy as np
from scipy.spatial import KDTree

from .frames import HALF_SPAN

EXACT_UP_TO = 1500
"""Observations beyond which tiles are more accurate: the shipped model has learned from up to 1,024 at once."""
CLOSE = 0.4 * HALF_SPAN
"""Tiles that reach no farther see so much finer detail that they are more accurate."""
QUIET = 0.05
"""The variance of the noise, beside that of what varies in a tile, below which tiles are more accurate however far they
reach: what others see is known without them."""


def choose(nc: int, reach: float = np.inf, noise: float = np.inf) -> str:
    """`"exact"` or `"tiled"` for `nc` observations: the same for any number of targets, so that a place has one answer.

    Exact up to 1,500 observations, unless tiles reach (`tile_reach`) less than 0.4 of the way to the ends, or the
    variance of the `noise` is below a twentieth of that of what varies in a tile; tiled beyond. With tiles of 128 they
    reach less from about 320 observations on a line and 1,000 in the plane, spread evenly, and of fewer that lie in
    clusters: what varies between neighbours there is finer than a model resolves that sees the whole at once. So far
    exact answers at 1,000 or 10,000 targets take less time than those of tiles.

    The constants are measured: `benchmarks/strategy.py` and `noise.py`, whose tables say where each strategy is faster
    and where it is more accurate.
    """
    return "exact" if nc <= EXACT_UP_TO and reach >= CLOSE and noise >= QUIET else "tiled"


def tile_reach(positions: np.ndarray, size: int) -> float:
    """How far away the farthest of the `size` places is that are seen from the median one of `positions [n d]`;
    infinite where there are no more places than that.

    Positions are those of a `Frame`, in [-2, 2]; places that are observed more than once count once.
    """
    places = np.unique(positions, axis=0)
    if len(places) <= size:
        return np.inf
    distances = KDTree(places).query(places, size)[0].reshape(len(places), size)
    return float(np.median(distances[:, -1]))
