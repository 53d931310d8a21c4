"""The units of tasks cut out of one large data set: those of the part that a model is trained on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import floats, refuse_datetimes


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
        """Of rows `x [n dx]`, `y [n dy]`. NaN, infinity and what is masked are left out; a column that does not vary
        keeps its unit.

        **Raises:** `ValueError` for a column without a finite number; `TypeError` for dates.
        """
        refuse_datetimes(x, y)
        return cls.of_columns(floats(x).T, floats(y).T)

    @classmethod
    def of_columns(cls, x: Iterable[np.ndarray], y: Iterable[np.ndarray]) -> Scaling:
        """The same of columns `[n]`, each of its own length: of a grid, its axes will do. **Raises** as `of`."""
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


def _mean_and_std(columns, name):
    moments = [_moments(floats(column), f"Column {i} of `{name}`") for i, column in enumerate(columns)]
    means, stds = zip(*moments, strict=True) if moments else ((), ())
    return means, stds


def _moments(column, name):
    column = column[np.isfinite(column)]
    if not column.size:
        raise ValueError(f"{name} holds no finite number: it has no mean and no scale.")
    std = float(np.std(column))
    varies = std > 1e-13 * np.abs(column).max()  # by more than rounding errors
    return float(np.mean(column)), std if varies else 1.0
