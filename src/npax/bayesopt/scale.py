"""Values of a function whose minimum is looked for, as the model sees them."""

from typing import NamedTuple

import numpy as np

LARGEST = 1e300
"""Of values, and of their distances in spreads: penalties such as the largest float are no more than this."""
FAR = 10.0
"""How far above all others a penalty is at least, in parts of how far these reach."""


class Scale(NamedTuple):
    r"""Values as the model sees them, $(\operatorname{arsinh}((y - m) / s) - \mu) / \sigma$, with $m$ their median
    and $s$ its distance to the lowest.

    A search looks closely at low values and has no use for how bad the bad ones are: the more of the values lie near
    the minimum, the finer this resolves them, while values far above it are counted as logarithms. One number far above
    all others that is there again and again is a penalty, and counts as no more than the `ceiling`, just above these.
    """

    median: float
    spread: float
    mean: float
    std: float
    ceiling: float = np.inf

    @classmethod
    def of(cls, y: np.ndarray) -> "Scale":
        ceiling = _ceiling(y)
        y = np.minimum(y, ceiling)
        median = float(np.median(np.clip(y, -LARGEST, LARGEST)))  # that of an even number is a mean, and may overflow
        with np.errstate(over="ignore"):
            spread = min(median - float(y.min()) or float(y.std()) or 1.0, LARGEST)
        bent = _bent(y, median, spread)
        return cls(median, spread, float(bent.mean()), float(bent.std()) or 1.0, ceiling)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return (_bent(np.minimum(y, self.ceiling), self.median, self.spread) - self.mean) / self.std

    def error(self, y: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Standard errors of values: half of what lies between the value less its error and the value plus it."""
        return (self(y + error) - self(y - error)) / 2

    def undo(self, y):
        return np.sinh(y * self.std + self.mean) * self.spread + self.median


def _ceiling(y):
    """Where one number is there more than once, far above all others: as far above these as they reach."""
    others = y[y < y.max()]
    if len(y) - len(others) < 2 or len(others) < 2:
        return np.inf
    low, high = float(others.min()), float(others.max())
    with np.errstate(over="ignore"):
        far = y.max() - high > FAR * (high - low)
    return high + (high - low) if far and high > low else np.inf


def _bent(y, median, spread):
    with np.errstate(over="ignore"):
        return np.arcsinh(np.clip((y - median) / spread, -LARGEST, LARGEST))
