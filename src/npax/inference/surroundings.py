"""Where a context says something: in the box that holds it, and a little beyond."""

import dataclasses

import numpy as np

from .frames import half_range, mapped

BEYOND = 0.5
"""How far outside the box predictions still hold what they promise, as a share of its half-width."""
SAME = 1e-6
"""Of the one value of a coordinate that is constant, on the sphere of its radius: no farther away, as after rounding to
float32, is the same."""
ROUNDED = 4 * np.finfo(float).eps
"""The same of coordinates that vary: what differs by no more may be rounded otherwise."""


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """The box of a context and a margin around it.

    `low`, `high`: its ends. On the sphere: those of a map, which has true distances and directions from the axis up of
    `east_north_up [3 3]`, in radians; other columns are beside it.
    """

    low: np.ndarray
    high: np.ndarray
    east_north_up: np.ndarray | None = None

    @classmethod
    def of(
        cls, positions: np.ndarray, east_north_up: np.ndarray | None = None, *, closed: bool = False
    ) -> "Surroundings":
        """The margin is half of the half-width: of each coordinate by itself, on the sphere of the larger. None beside
        a coordinate that is constant, since nothing says how fast values change along it; but of one place no end,
        unless `closed`."""
        places = _mapped(positions, east_north_up)
        low, high = places.min(axis=0), places.max(axis=0)
        half = half_range(low, high)
        if east_north_up is not None:
            half[:2] = half[:2].max() if half[:2].max() > 1e-12 else 0.0
        far = np.maximum(np.maximum(np.abs(low), np.abs(high)), np.finfo(float).tiny)
        if east_north_up is not None:
            far[:2] = 1.0  # near the middle of the map directions are rounded as the sphere is
        none = SAME * far if closed or np.any(half > 0) else np.inf
        margin = np.where(half > 0, np.maximum(BEYOND * half, ROUNDED * far), none)
        return cls(low - margin, high + margin, east_north_up)

    def miss(self, positions: np.ndarray) -> np.ndarray:
        """Which of the positions `[n d]` lie outside: `[n]`."""
        places = _mapped(positions, self.east_north_up)
        return np.any((places < self.low) | (places > self.high), axis=1)


def _mapped(positions, east_north_up):
    return positions if east_north_up is None else mapped(positions, east_north_up, np.arctan2)
