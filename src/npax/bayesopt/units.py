"""Places of evaluations, as the model sees them."""

from typing import NamedTuple

import numpy as np

from ..inference.anisotropy import relative_speeds
from ..inference.frames import HALF_SPAN


class Units(NamedTuple):
    """From the unit cube to the coordinates that models are trained on, in which the function varies alike."""

    speeds: np.ndarray

    @classmethod
    def of(cls, places: np.ndarray, y: np.ndarray, error: np.ndarray) -> "Units":
        """Those that values `y [n]` at `places [n d]`, with known standard errors, zero where unknown, say."""
        x = HALF_SPAN * (2 * places - 1)
        return cls(relative_speeds(x, y[:, None], error[:, None], [(i,) for i in range(x.shape[1])]))

    def __call__(self, places: np.ndarray) -> np.ndarray:
        return (HALF_SPAN * (2 * places - 1) * self.speeds).astype(np.float32)

    def undo(self, x: np.ndarray) -> np.ndarray:
        return (x.astype(np.float64) / self.speeds / HALF_SPAN + 1) / 2
