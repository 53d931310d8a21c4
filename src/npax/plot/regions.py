import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ..arrays import floats
from ._grid import along, mark_dates, of_dates

NAMED = 60
"""Regions whose names stand beside them, at most; more are drawn without."""


LONGEST = 32
"""Letters of a name, at most: longer ones would leave no room for what is drawn."""


def regions(ax: Axes, names: ArrayLike, mean: ArrayLike, low: ArrayLike, high: ArrayLike, *, color: str = "C0") -> None:
    """Averages of regions (`npax.average`) as dots with their intervals as lines: along an axis where `names` are
    numbers or dates, such as months; one below the other elsewhere, without names where there are more than 60, and
    names beyond 32 letters cut in the middle.

    ```python
    found = npax.average(villages, districts, y="rate", by="district", quantiles=[0.025, 0.975])
    npax.plot.regions(ax, found.index, found["rate_mean"], found["rate_q0.025"], found["rate_q0.975"])
    ```

    **Shapes:** `names`, `mean`, `low`, `high [regions]`.
    """
    mean, low, high = (floats(a).ravel() for a in (mean, low, high))
    names = np.ravel(np.asarray(names))
    if not names.size == mean.size == low.size == high.size:
        sizes = f"{names.size}, {mean.size}, {low.size} and {high.size}"
        raise ValueError(f"`names`, `mean`, `low` and `high` must be of one length, got {sizes}.")
    if (low > high).any():
        raise ValueError("`low` must not be above `high`: they are the ends of intervals.")
    lengths = np.clip([mean - low, high - mean], 0, None)
    style = {"fmt": "o", "color": color, "markersize": 4, "elinewidth": 1.5}
    if of_dates(names) or names.dtype.kind in "iuf":
        mark_dates(ax.xaxis, names)
        if names.dtype.kind in "iu":
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.errorbar(along(names), mean, yerr=lengths, **style)
        ax.grid(axis="y", color="0.9")
    else:
        down = np.arange(mean.size)
        ax.errorbar(mean, down, xerr=lengths, **style)
        ax.set_ylim(mean.size - 0.5, -0.5)
        few = mean.size <= NAMED
        ax.set_yticks(down if few else [], [_short(str(name)) for name in names] if few else [])
        ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _short(name):
    """Cut in the middle: what tells regions apart may stand at either end."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[:half].rstrip()}\u2026{name[1 - half :].lstrip()}"
