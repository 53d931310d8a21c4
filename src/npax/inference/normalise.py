"""From the user's units to the model's: on the host, in float64, from the context alone."""

import abc
import dataclasses

import numpy as np

from .random_effects import random_effects
from .surroundings import Surroundings, half_range

HALF_SPAN = 2.0
"""Models are trained on coordinates in [-2, 2]."""
ROUNDED = 1e-4
"""Degrees by which a latitude may be beyond a pole, as after rounding to float32."""
LARGEST = 1e100
"""Of known standard errors in units of the values: squares stay finite."""
MOST_ERROR = 1e6
"""The largest known standard error, in standard deviations of the values, that models hear of."""
SAME = 1e-13
"""By what share of the largest values may differ and are still one, but for rounding errors."""


@dataclasses.dataclass(frozen=True)
class Frame:
    r"""An affine view of positions, $u = ((p - o) R - c) \circ s$, each `[*contexts n d]`.

    **Shapes:** `origin`, `centre`, `scale`: `[*contexts d]`; `rotation`: `[d d]` or `[*contexts d d]`.

    The origin is a corner of the context: differences to it are exact, however far from zero the context lies.
    """

    origin: np.ndarray
    rotation: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        origin, centre, scale = (a[..., None, :] for a in (self.origin, self.centre, self.scale))
        with np.errstate(over="ignore"):  # what is infinitely far is infinite
            return ((positions - origin) @ self.rotation - centre) * scale


