"""Fields and stations that the user has on disk: nothing of them comes with the package."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .on_disk import find

if TYPE_CHECKING:
    import xarray as xr


class Rainfall(NamedTuple):
    """Stations: `lon`, `lat` in degrees, `elevation` in metres, `rain` in millimetres a summer, each `[n]`."""

    lon: np.ndarray
    lat: np.ndarray
    elevation: np.ndarray
    rain: np.ndarray


class Ozone(NamedTuple):
    """Stations: `lon`, `lat [sites]` in degrees; `ozone [days sites]` in ppb, NaN where missing; `date [days]`."""

    lon: np.ndarray
    lat: np.ndarray
    ozone: np.ndarray
    date: np.ndarray


ERA5_LICENCE = "Copernicus: free to use with the note 'contains modified Copernicus Climate Change Service information'"


def era5_europe(path: str | Path | None = None) -> xr.Dataset:
    """ERA5 temperature at 2 m over Europe, every 6 hours from 1 to 5 July 2022: `t2m (time lat lon)` in kelvin and
    `elevation (lat lon)` in metres, every 0.25 degrees from 35 to 60 N and 10 W to 30 E.

    **Arguments:** `path`: of the file or of its folder, default the folder that the environment variable NPAX_DATA
    names. **Raises:** `FileNotFoundError` where it is not there, `ValueError` where it does not hold such arrays.
    """
    return _era5("era5_europe_2022_07.npz", "ERA5 over Europe", path)


def era5_uk(path: str | Path | None = None) -> xr.Dataset:
    """As `era5_europe`: hourly over the British Isles in March 2019, 50 to 58 N and 10 W to 2 E."""
    return _era5("era5_uk_2019_03.npz", "ERA5 over the British Isles", path)


def rainfall(path: str | Path | None = None) -> Rainfall:
    """Mean rainfall from June to August, 1950 to 2010, at 1,720 stations of North America (GHCN 2). `path` and errors
    as for `era5_europe`."""
    names = ("longitude", "latitude", "elevation_m", "precip_tenth_mm")
    licence = "GPL (>= 2), of the R package fields that the file is from; GHCN is US government data"
    path = find(
        "na_rainfall.csv", "Rainfall of North America", f"a table with the columns {', '.join(names)}", licence, path
    )
    try:
        with path.open(encoding="utf-8") as file:
            table = np.genfromtxt(file, delimiter=",", names=True, ndmin=1)
    except ValueError as error:  # no text, rows of different lengths
        raise ValueError(f"'{path}' cannot be read as a table: {error}") from error
    missing = [name for name in names if name not in (table.dtype.names or ())]
    if missing:
        raise ValueError(f"'{path}' has no column {', '.join(missing)}; it takes {', '.join(names)}.")
    if not len(table):
        raise ValueError(f"'{path}' has no rows.")
    lon, lat, elevation, rain = (table[name] for name in names)
    return Rainfall(lon, lat, elevation, rain / 10)


def ozone(path: str | Path | None = None) -> Ozone:
    """Daily means over 8 hours of ozone at 153 stations of the Midwest of the US, 3 June to 31 August 1987; 4 % are
    missing. `path` and errors as for `era5_europe`."""
    licence = "GPL (>= 2), of the R package fields that the file is from"
    dims = {"lon": ("site",), "lat": ("site",), "ozone": ("day", "site"), "date": ("day",)}
    return Ozone(**_arrays("ozone_midwest.npz", "Ozone of the Midwest", dims, licence, path))


def _era5(name, title, path):
    try:
        import xarray as xr
    except ImportError as error:
        raise ImportError("Grids need xarray: pip install 'npax[geo]'.") from error
    dims = {"t2m": ("time", "lat", "lon"), "time": ("time",), "lat": ("lat",), "lon": ("lon",)}
    dims["elevation"] = ("lat", "lon")
    arrays = _arrays(name, title, dims, ERA5_LICENCE, path)
    return xr.Dataset(
        {
            "t2m": (dims["t2m"], arrays["t2m"], {"units": "K", "long_name": "temperature at 2 m"}),
            "elevation": (dims["elevation"], arrays["elevation"], {"units": "m"}),
        },
        {
            "time": arrays["time"].astype("datetime64[s]").astype("datetime64[ns]"),
            "lat": ("lat", arrays["lat"], {"units": "degrees_north"}),
            "lon": ("lon", arrays["lon"], {"units": "degrees_east"}),
        },
    )


def _arrays(name, title, dims, licence, path):
    """The arrays of a file; `dims`: the names of their dimensions, each of one size."""
    contents = "arrays " + ", ".join(f"{key} [{' '.join(of)}]" for key, of in dims.items())
    path = find(name, title, contents, licence, path)
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:
            arrays = {key: file[key] for key in dims}
        sizes = {}
        for key, of in dims.items():
            if arrays[key].shape != tuple(map(sizes.setdefault, of, arrays[key].shape)) or arrays[key].ndim != len(of):
                raise ValueError(f"its {key} has the shape {arrays[key].shape}")
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"'{path}' does not hold {title}: {error}. It takes {contents}.") from error
    return arrays
