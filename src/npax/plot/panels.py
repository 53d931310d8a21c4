import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from .field import field
from .world import world


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
) -> Figure:
    """Two maps side by side, a prediction and its standard deviation: a matplotlib `Figure`, with no window of its own.

    `figure.savefig("map.png", dpi=150)` writes it. The projection is that of the whole earth where `coords="latlon"`
    and the grid spans more than 180 degrees of longitude.

    **Shapes:** `x [nx]`, `y [ny]`: the centres of the cells (longitude, latitude); `mean`, `std [ny nx]`, NaN: no
    value. `name` and `units` of the predicted quantity label the colour bars, `axes` those of the plane.
    """
    if coords not in ("planar", "latlon"):
        raise ValueError(f"`coords` must be 'planar' or 'latlon', got {coords!r}.")
    x, y = np.asarray(x, float), np.asarray(y, float)
    globe = coords == "latlon" and np.ptp(x) > 180
    figure = Figure(figsize=(13, 4.3) if globe else (12, 5.2), layout="constrained")
    figure.suptitle(title, fontsize=13, fontweight="bold")
    unit = f" ({units})" if units else ""
    panels = figure.subplots(1, 2)
    labels = (f"{name or 'mean'}{unit}", f"standard deviation{unit}")
    for ax, values, cmap, label in zip(panels, (mean, std), ("RdYlBu_r", "magma_r"), labels, strict=True):
        if globe:
            mesh = world(ax, x, y, values, cmap=cmap)
        else:
            mesh = field(ax, x, y, values, coords=coords, cmap=cmap)
            ax.set(xlabel=axes[0], ylabel=axes[1])
        bar = figure.colorbar(
            mesh, ax=ax, orientation="horizontal", shrink=0.7, aspect=38, pad=0.03, extend="both", label=label
        )
        bar.outline.set_visible(False)
    return figure
