import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..arrays import floats
from .curve import posterior


def search(
    ax: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    truth: ArrayLike,
    *,
    evaluations: tuple[ArrayLike, ArrayLike],
    proposed: float,
    level: float = 0.95,
) -> None:
    """How a 1-D search for a minimum ended: posterior, truth and evaluations as in `posterior`, and two marks below
    the curves: the true minimum (green) and the proposed one (red).

    **Shapes:** `x`, `mean`, `std`, `truth [n]`; `evaluations`: a pair `(x [m], y [m])`; `proposed`: a place.
    """
    posterior(ax, x, mean, std, context=evaluations, truth=truth, level=level)
    x, truth = floats(x).ravel(), floats(truth).ravel()
    foot = ax.get_ylim()[0]
    for place, color, label in ((x[truth.argmin()], "C2", "true minimum"), (proposed, "C3", "proposed minimum")):
        ax.axvline(place, color=color, linewidth=0.8, alpha=0.6)
        ax.plot([place], [foot], "^", color=color, markersize=7, clip_on=False, label=label)
    ax.set_ylim(bottom=foot)
    ax.legend(frameon=False, fontsize="small")


def regret(ax: Axes, regrets: ArrayLike, *, label: str | None = None, color: str | None = None, first: int = 0) -> None:
    """Regret after each iteration, `[runs iterations]`: the mean over runs, and a band of one standard error.

    The axis of regrets is logarithmic. `first`: number of evaluations at the first column. Call it once per method.
    """
    regrets = floats(regrets)
    if regrets.ndim != 2 or not regrets.size:
        raise ValueError(f"`regrets` must be an array of runs by iterations, got the shape {regrets.shape}.")
    broken = ~np.isfinite(regrets).all(axis=1)
    if broken.any():
        raise ValueError(
            f"`regrets` has NaN or infinity in {broken.sum()} of {broken.size} runs: leave those out, "
            "`regrets[numpy.isfinite(regrets).all(axis=1)]`."
        )
    runs, iterations = regrets.shape
    mean = regrets.mean(axis=0)
    error = regrets.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else np.zeros(iterations)
    at = np.arange(first, first + iterations)
    (line,) = ax.plot(at, mean, color=color, linewidth=1.8, label=label)
    lower = np.maximum(mean - error, mean / 10)  # a logarithmic axis has no place for zero
    ax.fill_between(at, lower, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
    ax.set(xlabel="evaluations", ylabel="simple regret", yscale="log")
    ax.margins(x=0)
    ax.spines[["top", "right"]].set_visible(False)
    if label is not None:
        ax.legend(fontsize="small", framealpha=0.8, edgecolor="none")  # its place covers curves where there are many
