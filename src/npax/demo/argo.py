import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.spatial import KDTree

from ..data import argo, is_land
from ..data.argo import ARGO_ACKNOWLEDGEMENT, ARGO_START
from ..estimators import NeuralProcessRegressor
from ..files import replaced
from ..metrics import score_report
from .baselines import InverseDistance, SubsetGP, chords

FIELD = "Ocean temperature at 100 dbar"
SHOWN = np.datetime64("2016-02-15T12")
"""When the map is of: the middle of the three months."""
TITLE = f"{FIELD}, {SHOWN.item():%d %B %Y}"


class Row(NamedTuple):
    """One line of the table: scores on the held-out profiles, and the time from observations to predictions."""

    method: str
    scores: dict[str, float]
    seconds: float


class Result(NamedTuple):
    """`rows`: npax and the baselines. `lon [360]`, `lat [180]`, `mean`, `std [180 360]`: the map of the 15th of
    February 2016, NaN on land and far from all floats. `map_seconds`: the time it took."""

    rows: list[Row]
    lon: np.ndarray
    lat: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    map_seconds: float


def run(
    output: str | Path | None = Path("argo.nc"),
    plot: str | Path | None = Path("argo.png"),
    *,
    seed: int = 0,
    holdout: float = 0.1,
    model="gp-universal",
    observations: int | None = None,
    console: Console | None = None,
) -> Result:
    """Maps the world's ocean temperature from 32,436 Argo profiles, and scores the prediction on held-out ones.

    Holds out the share `holdout` of the profiles (a random split by `seed`), predicts temperature and uncertainty
    there, and of one day on the global 1-degree grid, from longitude, latitude and day of the rest, compares the scores
    with `InverseDistance` and `SubsetGP` on the same split and coordinates, prints a table, writes the map as NetCDF
    (`output`) and as a picture (`plot`); None: not written.

    **Arguments:** `model`: what `NeuralProcessRegressor` takes. `observations`: use only so many profiles, drawn at
    random. `console`: where to print.
    """
    if not 0 < holdout < 1:
        raise ValueError(f"`holdout` must be a share between 0 and 1, both excluded, got {holdout}; 0.1 is usual.")
    console = Console() if console is None else console
    X, y, held_out = split(seed, holdout, observations)
    profiles = f"{len(y):,} Argo profiles of three months, {held_out.sum():,} of them held out."
    console.print(f"[bold]{FIELD}[/]: {profiles}", markup=True)

    regressor = NeuralProcessRegressor(
        model, coords="latlon", tile_size=64, progress=console.is_terminal, random_state=seed
    )
    ours = _score("npax", lambda X, y, Xs: regressor.fit(X, y).predict(Xs, return_std=True), X, y, held_out, console)
    lon, lat, mean, std, seconds = _map(regressor, X[~held_out], console)
    baselines = (
        ("inverse distance, 16", InverseDistance(16, seed)),
        ("GP, 2,000 profiles", SubsetGP(2000, seed)),
    )
    rows = [ours] + [
        _score(name, lambda X, y, Xs, b=baseline: b.fit(X, y).predict(Xs), X, y, held_out, console)
        for name, baseline in baselines
    ]
    console.print(table(rows))
    result = Result(rows, lon, lat, mean, std, seconds)
    if output is not None:
        write(result, output)
        console.print(f"map: {output}")
    if plot is not None:
        draw(result, plot)
        console.print(f"picture: {plot}")
    return result


def table(rows: list[Row]) -> Table:
    """Scores as a table for a terminal: °C, but for NLL (nats) and coverage."""
    out = Table(
        title="Scores on the held-out profiles, °C", title_justify="left", caption="seconds: from data to scores"
    )
    out.add_column("method", no_wrap=True)
    for heading in ("RMSE", "MAE", "NLL", "CRPS", "95 % cov.", "seconds"):
        out.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        s = row.scores
        errors = (f"{s[name]:.3f}" for name in ("rmse", "mae", "nll", "crps"))
        out.add_row(row.method, *errors, f"{s['coverage']:.1%}", f"{row.seconds:.1f}")
    return out


