"""Errors of point predictions."""

import numpy as np
from numpy.typing import ArrayLike

from ._check import checked


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Root mean squared error, $\sqrt{\frac1n \sum_i (y_i - \mu_i)^2}$, in the units of `y`.

    Pooled: give all values at once. The mean of the RMSEs of several batches is smaller than the RMSE of them all.

    **Shapes:** any, both the same. **Raises** `ValueError` for other shapes, no values, values that are not finite, or
    labels (of pandas, xarray) in another order, as all scores here do; unlabelled values count by position.
    """
    y, mean = checked(y=y, mean=mean)
    error = y - mean
    _, power = np.frexp(np.max(np.abs(error)))  # squares of large values overflow, those of small ones vanish
    return float(np.ldexp(np.sqrt(np.mean(np.square(np.ldexp(error, -power)))), power))


def mae(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Mean absolute error, $\frac1n \sum_i |y_i - \mu_i|$, in the units of `y`. **Shapes:** any, both the same."""
    y, mean = checked(y=y, mean=mean)
    return float(np.mean(np.abs(y - mean)))