class AbstractCoordinates(abc.ABC):
    """What the columns of `x` mean: how they become positions in which straight distances make sense."""

    @abc.abstractmethod
    def positions(self, x: np.ndarray) -> np.ndarray:
        """Positions `[n d]` of the rows of `x`. **Raises** `ValueError` for coordinates that cannot be."""

    @abc.abstractmethod
    def frame(self, positions: np.ndarray, within: Frame | None = None) -> Frame:
        """The view in which these positions (of a context) fill [-2, 2]: `[*contexts n d]`, one view for each.

        `within`: that of all observations, where these are some of them. What does not vary here has its scale.
        """

    @abc.abstractmethod
    def surroundings(self, positions: np.ndarray) -> Surroundings:
        """Where a context at these positions `[n d]` says something."""

    @abc.abstractmethod
    def moved(self, positions: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The positions `[n d]` moved as a whole, distances kept, so that `start [d]` comes to `end [d]`."""


@dataclasses.dataclass(frozen=True)
class Planar(AbstractCoordinates):
    """Any columns of numbers, each with a unit of its own: each is centred and scaled by itself.

    Differences matter and origins do not, so coordinates of 1e9 with differences of 1 are as good as any.
    A column that is constant in the context, but for rounding errors, is centred and keeps its unit; in a part of the
    observations, the scale that it has in all of them.

    `isotropic`: columns of one unit, such as the metres of a map, are all scaled alike, so that distances keep their
    ratios. The better choice where a function varies as much along one axis as along the others and the observations
    fill a long region: on one four times as long as wide predictions have a tenth less error (the shipped model, an
    exponential covariance); where it varies unlike along the axes, as much more.
    """

    isotropic: bool = False

    def positions(self, x):
        return x

    def surroundings(self, positions):
        return Surroundings.of(positions)

    def moved(self, positions, start, end):
        return positions + (end - start)

    def frame(self, positions, within=None):
        low, half = _low_and_half(positions)
        span = np.broadcast_to(half.max(axis=-1, keepdims=True, initial=0.0), half.shape) if self.isotropic else half
        scale = np.where(span > 0, HALF_SPAN / np.where(span > 0, span, 1.0), 1.0 if within is None else within.scale)
        return Frame(low, np.eye(positions.shape[-1]), half, scale)


@dataclasses.dataclass(frozen=True)
class Lattice(AbstractCoordinates):
    """Columns in the very unit that the model was trained in: centred, never scaled.

    For a model of pixels a fixed distance apart: on a larger lattice, and in each of its tiles, they stay so.
    """

    def positions(self, x):
        return x

    def surroundings(self, positions):
        return Surroundings.of(positions)

    def moved(self, positions, start, end):
        return positions + (end - start)

    def frame(self, positions, within=None):
        low, half = _low_and_half(positions)
        return Frame(low, np.eye(positions.shape[-1]), half, np.ones_like(half))


@dataclasses.dataclass(frozen=True)
class Unscaled(AbstractCoordinates):
    """Positions of other coordinates, neither centred nor scaled: for data in the very units of a model's training.

    **Pitfall:** what the model sees is float32, so positions far from zero lose their differences.
    """

    of: AbstractCoordinates

    def positions(self, x):
        return self.of.positions(x)

    def surroundings(self, positions):
        return self.of.surroundings(positions)

    def moved(self, positions, start, end):
        return self.of.moved(positions, start, end)

    def frame(self, positions, within=None):
        *contexts, _, d = positions.shape
        zero, one = np.zeros((*contexts, d)), np.ones((*contexts, d))
        return Frame(zero, np.eye(d), zero, one)


@dataclasses.dataclass(frozen=True)
class LatLon(AbstractCoordinates):
    """Two columns, longitude and latitude in degrees: points of the unit sphere, straight (chord) distances.

    Longitudes wrap: -180, 180 and 540 are one meridian. The frame looks down on the context's centroid, so that a
    local patch lies flat in its first two coordinates, and has one scale for all axes: distances keep their ratios.
    """

    def positions(self, x):
        if x.shape[1] != 2:
            raise ValueError(
                f'`coords="latlon"` takes two columns, longitude and latitude in degrees; got {x.shape[1]} columns. '
                'With depth or time beside them, project the degrees to a map and take `coords="planar"`.'
            )
        lon, lat = x.T
        if x.shape[0] and np.abs(lat).max() > 90 + ROUNDED:
            worst = lat[np.abs(lat).argmax()]
            raise ValueError(
                f"Latitudes lie between -90 and 90 degrees; got {worst:.10g}. "
                "The columns are longitude first, then latitude: swap them if they came in the other order."
            )
        lon, lat = np.radians(lon % 360.0), np.radians(lat)
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)

    def surroundings(self, positions):
        return Surroundings.of(positions, _east_north_up(positions.sum(axis=0)))

    def moved(self, positions, start, end):
        return positions @ _east_north_up(start) @ _east_north_up(end).T

    def frame(self, positions, within=None):
        rotation = _east_north_up(np.sum(positions, axis=-2) / max(positions.shape[-2], 1))
        low, halves = _low_and_half(positions @ rotation)
        half = halves.max(axis=-1, keepdims=True)
        spread = half > 1e-12
        scale = np.where(spread, HALF_SPAN / np.where(spread, half, 1.0), 1.0 if within is None else within.scale)
        scale = np.broadcast_to(scale, low.shape)
        return Frame(np.zeros_like(low), rotation, low + halves, scale)


def coordinates(name: str) -> AbstractCoordinates:
    """The columns by the name that the public functions give them."""
    match name:
        case "planar":
            return Planar()
        case "isotropic":
            return Planar(isotropic=True)
        case "latlon":
            return LatLon()
    raise ValueError(f'`coords` must be "planar", "isotropic" or "latlon", got {name!r}.')


def _low_and_half(positions):
    """Lower end and half width of the range of each column; zeros where there are no positions."""
    if not positions.shape[-2]:
        return positions.sum(axis=-2), positions.sum(axis=-2)
    low, high = positions.min(axis=-2), positions.max(axis=-2)
    return low, half_range(low, high)


def _east_north_up(centroid):
    """The orthonormal axes at a direction of the sphere, as columns; any axes where there is no direction."""
    length = np.linalg.norm(centroid, axis=-1, keepdims=True)
    far = length > 1e-9
    x, y, z = np.moveaxis(np.where(far, centroid / np.where(far, length, 1.0), [1.0, 0.0, 0.0]), -1, 0)
    lon = np.arctan2(y, x)
    flat = np.hypot(x, y)
    sin, cos = np.sin(lon), np.cos(lon)
    rows = ((-sin, -z * cos, flat * cos), (cos, -z * sin, flat * sin), (np.zeros_like(z), flat, z))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


@dataclasses.dataclass(frozen=True)
class Standardiser:
    """Shift and scale of `y`, per context and column: the context's mean and standard deviation, `[*contexts dy]`.

    Any finite values will do: squares and differences are those of values near one, so none is too large or too small.
    """

    mean: np.ndarray
    std: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, error: np.ndarray | None = None) -> "Standardiser":
        """From the context's values `[*contexts n dy]` and their known standard errors, if any: those of the values but
        for these errors (`random_effects`).

        Where they do not vary, or there are none, nothing says how large deviations from them would be, and the unit
        is kept: `std` is 1.
        """
        if not y.shape[-2]:
            return cls(y.sum(axis=-2), np.ones_like(y.sum(axis=-2)))
        largest = np.abs(y).max(axis=-2)
        unit = _power_of_two(largest)
        near_one = y / unit[..., None, :]
        mean, std = near_one.mean(axis=-2) * unit, near_one.std(axis=-2) * unit
        varies = std > SAME * largest
        if error is not None:
            with np.errstate(over="ignore"):
                beside = np.minimum(error / unit[..., None, :], LARGEST)
            mean, std = (a * unit for a in random_effects(near_one, beside))
        return cls(np.where(varies, mean, y[..., 0, :]), np.where(varies, std, 1.0))

    @classmethod
    def none(cls, y: np.ndarray) -> "Standardiser":
        """The one that changes nothing."""
        return cls(np.zeros_like(y.sum(axis=-2)), np.ones_like(y.sum(axis=-2)))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        unit, mean, std = self._near_one()
        return (y / unit - mean) / std

    def scaled(self, error: np.ndarray) -> np.ndarray:
        """Standard deviations `[*contexts n dy]` in the unit that values are brought to, float32."""
        with np.errstate(over="ignore"):
            return np.minimum(error / self.std[..., None, :], MOST_ERROR).astype(np.float32)

    def undo(self, y: np.ndarray) -> np.ndarray:
        """Values `[*contexts n dy]` back in the units of the observations."""
        unit, mean, std = self._near_one()
        return (y * std + mean) * unit

    def _near_one(self):
        """A unit `[*contexts 1 dy]`, and mean and standard deviation in it."""
        mean, std = self.mean[..., None, :], self.std[..., None, :]
        unit = _power_of_two(np.maximum(np.abs(mean), std))
        return unit, mean / unit, std / unit


def _power_of_two(size):
    """The largest that is not above `size`: divided by it, values are below two and have the same digits."""
    return np.ldexp(1.0, np.frexp(size)[1] - 1)
