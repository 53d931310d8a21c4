"""Arrays as users have them."""

from typing import Any

import numpy as np


def floats(a: Any) -> np.ndarray:
    """In float64, NaN where a mask of NumPy's hides a value, as netCDF4 hands them out."""
    return np.ma.filled(np.ma.asarray(a, np.float64), np.nan)
