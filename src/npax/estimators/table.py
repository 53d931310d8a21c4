"""Tables, and what observations become one: of pandas, dask and xarray."""

from collections.abc import Mapping
from typing import Any

from .grid import require
from .missing import refuse_undecoded
from .repeats import warn_of_repeats, warn_of_same_places


def as_table(observations, x, ys, errors=(), *, summed=False):
    """Observations as a DataFrame, and the attributes of each `y`; `errors`: names of their known standard errors, or
    exposures; `summed`: whether those of the same places are made one later."""
    if is_table(observations):
        names = [*dict.fromkeys((*x, *ys, *errors))]
        observations = with_levels(observations, names)
        require(observations.columns, names, "observations")
        table = observations[names].compute() if is_lazy_table(observations) else observations
        if not (errors or summed):
            warn_of_same_places(table, x, ys)
        return table, {}
    refuse_other_kinds(observations)
    if not hasattr(observations, "data_vars") and observations.name is not None:
        require([observations.name], ys, "observations")
    dataset = observations if hasattr(observations, "data_vars") else observations.to_dataset(name=ys[0])
    require(dataset.variables, [*x, *ys, *errors], "observations")
    attributes = {name: dict(dataset[name].attrs) for name in ys}
    _refuse_other_dims(dataset, x, ys, "x")
    _refuse_other_dims(dataset, errors, ys, "exposure" if summed else "error")
    if not summed:
        warn_of_repeats(dataset, x, ys)
    dataset = dataset[[*ys, *(name for name in dict.fromkeys((*x, *errors)) if name not in dataset.coords)]]
    dataset = dataset.reset_index([name for name, index in dataset.indexes.items() if index.nlevels > 1])
    dataset = dataset.drop_vars([name for name in dataset.coords if name not in (*x, *errors)]).compute()
    for name in (*x, *ys, *errors):
        refuse_undecoded(dataset[name], name, "`observations`")
    return dataset.to_dataframe().reset_index(), attributes


def of_series(observations, y):
    """A Series whose index has names as a table of these and its values, and what to call them, `y` if they have no
    name; anything else as it is."""
    if not _is_series(observations) or None in observations.index.names:
        return observations, y
    name = observations.name
    if name is None:
        name = "y" if y is None else y
    return observations.to_frame(name).reset_index(), name if y is None else y


def of_one_coordinate(target, x):
    """A Series or an index of pandas as a table where `x` is one name; anything else as it is. **Raises** `ValueError`
    for one of another name."""
    is_index = hasattr(target, "get_indexer") and target.nlevels == 1
    if len(x) != 1 or not (is_index or _is_series(target)):
        return target
    if target.name not in (None, x[0]):
        raise ValueError(
            f"`target` is a {type(target).__name__} and must be named {x[0]!r} as `x` is, or have no name; got "
            f"{target.name!r}. Pass `target.rename({x[0]!r})`, or a mapping, `{{{x[0]!r}: values}}`."
        )
    table = target.to_frame(name=x[0])
    return table.rename_axis(x[0])[[]] if is_index else table


def _is_series(given):
    """Whether it is one of pandas, in memory."""
    return hasattr(given, "iloc") and not hasattr(given, "columns") and not hasattr(given, "compute")


def refuse_other_kinds(observations):
    """**Raises** `TypeError` for what is neither a table nor an array or dataset of xarray."""
    tree = hasattr(observations, "children") and hasattr(observations, "to_dataset")
    if tree or not (hasattr(observations, "to_dataset") or hasattr(observations, "data_vars")):
        kind = type(observations)
        remedy = " Pass `observations.to_pandas()`." if hasattr(observations, "to_pandas") else ""
        if _is_series(observations):
            remedy = " Pass `observations.reset_index()`; or name its index as its coordinates, `.rename_axis(...)`."
        remedy = " Pass the dataset of a node, `tree[path].to_dataset()`." if tree else remedy
        raise TypeError(
            "`observations` must be a pandas DataFrame, an xarray Dataset or an xarray DataArray; "
            f"got {kind.__module__}.{kind.__name__}.{remedy}"
        )


def _refuse_other_dims(dataset, names, ys, where):
    """**Raises** `ValueError` where a coordinate varies along a dimension that no `y` has: each value would be
    everywhere along it."""
    dims = {dim for name in ys for dim in dataset[name].dims}
    for name in names:
        other = [dim for dim in dataset[name].dims if dim not in dims]
        if other:
            raise ValueError(
                f"{', '.join(map(repr, ys))} of `observations` does not vary along {other[0]!r}, as {name!r} does: "
                f"leave {name!r} out of `{where}`, or name one that goes with the values."
            )


def refuse_levels_of_columns(table, where):
    """**Raises** `ValueError` for a DataFrame whose columns have more names than one each."""
    levels = getattr(table.columns, "nlevels", 1) if is_table(table) else 1
    if levels > 1:
        raise ValueError(
            f"The columns of `{where}` must have one name each, got {levels} levels, as in {table.columns[0]!r}. Join "
            f'them first: `{where}.columns = ["_".join(map(str, names)) for names in {where}.columns]`.'
        )


def is_lazy_table(table):
    """Whether it is a DataFrame of dask's."""
    return is_table(table) and hasattr(table, "compute")


def is_table(table):
    """Whether it is a DataFrame, of pandas or dask."""
    return hasattr(table, "iloc") and hasattr(table, "columns")


def with_levels(table, names):
    """A DataFrame with those levels of its index as columns that are asked for, as xarray's `to_dataframe` has them."""
    index = table.index
    levels = [n for n in names if n not in table.columns and n in getattr(index, "names", (index.name,))]
    return table.reset_index(*(() if is_lazy_table(table) else (levels,))) if levels else table


def named(given: Any) -> Any:
    """What holds the columns of observations or targets, by name; nothing where they are of no kind that has names."""
    if is_table(given):
        return given
    columns = getattr(given, "variables", getattr(given, "coords", given))
    return columns if isinstance(columns, Mapping) else {}
