from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike


def land() -> list[np.ndarray]:
    """The world's coastlines at 1:110 million: closed rings `[n 2]` of longitude and latitude in degrees.

    Longitudes run on without a jump where a ring crosses the date line, so they may leave -180 to 180; lakes as large
    as the Caspian Sea are rings of their own, inside another. Source: Natural Earth (public domain), by way of
    world-atlas 2.0.2.
    """
    with np.load(Path(__file__).parent / "land110m.npz") as file:
        return np.split(file["vertices"].astype(np.float64), file["start"][1:-1])


def is_land(lon: ArrayLike | float, lat: ArrayLike | float) -> np.ndarray:
    """Whether points are on land: a boolean array of the broadcast shape of `lon` and `lat`, in degrees.

    Even-odd rule: a point is on land if the meridian from it to the north pole crosses coastlines an odd number of
    times. Cost: one pass over the 5,000 edges per distinct longitude, so grids are cheap. Islands and bays below
    about 50 km are missing from coastlines of this scale.
    """
    lon, lat = np.broadcast_arrays(np.asarray(lon, float), np.asarray(lat, float))
    x0, y0, x1, y1 = np.concatenate([np.hstack([ring[:-1], ring[1:]]) for ring in land()]).T
    inside = np.zeros(lon.shape, bool)
    meridians, which = np.unique(lon.ravel() % 360, return_inverse=True)
    order = np.argsort(which, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which))[:-1]) if order.size else []
    for meridian, members in zip(meridians, groups, strict=True):
        x = x0 + (meridian - x0 + 180) % 360 - 180
        crossed = (x0 <= x) != (x1 <= x)
        share = (x[crossed] - x0[crossed]) / (x1 - x0)[crossed]
        heights = np.sort(y0[crossed] + share * (y1 - y0)[crossed])
        above = len(heights) - np.searchsorted(heights, lat.flat[members], side="right")
        inside.flat[members] = above % 2 == 1
    return inside
