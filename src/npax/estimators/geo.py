"""Tables and grids in, tables and grids out: pandas and xarray, names, units and coordinates kept."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_array

from ..arguments import instance, true_or_false
from ..arrays import with_nan
from ..counts import AbstractCounts
from ..files import is_remote
from ..training import AbstractGaps
from .counts import CountRegressor, refuse_impossible
from .dates import (
    in_days,
    refuse_dates,
    refuse_other_kinds_of_time,
    scaled_by_themselves,
    start_of,
    warn_of_numbers_like_dates,
)
from .degrees import refuse_latitude_first, warn_of_degrees
from .grid import Grid, moment_attributes, refuse_taken, require
from .known_errors import refuse_no_errors
from .likelihood import warn_of_noise
from .missing import refuse_missing
from .moments import complete, lazy_moments, moments_at, of_rates
from .sklearn import NeuralProcessRegressor
from .table import as_table, is_lazy_table, is_table, refuse_levels_of_columns, refuse_other_kinds, with_levels

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LOOKED_AT = 2**12
"""Places of a grid that are compared with where the observations are, before anything is predicted."""


def interpolate(
    observations: pd.DataFrame | xr.Dataset | xr.DataArray,
    target: Any,
    x: Hashable | Sequence[Hashable] = ("lon", "lat"),
    y: Hashable | Sequence[Hashable] | None = None,
    *,
    covariates: Hashable | Sequence[Hashable] | None = None,
    error: Hashable | Sequence[Hashable] | None = None,
    counts: AbstractCounts | None = None,
    exposure: Hashable | None = None,
    coords: str = "planar",
    include_noise: bool = True,
    finetune: int = 0,
    gaps: AbstractGaps | None = None,
    store: str | Path | None = None,
    **options,
) -> Any:
    r"""Predicts a scattered or gridded variable at other places: `<y>_mean` and `<y>_std` there.

    ```python
    grid = {"lat": np.arange(35, 70.1, 0.25), "lon": np.arange(-10, 30.1, 0.25)}
    field = npax.interpolate(stations, grid, x=["lon", "lat"], y="temp", coords="latlon")
    ```

    **Arguments:**

    - `observations`: a DataFrame, or a Dataset or DataArray (points along a dimension, or a grid whose gaps are NaN,
      their coordinates too in swaths); what is lazy in them is computed. Values along a dimension that none of `x` has
      (times) are repeated observations of the same places, with a warning. So are rows of a table at the same places,
      with one where there are 5 at each or more.
    - `target`: where to predict. A DataFrame of points; a Dataset or DataArray whose coordinates or variables
      include `x` (regular, curvilinear or points; predictions are NaN where a coordinate is, and a DataFrame may have
      none that is); or the coordinates alone, as a mapping from name to values.
    - `x`: the name or names of the coordinates, the same in both; with `coords="latlon"` longitude and latitude first,
      others (depth, time) after them. Dates and durations are taken where a coordinate is scaled by itself
      (`coords="planar"`, and beside longitude and latitude): their unit is no matter there, unless all observations
      are of one date.
    - `y`: the name or names of what is predicted, each by itself (but for the units of coordinates, which they share),
      from the places where all of them are known (name them one by one where their gaps differ); a DataArray needs
      none.
    - `covariates`: names of what tells something of `y` beside the places, in `observations` and `target`, such as an
      elevation: see `NeuralProcessRegressor`. Predictions are NaN where they are, as where a coordinate is.
    - `error`: the name of what holds known standard errors of `y` (or names, one for each of `y`), zero where no noise
      is known; see `NeuralProcessRegressor.fit`.
    - `counts`, `exposure`: where `y` holds counts, what they are of, `npax.counts.Poisson()` or
      `npax.counts.Binomial()`, and the name of what holds people, years, or how many were tested (1 where there is
      none): the result is the rate of one unit of exposure, `CountRegressor`'s.
    - `include_noise`: standard deviation of a new observation, or of the noiseless function (where the model tells them
      apart, as the pretrained ones do).
    - `finetune`, `gaps`: as for `NeuralProcessRegressor.fit`; adapts the model to the observations first.
    - `store`: a folder to write a gridded prediction to, block by block, as Zarr (format 3; the name usually ends in
      `.zarr`). Grids of any size take the memory of one block of 65,536 places. After whatever ends the process the
      same call goes on with the first block that was not finished; a finished prediction is not repeated.
    - `options`: those of `NeuralProcessRegressor` (`model`, `strategy`, `on_missing`, `progress`, ...).

    **Returns:** for a DataFrame, a copy of it with two more columns per `y`; else a Dataset on the dimensions and
    coordinates of `target`, whose variables carry the attributes of `y`, units included (of `counts` neither, for they
    are rates of one unit of exposure). What has these names already,
    as after an earlier prediction, is replaced. The mean's attribute `strategy` (of a DataFrame: its own) says whether
    the prediction is exact or tiled.

    Where `target` is chunked by dask (a DataArray such as `da.zeros(shape, chunks=...)` with these coordinates; an
    xarray Dataset of coordinates alone has no chunks, `store` does for it) the result is lazy, with the same chunks,
    for any dask scheduler. The model is sent to each worker once; a block gets its own coordinates and, of the
    observations, those that it sees (if the coordinates themselves are lazy: each worker gets all of them, once). Its
    numbers do not depend on the chunks.
    With `store` the result is what has been written, opened lazily.

    **Warns** with `npax.estimators.PlanarDegrees` where longitudes and latitudes are taken for a plane and the sphere
    would make a difference, and with `npax.estimators.Extrapolation` where targets lie so far outside the observations
    that intervals there are too narrow (counted among 4,096 places of a larger grid, and not at all where the
    coordinates themselves are lazy).

    **Raises:** `ValueError` for names that are not there, columns of several levels, dates as values, beside numbers or
    where a unit is needed, and whatever `NeuralProcessRegressor.fit` finds wrong; `TypeError` for what is no table and
    no grid, a dask DataFrame as `target`, or numbers as `error`; `FileExistsError` where `store` holds anything else
    than this very prediction.
    """
    true_or_false(include_noise=include_noise)
    x = _listed(x)
    if is_lazy_table(target):
        raise TypeError(
            "`target` must be in memory where it is a table, got a dask DataFrame: pass `target.compute()`. "
            "Of xarray's kinds lazy ones are answered lazily."
        )
    for where, given in (("observations", observations), ("target", target)):
        refuse_levels_of_columns(given, where)
    if coords == "latlon":
        refuse_latitude_first(x)
    ys = _names(y, observations, x)
    if hasattr(error, "shape") or isinstance(error, float):
        raise TypeError(
            "`error` is a name here: add the standard errors to `observations`, and give their column's name."
        )
    errors, covariates = ([] if names is None else _listed(names) for names in (error, covariates))
    _check_names(x, ys, errors, covariates)
    columns = [*x, *covariates]
    store = None if store is None else _folder(store)
    if store is not None and any("/" in str(name) for name in (*columns, *ys)):
        raise ValueError(
            f"A store takes no names with '/', which divides its groups; got {[*columns, *ys]}: rename them."
        )
    beside = [*errors, *_exposures(exposure, counts, columns, ys, errors, finetune)]
    reg = NeuralProcessRegressor(coords=coords, covariates=[*range(len(x), len(columns))], **options)
    dated = scaled_by_themselves(x, coords) if reg.normalize else []  # elsewhere the unit of time matters
    table, attributes = as_table(observations, columns, ys, beside, summed=counts is not None)
    refuse_other_kinds_of_time(dated, table, _of_target(target, x))
    starts = [start_of(table[name]) if name in dated else None for name in columns]
    grid = None if is_table(target) else Grid.of(target, columns, starts)
    if grid is None and store is not None:
        raise ValueError("`store` takes a gridded target, got a DataFrame: pass `target.to_xarray()`.")
    if grid is not None:
        refuse_taken(grid.frame.variables, ys, "target")
        stacked = [name for name, index in grid.frame.indexes.items() if index.nlevels > 1]
        if store is not None and stacked:
            raise ValueError(f"A store takes no stacked coordinates, got {stacked[0]!r}: `target.reset_index(...)`.")
    table = _in_days(table, columns, starts)
    places, values = _columns(table, columns, "observations"), _columns(table, ys, "observations")
    of_each = _columns(table, [exposure], "observations")[:, 0] if exposure is not None else np.ones(len(values))
    if counts is not None:
        refuse_impossible(counts, values[:, 0], of_each)
    there = np.isfinite(places).all(axis=1) | np.isfinite(values).any(axis=1)  # in swaths nothing is where no place is
    if not is_table(observations) and reg.on_missing == "drop":
        there &= ~np.isnan(values).all(axis=1)  # the gaps of a grid, of which nobody wants to hear
    places, values = places[there], values[there]
    known = _columns(table, errors, "observations")[there] if errors else None
    if known is not None:
        refuse_no_errors(known, values, errors, table.index[there])
    if not len(places):
        raise ValueError("`observations` holds none: there is no row, or all values and places are NaN.")
    refuse_missing(places, columns, "`observations`")
    if coords != "latlon":
        warn_of_degrees(x, places)
    first = 2 if coords == "latlon" else 0
    warn_of_numbers_like_dates(x[first:], places[:, first : len(x)])
    wanted = None
    if grid is None:  # before `fit`, which may take long
        asked = with_levels(target, columns)
        require(asked.columns, columns, "target")
        wanted = _places(_in_days(asked, columns, starts), columns, "target")
    if counts is None:
        request = reg.fit(places, values, error=known, finetune=finetune, gaps=gaps)._request()
    else:
        of_counts = CountRegressor(counts, reg).fit(places, values[:, 0], exposure=of_each[there])
        reg, request = of_counts.regressor_, of_counts._request()
        attributes = {
            name: {"long_name": f"the rate of {given.get('long_name', name)}"} for name, given in attributes.items()
        }
    reg._names = columns
    if grid is None:
        return _at_points(reg, target, wanted, ys, include_noise, counts)
    warn_of_noise(reg.model_.likelihood, include_noise)
    if not grid.lazy:
        some = np.asarray(grid.some(LOOKED_AT), np.float64)
        reg._warn_of_far(complete(some), grid.size if len(some) < grid.size else None)
    return _on_grid(reg, grid, ys, attributes, include_noise, counts, store, (*request, include_noise))


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


def _check_names(x, ys, errors, covariates):
    for argument, names in (("x", x), ("y", ys)):
        if not names:
            raise ValueError(f"`{argument}` must name at least one column, got {names}.")
    if len({*x, *ys, *covariates}) < len(x) + len(ys) + len(covariates):
        beside = f", covariates={covariates}" if covariates else ""
        raise ValueError(f"`x`, `y` and `covariates` must name every column once, got x={x}, y={ys}{beside}.")
    if errors and (len(errors) != len(ys) or {*errors} & {*x, *ys, *covariates}):
        raise ValueError(f"`error` must name a column for each of `y`, {ys}, and none of the others; got {errors}.")


def _exposures(exposure, counts, x, ys, errors, finetune):
    """The name of exposures, if any. **Raises** `ValueError` for what does not go with counts, or only with these."""
    if counts is None:
        if exposure is not None:
            raise ValueError("`exposure` is of counts: say which, `counts=npax.counts.Poisson()` or `Binomial()`.")
        return []
    instance(AbstractCounts, counts=counts)
    if errors or finetune or len(ys) > 1:
        raise ValueError(
            "`counts` take one column `y`, no `error` (that of a count is known) and no `finetune`; got "
            f"y={ys}, error={errors}, finetune={finetune}."
        )
    if hasattr(exposure, "shape") or isinstance(exposure, float | list):
        raise TypeError("`exposure` is one name here: add exposures to `observations`, and give their column's name.")
    if exposure in (*x, *ys):
        raise ValueError(f"`exposure` must name a column of its own, got {exposure!r}, which is among `x` or `y`.")
    return [] if exposure is None else [exposure]


def _names(y, observations, x):
    if y is not None:
        return _listed(y)
    if hasattr(observations, "to_dataset"):
        return [observations.name or ("value" if "y" in x else "y")]
    if not is_table(observations):
        refuse_other_kinds(observations)
    raise ValueError("`y` must name the variable to predict; only a DataArray needs no name.")


def _listed(names):
    """Names as a list; a text or a number is one name."""
    return [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)


def _of_target(target, x):
    """What holds the coordinates of a target, by name; nothing where it is of no kind that has names."""
    if is_table(target):
        return with_levels(target, x)
    named = getattr(target, "variables", getattr(target, "coords", target))
    return named if isinstance(named, Mapping) else {}


def _in_days(table, x, starts):
    """A table whose dates and durations are numbers."""
    numbers = {name: in_days(table[name], start) for name, start in zip(x, starts, strict=True) if start is not None}
    if not numbers:
        return table
    table = table.copy(deep=False)
    for name, column in numbers.items():
        table[name] = column
    return table


def _at_points(reg, target, places, ys, include_noise, counts):
    mean, std = reg.predict(places, return_std=True, include_noise=include_noise)
    mean, std = (mean, std) if counts is None else counts.moments(mean, std)
    mean, std = mean.reshape(-1, len(ys)), std.reshape(-1, len(ys))
    out = target.copy()
    for i, name in enumerate(ys):
        out[f"{name}_mean"], out[f"{name}_std"] = mean[:, i], std[:, i]
    out.attrs["strategy"] = reg.strategy_
    return out


def _on_grid(reg, grid, ys, attributes, include_noise, counts, store, request):
    predictor = reg._predictor(grid.size)
    variables = list(_variables(ys, attributes, reg.strategy_))
    if store is not None or grid.chunks:
        predictor.progress = False  # of one block: the bar is that of all blocks, or dask's
    if store is not None:
        from .store import Store

        return Store(store, grid, variables, (*request, reg.strategy_)).fill(
            lambda places: of_rates(counts, moments_at(predictor, places, include_noise)), progress=reg.progress
        )
    if grid.chunks:
        moments = lazy_moments(predictor, grid, include_noise)
        moments = moments if counts is None else moments.map_blocks(partial(of_rates, counts), dtype=np.float64)
    else:
        moments = of_rates(counts, moments_at(predictor, grid.points(), include_noise))
        moments = moments.reshape(*grid.sizes.values(), 2 * len(ys))
    return grid.frame.assign(
        {name: (tuple(grid.sizes), moments[..., i], given) for i, (name, given) in enumerate(variables)}
    )


def _variables(ys, attributes, strategy) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and attributes of what is predicted: means, then standard deviations."""
    for kind, also in (("mean", {"strategy": strategy}), ("std", {})):
        for name in ys:
            yield f"{name}_{kind}", {**moment_attributes(kind, name, attributes.get(name, {})), **also}


def _places(table, x, where):
    places = _columns(table, x, where)
    refuse_missing(places, x, f"`{where}`")
    return places


def _columns(table, names, where):
    """`[n d]`, what is missing NaN. **Raises** `ValueError` naming a column that is not there or not of numbers."""
    require(table.columns, names, where)
    twice = [name for name in names if np.ndim(table[name]) > 1]
    if twice:
        raise ValueError(f"`{where}` has several columns that are named {', '.join(map(repr, twice))}: rename them.")
    refuse_dates(((name, table[name]) for name in names), f"`{where}`")
    rules: dict[str, Any] = {
        "dtype": "float64",
        "ensure_2d": False,
        "ensure_all_finite": False,
        "ensure_min_samples": 0,
    }
    columns = []
    for name in names:
        try:
            columns.append(check_array(with_nan(table[name]), **rules))
        except ValueError as error:
            raise ValueError(
                f"The column {name!r} of `{where}` is not of numbers: {error}. Encode text as numbers "
                "(classes as zeros and ones, `pandas.get_dummies`), or read dates by `pandas.to_datetime`."
            ) from error
    return np.stack(columns, axis=1)
