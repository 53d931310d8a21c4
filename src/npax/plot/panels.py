from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ..arrays import floats
from ..longitudes import around, unwrapped
from ._grid import along, refuse_negative
from .equal_earth import equal_earth
from .field import field, points, proportions
from .world import world

MAPS = ("RdYlBu_r", "magma_r")
"""The colours of the mean and of the standard deviation."""
OF_PROBABILITIES = "BuPu"


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
    observed: tuple[ArrayLike, ArrayLike] | None = None,
    probabilities: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """Two maps side by side, a prediction and its standard deviation: a matplotlib `Figure`, with no window of its own.

    `figure.savefig("map.png", dpi=150)` writes it. The projection is that of the whole earth where `coords="latlon"`
    and the grid spans more than 180 degrees of longitude.

    **Shapes:** `x [nx]`, `y [ny]`: the centres of the cells (longitude, latitude); `mean`, `std [ny nx]`, NaN: no
    value. `name` and `units` of the predicted quantity label the colour bars, `axes` those of the plane. `land`: of a
    map of the whole earth, draw it over the field, or its coasts alone. `observed`: where, a pair `[n]` and `[n]`; dots
    on the map of the standard deviation, by which one sees why it is small. `probabilities`: further maps `[ny nx]`, of
    more than a threshold, say, whose colours go from 0 to 1, by what stands beneath them.
    """
    globe = coords == "latlon" and np.ptp(unwrapped(floats(x))) > 180
    size = (13.0, 4.3) if globe else _size(along(x), along(y), coords)

    def draw(ax, values, cmap, limits):
        if globe:
            return world(ax, x, y, values, cmap=cmap, limits=limits, land=land)
        ax.set(xlabel=axes[0], ylabel=axes[1])
        return field(ax, x, y, values, coords=coords, cmap=cmap, limits=limits)

    figure = _panels(draw, mean, std, probabilities or {}, size, title, name, units)
    if observed is not None:
        _dots(figure.axes[1], along(x), observed, coords, globe)
    return figure


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
    observed: tuple[ArrayLike, ArrayLike] | None = None,
    probabilities: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """As `mean_and_std`, for a prediction at points that make no grid: `x`, `y`, `mean`, `std`, `probabilities [n]`.

    `observed`: where, as there; crosses. Of longitudes and latitudes (`coords="latlon"`), points on both sides of the
    date line are one region: longitudes go on beyond 180 there.
    """

    def draw(ax, values, cmap, limits):
        ax.set(xlabel=axes[0], ylabel=axes[1])
        return points(ax, x, y, values, coords=coords, cmap=cmap, limits=limits)

    figure = _panels(draw, mean, std, probabilities or {}, _size(along(x), along(y), coords), title, name, units)
    if observed is not None:
        _dots(figure.axes[1], along(x), observed, coords, globe=False, marker="x")
    return figure


def _size(x, y, coords):
    """In inches, of two maps side by side: flat ones leave no empty room above them."""
    x, y = x[np.isfinite(x)], y[np.isfinite(y)]
    if not (x.size and y.size):
        return 12.0, 5.2  # which the drawing refuses
    x = unwrapped(x) if coords == "latlon" else x
    shape = proportions(coords, (x.min(), x.max()), (y.min(), y.max()))
    height = 3.5 if shape == "auto" else 5.0 * float(shape) * np.ptp(y) / max(np.ptp(x), 1e-9)
    return 12.0, float(np.clip(height + 1.7, 3.2, 5.2))


def _dots(ax, x, observed, coords, globe, marker="o"):
    across, down = (along(a) for a in observed)
    if across.shape != down.shape or across.ndim != 1:
        raise ValueError(f"`observed` must be a pair of one length, 1-D; got {across.shape} and {down.shape}.")
    if coords == "latlon":
        x = unwrapped(x)
        across = around(across, x)
    if globe:
        across, down = equal_earth(across, down, (x.min() + x.max()) / 2)
    size = np.clip(60 / max(len(across), 1) ** 0.5, 1.5, 5)
    limits = ax.get_xlim(), ax.get_ylim()
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.15 * size} if marker == "o" else {}
    ax.plot(across, down, marker, color="#1f6fb4", markersize=size, **edge)
    ax.set(xlim=limits[0], ylim=limits[1])


def _panels(draw, mean, std, probabilities, size, title, name, units):
    refuse_negative(floats(std))
    unit = f" ({units})" if units else ""
    maps = [(f"{name or 'mean'}{unit}", mean, MAPS[0], None), (f"standard deviation{unit}", std, MAPS[1], None)]
    maps += [(label, values, OF_PROBABILITIES, (0.0, 1.0)) for label, values in probabilities.items()]
    columns = 3 if len(maps) == 3 else 2
    rows = -(-len(maps) // columns)
    figure = Figure(figsize=(size[0] * columns / 2, size[1] * rows), layout="constrained")
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold")
    panels = figure.subplots(rows, columns).ravel()
    for ax in panels[len(maps) :]:
        ax.remove()
    for ax, (label, values, cmap, limits) in zip(panels[: len(maps)], maps, strict=True):
        bar = figure.colorbar(
            draw(ax, values, cmap, limits),
            ax=ax,
            orientation="horizontal",
            shrink=0.7,
            aspect=38,
            pad=0.03,
            extend="both" if limits is None else "neither",
            label=label,
        )
        bar.outline.set_visible(False)
    return figure
