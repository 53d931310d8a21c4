"""The units of tasks cut out of one large data set: those of the part that a model is trained on."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Shift and scale of each column of `x` and `y`: means and standard deviations.

    Other parts of the data set take those of the training part, so that a model meets what is new there as new.
    """

    x_mean: tuple[float, ...]
    x_std: tuple[float, ...]
    y_mean: tuple[float, ...]
    y_std: tuple[float, ...]

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Scaling:
        """Of rows `x [n dx]`, `y [n dy]`. NaN and infinity are left out; a column that does not vary keeps its unit.

        **Raises:** `ValueError` for a column without a finite number.
        """
        return cls(*_mean_and_std(x, "x"), *_mean_and_std(y, "y"))

    def x(self, x: ArrayLike) -> np.ndarray:
        """Locations `[... dx]` in the unit of the tasks."""
        return (np.asarray(x, np.float64) - self.x_mean) / self.x_std

    def y(self, y: ArrayLike) -> np.ndarray:
        """Values `[... dy]` in the unit of the tasks."""
        return (np.asarray(y, np.float64) - self.y_mean) / self.y_std

    def undo(self, y: ArrayLike) -> np.ndarray:
        """Values `[... dy]` back in their own units."""
        return np.asarray(y, np.float64) * self.y_std + self.y_mean


def _mean_and_std(rows, name):
    rows = np.asarray(rows, np.float64)
    rows = np.where(np.isfinite(rows), rows, np.nan)
    empty = np.flatnonzero(np.isnan(rows).all(axis=0))
    if empty.size:
        raise ValueError(f"Column {empty[0]} of `{name}` holds no finite number: it has no mean and no scale.")
    std, largest = np.nanstd(rows, axis=0), np.nanmax(np.abs(rows), axis=0)
    varies = std > 1e-13 * largest  # by more than rounding errors
    return tuple(np.nanmean(rows, axis=0).tolist()), tuple(np.where(varies, std, 1.0).tolist())
