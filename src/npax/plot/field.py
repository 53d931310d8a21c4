from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.ticker import AutoLocator, MaxNLocator, ScalarFormatter, StrMethodFormatter
from numpy.typing import ArrayLike

from ..arrays import floats
from ..data import land
from ..longitudes import unwrapped
from ._grid import along, checked_grid, edges, mark_dates, robust_limits


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
    the middle latitude). Cells without a value (NaN or masked) stay empty. Returns what a colour bar wants.

    **Shapes:** `x [nx]`, `y [ny]`: the centres of the cells, numbers or dates; `values [ny nx]` (arrays of xarray may
    have their dimensions in any order). Longitudes on both sides of the date line are one region. `limits`: of the
    colours, default the range of the values without the outermost half percent at each side.
    """
    for axis, places in ((ax.xaxis, x), (ax.yaxis, y)):
        mark_dates(axis, places)
    x, y, values = checked_grid(x, y, values, coords)
    low, high = robust_limits(values) if limits is None else limits
    mesh = ax.pcolormesh(edges(x), edges(y), values, cmap=cmap, vmin=low, vmax=high, rasterized=True)
    _lay_out(ax, coords, edges(x)[[0, -1]], edges(y)[[0, -1]])
    return mesh


def points(
    ax: Axes,
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    *,
    coords: str = "planar",
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
) -> PathCollection:
    """As `field`, for values at points that make no grid: `x`, `y`, `values [n]`."""
    for axis, places in ((ax.xaxis, x), (ax.yaxis, y)):
        mark_dates(axis, places)
    x, y, values = along(x), along(y), floats(values)
    if not (x.ndim == 1 and x.shape == y.shape == values.shape and x.size):
        raise ValueError(
            f"`x`, `y` and `values` must be 1-D, of one length and not empty, got {x.shape}, {y.shape}, {values.shape}."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("`x` and `y` must be finite, got NaN or infinity: leave these points out.")
    x = unwrapped(x) if coords == "latlon" else x
    low, high = robust_limits(values) if limits is None else limits
    size, many = np.clip(4e4 / x.size, 2, 40), x.size > 5000
    edge = {"linewidth": 0 if many else 0.3, "edgecolors": "0.4"}  # pale values on white are seen by it
    dots = ax.scatter(x, y, size, values, cmap=cmap, vmin=low, vmax=high, rasterized=many, **edge)
    margin_x, margin_y = (0.03 * np.ptp(a) or 0.5 for a in (x, y))
    _lay_out(ax, coords, (x.min() - margin_x, x.max() + margin_x), (y.min() - margin_y, y.max() + margin_y))
    return dots


def _lay_out(ax, coords, across, down):
    if coords not in ("planar", "isotropic", "latlon"):
        raise ValueError(f"`coords` must be 'planar', 'isotropic' or 'latlon', got {coords!r}.")
    ax.set_aspect(proportions(coords, across, down))
    if coords == "latlon":
        rings = [ring + np.array([turn, 0.0]) for ring in land() for turn in (-360.0, 0.0, 360.0)]
        ax.add_collection(LineCollection(rings, colors="0.2", linewidths=0.6), autolim=False)
    for axis, places in ((ax.xaxis, across), (ax.yaxis, down)):
        if isinstance(axis.get_major_formatter(), ScalarFormatter):  # numbers, not dates
            axis.set_major_formatter(StrMethodFormatter("{x:.10g}"))
            if np.abs(places).max() > 1e5 and isinstance(axis.get_major_locator(), AutoLocator):
                axis.set_major_locator(MaxNLocator(4))
    ax.set(xlim=across, ylim=down)


def proportions(coords: str, across: np.ndarray | tuple, down: np.ndarray | tuple) -> Any:
    """How long a unit of `y` is in the picture, in those of `x`, for the range of both; or "auto", as there is room."""
    if coords == "latlon":
        return 1 / max(np.cos(np.deg2rad(np.mean(down))), 0.1)
    return 1.0 if coords == "isotropic" or 0.2 < np.ptp(across) / max(np.ptp(down), 1e-300) < 5 else "auto"
