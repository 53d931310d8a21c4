"""Central intervals of Gaussian predictions."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ._check import checked, checked_level


def coverage(y: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.95) -> float:
    """The share of `y` inside the central interval that claims to hold the share `level`. Calibrated: equal to it.

    **Pitfalls:** not a score to optimise: intervals from the distribution of all `y` cover as well as good ones.
    **Shapes:** any, all the same.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("std",))
    return float(np.mean(np.abs(y - mean) <= _half_width(level) * std))


def interval_score(y: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.95) -> float:
    r"""Mean interval score, in the units of `y`: the width of the central interval, plus $2/\alpha$ times the distance
    by which `y` misses it, with $\alpha = 1 -$ `level`. A proper score: narrow intervals that cover are the best.

    **Shapes:** any, all the same. **Reference:** Gneiting and Raftery (2007), eq. 43.
    """
    y, mean, std = checked(y=y, mean=mean, std=std, positive=("std",))
    half = _half_width(level) * std
    missed_by = np.maximum(np.abs(y - mean) - half, 0)
    return float(np.mean(2 * half + 2 / (1 - level) * missed_by))


def _half_width(level):
    """In standard deviations: 1.96 for 0.95."""
    return ndtri(0.5 + 0.5 * checked_level(level))
