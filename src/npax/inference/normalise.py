"""What columns of coordinates mean, and how contexts are brought to the box that models are trained on."""

import abc
import dataclasses

import numpy as np

from .anisotropy import relative_speeds
from .frames import AbstractFrame, Frame, MapFrame, filling, low_and_half, mapped, varying_first
from .surroundings import Surroundings

ROUNDED = 1e-4
"""Degrees by which a latitude may be beyond a pole, as after rounding to float32."""
EAST, NORTH, UP = range(3)
"""Axes on the sphere."""
FAR = 1e6
"""The largest coordinates that models are asked about; their squares and products stay finite."""
SMALLEST = 1e-12
"""A range on the unit sphere that is more than rounding errors."""
ABROAD, TOGETHER = 0.4, 0.8
"""Distances of a centroid from the middle of the globe, of contexts all over it and of such as lie to one side: of all
places within 100 degrees of a point, and within 50."""


class AbstractCoordinates(abc.ABC):
    """What the columns of `x` mean: how they become positions in which straight distances make sense."""

    @abc.abstractmethod
    def positions(self, x: np.ndarray) -> np.ndarray:
        """Positions `[n d]` of the rows of `x`. **Raises** `ValueError` for coordinates that cannot be."""

    @abc.abstractmethod
    def columns(self, positions: np.ndarray) -> np.ndarray:
        """`x [n d]` at `positions [n p]`, which need not be on the sphere itself."""

    @abc.abstractmethod
    def adapted(
        self, positions: np.ndarray, values: np.ndarray, error: np.ndarray | None = None
    ) -> "AbstractCoordinates":
        """The same with units in which `values [n dy]` at `positions [n p]`, of known standard errors if any, vary as
        fast along one coordinate as along another (`relative_speeds`), where units are not known to be alike."""

    @abc.abstractmethod
    def parts(self, d: int) -> list[tuple[int, ...]]:
        """The columns of `x [n d]` in groups, those together that make a place only together."""

    @abc.abstractmethod
    def unwrapped(self, x: np.ndarray) -> np.ndarray:
        """`x [n d]` with one number for each place: of longitudes those from 0 to 360."""

    @abc.abstractmethod
    def only(self, columns: tuple[int, ...]) -> "AbstractCoordinates":
        """The coordinates of such groups alone."""

    @abc.abstractmethod
    def space(self, positions: np.ndarray) -> Frame:
        """The view of all observations, at `positions [n p]`, in which near ones are found and cells are cut."""

    @abc.abstractmethod
    def frame(
        self, positions: np.ndarray, within: Frame | None = None, middle: np.ndarray | None = None
    ) -> AbstractFrame:
        """The view in which these positions (of a context) fill [-2, 2]: `[*contexts n p]`, one view for each.

        Where these are some of the observations, `within` is the `space` of all of them, whose scale has what does not
        vary here, and `middle [*contexts p]` what they lie around. **Raises** `ValueError` for positions that no view
        from amid them shows.
        """

    @abc.abstractmethod
    def in_one_view(self, positions: np.ndarray) -> bool:
        """Whether `frame` shows positions `[n p]` together."""

    @abc.abstractmethod
    def surroundings(self, positions: np.ndarray) -> Surroundings:
        """Where a context at these positions `[n d]` says something."""

    @abc.abstractmethod
    def moved(self, positions: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The positions `[n d]` moved as a whole, distances kept, so that `start [d]` comes to `end [d]`."""


@dataclasses.dataclass(frozen=True)
class Planar(AbstractCoordinates):
    """Any columns of numbers, each with a unit of its own: each is centred and scaled by itself, until `adapted`.

    Differences matter and origins do not, so coordinates of 1e9 with differences of 1 are as good as any.
    A column that is constant in the context, but for rounding errors, is centred and keeps its unit, and comes behind
    those that vary, as models have it from fewer coordinates; in a part of the observations, it has the scale and the
    place that it has in all of them.

    `isotropic`: columns of one unit, such as the metres of a map, are all scaled alike, so that distances keep their
    ratios. `units`: by what they are multiplied to have one, if anything. `scaled=False`: columns in the very unit that
    the model was trained in are only centred, such as pixels a fixed distance apart: on a larger lattice, and in each
    of its tiles, they stay so.
    """

    isotropic: bool = False
    units: tuple[float, ...] | None = None
    scaled: bool = True

    def positions(self, x):
        return x

    def columns(self, positions):
        return positions

    def surroundings(self, positions):
        return Surroundings.of(positions)

    def moved(self, positions, start, end):
        return positions + (end - start)

    def parts(self, d):
        return [tuple(range(d))] if self.isotropic else [(i,) for i in range(d)]

    def unwrapped(self, x):
        return x

    def only(self, columns):
        return dataclasses.replace(self, units=None)

    def adapted(self, positions, values, error=None):
        if self.isotropic or not self.scaled or self.units is not None:
            return self
        space = self.space(positions)
        speeds = relative_speeds(space(positions), values, error, [(i,) for i in range(positions.shape[1])])
        return dataclasses.replace(self, units=tuple(space.rotation @ (speeds * space.scale)))

    def space(self, positions):
        return self.frame(positions)

    def frame(self, positions, within=None, middle=None):
        low, half = low_and_half(positions)
        axes = varying_first(half) if within is None else within.rotation
        known = 1.0 if within is None else within.scale @ axes.T
        units = np.ones(half.shape[-1]) if self.isotropic and self.units is None else self.units
        scale = _scale(half, units, known) if self.scaled else np.ones_like(half)
        return Frame(low, axes, half @ axes, scale @ axes)

    def in_one_view(self, positions):
        return True


def refuse_far(positions: np.ndarray, name: str) -> np.ndarray:
    """**Raises** `ValueError` for positions that a model would be asked about as they are and cannot tell apart."""
    far = np.abs(positions) > FAR
    if far.any():
        raise ValueError(
            f"`{name}` has the coordinate {positions[far][0]:g}, beyond {FAR:g}, and is not normalised: take the "
            "middle off, and divide by a scale that suits the model."
        )
    return positions


@dataclasses.dataclass(frozen=True)
class Unscaled(AbstractCoordinates):
    """Positions of other coordinates, neither centred nor scaled: for data in the very units of a model's training.

    **Pitfall:** what the model sees is float32, so positions far from zero lose their differences; beyond a million
    they are refused.
    """

    of: AbstractCoordinates

    def positions(self, x):
        return refuse_far(self.of.positions(x), "x")

    def columns(self, positions):
        return self.of.columns(positions)

    def surroundings(self, positions):
        return self.of.surroundings(positions)

    def moved(self, positions, start, end):
        return self.of.moved(positions, start, end)

    def parts(self, d):
        return self.of.parts(d)

    def unwrapped(self, x):
        return self.of.unwrapped(x)

    def only(self, columns):
        return Unscaled(self.of.only(columns))

    def adapted(self, positions, values, error=None):
        return self

    def space(self, positions):
        return self.frame(positions)

    def frame(self, positions, within=None, middle=None):
        *contexts, _, d = positions.shape
        zero, one = np.zeros((*contexts, d)), np.ones((*contexts, d))
        return Frame(zero, np.eye(d), zero, one)

    def in_one_view(self, positions):
        return True


@dataclasses.dataclass(frozen=True)
class LatLon(AbstractCoordinates):
    """Longitude and latitude in degrees: points of the unit sphere, straight (chord) distances. Other columns beside
    them, such as depth or time, have units of their own, as in `Planar`.

    Longitudes wrap: -180, 180 and 540 are one meridian. The frame looks down on the context's centroid, so that a
    local patch lies flat in its first two coordinates, east and north. It has one scale for all axes of the sphere, so
    that distances keep their ratios, until `adapted`: oceans and climates vary faster to the north than to the east,
    and the north is stretched as much. A context that is spread over the globe is looked at from above the equator,
    where its northward axis is that of the globe. With other columns, for which the models' three coordinates leave no
    room beside a third axis, it is a map around the middle (`MapFrame`), of observations within 90 degrees of it; a
    tile may hear of some farther away.

    `units`: by what is multiplied to have one unit: what lies to the east, to the north and up (as to the east), and
    other columns.
    """

    units: tuple[float, ...] | None = None

    def positions(self, x):
        _refuse_fewer_than_two(x.shape[1])
        lon, lat = x[:, :2].T
        if x.shape[0] and np.abs(lat).max() > 90 + ROUNDED:
            worst = lat[np.abs(lat).argmax()]
            swapped = "The columns are longitude first, then latitude: swap them if they came in the other order."
            projected = 'Metres of a projection, as these seem to be, are `coords="isotropic"`.'
            remedy = projected if abs(worst) > 360 else swapped
            raise ValueError(f"Latitudes lie between -90 and 90 degrees; got {worst:.10g}. {remedy}")
        lon, lat = np.radians(lon % 360.0), np.radians(lat)
        sphere = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
        return np.concatenate([sphere, x[:, 2:]], axis=1)

    def columns(self, positions):
        x, y, z = positions[:, :3].T
        lon, lat = np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))
        return np.column_stack([np.degrees(lon), np.degrees(lat), positions[:, 3:]])

    def parts(self, d):
        _refuse_fewer_than_two(d)
        return [(0, 1), *((i,) for i in range(2, d))]

    def unwrapped(self, x):
        return np.column_stack([np.round(x[:, 0] % 360.0, 9) % 360.0, x[:, 1:]])

    def only(self, columns):
        return LatLon() if 0 in columns else Planar()

    def adapted(self, positions, values, error=None):
        if self.units is not None or not len(positions):
            return self
        plain = self.space(positions).scale
        both = np.ptp(_east_north(positions)[:, :2], axis=0).min() > SMALLEST
        of_sphere = [(EAST, UP), (NORTH,)] if both else [(EAST, NORTH, UP)]
        groups = [*of_sphere, *((column,) for column in range(3, positions.shape[1]))]
        speeds = relative_speeds(positions * plain, values, error, groups, lambda p: _east_north(p / plain) * plain)
        return dataclasses.replace(self, units=tuple(speeds * plain))

    def surroundings(self, positions):
        return Surroundings.of(positions, east_north_up(positions[:, :3].sum(axis=0)))

    def moved(self, positions, start, end):
        turned = positions[:, :3] @ east_north_up(start[:3]) @ east_north_up(end[:3]).T
        return np.concatenate([turned, positions[:, 3:] + (end - start)[3:]], axis=1)

    def space(self, positions):
        axes, d = np.eye(positions.shape[-1]), positions.shape[-1]
        axes[:3, :3] = _axes(positions)
        low, half = low_and_half(positions @ axes)
        return Frame(np.zeros(d), axes, low + half, _scale_on_sphere(half, 3, self.units))

    def frame(self, positions, within=None, middle=None):
        if positions.shape[-1] > 3:
            return self._map(positions, within, middle)
        axes = _axes(positions)
        low, half = low_and_half(positions @ axes)
        known = 1.0 if within is None else within.scale
        scale = _scale_on_sphere(half, 3, self.units, known)
        return Frame(np.zeros_like(low), axes, low + half, scale)

    def _map(self, positions, within, middle):
        if middle is None and not self.in_one_view(positions):
            raise ValueError(
                "With other columns beside longitude and latitude all observations are seen together only where they "
                'lie within 90 degrees of their middle, and here they do not: take tiles, `strategy="tiled"`.'
            )
        axes = east_north_up(_centroid(positions) if middle is None else middle[..., :3])
        low, half = low_and_half(mapped(positions, axes))
        known = 1.0 if within is None else np.delete(within.scale, UP)
        units = None if self.units is None else np.delete(self.units, UP)
        scale = _scale_on_sphere(half, 2, units, known)
        order = varying_first(half) if middle is None else np.eye(low.shape[-1])
        return MapFrame(axes, Frame(low, order, half @ order, scale @ order))

    def in_one_view(self, positions):
        up = positions[..., :3] @ east_north_up(_centroid(positions))[..., UP:]
        return positions.shape[-1] == 3 or bool(np.all(up > -1e-12))


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


def _scale(half, units, otherwise):
    """The scale that brings columns of the half widths `[*contexts d]` to [-2, 2], each by itself, or where `units` are
    given the widest in them; `otherwise` what does not vary."""
    if units is None:
        return filling(half, otherwise)
    widest = (half * units).max(axis=-1, keepdims=True, initial=0.0)
    return np.where(widest > 0, filling(widest) * units, otherwise)


def _refuse_fewer_than_two(d):
    if d < 2:
        raise ValueError(
            '`coords="latlon"` takes longitude and latitude in degrees, and others after them (depth, time); got '
            f"{d} column."
        )


def _scale_on_sphere(half, n, units, otherwise: float | np.ndarray = 1.0):
    """The same, where the first `n` columns are axes on the sphere, and have one scale if there are no `units`."""
    of_sphere, others = half[..., :n], half[..., n:]
    largest = of_sphere.max(axis=-1, keepdims=True)
    of_sphere = np.where(largest > SMALLEST, largest if units is None else of_sphere, 0.0)
    return _scale(np.concatenate([np.broadcast_to(of_sphere, half[..., :n].shape), others], axis=-1), units, otherwise)


def _centroid(positions):
    """Of `[*contexts n 3 + k]` on the sphere: inside of it, the deeper the farther apart they are."""
    return np.sum(positions[..., :3], axis=-2) / max(positions.shape[-2], 1)


def _axes(positions):
    """East, north and up at the centroid of `[*contexts n 3 + k]`, or between it and the equator if they are far apart:
    of what lies all around the globe, north is along its axis."""
    x, y, z = np.moveaxis(_centroid(positions), -1, 0)
    flat, together = np.hypot(x, y), np.linalg.norm((x, y, z), axis=0)
    share = np.clip((together - ABROAD) / (TOGETHER - ABROAD), 0.0, 1.0)
    latitude = np.arctan2(z, flat) * share**2 * (3 - 2 * share)
    longitude = np.arctan2(y, x)
    flat = np.cos(latitude)
    return east_north_up(np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=-1))


def _east_north(positions):
    """Positions `[*contexts n 3 + k]` along the axes of their context."""
    return np.concatenate([positions[..., :3] @ _axes(positions), positions[..., 3:]], axis=-1)


def east_north_up(centroid: np.ndarray) -> np.ndarray:
    """The orthonormal axes at a direction of the sphere, as columns; any axes where there is no direction."""
    length = np.linalg.norm(centroid, axis=-1, keepdims=True)
    far = length > 1e-9
    x, y, z = np.moveaxis(np.where(far, centroid / np.where(far, length, 1.0), [1.0, 0.0, 0.0]), -1, 0)
    lon = np.arctan2(y, x)
    flat = np.hypot(x, y)
    sin, cos = np.sin(lon), np.cos(lon)
    rows = ((-sin, -z * cos, flat * cos), (cos, -z * sin, flat * sin), (np.zeros_like(z), flat, z))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