def write(result: Result, path: str | Path) -> None:
    """The map as CF NetCDF. Needs xarray and netCDF4 (`pip install 'npax[geo]'`)."""
    try:
        import netCDF4  # noqa: F401
        import xarray as xr
    except ImportError as error:
        raise ImportError("Writing NetCDF needs xarray and netCDF4: pip install 'npax[geo]'.") from error

    about = {"units": "degree_Celsius", "coordinates": "time pressure", "cell_methods": "area: point"}
    dataset = xr.Dataset(
        {
            "temp_mean": (
                ("lat", "lon"),
                result.mean.astype(np.float32),
                {"standard_name": "sea_water_temperature", "long_name": "predicted temperature", **about},
            ),
            "temp_std": (
                ("lat", "lon"),
                result.std.astype(np.float32),
                {"long_name": "standard deviation of a new measurement about the predicted temperature", **about},
            ),
        },
        coords={
            "lat": ("lat", result.lat, {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"}),
            "lon": ("lon", result.lon, {"standard_name": "longitude", "units": "degrees_east", "axis": "X"}),
            "time": ((), SHOWN.astype("datetime64[ns]"), {"standard_name": "time", "axis": "T"}),
            "pressure": ((), 100.0, {"standard_name": "sea_water_pressure", "units": "dbar", "positive": "down"}),
        },
        attrs={
            "Conventions": "CF-1.11",
            "title": TITLE,
            "source": "npax neural process, conditioned on Argo profiles",
            "comment": "From profiles of January to March 2016. No value on land and beyond 5 degrees of all of them.",
            "acknowledgement": ARGO_ACKNOWLEDGEMENT,
        },
    )
    path = Path(path)
    compressed = {name: {"zlib": True} for name in dataset.data_vars}
    with replaced(path) as partial:
        dataset.to_netcdf(partial, engine="netcdf4", encoding=compressed)


def draw(result: Result, path: str | Path) -> None:
    """The map as a picture of two panels. Needs matplotlib (`pip install 'npax[plot]'`)."""
    from ..plot import mean_and_std

    figure = mean_and_std(
        result.lon,
        result.lat,
        result.mean,
        result.std,
        coords="latlon",
        title=TITLE,
        name="temperature",
        units="°C",
    )
    with replaced(Path(path)) as partial:
        figure.savefig(partial, dpi=150)


def split(
    seed: int = 0, holdout: float = 0.1, observations: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Longitude, latitude and day of the profiles `X [n 3]`, temperatures `y [n]` and which of them are held out."""
    lon, lat, temp, day = argo()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(temp))[:observations]
    X, y = np.column_stack([lon, lat, day])[order], temp[order]
    held_out = np.zeros(len(y), bool)
    held_out[: max(round(holdout * len(y)), 1)] = True
    if held_out.all():
        raise ValueError(f"`holdout` {holdout} leaves no profile to predict from, of {len(y):,}; 0.1 is usual.")
    return X, y, held_out


def _score(name: str, predict: Callable, X, y, held_out, console) -> Row:
    console.print(f"{name} ...")
    started = time.perf_counter()
    mean, std = predict(X[~held_out], y[~held_out], X[held_out])
    seconds = time.perf_counter() - started
    return Row(name, score_report(y[held_out], mean, std), seconds)


def _map(regressor, X, console, reach=5.0):
    """The global 1-degree grid in the frame of the floats, with cells kept within `reach` degrees of one."""
    lon, lat = np.arange(20.5, 380), np.arange(-89.5, 90)
    shown = (SHOWN - ARGO_START) / np.timedelta64(1, "D")
    cells = np.column_stack([a.ravel() for a in np.meshgrid(lon, lat, shown)])
    console.print(f"map of {len(cells):,} cells ...")
    started = time.perf_counter()
    mean, std = regressor.predict(cells, return_std=True)
    seconds = time.perf_counter() - started
    console.print(f"map done in {seconds:.1f} s")
    distance, _ = KDTree(chords(X)).query(chords(cells))
    empty = is_land(*cells[:, :2].T) | (distance > 2 * np.sin(np.deg2rad(reach) / 2))
    mean, std = (np.where(empty, np.nan, a).reshape(lat.size, lon.size) for a in (mean, std))
    return lon, lat, mean, std, seconds
