"""Longitudes and latitudes: how they are recognised, and a warning where they are taken for a plane."""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..warn import warn

LONGITUDE, LATITUDE = ("lon", "long", "lng", "longitude"), ("lat", "latitude")
EAST = ("degrees_east", "degree_east", "degrees_e", "degree_e")
NORTH = ("degrees_north", "degree_north", "degrees_n", "degree_n")
"""Units of longitudes and latitudes."""
OF_SPHERE = (
    {"units": "degrees_east", "standard_name": "longitude"},
    {"units": "degrees_north", "standard_name": "latitude"},
)
"""Attributes of both, as the CF conventions have them."""
SHRINKS = 0.2
"""By how much the length of a degree of longitude may differ among observations that are taken for a plane."""


class PlanarDegrees(UserWarning):
    """Longitudes and latitudes were taken for coordinates of a plane, where the sphere would make a difference.

    That is where their columns are named so (`lon`, `Latitude`, `decimalLongitude`, `lng (deg)`), the observations lie
    within -360 to 540 and -90 to 90 degrees (if they span more than 360, within -180 to 360), and either the longitudes
    span more than 180 degrees, so that the shortest way may cross the end of the map, or a degree of longitude is
    shorter by more than a fifth at the latitude farthest from the equator than at the nearest. Elsewhere a plane is as
    good: each of its coordinates has a scale of its own.
    """


def is_longitude(coordinate: Any) -> bool:
    """Whether a coordinate of xarray's is one, by its units, standard name or name."""
    return is_called(coordinate, (*LONGITUDE, *EAST))


def is_latitude(coordinate: Any) -> bool:
    """The same for latitudes."""
    return is_called(coordinate, (*LATITUDE, *NORTH))


def is_called(coordinate: Any, words: Sequence[str]) -> bool:
    """Whether a coordinate of numbers has one of these words for its name, units, standard name or axis."""
    given = (coordinate.name, *(coordinate.attrs.get(key) for key in ("units", "standard_name", "axis")))
    return coordinate.dtype.kind in "iuf" and any(str(word).lower() in words for word in given)


def plain(name: Hashable) -> str:
    """The first word of a name in small letters: `lat` of `Lat_deg`, `latitude` of `decimalLatitude`."""
    words = re.findall("[a-z]+", re.sub("decimal[ _]*", "", str(name).lower()))
    return words[0] if words else ""


def refuse_latitude_first(x: Sequence[Hashable]) -> None:
    """**Raises** `ValueError` where by their names the first columns on the sphere are not longitude and latitude."""
    names = [plain(name) for name in x]
    if names and (names[0] in LATITUDE or any(name in (*LONGITUDE, *LATITUDE) for name in names[2:])):
        raise ValueError(
            f'With `coords="latlon"`, longitude comes first, then latitude, then depth or time if any; got {[*x]}.'
        )


def advice_of_range(
    x: Sequence[Hashable], places: np.ndarray, far: np.ndarray, outside: Callable[[np.ndarray], np.ndarray]
) -> str:
    """A sentence where longitudes of targets `[n d]` are of another range than those of the observations: some that are
    `far [n]`, `outside` of these, lie among them when moved by 360 degrees."""
    column = next((i for i, name in enumerate(x) if plain(name) in LONGITUDE), None)
    if column is None:
        return ""
    for turn in (-360.0, 360.0):
        moved = places.copy()
        moved[:, column] += turn
        if np.any(far & ~outside(moved)):
            return (
                f" {x[column]!r} is of another range there than in the observations: moved by {turn:+.0f} degrees, "
                'targets lie among them. Bring both to one range, or take `coords="latlon"`, to which they are one.'
            )
    return ""


def warn_of_degrees(x: Sequence[Hashable], columns: np.ndarray) -> None:
    """Warns where columns `[n d]` of the names `x` are such degrees."""
    names = [plain(name) for name in x]
    lon, lat = (next((i for i, name in enumerate(names) if name in known), None) for known in (LONGITUDE, LATITUDE))
    if lon is None or lat is None or not len(columns):
        return
    low, high = (np.asarray(f(columns[:, [lon, lat]], axis=0), float) for f in (np.min, np.max))
    span = high[0] - low[0]
    if not (np.all(low >= [-360, -90]) and np.all(high <= [540, 90])):  # NaN among them: `fit` says so
        return
    if span > 360 and (low[0] < -180 or high[0] > 360):  # turns that are counted, as along a track
        return
    farthest = max(-low[1], high[1])
    nearest = max(low[1], -high[1], 0.0)
    share = np.cos(np.radians(farthest)) / max(np.cos(np.radians(nearest)), 1e-9)
    if span > 360:
        why = (
            f"the longitudes, {low[0]:.4g} to {high[0]:.4g}, are in two ranges, and places that are near lie far apart"
        )
    elif span > 180:
        why = f"the longitudes span {span:.0f} of them, and the two ends of the map are apart"
    elif share < 1 - SHRINKS:
        why = f"one of longitude is {1 - share:.0%} shorter at {farthest:.0f} degrees of latitude than at {nearest:.0f}"
    else:
        return
    warn(
        f"{x[lon]!r} and {x[lat]!r} look like degrees, which are no distances: {why}. "
        'Take `coords="latlon"`, which measures on the sphere (longitude and latitude first, other columns after), '
        "or project them to metres.",
        PlanarDegrees,
    )
