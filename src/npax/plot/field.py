import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from numpy.typing import ArrayLike

from ..data import land
from ._grid import checked_grid, edges, robust_limits


def field(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    *,
    coords: str = "planar",
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
) -> QuadMesh:
    """A gridded field in the plane or of a region of the earth (`coords="latlon"`: coastlines, true proportions at
    the middle latitude). Cells without a value (NaN) stay empty. Returns what a colour bar wants.

    **Shapes:** `x [nx]`, `y [ny]`: the centres of the cells; `values [ny nx]`. `limits`: of the colours, default the
    range of the values without the outermost half percent at each side.
    """
    x, y, values = checked_grid(x, y, values)
    low, high = robust_limits(values) if limits is None else limits
    mesh = ax.pcolormesh(edges(x), edges(y), values, cmap=cmap, vmin=low, vmax=high, rasterized=True)
    if coords == "latlon":
        ax.set_aspect(1 / max(np.cos(np.deg2rad(y.mean())), 0.1))
        for ring in land():
            for turn in (-360, 0, 360):
                ax.plot(ring[:, 0] + turn, ring[:, 1], color="0.2", linewidth=0.6)
    else:
        ax.set_aspect("equal" if 0.2 < np.ptp(x) / np.ptp(y) < 5 else "auto")
    ax.set(xlim=edges(x)[[0, -1]], ylim=edges(y)[[0, -1]])
    return mesh
