"""Tables and grids in, tables and grids out: pandas and xarray, names, units and coordinates kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import true_or_false
from ..counts import AbstractCounts
from ..files import is_remote
from ..likelihoods import of_real_numbers
from ..training import AbstractGaps
from .by_name import ByName, Names, link_of, of_levels
from .degrees import OF_SPHERE
from .likelihood import warn_of_noise, warn_of_shape
from .moments import complete, lazy_moments, moments_at
from .pile import warn_of_a_pile
from .summary import Summary, what
from .table import of_one_coordinate, of_series

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LOOKED_AT = 2**12
"""Places of a grid that are compared with where the observations are, before anything is predicted."""


def interpolate(
    observations: pd.DataFrame | pd.Series | xr.Dataset | xr.DataArray,
    target: Any,
    x: Hashable | Sequence[Hashable] = ("lon", "lat"),
    y: Hashable | Sequence[Hashable] | None = None,
    *,
    covariates: Hashable | Sequence[Hashable] | None = None,
    error: Hashable | Sequence[Hashable] | None = None,
    counts: AbstractCounts | None = None,
    exposure: Hashable | None = None,
    lognormal: bool = False,
    coords: str = "planar",
    include_noise: bool = True,
    quantiles: float | Sequence[float] | np.ndarray = (),
    above: float | Sequence[float] | np.ndarray = (),
    finetune: int = 0,
    gaps: AbstractGaps | None = None,
    store: str | Path | None = None,
    **options,
) -> Any:
    r"""Predicts a scattered or gridded variable at other places: `<y>_mean` and `<y>_std` there, and if asked for
    quantiles and probabilities.

    ```python
    grid = {"lat": np.arange(35, 70.1, 0.25), "lon": np.arange(-10, 30.1, 0.25)}
    field = npax.interpolate(stations, grid, x=["lon", "lat"], y="temp", coords="latlon")
    ```

    **Arguments:**

    - `observations`: a DataFrame, or a Dataset or DataArray (points along a dimension, or a grid whose gaps are NaN,
      their coordinates too in swaths); what is lazy in them is computed. Values along a dimension that none of `x` has
      (times) are repeated observations of the same places, with a warning. So are rows of a table at the same places,
      with one where there are 5 at each or more. A Series is a table of its values and the levels of its index, which
      must have names; as `target`, where `x` is one name, a Series or an index holds the places themselves.
    - `target`: where to predict. A DataFrame of points; a Dataset or DataArray whose coordinates or variables
      include `x` (regular, curvilinear or points; predictions are NaN where a coordinate is, and a DataFrame may have
      none that is); or the coordinates alone, as a mapping from name to values.
    - `x`: the name or names of the coordinates, the same in both. Longitude and latitude need `coords="latlon"`, and
      come first, others (depth, time) after them. Dates and durations are taken where a coordinate is scaled by itself
      (`coords="planar"`, and beside longitude and latitude): their unit is no matter there, unless all observations
      are of one date.
    - `y`: the name or names of what is predicted; a DataArray needs none. The pretrained models predict each by itself:
      from the places where it is known if these differ, else by one strategy (call once for each if their noise
      differs). A model of several columns predicts them together, from the places where all are known.
    - `covariates`: names of what tells something of `y` beside the places, in `observations` and `target`, such as an
      elevation: see `NeuralProcessRegressor`. Predictions are NaN where they are, as where a coordinate is. What only a
      gridded `target` has, such as a model of the terrain, is read off there at the places of the observations: linear
      between its cells (classes should be zeros and ones, directions sine and cosine), beside cells without a value
      that of the nearest that has one. Observations where it has none, or more than half a cell outside, are left out
      with a warning, or refused if `on_missing="raise"`.
    - `error`: the name of what holds known standard errors of `y` (or names, one for each of `y`), zero where no noise
      is known; see `NeuralProcessRegressor.fit`.
    - `counts`, `exposure`: where `y` holds counts, what they are of, `npax.counts.Poisson()` or
      `npax.counts.Binomial()`, and the name of what holds people, years, or how many were tested (1 where there is
      none): the result is the rate of one unit of exposure, `CountRegressor`'s.
    - `lognormal`: `y` is positive, and its logarithm is predicted as normal: `LogNormalRegressor`, for what is skewed,
      such as concentrations or rain.
    - `include_noise`: standard deviation of a new observation, or of the noiseless function (where the model tells them
      apart, as the pretrained ones do); of counts, the rate of a single further place, or that which varies smoothly.
    - `quantiles`: probabilities, such as `[0.025, 0.975]` for the ends of 95 % intervals, called `<y>_q0.025` and
      `<y>_q0.975`.
    - `above`: thresholds, such as 0.2 for `<y>_above_0.2`, the probability that the value is larger (of counts: that
      the rate is). Both are of what the standard deviation is of: see `include_noise`.
    - `finetune`, `gaps`: as for `NeuralProcessRegressor.fit`; adapts the model to the observations first.
    - `store`: a folder to write a gridded prediction to, block by block, as Zarr (format 3; the name usually ends in
      `.zarr`). Grids of any size take the memory of one block of 65,536 places. After whatever ends the process the
      same call goes on with the first block that was not finished; a finished prediction is not repeated.
    - `options`: those of `NeuralProcessRegressor` (`model`, `strategy`, `on_missing`, `progress`, ...).

    **Returns:** for a DataFrame, a copy of it with two or more further columns per `y`; else a Dataset on the
    dimensions and coordinates of `target`, whose variables carry the attributes of `y`, units included (of `counts`
    neither, for they are rates of one unit of exposure). What has these names already, as after an earlier prediction,
    is replaced. The mean's attribute `strategy` (for a DataFrame: its own, a dictionary by name if they differ) says
    whether the prediction is exact or tiled.

    Where `target` is chunked by dask (a DataArray such as `da.zeros(shape, chunks=...)` with these coordinates; an
    xarray Dataset of coordinates alone has no chunks, `store` does for it) the result is lazy, with the same chunks,
    for any dask scheduler. The model is sent to each worker once; a block gets its own coordinates and, of the
    observations, those that it sees (if the coordinates themselves are lazy: each worker gets all of them, once). Its
    numbers do not depend on the chunks.
    With `store` the result is what has been written, opened lazily.

    **Warns** with `npax.estimators.PlanarDegrees` where longitudes and latitudes are taken for a plane and the sphere
    would make a difference, and with `npax.estimators.Extrapolation` where targets lie so far outside the observations
    that intervals there are too narrow (counted among 4,096 places of a larger grid, and not at all where the
    coordinates themselves are lazy); of many values that are the least of them, such as no rain, where `above` or
    `quantiles` are asked for; and of coordinates and covariates whose attributes `units` are metres on one side,
    say, and kilometres on the other.

    **Raises:** `ValueError` for names that are not there, `quantiles` that are no probabilities, columns of several
    levels, dates as values, beside numbers or where a unit is needed, and whatever `NeuralProcessRegressor.fit`
    finds wrong; `TypeError` for what is no table and no grid, a dask DataFrame as `target`, or values in the place of
    names; `FileExistsError` where `store` holds anything else than this very prediction.
    """
    true_or_false(include_noise=include_noise)
    observations, y = of_series(observations, y)
    names = Names.of(observations, x, y, covariates, error, exposure)
    target = of_one_coordinate(target, names.x)
    ys = names.ys
    link = link_of(counts, lognormal)
    summary = Summary.of(link, quantiles, above, what(link, include_noise))
    store = None if store is None else _folder(store)
    if store is not None and any("/" in str(name) for name in (*names.columns, *ys)):
        raise ValueError(
            f"A store takes no names with '/', which divides its groups; got {[*names.columns, *ys]}: rename them."
        )
    given = ByName.of(observations, target, names, link=link, coords=coords, finetune=finetune, gaps=gaps, **options)
    grid = given.grid
    if grid is None and store is not None:
        raise ValueError("`store` takes a gridded target, got a DataFrame: pass `target.to_xarray()`.")
    if grid is not None:
        grid = grid.told(_about(observations, names.x, coords))
        summary.refuse_taken(grid.frame.variables, ys, "target")
        stacked = [name for name, index in grid.frame.indexes.items() if index.nlevels > 1]
        if store is not None and stacked:
            raise ValueError(f"A store takes no stacked coordinates, got {stacked[0]!r}: `target.reset_index(...)`.")
    else:
        summary.refuse_taken(names.columns, ys, "target")
    parts = given.parts()
    if store is not None and len(parts) > 1:
        raise ValueError(
            f"`store` takes columns `y` of the same gaps, and those of {ys} differ: write a store (.zarr) for each."
        )
    out, strategies = target if grid is None else grid.frame, []
    for part in parts:
        fitted = part.fit(finetune, gaps)
        reg = of_levels(fitted)
        strategies.append(reg.strategy_)
        if summary.quantiles or summary.above:
            warn_of_shape(reg.model_.likelihood)
            if link is None and of_real_numbers(reg.model_.likelihood):
                for name, values in zip(part.names.ys, part.values.T, strict=True):
                    warn_of_a_pile(values, name)
        if grid is None:
            out = _at_points(reg, out, given.wanted, part.names.ys, include_noise, summary)
            continue
        warn_of_noise(reg.model_.likelihood, include_noise)
        if not grid.lazy:
            some = np.asarray(grid.some(LOOKED_AT), np.float64)
            there = complete(some)
            reg._warn_of_far(there, round(grid.size * len(there) / len(some)) if len(some) < grid.size else None)
        request = (*fitted._request(), include_noise)
        found = _on_grid(reg, grid, part.names.ys, given.attributes, include_noise, summary, store, request)
        out = found if len(parts) == 1 else out.assign({name: found[name].variable for name in found.data_vars})
    if grid is None:
        out.attrs["strategy"] = strategies[0] if len({*strategies}) == 1 else dict(zip(ys, strategies, strict=True))
    return out


def _about(observations, x, coords):
    """Attributes of coordinates: those that observations on a grid give them, and on the sphere those of degrees."""
    of_sphere = OF_SPHERE if coords == "latlon" else ()
    given = getattr(observations, "coords", {}) if hasattr(observations, "dims") else {}
    about: dict[Hashable, dict[str, Any]] = {}
    for i, name in enumerate(x):
        own = dict(given[name].attrs) if name in given else {}
        kept = {key: own[key] for key in ("units", "standard_name", "long_name", "axis", "positive") if key in own}
        about[name] = {**(of_sphere[i] if i < len(of_sphere) else {}), **kept}
    return {name: each for name, each in about.items() if each}


def _folder(store):
    """**Raises** `TypeError` or `ValueError` for what is no folder of this machine."""
    if not isinstance(store, str | Path):
        raise TypeError(f"`store` must be the path of a folder, got {type(store).__name__}.")
    if is_remote(store):
        raise ValueError(
            f"`store` must be a folder on this machine, got '{store}': write one and copy it, or pass a `target` that "
            "is chunked by dask, and write the result by its own `.to_zarr(...)`."
        )
    return Path(store).expanduser()


def _at_points(reg, target, places, ys, include_noise, summary):
    moments = reg.predict(places, return_std=True, include_noise=include_noise)
    told = summary(np.concatenate([a.reshape(-1, len(ys)) for a in moments], axis=1))
    return summary.beside(target, ys, told)


def _on_grid(reg, grid, ys, attributes, include_noise, summary, store, request):
    predictor = reg._predictor()
    about = summary.variables(ys, attributes, strategy=reg.strategy_)
    variables = [(name, {**own, **grid.mapping}) for name, own in about]
    if store is not None or grid.chunks:
        predictor.progress = False  # of one block: the bar is that of all blocks, or dask's
    if store is not None:
        from .store import Store

        return Store(store, grid, variables, (*request, reg.strategy_)).fill(
            lambda places: summary(moments_at(predictor, places, include_noise)), progress=reg.progress
        )
    if grid.chunks:
        moments = lazy_moments(predictor, grid, include_noise)
        chunks = (*moments.chunks[:-1], (len(variables),))
        told = moments.map_blocks(summary, dtype=np.float64, chunks=chunks, meta=np.empty((0,) * len(chunks)))
    else:
        told = summary(moments_at(predictor, grid.points(), include_noise))
        told = told.reshape(*grid.sizes.values(), len(variables))
    return grid.frame.assign(
        {name: (tuple(grid.sizes), told[..., i], given) for i, (name, given) in enumerate(variables)}
    )
