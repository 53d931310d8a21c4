from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..arrays import floats
from ._grid import checked_axes, robust_limits
from .field import field
from .panels import MAPS

TITLES = ("velocities seen", "uncertainty", "vorticity, predicted", "vorticity, truth")


def flow_panels(
    axes: Sequence[Axes] | np.ndarray,
    x: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    truth: ArrayLike,
    context: tuple[ArrayLike, ArrayLike],
) -> None:
    """A flow in the plane in four panels: the velocities seen as arrows, the standard deviation of the velocity (root
    mean square of its components), the vorticity of the predicted mean, the true vorticity (TE, Figure 5).

    **Shapes:** `x [nx]`, `y [ny]`: the nodes, ascending; `mean`, `std`, `truth [ny nx 2]`: the velocities along `x` and
    `y`; `context`: a pair of locations `[nc 2]` and velocities `[nc 2]`. `axes`: four of them.
    """
    axes = checked_axes(axes, 4)
    x, y, mean, std, truth = (floats(a) for a in (x, y, mean, std, truth))
    for name, values in {"mean": mean, "std": std, "truth": truth}.items():
        if values.shape != (y.size, x.size, 2):
            raise ValueError(f"`{name}` must be [{y.size}, {x.size}, 2], velocities on the nodes; got {values.shape}.")
    places, velocities = (floats(a) for a in context)
    predicted, true = vorticity(x, y, mean), vorticity(x, y, truth)
    reach = float(np.abs(robust_limits(true)).max())
    axes[0].quiver(*places.T, *velocities.T, angles="xy", color="0.2", width=0.006)
    field(axes[1], x, y, np.sqrt(np.mean(np.square(std), axis=-1)), cmap=MAPS[1])
    field(axes[2], x, y, predicted, cmap="RdBu_r", limits=(-reach, reach))
    field(axes[3], x, y, true, cmap="RdBu_r", limits=(-reach, reach))
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set(title=title, xticks=[], yticks=[], xlim=axes[3].get_xlim(), ylim=axes[3].get_ylim())
        ax.set_aspect("equal")


def vorticity(x: np.ndarray, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    r"""$\partial_x v - \partial_y u$ by finite differences: `velocity [ny nx 2]` on the nodes `x [nx]` and `y [ny]`."""
    return np.gradient(velocity[..., 1], x, axis=1) - np.gradient(velocity[..., 0], y, axis=0)
