import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ..arrays import floats
from ._grid import along, mark_dates, refuse_negative


def posterior(
    ax: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    context: tuple[ArrayLike, ArrayLike] | None = None,
    truth: ArrayLike | None = None,
    level: float = 0.95,
    color: str = "C0",
) -> None:
    """A 1-D prediction: the mean, its central interval of probability `level`, the context as dots, and the truth.

    **Shapes:** `x`, `mean`, `std`, `truth [n]`, in any order of `x`, numbers or dates; `context`: a pair
    `(xc [nc], yc [nc])`.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, both excluded, got {level}.")
    mark_dates(ax.xaxis, x)
    x, mean, std = along(x).ravel(), floats(mean).ravel(), floats(std).ravel()
    if not x.size == mean.size == std.size:
        raise ValueError(f"`x`, `mean` and `std` must be of one length, got {x.size}, {mean.size} and {std.size}.")
    refuse_negative(std)
    truth = None if truth is None else floats(truth).ravel()
    if truth is not None and truth.size != x.size:
        raise ValueError(f"`truth` must be of the length of `x`, {x.size}; got {truth.size}.")
    order = np.argsort(x)
    x, mean, half = x[order], mean[order], ndtri(0.5 + 0.5 * level) * std[order]
    interval = f"{100 * level:g}% interval"
    ax.fill_between(x, mean - half, mean + half, color=color, alpha=0.2, linewidth=0, label=interval)
    ax.plot(x, mean, color=color, linewidth=1.8, label="mean")
    if truth is not None:
        ax.plot(x, truth[order], color="0.2", linewidth=1, linestyle="--", label="truth")
    if context is not None:
        xc, yc = along(context[0]).ravel(), floats(context[1]).ravel()
        if xc.size != yc.size:
            raise ValueError(f"`context` must be a pair of one length, got {xc.size} and {yc.size}.")
        ax.plot(xc, yc, "o", color="0.1", markersize=4, markeredgewidth=0, label="observations")
    ax.margins(x=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
