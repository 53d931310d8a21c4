import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ..arrays import floats
from ..longitudes import unwrapped
from ._grid import refuse_negative
from .field import field, points
from .world import world

MAPS = ("RdYlBu_r", "magma_r")
"""The colours of the mean and of the standard deviation."""


def mean_and_std(
    x: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    coords: str = "planar",
    title: str = "",
    name: str = "",
    units: str = "",
    axes: tuple[str, str] = ("x", "y"),
    land: bool = True,
) -> Figure:
    """Two maps side by side, a prediction and its standard deviation: a matplotlib `Figure`, with no window of its own.

    `figure.savefig("map.png", dpi=150)` writes it. The projection is that of the whole earth where `coords="latlon"`
    and the grid spans more than 180 degrees of longitude.

    **Shapes:** `x [nx]`, `y [ny]`: the centres of the cells (longitude, latitude); `mean`, `std [ny nx]`, NaN: no
    value. `name` and `units` of the predicted quantity label the colour bars, `axes` those of the plane. `land`: of a
    map of the whole earth, draw it over the field, or its coasts alone.
    """
    globe = coords == "latlon" and np.ptp(unwrapped(floats(x))) > 180

    def draw(ax, values, cmap):
        if globe:
            return world(ax, x, y, values, cmap=cmap, land=land)
        ax.set(xlabel=axes[0], ylabel=axes[1])
        return field(ax, x, y, values, coords=coords, cmap=cmap)

    return _two_panels(draw, mean, std, (13, 4.3) if globe else (12, 5.2), title, name, units)


def scattered(
    x: ArrayLike,
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    coords: str = "planar",
    title: str = "",
    name: str = "",
    units: str = "",
    axes: tuple[str, str] = ("x", "y"),
) -> Figure:
    """As `mean_and_std`, for a prediction at points that make no grid: `x`, `y`, `mean`, `std [n]`.

    Of longitudes and latitudes (`coords="latlon"`), points on both sides of the date line are one region: longitudes
    go on beyond 180 there.
    """

    def draw(ax, values, cmap):
        ax.set(xlabel=axes[0], ylabel=axes[1])
        return points(ax, x, y, values, coords=coords, cmap=cmap)

    return _two_panels(draw, mean, std, (12, 5.2), title, name, units)


def _two_panels(draw, mean, std, size, title, name, units):
    refuse_negative(floats(std))
    figure = Figure(figsize=size, layout="constrained")
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold")
    unit = f" ({units})" if units else ""
    labels = (f"{name or 'mean'}{unit}", f"standard deviation{unit}")
    for ax, values, cmap, label in zip(figure.subplots(1, 2), (mean, std), MAPS, labels, strict=True):
        bar = figure.colorbar(
            draw(ax, values, cmap),
            ax=ax,
            orientation="horizontal",
            shrink=0.7,
            aspect=38,
            pad=0.03,
            extend="both",
            label=label,
        )
        bar.outline.set_visible(False)
    return figure
