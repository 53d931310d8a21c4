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
    of_each = (getattr(a, "dtypes", getattr(a, "dtype", ())) for a in arrays)
    kinds = [kind for each in of_each for kind in np.ravel(np.asarray(each, object))]
    if any(getattr(kind, "kind", None) in ("M", "m") for kind in kinds):
        raise TypeError("Coordinates and values must be numbers, got dates: give days or years since one of them.")


def refuse_masks(**arrays: Any) -> None:
    """**Raises** `ValueError` where NumPy's mask hides a value of one, and every value would count."""
    for name, a in arrays.items():
        hidden = np.ma.count_masked(a) if np.ma.isMaskedArray(a) else 0
        if hidden:
            raise ValueError(f"`{name}` hides {hidden:,} values under a mask: leave these rows out.")


def refuse_complex(*arrays: Any) -> None:
    """**Raises** `TypeError` where one is of complex numbers, which would lose a part in silence."""
    if any(np.iscomplexobj(a) for a in arrays):
        raise TypeError("Coordinates and values must be real numbers, got complex ones: give both parts as columns.")
