"""Values of a function whose minimum is looked for, as the model sees them."""

from typing import NamedTuple

import numpy as np

LARGEST = 1e300
"""Of values, and of their distances in spreads: penalties such as the largest float are no more than this."""


class Scale(NamedTuple):
    r"""Values as the model sees them, $(\operatorname{arsinh}((y - m) / s) - \mu) / \sigma$, with $m$ their median
    and $s$ its distance to the lowest.

    A search looks closely at low values and has no use for how bad the bad ones are: the more of the values lie near
    the minimum, the finer this resolves them, while values far above it are counted as logarithms.
    """

    median: float
    spread: float
    mean: float
    std: float

    @classmethod
    def of(cls, y: np.ndarray) -> "Scale":
        median = float(np.median(np.clip(y, -LARGEST, LARGEST)))  # that of an even number is a mean, and may overflow
        with np.errstate(over="ignore"):
            spread = min(median - float(y.min()) or float(y.std()) or 1.0, LARGEST)
        bent = _bent(y, median, spread)
        return cls(median, spread, float(bent.mean()), float(bent.std()) or 1.0)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return (_bent(y, self.median, self.spread) - self.mean) / self.std

    def error(self, y: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Standard errors of values: half of what lies between the value less its error and the value plus it."""
        return (self(y + error) - self(y - error)) / 2

    def undo(self, y):
        return np.sinh(y * self.std + self.mean) * self.spread + self.median


def _bent(y, median, spread):
    with np.errstate(over="ignore"):
        return np.arcsinh(np.clip((y - median) / spread, -LARGEST, LARGEST))
