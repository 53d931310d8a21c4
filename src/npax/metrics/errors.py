"""Errors of point predictions."""

import numpy as np
from numpy.typing import ArrayLike

from ._check import checked


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Root mean squared error, $\sqrt{\frac1n \sum_i (y_i - \mu_i)^2}$, in the units of `y`.

    Pooled: give all values at once. The mean of the RMSEs of several batches is smaller than the RMSE of them all.

    **Shapes:** any, both the same. **Raises** `ValueError` for other shapes, no values or values that are not finite,
    as all scores here do.
    """
    y, mean = checked(y=y, mean=mean)
    return float(np.sqrt(np.mean(np.square(y - mean))))


def mae(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Mean absolute error, $\frac1n \sum_i |y_i - \mu_i|$, in the units of `y`. **Shapes:** any, both the same."""
    y, mean = checked(y=y, mean=mean)
    return float(np.mean(np.abs(y - mean)))
