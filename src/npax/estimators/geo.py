"""Tables and grids in, tables and grids out: pandas and xarray, names, units and coordinates kept."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..training import AbstractGaps
from .sklearn import NeuralProcessRegressor

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def interpolate(
    observations: pd.DataFrame | xr.Dataset | xr.DataArray,
    target: Any,
    x: Sequence[Hashable] = ("lon", "lat"),
    y: Hashable | list[Hashable] | None = None,
    *,
    coords: str = "planar",
    include_noise: bool = True,
    finetune: int = 0,
    gaps: AbstractGaps | None = None,
    **options,
) -> Any:
    r"""Predicts a scattered or gridded variable at other places: `<y>_mean` and `<y>_std` there.

    ```python
    grid = {"lat": np.arange(35, 70.1, 0.25), "lon": np.arange(-10, 30.1, 0.25)}
    field = npax.interpolate(stations, grid, x=["lon", "lat"], y="temp", coords="latlon")
    ```

    **Arguments:**

    - `observations`: a DataFrame, or a Dataset or DataArray (points along a dimension, or a grid whose gaps are NaN).
    - `target`: where to predict. A DataFrame of points; a Dataset or DataArray whose coordinates or variables
      include `x` (regular, curvilinear or points); or the coordinates alone, as a mapping from name to values.
    - `x`: the names of the coordinates, the same in both; with `coords="latlon"` longitude first. `y`: the name, or
      the list of names, of what is predicted, each by itself; a DataArray needs none.
    - `include_noise`: standard deviation of a new observation, or of the noiseless function.
    - `finetune`, `gaps`: as for `NeuralProcessRegressor.fit`; adapts the model to the observations first.
    - `options`: those of `NeuralProcessRegressor` (`model`, `strategy`, `on_missing`, ...).

    **Returns:** for a DataFrame, a copy of it with two more columns per `y`; else a Dataset on the dimensions and
    coordinates of `target`, whose variables carry the attributes of `y`, units included. Where `target` is chunked
    by dask the result is lazy, with the same chunks: a block gets its own coordinates and the observations, and its
    numbers do not depend on the chunks.

    **Raises:** `ValueError` for names that are not there, and whatever `NeuralProcessRegressor.fit` finds wrong.
    """
    x = list(x)
    if coords == "latlon" and len(x) == 2 and str(x[0]).lower().startswith("lat"):
        raise ValueError(f'With `coords="latlon"`, `x` names longitude first, then latitude; got {x}.')
    ys = _names(y, observations)
    table, attributes = _table(observations, x, ys)
    reg = NeuralProcessRegressor(coords=coords, **options)
    reg.fit(_columns(table, x, "observations"), table[ys].to_numpy(), finetune=finetune, gaps=gaps)
    if hasattr(target, "iloc"):
        return _at_points(reg, target, x, ys, include_noise)
    return _on_grid(reg, target, x, ys, attributes, include_noise)


def _names(y, observations):
    if y is not None:
        return y if isinstance(y, list) else [y]
    if hasattr(observations, "to_dataset"):
        return [observations.name or "y"]
    raise ValueError("`y` must name the variable to predict; only a DataArray needs no name.")


def _table(observations, x, ys):
    """Observations as a DataFrame, and the attributes of each `y`."""
    if hasattr(observations, "iloc"):  # a DataFrame
        _require(observations.columns, [*x, *ys], "observations")
        return observations, {}
    if not hasattr(observations, "to_dataset") and not hasattr(observations, "data_vars"):
        raise TypeError(
            "`observations` must be a pandas DataFrame, an xarray Dataset or an xarray DataArray; "
            f"got {type(observations).__name__}."
        )
    dataset = observations if hasattr(observations, "data_vars") else observations.to_dataset(name=ys[0])
    _require(dataset.variables, [*x, *ys], "observations")
    attributes = {name: dict(dataset[name].attrs) for name in ys}
    keep = [*ys, *(name for name in x if name not in dataset.coords)]
    return dataset[keep].to_dataframe().reset_index(), attributes


def _at_points(reg, target, x, ys, include_noise):
    _require(target.columns, x, "target")
    mean, std = reg.predict(_columns(target, x, "target"), return_std=True, include_noise=include_noise)
    out = target.copy()
    for i, name in enumerate(ys):
        out[f"{name}_mean"], out[f"{name}_std"] = mean[:, i], std[:, i]
    return out


def _on_grid(reg, target, x, ys, attributes, include_noise):
    xr = _xarray()
    if isinstance(target, xr.DataArray):
        dims, chunks, frame = target.dims, target.chunksizes, target.coords.to_dataset()
    elif isinstance(target, Mapping):  # a Dataset is one; others are coordinates
        dataset = target if isinstance(target, xr.Dataset) else xr.Dataset(coords=target)
        _require(dataset.variables, x, "target")
        dims, chunks, frame = tuple(dataset.sizes), dataset.chunksizes, dataset[[*x]]
        frame = frame.assign_attrs(dataset.attrs)
    else:
        raise TypeError(
            "`target` must be a pandas DataFrame, an xarray Dataset or DataArray, or a mapping from coordinate names "
            f"to values; got {type(target).__name__}."
        )
    _require(frame.variables, x, "target")
    axes = [frame[name].variable.to_base_variable() for name in x]  # a variable that is an index cannot be chunked
    if chunks:
        axes = [axis.chunk({d: chunks[d] for d in axis.dims}) for axis in axes]

    def block(*columns):
        columns = np.broadcast_arrays(*columns)
        points = np.stack([column.ravel() for column in columns], axis=1)
        mean, std = reg.predict(points, return_std=True, include_noise=include_noise)
        return np.concatenate([mean, std], axis=1).reshape(*columns[0].shape, -1)

    both = xr.apply_ufunc(
        block,
        *axes,
        output_core_dims=[["_moment"]],
        dask="parallelized",
        output_dtypes=[np.float64],
        dask_gufunc_kwargs={"output_sizes": {"_moment": 2 * len(ys)}},
    )
    both = both.transpose(*(d for d in dims if d in both.dims), "_moment")
    for i, name in enumerate(ys):
        given = attributes.get(name, {})
        for kind, words, j in (("mean", "predicted mean of", i), ("std", "standard deviation of", i + len(ys))):
            long_name = {"long_name": f"{words} {given.get('long_name', name)}"}
            units = {"units": given["units"]} if "units" in given else {}
            kept = given if kind == "mean" else units
            variable = both.isel(_moment=j)
            variable.attrs = {**kept, **long_name}
            frame[f"{name}_{kind}"] = variable
    return frame


def _columns(table, names, where):
    _require(table.columns, names, where)
    return np.stack([np.asarray(table[name]) for name in names], axis=1)


def _require(there, names, where):
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(
            f"`{where}` has no {', '.join(map(repr, missing))}; it has {', '.join(repr(name) for name in there)}."
        )


def _xarray():
    try:
        import xarray
    except ImportError as error:
        raise ImportError("Grids need xarray: pip install 'npax[geo]'.") from error
    return xarray
