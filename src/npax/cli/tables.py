"""Tables and grids on disk: CSV, Parquet, NetCDF, Zarr. Needs pandas and xarray (`pip install 'npax[geo]'`)."""

import warnings
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

try:
    import pandas as pd
    import xarray as xr
except ImportError as error:
    raise ImportError("Tables and grids need pandas and xarray: pip install 'npax[geo]'.") from error

SUFFIXES = (".csv", ".parquet", ".nc", ".zarr")
MOST_CELLS = 50_000_000
"""Of a grid that is held in memory."""


def ending(path: Path) -> str:
    """What the name says of the format, `.CSV` the same as `.csv`."""
    return path.suffix.lower()


def checked_suffix(path: Path) -> Path:
    if ending(path) not in SUFFIXES:
        raise ValueError(f"'{path}' must end in one of {', '.join(SUFFIXES)}: the ending says how to read or write it.")
    return path


def read(path: Path) -> pd.DataFrame | xr.Dataset:
    """A table (CSV, Parquet) or a dataset (NetCDF, Zarr), whose values stay on disk until they are used."""
    checked_suffix(path)
    kind = ending(path)
    if not (path.is_dir() if kind == ".zarr" else path.is_file()):
        raise FileNotFoundError(f"There is no {'folder' if kind == '.zarr' else 'file'} '{path}'.")
    if kind in (".nc", ".zarr"):
        return read_grid(path)
    try:
        return pd.read_csv(path) if kind == ".csv" else pd.read_parquet(path)
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise ValueError(f"'{path}' cannot be read as a table: {error}") from error


def read_grid(path: Path) -> xr.Dataset:
    """A dataset (NetCDF, Zarr), whose values stay on disk until they are used."""
    if not path.exists():
        raise FileNotFoundError(f"There is no file '{path}'.")
    return xr.open_dataset(path, engine="zarr" if ending(path) == ".zarr" else None)


def as_table(found: pd.DataFrame | xr.Dataset) -> pd.DataFrame:
    """A dataset laid out with one row per value; a table as it is."""
    return found if isinstance(found, pd.DataFrame) else found.to_dataframe().reset_index()


def check_columns(table: pd.DataFrame | xr.Dataset, names: Sequence[str], path: Path) -> None:
    """**Raises** `ValueError` where a column is missing or holds text or dates, or the table has no rows."""
    if isinstance(table, pd.DataFrame) and len(table) == 0:
        raise ValueError(f"'{path}' has no rows.")
    present = [str(name) for name in (table.columns if isinstance(table, pd.DataFrame) else table.variables)]
    from ..estimators.dates import refuse_dates

    for name in names:
        if name not in present:
            raise ValueError(f"'{path}' has no column '{name}'; it has: {', '.join(present)}.")
        if not np.issubdtype(np.asarray(table[name]).dtype, np.number):
            refuse_dates([(name, _as_dates(table[name]))], f"'{path}'")
            raise ValueError(
                f"Column '{name}' of '{path}' is not of numbers; {_first_text(table[name])}"
                "Correct the file, or choose another column."
            )


def _as_dates(column):
    """Texts such as 2020-01-31 or 2020-01-31T12:00 as the dates that they write; a column of anything else as it is."""
    try:
        return [datetime.fromisoformat(text) for text in column]
    except (TypeError, ValueError):
        return column


def _first_text(column):
    texts = [str(value) for value in np.asarray(column).ravel()]
    bad = [text for text in texts if not _is_number(text)]
    return f"its first text is '{bad[0]}'. " if bad else ""


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


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
