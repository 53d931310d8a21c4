"""Exact or tiled: by the accuracy and the estimated work of each."""

from .tile import SHARE

EXACT_UP_TO = 2000
"""Observations beyond which tiles are more accurate: the shipped model has learned from up to 1,024 at once."""
TOKEN = 200
"""What the network costs for a point that attends to nothing, in pairs of points."""
REACHED = 1.7
"""Cells that reach a target, in the plane."""
PADDED = 2
"""What tiles compute for a target and a cell that reaches it, padding and blending included, in targets."""
CHEAP = 5_000_000
"""Pairs that take a second at most on two CPU cores: no reason to leave the exact answer."""


def choose(nc: int, nt: int, size: int) -> str:
    """`"exact"` or `"tiled"` for `nc` observations, `nt` targets and tiles of `size` observations.

    Exact up to 2,000 observations, unless it is much work and more than that of the tiles (1,500 to 2,000
    observations and more than about 15,000 targets); tiled beyond. Memory decides nothing: that of tiles is bounded,
    and 2,000 observations take 12 MB.

    The constants are measured: `benchmarks/strategy.py`, whose table says where each strategy is faster and where
    it is more accurate.
    """
    work = exact_work(nc, nt)
    return "exact" if nc <= EXACT_UP_TO and work <= max(CHEAP, tiled_work(nc, nt, size)) else "tiled"


def exact_work(nc: int, nt: int) -> int:
    """Pairs of points that attend to each other in a block, and as many as the rest is worth."""
    return (nc + nt) * (nc + TOKEN)


def tiled_work(nc: int, nt: int, size: int) -> float | int:
    """The same, of tiles: each cell that has targets is conditioned once."""
    if nc <= size:
        return exact_work(nc, nt)
    cells = min(2 * SHARE * nc / size, REACHED * nt)
    return (cells * size + PADDED * REACHED * nt) * (size + TOKEN)
