import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from numpy.typing import ArrayLike

from ..arrays import floats
from ._grid import edges


def attention_matrix(ax: Axes, xt: ArrayLike, xc: ArrayLike, weights: ArrayLike, *, cmap: str = "Blues") -> QuadMesh:
    """What one head reads in one dimension: targets from left to right, context points from bottom to top.

    **Shapes:** `xt [nt]`, `xc [nc]`, in any order; `weights [nt nc]`, as one head of `MultiHeadAttention.weights`.
    """
    xt, xc, weights = (floats(a) for a in (xt, xc, weights))
    xt, xc = xt.ravel(), xc.ravel()
    if weights.shape != (xt.size, xc.size):
        raise ValueError(f"`weights` must be [targets, context] = {(xt.size, xc.size)}, got {weights.shape}.")
    across, up = np.argsort(xt), np.argsort(xc)
    grid = weights[across][:, up].T
    mesh = ax.pcolormesh(edges(xt[across]), np.arange(xc.size + 1), grid, cmap=cmap, vmin=0, rasterized=True)
    ax.set(xlabel="target", ylabel="context point, by place")
    return mesh


def attention_map(
    ax: Axes, target: ArrayLike, xc: ArrayLike, weights: ArrayLike, *, cmap: str = "Reds"
) -> PathCollection:
    """What one target reads in the plane: the context as dots coloured by their weight, the target as a cross.

    **Shapes:** `target [2]`, `xc [nc 2]`, `weights [nc]`.
    """
    target, xc, weights = (floats(a) for a in (target, xc, weights))
    if xc.ndim != 2 or xc.shape[1] != 2 or weights.shape != (len(xc),) or target.shape != (2,):
        raise ValueError(
            "`target` must be [2], `xc` [nc, 2] and `weights` [nc], "
            f"got {target.shape}, {xc.shape} and {weights.shape}."
        )
    order = np.argsort(weights)
    dots = ax.scatter(xc[order, 0], xc[order, 1], 30, weights[order], cmap=cmap, vmin=0, edgecolor="0.7", linewidth=0.3)
    ax.plot(*target, "x", color="0.1", markersize=9, markeredgewidth=2)
    ax.set_aspect("equal")
    return dots
