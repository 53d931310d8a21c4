import datetime

import numpy as np
from matplotlib.dates import ConciseDateFormatter, date2num

from ..arrays import floats
from ..longitudes import unwrapped

WORDS = {3: "three", 4: "four"}
TITLES = ("task", "uncertainty", "prediction", "truth")
"""Of four panels."""


def checked_axes(axes, number):
    """So many axes in a row, of an array of any shape: `plt.subplots(2, 2)` gives four."""
    axes = np.ravel(np.asarray(axes, object))
    if axes.size != number:
        raise ValueError(f"`axes` must be {WORDS[number]}, got {axes.size}.")
    return axes


def checked_grid(x, y, values, coords="planar"):
    """Sorted axes `[nx]`, `[ny]` and values `[ny nx]`, longitudes (`coords="latlon"`) on the shorter arc. Arrays of
    xarray may have their dimensions in any order."""
    own = [getattr(a, "dims", ()) for a in (y, x)]
    if all(own) and sorted(getattr(values, "dims", ())) == sorted([*own[0], *own[1]]):
        values = values.transpose(*own[0], *own[1])
    x, y, values = unwrapped(along(x)) if coords == "latlon" else along(x), along(y), floats(values)
    if x.ndim != 1 or y.ndim != 1 or values.shape != (y.size, x.size):
        raise ValueError(
            f"`values` must have the shape (rows, columns) = (size of y, size of x) = ({y.size}, {x.size}), "
            f"with 1-D `x` and `y`; got values {values.shape}, x {x.shape}, y {y.shape}. What lies on no such grid is "
            "drawn as points: `npax.plot.points`, of all in one dimension."
        )
    if not values.size:
        raise ValueError(f"A map needs at least one column and one row, got {x.size} and {y.size}.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("`x` and `y` must be finite, got NaN or infinity: leave these columns and rows out.")
    across, down = np.argsort(x), np.argsort(y)
    return x[across], y[down], values[np.ix_(down, across)]


def along(a):
    """Places on an axis as numbers, NaN where they are masked; of dates and of lengths of time, days."""
    if of_dates(a):
        dates = np.asarray(a)
        return np.asarray(date2num(_of_numpy(dates) if _of_calendar(dates) else dates), float)
    if np.asarray(a).dtype.kind == "m":
        return np.asarray(a) / np.timedelta64(1, "D")
    return floats(a)


def of_dates(a):
    """Whether places are dates, of NumPy or of Python and pandas, which may have time zones."""
    a = np.asarray(a)
    python = a.dtype.kind == "O" and a.size > 0 and isinstance(a.flat[0], datetime.date)
    return a.dtype.kind == "M" or python or _of_calendar(a)


def _of_calendar(a):
    """Dates of another calendar, such as those of climate models without leap years."""
    a = np.asarray(a)
    return a.dtype.kind == "O" and a.size > 0 and hasattr(a.flat[0], "calendar")


def _of_numpy(dates):
    """As far after the first as in their own calendar."""
    first = min(dates.flat)
    start = np.datetime64(f"{first.year:04d}-01-01", "us") + np.timedelta64(first.dayofyr - 1, "D")
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    return np.reshape([start + np.timedelta64(date - midnight, "us") for date in dates.flat], dates.shape)


def mark_dates(axis, a):
    """Has an axis of matplotlib read the days of `along` as dates, where `a` were some."""
    if of_dates(a):
        axis.axis_date()
        axis.set_major_formatter(ConciseDateFormatter(axis.get_major_locator()))


def refuse_negative(std):
    """**Raises** `ValueError` for standard deviations below zero, whose intervals would stand on their heads."""
    if (std < 0).any():
        raise ValueError(f"`std` must not be negative, its smallest value is {np.nanmin(std):g}.")


def edges(centers):
    """The borders between cells, given their centres: one more. A single cell is one wide."""
    if len(centers) == 1:
        return centers[0] + np.array([-0.5, 0.5])
    middle = (centers[1:] + centers[:-1]) / 2
    return np.concatenate([[2 * centers[0] - middle[0]], middle, [2 * centers[-1] - middle[-1]]])


def robust_limits(values):
    """Where the colours begin and end: the range without the outermost half percent at each side."""
    finite = values[np.isfinite(values)]
    return np.quantile(finite, [0.005, 0.995]) if finite.size else (0.0, 1.0)
