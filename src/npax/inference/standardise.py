"""From the units of values to those that models are trained in: on the host, in float64, from the context alone."""

import dataclasses

import numpy as np

from .random_effects import random_effects

LARGEST = 1e100
"""Of known standard errors in units of the values: squares stay finite."""
MOST_ERROR = 1e6
"""The largest known standard error, in standard deviations of the values, that models hear of."""
SAME = 1e-13
"""By what share of the largest values may differ and are still one, but for rounding errors."""


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
        is kept: `std` is 1. (Several whose errors are known vary by less than these.)
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
            varies |= (beside > 0).all(axis=-2) & (y.shape[-2] > 1)
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
