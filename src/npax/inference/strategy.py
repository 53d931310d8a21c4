"""Exact or tiled: by the accuracy and the estimated work of each."""

import numpy as np
from scipy.spatial import KDTree

from .frames import HALF_SPAN
from .tile import SHARE

EXACT_UP_TO = 1500
"""Observations beyond which tiles are more accurate: the shipped model has learned from up to 1,024 at once."""
CLOSE = 0.4 * HALF_SPAN
"""Tiles that reach no farther see so much finer detail that they are more accurate."""
QUIET = 0.05
"""The variance of the noise, beside that of what varies in a tile, below which tiles are more accurate however far they
reach: what others see is known without them."""
TOKEN = 200
"""What the network costs for a point that attends to nothing, in pairs of points."""
REACHED = 1.7
"""Cells that reach a target, in the plane."""
PADDED = 2
"""What tiles compute for a target and a cell that reaches it, padding and blending included, in targets."""
CHEAP = 5_000_000
"""Pairs that take a second at most on two CPU cores: no reason to leave the exact answer."""


def choose(nc: int, nt: int, size: int, reach: float = np.inf, noise: float = np.inf) -> str:
    """`"exact"` or `"tiled"` for `nc` observations, `nt` targets and tiles of `size` observations.

    Exact up to 1,500 observations, unless tiles reach (`tile_reach`) less than 0.4 of the way to the ends, or the
    variance of the `noise` is below a twentieth of that of what varies in a tile, or it is much work and more than that
    of the tiles; tiled beyond. With tiles of 128 they reach less from about 320 observations on a line and 1,000 in the
    plane, spread evenly, and of fewer that lie in clusters: what varies between neighbours there is finer than a model
    resolves that sees the whole at once. Memory decides nothing: that of tiles is bounded, and 1,500 observations take
    7 MB.

    The constants are measured: `benchmarks/strategy.py` and `noise.py`, whose tables say where each strategy is faster
    and where it is more accurate.
    """
    work = exact_work(nc, nt)
    seen_better = nc <= EXACT_UP_TO and reach >= CLOSE and noise >= QUIET
    exact = seen_better and work <= max(CHEAP, tiled_work(nc, nt, size))
    return "exact" if exact else "tiled"


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


def exact_work(nc: int, nt: int) -> int:
    """Pairs of points that attend to each other in a block, and as many as the rest is worth."""
    return (nc + nt) * (nc + TOKEN)


def tiled_work(nc: int, nt: int, size: int) -> float | int:
    """The same, of tiles: each cell that has targets is conditioned once."""
    if nc <= size:
        return exact_work(nc, nt)
    cells = min(2 * SHARE * nc / size, REACHED * nt)
    return (cells * size + PADDED * REACHED * nt) * (size + TOKEN)
