"""Views of positions in which a context fills the box that models are trained on."""

import abc
import dataclasses
from collections.abc import Callable

import numpy as np

HALF_SPAN = 2.0
"""Models are trained on coordinates in [-2, 2]."""


class AbstractFrame(abc.ABC):
    """What brings positions `[*contexts n p]` to the coordinates `[*contexts n d]` of a view, in float64."""

    @abc.abstractmethod
    def __call__(self, positions: np.ndarray) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True)
class Frame(AbstractFrame):
    r"""An affine view of positions, $u = ((p - o) R - c) \circ s$, each `[*contexts n d]`.

    **Shapes:** `origin`, `centre`, `scale`: `[*contexts d]`; `rotation`: `[d d]` or `[*contexts d d]`.

    The origin is a corner of the context: differences to it are exact, however far from zero the context lies.
    """

    origin: np.ndarray
    rotation: np.ndarray
    centre: np.ndarray
    scale: np.ndarray

    def __call__(self, positions):
        origin, centre, scale = (a[..., None, :] for a in (self.origin, self.centre, self.scale))
        with np.errstate(over="ignore"):  # what is infinitely far is infinite
            return ((positions - origin) @ self.rotation - centre) * scale

    def positions(self, u: np.ndarray) -> np.ndarray:
        """What the view of one context shows at `u [*any d]`."""
        return (u / self.scale + self.centre) @ self.rotation.T + self.origin


@dataclasses.dataclass(frozen=True)
class MapFrame(AbstractFrame):
    r"""A map of the sphere beside other columns: positions `[*contexts n 3 + k]` seen in `2 + k` coordinates.

    Lambert's azimuthal map: a point is drawn in its direction from the middle, as far away as the chord is long. Near
    the middle all distances are true; at an angle $\theta$ from it one along the circle is drawn $1 / \cos(\theta / 2)$
    times, one along the radius $\cos(\theta / 2)$ times as long: 1.06 at 40 degrees, 1.41 at 90.

    `east_north_up [*contexts 3 3]`: the axes at the middle, as columns; `frame`: of the map and the other columns.
    """

    east_north_up: np.ndarray
    frame: Frame

    def __call__(self, positions):
        return self.frame(mapped(positions, self.east_north_up))


def chord(length: np.ndarray, up: np.ndarray) -> np.ndarray:
    """How long the chord is from the middle to points of the sphere that lie `length` beside it and as high as `up`."""
    return np.hypot(length, 1 - up)


def mapped(positions: np.ndarray, east_north_up: np.ndarray, away: Callable = chord) -> np.ndarray:
    """An azimuthal map `[*contexts n 2]` of the first three columns, the others beside it: Lambert's, or that of
    another distance `away(length, up)` from the middle."""
    east, north, up = np.moveaxis(positions[..., :3] @ east_north_up, -1, 0)
    length = np.hypot(east, north)
    distance, far = away(length, up), length > 0
    stretch = distance / np.where(far, length, 1.0)
    east = np.where(far, east * stretch, distance)  # the direction of the antipode is any
    return np.concatenate([np.stack([east, north * stretch], axis=-1), positions[..., 3:]], axis=-1)


def low_and_half(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower end and half width of the range of each column; zeros where there are no positions."""
    if not positions.shape[-2]:
        return positions.sum(axis=-2), positions.sum(axis=-2)
    low, high = positions.min(axis=-2), positions.max(axis=-2)
    return low, half_range(low, high)


def half_range(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Half of what lies between; zero where that is no more than rounding errors, which are no scale."""
    half, number = high / 2 - low / 2, np.finfo(float)  # the difference itself may be no number
    return np.where(half > np.maximum(number.eps * np.maximum(np.abs(low), np.abs(high)), number.tiny), half, 0.0)


def varying_first(half: np.ndarray) -> np.ndarray:
    """The axes `[d d]` by which columns of these half widths `[d]` that do not vary come last; as they are for several
    contexts."""
    if half.ndim > 1:
        return np.eye(half.shape[-1])
    return np.eye(len(half))[:, np.argsort(half == 0, kind="stable")]


def filling(half: np.ndarray, otherwise: np.ndarray | float = 1.0) -> np.ndarray:
    """The scale by which ranges of these half widths fill [-2, 2]; of what does not vary another."""
    return np.where(half > 0, HALF_SPAN / np.where(half > 0, half, 1.0), otherwise)
