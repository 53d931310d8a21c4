import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike

from ..arrays import floats
from ..data import land as coastlines
from ._grid import checked_grid, edges, robust_limits
from .equal_earth import equal_earth


def world(
    ax: Axes,
    lon: ArrayLike,
    lat: ArrayLike,
    values: ArrayLike,
    *,
    cmap: str = "viridis",
    limits: tuple[float, float] | None = None,
    land: bool = True,
) -> QuadMesh:
    """A map of the whole earth (Equal Earth projection). Returns what colour bars want.

    **Shapes:** `lon [nx]` and `lat [ny]` in degrees, the centres of the cells, longitudes within 360 degrees and in
    any frame (-180 to 180, 20 to 380; the map is centred on their middle); `values [ny nx]`, NaN: no colour. `limits`:
    of the colours, default the range of the values without the outermost half percent at each side. `land`: draw it
    over the field (for the ocean), or its coasts alone.
    """
    given = floats(lon)
    lon, lat, values = checked_grid(lon, lat, values, "latlon")
    if np.ptp(given) > 360 or np.abs(lat).max() > 90:
        raise ValueError(
            "`lon` and `lat` must be degrees within 360 and from -90 to 90, got longitudes "
            f"{given.min()} to {given.max()}, latitudes {lat[0]} to {lat[-1]}."
        )
    center = (lon[0] + lon[-1]) / 2
    low, high = robust_limits(values) if limits is None else limits
    x, y = equal_earth(*np.meshgrid(edges(lon), np.clip(edges(lat), -90, 90)), center)
    outline = _outline(center)

    ax.set_aspect("equal")
    ax.axis("off")
    frame = ax.add_patch(Polygon(outline, facecolor="#f4f6f8", edgecolor="none", zorder=0))
    mesh = ax.pcolormesh(x, y, values, cmap=cmap, vmin=low, vmax=high, rasterized=True, zorder=1)
    rings = [ring + np.array([turn, 0]) for ring in coastlines() for turn in (-720, -360, 0, 360, 720)]
    near = [r for r in rings if r[:, 0].max() > center - 180 and r[:, 0].min() < center + 180]
    shapes = [_projected(ring, center) for ring in near]
    colour = "#d9d6d0" if land else "none"
    ground = PolyCollection(shapes, facecolor=colour, edgecolor="#6b6863", linewidth=0.35, zorder=3)
    ax.add_collection(ground, autolim=False)
    for parallel in np.arange(-60.0, 90, 30):
        ax.plot(*equal_earth(center + np.linspace(-180, 180, 61), parallel, center), **_GRATICULE)
    for meridian in np.arange(np.ceil((center - 180) / 60) * 60, center + 180, 60):
        ax.plot(*equal_earth(meridian, np.linspace(-90, 90, 61), center), **_GRATICULE)
    for artist in (mesh, ground, *ax.lines):
        artist.set_clip_path(frame)
    ax.add_patch(Polygon(outline, facecolor="none", edgecolor="#6b6863", linewidth=0.6, zorder=4))
    return mesh


_GRATICULE = {"color": "white", "linewidth": 0.4, "alpha": 0.35, "zorder": 2}


def _outline(center):
    up = np.linspace(-90, 90, 181)
    east, west = equal_earth(center + 180, up, center), equal_earth(center - 180, up[::-1], center)
    return np.concatenate([np.column_stack(east), np.column_stack(west)])


def _projected(ring, center):
    lon, lat = _dense(ring).T
    return np.column_stack(equal_earth(lon, lat, center))


def _dense(ring, step=5.0):
    """The ring with points added to long edges, so that they bend with the projection."""
    pieces = np.maximum(np.ceil(np.abs(np.diff(ring, axis=0)).max(axis=1) / step).astype(int), 1)
    parts = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(ring[:-1], ring[1:], pieces, strict=True)]
    return np.concatenate([*parts, ring[-1:]])
