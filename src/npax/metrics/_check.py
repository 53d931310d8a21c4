from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import floats, with_nan


def checked(*, positive: tuple[str, ...] = (), **arrays: ArrayLike) -> list[np.ndarray]:
    """The arrays in float64, flat: of one shape and order, not empty, finite and not masked; those named in `positive`
    above zero."""
    check_order(**arrays)
    out = numbers(**arrays)
    shapes = {name: value.shape for name, value in out.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(f"The arguments must have one shape (they are not broadcast), got {shapes}.")
    for name, value in out.items():
        if value.size == 0:
            raise ValueError(f"`{name}` is empty: there is nothing to score.")
        if not np.isfinite(value).all():
            count = np.count_nonzero(~np.isfinite(value))
            raise ValueError(f"`{name}` has {count} values that are not finite, or masked: drop those rows first.")
        if name in positive and value.min() <= 0:
            raise ValueError(f"`{name}` must be above 0, its smallest value is {value.min()}.")
    return [value.ravel() for value in out.values()]


def numbers(**arrays: ArrayLike) -> dict[str, np.ndarray]:
    """In float64, NaN where they are masked or missing. **Raises** `TypeError` for dates and durations."""
    for name, value in arrays.items():
        dtype = getattr(value, "dtype", None) or np.asarray(value).dtype  # what is lazy is computed once
        if dtype.kind in "mM":
            remedy = f"give numbers, such as `({name} - start) / numpy.timedelta64(1, 'h')`"
            raise TypeError(f"`{name}` holds dates or durations, which have no unit of their own: {remedy}.")
    return {name: floats(with_nan(value)) for name, value in arrays.items()}


def check_order(**arrays: Any) -> None:
    """**Raises** `ValueError` where labels of pandas or xarray say that values at one position do not belong together:
    the same dimensions or labels in another order. Other labels say nothing: those of a test split beside 0, 1, 2."""
    for (a, left), (b, right) in combinations(arrays.items(), 2):
        left, right = _labels(left), _labels(right)
        shared = [axis for axis in left if axis in right]
        if shared != [axis for axis in right if axis in left]:
            raise ValueError(
                f"`{a}` and `{b}` have their dimensions in another order, {tuple(left)} and {tuple(right)}: bring them "
                "into one with `.transpose`, or compare by position with `.to_numpy()`."
            )
        if any(_reordered(left[axis], right[axis]) for axis in shared):
            raise ValueError(
                f"`{a}` and `{b}` have the same labels in another order: bring them into one with `.reindex_like`, or "
                "compare by position with `.to_numpy()`."
            )


def check_rows(X: Any, axis: int = 0, **others: Any) -> None:
    """The same for the rows of a table `X` and an `axis` of others: `y`, exposures, weights of regions."""
    for name, other in others.items():
        tables = all(hasattr(table, "iloc") and not hasattr(table, "compute") for table in (X, other))
        if tables and _reordered(X.index, other.axes[axis]):
            raise ValueError(
                f"`X` and `{name}` have the same labels in another order: bring them into one with `.reindex`, or "
                "pass both without labels, `.to_numpy()`."
            )


def _labels(array):
    """The labels along each axis, as an index of pandas, or `None`. The axes are named in xarray, and counted from the
    last in pandas, as a table of samples has a first one more than a series. Tables of dask have no labels yet."""
    if hasattr(array, "dims") and hasattr(array, "coords"):
        return {dim: array[dim].to_index() if dim in array.coords else None for dim in array.dims}
    if hasattr(array, "iloc") and not hasattr(array, "compute"):
        return {n - array.ndim: labels for n, labels in enumerate(array.axes)}
    return {}


def _reordered(a, b):
    if a is None or b is None or len(a) != len(b) or a.nlevels != b.nlevels or a.equals(b):
        return False
    return bool(a.isin(b).all() and b.isin(a).all())


def checked_level(level: float) -> float:
    number = np.asarray(level)
    if number.shape or number.dtype.kind not in "iuf" or not 0 < number < 1:
        raise ValueError(
            f"`level` must be one number between 0 and 1, both excluded, got {level!r}; 0.95 is usual. "
            "`calibration_curve` takes several."
        )
    return level
