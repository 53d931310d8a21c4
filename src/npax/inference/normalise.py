"""From the user's units to the model's: on the host, in float64, from the context alone."""

import abc
import dataclasses

import numpy as np

HALF_SPAN = 2.0
"""Models are trained on coordinates in [-2, 2]."""


@dataclasses.dataclass(frozen=True)
class Frame:
    r"""An affine view of positions, $u = ((p - o) R - c) \circ s$: origin `[d]`, rotation `[d d]`, centre, scale `[d]`.

    The origin is a corner of the context: differences to it are exact, however far from zero the context lies.
    """

    origin: np.ndarray
    rotation: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        return ((positions - self.origin) @ self.rotation - self.centre) * self.scale


class AbstractCoordinates(abc.ABC):
    """What the columns of `x` mean: how they become positions in which straight distances make sense."""

    @abc.abstractmethod
    def positions(self, x: np.ndarray) -> np.ndarray:
        """Positions `[n d]` of the rows of `x`. **Raises** `ValueError` for coordinates that cannot be."""

    @abc.abstractmethod
    def frame(self, positions: np.ndarray) -> Frame:
        """The view in which these positions (of a context) fill [-2, 2]."""


@dataclasses.dataclass(frozen=True)
class Planar(AbstractCoordinates):
    """Any columns of numbers, each with a unit of its own: each is centred and scaled by itself.

    Differences matter and origins do not, so coordinates of 1e9 with differences of 1 are as good as any.
    A column that is constant in the context is centred and keeps its unit.
    """

    def positions(self, x):
        return x

    def frame(self, positions):
        low, half = _low_and_half(positions)
        return Frame(low, np.eye(positions.shape[1]), half, HALF_SPAN / np.where(half > 0, half, HALF_SPAN))


@dataclasses.dataclass(frozen=True)
class LatLon(AbstractCoordinates):
    """Two columns, longitude and latitude in degrees: points of the unit sphere, straight (chord) distances.

    Longitudes wrap: -180, 180 and 540 are one meridian. The frame looks down on the context's centroid, so that a
    local patch lies flat in its first two coordinates, and has one scale for all axes: distances keep their ratios.
    """

    def positions(self, x):
        if x.shape[1] != 2:
            raise ValueError(
                f'`coords="latlon"` takes two columns, longitude and latitude in degrees; got {x.shape[1]} columns.'
            )
        lon, lat = x.T
        if x.shape[0] and np.abs(lat).max() > 90 + 1e-9:
            worst = lat[np.abs(lat).argmax()]
            raise ValueError(
                f"Latitudes lie between -90 and 90 degrees; got {worst:g}. "
                "The columns are longitude first, then latitude: swap them if they came in the other order."
            )
        lon, lat = np.radians(lon % 360.0), np.radians(lat)
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)

    def frame(self, positions):
        rotation = _east_north_up(positions.mean(axis=0) if len(positions) else np.zeros(3))
        low, halves = _low_and_half(positions @ rotation)
        half = halves.max()
        return Frame(np.zeros(3), rotation, low + halves, np.full(3, HALF_SPAN / (half if half > 1e-12 else HALF_SPAN)))


def coordinates(name: str) -> AbstractCoordinates:
    """`Planar()` or `LatLon()` by the name that the public functions take."""
    match name:
        case "planar":
            return Planar()
        case "latlon":
            return LatLon()
    raise ValueError(f'`coords` must be "planar" or "latlon", got {name!r}.')


def _low_and_half(positions):
    """Lower end and half width of the range of each column."""
    if not len(positions):
        return np.zeros(positions.shape[1]), np.zeros(positions.shape[1])
    low, high = positions.min(axis=0), positions.max(axis=0)
    return low, (high - low) / 2


def _east_north_up(centroid):
    """The orthonormal axes at a direction of the sphere, as columns; any axes where there is no direction."""
    length = np.linalg.norm(centroid)
    x, y, z = centroid / length if length > 1e-9 else (1.0, 0.0, 0.0)
    lon = np.arctan2(y, x)
    flat = np.hypot(x, y)
    sin, cos = np.sin(lon), np.cos(lon)
    east, north, up = (-sin, cos, 0.0), (-z * cos, -z * sin, flat), (flat * cos, flat * sin, z)
    return np.array([east, north, up]).T


@dataclasses.dataclass(frozen=True)
class Standardiser:
    """Shift and scale of `y`, per column: the context's mean and standard deviation."""

    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> "Standardiser":
        """From the context's values `[n dy]`. Where they do not vary, or there are none, the unit is kept."""
        if not len(y):
            return cls(np.zeros(y.shape[1]), np.ones(y.shape[1]))
        mean = y.mean(axis=0)
        std = y.std(axis=0)
        varies = std > 1e-13 * np.abs(y).max(axis=0)
        return cls(mean, np.where(varies, std, 1.0))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return (y - self.mean) / self.std
