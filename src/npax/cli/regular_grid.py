"""Grids that cover observations."""

from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from ..data.tables import pd, xr
from ..estimators.dates import in_days, of_calendar, start_of
from ..longitudes import unwrapped

MOST_CELLS = 50_000_000
"""Of a grid that is held in memory."""


def regular_grid(
    table: pd.DataFrame,
    x: Sequence[str],
    resolution: Sequence[float],
    most: float | int = MOST_CELLS,
    *,
    coords: str = "planar",
) -> xr.Dataset:
    """A grid that covers the observations: coordinates `x`, the last one varying slowest, in cells of the sizes
    `resolution`, one for all coordinates or one for each; of dates and durations they are days.

    Numbers and durations are multiples of the size, dates are counted from the first midnight. Of longitudes and
    latitudes (`coords="latlon"`) there are none beyond the poles, and none twice around the globe; observations on both
    sides of the date line are one region: longitudes go on beyond 180 there.
    """
    sizes = dict(zip(x, _one_for_each(resolution, x), strict=True))
    starts = {name: _start(table[name]) for name in x}
    columns = {name: np.asarray(in_days(table[name], starts[name]), float) for name in x}
    for name, column in columns.items():
        if not np.isfinite(column).any() or np.isinf(column).any():
            raise ValueError(f"The column '{name}' has no finite range, so no grid can cover the observations.")
    if coords == "latlon":
        columns[x[0]] = unwrapped(columns[x[0]])
    columns = {name: column / sizes[name] for name, column in columns.items()}
    columns = {name: np.round(column, 9) for name, column in columns.items()}  # 0.3 is three of 0.1, and no less
    ranges = {name: (float(np.floor(np.nanmin(c))), float(np.ceil(np.nanmax(c)))) for name, c in columns.items()}
    cells = np.prod([high - low + 1 for low, high in ranges.values()])
    if not cells <= most:
        raise ValueError(
            f"A resolution of {' '.join(map(str, resolution))} makes {cells:,.0f} cells, more than {most:,}: choose a "
            "larger one, or write to a .zarr folder, which is not held in memory."
        )
    axes = {name: _twelve_digits(np.arange(low, high + 1) * sizes[name]) for name, (low, high) in ranges.items()}
    if coords == "latlon" and len(x) > 1:
        lon, lat = axes[x[0]], axes[x[1]]
        axes |= {x[0]: lon[lon - lon[0] < 360 - 1e-9], x[1]: lat[np.abs(lat) <= 90 + 1e-9]}
    return xr.Dataset(coords={name: _since(starts[name], axes[name]) for name in reversed(x)})


def _one_for_each(resolution, x):
    if len(resolution) not in (1, len(x)):
        raise ValueError(
            f"`--resolution` must be one size for all coordinates or one for each of {', '.join(x)}; got "
            f"{len(resolution)}: {' '.join(map(str, resolution))}."
        )
    wrong = [size for size in resolution if not 0 < size < np.inf]
    if wrong:
        raise ValueError(f"`--resolution` must be a number above 0, got {wrong[0]}.")
    return [*resolution] * (1 if len(resolution) == len(x) else len(x))


def _start(column):
    """What days are counted from: the midnight before the first of dates, no time at all of durations; None of
    numbers."""
    first = start_of(column)
    if first is None:
        return None
    if of_calendar(column):
        return first.replace(hour=0, minute=0, second=0, microsecond=0)
    return first.astype("datetime64[D]") if first.dtype.kind == "M" else np.timedelta64(0, "D")


def _since(start, days):
    """Dates or durations again; numbers, which have no start, as they are."""
    if start is None:
        return days
    if isinstance(start, np.generic):
        return start + np.round(days * 86_400e6).astype("timedelta64[us]")
    return np.array([start + timedelta(microseconds=round(day * 86_400e6)) for day in days], object)


def _twelve_digits(a):
    """Rounded: 0.3 instead of 0.30000000000000004."""
    return np.round(a, 11 - int(np.floor(np.log10(np.abs(a).max() or 1.0))))
