"""How a level, which may be any real number, is brought to what is observed."""

import dataclasses
from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Link(Protocol):
    """An increasing function of a level. Arrays are of one shape, float64; `npax.counts` are links, too."""

    def rate(self, level: np.ndarray) -> np.ndarray:
        """The value at a level."""
        ...

    def level(self, rate: float) -> float:
        """The level of a value. **Raises** `ValueError` for one that cannot be."""
        ...

    def moments(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the value, where the level is normal."""
        ...

    def of_moments(self, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the normal level whose value has these `moments`."""
        ...

    def slope(self, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
        """The mean of the derivative of the value, where the level is normal."""
        ...


@dataclasses.dataclass(frozen=True)
class Log:
    """Values whose logarithm is the level: positive, and log-normal where it is normal. `most`: how large the
    logarithm of a value and of its standard deviation may be, at most: both stay finite."""

    most: float = 700.0

    def rate(self, level):
        return np.exp(np.clip(level, -self.most, self.most))

    def level(self, rate):
        if not rate > 0:
            raise ValueError(f"A threshold of log-normal values must be positive, got {rate:g}: all are above.")
        return float(np.log(rate))

    def moments(self, mean, std):
        variance = np.minimum(np.square(std), self.most)
        relative = np.log(np.maximum(np.expm1(variance), np.finfo(float).tiny)) / 2
        return self.slope(mean, std), self.rate(mean + variance / 2 + relative)

    def of_moments(self, mean, std):
        variance = np.log1p(np.square(std / mean))
        return np.log(mean) - variance / 2, np.sqrt(variance)

    def slope(self, mean, std):
        return self.rate(mean + np.square(std) / 2)
