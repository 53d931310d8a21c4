"""Are the predicted probabilities right, over all levels?"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ._check import checked


def pit(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> np.ndarray:
    r"""Probability integral transform $\Phi((y - \mu) / \sigma)$ of Gaussian predictions: `[n]`, flat, in the order
    of `y`. Uniform on 0 to 1 if the predictions are calibrated; piled up in the middle if they are too wide, at both
    ends if too narrow. **Shapes:** `y`, `mean`, `std`: any, the same for all.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("std",))
    return ndtr((y - mean) / std)


def calibration_curve(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The levels of central intervals (default 0.05, 0.10, .. 0.95) and the share of `y` that each of them covers.

    Calibrated predictions give the diagonal; the point at 0.95 is `coverage`. **Shapes:** as `pit`. **Raises**
    `ValueError` for `levels` that are not between 0 and 1.
    """
    levels = np.arange(1, 20) / 20 if levels is None else np.ravel(np.asarray(levels, np.float64))
    if levels.size == 0 or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(f"`levels` must be between 0 and 1, both excluded, got {levels}.")
    needed = np.abs(2 * pit(y, mean, std) - 1)
    return levels, np.mean(needed[:, None] <= levels, axis=0)
