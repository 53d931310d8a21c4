"""Pictures of what `interpolate` and `fill_gaps` return."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..data import is_land
from .curve import posterior
from .panels import mean_and_std, scattered

MOST_DOTS = 5000
"""Of more observations the places are not drawn: they would hide the map."""


def prediction(
    found: Any,
    x: Hashable | Sequence[Hashable] = ("lon", "lat"),
    y: Hashable | None = None,
    *,
    coords: str = "planar",
    observations: Any = None,
    name: str | None = None,
) -> Figure:
    """What `npax.interpolate` or `npax.fill_gaps` has found, as a matplotlib `Figure`, with no window of its own: of
    one coordinate a curve with its 95 % interval, of two a map of the mean and one of the standard deviation, of points
    where `found` is a table. Probabilities that were asked for by `above` are drawn beside them.

    ```python
    field = npax.interpolate(floats, grid, x=["lon", "lat"], y="temp", coords="latlon")
    npax.plot.prediction(field, x=["lon", "lat"], coords="latlon", observations=floats)  # shown in a notebook
    ```

    **Arguments:** `found`: a DataFrame or Dataset with `<y>_mean` and `<y>_std`. `x`: one or two coordinates, the first
    goes across; of a Dataset with further dimensions choose one of each first, `found.isel(time=0)`. `y`: may be left
    out where one value was predicted. `coords`: as for `interpolate`; `"latlon"` draws coasts. `observations`: as they
    were given there; up to 5,000 are drawn, and land over the field where they are at sea. `name`: of what is
    predicted, in words; `y` if None.

    **Raises** `ValueError` for names that are not there, more than two coordinates, or further dimensions; `TypeError`
    for what is neither a DataFrame nor a Dataset.
    """
    from ..estimators.by_name import listed  # here, since it imports scikit-learn

    x = listed(x)
    y = _checked(found, x, y)
    name = str(y) if name is None else name
    seen = None if observations is None else _seen(observations, x, y)
    places = None if seen is None else tuple(seen[:-1])
    if len(x) == 1:
        return _curve(found, x[0], y, seen, name)
    if hasattr(found, "data_vars") and all(axis in found[f"{y}_mean"].dims for axis in x):
        dots = places is not None and len(places[0]) <= MOST_DOTS
        return maps(found, (x[0], x[1]), y, coords, places, name, dots=dots)
    return _of_points(found, x, y, coords, places, name)


def maps(
    found: Any,
    x: tuple[Hashable, Hashable],
    y: Hashable,
    coords: str,
    observed: tuple[Any, Any] | None,
    name: str,
    *,
    dots: bool = False,
) -> Figure:
    """Mean and standard deviation on a grid, side by side; the first of the dimensions `x` goes across. `observed`:
    where, `[n]` and `[n]`, as `dots` too; if that is the ocean, land is drawn over the field. `name`: what `y` is of,
    in words."""
    mean, std = (found[f"{y}_{part}"].transpose(x[1], x[0]).to_numpy() for part in ("mean", "std"))
    across, down = (places(found, axis) for axis in x)
    style: dict[str, Any] = {"coords": coords, "title": name, "name": name, "units": _units(found, y)}
    style["axes"] = (str(x[0]), str(x[1]))
    style["land"] = coords == "latlon" and observed is not None and _at_sea(*observed)
    style["observed"] = observed if dots else None
    above = _probabilities(found, y, name)
    style["probabilities"] = {label: values.transpose(x[1], x[0]).to_numpy() for label, values in above.items()}
    return mean_and_std(across, down, mean, std, **style)


def places(found: Any, name: Hashable) -> np.ndarray:
    """The coordinates of a dimension; its pixels are counted where it has none, or names such as those of stations."""
    from ..estimators.dates import of_calendar  # here, since it imports scikit-learn

    own = found.coords.get(name)
    counted = own is None or (own.dtype.kind not in "iufmM" and not of_calendar(own))
    return np.arange(found.sizes[name]) if counted else np.asarray(own)


def _curve(found, x, y, seen, name):
    mean, std = (np.asarray(found[f"{y}_{part}"], float) for part in ("mean", "std"))
    at, units, above = _broadcast(found, x, y), _units(found, y), _probabilities(found, y, name)
    heights = [4.0, 2.0] if above else [4.0]
    figure = Figure(figsize=(8, sum(heights)), layout="constrained")
    ax, *others = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights).ravel()
    posterior(ax, at, mean, std, context=seen)
    ax.set(ylabel=f"{name} ({units})" if units else name)
    for below in others:
        _curves(below, at, above)
    (others or [ax])[-1].set(xlabel=str(x))
    return figure


def _of_points(found, x, y, coords, observed, name):
    mean, std = (np.ravel(np.asarray(found[f"{y}_{part}"], float)) for part in ("mean", "std"))
    across, down = (np.ravel(_broadcast(found, axis, y)) for axis in x)
    there = ~(_missing(across) | _missing(down))  # of swaths, what has a place
    style: dict[str, Any] = {"coords": coords, "title": name, "name": name, "units": _units(found, y)}
    style["axes"] = (str(x[0]), str(x[1]))
    style["observed"] = observed if observed is not None and len(observed[0]) <= MOST_DOTS else None
    above = _probabilities(found, y, name)
    style["probabilities"] = {label: np.ravel(values)[there] for label, values in above.items()}
    return scattered(across[there], down[there], mean[there], std[there], **style)


def _checked(found, x, y):
    """The name of what is drawn."""
    from ..estimators.table import is_table

    gridded = hasattr(found, "data_vars")
    if not (gridded or is_table(found)):
        kind = type(found)
        raise TypeError(
            f"`found` must be a DataFrame or an xarray Dataset, as npax.interpolate returns it; got "
            f"{kind.__module__}.{kind.__name__}."
        )
    names = [str(column)[: -len("_mean")] for column in found if str(column).endswith("_mean")]
    if y is None:
        if len(names) != 1:
            raise ValueError(f"`y` must say what to draw; `found` has the means of: {', '.join(names) or 'nothing'}.")
        y = names[0]
    for part in ("mean", "std"):
        if f"{y}_{part}" not in found:
            raise ValueError(f"`found` has no '{y}_{part}'; it has the means of: {', '.join(names) or 'nothing'}.")
    if len(x) not in (1, 2):
        raise ValueError(f"`x` must be one or two coordinates, got {len(x)}: {', '.join(map(str, x))}.")
    there = {*found.variables, *found.dims} if gridded else {*found.columns}
    for axis in x:
        if axis not in there:
            raise ValueError(f"`found` has no {axis!r} of `x`; it has: {', '.join(map(str, there))}.")
    if gridded:
        dims = {dim for axis in x for dim in (found[axis].dims if axis in found.variables else (axis,))}
        other = [dim for dim in found[f"{y}_mean"].dims if dim not in dims]
        if other:
            raise ValueError(
                f"`found` varies along {other[0]!r}, too, which is not drawn: choose one, `found.isel({other[0]}=0)`, "
                "or name it in `x`."
            )
    return y


def _seen(observations, x, y):
    """Coordinates and values of the observations that have one, a column each."""
    from ..estimators.table import as_table

    table, _ = as_table(observations, x, [y], summed=True)
    table = table[np.isfinite(np.asarray(table[y], float))]
    return tuple(table[name] for name in (*x, y))


def _probabilities(found, y, name):
    """Those of more than a threshold, by how they are called."""
    start = f"{y}_above_"
    kinds = [str(column)[len(start) :] for column in found if str(column).startswith(start)]
    return {f"probability of {name} above {kind}": found[start + kind] for kind in kinds}


def _curves(ax, x, probabilities):
    order = np.argsort(np.asarray(x), kind="stable")
    for label, values in probabilities.items():
        ax.plot(np.asarray(x)[order], np.asarray(values, float).ravel()[order], label=label)
    ax.set(ylim=(-0.02, 1.02), ylabel="probability")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)


def _broadcast(found, name, y):
    """The coordinate of every predicted value, of a grid whose axes have other names too."""
    if not hasattr(found, "data_vars"):
        return np.asarray(found[name])
    return np.asarray(found[name].broadcast_like(found[f"{y}_mean"]).transpose(*found[f"{y}_mean"].dims))


def _missing(places):
    return np.isnat(places) if places.dtype.kind in "mM" else places != places


def _at_sea(lon, lat):
    """Whether hardly any of some thousand observations are on land; near coasts a few may seem to be."""
    lon, lat = (np.asarray(a, float)[:: max(1, len(a) // 1000)] for a in (lon, lat))
    return bool(np.mean(is_land(lon, lat)) < 0.1)


def _units(found, y):
    return str(found[f"{y}_mean"].attrs.get("units", ""))
