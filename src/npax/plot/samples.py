import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..arrays import floats
from ._grid import along, mark_dates


def samples(ax: Axes, x: ArrayLike, y: ArrayLike, *, color: str = "C0", label: str | None = "samples") -> None:
    """Functions drawn from a 1-D prediction, as thin lines; goes well over `posterior`.

    **Shapes:** `x [n]`, in any order; `y [samples n]`, or `[samples n 1]` as `npax.sample` gives them: one row per
    function. `NeuralProcessRegressor.sample_y` gives one column per function: pass its transpose, `y.T`.
    """
    mark_dates(ax.xaxis, x)
    x, y = along(x).ravel(), floats(y)
    y = y[..., 0] if y.ndim == 3 and y.shape[2] == 1 else y
    if y.ndim != 2 or y.shape[1] != x.size:
        turned = y.ndim == 2 and y.shape[0] == x.size
        remedy = " Pass `y.T`: one column per function is what `sample_y` gives." if turned else ""
        raise ValueError(
            f"`y` must be [samples, {x.size}], one row per function over the {x.size} `x`, got {y.shape}.{remedy}"
        )
    order = np.argsort(x)
    lines = ax.plot(x[order], y[:, order].T, color=color, linewidth=0.8, alpha=min(1.0, 0.25 + 2 / max(len(y), 1)))
    if lines and label:
        lines[0].set_label(label)
        ax.legend(frameon=False)
