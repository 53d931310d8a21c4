"""Fields on a grid of latitude, longitude and time: weather, climate, the ocean."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from ._base import AbstractTasks
from .scaling import Scaling
from .split import check_sizes, split

if TYPE_CHECKING:
    import xarray as xr


class Region(NamedTuple):
    """A box of the earth in degrees, both ends included."""

    lat: tuple[float, float]
    lon: tuple[float, float]


CENTRAL_EUROPE = Region((42.0, 53.0), (8.0, 28.0))
WESTERN_EUROPE = Region((42.0, 53.0), (-4.0, 8.0))
NORTHERN_EUROPE = Region((53.0, 62.0), (8.0, 28.0))
"""The regions of TE F.4: models are trained in the first."""


class GriddedTask(AbstractTasks):
    r"""A field in space and time, seen at a few nodes of a small block of its grid (TE F.4).

    A block of `crop` = (latitudes, longitudes, times) nodes, `stride` = (...) apart, is cut at random out of the
    field; of its nodes $n \sim U\{\texttt{low}, \dots, \texttt{high}\}$ are the context and the others the targets.
    Nodes without a value (NaN: clouds, land under an ocean) are neither. $x$ = (latitude, longitude, hours) and, where
    it is known, elevation; inputs and outputs are standardised by `scaling`.

    Make one by `gridded`. **Shapes:** `high` context slots, `nt` targets; `dx` = 3 or 4, one column of `y`.
    **Attributes:** `values`, the standardised field, NaN where missing; `lat`, `lon`, `time`, its standardised axes;
    `elevation`, standardised, or None.
    """

    values: Float[Array, "time lat lon"]
    lat: Float[Array, " lat"]
    lon: Float[Array, " lon"]
    time: Float[Array, " time"]
    elevation: Float[Array, "lat lon"] | None
    scaling: Scaling = eqx.field(static=True)
    crop: tuple[int, int, int] = eqx.field(static=True)
    stride: tuple[int, int, int] = eqx.field(static=True)
    low: int = eqx.field(static=True)
    high: int = eqx.field(static=True)
    nt: int = eqx.field(static=True)

    @property
    def dx(self) -> int:
        return 3 if self.elevation is None else 4

    def block(self, key: PRNGKeyArray) -> tuple[Float[Array, "times lats lons dx"], Float[Array, "times lats lons 1"]]:
        """Locations and values of a whole block, for pictures."""
        sizes = (len(self.lat), len(self.lon), len(self.time))
        last = [n - (c - 1) * s for n, c, s in zip(sizes, self.crop, self.stride, strict=True)]
        start = jr.randint(key, (3,), 0, jnp.array(last))
        i, j, t = (a + s * jnp.arange(c) for a, c, s in zip(start, self.crop, self.stride, strict=True))
        axes = jnp.meshgrid(self.time[t], self.lat[i], self.lon[j], indexing="ij")
        columns = [axes[1], axes[2], axes[0]]
        if self.elevation is not None:
            columns.append(jnp.broadcast_to(self.elevation[i[:, None], j], axes[0].shape))
        return jnp.stack(columns, axis=-1), self.values[t[:, None, None], i[:, None], j][..., None]

    def sample(self, key):
        cut, choice = jr.split(key)
        x, y = (a.reshape(-1, a.shape[-1]) for a in self.block(cut))
        valid = jnp.isfinite(y[:, 0]) & jnp.isfinite(x).all(axis=1)
        return split(choice, x, y, valid, low=self.low, high=self.high, nt=self.nt)


def gridded(
    dataset: xr.Dataset,
    y: str,
    *,
    region: Region | None = None,
    scaling: Scaling | None = None,
    crop: tuple[int, int, int] = (15, 15, 5),
    stride: tuple[int, int, int] = (1, 1, 1),
    low: int | None = None,
    high: int | None = None,
    nt: int | None = None,
    lat: str = "lat",
    lon: str = "lon",
    time: str = "time",
    elevation: str | None = "elevation",
) -> GriddedTask:
    """Tasks cut out of a variable of an xarray dataset: NetCDF, Zarr or what else `xarray` opens.

    ```python
    from npax.tasks import CENTRAL_EUROPE, WESTERN_EUROPE

    dataset = xarray.open_dataset("era5.nc")
    train = npax.tasks.gridded(dataset, "t2m", region=CENTRAL_EUROPE, nt=256)
    test = npax.tasks.gridded(dataset, "t2m", region=WESTERN_EUROPE, scaling=train.scaling)
    ```

    **Arguments:**

    - `region`: a box to stay within (default: the whole grid). `scaling`: that of the tasks a model was trained on
      (default: means and standard deviations of this region).
    - `crop`, `stride`: nodes of a block, and steps of the grid between them: latitude, longitude, time.
    - `low`, `high`: fewest and most context points (default: a hundredth of the block, ours, and a third, TE); `nt`:
      targets (default: all others).
    - `lat`, `lon`, `time`, `elevation`: the names of the coordinates, and of a variable of latitude and longitude;
      an elevation that is not there, or None, leaves out its column.

    **Raises:** `ValueError` for names that are not there, a variable of other dimensions or not of numbers, and a
    region smaller than a block or without values. **Pitfalls:** the field is held in memory, on the device.
    """
    if not hasattr(dataset, "data_vars"):
        raise TypeError(
            f"`dataset` must be an xarray Dataset, got {type(dataset).__name__}; of a DataArray `.to_dataset(name=y)`."
        )
    elevation = elevation if elevation in dataset.variables else None
    for name in (y, lat, lon, time):
        if name not in dataset.variables:
            raise ValueError(f"The dataset has no '{name}'; it has: {', '.join(map(str, dataset.variables))}.")
    _check_variable(dataset[y], (time, lat, lon))
    if elevation is not None:
        _check_variable(dataset[elevation], (lat, lon))
    region = None if region is None else Region(*region)
    part = dataset if region is None else _within(dataset, region, lat, lon)
    where = "the grid" if region is None else f"{region}"
    _check_block(crop, stride, tuple(part.sizes[name] for name in (lat, lon, time)), where)
    nodes = int(np.prod(crop))
    low, high = nodes // 100 if low is None else low, nodes // 3 if high is None else high
    values = part[y].transpose(time, lat, lon).to_numpy().astype(np.float64)
    if not np.isfinite(values).any():
        raise ValueError(f"'{y}' has no values in {where}: all are NaN or infinite.")
    hours = _hours(part[time].to_numpy())
    axes = [np.asarray(part[name].to_numpy(), np.float64) for name in (lat, lon)]
    height = None
    if elevation is not None:
        height = part[elevation].transpose(lat, lon).to_numpy().astype(np.float64)
    columns = [*axes, hours, *([] if height is None else [height.ravel()])]  # as often as they are repeated on the grid
    if scaling is None:
        scaling = Scaling.of_columns(columns, [values.ravel()])
    if len(scaling.x_mean) != len(columns):
        raise ValueError(f"`scaling` is of {len(scaling.x_mean)} columns of x, the tasks have {len(columns)}.")

    def scaled(column, i):
        return jnp.asarray((column - scaling.x_mean[i]) / scaling.x_std[i], jnp.float32)

    return GriddedTask(
        values=jnp.asarray(scaling.y(values[..., None])[..., 0], jnp.float32),
        lat=scaled(axes[0], 0),
        lon=scaled(axes[1], 1),
        time=scaled(hours, 2),
        elevation=None if height is None else scaled(height, 3),
        scaling=scaling,
        crop=crop,
        stride=stride,
        low=low,
        high=high,
        nt=check_sizes(low, high, nt, nodes),
    )


def _check_variable(variable, dims):
    has = variable.dims
    if set(has) != set(dims):
        raise ValueError(
            f"'{variable.name}' must have the dimensions {', '.join(dims)}; it has {', '.join(map(str, has))}. "
            "Select one time, level or member first."
        )
    if variable.dtype.kind not in "iufb":
        raise ValueError(f"'{variable.name}' must hold numbers, it holds {variable.dtype}.")


def _check_block(crop, stride, sizes, where):
    for name, numbers in (("crop", crop), ("stride", stride)):
        if np.shape(numbers) != (3,) or not all(isinstance(n, int | np.integer) for n in numbers):
            raise ValueError(
                f"`{name}` must be three whole numbers, of latitudes, longitudes and times; got {numbers!r}."
            )
    spans = tuple((c - 1) * s + 1 for c, s in zip(crop, stride, strict=True))
    if min(crop) < 1 or min(stride) < 1 or any(n < span for n, span in zip(sizes, spans, strict=True)):
        raise ValueError(
            f"A block of `crop`={crop} nodes, `stride`={stride} apart, spans {spans} of the grid; {where} has "
            f"{sizes} (latitudes, longitudes, times). Choose a smaller block or a larger region."
        )


def _within(dataset, region, lat, lon):
    """The nodes of the dataset in a region, from west to east; longitudes wrap and are those of the region."""
    if region.lat[0] > region.lat[1]:
        raise ValueError(f"`region` must have its southern latitude first, got lat={region.lat}: turn them round.")
    lats, west = dataset[lat].to_numpy(), region.lon[0]
    width = region.lon[1] - west if region.lon[1] >= west else (region.lon[1] - west) % 360.0
    east = (dataset[lon].to_numpy().astype(np.float64) - west + 1e-6) % 360.0 - 1e-6
    order = np.argsort(east)
    order = order[east[order] <= width + 1e-6]
    order = order[np.diff(east[order], prepend=-np.inf) > 1e-6]  # -180 and 180 are one meridian
    inside = (lats >= region.lat[0] - 1e-6) & (lats <= region.lat[1] + 1e-6)
    return dataset.isel({lat: inside, lon: order}).assign_coords({lon: (lon, west + east[order])})


EPOCH = np.datetime64("1970-01-01T00:00:00", "s")


def _hours(times):
    """Hours, of dates since 1970 in their own calendar (cftime's too), and of durations; other numbers are taken to be
    hours."""
    if times.dtype.kind in "mM":
        return (times - EPOCH if times.dtype.kind == "M" else times) / np.timedelta64(1, "h")
    if times.dtype.kind == "O":
        start = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
        return np.array([(date - date.replace(year=1970, **start)) / timedelta(hours=1) for date in times])
    return np.asarray(times, np.float64)
