"""Arrays as users have them."""

from typing import Any

import numpy as np


def floats(a: Any) -> np.ndarray:
    """In float64, NaN where a mask of NumPy's hides a value, as netCDF4 hands them out. **Raises** `TypeError` for
    complex numbers."""
    refuse_complex(a)
    return np.ma.filled(np.ma.asarray(a, np.float64), np.nan)


def with_nan(a: Any) -> Any:
    """A table or column of pandas' with NaN for each `pandas.NA` among objects, which NumPy does not know."""
    kinds = np.ravel(np.asarray(getattr(a, "dtypes", ()), object))
    of_objects = hasattr(a, "notna") and any(getattr(kind, "kind", "") == "O" for kind in kinds)
    return a.where(a.notna(), np.nan) if of_objects else a


def refuse_datetimes(*arrays: Any) -> None:
    """**Raises** `TypeError` where one is of dates or times, of which arrays would keep a number of some unit."""
    if any(getattr(getattr(a, "dtype", None), "kind", None) in ("M", "m") for a in arrays):
        raise TypeError("Coordinates and values must be numbers, got dates: give days or years since one of them.")


def refuse_complex(*arrays: Any) -> None:
    """**Raises** `TypeError` where one is of complex numbers, which would lose a part in silence."""
    if any(np.iscomplexobj(a) for a in arrays):
        raise TypeError("Coordinates and values must be real numbers, got complex ones: give both parts as columns.")
