"""Where a search may look."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

SAME = 1e-5
"""Of a side of the box: places no farther apart than this in any coordinate are one, as after rounding to float32."""
COARSE = 0.01
"""The same, at most, where the box is far from zero."""
APART = 0.25
"""The same of whole numbers, at most: neighbours are different however many there are."""


class Box(NamedTuple):
    """Places `x [d]` from `low` to `high`, whose coordinates are whole numbers where `whole [d]` says so.

    The search itself is in a unit cube, in which each whole number has the same share of a side.
    """

    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    whole: Bool[np.ndarray, " d"]

    @property
    def _side(self):
        return self.high - self.low + self.whole

    def places(self, cube: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
        """The places that those in the cube stand for."""
        x = self.low - self.whole / 2 + cube * self._side
        return np.clip(np.where(self.whole, np.round(x) + 0.0, x), self.low, self.high)  # + 0: of -0 0

    def cube(self, x: Float[np.ndarray, "*n d"]) -> Float[np.ndarray, "*n d"]:
        """Where places are in the cube: whole numbers in the middles of their shares."""
        return (x - self.low + self.whole / 2) / self._side

    def holds(self, x: Float[np.ndarray, " d"]) -> bool:
        return bool(np.all((x >= self.low) & (x <= self.high)))

    def inside(self, x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Places as they were meant. **Raises** `ValueError` for such as are none of the box, but for rounding."""
        meant = np.clip(np.where(self.whole, np.round(x), x), self.low, self.high)
        if not np.all(np.abs(x - meant) <= self.rounding):
            of = f", whole numbers in the coordinates {np.flatnonzero(self.whole)}" if self.whole.any() else ""
            raise ValueError(f"`x` must lie within the bounds {self.low} to {self.high}{of}; got {x}.")
        return meant

    @property
    def rounding(self) -> Float[np.ndarray, " d"]:
        """How far apart, in each coordinate, two places may be that are one."""
        single = np.finfo(np.float32).eps * np.maximum(np.abs(self.low), np.abs(self.high))
        near = np.clip(single, SAME * self._side, COARSE * self._side)
        return np.where(self.whole, np.minimum(near, APART), near)

    @property
    def same(self) -> Float[np.ndarray, " d"]:
        """The same in the cube, of places that are not far from zero."""
        return np.where(self.whole, np.minimum(SAME, APART / self._side), SAME)

    def near(self, centre: Float[np.ndarray, " d"], half: Float[np.ndarray, " d"]) -> "Box":
        """The part of it around a place."""
        return self._replace(low=np.maximum(centre - half, self.low), high=np.minimum(centre + half, self.high))
