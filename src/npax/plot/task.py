from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..arrays import floats
from ..longitudes import around, unwrapped
from ._grid import TITLES, checked_axes, robust_limits
from .field import field, points
from .panels import MAPS


def task_panels(
    axes: Sequence[Axes] | np.ndarray,
    x: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    truth: ArrayLike,
    context: tuple[ArrayLike, ArrayLike],
    *,
    coords: str = "planar",
) -> None:
    """A 2-D task in the four panels of KR2's figures: observations, standard deviation, mean, truth.

    Observations, prediction and truth share their colours, so that they can be compared by eye.

    **Shapes:** `x [nx]`, `y [ny]`: the nodes of a grid; `mean`, `std`, `truth [ny nx]`; `context`: a pair of locations
    `[nc 2]` and values `[nc]`, which may be none. `axes`: four of them. `coords`: "latlon" for longitudes and latitudes
    (coastlines).
    """
    axes = checked_axes(axes, 4)
    xc, yc = (floats(a) for a in context)
    low, high = robust_limits(floats(truth))
    limits = (float(low), float(high))
    across = xc[:, 0] if len(xc) else xc
    if coords == "latlon":  # in the frame of the grid
        across = around(across, unwrapped(floats(x)))
    if len(xc):
        points(axes[0], across, xc[:, 1], yc.ravel(), coords=coords, cmap=MAPS[0], limits=limits)
    field(axes[1], x, y, std, coords=coords, cmap=MAPS[1])
    field(axes[2], x, y, mean, coords=coords, cmap=MAPS[0], limits=limits)
    field(axes[3], x, y, truth, coords=coords, cmap=MAPS[0], limits=limits)
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set(title=title, xticks=[], yticks=[], xlim=axes[3].get_xlim(), ylim=axes[3].get_ylim())
