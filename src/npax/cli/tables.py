"""What `npax predict` and `npax fill` read, write and make grids of. Needs pandas and xarray."""

import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ..data.tables import (
    as_table as as_table,
    check_columns as check_columns,
    checked_suffix as checked_suffix,
    ending as ending,
    of_numbers as of_numbers,
    pd,
    read as read,
    read_grid as read_grid,
    xr,
)
from ..files import replaced
from ..longitudes import unwrapped

MOST_CELLS = 50_000_000
"""Of a grid that is held in memory."""


def as_grid(target: pd.DataFrame | xr.Dataset, x: Sequence[str]) -> xr.Dataset:
    """The coordinates of a table along one dimension, `row`, and its other columns with them; a dataset as it is."""
    if not isinstance(target, pd.DataFrame):
        return target
    points = target.rename_axis("row").to_xarray()
    return points.set_coords([name for name in points.data_vars if name not in x])


def check_names(names: Iterable[object], path: Path) -> None:
    """**Raises** `ValueError` where a file of the format of `path` cannot hold one of the names."""
    divided = [name for name in names if "/" in str(name)]
    if divided and ending(path) in (".nc", ".zarr"):
        raise ValueError(
            f"'{path}' takes no names with '/', got '{divided[0]}': rename the column, or write .csv or .parquet."
        )


def check_kinds(target: pd.DataFrame | xr.Dataset, path: Path) -> None:
    """**Raises** `ValueError` where a file of the format of `path` cannot hold a column of a table, such as dates of a
    time zone: by writing the first thousand rows of each."""
    if ending(path) not in (".nc", ".zarr") or not isinstance(target, pd.DataFrame):
        return
    for name, column in target.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                _write(column.iloc[:1000].to_frame(), Path(folder) / f"rows{ending(path)}")
            except Exception as error:
                raise ValueError(
                    f"'{path}' cannot hold the column '{name}' of type {column.dtype} ({error}): write .csv or "
                    ".parquet, or leave the column out."
                ) from error


def regular_grid(
    table: pd.DataFrame, x: Sequence[str], resolution: float, most: float | int = MOST_CELLS, *, coords: str = "planar"
) -> xr.Dataset:
    """A grid of cell size `resolution` that covers the observations: coordinates `x`, the last one varying slowest.

    Of longitudes and latitudes (`coords="latlon"`) there are none beyond the poles, and none twice around the globe;
    observations on both sides of the date line are one region: longitudes go on beyond 180 there.
    """
    if not 0 < resolution < np.inf:
        raise ValueError(f"`--resolution` must be a number above 0, got {resolution}.")
    columns = {name: table[name].to_numpy(float) for name in x}
    for name, column in columns.items():
        if not np.isfinite(column).any() or np.isinf(column).any():
            raise ValueError(f"The column '{name}' has no finite range, so no grid can cover the observations.")
    if coords == "latlon" and len(x) == 2:
        columns[x[0]] = unwrapped(columns[x[0]])
    columns = {name: column / resolution for name, column in columns.items()}
    columns = {name: np.round(column, 9) for name, column in columns.items()}  # 0.3 is three of 0.1, and no less
    ranges = {name: (float(np.floor(np.nanmin(c))), float(np.ceil(np.nanmax(c)))) for name, c in columns.items()}
    cells = np.prod([high - low + 1 for low, high in ranges.values()])
    if not cells <= most:
        raise ValueError(
            f"A resolution of {resolution} makes {cells:,.0f} cells, more than {most:,}: choose a larger one, or write "
            "to a .zarr folder, which is not held in memory."
        )
    axes = {name: _twelve_digits(np.arange(low, high + 1) * resolution) for name, (low, high) in ranges.items()}
    if coords == "latlon" and len(x) == 2:
        lon, lat = axes.values()
        axes = {x[0]: lon[lon - lon[0] < 360 - 1e-9], x[1]: lat[np.abs(lat) <= 90 + 1e-9]}
    return xr.Dataset(coords={name: axes[name] for name in reversed(x)})


def _twelve_digits(a):
    """Rounded: 0.3 instead of 0.30000000000000004."""
    return np.round(a, 11 - int(np.floor(np.log10(np.abs(a).max() or 1.0))))


def write(prediction: pd.DataFrame | xr.Dataset, path: Path) -> None:
    """Writes a table or a grid in the format that the ending of `path` names, whichever of the two it is.
    A Zarr folder that is there already is never replaced, but an error."""
    if ending(path) == ".zarr" and path.exists():
        raise FileExistsError(f"'{path}' is there already: delete it, or choose another name.")
    with replaced(path) as partial:
        _write(prediction, partial)


def _write(prediction, path):
    if ending(path) in (".nc", ".zarr"):
        gridded = prediction if isinstance(prediction, xr.Dataset) else prediction.rename_axis("row").to_xarray()
        if ending(path) == ".nc":
            gridded.to_netcdf(path, encoding={name: {"zlib": True} for name in gridded.data_vars})
            return
        with warnings.catch_warnings():  # that format 3 does not have the copy of all metadata; xarray looks for it
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            gridded = gridded.drop_encoding()  # that of a file in another format, perhaps
            gridded.to_zarr(path, mode="w", zarr_format=3, consolidated=True)
        return
    table = as_table(prediction)
    if ending(path) == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
