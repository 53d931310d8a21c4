"""Averages over regions of tables and grids: a value for each basin, district, month."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..counts import AbstractCounts
from ..training import AbstractGaps
from .by_name import ByName, Names, link_of, listed, numbers_of, of_levels, refuse_twice
from .grid import flat, require, xarray
from .missing import refuse_undecoded
from .summary import Summary, what
from .table import of_series, with_levels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

TOGETHER = 256
"""Regions that share the places that stand for all of them."""
LARGEST = 2**25
"""Regions times places, of which there are several arrays at a time."""


def average(
    observations: pd.DataFrame | pd.Series | xr.Dataset | xr.DataArray,
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
    lognormal: bool = False,
    coords: str = "planar",
    quantiles: float | Sequence[float] | np.ndarray = (),
    above: float | Sequence[float] | np.ndarray = (),
    finetune: int = 0,
    gaps: AbstractGaps | None = None,
    **options,
) -> Any:
    r"""Predicts the average of a scattered or gridded variable over each region of a target, and how certain it is:
    `<y>_mean` and `<y>_std` of each, and if asked for quantiles and probabilities.

    ```python
    npax.average(floats, basins, x=["lon", "lat"], y="temp", by="basin", coords="latlon")  # basins: a grid of names
    npax.average(villages, districts, y="positive", by="district", weights="people",
                 counts=npax.counts.Binomial(), exposure="tested", coords="latlon")
    ```

    As a map's errors at near places are alike, an average is less certain than independent errors of its cells would
    make it, but more certain than any single cell. 95 % intervals cover 89 to 94 %, of average rates of counts 86 to
    89 % (`benchmarks/averages.py`). `NeuralProcessRegressor.predict_average` gives covariances of regions, too.

    **Arguments:**

    - `observations`, `x`, `y`, `covariates`, `error`, `counts`, `exposure`, `lognormal`, `coords`, `finetune`, `gaps`,
      `options`: as for `npax.interpolate`.
    - `target`: places all over the regions, as for `interpolate`: rows of a DataFrame or cells of a grid, which say
      what they belong to. Cells of a grid without coordinates or covariates are in no region.
    - `by`: what names the region of each place, a column of the table, or a variable or coordinate of the grid (of a
      DataArray, its own name), or several: `["year", "basin"]`. Places where it is missing (NaN, None, "") are in
      no region. None: all places are one region.
    - `quantiles`, `above`: as for `interpolate`, of the average: `<y>_q0.025`, `<y>_above_20`.
    - `weights`: the name of what each place counts, its area or the people there. None: all rows of a table the same;
      so do the cells of a grid, but for those of longitudes and latitudes (`coords="latlon"`), which count as the
      cosine of the latitude, their area where they are evenly spaced (half of it where a meridian is there twice, 0
      and 360).

    **Returns:** for a DataFrame one with a row for each region, whose index is `by`; for a grid a Dataset with the
    dimension `by` (with several of these, a dimension each), whose variables carry the attributes of `y`; of one region
    a row, and numbers. The attribute `strategy` (a dictionary by name where columns `y` differ) says whether the
    prediction is exact or tiled, `places_in_no_region` how many are left out.

    **Cost:** a prediction at all places, and 0.02 to 0.1 s on a CPU core for each place that is asked how others depend
    on it (`npax.inference.average_covariance`): 64 of one region, 32 of each of several, 1,024 of any number up to 256.

    **Raises:** what `interpolate` does, and `ValueError` for weights that are negative or missing, or zero all over a
    region, or where no place is in any.
    """
    by = _names(by, "by")
    observations, y = of_series(observations, y)
    names = Names.of(observations, x, y, covariates, error, exposure)
    link = link_of(counts, lognormal)
    summary = Summary.of(link, quantiles, above, f"the average of {what(link, False)}")
    given = ByName.of(observations, target, names, link=link, coords=coords, finetune=finetune, gaps=gaps, **options)
    summary.refuse_taken(by, names.ys, "by")
    of = _of_rows if given.grid is None else _of_cells
    parts, counted, held = of(target, given, by, _names(weights, "weights"))
    cells = np.asarray(given.wanted if given.grid is None else given.grid.points(), np.float64)
    there = np.isfinite(cells).all(axis=1) & parts.notna().all(axis=1).to_numpy()
    if not there.any():
        raise ValueError(
            f"No place of `target` is in a region: of all {len(cells):,} coordinates are missing, or one of {by}."
            if len(cells)
            else "`target` has no places."
        )
    left_out = {"places_in_no_region": int(np.sum(~there))}
    cells, counted = cells[there], counted[there]
    found, number = _regions(parts[there])
    if weights is not None:
        _check_weights(counted, number, found.index, weights)
    strategies: dict[Hashable, str] = {}
    for part in given.parts():
        fitted = part.fit(finetune, gaps)
        moments = _moments(fitted, cells, number, counted, len(part.names.ys))
        found = summary.beside(found, part.names.ys, summary.of_averages(*moments))
        strategies |= dict.fromkeys(part.names.ys, of_levels(fitted).strategy_)
    if given.grid is None:
        one = len({*strategies.values()}) == 1
        found.attrs |= {"strategy": strategies[names.ys[0]] if one else strategies, **left_out}
        return found
    gridded = found.to_xarray()
    gridded = (gridded if by else gridded.isel(index=0, drop=True)).assign_attrs(left_out)
    attributes: dict[Hashable, Any] = {}
    for y, strategy in strategies.items():
        attributes |= dict(summary.variables([y], given.attributes, strategy=strategy))
    attributes |= {n: held[n].attrs for n in by}
    for name, own in attributes.items():
        gridded[name].attrs = own
    return gridded


def _moments(fitted, cells, number, counted, ys):
    """Means and standard deviations of the averages over regions, `[regions ys]` each."""
    mean, std = (np.empty((number.max() + 1, ys)) for _ in range(2))
    for some in _batches(np.bincount(number)):
        inside = np.isin(number, some)
        shares = (number[inside] == some[:, None]) * counted[inside]
        moments = fitted.predict_average(cells[inside], shares, return_std=True)
        mean[some], std[some] = (np.reshape(a, (len(some), -1)) for a in moments)
    return mean, std


def _names(names, argument):
    """**Raises** `TypeError` for values in place of the names of columns, `ValueError` for one that is given twice."""
    each = [] if names is None else listed(names)
    if hasattr(names, "shape") or not all(isinstance(name, Hashable) for name in each):
        raise TypeError(f"`{argument}` is a name here: add the values to `target`, and give their column's name.")
    if len(set(each)) < len(each):
        raise ValueError(f"`{argument}` must name every column once, got {each}.")
    if argument == "weights" and len(each) > 1:
        raise ValueError(f"`weights` must be one name, got {each}: multiply the columns first.")
    return each


def _check_weights(counted, number, regions, name):
    wrong = ~(np.isfinite(counted) & (counted >= 0))
    if wrong.any():
        raise ValueError(
            f"`weights`, {name!r}, must be finite and not negative, got {counted[wrong][0]:g} at {wrong.sum():,} of "
            f"{len(counted):,} places, the first in the region {regions[number[wrong]].tolist()[0]!r}. Fill what is "
            "missing (`.fillna(0)`), or leave these places out."
        )
    most = np.zeros(len(regions))
    np.maximum.at(most, number, counted)
    if not most.all():
        raise ValueError(
            f"`weights`, {name!r}, must not be zero all over a region, as of {regions.tolist()[most.argmin()]!r}."
        )


def _batches(sizes: np.ndarray) -> Iterator[np.ndarray]:
    """Numbers of the regions that are asked for together, from the number of places in each."""
    first = 0
    while first < len(sizes):
        some = np.arange(first, min(first + TOGETHER, len(sizes)))
        while len(some) > 1 and len(some) * sizes[some].sum() > LARGEST:
            some = some[: len(some) // 2]
        yield some
        first += len(some)


def _regions(parts):
    """A table of the regions, their names its index, without columns, and the number of that of each place."""
    if not len(parts.columns):
        return parts.iloc[:1].reset_index(drop=True), np.zeros(len(parts), int)
    grouped = parts.groupby([*parts.columns], observed=True)
    return grouped.size().to_frame()[[]], grouped.ngroup().to_numpy()


def _without_empty(parts):
    """Empty texts are missing: files of grids have no other word for it."""
    return parts.mask(parts == "")


def _of_rows(target, given, by, weights):
    """Of the rows of a table: what they belong to, as columns; what each counts, `[n]`; and what holds these."""
    held = with_levels(target, [*by, *weights])
    require(held.columns, by, "target")
    refuse_twice(held, by, "target")
    parts = _without_empty(held[by].reset_index(drop=True))
    return parts, numbers_of(held, weights, "target")[:, 0] if weights else np.ones(len(parts)), held


def _of_cells(target, given, by, weights):
    """The same of the cells of a grid."""
    xr = xarray()
    if isinstance(target, xr.DataArray) and (target.name is None or target.name in target.coords):
        held = target.coords.to_dataset()
    elif isinstance(target, xr.DataArray):
        held = target.to_dataset(name=target.name)
    else:
        held = target if isinstance(target, xr.Dataset) else xr.Dataset(coords=target)
    parts = _without_empty(_columns(held, by, given.grid))
    if weights:
        counted = numbers_of(_columns(held, weights, given.grid), weights, "target")[:, 0]
    elif given.regressor.coords == "latlon":
        counted = _areas(given.grid)
    else:
        counted = np.ones(given.grid.size)
    return parts, counted, held


def _areas(grid):
    """Of evenly spaced cells, as cosines of the latitude; a meridian that is there twice (0 and 360) has half each."""
    areas = np.cos(np.deg2rad(np.asarray(grid.points()[:, 1], np.float64)))
    lon, lat = grid.axes[:2]
    if lon.ndim == 1 and lon.size > 1 and lon.dims[0] not in lat.dims and abs(lon[-1] - lon[0]) == 360:
        areas *= flat(lon.copy(data=np.where(np.isin(np.arange(lon.size), [0, lon.size - 1]), 0.5, 1.0)), grid.sizes)
    return areas


def _columns(held, names, grid):
    """Variables of a grid as columns, a row for each cell."""
    import pandas as pd

    require(held.variables, names, "target")
    for name in names:
        other = [d for d in held[name].dims if d not in grid.sizes]
        if other:
            raise ValueError(
                f"{name!r} of `target` varies along {other[0]!r}, as no place does: choose one of these. "
                "(Regions that overlap are `weights` `[regions n]` of `NeuralProcessRegressor.predict_average`.)"
            )
        if held[name].dtype.kind in "iuf":
            refuse_undecoded(held[name], name, "`target`")
    cells = {name: flat(held[name].variable.compute(), grid.sizes) for name in names}
    return pd.DataFrame(cells, index=range(grid.size))
