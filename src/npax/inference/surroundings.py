"""Where a context says something: in the box that holds it, and a little beyond."""

import dataclasses

import numpy as np

BEYOND = 0.5
"""How far outside the box predictions still hold what they promise, as a share of its half-width."""


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """The box of a context and a margin around it.

    `low`, `high`: its ends. On the sphere: those of a map, which has true distances and directions from the axis up of
    `east_north_up [3 3]`, in radians.
    """

    low: np.ndarray
    high: np.ndarray
    east_north_up: np.ndarray | None = None

    @classmethod
    def of(cls, positions: np.ndarray, east_north_up: np.ndarray | None = None) -> "Surroundings":
        """The margin is half of the half-width: in the plane of each coordinate by itself, and a coordinate that is
        constant has no end; on the sphere of the larger."""
        places = _mapped(positions, east_north_up)
        low, high = places.min(axis=0), places.max(axis=0)
        half = half_range(low, high)
        if east_north_up is not None:
            half = np.full_like(half, half.max() if half.max() > 1e-12 else 0.0)
        margin = np.where(half > 0, BEYOND * half, np.inf)
        return cls(low - margin, high + margin, east_north_up)

    def miss(self, positions: np.ndarray) -> np.ndarray:
        """Which of the positions `[n d]` lie outside: `[n]`."""
        places = _mapped(positions, self.east_north_up)
        return np.any((places < self.low) | (places > self.high), axis=1)


def half_range(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Half of what lies between; zero where that is no more than rounding errors, which are no scale."""
    half = (high - low) / 2
    return np.where(half > np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high)), half, 0.0)


def _mapped(positions, east_north_up):
    if east_north_up is None:
        return positions
    *flat, up = (positions @ east_north_up).T
    flat = np.stack(flat, axis=1)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return flat * (np.arctan2(length, up[:, None]) / np.where(length > 0, length, 1.0))
