"""Averages over regions of tables and grids: a value for each basin, district, month."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..counts import AbstractCounts
from ..training import AbstractGaps
from .by_name import ByName, Names, listed, numbers_of
from .grid import flat, moment_attributes, refuse_taken, require, xarray
from .table import with_levels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def average(
    observations: pd.DataFrame | xr.Dataset | xr.DataArray,
    target: Any,
    x: Hashable | Sequence[Hashable] = ("lon", "lat"),
    y: Hashable | Sequence[Hashable] | None = None,
    *,
    by: Hashable | Sequence[Hashable] | None = None,
    weights: Hashable | None = None,
    covariates: Hashable | Sequence[Hashable] | None = None,
    error: Hashable | Sequence[Hashable] | None = None,
    counts: AbstractCounts | None = None,
    exposure: Hashable | None = None,
    coords: str = "planar",
    finetune: int = 0,
    gaps: AbstractGaps | None = None,
    **options,
) -> Any:
    r"""Predicts the average of a scattered or gridded variable over each region of a target, and how certain it is:
    `<y>_mean` and `<y>_std` of each.

    ```python
    npax.average(floats, basins, x=["lon", "lat"], y="temp", by="basin", coords="latlon")  # basins: a grid of names
    npax.average(villages, districts, y="positive", by="district", weights="people",
                 counts=npax.counts.Binomial(), exposure="tested", coords="latlon")
    ```

    As a map's errors at near places are alike, an average is less certain than its cells are if their errors are taken
    for independent, and more than each of them: see `NeuralProcessRegressor.predict_average`, which gives covariances
    of regions, too.

    **Arguments:**

    - `observations`, `x`, `y`, `covariates`, `error`, `counts`, `exposure`, `coords`, `finetune`, `gaps`, `options`: as
      for `npax.interpolate`.
    - `target`: places all over the regions, as for `interpolate`: rows of a DataFrame or cells of a grid, which say
      what they belong to. Cells of a grid without coordinates or covariates are in no region.
    - `by`: what names the region of each place, a column of the table, or a variable or coordinate of the grid (of a
      DataArray, its own name), or several: `["year", "basin"]`. Places where it is missing are in no region. None: all
      places are one region.
    - `weights`: the name of what each place counts, its area or the people there. None: all rows of a table the same;
      so do the cells of a grid, but for those of longitudes and latitudes (`coords="latlon"`), which count as the
      cosine of the latitude, their area where they are evenly spaced.

    **Returns:** for a DataFrame one with a row for each region, whose index is `by`; for a grid a Dataset with the
    dimension `by` (with several of these, a dimension each), whose variables carry the attributes of `y`; of one region
    a row, and numbers.

    **Cost:** a prediction at all places, and some seconds for a few regions, a minute or two for some
    hundreds (`npax.inference.average_covariance`).

    **Raises:** what `interpolate` does, and `ValueError` for weights that are negative or missing, or zero all over a
    region, or where no place is in any.
    """
    names = Names.of(observations, x, y, covariates, error, exposure)
    given = ByName.of(observations, target, names, counts=counts, coords=coords, finetune=finetune, **options)
    by = [] if by is None else listed(by)
    refuse_taken(by, names.ys, "by")
    of = _of_rows if given.grid is None else _of_cells
    parts, counted, attributes = of(target, given, by, weights)
    cells = np.asarray(given.wanted if given.grid is None else given.grid.points(), np.float64)
    there = np.isfinite(cells).all(axis=1) & parts.notna().all(axis=1).to_numpy()
    if not there.any():
        raise ValueError(
            f"No place of `target` is in a region: of all {len(cells):,} coordinates are missing, or one of {by}."
        )
    found, number = _regions(parts[there])
    shares = np.zeros((len(found), len(number)))
    shares[number, np.arange(len(number))] = counted[there]
    fitted = given.fit(finetune, gaps)
    moments = fitted.predict_average(cells[there], shares, return_std=True)
    mean, std = (np.reshape(a, (len(found), -1)) for a in moments)
    for i, name in enumerate(names.ys):
        found[f"{name}_mean"], found[f"{name}_std"] = mean[:, i], std[:, i]
    return found if given.grid is None else _gridded(found, by, attributes)


def _regions(parts):
    """A table of the regions, their names its index, without columns, and the number of that of each place."""
    if not len(parts.columns):
        return parts.iloc[:1].reset_index(drop=True), np.zeros(len(parts), int)
    grouped = parts.groupby([*parts.columns], observed=True)
    return grouped.size().to_frame()[[]], grouped.ngroup().to_numpy()


def _of_rows(target, given, by, weights):
    """Of the rows of a table: what they belong to, as columns, what each counts, `[n]`, and no attributes."""
    held = with_levels(target, [*by, *([] if weights is None else [weights])])
    require(held.columns, by, "target")
    parts = held[by].reset_index(drop=True)
    return parts, np.ones(len(parts)) if weights is None else numbers_of(held, [weights], "target")[:, 0], {}


def _of_cells(target, given, by, weights):
    """Of the cells of a grid: the same, and the attributes of the variables that the result has."""
    xr = xarray()
    if isinstance(target, xr.DataArray) and (target.name is None or target.name in target.coords):
        held = target.coords.to_dataset()
    elif isinstance(target, xr.DataArray):
        held = target.to_dataset(name=target.name)
    else:
        held = target if isinstance(target, xr.Dataset) else xr.Dataset(coords=target)
    parts = _columns(held, by, given.grid)
    if weights is not None:
        counted = numbers_of(_columns(held, [weights], given.grid), [weights], "target")[:, 0]
    elif given.regressor.coords == "latlon":
        counted = np.cos(np.deg2rad(np.asarray(given.grid.points()[:, 1], np.float64)))
    else:
        counted = np.ones(given.grid.size)
    moments = {
        f"{name}_{kind}": moment_attributes(kind, name, given.attributes.get(name, {}))
        for name in given.names.ys
        for kind in ("mean", "std")
    }
    return parts, counted, {**moments, **{name: held[name].attrs for name in by}}


def _columns(held, names, grid):
    """Variables of a grid as columns, a row for each cell."""
    import pandas as pd

    require(held.variables, names, "target")
    for name in names:
        other = [d for d in held[name].dims if d not in grid.sizes]
        if other:
            raise ValueError(f"{name!r} of `target` varies along {other[0]!r}, as no place does: choose one of these.")
    cells = {name: flat(held[name].variable.compute(), grid.sizes) for name in names}
    return pd.DataFrame(cells, index=range(grid.size))


def _gridded(found, by, attributes):
    dataset = found.to_xarray()
    dataset = dataset if by else dataset.isel(index=0, drop=True)
    for name, given in attributes.items():
        dataset[name].attrs = given
    return dataset
