"""What `npax predict` and `npax fill` read and write. Needs pandas and xarray."""

import errno
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..data.tables import (
    as_table as as_table,
    check_columns as check_columns,
    check_there as check_there,
    checked_suffix as checked_suffix,
    copied as copied,
    ending as ending,
    of_numbers as of_numbers,
    of_zones as of_zones,
    pd,
    read as read,
    read_grid as read_grid,
    with_dates as with_dates,
    xr,
)
from ..files import replaced


def as_grid(target: pd.DataFrame | xr.Dataset, x: Sequence[str]) -> xr.Dataset:
    """The coordinates of a table along one dimension, `row`, and its other columns with them; a dataset as it is."""
    if not isinstance(target, pd.DataFrame):
        return target
    points = as_rows(target)
    return points.set_coords([name for name in points.data_vars if name not in x])


def as_rows(table: pd.DataFrame) -> xr.Dataset:
    """A table along one dimension, `row`."""
    return table.infer_objects().rename_axis("row").to_xarray()


def with_floats(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Only the columns `names` of a table, those of numbers as float64."""
    return table.filter([*names]).astype({name: float for name in names if of_numbers(table[name])})


def check_names(names: Iterable[object], path: Path) -> None:
    """**Raises** `ValueError` where a file of the format of `path` cannot hold one of the names."""
    divided = [name for name in names if "/" in str(name)]
    if divided and ending(path) in (".nc", ".zarr"):
        raise ValueError(
            f"'{path}' takes no names with '/', got '{divided[0]}': rename the column, or write .csv or .parquet."
        )


def check_zones(observations: pd.DataFrame | xr.Dataset, target: pd.DataFrame | xr.Dataset, names: Sequence[str]):
    """**Raises** `ValueError` where a column of dates has a time zone in one of the two and none in the other."""
    for name in names:
        if of_zones(observations[name]) != of_zones(target[name]):
            raise ValueError(
                f"Column '{name}' has times with a zone on one side, the observations or the places to predict at, and "
                "without one on the other: write both alike."
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


def write(prediction: pd.DataFrame | xr.Dataset, path: Path) -> None:
    """Writes a table or a grid in the format that the ending of `path` names, whichever of the two it is.
    A Zarr folder that is there already is never replaced, but an error."""
    if ending(path) == ".zarr" and path.exists():
        raise FileExistsError(f"'{path}' is there already: delete it, or choose another name.")
    with replaced(path) as partial:
        _write(prediction, partial)


def of_regions(found: pd.DataFrame | xr.Dataset, by: Sequence[str]) -> pd.DataFrame:
    """Averages of regions as a table with their names as columns, without combinations that are no region."""
    if isinstance(found, pd.DataFrame):
        return found.reset_index() if by else found
    rows = found.to_dataframe().reset_index() if by else found.expand_dims("row").to_dataframe()
    return rows.dropna(subset=[*found.data_vars]).filter([*by, *found.data_vars])


def _write(prediction, path):
    if ending(path) in (".nc", ".zarr"):
        gridded = prediction if isinstance(prediction, xr.Dataset) else as_rows(prediction)
        if ending(path) == ".nc":
            try:
                gridded.to_netcdf(path, encoding={name: {"zlib": True} for name in gridded.data_vars})
            except RuntimeError as error:  # how the library says that a disk is full
                raise OSError(errno.EIO, f"{error}, perhaps for want of room on the disk") from error
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
