"""What `npax predict` and `npax fill` read, write and make grids of. Needs pandas and xarray."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..data.tables import (
    as_table as as_table,
    check_columns as check_columns,
    checked_suffix as checked_suffix,
    ending as ending,
    pd,
    read as read,
    read_grid as read_grid,
    xr,
)

MOST_CELLS = 50_000_000
"""Of a grid that is held in memory."""


def as_grid(target: pd.DataFrame | xr.Dataset, x: Sequence[str]) -> xr.Dataset:
    """The coordinates of a table along one dimension, `row`; a dataset as it is."""
    return target[[*x]].rename_axis("row").to_xarray() if isinstance(target, pd.DataFrame) else target


def regular_grid(
    table: pd.DataFrame, x: Sequence[str], resolution: float, most: float | int = MOST_CELLS, *, coords: str = "planar"
) -> xr.Dataset:
    """A grid of cell size `resolution` that covers the observations: coordinates `x`, the last one varying slowest.

    Of longitudes and latitudes (`coords="latlon"`) there are none beyond the poles, and none twice around the globe.
    """
    if not 0 < resolution < np.inf:
        raise ValueError(f"`--resolution` must be a number above 0, got {resolution}.")
    columns = {name: table[name].to_numpy(float) / resolution for name in x}
    ranges = {name: (float(np.floor(np.nanmin(c))), float(np.ceil(np.nanmax(c)))) for name, c in columns.items()}
    cells = np.prod([high - low + 1 for low, high in ranges.values()])
    if not cells <= most:
        raise ValueError(
            f"A resolution of {resolution} makes {cells:,.0f} cells, more than {most:,}: choose a larger one, or write "
            "to a .zarr folder, which is not held in memory."
        )
    axes = {name: np.arange(low, high + 1) * resolution for name, (low, high) in ranges.items()}
    if coords == "latlon" and len(x) == 2:
        lon, lat = axes.values()
        axes = {x[0]: lon[lon - lon[0] < 360 - 1e-9], x[1]: lat[np.abs(lat) <= 90 + 1e-9]}
    return xr.Dataset(coords={name: axes[name] for name in reversed(x)})


def write(prediction: pd.DataFrame | xr.Dataset, path: Path) -> None:
    """Writes a table or a grid in the format that the ending of `path` names, whichever of the two it is.
    A Zarr folder that is there already is never replaced, but an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if ending(path) in (".nc", ".zarr"):
        gridded = prediction if isinstance(prediction, xr.Dataset) else prediction.rename_axis("row").to_xarray()
        if ending(path) == ".nc":
            gridded.to_netcdf(path, encoding={name: {"zlib": True} for name in gridded.data_vars})
            return
        with warnings.catch_warnings():  # that format 3 does not have the copy of all metadata; xarray looks for it
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            gridded.to_zarr(path, mode="w-", zarr_format=3, consolidated=True)
        return
    table = as_table(prediction)
    if ending(path) == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
